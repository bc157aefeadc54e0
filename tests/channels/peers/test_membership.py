"""One peer in one group: what it agrees to, what it refuses, and when it pays."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from small_network import (
    GROUP,
    PATIENCE,
    NotingPurse,
    aggregated,
    begun_group,
    key_of,
    member_of,
    pact_of,
)

from tacit.channels.peers.letters import Seat
from tacit.channels.peers.membership import Membership
from tacit.channels.peers.publication import checked
from tacit.channels.peers.seats import curator_of, seated
from tacit.channels.roles.letters import Letter, write
from tacit.crypto.lots import opens
from tacit.errors import CheckFailed, Refused, Unreachable

PACT = pact_of()


@pytest.fixture
def members() -> list[Membership]:
    found = [member_of(PACT, place, purse=NotingPurse()) for place in range(4)]
    return sorted(found, key=lambda member: member.seat.descriptor.key)


def seats_of(members: list[Membership]) -> list[Seat]:
    return [member.seat for member in members]


def formed(members: list[Membership]) -> tuple[list[bytes], list[str]]:
    """Seeds and signatures, as an honest initiator lists them."""
    found = [member.form(seats_of(members), 0.0) for member in members]
    return [one.seed for one in found], [one.signature for one in found]


def purse(member: Membership) -> NotingPurse:
    found: NotingPurse = member._budget._purse  # type: ignore[attr-defined]
    return found


# ── forming ──


def test_what_cannot_be_paid_is_not_revealed(members: list[Membership]) -> None:
    """Nor is anybody told what is left; and the group is over for us."""
    poor = member_of(PACT, 0, purse=NotingPurse(0))
    others = [m for m in members if m.seat.descriptor.key != poor.seat.descriptor.key]
    everyone = sorted([poor, *others], key=lambda m: m.seat.descriptor.key)
    with pytest.raises(Refused, match=r"^we cannot take part any more\.$"):
        poor.form(seats_of(everyone), 0.0)
    assert poor.over
    assert not poor.has_revealed
    with pytest.raises(Refused, match="over for us"):
        poor.form(seats_of(everyone), 0.0)


def test_nothing_is_reserved_before_all_seats_are_known(members: list[Membership]) -> None:
    assert all(not purse(member).held for member in members)
    members[0].form(seats_of(members), 0.0)
    assert purse(members[0]).held == {GROUP}
    assert all(not purse(member).held for member in members[1:])


def test_a_seat_has_a_key_of_its_own_and_hides_the_seed(members: list[Membership]) -> None:
    for member in members:
        assert member.party_key is not None
        assert member.party_key.public_key == member.seat.party
        assert member.seat.party != member.seat.descriptor.key
        seed = member.form(seats_of(members), 0.0).seed
        assert opens(member.seat.commitment, seed)
        assert seed.hex() not in str(member.seat)
    assert len({member.seat.party for member in members}) == 4


def test_it_reveals_for_one_list_of_seats(members: list[Membership]) -> None:
    first = members[0].form(seats_of(members), 0.0)
    assert members[0].form(seats_of(members), 5.0) == first  # told twice
    others = [*members[:3], member_of(PACT, 7)]
    others.sort(key=lambda member: member.seat.descriptor.key)
    with pytest.raises(Refused, match="formed with other members before"):
        members[0].form(seats_of(others), 5.0)


def test_it_refuses_a_list_in_which_its_own_seat_is_another(members: list[Membership]) -> None:
    """… even one that it could have signed itself: the party key would not be this group's."""
    own, seats = members[1], seats_of(members)
    for seed, party in ((b"s" * 32, own.seat.party), (b"s" * 32, key_of("x").public_key)):
        key = next(k for k in map(key_of, range(4)) if k.public_key == own.seat.descriptor.key)
        seats[1] = seated(PACT, GROUP, "", key, own.seat.descriptor, party, seed)
        with pytest.raises(CheckFailed, match="our seat is not ours"):
            own.form(seats, 0.0)
    with pytest.raises(CheckFailed, match="our seat is not ours"):
        own.form(
            seats_of(
                sorted(
                    [members[0], *members[2:], member_of(PACT, 5)],
                    key=lambda m: m.seat.descriptor.key,
                )
            ),
            0.0,
        )


def test_it_refuses_forged_seats(members: list[Membership]) -> None:
    seats = seats_of(members)
    forged = [msgspec.structs.replace(seats[0], commitment="00" * 32), *seats[1:]]
    for bad in (forged, seats[:3], [*seats, member_of(PACT, 6).seat], [*seats[:3], seats[2]]):
        with pytest.raises(CheckFailed):
            members[3].form(bad, 0.0)
    assert not purse(members[3]).held  # nothing was written
    assert not members[3].over  # the right list may come


# ── beginning ──


def test_the_curator_is_whom_everyones_seeds_name(members: list[Membership]) -> None:
    seeds, signatures = formed(members)
    for member in members:
        member.begin(seeds, signatures, 0.0)
    place = curator_of(PACT, GROUP, seats_of(members), seeds)
    assert [member.curator is not None for member in members] == [i == place for i in range(4)]
    studies = {member.study.digest for member in members if member.study}
    assert len(studies) == 1
    study = members[0].study
    assert study is not None
    assert study.aggregator.key == members[place].seat.descriptor.key


def test_it_begins_after_forming_and_with_committed_seeds(members: list[Membership]) -> None:
    with pytest.raises(Refused, match="not been formed yet"):
        members[0].begin([b"s" * 32] * 4, [""] * 4, 0.0)
    seeds, signatures = formed(members)
    with pytest.raises(CheckFailed, match="not what it committed to"):
        members[0].begin([*seeds[:3], b"s" * 32], signatures, 0.0)
    with pytest.raises(CheckFailed, match="not everybody's part"):
        members[0].begin(seeds[:3], signatures[:3], 0.0)
    for bad in (signatures[:3], signatures[::-1], ["", *signatures[1:]], ["zz"] * 4):
        with pytest.raises(CheckFailed, match="part"):
            members[0].begin(seeds, bad, 0.0)
    assert members[0].study is None
    members[0].begin(seeds, signatures, 0.0)


def test_it_begins_once(members: list[Membership]) -> None:
    seeds, signatures = formed(members)
    members[0].begin(seeds, signatures, 0.0)
    study = members[0].study
    members[0].begin(seeds, signatures, 1.0)  # told twice
    assert members[0].study is study
    with pytest.raises(Refused, match="begun with other seeds"):
        members[0].begin(seeds[::-1], signatures[::-1], 1.0)


# ── the aggregation ──


@pytest.mark.parametrize("group_size", [3, 4, 6])
def test_a_group_ends_with_one_publication_that_all_have_paid_for(group_size: int) -> None:
    pact = pact_of(group_size=group_size)
    members = begun_group(pact)
    publication = aggregated(members)
    assert checked(pact, write(publication)) == publication
    for member in members:
        assert purse(member).paid == {GROUP: publication.certificate}
        assert not purse(member).held
        member.let_go("it is over")  # changes nothing
        assert purse(member).paid == {GROUP: publication.certificate}


def test_nothing_is_paid_until_something_is_revealed(members: list[Membership]) -> None:
    formed(members)
    members[0].let_go("nobody came")
    assert (purse(members[0]).paid, purse(members[0]).given_back) == ({}, [GROUP])
    members[1].let_go("somebody did not reveal")
    members[1].let_go("told twice")
    assert (purse(members[1]).paid, purse(members[1]).given_back) == ({}, [GROUP])
    assert members[1].over


def test_what_was_begun_is_paid_without_a_model_too() -> None:
    members = begun_group(PACT)
    (curating,) = (member for member in members if member.curator)
    core = curating.curator
    assert core is not None
    for now in range(1, 40):
        for member in members:
            for letter in member.turns(float(now)):
                core.tick(now)
                reply = core.answer(member.seat.party, letter, now)
                lost = reply.kind == "model"
                member.told(letter, Unreachable("gone.") if lost else reply, now)
    assert core.is_over
    for member in members:
        assert member.result is None
        member.let_go("the curator vanished")
        assert purse(member).paid == {GROUP: None}


def test_silence_of_the_curator_ends_nothing_but_its_refusal_does() -> None:
    member, other = begun_group(PACT)[:2]
    (asked,) = member.turns(0.0)
    assert member.turns(0.0) == []  # one letter at a time
    member.told(asked, Unreachable("nobody answers there."), 0.0)
    assert not member.over
    assert member.turns(0.0) == []
    (asked,) = member.turns(PATIENCE)
    member.told(asked, Refused("this party is not in the study."), PATIENCE)
    assert member.over
    assert purse(member).given_back == [GROUP]
    assert member.turns(2 * PATIENCE) == []
    (asked,) = other.turns(0.0)
    other.told(asked, Letter("roster", 0, b"\xff"), 0.0)
    assert other.over


def test_it_waits_for_a_time_and_no_longer(members: list[Membership]) -> None:
    member = members[0]
    accepted = member.moment
    assert PATIENCE < accepted < 10 * PATIENCE
    seeds, signatures = formed(members)
    member.begin(seeds, signatures, accepted)
    assert member.moment == 0.0  # a turn is due
    member.turns(accepted)
    assert accepted < member.moment < accepted + 10 * PATIENCE
