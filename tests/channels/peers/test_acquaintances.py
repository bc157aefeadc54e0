"""Who is remembered: everyone as likely as anybody else, however loud."""

from __future__ import annotations

from collections import Counter

from scipy.stats import chisquare

from tacit.channels.peers.acquaintances import PATIENCE, PLACES, Acquaintances
from tacit.channels.peers.descriptors import Descriptor
from tacit.crypto.prg import SeededRandomness


def met(number: int, time: int = 0, host: str | None = None) -> Descriptor:
    address = f"https://{host or f'p{number}.example'}:1"
    return Descriptor(f"{number:064x}", address, time, (), True)


def held(acquaintances: Acquaintances) -> list[Descriptor]:
    return [place.held for place in acquaintances._places if place.held is not None]


def test_nobody_at_first() -> None:
    assert Acquaintances(SeededRandomness(1)).recall() is None


def test_often_met_is_not_sooner_remembered() -> None:
    """Number 0 is met fifty times as often as each of the other nine. χ² over which number the
    salted places keep; false alarms once in 10,000 seeds."""
    counts: Counter[int] = Counter()
    for seed in range(120):
        some = Acquaintances(SeededRandomness(seed))
        for number in range(1, 10):
            for _ in range(50):
                some.meet(met(0))
            some.meet(met(number))
        counts.update(int(descriptor.key, 16) for descriptor in held(some)[1:])
    assert sum(counts.values()) == 120 * (PLACES - 1)
    assert chisquare([counts[number] for number in range(10)]).pvalue > 1e-4


def test_a_thousand_keys_at_one_address_weigh_as_one() -> None:
    liars = 0
    for seed in range(40):
        some = Acquaintances(SeededRandomness(seed))
        for number in range(9):
            some.meet(met(number))
        for number in range(100, 200):
            some.meet(met(number, host="10.0.0.1"))
        liars += sum(int(descriptor.key, 16) >= 100 for descriptor in held(some))
    assert 10 <= liars <= 50  # a tenth of 280 salted places; 100/109 of them if keys counted


def test_the_first_stays() -> None:
    some = Acquaintances(SeededRandomness(1))
    for number in range(200):
        some.meet(met(number))
    assert held(some)[0] == met(0)


def test_a_newer_address_replaces_an_older() -> None:
    some = Acquaintances(SeededRandomness(1))
    some.meet(met(1, time=5))
    some.meet(met(1, time=4))
    assert {descriptor.time for descriptor in held(some)} == {5}
    some.meet(met(1, time=6))
    assert {descriptor.time for descriptor in held(some)} == {6}


def test_who_never_answers_makes_room() -> None:
    some = Acquaintances(SeededRandomness(1))
    some.meet(met(1))
    for _ in range(PATIENCE - 1):
        some.missed(met(1).key)
    assert some.recall() == met(1)
    some.missed(met(1).key)
    assert some.recall() is None


def test_who_is_heard_of_again_is_given_new_patience() -> None:
    some = Acquaintances(SeededRandomness(1))
    some.meet(met(1, time=1))
    for time in range(2, 20):
        some.missed(met(1).key)
        some.meet(met(1, time=time))
    assert some.recall() == met(1, time=19)
