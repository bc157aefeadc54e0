"""Every verified person counts exactly once, after thousands of accidents and frauds.

Each report is told apart from all others by the mark of its proof, which its owner's journal has
too: what the collector holds must be what all the journals hold, report by report and byte by byte.
`SEED=n` replays one run.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from crowd_cast import SCHEMA, UNCUT, proposed, rows
from crowd_forgers import Forgers
from crowd_world import Chances, World

from tacit.channels.crowd.checked import check_crowd, compare
from tacit.channels.crowd.harvest import harvested
from tacit.channels.crowd.person_journal import Given
from tacit.channels.crowd.plan import PlanTerms
from tacit.errors import Refused, TacitError

# ── what must hold after every run ──


def members(world: World) -> list[int]:
    """The numbers of the people in the roster."""
    keys = set(world.store.members())
    return [i for i, actor in enumerate(world.people) if actor.key in keys]


def check(world: World, all_arrive: bool = True) -> None:
    """Nobody in the roster is counted more than once for any of her questions, and nobody else is;
    without accidents in the wrong place, everybody is. What is certified was achieved."""
    kept: dict[bytes, Given] = {}
    for number in members(world):
        for given in world.journals[number].answers().values():
            assert given.arrived or not all_arrive
            if given.arrived:
                assert given.mark not in kept, "two answers have one mark"
                kept[given.mark] = given
    reports = world.store.reports()
    assert Counter(stored.mark for stored in reports) == Counter(list(kept))
    for stored in reports:
        given = kept[stored.mark]
        assert (stored.question, stored.report) == (given.question, given.report)
    if all_arrive:
        everyone = world.cast.proposal.drawn_up.expected(len(members(world)))
        assert Counter(stored.question for stored in reports) == Counter(everyone)
    check_lots(world, all_arrive)
    check_certificate(world)


def check_certificate(world: World) -> None:
    """It holds, agrees with everybody's journal, and claims no more than relays passed on."""
    if not world.store.reports():
        return  # there is nothing to learn from
    harvest = harvested(world.cast.proposal, world.store, world.cast.collector)
    certificate = check_crowd(world.cast.proposal, harvest.model, harvest.certificate.to_json())
    for actor, journal in zip(world.people, world.journals, strict=True):
        if actor.done:
            compare(world.cast.proposal, certificate, journal)
    assert certificate.amplified is not None
    for hidden in certificate.amplified.questions:
        batches = world.mixed[hidden.stage, hidden.wave, hidden.question]
        assert hidden.mixed <= max(1, min(batches.values(), default=0))


def missing(world: World) -> list[Given]:
    """Answers that were made, and are not in the store."""
    marks = {stored.mark for stored in world.store.reports()}
    answers = [given for journal in world.journals for given in journal.answers().values()]
    return [given for given in answers if given.mark not in marks]


def check_lots(world: World, all_arrive: bool = True) -> None:
    """Everyone has answered what the lots gave her, and has had tokens for nothing else."""
    proposal = world.cast.proposal
    signed: dict[str, set[str]] = defaultdict(set)
    for sender, question in world.seen.signed:
        signed[sender].add(question)
    for number in members(world):
        key = world.people[number].key
        asked = world.drawn.asked(key)
        names = {question.name for question in asked}
        answered, tokens = set(world.journals[number].answers()), signed.pop(key, set())
        assert answered <= names
        assert tokens <= names
        if all_arrive:
            assert answered == names
            assert tokens == {q.name for q in asked if proposal.token_keys}
    assert not signed, "somebody outside the roster has a token"


def check_traffic(world: World) -> None:
    """Everyone has sent as many packets as everybody else, in every wave."""
    waves = {(stage, wave) for _, stage, wave in world.seen.packets}
    assert waves
    for number in members(world):
        key = world.people[number].key
        for stage, wave in waves:
            slots = world.cast.proposal.drawn_up.packets(stage)
            assert len(world.seen.packets[key, stage, wave]) == slots


# ── ten thousand people ──


@pytest.mark.parametrize("people", [2_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_thousands_of_people(people: int) -> None:
    """Losses, doubles, forgers, people who come too late, and a relay that vanishes.

    Each person costs ten milliseconds of cryptography and nothing else.
    """
    late = 3
    world = World(
        proposed(people, seed=1, release=20.0),
        rows(SCHEMA, people + late, seed=1),
        seed=1,
        chances=Chances(lose=0.02, double=0.03),
        late=late,
    )
    forgers = Forgers(world, cheats=25, other=proposed(people, seed=2))
    world.run()
    check(world, all_arrive=False)
    arrived = len(world.store.reports())  # who loses a letter at the end of the window has no time
    assert people - arrived < people / 1000
    assert not any(given.arrived for given in missing(world)), "counted, and not in the store"
    shut_out = [actor.failure for actor in world.people if actor.failure is not None]
    assert len(shut_out) == late
    assert all("registration is closed" in str(failure) for failure in shut_out)
    assert forgers.replies
    assert all(isinstance(reply, TacitError) for reply in forgers.replies)
    found = world.store.refused()
    assert found["forged"] >= 2 * forgers.reached > 0
    assert found["another study"] >= forgers.reached
    assert found["malformed"] >= forgers.reached
    assert found["again"] >= forgers.reached
    assert found["unreadable"] >= 20
    assert world.seen.crashes == {"relay": 1}
    assert world.seen.full > 10
    before = world.store.reports()
    forgers.come_late()
    late_ones = world.store.refused()["after the window"] - found["after the window"]
    assert late_ones == forgers.cheats
    assert world.store.reports() == before


# ── many small crowds ──


def drawn_up(seed: int) -> World:
    """What a seed stands for: sizes, chances and all."""
    chance = random.Random(f"crowd {seed}")
    people = chance.randint(12, 36)
    plan = chance.choice([None, None, PlanTerms(kind="anonml", partitions=2, subsets=2, size=1)])
    cast = proposed(
        people,
        relays=chance.choice([3, 4, 5, 7]),
        seed=seed,
        plan=plan,
        batch=chance.choice([1, 1, 3]),
        release=20.0,
        minimum=people - chance.choice([0, 2]),
    )
    chances = Chances(
        lose=chance.choice([0.0, 0.05, 0.2]),
        double=chance.choice([0.0, 0.2]),
        delay=chance.choice([0.2, 2.0, 10.0]),
        people=chance.choice([0.0, 0.02, 0.05]),
        relays=chance.choice([0.0, 0.02]),
        collector=chance.choice([0.0, 0.002, 0.01]),
        storm=chance.choice([100.0, 400.0]),
    )
    return World(cast, rows(SCHEMA, people, seed), seed, chances)


SEEDS = 60
CHUNKS = 6


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_many_seeds(chunk: int) -> None:
    for seed in range(chunk * SEEDS // CHUNKS, (chunk + 1) * SEEDS // CHUNKS):
        try:
            replayed(seed)
        except BaseException:
            print(f"replay with: SEED={seed} python -m pytest {__file__} -k replay")
            raise


def replayed(seed: int) -> None:
    world = drawn_up(seed)
    world.run()
    if "relays revealed" in world.collector.failure:  # in so bad a storm nothing is asked
        assert not any(journal.answers() for journal in world.journals)
        return
    assert all(actor.done for actor in world.people), [a.failure for a in world.people]
    assert world.collector.is_over
    check(world, all_arrive=world.is_calm)


@pytest.mark.skipif("SEED" not in os.environ, reason="for replaying one seed")
def test_replay() -> None:
    replayed(int(os.environ["SEED"]))


# ── each kind of study ──


@pytest.mark.parametrize(
    "terms",
    [
        {"schema": UNCUT},
        {"plan": PlanTerms(kind="anonml", partitions=2, subsets=2, size=1)},
        {"schema": UNCUT, "plan": PlanTerms(kind="anonml", partitions=2, subsets=1, size=2)},
        {"schema": SCHEMA, "plan": PlanTerms(public_coins=True)},
        {"proof": "ring"},
        {"kem": "hybrid"},
    ],
    ids=["quantiles", "anonml", "anonml with quantiles", "public coins", "ring", "hybrid"],
)
def test_each_kind_of_study(terms: dict[str, object]) -> None:
    people, schema = 100 if terms.get("schema") else 30, terms.get("schema", SCHEMA)
    cast = proposed(people, seed=3, **terms)  # type: ignore[arg-type]
    chances = Chances(lose=0.05, double=0.1, people=0.01, storm=60.0)
    world = World(cast, rows(schema, people, 3), 3, chances)  # type: ignore[arg-type]
    world.on_wave = lambda wave: world.vanish(1, back=45.0) if wave.number == 0 else None
    world.run()
    assert all(actor.done for actor in world.people)
    check(world, all_arrive=False)
    assert len(world.store.reports()) > 0.8 * sum(cast.proposal.drawn_up.expected(people).values())
    assert world.seen.crashes["relay"] >= 1


def test_thresholds_are_the_same_after_a_restart() -> None:
    """Whoever asks in the middle of a stage is asked the same as whoever asked before."""
    world = World(proposed(200, seed=4, schema=UNCUT), rows(UNCUT, 200, 4), 4)
    asked: dict[int, set[str]] = defaultdict(set)

    def ask() -> None:
        news = world.collector.bulletin(world.now)
        assert news.wave is not None
        asked[news.wave.stage].add(repr(news.thresholds))

    def wave(_: object) -> None:
        ask()
        world.at(world.now + 5.0, lambda: world.break_down(1.0))
        world.at(world.now + 7.0, ask)

    world.on_wave = wave
    world.run()
    check(world)
    assert len(asked) == world.cast.proposal.drawn_up.stages > 1
    assert all(len(thresholds) == 1 for thresholds in asked.values())
    assert len(set.union(*asked.values())) > 1, "nothing was learned"


# ── traffic ──


@pytest.mark.parametrize("lose", [0.0, 0.1])
@pytest.mark.parametrize("plan", ["one-question", "anonml"])
def test_everyone_sends_as_much_as_everybody(plan: str, lose: float) -> None:
    """In every wave, whatever was asked of her, and whether or not her answer has arrived."""
    terms = PlanTerms(kind="anonml", partitions=3, subsets=1, size=2) if plan == "anonml" else None
    people = 100
    cast = proposed(people, seed=5, schema=UNCUT, plan=terms, release=20.0)
    world = World(cast, rows(UNCUT, people, 5), 5, Chances(lose=lose))
    world.on_wave = lambda wave: (
        world.vanish(wave.stage % 5, back=22.0) if not wave.number else None
    )
    world.run()
    check(world)
    check_traffic(world)
    assert max(wave for _, _, wave in world.seen.packets) > 0, "nothing was sent again"
    shape = cast.proposal.shape(people)
    assert world.seen.lengths == {shape.packet_bytes}


# ── studies that do not come about ──


def test_too_few_people_stop_the_study_before_anything_is_asked() -> None:
    world = World(proposed(30, seed=6), rows(SCHEMA, 29, 6), 6)
    world.run()
    assert "29 people registered, fewer than 30" in world.collector.failure
    for actor, journal in zip(world.people, world.journals, strict=True):
        assert isinstance(actor.failure, Refused)
        assert "Nothing was asked of you" in str(actor.failure)
        assert not journal.answers()


def test_too_few_relays_stop_it_too() -> None:
    world = World(proposed(30, seed=7), rows(SCHEMA, 30, 7), 7)
    for place in (0, 2, 4):
        world.at(0.0, lambda place=place: world.crash(world.carriers[place], back=None))
        world.carriers[place].born = lambda: iter(())  # type: ignore[assignment, return-value]
    world.run()
    assert "2 relays are there, and a circuit has 3" in world.collector.failure
    assert not any(journal.answers() for journal in world.journals)
