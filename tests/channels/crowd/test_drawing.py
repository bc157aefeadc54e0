"""The drawing of lots: everyone computes the same, and nobody can have chosen it."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from rehearsal import PEOPLE, Rehearsal, identity, secret

from tacit.channels.crowd.drawing import (
    checked_seed,
    keys_of,
    members_of,
    reveal,
    reveals,
    roster_digest,
    roster_of,
)
from tacit.channels.crowd.letters import Commitment, Drawn, Roster
from tacit.channels.crowd.plan import Plan, PlanTerms
from tacit.errors import CheckFailed

KEYS = [identity("drawing", number).public_key for number in range(20)]


def drawn_of(study: Rehearsal) -> Drawn:
    drawn = study.collector.bulletin(study.now).drawn
    assert drawn is not None
    return drawn


# ── rosters ──


@given(st.lists(st.sampled_from(KEYS)))
def test_a_roster_has_everyone_once_and_in_order(keys: list[str]) -> None:
    roster = roster_of(keys, {})
    assert keys_of(roster) == tuple(sorted(set(keys)))


@pytest.mark.parametrize(
    "keys",
    [bytes(31), bytes(33), bytes(64), b"\1" * 32 + bytes(32)],
    ids=["short", "long", "twice", "falling"],
)
def test_rosters_of_another_form_are_refused(keys: bytes) -> None:
    with pytest.raises(CheckFailed):
        keys_of(Roster(keys, {}))


def test_every_part_of_a_roster_is_in_its_digest() -> None:
    rosters = [
        roster_of(KEYS, {0: Commitment("0" * 64, "")}),
        roster_of(KEYS[1:], {0: Commitment("0" * 64, "")}),
        roster_of(KEYS, {1: Commitment("0" * 64, "")}),
        roster_of(KEYS, {0: Commitment("1" * 64, "")}),
        roster_of(KEYS, {0: Commitment("0" * 64, "1")}),
        roster_of(KEYS, {}),
    ]
    digests = {roster_digest(study, r) for r in rosters for study in ("5a" * 32, "5b" * 32)}
    assert len(digests) == 12


def test_members_are_a_group_that_was_proposed() -> None:
    listed = tuple(sorted(KEYS[:PEOPLE]))
    study = Rehearsal(members=listed, minimum=PEOPLE - 2).proposal
    assert members_of(study, roster_of(listed, {})) == listed
    assert members_of(study, roster_of(listed[:-2], {})) == listed[:-2]
    with pytest.raises(CheckFailed, match="9 people are in the roster; the proposal asks for 10"):
        members_of(study, roster_of(listed[:-3], {}))
    with pytest.raises(CheckFailed, match="13 people"):
        members_of(study, roster_of(KEYS[: PEOPLE + 1], {}))
    with pytest.raises(CheckFailed, match="not among those"):
        members_of(study, roster_of([*listed[1:], KEYS[PEOPLE]], {}))


# ── lots ──


def test_everyone_computes_the_same_seed() -> None:
    study = Rehearsal().drawn()
    drawn, roster = drawn_of(study), study.roster
    seed = checked_seed(study.proposal, roster, drawn)
    backwards = Drawn(drawn.seed, dict(reversed(drawn.reveals.items())))
    assert checked_seed(study.proposal, roster, backwards) == seed
    assert len(seed) == 32


def test_every_part_moves_the_seed() -> None:
    """Who holds back one part, or changes the roster, has drawn other lots."""
    study = Rehearsal().drawn()
    drawn, roster = drawn_of(study), study.roster
    seeds = {checked_seed(study.proposal, roster, drawn)}
    for place in drawn.reveals:
        fewer = {p: said for p, said in drawn.reveals.items() if p != place}
        seeds.add(checked_seed(study.proposal, roster, Drawn(drawn.seed, fewer)))
    other = Rehearsal(seed=3).drawn()  # other relays, another collector
    seeds.add(checked_seed(other.proposal, other.roster, drawn_of(other)))
    assert len(seeds) == 7


def test_a_reveal_is_for_one_roster_by_one_relay() -> None:
    study = Rehearsal().drawn()
    roster, said = study.roster, study.revealed(2)
    assert reveals(study.proposal, roster, 2, said)
    for place in (0, 1, 3, 4, 7, -3):
        assert not reveals(study.proposal, roster, place, said)
    smaller = msgspec.structs.replace(roster, keys=roster.keys[32:])
    assert not reveals(study.proposal, smaller, 2, said)
    forgetful = msgspec.structs.replace(roster, commitments={})
    assert not reveals(study.proposal, forgetful, 2, said)
    found = roster_digest(study.proposal.digest, roster)
    another = reveal(study.relays[2], study.proposal.digest, found, secret("another seed"))
    assert not reveals(study.proposal, roster, 2, another), "signed, but not committed to"
    mine = msgspec.structs.replace(
        roster, commitments={**roster.commitments, 2: Commitment("é" * 64, "")}
    )
    assert not reveals(study.proposal, mine, 2, said)


# ── assignment ──


@pytest.mark.parametrize(
    "plan", [None, PlanTerms(kind="anonml", partitions=3, subsets=1, size=2)], ids=["one", "anonml"]
)
def test_collector_and_people_agree_on_who_is_asked_what(plan: PlanTerms | None) -> None:
    study = Rehearsal(plan=plan).drawn()
    seed = checked_seed(study.proposal, study.roster, drawn_of(study))
    drawn_up = study.proposal.drawn_up
    everyone = drawn_up.everyone(PEOPLE, seed)
    asking = study.collector._asking
    assert asking is not None
    counts: Counter[str] = Counter()
    for place, key in enumerate(keys_of(study.roster)):
        person = next(p for p in study.people if p.public_key == key)
        mine = {question.name for question in study.asked(person)}
        lots = zip(drawn_up.draws, everyone[:, place], strict=True)
        assert mine == {name for draw, lot in lots for name in draw[lot].questions}
        assert set(asking.drawn.names(key)) == mine
        counts.update(mine)
    assert counts == Counter(drawn_up.expected(PEOPLE))
    assert asking.drawn.names("0" * 64) == ()


def plan_of(people: int) -> Plan:
    return Rehearsal(people).proposal.drawn_up


def test_partitions_are_disjoint_and_whole() -> None:
    plan, people = plan_of(PEOPLE), 1000
    everyone = plan.everyone(people, secret("lots"))
    assert everyone.shape == (1, people)
    sizes = Counter(everyone[0].tolist())
    assert {plan.draws[0][lot].questions[0]: n for lot, n in sizes.items()} == plan.expected(people)


def test_lots_cannot_be_changed_by_whoever_has_them() -> None:
    everyone = plan_of(PEOPLE).everyone(PEOPLE, secret("lots"))
    with pytest.raises(ValueError, match="read-only"):
        everyone[0, 0] = 1


def test_lots_fall_on_everyone_alike() -> None:
    """Over many seeds a person gets each question as often as its part of the group says.

    A count of 2,000 draws is wrong by 6 of its standard deviations once in 500 million.
    """
    plan, draws = plan_of(PEOPLE), 2000
    counts = Counter(
        int(lot) for n in range(draws) for lot in plan.everyone(PEOPLE, secret("alike", n))[:, 5]
    )
    for lot, question in enumerate(plan.questions):
        share = plan.expected(PEOPLE)[question.name] / PEOPLE
        spread = np.sqrt(draws * share * (1 - share))
        assert abs(counts[lot] - draws * share) < 6 * spread
