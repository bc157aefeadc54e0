"""How many reports are mixed: the bound against exact sums, and its chance against all circuits."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import comb

import pytest
from tacit.channels.crowd.layers import layers
from tacit.channels.crowd.mixing import meeting_chance, mixed_at_least

from tacit.errors import UsageError


def exactly_below(count: int, trials: int, chance: Fraction) -> Fraction:
    return sum(
        (comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(count)),
        Fraction(0),
    )


@pytest.mark.parametrize("failure", [0.3, 0.01, 1e-9])
@pytest.mark.parametrize(("relays", "hops"), [(1, 1), (2, 1), (5, 1), (5, 2), (9, 3), (3, 3)])
@pytest.mark.parametrize("n", [1, 2, 7, 100, 301])
def test_the_bound_is_the_exact_quantile(n: int, relays: int, hops: int, failure: float) -> None:
    bound = mixed_at_least(n, relays, hops, failure)
    chance = Fraction(meeting_chance(relays, hops))
    assert exactly_below(bound - 1, n - 1, chance) <= Fraction(failure)
    if bound < n:
        assert exactly_below(bound, n - 1, chance) > Fraction(failure)


@pytest.mark.parametrize(("relays", "hops"), [(1, 1), (4, 1), (4, 2), (5, 2), (3, 3), (8, 3)])
def test_the_chance_is_that_of_all_circuits(relays: int, hops: int) -> None:
    """Counted: in how many circuits the honest relay stands, wherever that is."""
    circuits = list(product(*layers(relays, hops)))
    standing = [sum(honest in circuit for circuit in circuits) for honest in range(relays)]
    assert Fraction(meeting_chance(relays, hops)).limit_denominator(relays) == Fraction(
        min(standing), len(circuits)
    )


@pytest.mark.parametrize(("relays", "hops"), [(5, 3), (6, 2), (7, 3)])
def test_leaving_out_silent_relays_makes_no_layer_larger(relays: int, hops: int) -> None:
    """So the chance holds in every wave, whoever is known to be silent by then."""
    least = meeting_chance(relays, hops)
    for count in range(relays + 1):
        for silent in combinations(range(relays), count):
            sizes = [len(layer) for layer in layers(relays, hops, silent)]
            assert min(1 / size for size in sizes) >= least


@pytest.mark.parametrize(("relays", "hops"), [(5, 3), (8, 4)])
def test_circuits_that_meet_could_go_on_each_other_s_way(relays: int, hops: int) -> None:
    """Whoever knows both ways up to the honest relay, and both ways after it, cannot join them."""
    circuits = set(product(*layers(relays, hops)))
    for one, other in product(circuits, circuits):
        for hop in range(hops):
            if one[hop] == other[hop]:
                assert one[:hop] + other[hop:] in circuits


@pytest.mark.parametrize(("relays", "hops"), [(5, 3), (6, 3), (5, 2)])
def test_fewer_dishonest_relays_than_hops_hold_no_circuit_alone(relays: int, hops: int) -> None:
    circuits = list(product(*layers(relays, hops)))
    for bad in combinations(range(relays), hops - 1):
        assert not any(set(circuit) <= set(bad) for circuit in circuits)


def test_known_figures() -> None:
    """As scipy.stats.binom.ppf has them."""
    assert mixed_at_least(1, 5, 3, 1e-9) == 1
    assert mixed_at_least(1000, 1, 1, 1e-9) == 1000
    assert mixed_at_least(1000, 5, 2, 1e-9) == 247
    assert mixed_at_least(1000, 6, 3, 1e-9) == 406
    assert mixed_at_least(10_000, 6, 3, 1e-9) == 4701


def test_more_people_more_relays_and_more_risk_change_it_the_right_way() -> None:
    by_people = [mixed_at_least(n, 5, 2, 1e-6) for n in range(1, 400)]
    assert by_people == sorted(by_people)
    by_relays = [mixed_at_least(1000, relays, 2, 1e-6) for relays in range(2, 30)]
    assert by_relays == sorted(by_relays, reverse=True)
    by_risk = [mixed_at_least(1000, 5, 2, 10.0**-k) for k in range(1, 15)]
    assert by_risk == sorted(by_risk, reverse=True)


@pytest.mark.parametrize(
    ("n", "relays", "hops", "failure"),
    [(0, 5, 2, 0.1), (10, 5, 6, 0.1), (10, 5, 0, 0.1), (10, 5, 2, 0.0), (10, 5, 2, 1.0)],
)
def test_impossible_questions_are_refused(n: int, relays: int, hops: int, failure: float) -> None:
    with pytest.raises(UsageError):
        mixed_at_least(n, relays, hops, failure)
