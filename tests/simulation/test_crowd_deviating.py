"""Whatever a collector and fewer relays than a circuit has hops do: nobody gives more than she was
promised, no relay that is honest passes on fewer than it must, and no certificate claims more than
was achieved. `SEED=n` replays one schedule."""

from __future__ import annotations

import os
import sys
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from crowd_deviants import COLLECTOR, RELAYS, Deviants

from tacit.channels.crowd.harvest import harvested
from tacit.channels.crowd.letters import IDLE
from tacit.errors import UsageError

SCHEDULES, CHUNKS = 100, 4
LONG, LONG_CHUNKS = 1000, 10


def played(seed: int) -> Deviants:
    world = Deviants(seed)
    try:
        world.run(most=3000.0)
        check_gifts(world)
        check_batches(world)
        check_views(world)
        check_company(world)
        check_certificate(world)
    except BaseException:
        print(f"replay with: SEED={seed} python -m pytest {__file__} -k replay")
        print(f"collector: {sorted(world.habits)}; relays: {world.bad}")
        raise
    return world


def check_gifts(world: Deviants) -> None:
    """One answer to a question, in however many lives; all of them within the promise."""
    proposal = world.cast.proposal
    for number, actor in enumerate(world.people):
        given = world.gifts[actor.key]
        assert all(len(answers) == 1 for answers in given.values()), "two answers to one question"
        names = {*given, *world.journals[number].answers()}
        cost = sum(Fraction(proposal.questions[name].epsilon) for name in names)
        assert cost <= Fraction(proposal.promise.epsilon)


def check_batches(world: Deviants) -> None:
    """At the first hop an honest relay has half of those who are asked, or passes nothing on."""
    asking = world.collector._asking
    if asking is None:
        return
    for (stage, wave, name), passed in world.mixed.items():
        for place, size in passed.items():
            honest = place not in world.bad
            first = asking.drawn.ways(stage).get(name, (None,))[0] == place
            if honest and size and first and wave == 0 and name != IDLE:
                assert 2 * size >= asking.drawn.expected(name)


def check_views(world: Deviants) -> None:
    """Who is passed on together was shown the same lots, and the same wave."""
    for (place, stage, wave, _), people in world.met.items():
        relay = world.relays[place]._store
        for actor, journal in zip(world.people, world.journals, strict=True):
            if actor.key in people:
                for what in ("drawing", f"wave {wave} of stage {stage}"):
                    assert journal.pinned(what) == relay.pinned(what), "two views were mixed"


def check_company(world: Deviants) -> None:
    """With honest relays, nobody's answer is the only new one of a wave: the collector alone cannot
    single anybody out."""
    if world.bad:
        return
    seen: dict[str, set[str]] = defaultdict(set)
    last = world.cast.proposal.route.hops - 1
    for (place, stage, wave, name), people in sorted(world.hidden.items(), key=_by_wave):
        drawn = world.drawn
        if place not in drawn.ways(stage)[name][last:] and wave == 0:
            continue
        new = people - seen[name]
        assert len(new) != 1, (stage, wave, name, "one new answer came alone")
        assert len(people) != 1, (stage, wave, name, "one answer came alone, new or not")
        seen[name] |= people


def _by_wave(entry: tuple[tuple[int, int, int, str], set[str]]) -> tuple[int, int]:
    return entry[0][1:3]


def check_certificate(world: Deviants) -> None:
    """If one is made, of what the collector has: by any honest relay of a question's circuit so
    many people's answers were passed on together."""
    if not world.collector.is_over or not world.store.reports():
        return
    proposal = world.cast.proposal
    try:
        certificate = harvested(proposal, world.store, world.cast.collector).certificate
    except UsageError:
        return  # there is nothing to learn from
    assert certificate.amplified is not None
    certificate.verify()
    for hidden in certificate.amplified.questions:
        about = (hidden.stage, hidden.wave, hidden.question)
        honest = [
            len(people) for (place, *key), people in world.hidden.items() if tuple(key) == about
        ]
        assert hidden.mixed <= max(1, min(honest, default=1)), (hidden, honest)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_deviating_schedules(chunk: int) -> None:
    habits: Counter[str] = Counter()
    for seed in range(chunk * SCHEDULES // CHUNKS, (chunk + 1) * SCHEDULES // CHUNKS):
        world = played(seed)
        habits.update(world.habits)
        habits.update(habit for one in world.bad.values() for habit in one)
    assert set(habits) >= set(COLLECTOR)


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(LONG_CHUNKS))
def test_many_deviating_schedules(chunk: int) -> None:
    first = SCHEDULES + chunk * LONG // LONG_CHUNKS
    habits = Counter[str]()
    for seed in range(first, first + LONG // LONG_CHUNKS):
        habits.update(h for one in played(seed).bad.values() for h in one)
    assert set(habits) == set(RELAYS)


@pytest.mark.skipif("SEED" not in os.environ, reason="for replaying one schedule")
def test_replay() -> None:
    played(int(os.environ["SEED"]))


def test_the_world_would_object() -> None:
    """A device that draws its answer anew, and a figure that is overstated, are found."""
    world = Deviants(3)
    world.run(most=3000.0)
    person = world.people[0].key
    world.gifts[person]["table-0"] |= {b"one", b"another"}
    with pytest.raises(AssertionError, match="two answers"):
        check_gifts(world)
