"""A person: pays before she answers, answers once, checks her lots, and sends like everybody."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from rehearsal import PEOPLE, SCHEMA, UNCUT, Rehearsal, identity, rows

from tacit.channels.crowd.assignment import context_of
from tacit.channels.crowd.drawing import committed, roster_digest
from tacit.channels.crowd.errands import Came, Errand, Script
from tacit.channels.crowd.letters import (
    IDLE,
    Bulletin,
    Commitment,
    Drawn,
    Packets,
    Receipts,
    Reveal,
    Roster,
    TokenAsked,
    TokenGiven,
    Wave,
)
from tacit.channels.crowd.payload import COVER, Answer
from tacit.channels.crowd.person import TRIES, Person
from tacit.channels.crowd.person_journal import Given, PersonJournal
from tacit.channels.crowd.plan import PlanTerms
from tacit.channels.roles.budget import LedgerBudget
from tacit.channels.roles.letters import Letter, read, write
from tacit.channels.roles.store import MEMORY
from tacit.crypto.onion import open_payload, peel
from tacit.crypto.prg import Keystream, SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.data.batch import Batch
from tacit.errors import (
    BudgetExceeded,
    CheckFailed,
    InputError,
    Refused,
    TacitError,
    Unreachable,
)
from tacit.privacy.ledger import Ledger

LATER = {"before": "5c" * 32}  # what a later wave says besides

Tamper = Callable[[Letter, Letter], Letter | TacitError]


class Purse:
    """A budget that notes when it is asked, among all that the person does."""

    def __init__(self, notes: list[str]) -> None:
        self.notes = notes

    def belongs_to(self, identity: str) -> None: ...

    def reserve(self, number: int) -> None:
        self.notes.append("reserve")

    def spend(self, number: int) -> None:
        self.notes.append("spend")

    def settle(self, certificate: str | None) -> None:
        self.notes.append("settle")


class Noted(SeededRandomness):
    """Randomness that notes when it is drawn from."""

    def __init__(self, seed: str, notes: list[str]) -> None:
        super().__init__(seed)
        self._notes = notes

    def stream(self) -> Keystream:
        if self._notes[-1] != "draw":
            self._notes.append("draw")
        return super().stream()


class Scene:
    """One person's script, whose letters go to a real collector; `tamper` lies in its name.

    Relays are played: they take packets, or say what `relays` says.
    """

    def __init__(self, study: Rehearsal, number: int = 0, tamper: Tamper | None = None) -> None:
        self.study, self.number, self.tamper = study, number, tamper
        self.notes: list[str] = []
        self.packets: list[tuple[int, float, Packets]] = []
        self.relays: Callable[[int], Letter | TacitError] = lambda place: Letter("taken", 0)
        self.journal = PersonJournal(MEMORY, study.proposal.digest)
        self.lives = 0
        self.waves: dict[tuple[int, int], Wave] = {}  # as she was shown them
        self.row: Batch | None = rows(study.proposal.schema, PEOPLE, 0)[number % PEOPLE]

    @property
    def key(self) -> SigningKey:
        return self.study.people[self.number]

    def person(self) -> Person:
        self.lives += 1
        return Person(
            self.study.proposal,
            self.key,
            self.journal,
            self.row,
            Purse(self.notes),
            Noted(f"life {self.lives} of {self.number}", self.notes),
        )

    def play(self, until: Callable[[Errand], bool] = lambda errand: False) -> Script[None]:
        """The script from its beginning, until an errand that is not carried any more."""
        script = self.person().take_part()
        errand = next(script)
        while not until(errand):
            self.study.now = max(self.study.now, errand.at)
            try:
                errand = script.send(Came(self.carried(errand), self.study.now))
            except StopIteration:
                break
        return script

    def carried(self, errand: Errand) -> Letter | TacitError | None:
        letter = errand.letter
        if letter is None:
            return None
        self.notes.append(letter.kind)
        if errand.to is not None:
            self.packets.append((errand.to, self.study.now, read(Packets, letter.body)))
            return self.relays(errand.to)
        try:
            reply = self.study.collector.answer(self.key.public_key, letter, self.study.now)
        except TacitError as error:
            return error
        if reply.kind == "wait":  # nothing else happens in this scene
            self.study.pass_time((self.study.collector.deadline or 0.0) - self.study.now)
            reply = self.study.collector.answer(self.key.public_key, letter, self.study.now)
        shown = reply if self.tamper is None else self.tamper(letter, reply)
        if isinstance(shown, Letter) and shown.kind == "bulletin":
            self._see(shown)
        return shown

    def _see(self, shown: Letter) -> None:
        try:
            wave = read(Bulletin, shown.body).wave
        except InputError:
            return
        if wave is not None:
            self.waves[wave.stage, wave.number] = wave


def changed(kind: type[Any], change: Callable[[Any], Any]) -> Tamper:
    """The collector's replies of one kind, changed."""

    def tamper(letter: Letter, reply: Letter) -> Letter:
        if reply.kind != kind.__name__.lower():
            return reply
        return Letter(reply.kind, reply.round, write(change(read(kind, reply.body))))

    return tamper


def first_packet(errand: Errand) -> bool:
    return errand.to is not None


@pytest.fixture
def study() -> Rehearsal:
    return Rehearsal().drawn()


# ── budget ──


def test_she_pays_before_she_answers(study: Rehearsal) -> None:
    scene = Scene(study)
    scene.play(until=first_packet)
    assert scene.notes == [
        "reserve",
        "register",
        "bulletin",
        "roster",
        "spend",
        "draw",  # the answer, and what blinds it
        "token",
        "bulletin",
        "draw",  # when, and in which order
    ]


def test_with_a_budget_that_is_too_small_nobody_hears_of_her(
    study: Rehearsal, tmp_path: Path
) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    promise = study.proposal.local_promise
    ledger.allow("me", promise.unit, promise.epsilon / 2, 0.0)
    budget = LedgerBudget(promise, "study", ledger, "me")
    journal = PersonJournal(MEMORY, study.proposal.digest)
    row = rows(SCHEMA, 1, 0)[0]
    with pytest.raises(BudgetExceeded):
        next(Person(study.proposal, study.people[0], journal, row, budget).take_part())


def test_the_ledger_is_charged_once_for_all_answers(tmp_path: Path) -> None:
    plan = PlanTerms(kind="anonml", partitions=2, subsets=2, size=1)
    study = Rehearsal(plan=plan, waves=1).drawn()
    promise, ledger = study.proposal.local_promise, Ledger(tmp_path / "ledger.db")
    ledger.allow("me", promise.unit, promise.epsilon, 0.0)
    budget = LedgerBudget(promise, "study", ledger, "me")
    scene = Scene(study)
    scene.person = lambda: Person(  # type: ignore[method-assign]
        study.proposal, scene.key, scene.journal, rows(SCHEMA, 1, 0)[0], budget
    )
    scene.play()
    assert len(scene.journal.answers()) == 2
    budget.settle(None)
    assert ledger.balance("me", promise.unit).spent.epsilon == promise.epsilon


def test_nothing_is_spent_when_the_study_does_not_come_about() -> None:
    study = Rehearsal()
    scene = Scene(study)
    with pytest.raises(Refused, match="Nothing was asked of you"):
        scene.play()
    assert "spend" not in scene.notes
    assert not scene.journal.answers()


# ── lies about the lots ──


def without_me(scene: Scene) -> Callable[[Roster], Roster]:
    me = bytes.fromhex(scene.key.public_key)
    return lambda r: msgspec.structs.replace(r, keys=r.keys.replace(me, b""))


def announced(scene: Scene, change: Callable[[Roster], Roster]) -> Tamper:
    """Another roster, and its digest in the bulletin; relays' signatures are for the first."""
    other = change(scene.study.roster)
    found = roster_digest(scene.study.proposal.digest, other)

    def tamper(letter: Letter, reply: Letter) -> Letter:
        if reply.kind == "roster":
            return Letter("roster", 0, write(other))
        if reply.kind == "bulletin":
            news = msgspec.structs.replace(read(Bulletin, reply.body), roster=found)
            return Letter("bulletin", 0, write(news))
        return reply

    return tamper


def drawn(change: Callable[[Drawn], Drawn | None]) -> Tamper:
    return changed(
        Bulletin,
        lambda news: msgspec.structs.replace(
            news, drawn=None if news.drawn is None else change(news.drawn)
        ),
    )


ROSTERS: dict[str, tuple[str, Callable[[Roster], Roster]]] = {
    "another than announced": (
        "another than the one that was announced",
        lambda r: msgspec.structs.replace(r, keys=r.keys[32:]),
    ),
    "other commitments": (
        "another than the one that was announced",
        lambda r: msgspec.structs.replace(r, commitments={0: Commitment("0" * 64, "0" * 128)}),
    ),
}
DRAWN: dict[str, tuple[str, Callable[[Drawn], Drawn | None]]] = {
    "none": ("another than the one", lambda d: None),
    "swapped seed": (
        "the collector's part of the lot is not",
        lambda d: msgspec.structs.replace(d, seed=bytes(32)),
    ),
    "short seed": (
        "the collector's part of the lot is not",
        lambda d: msgspec.structs.replace(d, seed=b""),
    ),
    "no relay": (
        "0 relays took part",
        lambda d: msgspec.structs.replace(d, reveals={}),
    ),
    "fewer than one of whom is honest": (
        "2 relays took part",
        lambda d: msgspec.structs.replace(d, reveals={0: d.reveals[0], 1: d.reveals[1]}),
    ),
    "swapped reveals": (
        "relay 0's part of the lot is not",
        lambda d: _reveals(d, {0: d.reveals[1], 1: d.reveals[0]}),
    ),
    "another reveal": (
        "relay 0's part of the lot is not",
        lambda d: _reveals(d, {0: msgspec.structs.replace(d.reveals[0], seed=bytes(32))}),
    ),
    "nobody's signature": (
        "relay 0's part of the lot is not",
        lambda d: _reveals(d, {0: msgspec.structs.replace(d.reveals[0], signature="0" * 128)}),
    ),
    "no such relay": (
        "relay 7's part of the lot is not",
        lambda d: _reveals(d, {7: d.reveals[0]}),
    ),
    "a relay before the first": (
        "relay -1's part of the lot is not",
        lambda d: _reveals(d, {-1: d.reveals[4]}),
    ),
}


def _reveals(drawn: Drawn, other: dict[int, Reveal]) -> Drawn:
    return msgspec.structs.replace(drawn, reveals={**drawn.reveals, **other})


def refuses(scene: Scene, message: str) -> None:
    with pytest.raises(CheckFailed, match=message):
        scene.play()
    assert "spend" not in scene.notes
    assert not scene.packets
    assert not scene.journal.answers()


@pytest.mark.parametrize("case", ROSTERS)
def test_another_roster_is_refused(study: Rehearsal, case: str) -> None:
    message, change = ROSTERS[case]
    refuses(Scene(study, tamper=changed(Roster, change)), message)


@pytest.mark.parametrize("case", DRAWN)
def test_another_drawing_is_refused(study: Rehearsal, case: str) -> None:
    message, change = DRAWN[case]
    refuses(Scene(study, tamper=drawn(change)), message)


def test_a_roster_that_relays_have_not_signed_is_refused(study: Rehearsal) -> None:
    """Announced or not: the relays' parts are for one roster."""
    scene = Scene(study)
    swap = bytes.fromhex(identity("a friend of the collector's").public_key)
    others = [bytes.fromhex(key) for key in study.store.members()]
    others.remove(next(k for k in others if k.hex() != scene.key.public_key))
    keys = b"".join(sorted([*others, swap]))
    scene.tamper = announced(scene, lambda r: msgspec.structs.replace(r, keys=keys))
    refuses(scene, "relay 0's part of the lot is not")


def test_commitments_are_the_relays_own(study: Rehearsal) -> None:
    """A collector that makes one up for a relay, to draw with it, is found."""
    scene = Scene(study)
    made_up = committed(study.cast.collector, study.proposal.digest, bytes(32))
    scene.tamper = announced(
        scene, lambda r: msgspec.structs.replace(r, commitments={**r.commitments, 0: made_up})
    )
    refuses(scene, "relay 0 has not signed the commitment")


def colluding(study: Rehearsal, keys: bytes) -> Tamper:
    """A roster that the collector and all the relays agree upon."""
    roster = msgspec.structs.replace(study.roster, keys=keys)
    reveals = {place: study.revealed(place, roster) for place in range(len(study.relays))}
    found = roster_digest(study.proposal.digest, roster)

    def tamper(letter: Letter, reply: Letter) -> Letter:
        if reply.kind == "roster":
            return Letter("roster", 0, write(roster))
        if reply.kind != "bulletin":
            return reply
        news = read(Bulletin, reply.body)
        lots = news.drawn and msgspec.structs.replace(news.drawn, reveals=reveals)
        return Letter("bulletin", 0, write(msgspec.structs.replace(news, roster=found, drawn=lots)))

    return tamper


def test_a_roster_without_her_is_refused(study: Rehearsal) -> None:
    scene = Scene(study)
    others = without_me(scene)(study.roster).keys
    extra = bytes.fromhex(identity("extra").public_key)
    keys = b"".join(sorted([*(others[i : i + 32] for i in range(0, len(others), 32)), extra]))
    scene.tamper = colluding(study, keys)
    refuses(scene, "you are not in the roster")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda keys: keys[32:64] + keys[:32] + keys[64:], "not in order"),
        (lambda keys: keys[:32] + keys, "not in order"),
        (lambda keys: keys[:-1], "damaged"),
        (lambda keys: keys + b"\xff" * 32, "13 people are in the roster"),
    ],
    ids=["swapped", "twice", "cut", "one too many"],
)
def test_a_roster_of_another_form_is_refused(
    study: Rehearsal, change: Callable[[bytes], bytes], message: str
) -> None:
    scene = Scene(study)
    scene.tamper = colluding(study, change(study.roster.keys))
    refuses(scene, message)


def test_a_roster_that_is_too_small_is_refused(study: Rehearsal) -> None:
    """Alone among the collector's friends nobody is hidden; alone among fewer even less."""
    scene = Scene(study)
    scene.tamper = colluding(study, bytes.fromhex(scene.key.public_key))
    refuses(scene, "1 people are in the roster")


def test_a_roster_with_somebody_who_is_not_listed_is_refused() -> None:
    listed = tuple(person.public_key for person in Rehearsal().people)
    study = Rehearsal(members=listed).drawn()
    scene = Scene(study)
    keys = [bytes.fromhex(key) for key in study.store.members()]
    keys.remove(next(k for k in keys if k.hex() != scene.key.public_key))
    extra = bytes.fromhex(identity("a friend of the collector's").public_key)
    scene.tamper = colluding(study, b"".join(sorted([*keys, extra])))
    refuses(scene, "not among those that may take part")


def test_she_asks_for_what_the_lots_gave_her_and_nothing_else(study: Rehearsal) -> None:
    """Whatever the collector says: no bulletin names a question."""
    for number in range(PEOPLE):
        scene = Scene(study, number)
        asked: list[str] = []

        def tamper(letter: Letter, reply: Letter, asked: list[str] = asked) -> Letter:
            if letter.kind == "token":
                asked.append(read(TokenAsked, letter.body).question)
            return reply

        scene.tamper = tamper
        scene.play(until=lambda errand, asked=asked: bool(asked))
        assert asked == [question.name for question in study.asked(scene.key)]


def test_a_collector_that_wants_another_question_answered_gets_nothing(study: Rehearsal) -> None:
    """It refuses the token for the right one; she does not answer another instead."""
    scene = Scene(study)

    def tamper(letter: Letter, reply: Letter) -> Letter | TacitError:
        return Refused("not your question") if letter.kind == "token" else reply

    scene.tamper = tamper
    scene.play()
    (question,) = study.asked(scene.key)
    assert set(scene.journal.answers()) == {question.name}
    assert {opened_payload(scene, sent) for _, _, sent in scene.packets} == {COVER}


# ── lies about what is asked ──


@pytest.mark.parametrize(
    "thresholds",
    [
        {},
        {"age": []},
        {"age": [50.0]},
        {"age": [10.0, 20.0, 30.0, 40.0]},
        {"age": [30.0, 20.0, 10.0]},
        {"age": [10.0, math.nan, 30.0]},
        {"smokes": [10.0, 20.0, 30.0]},
    ],
    ids=repr,
)
def test_thresholds_that_no_question_has_are_refused(thresholds: dict[str, list[float]]) -> None:
    plan = PlanTerms(kind="anonml", partitions=1, subsets=1, size=3)
    study = Rehearsal(schema=UNCUT, plan=plan, waves=1).drawn()
    honest = study.collector.bulletin(0.0).thresholds
    assert len(honest["age"]) == 3
    number = next(n for n, person in enumerate(study.people) if study.asked(person)[0].stage == 0)
    scene = Scene(study, number)
    scene.tamper = changed(
        Bulletin, lambda news: msgspec.structs.replace(news, thresholds=thresholds)
    )
    for row in (scene.row, None):  # it does not depend on whether there is a row
        scene.row, scene.journal = row, PersonJournal(MEMORY, study.proposal.digest)
        with pytest.raises(InputError, match=r"rising cuts|does not hold a bulletin"):
            scene.play()
        assert "spend" not in scene.notes
        assert not scene.journal.answers()


@pytest.mark.parametrize(
    "change",
    [lambda w: {"number": 2, **LATER}, lambda w: {"number": 2**31 - 1, **LATER}],
    ids=["one more than proposed", "many more"],
)
def test_waves_that_were_not_proposed_are_refused(
    study: Rehearsal, change: Callable[[Any], dict[str, Any]]
) -> None:
    scene = Scene(study)
    scene.tamper = changed(
        Bulletin,
        lambda news: msgspec.structs.replace(
            news, wave=news.wave and msgspec.structs.replace(news.wave, **change(news.wave))
        ),
    )
    with pytest.raises(CheckFailed, match="was not proposed"):
        scene.play()
    assert not scene.packets


def test_a_wave_that_is_opened_again_gets_nothing_more(study: Rehearsal) -> None:
    scene = Scene(study)
    shown: list[Letter] = []

    def tamper(letter: Letter, reply: Letter) -> Letter:
        if reply.kind == "bulletin" and read(Bulletin, reply.body).wave is not None:
            shown.append(reply)
            return shown[0] if len(shown) < 2 else reply
        return reply

    scene.tamper = tamper
    scene.play()
    sent = [(packets.stage, packets.wave) for _, _, packets in scene.packets]
    assert sent == sorted(set(sent))
    back: list[Letter] = []

    def backwards(letter: Letter, reply: Letter) -> Letter:
        if reply.kind == "bulletin":
            wave = read(Bulletin, reply.body).wave
            back.extend([reply] if wave is not None else [])
            return back[0] if wave is None and back else reply
        return reply

    other = Scene(Rehearsal().drawn(), tamper=backwards)
    with pytest.raises(CheckFailed, match="is over"):
        other.play()


@pytest.mark.parametrize("field", ["stage", "number"])
@pytest.mark.parametrize("value", [-1, 2**31])
def test_impossible_waves_are_refused(study: Rehearsal, field: str, value: int) -> None:
    def tamper(letter: Letter, reply: Letter) -> Letter:
        if reply.kind != "bulletin":
            return reply
        news = msgspec.to_builtins(read(Bulletin, reply.body))
        if news["wave"] is not None:
            news["wave"][field] = value
        return Letter("bulletin", 0, msgspec.msgpack.encode(news))

    scene = Scene(study, tamper=tamper)
    with pytest.raises(InputError):
        scene.play()
    assert not scene.packets


# ── what she is shown in two versions ──

SHOWN: dict[str, Callable[[Bulletin], Bulletin]] = {
    "lots": lambda news: msgspec.structs.replace(
        news,
        drawn=news.drawn
        and msgspec.structs.replace(
            news.drawn, reveals={p: r for p, r in news.drawn.reveals.items() if p < 3}
        ),
    ),
    "roster": lambda news: msgspec.structs.replace(news, roster="00" * 32),
    "opening of a wave": lambda news: msgspec.structs.replace(
        news, wave=news.wave and msgspec.structs.replace(news.wave, opens=news.wave.opens + 1)
    ),
    "thresholds": lambda news: msgspec.structs.replace(
        news,
        thresholds={"age": [1.0]},
        wave=news.wave and msgspec.structs.replace(news.wave, thresholds={"age": [1.0]}),
    ),
}


@pytest.mark.parametrize("case", SHOWN)
def test_what_changes_after_a_restart_is_a_fraud(study: Rehearsal, case: str) -> None:
    """The first version is on her disk: with another she says nothing more."""
    scene = Scene(study)
    scene.play(until=first_packet)
    before = scene.journal.answers()
    scene.packets.clear()
    scene.tamper = changed(Bulletin, SHOWN[case])
    with pytest.raises(CheckFailed):
        scene.play()
    assert scene.journal.answers() == before
    assert scene.notes.count("spend") == 1
    assert not scene.packets


@pytest.mark.parametrize("case", ["lots", "roster", "thresholds"])
def test_what_changes_on_the_way_is_a_fraud_too(study: Rehearsal, case: str) -> None:
    scene = Scene(study)
    seen: list[int] = []

    def tamper(letter: Letter, reply: Letter) -> Letter:
        if reply.kind != "bulletin":
            return reply
        seen.append(1)
        news = read(Bulletin, reply.body)
        return reply if len(seen) < 2 else Letter("bulletin", 0, write(SHOWN[case](news)))

    scene.tamper = tamper
    with pytest.raises(CheckFailed):
        scene.play()
    assert not scene.packets


def test_other_lots_after_a_restart_never_cost_more_than_was_promised(study: Rehearsal) -> None:
    """Every subset of the relays' genuine parts that the collector can show, in life after life."""
    scene = Scene(study)
    scene.play(until=first_packet)
    for places in ((0, 1, 2), (0, 1, 3), (1, 2, 3), (2, 3, 4), (0, 1, 2, 3)):
        scene.tamper = drawn(
            lambda d, places=places: msgspec.structs.replace(
                d, reveals={p: d.reveals[p] for p in places}
            )
        )
        with pytest.raises(CheckFailed, match="another drawing"):
            scene.play()
    epsilon = [study.proposal.questions[name].epsilon for name in scene.journal.answers()]
    assert sum(epsilon) <= study.proposal.promise.epsilon


def test_an_answer_beyond_the_promise_is_not_drawn(study: Rehearsal) -> None:
    """Even with a journal that holds one to another question, however it came there."""
    scene = Scene(study)
    (mine,) = study.asked(scene.key)
    other = next(name for name in study.proposal.questions if name != mine.name)
    scene.journal.put(Given(other, b"x", b""))
    with pytest.raises(CheckFailed, match="more than the 2 that was promised"):
        scene.play()
    assert "spend" not in scene.notes
    assert set(scene.journal.answers()) == {other}


def test_a_journal_belongs_to_one_key(study: Rehearsal) -> None:
    scene = Scene(study)
    scene.play(until=first_packet)
    with pytest.raises(Refused, match="another key"):
        Person(study.proposal, study.people[1], scene.journal, scene.row, Purse([]))


def test_a_proposal_of_version_0_1_is_not_taken_part_in(study: Rehearsal) -> None:
    old = msgspec.structs.replace(study.proposal, format="tacit crowd 1")
    with pytest.raises(Refused, match="propose it again"):
        Person(old, study.people[0], PersonJournal(MEMORY, old.digest), None, Purse([]))


# ── without a row ──


def seen_of(scene: Scene) -> list[tuple[str, int]]:
    """What others can see of her: letters, and how long they are."""
    lengths = [("packets", len(write(sent))) for _, _, sent in scene.packets]
    return [*((note, 0) for note in scene.notes if note != "draw"), *lengths]


def test_without_a_row_she_does_the_same_and_pays_the_same() -> None:
    scenes = [Scene(Rehearsal(waves=2).drawn()) for _ in range(2)]
    scenes[1].row = None
    for scene in scenes:
        scene.play()
    assert seen_of(scenes[0]) == seen_of(scenes[1])
    (given,) = scenes[1].journal.answers().values()
    assert scenes[1].study.proposal.questions[given.question].accepts(given.report)
    assert given.proof


def test_without_a_row_her_answers_are_as_private_as_any(study: Rehearsal) -> None:
    """The law of what she sends is a mixture of those of all rows: no report is more than e^ε times
    as likely with a row as without. Exactly, for randomised response over the question's values."""
    for question in study.proposal.questions.values():
        m, e = question.values, math.exp(question.epsilon)
        truth, lie = e / (e + m - 1), 1 / (e + m - 1)
        mixture = (truth + (m - 1) * lie) / m
        assert truth / mixture <= e * (1 + 1e-12)
        assert mixture / lie <= e * (1 + 1e-12)


# ── tokens ──


def test_with_a_wrong_token_she_sends_cover_among_the_idle(study: Rehearsal) -> None:
    """Relays count who is in a batch: cover there would stand for an answer."""
    (question,) = study.asked(study.people[0])
    other = study.blinded(question, study.report(question, "other"))
    signature = study.cast.secrets.tokens[question.name].sign_blinded(other.blinded)
    for wrong in (signature, b"", bytes(256), b"\1" * 256):
        fresh = Rehearsal().drawn()
        scene = Scene(fresh, tamper=changed_token(wrong))
        scene.play()
        assert {sent.question for _, _, sent in scene.packets} == {IDLE}
        assert {opened_payload(scene, sent) for _, _, sent in scene.packets} == {COVER}
        (given,) = scene.journal.answers().values()
        assert (given.proof, given.mark) == (b"", b"")


def changed_token(signature: bytes) -> Tamper:
    def tamper(letter: Letter, reply: Letter) -> Letter:
        return Letter("token", 0, write(TokenGiven(signature))) if reply.kind == "token" else reply

    return tamper


def test_after_a_wrong_token_she_asks_for_the_same_again(study: Rehearsal) -> None:
    """A message that is blinded anew after a failure could be followed."""
    asked: list[bytes] = []

    def tamper(letter: Letter, reply: Letter) -> Letter:
        if letter.kind != "token":
            return reply
        asked.append(letter.body)
        return reply if len(asked) == 3 else Letter("token", 0, write(TokenGiven(b"\1" * 256)))

    scene = Scene(study, tamper=tamper)
    for life in (1, 2):
        scene.play(until=lambda errand, life=life: len(asked) == life)
    scene.play(until=first_packet)
    assert len(asked) == 3
    assert len(set(asked)) == 1
    (given,) = scene.journal.answers().values()
    assert given.proof


def test_without_a_token_before_the_wave_she_never_asks_for_one(study: Rehearsal) -> None:
    """Tokens are shown to be late by what comes after them: cover is all that she sends then."""
    study.pass_time(20.0)
    assert study.wave.number == 0
    scene = Scene(study)
    scene.play()
    assert "token" not in scene.notes
    assert not scene.journal.answers()
    assert {sent.question for _, _, sent in scene.packets} == {IDLE}
    assert {opened_payload(scene, sent) for _, _, sent in scene.packets} == {COVER}


@pytest.mark.parametrize("at", ["token", "packets"])
def test_started_again_she_gives_the_same_answer(study: Rehearsal, at: str) -> None:
    scene = Scene(study)
    seen: set[tuple[bytes, bytes]] = set()
    for _ in range(3):
        scene.play(until=lambda errand: errand.letter is not None and errand.letter.kind == at)
        (given,) = scene.journal.answers().values()
        seen.add((given.report, given.blinded))
    assert len(seen) == 1
    assert scene.notes.count("spend") == 1


# ── sending ──


def opened_payload(scene: Scene, sent: Packets) -> bytes:
    """What a packet holds, with all keys at hand."""
    study, drawn = scene.study, scene.study.assignment
    wave = scene.waves[sent.stage, sent.wave]
    context = context_of(drawn.drawing, wave, sent.question)
    (packet,) = sent.packets
    for place in drawn.open_batches(wave)[sent.question]:
        packet = peel(drawn.shape, context, study.cast.relays[place][1], packet).packet
    return open_payload(drawn.shape, context, study.cast.secrets.onion, packet)


def spoken(scene: Scene, sizes: tuple[int, int]) -> None:
    """Relays say that so many have come, and were passed on, before each wave ends."""
    carried = scene.carried

    def speaking(errand: Errand) -> Letter | TacitError | None:
        reply = carried(errand)
        study = scene.study
        if errand.to is not None and study.collector.bulletin(study.now).wave is not None:
            for place in range(len(study.relays)):
                study.state(place, sizes)
        return reply

    scene.carried = speaking  # type: ignore[method-assign]


def test_what_has_left_a_relay_is_never_sent_again(study: Rehearsal) -> None:
    """Whether or not it arrives: the collector could hide that, and see which one comes twice."""
    scene = Scene(study)
    spoken(scene, (9, 9))
    scene.play()
    assert [sent.wave for _, _, sent in scene.packets] == [0]


@pytest.mark.parametrize("sizes", [None, (1, 0)], ids=["silent relays", "too few were there"])
def test_what_has_left_no_relay_is_sent_once_more_with_everybodys(
    study: Rehearsal, sizes: tuple[int, int] | None
) -> None:
    scene = Scene(study)
    if sizes is not None:
        spoken(scene, sizes)
    scene.play()
    assert [sent.wave for _, _, sent in scene.packets] == [0, 1]
    payloads = {opened_payload(scene, sent) for _, _, sent in scene.packets}
    assert len(payloads) == 1
    assert COVER not in payloads
    packets = [sent.packets[0] for _, _, sent in scene.packets]
    assert len(set(packets)) == 2, "a packet is made anew for every wave"


def test_who_missed_the_first_wave_sends_in_the_second_only_if_everybody_does() -> None:
    """The first wave's bulletin was withheld from her."""
    for passed in (False, True):
        scene = Scene(Rehearsal().drawn())
        study = scene.study

        def tamper(
            letter: Letter,
            reply: Letter,
            study: Rehearsal = study,
            scene: Scene = scene,
            passed: bool = passed,
        ) -> Letter:
            (mine,) = [question.name for question in study.asked(scene.key)]
            if reply.kind != "bulletin":
                return reply
            wave = read(Bulletin, reply.body).wave
            if wave is None or wave.number > 0:
                return reply
            lost, *_ = [q.name for q in study.proposal.drawn_up.questions if q.name != mine]
            for place in range(5):
                study.state(place, (9, 9) if passed else (1, 0), but=lost)
            study.pass_time(60.0)
            return study.collector.answer(scene.key.public_key, letter, study.now)

        (mine,) = [question.name for question in study.asked(scene.key)]
        scene.tamper = tamper
        scene.play()
        ((_, _, sent),) = scene.packets
        assert (sent.wave, sent.question) == (1, IDLE if passed else mine)
        assert (opened_payload(scene, sent) == COVER) == passed


def test_she_sees_that_hers_has_arrived() -> None:
    study = Rehearsal().drawn()
    scene = Scene(study)
    scene.play(until=first_packet)
    (given,) = scene.journal.answers().values()
    number = study.proposal.drawn_up.names.index(given.question)
    answer = Answer(study.proposal.digest, number, given.report, given.proof)
    study.deliver(answer.to_bytes(), batch=given.question)
    scene.packets.clear()
    scene.play()
    # The wave was begun before she was started again: nothing more is sent in it.
    assert not scene.packets
    (given,) = scene.journal.answers().values()
    assert given.arrived


def test_everyone_sends_equally_long_letters_equally_often() -> None:
    plan = PlanTerms(kind="anonml", partitions=2, subsets=2, size=1)
    sizes: set[int] = set()
    for number in range(PEOPLE):
        study = Rehearsal(plan=plan, waves=1).drawn()
        scene = Scene(study, number)
        scene.play()
        assert len(scene.packets) == study.proposal.drawn_up.packets(0) == 2
        sizes |= {len(sent.packets[0]) for _, _, sent in scene.packets}
    assert len(sizes) == 1


def test_she_sends_within_the_window_at_random(study: Rehearsal) -> None:
    moments = []
    for number in range(PEOPLE):
        fresh = Scene(Rehearsal(waves=1).drawn(), number)
        fresh.play()
        moments += [moment for _, moment, _ in fresh.packets]
    window = study.proposal.windows.send  # after as long a time for tokens
    assert all(window <= moment <= 1.9 * window for moment in moments)
    assert max(moments) - min(moments) > study.proposal.windows.send / 4


def test_a_relay_that_is_not_there_gets_the_same_packet_again(study: Rehearsal) -> None:
    """Another packet with the same report in one wave would join two circuits."""
    scene = Scene(study)
    scene.relays = lambda place: Unreachable("nobody")
    scene.play()
    waves = {sent.wave: [] for _, _, sent in scene.packets}  # type: ignore[var-annotated]
    for place, _, sent in scene.packets:
        waves[sent.wave].append((place, sent.packets[0]))
    assert set(waves) == {0, 1}
    for tries in waves.values():
        assert 1 < len(tries) <= TRIES
        assert len(set(tries)) == 1
    assert len({tries[0] for tries in waves.values()}) == 2, "made anew for every wave"


def test_receipts_in_two_versions_are_a_fraud(study: Rehearsal) -> None:
    """Started again after the end, she is shown others: it is found."""
    scene = Scene(study)
    scene.play()
    scene.tamper = changed(Receipts, lambda r: Receipts(r.stage, {"table-0": b"\0" * 8}))
    with pytest.raises(CheckFailed, match="another receipts"):
        scene.play()


def test_a_journal_that_has_not_noted_the_payment_does_not_draw_under_it(study: Rehearsal) -> None:
    """It is an older copy: what was drawn is in another folder."""

    class Drawn(Purse):
        def reserve(self, number: int) -> bool:  # type: ignore[override]
            return True

    scene = Scene(study)
    person = Person(study.proposal, scene.key, scene.journal, scene.row, Drawn([]))
    with pytest.raises(Refused, match="an older copy"):
        next(person.take_part())
    scene.journal.pin("payment", "begun")  # a crash came between paying and drawing
    next(Person(study.proposal, scene.key, scene.journal, scene.row, Drawn([])).take_part())
