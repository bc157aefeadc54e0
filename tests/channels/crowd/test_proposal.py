"""The proposal's file: what it must say, and that nothing in it can be changed unseen."""

from __future__ import annotations

import math
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from rehearsal import PEOPLE, UNCUT, Rehearsal, identity

from tacit.channels.crowd.checks import RING
from tacit.channels.crowd.plan import PlanTerms
from tacit.channels.crowd.proposal import Proposal
from tacit.channels.studies.tables import Signature
from tacit.crypto.lots import opens
from tacit.crypto.onion import OnionKey
from tacit.errors import CheckFailed, InputError, UsageError
from tacit.programs.logistic import Logistic

TERMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "quantiles": {"people": 100, "schema": UNCUT},
    "anonml": {"plan": PlanTerms(kind="anonml", partitions=2, subsets=1, size=2)},
    "tables": {"plan": PlanTerms(tables=(("age", "town"), ("smokes",)))},
    "ring": {"proof": "ring"},
    "hybrid": {"kem": "hybrid"},
    "listed": {"members": tuple(identity("listed", n).public_key for n in range(PEOPLE))},
}
STUDY = Rehearsal()
PROPOSAL = STUDY.proposal


@pytest.mark.parametrize("terms", TERMS)
def test_the_file_comes_back_as_it_was(terms: str, tmp_path: Path) -> None:
    proposal = Rehearsal(**TERMS[terms]).proposal
    path = tmp_path / "proposal.toml"
    path.write_text(proposal.to_toml(), encoding="utf-8")
    found = Proposal.load(path)
    assert found == proposal
    assert found.digest == proposal.digest
    assert found.to_toml() == proposal.to_toml()
    assert found.questions == proposal.questions
    found.check_signature()


def test_what_follows_from_it_is_what_the_collector_knows() -> None:
    secrets = STUDY.cast.secrets
    assert opens(PROPOSAL.collector.lot, secrets.seed)
    assert {n: k.public for n, k in secrets.tokens.items()} == PROPOSAL.token_keys
    assert list(PROPOSAL.questions) == list(PROPOSAL.drawn_up.names)
    assert PROPOSAL.local_promise.epsilon == 2.0
    assert PROPOSAL.wave_seconds == 20.0 + 3 * 5.0
    assert [hop.address for hop in PROPOSAL.stops] == [0, 1, 2, 3, 4]


def test_all_packets_have_room_for_the_longest_answer() -> None:
    for terms in TERMS.values():
        proposal = Rehearsal(**terms).proposal
        people = proposal.group.maximum
        longest = max(q.randomiser.report_bytes for q in proposal.questions.values())
        assert proposal.shape(people).payload_bytes == 11 + longest + proposal.proof_bytes(people)


def test_a_ring_proof_grows_with_the_group() -> None:
    proposal = Rehearsal(proof="ring").proposal
    assert proposal.proof_bytes(20) > proposal.proof_bytes(10)
    assert PROPOSAL.proof_bytes(20) == PROPOSAL.proof_bytes(10) == 32 + 256


def test_what_learns_from_records_is_refused_before_anybody_answers() -> None:
    document = tomllib.loads(PROPOSAL.to_toml())
    for name, version in (("logistic", Logistic.version), ("averaged-logistic", 1)):
        document["learner"] = {"name": name, "version": version}
        with pytest.raises(InputError, match=rf"\[learner\]: '{name}' learns from records"):
            Proposal.from_dict(document)
    document["learner"] = {"name": "only the collector's", "version": 1}
    Proposal.from_dict(document)  # whoever answers need not have it


# ── the signature ──


def test_a_changed_byte_breaks_it() -> None:
    """Every line of the file but comments, one after another."""
    text = PROPOSAL.to_toml()
    Proposal.from_dict(tomllib.loads(text)).check_signature()
    lines = text.splitlines()
    tried = 0
    for number, line in enumerate(lines):
        if " = " not in line or line.startswith("#"):
            continue
        for change in (_other_number, _other_text):
            other = "\n".join([*lines[:number], change(line), *lines[number + 1 :]])
            if other == "\n".join(lines):
                continue
            tried += 1
            with pytest.raises((CheckFailed, InputError, UsageError)):
                Proposal.from_dict(tomllib.loads(other)).check_signature()
    assert tried > 60


def _other_number(line: str) -> str:
    head, _, value = line.partition(" = ")
    digits = [i for i, c in enumerate(value) if c.isdigit()]
    if not digits:
        return f"{head} = {'false' if value == 'true' else value}"
    last = digits[-1]
    return f"{head} = {value[:last]}{(int(value[last]) + 1) % 10}{value[last + 1 :]}"


def _other_text(line: str) -> str:
    head, _, value = line.partition(" = ")
    return f'{head} = "x{value[1:]}' if value.startswith('"') else line


def test_comments_and_layout_are_free() -> None:
    text = "# ours\n\n" + PROPOSAL.to_toml().replace(" = ", "   =  ")
    Proposal.from_dict(tomllib.loads(text)).check_signature()


def test_only_the_collector_signs() -> None:
    bare = msgspec.structs.replace(PROPOSAL, signature=None)
    with pytest.raises(CheckFailed, match="not signed by its collector"):
        bare.check_signature()
    with pytest.raises(UsageError, match="collector's key"):
        bare.signed(identity("somebody"))
    other = identity("somebody")
    theirs = Signature(author=other.public_key, signature="0" * 128)
    with pytest.raises(CheckFailed, match="not signed by its collector"):
        msgspec.structs.replace(PROPOSAL, signature=theirs).check_signature()
    forged = Signature(author=PROPOSAL.collector.key, signature="0" * 128)
    with pytest.raises(CheckFailed, match="something was changed"):
        msgspec.structs.replace(PROPOSAL, signature=forged).check_signature()


def test_the_digest_is_of_everything_but_the_signature() -> None:
    bare = msgspec.structs.replace(PROPOSAL, signature=None)
    assert bare.digest == PROPOSAL.digest
    longer = msgspec.structs.replace(PROPOSAL.windows, release=6.0)
    assert msgspec.structs.replace(PROPOSAL, windows=longer).digest != PROPOSAL.digest


# ── what a file must say ──


def document() -> dict[str, Any]:
    return tomllib.loads(PROPOSAL.to_toml())


def put(*path: Any) -> Callable[[dict[str, Any]], None]:
    """The last of the path at the place of the others."""
    *way, name, value = path

    def change(table: dict[str, Any]) -> None:
        for step in way:
            table = table[step]
        table[name] = value

    return change


KEY = identity("somebody").public_key
WRONG: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "name": (put("name", "No Spaces"), "name = "),
    "question": (put("question", " "), "question is empty"),
    "format": (put("format", "tacit crowd 3"), "this version of tacit reads"),
    "unknown table": (put("extra", {}), "unknown 'extra'"),
    "unknown field": (put("group", "smallest", 3), "unknown field `smallest`"),
    "unknown field of a relay": (put("relays", 0, "port", 3), "unknown field `port`"),
    "type": (put("group", "minimum", "many"), r"\[group\]"),
    "epsilon zero": (put("promise", "epsilon", 0.0), "epsilon = 0.0"),
    "epsilon infinite": (put("promise", "epsilon", math.inf), "epsilon = inf"),
    "epsilon nan": (put("promise", "epsilon", math.nan), "epsilon = nan"),
    "delta zero": (put("promise", "delta", 0.0), "delta = 0.0"),
    "delta one": (put("promise", "delta", 1.0), "delta = 1.0"),
    "alone": (put("group", "minimum", 1), "nobody hides alone"),
    "minimum above maximum": (put("group", "minimum", 13), "minimum ≤ maximum"),
    "millions": (put("group", "maximum", 10_000_001), "10000000"),
    "few members": (put("group", "members", [KEY]), "1 members are listed"),
    "member twice": (put("group", "members", [KEY] * 12), "listed twice"),
    "no key": (
        put("group", "members", [f"{n:x}" * 8 for n in range(12)]),
        "64 hexadecimal digits",
    ),
    "relay a member": (
        put(
            "group",
            "members",
            [STUDY.relays[0].public_key, *(identity(n).public_key for n in range(11))],
        ),
        "that is another role",
    ),
    "corrupt": (put("group", "corrupt", 12), "corrupt = 12"),
    "negative": (put("group", "corrupt", -1), "corrupt = -1"),
    "no time": (put("windows", "send", 0.0), "send = 0.0"),
    "for ever": (put("windows", "release", math.inf), "release = inf"),
    "no waves": (put("windows", "waves", 0), "waves = 0"),
    "too many waves": (put("windows", "waves", 1001), "waves = 1001"),
    "no hops": (put("route", "hops", 0), "hops = 0"),
    "more hops than relays": (put("route", "hops", 6), "hops = 6 with 5 relays"),
    "batch": (put("route", "batch", 13), "batch = 13"),
    "kem": (put("route", "kem", "rsa"), r"\[route\]"),
    "relay's name": (put("relays", 0, "name", "relay-1"), "same name"),
    "relay's key": (put("relays", 0, "key", STUDY.relays[1].public_key), "same key"),
    "collector's key": (put("collector", "key", STUDY.relays[1].public_key), "same key"),
    "relay's address": (put("relays", 0, "address", "http://example.org:1"), "write https://"),
    "relay's onion key": (
        put("relays", 0, "onion", PROPOSAL.relays[1].onion),
        "the same onion key",
    ),
    "collector's onion key": (
        put("collector", "onion", PROPOSAL.relays[1].onion),
        "the same onion key",
    ),
    "no onion key": (put("relays", 0, "onion", "5a"), "not a public onion key"),
    "lot": (put("collector", "lot", "5a"), "lot is a commitment"),
    "lot in capitals": (put("collector", "lot", "A" * 64), "lot is a commitment"),
    "token missing": (put("collector", "tokens", {}), "keys for other questions"),
    "token key": (put("collector", "tokens", "table-0", "5a"), "token key"),
    "another question": (
        put("collector", "tokens", "table-9", PROPOSAL.collector.tokens["table-0"]),
        "keys for other questions",
    ),
    "ring with tokens": (put("group", "proof", "ring"), "keys for other questions"),
    "plan": (put("plan", "bins", 1), "bins must be 2 or more"),
    "tables": (put("plan", "tables", [["height"]]), "features of the schema"),
    "schema": (put("schema", 3), "must be a table"),
    "signature": (put("signature", "signature", "5a"), r"\[signature\]"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said(case: str) -> None:
    change, message = WRONG[case]
    text = document()
    change(text)
    with pytest.raises(InputError, match=message) as caught:
        Proposal.from_dict(text, where="lungs.toml")
    assert str(caught.value).startswith("lungs.toml")


@pytest.mark.parametrize("key", [k for k in document() if k != "signature"])
def test_every_table_must_be_there(key: str) -> None:
    text = document()
    del text[key]
    with pytest.raises(InputError, match=f"'{key}' is missing"):
        Proposal.from_dict(text)


def test_without_a_signature_it_can_be_read() -> None:
    text = document()
    del text["signature"]
    assert Proposal.from_dict(text).signature is None


def test_groups_with_rings_are_small() -> None:
    text = tomllib.loads(Rehearsal(proof="ring").proposal.to_toml())
    text["group"]["maximum"] = RING
    Proposal.from_dict(text)
    text["group"]["maximum"] = RING + 1
    with pytest.raises(InputError, match="at most 1000"):
        Proposal.from_dict(text)


def test_too_small_a_group_for_its_questions_is_refused() -> None:
    text = document()
    text["group"]["minimum"] = 3
    text["route"]["batch"] = 1
    with pytest.raises(InputError, match="too few for 3 questions"):
        Proposal.from_dict(text)


def test_a_relay_finds_its_place() -> None:
    for place, key in enumerate(STUDY.relays):
        assert PROPOSAL.relay_place(key.public_key) == place
    with pytest.raises(UsageError, match="none of its relays'"):
        PROPOSAL.relay_place(KEY)


def test_every_relay_has_a_key_for_the_proposed_layers() -> None:
    text = document()
    text["relays"][0]["onion"] = OnionKey.generate("hybrid").public
    with pytest.raises(InputError, match="of another kind"):
        Proposal.from_dict(text)


def test_it_is_signed_by_a_draft_with_fresh_secrets() -> None:
    """Two drafts of the same study have nothing secret in common."""
    from tacit.channels.crowd.propose import Draft

    names = ("name", "question", "schema", "promise", "group", "windows", "relays", "route", "plan")
    ring = msgspec.structs.replace(PROPOSAL.group, proof="ring")
    terms = {name: getattr(PROPOSAL, name) for name in names} | {"group": ring}
    draft = Draft(**terms, address=PROPOSAL.collector.address)
    (one, first), (other, second) = (draft.proposed(STUDY.cast.collector) for _ in range(2))
    one.check_signature()
    assert one.digest != other.digest
    assert first.seed != second.seed
    assert opens(one.collector.lot, first.seed)
    assert not first.tokens
