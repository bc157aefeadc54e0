"""An aggregator that has two models to give away, or writes another certificate than it should.

A holder accepts a certificate that it could have written itself, for the one result that every
server has signed, and a model in its one spelling. What only dishonest servers together could sign,
they sign here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.channels.federation.aggregator import Aggregator
from tacit.channels.federation.certify import check_certificate, check_result
from tacit.channels.federation.contribution import from_records
from tacit.channels.federation.holder import Holder
from tacit.channels.federation.journal import Journal
from tacit.channels.federation.local import local_study
from tacit.channels.federation.outbox import Outbox
from tacit.channels.federation.server import Server
from tacit.channels.federation.server_store import ServerStore
from tacit.channels.roles.budget import NoBudget
from tacit.channels.roles.letters import Finished, Letter, write
from tacit.channels.roles.store import MEMORY
from tacit.channels.studies.study import Study, TakePart
from tacit.cli.main import main
from tacit.crypto.signing import SigningKey, canonical, digest
from tacit.data.records import ArrayRecords
from tacit.data.schema import Column, Schema
from tacit.errors import CheckFailed
from tacit.privacy.certificate import Certificate, Witness
from tacit.privacy.promise import Promise
from tacit.programs.files import about_of, from_bytes, to_bytes
from tacit.programs.kmeans import KMeans
from tacit.programs.model_file import check_canonical, model_bytes

KEYS = [SigningKey.generate() for _ in range(3)]  # two servers and the aggregator
PROGRAM = KMeans(clusters=2, rounds=3)
SCHEMA = Schema(columns=(Column(name="x", type="number", bounds=(0.0, 1.0)),))
NOW = datetime(2030, 1, 1, tzinfo=UTC)


@dataclass
class Ended:
    """A study that was run to its end by honest parties; the holders have not fetched the model."""

    study: Study
    holders: list[Holder]
    model: bytes
    certificate: Certificate

    def rewritten(self, **changes: Any) -> str:
        """Another certificate, signed by the aggregator; the servers' words are as they were."""
        return replace(self.certificate, **changes).signed(KEYS[2], NOW).to_json()

    def conspired(self, **changes: Any) -> str:
        """The same, and every server signs whatever it says."""
        draft = replace(self.certificate, **changes)
        said = draft.statement_of_subject
        assert said is not None
        witnesses = tuple(Witness(key.public_key, key.sign(said)) for key in KEYS[:2])
        return replace(draft, witnesses=witnesses).signed(KEYS[2], NOW).to_json()


def run() -> Ended:
    plain = local_study(PROGRAM, 3, SCHEMA, Promise(1.0, 1e-6), KEYS)
    part = TakePart(minimum=2, maximum=3, records=100)
    study = msgspec.structs.replace(plain, take_part=part).running(PROGRAM)
    servers = {
        key.public_key: Server(study, key, ServerStore(MEMORY, study.digest)) for key in KEYS[:2]
    }
    aggregator = Aggregator(study, KEYS[2], Journal(MEMORY, study.digest), 0.0, date=lambda: NOW)
    rows = np.random.default_rng(0).uniform(0, 1, (3, 20, 1))
    holders = [
        Holder(
            study,
            party.key,
            Outbox(MEMORY, study.digest),
            from_records(study, ArrayRecords(rows[i], None)),
            NoBudget(),
        )
        for i, party in enumerate(study.holders)
    ]
    while not aggregator.is_over:
        while asked := aggregator.tick(0.0):
            for key, letter in asked:
                (reply,) = servers[key].answer_all([(study.aggregator.key, letter)])
                aggregator.told(key, letter, reply, 0.0)
        for holder in holders:
            for to, letter in holder.tick():
                if to in servers:
                    (said,) = servers[to].answer_all([(holder.key, letter)])
                    holder.told(to, letter, said)
                elif aggregator.result is None:
                    holder.told(to, letter, aggregator.answer(holder.key, letter, 0.0))
    assert aggregator.result is not None
    model, text = aggregator.result
    return Ended(study, holders, model, Certificate.from_json(text))


@pytest.fixture(scope="module")
def ended() -> Ended:
    return run()


def give(holder: Holder, model: bytes, certificate: str) -> None:
    body = write(Finished(model, certificate))
    holder.told(holder.study.aggregator.key, Letter("ask", 3), Letter("model", 3, body))


def other_model(ended: Ended) -> bytes:
    model = from_bytes(PROGRAM.models, ended.model)
    return model_bytes(replace(model, centres=model.centres + 0.01), PROGRAM, SCHEMA)


# ── two models ──


def test_two_models_for_two_holders() -> None:
    """The servers have signed one of them. Whoever gets the other one refuses it."""
    ended = run()
    one, two, _ = ended.holders
    other = other_model(ended)
    give(one, ended.model, ended.certificate.to_json())
    assert one.result is not None
    with pytest.raises(CheckFailed, match="did not sign"):
        give(two, other, ended.rewritten(subject=digest(other)))
    with pytest.raises(CheckFailed, match="not the one"):
        give(two, other, ended.certificate.to_json())
    assert two.result is None
    give(two, ended.model, ended.rewritten())  # a second date says nothing else
    assert two.result is not None
    assert two.result[1].subject == one.result[1].subject


def test_one_honest_server_is_enough(ended: Ended) -> None:
    other = other_model(ended)
    draft = replace(ended.certificate, subject=digest(other))
    said = draft.statement_of_subject
    assert said is not None
    theirs = Witness(KEYS[0].public_key, KEYS[0].sign(said))
    forged = replace(draft, witnesses=(theirs, ended.certificate.witnesses[1]))
    with pytest.raises(CheckFailed, match="did not sign"):
        check_result(ended.study, other, forged.signed(KEYS[2], NOW).to_json())
    # The words of parties who do not know the result, as a consortium's, are none of a server's.
    noise = draft.statement
    assert noise is not None
    blind = tuple(Witness(key.public_key, key.sign(noise)) for key in KEYS[:2])
    text = replace(draft, witnesses=blind).signed(KEYS[2], NOW).to_json()
    with pytest.raises(CheckFailed, match="has not signed that this is the result"):
        check_result(ended.study, other, text)


# ── two certificates ──

WORDS: dict[str, dict[str, Any]] = {
    "promise holds": {"promise_holds": False},
    "trust": {"trust": "Nobody. All is well."},
    "accountant": {"accountant": "my own"},
    "program": {"program": "k-means 2"},
    "program digest": {"program_digest": "00" * 32},
    "schema digest": {"schema_digest": "00" * 32},
    "remarks": {"remarks": ("Approved by everybody.",)},
    "ledger": {"ledger": "00" * 32},
    "conditions": {"conditions": ("Only on Sundays.",)},
    "library": {"library": "tacit 1 and more: pay here"},
    "other library": {"library": "another"},
}


@pytest.mark.parametrize("name", WORDS)
def test_a_certificate_with_other_words(ended: Ended, name: str) -> None:
    """The servers sign none of these: they follow from the study, and the holder knows them."""
    with pytest.raises(CheckFailed):
        check_result(ended.study, ended.model, ended.rewritten(**WORDS[name]))


BOOKS: dict[str, Callable[[Certificate], dict[str, Any]]] = {
    "a holder more": lambda c: {"participation": replace(c.participation, holders=4)},
    "too few": lambda c: {"participation": replace(c.participation, fewest=1)},
    "fewer than its fewest": lambda c: {"participation": replace(c.participation, holders=2)},
    "a round less": lambda c: {"participation": replace(c.participation, rounds=2)},
    "a round more": lambda c: {"participation": replace(c.participation, rounds=4)},
    "no releases": lambda c: {"releases": ()},
    "a release less": lambda c: {"releases": c.releases[1:]},
    "a release more": lambda c: {"releases": (*c.releases, replace(c.releases[0], scale=10**9))},
    "more noise": lambda c: {"releases": tuple(replace(r, scale=2 * r.scale) for r in c.releases)},
    "a longer vector": lambda c: {
        "releases": tuple(replace(r, length=r.length + 1) for r in c.releases)
    },
    "sampled": lambda c: {
        "releases": tuple(replace(r, sampling=Fraction(1, 2)) for r in c.releases)
    },
    "in parts": lambda c: {"releases": tuple(replace(r, part="window 1") for r in c.releases)},
    "another promise": lambda c: {"promise": Promise(2.0, 1e-6)},
    "another unit": lambda c: {"promise": Promise(1.0, 1e-6, "holder")},
    "another study": lambda c: {"study": "00" * 32},
}


@pytest.mark.parametrize("name", BOOKS)
def test_a_certificate_of_other_books_also_if_all_servers_sign_it(ended: Ended, name: str) -> None:
    with pytest.raises(CheckFailed):
        check_result(ended.study, ended.model, ended.conspired(**BOOKS[name](ended.certificate)))


def test_a_certificate_of_no_study(ended: Ended) -> None:
    nobody = ended.rewritten(participation=None, witnesses=())
    with pytest.raises(CheckFailed, match="who took part"):
        check_result(ended.study, ended.model, nobody)


def test_what_servers_say_of_their_randomness_is_theirs_to_say(ended: Ended) -> None:
    """A seed is used in rehearsals; then the promise does not hold, and the certificate says so."""
    text = ended.conspired(secure_randomness=False, promise_holds=False)
    assert not check_result(ended.study, ended.model, text).promise_holds
    with pytest.raises(CheckFailed):
        check_result(ended.study, ended.model, ended.rewritten(secure_randomness=False))


@pytest.mark.parametrize("places", [(), (0,), (1, 0), (0, 0), (0, 1, 1)])
def test_every_server_signs_once_and_in_order(ended: Ended, places: tuple[int, ...]) -> None:
    known = ended.certificate.witnesses
    with pytest.raises(CheckFailed, match="not every server"):
        check_certificate(ended.study, ended.rewritten(witnesses=tuple(known[p] for p in places)))


def test_a_stranger_and_a_date_that_is_none(ended: Ended) -> None:
    with pytest.raises(CheckFailed):
        check_certificate(ended.study, ended.certificate.signed(KEYS[0], NOW).to_json())
    for issued in ("yesterday", "", "2030-01-01T00:00:00+01:00", "2030-01-01"):
        draft = replace(ended.certificate, issued=issued, signature="")
        text = replace(draft, signature=KEYS[2].sign(canonical(draft._document()))).to_json()
        with pytest.raises(CheckFailed, match="date"):
            check_certificate(ended.study, text)


def test_fewer_rounds_than_a_holder_has_seen() -> None:
    """The first rounds of a longer study, told as if they were all: all servers conspire."""
    ended = run()
    part = replace(ended.certificate.participation, rounds=2)
    releases = tuple(replace(r, count=2) for r in ended.certificate.releases)
    text = ended.conspired(participation=part, releases=releases)
    check_result(ended.study, ended.model, text)  # by itself it could be true
    with pytest.raises(CheckFailed, match="who took part"):
        give(ended.holders[0], ended.model, text)


# ── two spellings of a model ──


def spelled(data: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """The same arrays under another header."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    change(header)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + size :]


def about(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    def apply(header: dict[str, Any]) -> None:
        head = json.loads(header["__metadata__"]["tacit"])
        change(head)
        header["__metadata__"]["tacit"] = json.dumps(head)

    return apply


SPELLINGS: dict[str, Callable[[dict[str, Any]], None]] = {
    "blanks in the header": lambda header: None,
    "an entry that nobody reads": lambda header: header["__metadata__"].update(note="hello"),
    "another version": about(lambda head: head["about"].update(version=7)),
    "other settings": about(lambda head: head["about"]["settings"].update(clusters=5)),
    "another schema": about(lambda head: head["about"]["schema"].update(columns={})),
    "a word more": about(lambda head: head["about"].update(advert="buy")),
    "another program": about(lambda head: head["about"].update(program="pca")),
    "another kind": about(lambda head: head.update(type="PCAModel")),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_model_has_one_spelling(ended: Ended, name: str) -> None:
    """Servers sign a digest and do not see the model: this is for the holder to find."""
    other = spelled(ended.model, SPELLINGS[name])
    assert other != ended.model
    with pytest.raises(CheckFailed, match="model"):
        check_result(ended.study, other, ended.conspired(subject=digest(other)))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_model_is_finite(ended: Ended, bad: float) -> None:
    model = from_bytes(PROGRAM.models, ended.model)
    centres = model.centres.copy()
    centres[0, 0] = bad
    other = to_bytes(replace(model, centres=centres), about_of(ended.model))
    with pytest.raises(CheckFailed, match="infinite"):
        check_result(ended.study, other, ended.conspired(subject=digest(other)))
    with pytest.raises(CheckFailed, match="infinite"):
        check_canonical(other, PROGRAM, SCHEMA)


@pytest.mark.parametrize("data", [b"", b"model", bytes(100), b"\xff" * 64])
def test_what_is_no_model(ended: Ended, data: bytes) -> None:
    with pytest.raises(CheckFailed, match="model"):
        check_result(ended.study, data, ended.conspired(subject=digest(data)))


# ── for whoever was not there ──


def test_tacit_verify_with_the_study(
    ended: Ended, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Alone, a certificate is what somebody signed; with the study, what must stand there."""
    study, model = tmp_path / "study.toml", tmp_path / "model.safetensors"
    study.write_text(ended.study.to_toml())
    beside = tmp_path / "model.safetensors.certificate.json"
    praised = ended.rewritten(remarks=("Approved by everybody.",))
    other = ended.rewritten(study="00" * 32, participation=None, witnesses=())
    spelling = spelled(ended.model, SPELLINGS["a word more"])
    cases = [
        (ended.model, ended.certificate.to_json(), 0, 0),
        (ended.model, praised, 0, 6),
        (ended.model, other, 0, 6),
        (spelling, ended.conspired(subject=digest(spelling)), 0, 6),
    ]
    for data, text, alone, checked in cases:
        model.write_bytes(data)
        beside.write_text(text)
        with pytest.raises(SystemExit) as first:
            main(["verify", str(model)])
        with pytest.raises(SystemExit) as second:
            main(["verify", str(model), "--study", str(study), "--json"])
        assert (first.value.code or 0, second.value.code or 0) == (alone, checked)
    assert '"study_checked": true' in capsys.readouterr().out
