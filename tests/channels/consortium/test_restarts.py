"""No randomness is ever used around two different values: parties restarted, at every step, with
records that have changed."""

from __future__ import annotations

import math
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))

from protocol_runs import CURATOR, KEYS, Mean, fix_keys, study_of

from tacit.channels.consortium import encoding
from tacit.channels.consortium.curator import MOST_GIVEN_UP, Curator
from tacit.channels.consortium.encoding import encoding_of, randomness_for
from tacit.channels.consortium.journals import CuratorJournal, PartyJournal
from tacit.channels.consortium.letters import Answer, Roster, Turn
from tacit.channels.consortium.local_model import Local
from tacit.channels.consortium.party import Party
from tacit.channels.consortium.protocols import terms_of
from tacit.channels.roles.letters import Letter, read, write
from tacit.channels.roles.store import MEMORY
from tacit.channels.studies.study import Deadlines, Study, TakePart
from tacit.errors import RecordsChanged, Refused, TacitError, Unreachable
from tacit.privacy.promise import Promise
from tacit.programs.files import from_bytes

SIZE, COUNT = 3, 3
GRID = 1e-3  # more than rounding moves an average
PRIVATE, EXACT = Promise(0.1, 1e-6, adjacency="replace"), Promise(math.inf)  # type: ignore[arg-type]
Said = dict[tuple[int, int], set[bytes]]  # by attempt and step


class Purse:
    def __init__(self) -> None:
        self.spent, self.settled = False, list[str | None]()

    def belongs_to(self, identity: str) -> None: ...

    def reserve(self, number: int) -> None: ...

    def spend(self, number: int) -> None:
        self.spent = True

    def settle(self, certificate: str | None) -> None:
        self.settled.append(certificate)


class Crash(Exception):
    """The process is gone."""


class Crashing(PartyJournal):
    """Any write may be the last of its process: before it is durable, or after."""

    crashes: Callable[[], bool] = staticmethod(lambda: False)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with super().transaction():
            yield
            if self.crashes():
                raise Crash
        if self.crashes():
            raise Crash


class Lives:
    """One party through its lives, and everything that it ever says."""

    def __init__(self, study: Study, place: int, path: str = MEMORY) -> None:
        self._study, self._place = study, place
        self.journal, self.purse = Crashing(path, study.digest), Purse()
        self.said: Said = defaultdict(set)
        self.vector = np.full(SIZE, 0.1 * place) + np.arange(SIZE) / 64
        self.start(self.vector)

    def start(self, vector: NDArray[np.float64], records: int = 50) -> None:
        """A new process, whose records train this vector."""
        self.vector = vector
        key, local = KEYS[self._place], Local(vector, records)
        self.party = Party(self._study, key, self.journal, local, self.purse)

    def turn(self, core: Curator, now: float = 0.0) -> Letter | TacitError | None:
        """One letter, written down, and its answer; a refusal is raised as it is to the caller."""
        for to, letter in self.party.tick():
            said = read(Turn, letter.body)
            if said.body:
                self.said[letter.round, said.step].add(said.body)
            reply: Letter | TacitError
            try:
                reply = core.answer(self.party.key, letter, now)
            except TacitError as error:
                reply = error
            if isinstance(reply, Letter) and reply.kind == "stopped":
                with pytest.raises(Unreachable, match="was stopped by"):
                    self.party.told(to, letter, reply)
                return reply
            self.party.told(to, letter, reply)
            return reply
        return None

    def check(self) -> None:
        for bodies in self.said.values():
            assert len(bodies) == 1, "another letter in the same step of the same attempt"


def limited(plain: Study, minimum: int) -> Study:
    found = msgspec.structs.replace(
        plain,
        take_part=TakePart(minimum=minimum, maximum=COUNT, records=100),
        deadlines=Deadlines(gather=60.0, round=30.0),
    )
    found.__dict__["_averaged"] = plain.averaged()
    return found


def begun(
    promise: Promise = EXACT, protocol: str = "joint", minimum: int = 2
) -> tuple[Curator, list[Lives]]:
    study = limited(study_of(protocol, COUNT, SIZE, promise), minimum)  # type: ignore[arg-type]
    core = Curator(study, CURATOR, CuratorJournal(MEMORY, study.digest), 0.0)
    lives = [Lives(study, place) for place in range(COUNT)]
    for one in lives:
        one.turn(core)
    core.tick(0.0)
    for one in lives:
        one.turn(core)
    assert core.round == 1
    return core, lives


def step_of(one: Lives) -> int:
    return one.party._step


def to_step(core: Curator, lives: list[Lives], step: int) -> None:
    """Everybody is about to say this step."""
    while any(step_of(one) < step for one in lives):
        for one in lives:
            if step_of(one) < step:
                one.turn(core)


def finish(core: Curator, lives: list[Lives], now: float = 0.0) -> NDArray[np.float64]:
    for _ in range(40):
        for one in lives:
            one.turn(core, now)
    assert all(one.party.is_over for one in lives)
    assert core.result is not None
    return from_bytes((Mean,), core.result[0]).values


def average_of(lives: list[Lives]) -> NDArray[np.float64]:
    return np.asarray(np.mean([one.vector for one in lives], axis=0))


def vectors(one: Lives) -> list[NDArray[np.uint64]]:
    """The masked vectors of step 2, of all attempts."""
    bodies = [body for (_, step), found in sorted(one.said.items()) if step == 2 for body in found]
    return [np.frombuffer(msgspec.msgpack.decode(b)["vector"], dtype="<u8") for b in bodies]


# ── every step ──

STEPS = [("joint", step) for step in (1, 2)] + [("as-published", s) for s in (1, 2, 4, 6, 7, 8)]


@pytest.mark.parametrize("sent", [False, True], ids=["unsent", "sent"])
@pytest.mark.parametrize(("protocol", "step"), STEPS)
def test_changed_records_are_learned_from_in_another_attempt(
    protocol: str, step: int, sent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    fix_keys(monkeypatch)
    core, lives = begun(protocol=protocol)
    to_step(core, lives, step)
    if sent:
        lives[0].turn(core)
    lives[0].start(np.full(SIZE, -0.5))
    before = {place: len(found) for place, found in lives[0].said.items()}
    ((_, letter),) = lives[0].party.tick()
    assert read(Turn, letter.body) == Turn(0, b"", again=True)  # no vector, no mask, no key
    lives[0].party._asked = False
    reply = lives[0].turn(core)
    assert isinstance(reply, Letter)
    assert reply.kind == "roster"
    assert core.round == 2
    average = finish(core, lives)
    assert average == pytest.approx(average_of(lives), abs=GRID)
    for one in lives:
        one.check()
        assert one.purse.spent
        assert len(one.purse.settled) == 1
    assert all(len(lives[0].said[place]) == count for place, count in before.items())


@pytest.mark.parametrize("change", ["one grid step", "records", "version"])
def test_the_smallest_change_is_seen(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    core, lives = begun(PRIVATE)
    to_step(core, lives, 2)
    lives[0].turn(core)
    terms = terms_of(core.study, tuple(sorted(one.party.key for one in lives)))
    vector, records = lives[0].vector.copy(), 50
    if change == "one grid step":
        vector[1] += float(terms.grid.step)
    elif change == "records":
        records += 1
    else:  # other code may draw other noise from the same bits
        monkeypatch.setattr(encoding, "__version__", "99")
    lives[0].start(vector, records)
    assert lives[0].party._again


def test_the_same_records_go_on_with_the_same_words() -> None:
    for step in (1, 2, 3):
        core, lives = begun()
        to_step(core, lives, step)
        lives[0].turn(core)
        lives[0].start(lives[0].vector.copy())
        finish(core, lives)
        lives[0].check()
        assert core.round == 1


# ── the last step ──


def test_after_the_last_step_has_begun_it_is_refused_until_the_records_are_back() -> None:
    core, lives = begun()
    to_step(core, lives, 2)
    for one in lives:
        one.turn(core)  # the curator has all vectors, and may have told the others
    first, wanted = lives[0].vector, average_of(lives)
    assert step_of(lives[0]) == 2  # it has not heard of it yet
    lives[0].start(np.full(SIZE, -0.5))
    with pytest.raises(RecordsChanged, match="Put your records back"):
        lives[0].turn(core)
    assert not lives[0].purse.spent
    lives[0].start(first)
    assert finish(core, lives) == pytest.approx(wanted, abs=GRID)
    lives[0].check()


def test_what_was_revealed_is_repeated_byte_for_byte() -> None:
    core, lives = begun()
    to_step(core, lives, 3)
    assert lives[0].purse.spent
    wanted = average_of(lives)
    for life in range(3):
        lives[0].start(np.full(SIZE, -0.1 * life))
        lives[0].turn(core)
    assert finish(core, lives) == pytest.approx(wanted, abs=GRID)
    lives[0].check()
    assert core.round == 1


# ── a hostile curator ──


def test_a_curator_that_goes_on_with_the_old_attempt_hears_nothing() -> None:
    """The attack: two letters of one attempt, whose difference is that of the models."""
    core, lives = begun(PRIVATE)
    to_step(core, lives, 2)
    keys = lives[0].journal.answers()[0]
    lives[0].turn(core)
    lives[0].start(np.full(SIZE, -0.5))
    party = lives[0].party
    hostile = [
        Letter("answer", 1, write(Answer(0, b""))),
        Letter("answer", 1, write(Answer(1, keys))),
        Letter("answer", 1, write(Answer(2, b""))),
        Letter("roster", 1, write(Roster(1, sorted(one.party.key for one in lives)))),
        Letter("roster", 1, write(Roster(0, sorted(one.party.key for one in lives)))),
        Letter("wait", 1),
        Letter("anything", 1),
    ]
    for reply in hostile:
        ((to, letter),) = party.tick()
        assert read(Turn, letter.body) == Turn(0, b"", again=True)
        party.told(to, letter, reply)
    assert len(vectors(lives[0])) == 1


def test_vectors_of_two_attempts_differ_by_uniformly_random_words() -> None:
    """What the attack read were differences of a few grid steps: their highest byte is 0 or 255."""
    top = []
    for _ in range(40):
        core, lives = begun(PRIVATE)
        to_step(core, lives, 2)
        lives[0].turn(core)
        lives[0].start(lives[0].vector + 0.01)
        finish(core, lives)
        first, second = vectors(lives[0])
        top += [int(word) >> 56 for word in second - first]
    # 120 bytes of uniform words: fewer than 60 different ones have a chance below 1e-9.
    assert len(set(top)) > 60


def test_draws_follow_from_all_that_they_are_made_around() -> None:
    """Also if a journal's digest were right by mistake: other values, other draws."""
    study = limited(study_of("joint", COUNT, SIZE, PRIVATE), 2)
    keys = tuple(key.public_key for key in KEYS[:COUNT])
    terms, seed = terms_of(study, keys), bytes(32)
    vector = np.full(SIZE, 0.25)
    nudged = vector + np.eye(SIZE)[2] * float(terms.grid.step)
    around = [
        encoding_of(terms, 1, Local(vector, 50)),
        encoding_of(terms, 1, Local(nudged, 50)),
        encoding_of(terms, 1, Local(vector, 51)),
        encoding_of(terms, 2, Local(vector, 50)),
        encoding_of(terms_of(study, keys[:2]), 1, Local(vector, 50)),
    ]
    drawn = [randomness_for(seed, value).stream().bytes(16) for value in around]
    assert len(set(drawn)) == len(around)
    assert randomness_for(seed, around[0]).stream().bytes(16) == drawn[0]
    assert randomness_for(b"\1" * 32, around[0]).stream().bytes(16) != drawn[0]


# ── a party that asks for attempts without end ──


def test_who_gives_up_too_often_is_left_out() -> None:
    core, lives = begun()
    for life in range(MOST_GIVEN_UP + 1):
        for one in lives:
            one.turn(core)
        lives[0].start(np.full(SIZE, -0.01 * (life + 1)))
        lives[0].turn(core)
    finish(core, lives[1:])
    assert core.waiting_for == {one.party.key for one in lives[1:]}
    assert not lives[0].purse.spent
    lives[0].turn(core)  # it may have the model
    assert lives[0].party.is_over


def test_too_few_without_who_gives_up_too_often() -> None:
    core, lives = begun(minimum=COUNT)
    for life in range(MOST_GIVEN_UP + 1):
        for one in lives:
            one.turn(core)
        lives[0].start(np.full(SIZE, -0.01 * (life + 1)))
        lives[0].turn(core)
    assert isinstance(core.failure, Unreachable)
    assert not any(one.purse.spent for one in lives)


def test_only_a_member_of_the_attempt_can_ask_for_another() -> None:
    core, lives = begun()
    old = Letter("turn", 0, write(Turn(0, b"", again=True)))
    core.answer(lives[0].party.key, old, 0.0)
    assert core.round == 1  # of an attempt that is over, or has not begun
    with pytest.raises(Refused):
        core.answer(KEYS[7].public_key, Letter("turn", 1, old.body), 0.0)
    assert core.round == 1


# ── what lies on the disk ──


def test_a_thief_of_the_journal_cannot_try_out_guesses(tmp_path: Path) -> None:
    study = limited(study_of("joint", COUNT, SIZE, PRIVATE), 2)
    keys = tuple(key.public_key for key in KEYS[:COUNT])
    path = tmp_path / "party.db"
    one = Lives(study, 0, str(path))
    ((to, letter),) = one.party.tick()
    one.party.told(to, letter, Letter("roster", 0, write(Roster(1, list(keys)))))
    known = encoding_of(terms_of(study, keys), 1, Local(one.vector, 50))
    attempt = one.journal.attempt()
    assert attempt is not None
    assert attempt.encoding == KEYS[0].private_digest(known)
    assert attempt.encoding != KEYS[1].private_digest(known)  # needs the key, which is elsewhere
    one.journal.close()
    assert terms_of(study, keys).encoded(one.vector).tobytes() not in path.read_bytes()


def test_a_journal_of_the_first_version_is_read_and_its_attempt_given_up(tmp_path: Path) -> None:
    """It did not note what was encoded, so nobody knows whether it is the same."""
    study = limited(study_of("joint", COUNT, SIZE, EXACT), 2)
    path = str(tmp_path / "party.db")
    one = Lives(study, 0, path)
    ((to, letter),) = one.party.tick()
    keys = [key.public_key for key in KEYS[:COUNT]]
    one.party.told(to, letter, Letter("roster", 0, write(Roster(1, keys))))
    one.journal.database.execute("DROP TABLE encoding")
    one.journal.database.execute("DROP TABLE said")
    one.journal.close()
    again = Lives(study, 0, path)
    assert again.party._again


# ── at random ──


def some_vector(chance: random.Random, place: int) -> NDArray[np.float64]:
    return np.full(SIZE, 0.1 * place + chance.choice([0.0, 0.0, 0.3, -0.3]))


def restarted(one: Lives, vector: NDArray[np.float64]) -> None:
    """However often the start itself crashes."""
    while True:
        try:
            one.start(vector)
        except Crash:
            continue
        return


@pytest.mark.parametrize("seed", range(60))
def test_random_restarts_with_random_records(seed: int) -> None:
    """Whatever happens, a step of an attempt is said in one way, and the model is of the vectors
    that were posted in the attempt that ended."""
    chance = random.Random(f"restarts {seed}")
    core, lives = begun()
    for one in lives:
        one.journal.crashes = lambda: chance.random() < 0.05
    posted: dict[int, NDArray[np.float64]] = {}
    for _ in range(400):
        place = chance.randrange(COUNT)
        one = lives[place]
        if chance.random() < 0.1 and not one.party.is_over:
            restarted(one, some_vector(chance, place))
        if step_of(one) == 2:
            posted[place] = one.vector
        try:
            one.turn(core)
        except RecordsChanged:  # it gave up too late: its operator puts the records back
            restarted(one, posted[place])
        except Crash:
            restarted(one, some_vector(chance, place))
        assert core.failure is None or isinstance(core.failure, Unreachable)
    for one in lives:
        one.check()
        assert one.purse.spent == (one.journal.revealed() is not None)
    members = [one for one in lives if one.party.key in core.waiting_for]
    if core.is_over and len(members) == COUNT:
        mean = np.mean([posted[place] for place in range(COUNT)], axis=0)
        assert core.result is not None
        assert from_bytes((Mean,), core.result[0]).values == pytest.approx(mean, abs=GRID)
        assert all(one.purse.spent for one in members if one.party.is_over)
