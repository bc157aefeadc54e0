"""The curator and a party one by one: what they answer, and what they refuse."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from protocol_runs import CURATOR, KEYS, study_of

from tacit.channels.consortium.curator import Curator
from tacit.channels.consortium.journals import CuratorJournal, PartyJournal
from tacit.channels.consortium.letters import Answer, Roster, Turn
from tacit.channels.consortium.local_model import Local
from tacit.channels.consortium.party import Party
from tacit.channels.roles.budget import LedgerBudget
from tacit.channels.roles.letters import Finished, Letter, read, write
from tacit.channels.roles.standing import Standing
from tacit.channels.roles.store import MEMORY
from tacit.channels.studies.study import Deadlines, Study, TakePart
from tacit.crypto.signing import canonical
from tacit.errors import CheckFailed, InputError, Refused, TacitError, Unreachable
from tacit.privacy.certificate import Certificate
from tacit.privacy.ledger import Ledger
from tacit.privacy.promise import Promise

PROMISE = Promise(1.0, 1e-6)
SIZE = 3
GATHER, STEP = 60.0, 30.0  # seconds
NAMES = [key.public_key for key in KEYS]


@pytest.fixture
def study() -> Study:
    plain = study_of("joint", 4, SIZE, PROMISE)
    found = msgspec.structs.replace(
        plain,
        take_part=TakePart(minimum=2, maximum=3, records=100),
        deadlines=Deadlines(gather=GATHER, round=STEP),
    )
    found.__dict__["_averaged"] = plain.averaged()
    return found


class Purse:
    """What a ledger would have been told."""

    def __init__(self) -> None:
        self.spent, self.settled = 0, list[str | None]()

    def belongs_to(self, identity: str) -> None: ...

    def reserve(self, number: int) -> None: ...

    def spend(self, number: int) -> None:
        self.spent += 1

    def settle(self, certificate: str | None) -> None:
        self.settled.append(certificate)


def seeds(name: str) -> Callable[[], bytes]:
    """Seeds as from the system, but the same in every run of the tests."""
    numbers = iter(range(100))
    return lambda: f"{name} {next(numbers)}".encode().ljust(32, b".")


def curator_of(study: Study, journal: CuratorJournal | None = None, now: float = 0.0) -> Curator:
    journal = journal or CuratorJournal(MEMORY, study.digest)
    return Curator(study, CURATOR, journal, now, seed=seeds("curator"))


def party_of(
    study: Study, place: int, journal: PartyJournal | None = None, budget: Any = None
) -> Party:
    journal = journal or PartyJournal(MEMORY, study.digest)
    local = Local(np.full(SIZE, 0.1 * place), 50)
    return Party(study, KEYS[place], journal, local, budget or Purse(), seed=seeds(f"{place}"))


def purse(party: Party) -> Purse:
    found = party._budget
    assert isinstance(found, Purse)
    return found


def said(core: Curator, sender: str, letter: Letter, now: float = 0.0) -> Letter | TacitError:
    try:
        return core.answer(sender, letter, now)
    except TacitError as error:
        return error


def exchange(core: Curator, party: Party, now: float = 0.0) -> Letter | TacitError | None:
    """One letter of the party's, and its answer; None if it has none."""
    for to, letter in party.tick():
        assert to == core.study.aggregator.key
        reply = said(core, party.key, letter, now)
        party.told(to, letter, reply)
        return reply
    return None


def begun(study: Study, places: tuple[int, ...] = (0, 1, 2)) -> tuple[Curator, list[Party]]:
    """Everybody has gathered, and knows the roster: step 1 is next."""
    core, parties = curator_of(study), [party_of(study, place) for place in places]
    for party in parties:
        exchange(core, party)
    core.tick(GATHER)
    for party in parties:
        reply = exchange(core, party)
        assert isinstance(reply, Letter)
        assert reply.kind == "roster"
    return core, parties


def until_step(core: Curator, parties: list[Party], step: int) -> None:
    """All take turns until each is about to send this step."""
    while any(turn_of(party).step < step for party in parties):
        for party in parties:
            if turn_of(party).step < step:
                exchange(core, party)


def turn_of(party: Party) -> Turn:
    """What the party says when it is asked; it may be asked again."""
    ((_, letter),) = party.tick()
    party._asked = False
    return read(Turn, letter.body)


def finished(core: Curator, parties: list[Party], now: float = 0.0) -> Certificate:
    for _ in range(20):
        for party in parties:
            exchange(core, party, now)
    assert all(party.is_over for party in parties)
    assert core.result is not None
    return Certificate.from_json(core.result[1])


def turn(attempt: int, step: int, body: bytes = b"") -> Letter:
    return Letter("turn", attempt, write(Turn(step, body)))


def packed(**content: Any) -> bytes:
    """The body of a letter with any content."""
    return msgspec.msgpack.encode(content)


# ── a whole run ──


def test_a_run_ends_with_one_model_that_all_have_paid_for_once(study: Study) -> None:
    core, parties = begun(study)
    certificate = finished(core, parties)
    certificate.verify(CURATOR.public_key)
    assert core.result is not None
    for party in parties:
        assert party.result is not None
        assert party.result[0] == core.result[0]
        assert (purse(party).spent, purse(party).settled) == (1, [core.result[1]])
        assert party.tick() == []
    assert core.waiting_for == set(NAMES[:3])


def test_nothing_is_paid_before_the_last_step(study: Study) -> None:
    core, parties = begun(study)
    for step in (1, 2):
        until_step(core, parties, step)
        assert [purse(party).spent for party in parties] == [0, 0, 0]
    until_step(core, parties, 3)
    assert [purse(party).spent for party in parties] == [1, 1, 1]


# ── the curator ──


def test_strangers_and_unknown_words_are_refused(study: Study) -> None:
    core = curator_of(study)
    assert isinstance(said(core, NAMES[7], turn(0, 0)), Refused)
    assert isinstance(said(core, study.aggregator.key, turn(0, 0)), Refused)
    assert isinstance(said(core, NAMES[0], Letter("ask", 0)), InputError)
    assert isinstance(said(core, NAMES[0], Letter("turn", 0, b"\xff")), InputError)
    with pytest.raises(InputError, match="does not know how to share"):
        core.limit("share")
    assert core.limit("turn") > core.limit("leave") > 0


def test_it_begins_when_all_are_there_or_when_it_is_time(study: Study) -> None:
    core = curator_of(study)
    for name in NAMES[:3]:
        assert core.answer(name, turn(0, 0), 0.0).kind == "wait"
        core.tick(0.0)
    assert core.round == 0  # one of four may still come
    core.tick(GATHER - 1)
    assert core.round == 0
    core.tick(GATHER)
    assert core.round == 1
    reply = core.answer(NAMES[0], turn(0, 0), GATHER)
    assert read(Roster, reply.body) == Roster(1, NAMES[:3])
    assert core.answer(NAMES[3], turn(0, 0), GATHER).kind == "wait"  # too late for this one
    at_once = curator_of(study)
    for name in NAMES[:4]:
        at_once.answer(name, turn(0, 0), 0.0)
    at_once.tick(0.0)
    assert read(Roster, at_once.answer(NAMES[0], turn(0, 0), 0.0).body).parties == NAMES[:3]


def test_too_few_parties_end_it(study: Study) -> None:
    core = curator_of(study)
    for name in NAMES[:2]:
        core.answer(name, turn(0, 0), 0.0)
    assert core.answer(NAMES[1], Letter("leave", 0), 0.0).kind == "left"
    core.tick(GATHER)
    assert isinstance(core.failure, Unreachable)
    assert "1 parties are there; the study needs 2" in str(core.failure)
    told = core.answer(NAMES[0], turn(0, 0), GATHER)
    assert told.kind == "stopped"
    standing = read(Standing, told.body)
    assert standing.kind == "Unreachable"
    assert standing.reason == str(core.failure)
    assert not core.is_over


def test_a_step_is_taken_once_and_repeated_gladly(study: Study) -> None:
    core, parties = begun(study)
    first = turn_of(parties[0])
    assert core.answer(NAMES[0], turn(1, 1, first.body), 0.0).kind == "wait"
    assert core.answer(NAMES[0], turn(1, 1, first.body), 0.0).kind == "wait"
    reply = said(core, NAMES[0], turn(1, 1, first.body + b"x"))
    assert isinstance(reply, Refused)
    assert "another letter" in str(reply)
    finished(core, parties)  # nothing was spoilt


def test_steps_come_in_order(study: Study) -> None:
    core, parties = begun(study)
    for step in (2, 3):
        reply = said(core, NAMES[0], turn(1, step, b"early"))
        assert isinstance(reply, Refused)
        assert "step 1 comes next" in str(reply)
    finished(core, parties)


@pytest.mark.parametrize("silent_in", [1, 2])
def test_who_vanishes_is_left_out_pays_nothing_and_may_have_the_model(
    study: Study, silent_in: int
) -> None:
    core, parties = begun(study)
    until_step(core, parties, silent_in)
    for party in parties[:2]:
        exchange(core, party)
    core.tick(STEP - 1)
    assert core.round == 1
    core.tick(GATHER + STEP)
    assert (core.round, core.failure) == (2, None)
    certificate = finished(core, parties[:2])
    assert {w.public_key for w in certificate.witnesses} == set(NAMES[:2])
    assert core.waiting_for == set(NAMES[:2])
    assert purse(parties[2]).spent == 0
    exchange(core, parties[2])  # it comes back when all is over
    assert parties[2].is_over
    assert purse(parties[2]).spent == 0


def test_letters_of_an_old_attempt_are_not_taken(study: Study) -> None:
    core, parties = begun(study)
    old = turn_of(parties[0])
    until_step(core, parties, 2)
    for party in parties[:2]:
        exchange(core, party)
    core.tick(GATHER + STEP)
    reply = core.answer(NAMES[0], turn(1, 1, old.body), 0.0)
    assert read(Roster, reply.body) == Roster(2, NAMES[:2])
    # … nor are they under the new number: the signed key is another attempt's, and shows.
    with pytest.raises(Refused, match="not signed by it for this attempt"):
        core.answer(NAMES[0], turn(2, 1, old.body), 0.0)


def test_too_few_are_left_after_somebody_vanished(study: Study) -> None:
    core, parties = begun(study, (0, 1))
    exchange(core, parties[0])
    core.tick(GATHER + STEP)
    assert isinstance(core.failure, Unreachable)
    assert [purse(party).spent for party in parties] == [0, 0]


def test_who_vanishes_in_the_last_step_is_waited_for(study: Study) -> None:
    journal = CuratorJournal(MEMORY, study.digest)
    core, parties = curator_of(study, journal), [party_of(study, place) for place in (0, 1)]
    for party in parties:
        exchange(core, party)
    core.tick(GATHER)
    for party in parties:
        exchange(core, party)
    until_step(core, parties, 3)
    exchange(core, parties[0])
    core.tick(GATHER + STEP)
    assert isinstance(core.failure, Unreachable)
    assert "party-1 vanished in the last step" in str(core.failure)
    assert core.round == 1  # there is no second attempt: somebody has revealed
    again = curator_of(study, journal)
    assert finished(again, parties).participation is not None


@pytest.mark.parametrize("stopped_in", [1, 2, 3])
def test_a_curator_that_crashed_goes_on_with_the_same_words(study: Study, stopped_in: int) -> None:
    journal = CuratorJournal(MEMORY, study.digest)
    core, parties = curator_of(study, journal), [party_of(study, place) for place in (0, 1)]
    for party in parties:
        exchange(core, party)
    core.tick(GATHER)
    for party in parties:
        exchange(core, party)
    until_step(core, parties, stopped_in)
    exchange(core, parties[0])
    again = curator_of(study, journal, now=5.0)
    assert again.round == 1
    assert again.deadline == 5.0 + STEP
    finished(again, parties)
    assert curator_of(study, journal).result == again.result


def change_of(step: int, part: str, value: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A body like the true one, but for one part of it."""
    return lambda body: {**body, part: value}


def signed_twice(body: dict[str, Any]) -> dict[str, Any]:
    """Another vector than the one that the word names."""
    vector = bytearray(body["vector"])
    vector[0] ^= 1
    return {**body, "vector": bytes(vector)}


def insecure(body: dict[str, Any]) -> dict[str, Any]:
    """Said otherwise in step 1: the certificate would have two kinds of witnesses."""
    return {**body, "secure": False}


SPOILED = [
    (1, lambda body: b"\xff", "does not hold a key"),
    (1, change_of(1, "public", "11" * 32), "not signed by it"),
    (1, change_of(1, "secure", False), "not signed by it"),
    (2, lambda body: b"", "does not hold a masked"),
    (2, change_of(2, "vector", b"short"), "has not the 3 numbers"),
    (2, signed_twice, "another vector"),
    (2, change_of(2, "posted", {"vector": "", "commitment": "", "signature": ""}), "another"),
    (3, lambda body: b"", "does not hold a revealed"),
    (3, change_of(3, "seed", b"short"), "a seed has 32 bytes, not 5"),  # committed to or not
    (3, change_of(3, "seed", bytes(32)), "not the seed that was committed to"),
    (3, change_of(3, "received", KEYS[0].sign(b"other words")), "not signed by it"),
    (3, change_of(3, "statement", KEYS[0].sign(canonical(["another promise"]))), "vouch"),
    (3, insecure, "vouch"),
]


@pytest.mark.parametrize(("step", "change", "words"), SPOILED)
def test_what_would_spoil_a_run_is_refused_and_the_others_go_on(
    study: Study, step: int, change: Callable[[dict[str, Any]], Any], words: str
) -> None:
    """All that is said in the last step was fixed before: nobody can make the others pay for a
    certificate that does not hold."""
    core, parties = begun(study)
    until_step(core, parties, step)
    spoiled = change(msgspec.msgpack.decode(turn_of(parties[0]).body))
    body = spoiled if isinstance(spoiled, bytes) else packed(**spoiled)
    with pytest.raises(Refused, match=words):
        core.answer(NAMES[0], turn(1, step, body), 0.0)
    for party in parties[1:]:
        exchange(core, party)
    assert core.failure is None
    if step == 3:  # it is waited for, by name, and its true letter is still taken
        finished(core, parties)
        return
    core.tick(GATHER + STEP)
    certificate = finished(core, parties[1:])
    assert certificate.participation is not None
    assert certificate.participation.holders == 2
    assert purse(parties[0]).spent == 0


# ── a party ──


def test_a_party_is_one_of_the_study(study: Study) -> None:
    with pytest.raises(Refused, match="not among the parties"):
        party_of(study, 7)


@pytest.mark.parametrize(
    "parties",
    [
        [0],  # too few
        [0, 1, 2, 3],  # too many
        [1, 2],  # without us
        [0, 0, 1],  # one twice
        [1, 0],  # not in order
        [0, 1, 7],  # a stranger
        [],
    ],
)
def test_a_roster_that_the_study_does_not_allow_is_refused(
    study: Study, parties: list[int]
) -> None:
    journal = PartyJournal(MEMORY, study.digest)
    party = party_of(study, 0, journal)
    roster = write(Roster(1, [NAMES[place] for place in parties]))
    with pytest.raises(Refused, match="roster"):
        told(party, Letter("roster", 0, roster))
    assert journal.attempt() is None
    assert purse(party).spent == 0


def told(party: Party, reply: Letter | TacitError) -> None:
    ((to, letter),) = party.tick()
    party.told(to, letter, reply)


def test_there_is_no_second_attempt_after_a_reveal(study: Study) -> None:
    core, parties = begun(study)
    until_step(core, parties, 3)
    party, body = parties[0], turn_of(parties[0]).body
    with pytest.raises(Refused, match="second release"):
        told(party, Letter("roster", 1, write(Roster(2, NAMES[:2]))))
    assert purse(party).spent == 1
    assert turn_of(party).body == body  # and the first can still end


def test_an_attempt_that_is_over_is_not_begun_again(study: Study) -> None:
    _, (party, *_) = begun(study)
    body = turn_of(party).body
    for number in (0, 1):
        told(party, Letter("roster", 1, write(Roster(number, NAMES[:2]))))
        assert turn_of(party).body == body


def test_another_attempt_has_draws_of_its_own(study: Study) -> None:
    _, (party, *_) = begun(study)
    first = turn_of(party).body
    told(party, Letter("roster", 1, write(Roster(2, NAMES[:3]))))
    assert turn_of(party).body != first


def changed(core: Curator, party: Party, change: Callable[[dict[str, Any]], Any]) -> None:
    """The party takes its turn, and the curator changes what it passes on."""
    ((to, letter),) = party.tick()
    reply = core.answer(party.key, letter, 0.0)
    assert reply.kind == "answer"
    answer = read(Answer, reply.body)
    content = change(msgspec.msgpack.decode(answer.body))
    party.told(to, letter, Letter("answer", 1, write(Answer(answer.step, packed(**content)))))


def invented_key(keys: dict[str, Any]) -> Any:
    """The curator's own, to read what is masked for another party."""
    own = {"public": "11" * 32, "signature": CURATOR.sign(b"mine")}
    return {"by_party": {**keys["by_party"], NAMES[1]: own}}


def exchanged_keys(keys: dict[str, Any]) -> Any:
    """Both genuine, each under the other's name."""
    one, two = keys["by_party"][NAMES[1]], keys["by_party"][NAMES[2]]
    return {"by_party": {**keys["by_party"], NAMES[1]: two, NAMES[2]: one}}


def one_key_less(keys: dict[str, Any]) -> Any:
    return {"by_party": {k: v for k, v in keys["by_party"].items() if k != NAMES[1]}}


def one_key_more(keys: dict[str, Any]) -> Any:
    return {"by_party": {**keys["by_party"], NAMES[3]: keys["by_party"][NAMES[1]]}}


@pytest.mark.parametrize("change", [invented_key, exchanged_keys, one_key_less, one_key_more])
def test_a_key_list_that_the_curator_invents_is_refused(
    study: Study, change: Callable[[dict[str, Any]], Any]
) -> None:
    core, parties = begun(study)
    for party in parties[1:]:
        exchange(core, party)
    with pytest.raises(CheckFailed):
        changed(core, parties[0], change)
    assert purse(parties[0]).spent == 0


def one_word_less(posted: dict[str, Any]) -> Any:
    return {"by_party": {k: v for k, v in posted["by_party"].items() if k != NAMES[1]}}


def own_word_for_another(posted: dict[str, Any]) -> Any:
    return {"by_party": {**posted["by_party"], NAMES[1]: posted["by_party"][NAMES[0]]}}


@pytest.mark.parametrize("change", [one_word_less, own_word_for_another])
def test_nothing_is_revealed_unless_all_have_sent_their_vectors(
    study: Study, change: Callable[[dict[str, Any]], Any]
) -> None:
    core, parties = begun(study)
    until_step(core, parties, 2)
    for party in parties[1:]:
        exchange(core, party)
    with pytest.raises(CheckFailed):
        changed(core, parties[0], change)
    assert purse(parties[0]).spent == 0
    assert parties[0]._journal.revealed() is None
    assert turn_of(parties[0]).step == 2  # where it was


def test_words_of_an_old_attempt_do_not_make_a_party_reveal(study: Study) -> None:
    """A curator that gave an attempt up keeps its signatures: they are good for it alone."""
    core, parties = begun(study)
    until_step(core, parties, 2)
    words = {p.key: msgspec.msgpack.decode(turn_of(p).body)["posted"] for p in parties}
    for party in parties:
        told(party, Letter("roster", 1, write(Roster(2, NAMES[:3]))))
    keys = {p.key: msgspec.msgpack.decode(turn_of(p).body) for p in parties}
    told(parties[0], Letter("answer", 2, write(Answer(1, packed(by_party=keys)))))
    with pytest.raises(CheckFailed, match="not signed by it for this attempt"):
        told(parties[0], Letter("answer", 2, write(Answer(2, packed(by_party=words)))))
    assert purse(parties[0]).spent == 0


def test_an_answer_to_another_step_changes_nothing(study: Study) -> None:
    _, (party, *_) = begun(study)
    before = turn_of(party)
    for step in (0, 2, 3, 99):
        told(party, Letter("answer", 1, write(Answer(step, b"anything"))))
        assert turn_of(party) == before


def test_who_is_not_reached_says_the_same_again(study: Study) -> None:
    _, (party, *_) = begun(study)
    before = turn_of(party)
    for error in (Unreachable("nobody is there."), CheckFailed("garbled.")):
        told(party, error)
        assert turn_of(party) == before
    with pytest.raises(Refused):
        told(party, Refused("no."))


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_party_that_crashed_says_what_it_has_said(study: Study, step: int) -> None:
    core, parties = begun(study, (0, 1))
    until_step(core, parties, step)
    before = turn_of(parties[0])
    again = party_of(study, 0, parties[0]._journal, purse(parties[0]))
    assert turn_of(again) == before
    assert purse(again).spent == (1 if step == 3 else 0)
    finished(core, [again, parties[1]])
    assert purse(again).spent == 1


def results(study: Study) -> Iterator[tuple[bytes, str]]:
    core, parties = begun(study)
    finished(core, parties)
    assert core.result is not None
    model, text = core.result
    yield model + b" ", text
    genuine = Certificate.from_json(text)
    yield model, genuine.signed(KEYS[0], None).to_json()  # not the curator's
    fewer = msgspec.json.decode(text)
    fewer["witnesses"] = fewer["witnesses"][1:]
    yield model, msgspec.json.encode(fewer).decode()


def test_only_the_studys_own_result_is_believed(study: Study) -> None:
    for model, text in results(study):
        party = party_of(study, 0)
        with pytest.raises((CheckFailed, InputError)):
            told(party, Letter("model", 0, write(Finished(model, text))))
        assert not party.is_over
        assert purse(party).settled == []


def test_a_result_of_another_study_is_not_believed(study: Study) -> None:
    other = msgspec.structs.replace(study, question="Another?")
    other.__dict__["_averaged"] = study.averaged()
    core, parties = begun(other)
    finished(core, parties)
    assert core.result is not None
    with pytest.raises(CheckFailed):
        told(party_of(study, 0), Letter("model", 0, write(Finished(*core.result))))


# ── ledgers ──


def test_the_ledger_of_who_was_left_out_is_given_its_budget_back(
    study: Study, tmp_path: Path
) -> None:
    ledgers = [Ledger(tmp_path / f"{place}.db") for place in range(3)]
    for ledger in ledgers:
        ledger.allow("data", "record", 1.0, 1e-6)
    parties = [
        party_of(study, place, budget=LedgerBudget.of(study, ledger, "data"))
        for place, ledger in enumerate(ledgers)
    ]
    core = curator_of(study)
    for party in parties:
        exchange(core, party)
    core.tick(GATHER)
    for party in parties:
        exchange(core, party)
    for party in parties[:2]:
        exchange(core, party)
    core.tick(GATHER + STEP)
    finished(core, parties[:2])
    exchange(core, parties[2])
    assert parties[2].is_over
    left = [ledger.balance("data", "record").left.epsilon for ledger in ledgers]
    assert left == [0, 0, 1]
    assert not any(ledger.open_spends() for ledger in ledgers)


# ── leaving ──


@pytest.mark.parametrize("step", [1, 2])
def test_nobody_waits_for_a_party_that_leaves_before_anything_is_revealed(
    study: Study, step: int
) -> None:
    core, parties = begun(study)
    until_step(core, parties, step)
    assert core.answer(NAMES[2], Letter("leave", 0), 0.0).kind == "left"
    assert core.round == 2  # another attempt, at once
    certificate = finished(core, parties[:2])
    assert certificate.participation is not None
    assert certificate.participation.holders == 2
    assert purse(parties[2]).spent == 0


def test_a_party_that_leaves_when_others_have_revealed_still_owes_its_step(study: Study) -> None:
    core, parties = begun(study)
    until_step(core, parties, 3)
    for party in parties[:2]:
        exchange(core, party)
    core.answer(NAMES[2], Letter("leave", 0), 0.0)
    assert core.round == 1
    core.tick(STEP)
    assert isinstance(core.failure, Unreachable)
    assert "those who have revealed their part pay for it" in str(core.failure)


@pytest.mark.parametrize("step", [1, 2])
def test_a_revoked_data_set_is_not_revealed(study: Study, tmp_path: Path, step: int) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.allow("patients", "record", 10, 1e-3)
    core, parties = curator_of(study), [party_of(study, place) for place in (0, 1)]
    parties.append(party_of(study, 2, budget=LedgerBudget.of(study, ledger, "patients")))
    for party in parties:
        exchange(core, party)
    core.tick(GATHER)
    for party in parties:
        exchange(core, party)
    until_step(core, parties, step)
    ledger.decisions.revoke("patients")
    with pytest.raises(Refused, match="has revoked the use"):
        until_step(core, parties, 3)
    assert [entry.kind for entry in ledger.entries()][-2:] == ["reserve", "revoke"]
