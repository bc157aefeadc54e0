"""Seats: who sits in a group by their own word, and whom the lots fall on."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from scipy.stats import chisquare

sys.path.insert(0, str(Path(__file__).parent))

from small_network import GROUP, descriptor_of, key_of, pact_of

from tacit.channels.peers.letters import Seat
from tacit.channels.peers.pact import Pact
from tacit.channels.peers.seats import checked_seats, curator_of, group_study, seated, seats_digest
from tacit.crypto.lots import commitment
from tacit.crypto.signing import canonical
from tacit.errors import CheckFailed

PACT = pact_of()
SEEDS = {place: bytes([place]) * 32 for place in range(8)}


def seat_of(place: int, pact: Pact = PACT, group: str = GROUP, tag: str = "") -> Seat:
    own = descriptor_of(pact, place, (tag,) if tag else ())
    party = key_of(f"party {place}").public_key
    return seated(pact, group, tag, key_of(place), own, party, SEEDS[place])


def listed(*places: int, pact: Pact = PACT, group: str = GROUP, tag: str = "") -> list[Seat]:
    seats = [seat_of(place, pact, group, tag) for place in places]
    return sorted(seats, key=lambda seat: seat.descriptor.key)


def seeds_of(seats: list[Seat]) -> list[bytes]:
    by_commitment = {commitment(seed): seed for seed in SEEDS.values()}
    return [by_commitment[seat.commitment] for seat in seats]


def changed(seats: list[Seat], place: int = 1, **fields: object) -> list[Seat]:
    found = list(seats)
    found[place] = msgspec.structs.replace(found[place], **fields)
    return found


# ── who sits ──


def test_everyone_by_its_word() -> None:
    checked_seats(PACT, GROUP, "", listed(0, 1, 2, 3))
    tags = pact_of(publish="tags")
    checked_seats(tags, GROUP, "north", listed(0, 1, 2, 3, pact=tags, tag="north"))


FORGED: dict[str, Callable[[], list[Seat]]] = {
    "too few": lambda: listed(0, 1, 2),
    "too many": lambda: listed(0, 1, 2, 3, 4),
    "nobody": list,
    "one twice": lambda: listed(0, 1, 1, 2),
    "not in order": lambda: listed(0, 1, 2, 3)[::-1],
    "another's commitment": lambda: changed(listed(0, 1, 2, 3), commitment=commitment(SEEDS[7])),
    "another's party": lambda: changed(listed(0, 1, 2, 3), party=key_of("x").public_key),
    "one party for two": lambda: changed(listed(0, 1, 2, 3), party=listed(0, 1, 2, 3)[0].party),
    "no signature": lambda: changed(listed(0, 1, 2, 3), signature=""),
    "of another group": lambda: listed(0, 1, 2, 3, group="6b" * 32),
    "of another network": lambda: listed(0, 1, 2, 3, pact=pact_of(name="other")),
    "a forged descriptor": lambda: changed(
        listed(0, 1, 2, 3),
        descriptor=msgspec.structs.replace(
            listed(0, 1, 2, 3)[1].descriptor, address="https://elsewhere.example:1"
        ),
    ),
}


@pytest.mark.parametrize("kind", FORGED)
def test_nobody_is_seated_by_others(kind: str) -> None:
    with pytest.raises(CheckFailed):
        checked_seats(PACT, GROUP, "", FORGED[kind]())


@pytest.mark.parametrize(
    ("party", "committed"),
    [
        ("not a key", commitment(SEEDS[3])),
        ("01" + "00" * 31, commitment(SEEDS[3])),  # of small order: anybody can sign for it
        (listed(0)[0].party.upper(), commitment(SEEDS[3])),  # another's, but for its spelling
        (key_of(3).public_key, commitment(SEEDS[3])),  # its own identity
        (key_of(0).public_key, commitment(SEEDS[3])),
        (key_of("party 3").public_key, "c" * 10_000),
        (key_of("party 3").public_key, ""),
    ],
)
def test_a_seat_that_can_never_begin_is_none(party: str, committed: str) -> None:
    """It is seen before anything is reserved."""
    own = descriptor_of(PACT, 3)
    words = ["tacit peers seat 2", PACT.digest, GROUP, "", own.key, party, committed]
    signature = key_of(3).sign(canonical([*words, own.signature]))
    seats = [*listed(0, 1, 2), Seat(own, party, committed, signature)]
    with pytest.raises(CheckFailed, match=r"as many different members|that is none"):
        checked_seats(PACT, GROUP, "", sorted(seats, key=lambda seat: seat.descriptor.key))


def test_a_tag_is_what_all_have_said_and_have() -> None:
    tags = pact_of(publish="tags")
    north = listed(0, 1, 2, 3, pact=tags, tag="north")
    with pytest.raises(CheckFailed, match="only there"):
        checked_seats(tags, GROUP, "", north)
    with pytest.raises(CheckFailed, match="only there"):
        checked_seats(PACT, GROUP, "north", listed(0, 1, 2, 3))
    with pytest.raises(CheckFailed, match="not all of its members have"):
        checked_seats(tags, GROUP, "south", north)
    both = descriptor_of(tags, 0, ("north", "south"))
    party = key_of("party 0").public_key
    own = seated(tags, GROUP, "south", key_of(0), both, party, SEEDS[0])
    mixed = [own if seat.descriptor.key == both.key else seat for seat in north]
    with pytest.raises(CheckFailed, match="did not say so"):
        checked_seats(tags, GROUP, "north", mixed)


def test_only_members_of_a_closed_network_sit() -> None:
    keys = tuple(key_of(place).public_key for place in range(4))
    closed = pact_of(members=keys)
    checked_seats(closed, GROUP, "", listed(0, 1, 2, 3, pact=closed))
    with pytest.raises(CheckFailed):
        checked_seats(closed, GROUP, "", listed(0, 1, 2, 4, pact=closed))


# ── whom the lots fall on ──


def test_every_seed_counts_and_only_what_was_committed_to() -> None:
    seats = listed(0, 1, 2, 3)
    seeds = seeds_of(seats)
    curator = curator_of(PACT, GROUP, seats, seeds)
    assert 0 <= curator < 4
    assert curator == curator_of(PACT, GROUP, seats, seeds)
    for place in range(4):
        other = [*seeds[:place], SEEDS[7], *seeds[place + 1 :]]
        with pytest.raises(CheckFailed, match="not what it committed to"):
            curator_of(PACT, GROUP, seats, other)
    with pytest.raises(CheckFailed, match="not what it committed to"):
        curator_of(PACT, GROUP, seats, [seeds[1], seeds[0], *seeds[2:]])
    with pytest.raises(CheckFailed, match="not everybody's part"):
        curator_of(PACT, GROUP, seats, seeds[:3])
    with pytest.raises(CheckFailed):
        curator_of(PACT, GROUP, seats, [*seeds[:3], b"short"])


def test_the_lots_are_fair_whatever_three_of_four_have_chosen() -> None:
    """The last one's seed alone makes the draw uniform. False alarms: one in a thousand, but the
    seeds are always the same."""
    drawn: Counter[int] = Counter()
    for number in range(400):
        last = number.to_bytes(32, "big")
        seats = listed(0, 1, 2, 3)
        own = descriptor_of(PACT, 3)
        mine = seated(PACT, GROUP, "", key_of(3), own, key_of("party 3").public_key, last)
        place = next(i for i, seat in enumerate(seats) if seat.descriptor.key == own.key)
        seeds = [*seeds_of(seats)[:place], last, *seeds_of(seats)[place + 1 :]]
        drawn[curator_of(PACT, GROUP, [*seats[:place], mine, *seats[place + 1 :]], seeds)] += 1
    assert chisquare([drawn[place] for place in range(4)]).pvalue > 1e-3


def test_what_is_revealed_for_is_one_list_of_one_group() -> None:
    seats = listed(0, 1, 2, 3)
    names = {
        seats_digest(PACT, GROUP, seats),
        seats_digest(PACT, "6b" * 32, seats),
        seats_digest(pact_of(view=21), GROUP, seats),
        seats_digest(PACT, GROUP, listed(0, 1, 2, 4)),
        seats_digest(PACT, GROUP, changed(seats, signature="00" * 64)),
    }
    assert len(names) == 5


# ── the study that follows ──


def test_all_members_run_the_same_study() -> None:
    seats = listed(0, 1, 2, 3)
    studies = [group_study(PACT, GROUP, seats, place) for place in range(4)]
    assert len({study.digest for study in studies}) == 4
    study = group_study(pact_of(), GROUP, listed(0, 1, 2, 3), 2)
    assert study.digest == studies[2].digest
    assert study.aggregator.key == seats[2].descriptor.key
    assert study.aggregator.address == seats[2].descriptor.address
    assert [holder.key for holder in study.holders] == [seat.party for seat in seats]
    assert study.promise == PACT.promise
    assert (study.take_part.minimum, study.take_part.maximum) == (3, 4)
    assert study.agreed_consortium.colluding == 1
    assert study.agreed_consortium.smallest == PACT.smallest


def test_as_published_nobody_may_collude() -> None:
    pact = pact_of(protocol="as-published")
    study = group_study(pact, GROUP, listed(0, 1, 2, 3, pact=pact), 0)
    assert study.agreed_consortium.colluding == 0
    assert study.agreed_consortium.protocol == "as-published"
