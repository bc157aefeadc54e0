"""The state machines one by one: what they answer, and what they refuse."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.channels.federation.aggregator import Aggregator
from tacit.channels.federation.certify import check_result
from tacit.channels.federation.contribution import Sum
from tacit.channels.federation.holder import Holder
from tacit.channels.federation.journal import Journal
from tacit.channels.federation.letters import (
    Holders,
    News,
    Sealed,
    Share,
    Subject,
    Witnessed,
    digest_of,
)
from tacit.channels.federation.local import local_study
from tacit.channels.federation.noise_plan import asked_by
from tacit.channels.federation.outbox import Outbox
from tacit.channels.federation.phases import Phase
from tacit.channels.federation.seals import Question, marks_of, seal
from tacit.channels.federation.server import Server
from tacit.channels.federation.server_store import ServerStore
from tacit.channels.roles.budget import LedgerBudget, NoBudget
from tacit.channels.roles.letters import Finished, Letter, read, write
from tacit.channels.roles.store import MEMORY
from tacit.channels.studies.study import Deadlines, Study, TakePart
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.data.schema import Column, Schema
from tacit.errors import (
    CheckFailed,
    InputError,
    Refused,
    StudyStopped,
    TacitError,
    Unreachable,
)
from tacit.privacy.ledger import Ledger
from tacit.privacy.promise import Promise
from tacit.programs.files import to_bytes
from tacit.programs.histogram import Histogram
from tacit.programs.states import state_bytes

SCHEMA = Schema(columns=(Column(name="ward", type="category", categories=("a", "b", "c")),))
KEYS = [SigningKey.generate() for _ in range(3)]


@pytest.fixture
def study() -> Study:
    plain = local_study(Histogram(), 4, SCHEMA, Promise(1.0, 1e-6), KEYS)
    part = TakePart(minimum=2, maximum=3, records=100)
    return msgspec.structs.replace(
        plain, take_part=part, deadlines=Deadlines(gather=60.0, round=30.0)
    )


def server(study: Study, store: ServerStore | None = None, seed: str = "0") -> Server:
    store = store or ServerStore(MEMORY, study.digest)
    return Server(study, KEYS[0], store, lambda number: SeededRandomness(f"{seed} {number}"))


def first_state(study: Study) -> bytes:
    return state_bytes(study.first_state())


def ask(core: Server, sender: str, kind: str, number: int, body: bytes = b"") -> Any:
    (reply,) = core.answer_all([(sender, Letter(kind, number, body))])
    return reply


def opened(study: Study, **options: Any) -> Server:
    core = server(study, **options)
    assert ask(core, study.aggregator.key, "open", 1, first_state(study)).kind == "opened"
    return core


def share(study: Study, core: Server, place: int, fill: int = 1, state: bytes | None = None) -> Any:
    body = np.full(core.length, fill, dtype="<u8").tobytes()
    digest = digest_of(state or first_state(study))
    letter = write(Share(digest, "full", body))
    return ask(core, study.holders[place].key, "share", 1, letter)


def question(study: Study, core: Server, places: list[int]) -> Sealed:
    """What these holders have sent to the first server; the second is not looked at here."""
    keys = sorted(study.holders[place].key for place in places)
    mark = marks_of(core._arrived.get(key, b"") for key in keys)
    return Sealed(keys, [mark, bytes(32)])


def close(study: Study, core: Server, places: list[int]) -> Any:
    """Ask the first server for its seal, add that of the second, and ask for the sum."""
    asked = question(study, core, places)
    reply = ask(core, study.aggregator.key, "seal", 1, write(asked))
    if isinstance(reply, TacitError):
        return reply
    (own,) = read(Sealed, reply.body).seals
    named = Question.of(1, digest_of(first_state(study)), asked, study).digest(study.digest)
    whole = Sealed(asked.keys, asked.marks, [own, seal(KEYS[1], study.digest, 1, named)])
    return ask(core, study.aggregator.key, "close", 1, write(whole))


# ── the server ──


def test_a_share_is_taken_once_and_repeated_gladly(study: Study) -> None:
    core = opened(study)
    assert share(study, core, 0).kind == "stored"
    assert share(study, core, 0).kind == "stored"
    assert isinstance(share(study, core, 0, fill=2), Refused)
    assert read(Holders, ask(core, study.aggregator.key, "present", 1).body).keys == [
        study.holders[0].key
    ]


def test_the_same_bytes_are_answered_also_after_a_restart(study: Study) -> None:
    store = ServerStore(MEMORY, study.digest)
    core = opened(study, store=store)
    for place in (0, 1, 2):
        share(study, core, place)
    answer = close(study, core, [0, 1]).body
    assert close(study, core, [0, 1]).body == answer
    again = server(study, store, seed="another life")
    assert close(study, again, [0, 1]).body == answer


def test_no_second_set_no_small_set_no_large_set_no_missing_share(study: Study) -> None:
    core = opened(study)
    for place in (0, 1, 2):
        share(study, core, place)
    assert "2 to 3" in str(close(study, core, [0]))
    assert "not here" in str(close(study, core, [0, 3]))
    assert isinstance(close(study, core, [0, 1, 2, 3]), Refused)
    double = write(Sealed([study.holders[0].key] * 2, [bytes(32)] * 2))
    assert isinstance(ask(core, study.aggregator.key, "seal", 1, double), InputError)
    assert close(study, core, [0, 1, 2]).kind == "partial"
    assert "difference" in str(close(study, core, [0, 1]))


def test_late_shares_and_strangers_are_refused(study: Study) -> None:
    core = opened(study)
    share(study, core, 0)
    share(study, core, 1)
    close(study, core, [0, 1])
    assert share(study, core, 0).kind == "stored"  # the answer may have been lost
    assert "closed" in str(share(study, core, 2))
    stranger = SigningKey.generate().public_key
    assert "not in the study" in str(ask(core, stranger, "share", 1, b""))
    assert isinstance(ask(core, study.holders[0].key, "close", 1), Refused)
    assert isinstance(ask(core, study.holders[0].key, "open", 2), Refused)
    assert isinstance(ask(core, study.aggregator.key, "dance", 1), InputError)


@pytest.mark.parametrize(("form", "size"), [("full", 8), ("full", 0), ("seed", 31), ("seed", 64)])
def test_a_share_of_the_wrong_length_is_refused(study: Study, form: Any, size: int) -> None:
    core = opened(study)
    body = write(Share(digest_of(first_state(study)), form, bytes(size)))
    reply = ask(core, study.holders[0].key, "share", 1, body)
    assert isinstance(reply, InputError)
    assert "bytes" in str(reply)


def test_a_share_for_another_state_is_refused(study: Study) -> None:
    core = opened(study)
    assert "another state" in str(share(study, core, 0, state=b"invented"))


def test_rounds_come_in_order_and_not_more_than_promised(study: Study) -> None:
    core, boss = server(study), study.aggregator.key
    assert "comes next" in str(ask(core, boss, "open", 2, first_state(study))) or study.rounds == 1
    assert "there is no round" in str(ask(core, boss, "open", study.rounds + 1, b""))
    assert isinstance(ask(core, boss, "open", 1, b"garbage"), Refused)
    assert ask(core, boss, "open", 1, first_state(study)).kind == "opened"
    assert ask(core, boss, "open", 1, first_state(study)).kind == "opened"
    assert "another state" in str(ask(core, boss, "open", 1, first_state(study) + b" "))


def test_nothing_is_attested_before_a_round_is_closed(study: Study) -> None:
    core = opened(study)
    result = write(Subject("ab" * 32))
    assert isinstance(ask(core, study.aggregator.key, "attest", 1, result), Refused)
    assert isinstance(ask(server(study), study.aggregator.key, "attest", 1, result), Refused)
    assert isinstance(ask(core, study.aggregator.key, "attest", 1), InputError)


def test_a_store_belongs_to_one_study_and_role(tmp_path: Path, study: Study) -> None:
    ServerStore(tmp_path / "x.db", study.digest).close()
    with pytest.raises(Refused, match="another folder"):
        ServerStore(tmp_path / "x.db", "f" * 64)
    with pytest.raises(Refused, match="belongs to a server"):
        Journal(tmp_path / "x.db", study.digest)
    (tmp_path / "text.db").write_text("this is not a database, it is long enough to be none" * 20)
    with pytest.raises(InputError, match="cannot be used"):
        Outbox(tmp_path / "text.db", study.digest)
    assert (tmp_path / "x.db").stat().st_mode & 0o077 == 0


# ── the aggregator ──


def aggregator(study: Study, journal: Journal | None = None) -> Aggregator:
    return Aggregator(study, KEYS[2], journal or Journal(MEMORY, study.digest), 0.0)


def joined(study: Study, core: Aggregator, places: list[int], done: int = 0) -> list[Letter]:
    return [core.answer(study.holders[p].key, Letter("ask", done), 1.0) for p in places]


def test_it_begins_when_all_are_there_or_when_enough_are_late(study: Study) -> None:
    core = aggregator(study)
    joined(study, core, [0, 1, 2])
    assert core.tick(59.0) == []
    asked = core.tick(60.0)
    assert {letter.kind for _, letter in asked} == {"open"}
    assert core.tick(60.0) == []  # each server is asked once at a time
    whole = aggregator(study)
    joined(study, whole, [0, 1, 2, 3])
    assert whole.tick(1.0)


def test_too_few_holders_end_it_with_a_reason(study: Study) -> None:
    core = aggregator(study)
    joined(study, core, [0])
    core.tick(60.0)
    assert isinstance(core.failure, Unreachable)
    assert "needs 2" in str(core.failure)


def test_strangers_learn_nothing(study: Study) -> None:
    with pytest.raises(Refused, match="not in the study"):
        aggregator(study).answer(SigningKey.generate().public_key, Letter("ask", 0), 0.0)
    with pytest.raises(InputError):
        aggregator(study).answer(study.holders[0].key, Letter("dance", 0), 0.0)


def collecting(study: Study) -> Aggregator:
    core = aggregator(study)
    joined(study, core, [0, 1, 2, 3])
    for key, letter in core.tick(1.0):
        core.told(key, letter, Letter("opened", 1), 1.0)
    assert core.phase is Phase.COLLECTING
    return core


def test_a_holder_that_left_is_not_waited_for(study: Study) -> None:
    core = collecting(study)
    core.answer(study.holders[3].key, Letter("leave", 0), 2.0)
    (news,) = joined(study, core, [0])
    assert read(News, news.body).number == 1
    joined(study, core, [0, 1, 2], done=1)
    core.tick(2.0)
    assert core.phase is Phase.COUNTING


def test_a_silent_holder_is_left_out_and_may_come_back(study: Study) -> None:
    core = collecting(study)
    joined(study, core, [0, 1], done=1)
    assert core.tick(5.0) == []
    asked = core.tick(31.0)
    here = Holders(sorted(study.holders[p].key for p in (0, 1)), [bytes(32)] * 2)
    for key, letter in asked:
        core.told(key, letter, Letter("holders", 1, write(here)), 31.0)
    assert core.phase is Phase.SEALING
    assert core.waiting_for == set(here.keys)
    joined(study, core, [2], done=0)
    assert study.holders[2].key in core.waiting_for


def test_garbage_from_a_server_is_asked_for_again_and_then_given_up(study: Study) -> None:
    told: list[str] = []
    core = collecting(study)
    core._tell = lambda event, **fields: told.append(event)
    joined(study, core, [0, 1, 2, 3], done=1)
    here = write(Holders(sorted(h.key for h in study.holders)[:3], [bytes(32)] * 3))
    for key, letter in core.tick(2.0):
        core.told(key, letter, Letter("holders", 1, here), 2.0)
    sealed(study, core)
    length = 8 * server_length(study)
    for key, letter in core.tick(2.0):
        core.told(key, letter, Letter("partial", 1, b"short"), 2.0)
    assert told.count("server failed") == 2
    for _ in range(3):
        for key, letter in core.tick(2.0):
            core.told(key, letter, Letter("partial", 1, b"\x55" * length), 2.0)
    assert told.count("sum refused") == 3
    assert isinstance(core.failure, CheckFailed)
    assert core.round == 1  # the model was not touched


def sealed(study: Study, core: Aggregator) -> None:
    """Both servers seal what the aggregator asks them to."""
    for key, letter in core.tick(2.0):
        asked = read(Sealed, letter.body)
        named = Question.of(1, digest_of(first_state(study)), asked, study).digest(study.digest)
        word = seal(next(k for k in KEYS if k.public_key == key), study.digest, 1, named)
        reply = write(Sealed(asked.keys, asked.marks, [word]))
        core.told(key, letter, Letter("sealed", 1, reply), 2.0)
    assert core.phase is Phase.CLOSING


def server_length(study: Study) -> int:
    return study.plan().stage(1).query.length


def test_a_server_that_says_no_stops_the_study(study: Study) -> None:
    core = aggregator(study)
    joined(study, core, [0, 1, 2, 3])
    (key, letter), *_ = core.tick(1.0)
    core.told(key, letter, Unreachable("away"), 1.0)
    assert core.failure is None
    assert [to for to, _ in core.tick(2.0)] == [key]
    core.told(key, letter, Refused("I will not"), 2.0)
    assert isinstance(core.failure, StudyStopped)
    # Servers are let go, each is told once; nobody is asked anything more.
    assert {letter.kind for _, letter in core.tick(3.0)} == {"finish"}
    assert core.tick(4.0) == []


# ── the holder ──


def holder(study: Study, outbox: Outbox | None = None, budget: Any = None) -> Holder:
    def contribute(number: int, state: Any, query: Any) -> Sum:
        return Sum(np.arange(query.length, dtype=np.int64))

    outbox = outbox or Outbox(MEMORY, study.digest)
    return Holder(study, study.holders[0].key, outbox, contribute, budget or NoBudget())


def news(study: Study, number: int = 1, state: bytes | None = None) -> Letter:
    return Letter("round", 0, write(News(number, 30.0, state or first_state(study))))


def asked(core: Holder, reply: Letter | TacitError) -> None:
    ((to, letter),) = core.tick()
    core.told(to, letter, reply)


def test_shares_are_made_once_also_over_a_crash(study: Study) -> None:
    outbox = Outbox(MEMORY, study.digest)
    core = holder(study, outbox)
    asked(core, news(study))
    before = core.tick()
    assert {to for to, _ in before} == {s.key for s in study.servers}
    again = holder(study, outbox)
    asked(again, news(study))
    assert dict(again.tick()) == dict(before)
    assert {letter.body for _, letter in before} == set(
        outbox.shares(1, digest_of(first_state(study))).values()
    )


def test_two_stories_for_one_round_are_not_believed(study: Study) -> None:
    outbox = Outbox(MEMORY, study.digest)
    asked(holder(study, outbox), news(study))
    # A state that would be fine by itself: it says of a sum what nobody has heard yet.
    other = state_bytes(replace(study.first_state(), counts=np.zeros(3)))
    asked(holder(study), news(study, state=other))
    with pytest.raises(Refused, match="two stories"):
        asked(holder(study, outbox), news(study, state=other))


def test_what_follows_from_the_study_is_not_taken_from_a_state(study: Study) -> None:
    """An aggregator that says more than what rounds change is not heard: the study counts."""
    first = study.first_state()
    wild = replace(first, norm="L1", bins=7, labels=(("a",),), starts=(99,), columns=("x",))
    known, query = asked_by(study, 1, to_bytes(wild))
    assert to_bytes(known) == to_bytes(first)
    assert query == study.plan().stage(1).query


@pytest.mark.parametrize(
    "counts",
    [np.array([math.nan]), np.array([math.inf]), np.zeros((1, 1)), np.zeros(1, dtype=np.float32)],
    ids=["nan", "infinite", "matrix", "short floats"],
)
def test_a_state_of_another_kind_is_refused_by_everyone(study: Study, counts: Any) -> None:
    state = state_bytes(replace(study.first_state(), counts=counts))
    with pytest.raises(Refused, match="not one of histogram"):
        asked(holder(study), news(study, state=state))
    assert isinstance(ask(server(study), study.aggregator.key, "open", 1, state), Refused)


def test_it_only_ever_speaks_to_parties_of_the_study(study: Study) -> None:
    core = holder(study)
    ((to, letter),) = core.tick()
    assert to == study.aggregator.key
    assert letter.kind == "ask"
    assert core.tick() == []  # one question at a time


def test_more_rounds_than_promised_are_refused(study: Study) -> None:
    with pytest.raises(Refused, match="promises"):
        asked(holder(study), news(study, number=study.rounds + 1))


def test_a_refused_share_costs_the_round_and_an_unreachable_server_a_retry(study: Study) -> None:
    core = holder(study)
    asked(core, news(study))
    (first, letter), (second, other) = core.tick()
    core.told(first, letter, Unreachable("away"))
    core.told(second, other, Letter("stored", 1))
    assert [to for to, _ in core.tick()] == [first]
    core.told(first, letter, Refused("round 1 is closed"))
    assert [letter.kind for _, letter in core.tick()] == ["ask"]


def test_a_result_that_is_not_certified_is_not_taken(study: Study) -> None:
    core = holder(study)
    with pytest.raises(CheckFailed):
        asked(core, Letter("model", 0, write(Finished(b"model", "{}"))))
    assert not core.is_over
    with pytest.raises(CheckFailed):
        check_result(study, b"model", "{}")


def test_a_key_that_is_not_in_the_study_is_told_so(study: Study) -> None:
    with pytest.raises(Refused, match="tacit keys show"):
        Holder(
            study,
            SigningKey.generate().public_key,
            Outbox(MEMORY, study.digest),
            lambda number, state, query: Sum(np.zeros(1, dtype=np.int64)),
            NoBudget(),
        )


# ── its ledger ──


def test_the_whole_study_is_one_spend_that_survives_a_crash(tmp_path: Path, study: Study) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.allow("ward", "record", 1.0, 1e-6)
    budget = LedgerBudget.of(study, ledger, "ward")
    budget.reserve(1)
    budget.spend(1)
    assert ledger.balance("ward", "record").left.epsilon == 0
    with pytest.raises(Refused, match="at work"):  # this very process still runs
        LedgerBudget.of(study, Ledger(tmp_path / "ledger.db"), "ward").reserve(1)
    budget.settle("certificate")
    assert ledger.balance("ward", "record").spent.epsilon == 1


def test_what_was_not_begun_is_given_back(tmp_path: Path, study: Study) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.allow("ward", "record", 1.0, 1e-6)
    budget = LedgerBudget.of(study, ledger, "ward")
    budget.reserve(1)
    budget.pause()
    assert ledger.balance("ward", "record").left.epsilon == 1
    budget.reserve(1)
    budget.settle(None)
    assert ledger.balance("ward", "record").spent.epsilon == 0


def test_a_budget_that_does_not_cover_the_study_refuses_before_anything(
    tmp_path: Path, study: Study
) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.allow("ward", "record", 0.5, 1e-6)
    with pytest.raises(Refused):
        holder(study, budget=LedgerBudget.of(study, ledger, "ward"))
    assert ledger.balance("ward", "record").left.epsilon == 0.5


# ── nobody answers twice ──


def derived(study: Study, store: ServerStore) -> Server:
    """With the noise of the store's secret, as in earnest."""
    return Server(study, KEYS[0], store)


def with_shares(study: Study, core: Server) -> Server:
    ask(core, study.aggregator.key, "open", 1, first_state(study))
    for place in (0, 1, 2):
        assert share(study, core, place).kind == "stored"
    return core


def forgotten(store: ServerStore) -> ServerStore:
    """Another store with the same secret and nothing else, as an old copy is."""
    other = ServerStore(MEMORY, store.database.execute("SELECT study FROM about").fetchone()[0])
    other.database.execute("UPDATE secret SET bytes = ?", (store.secret,))
    return other


def test_the_same_question_has_the_same_bytes_for_ever(study: Study) -> None:
    store = ServerStore(MEMORY, study.digest)
    answer = close(study, with_shares(study, derived(study, store)), [0, 1]).body
    again = with_shares(study, derived(study, forgotten(store)))
    assert close(study, again, [0, 1]).body == answer
    other = with_shares(study, derived(study, forgotten(store)))
    sums = [np.frombuffer(b, "<i8") for b in (answer, close(study, other, [0, 1, 2]).body)]
    assert len(set((sums[1] - sums[0]).tolist())) > 1  # noise of its own, not one more share alone
    fresh = with_shares(study, derived(study, ServerStore(MEMORY, study.digest)))
    assert close(study, fresh, [0, 1]).body != answer
    assert fresh._attestation("ab" * 32).secure


def test_a_sum_is_not_given_away_before_all_have_sealed_it(study: Study) -> None:
    core = with_shares(study, derived(study, ServerStore(MEMORY, study.digest)))
    asked = question(study, core, [0, 1])
    boss, named = study.aggregator.key, question_digest(study, asked)
    (own,) = read(Sealed, ask(core, boss, "seal", 1, write(asked)).body).seals
    right, wrong = seal(KEYS[1], study.digest, 1, named), seal(KEYS[2], study.digest, 1, named)
    for words in ([], [own], [own, own], [own, wrong], [right, own], [own, right, right]):
        reply = ask(core, boss, "close", 1, write(Sealed(asked.keys, asked.marks, words)))
        assert "all have sealed it" in str(reply)
    whole = write(Sealed(asked.keys, asked.marks, [own, right]))
    assert ask(core, boss, "close", 1, whole).kind == "partial"


def question_digest(study: Study, asked: Sealed, number: int = 1) -> bytes:
    return Question.of(number, digest_of(first_state(study)), asked, study).digest(study.digest)


def test_other_shares_under_the_same_names_are_another_question(study: Study) -> None:
    store = ServerStore(MEMORY, study.digest)
    core = with_shares(study, derived(study, store))
    asked = question(study, core, [0, 1])
    words = [seal(key, study.digest, 1, question_digest(study, asked)) for key in KEYS[:2]]
    again = derived(study, forgotten(store))
    ask(again, study.aggregator.key, "open", 1, first_state(study))
    share(study, again, 0)
    share(study, again, 1, fill=7)
    whole = write(Sealed(asked.keys, asked.marks, words))
    reply = ask(again, study.aggregator.key, "close", 1, whole)
    assert isinstance(reply, Refused)
    assert "are others" in str(reply)


def test_a_server_believes_its_own_seal_from_anybody(study: Study) -> None:
    """Put back, it is shown by a holder what it has sealed, and seals nothing else."""
    store = ServerStore(MEMORY, study.digest)
    asked = question(study, with_shares(study, derived(study, store)), [0, 1])
    named = question_digest(study, asked)
    again = with_shares(study, derived(study, forgotten(store)))
    for key, taken in ((KEYS[1], False), (KEYS[0], True)):
        seen = Witnessed(named, [seal(key, study.digest, 1, named)])
        body = write(Share(b"", "seed", bytes(32), seen))
        assert isinstance(ask(again, study.holders[0].key, "share", 2, body), Refused)
        assert bool(again._shown) is taken
    assert "difference" in str(close(study, again, [0, 1, 2]))
    assert close(study, again, [0, 1]).kind == "partial"


def test_a_holder_takes_no_part_without_the_seals_of_the_round_before(study: Study) -> None:
    digest, other = bytes(32), bytes([1]) * 32
    right, second = ([seal(k, study.digest, 1, d) for k in KEYS[:2]] for d in (digest, other))
    core = holder(study)
    for before in (None, Witnessed(digest, []), Witnessed(digest, right[::-1])):
        with pytest.raises(Refused, match="othing is sent"):
            core._witness(1, before)
    with pytest.raises(Refused, match="othing is sent"):
        core._witness(2, Witnessed(digest, right))
    core._witness(1, Witnessed(digest, right))
    core._witness(1, Witnessed(digest, right))
    with pytest.raises(Refused, match="sealed two sums of round 1"):
        core._witness(1, Witnessed(other, second))
