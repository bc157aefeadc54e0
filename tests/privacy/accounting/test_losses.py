"""Each mechanism's loss, recomputed by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import PromiseError, UsageError
from tacit.privacy import Bound, Release
from tacit.privacy.accounting.losses import (
    LOCAL,
    LOSSES,
    GaussianLoss,
    PureLoss,
    leak,
    loss_of,
    merge,
    upward,
)

L1, L2, LINF = (Bound(norm, Fraction(3)) for norm in ("L1", "L2", "Linf"))
AT_SCALES = {"threshold_scale": Fraction(6), "query_scale": Fraction(12)}
RR = {"m": Fraction(4), "p": Fraction(1, 2)}
SUBSET = {"m": Fraction(6), "size": Fraction(2), "p": Fraction(2, 3)}
HADAMARD = {"m": Fraction(6), "p": Fraction(3, 4)}
PQ = {"p": Fraction(1, 2), "q": Fraction(1, 4)}

EXAMPLES = {
    "above-threshold": (Release("above-threshold", LINF, parameters=AT_SCALES), 1.0),
    "exponential": (Release("exponential", LINF, Fraction(12)), 0.5),
    "gaussian": (Release("gaussian", L2, Fraction(10), Fraction(1)), 3 / math.sqrt(96)),
    "l2-laplace": (Release("l2-laplace", L2, Fraction(4)), 0.75),
    "laplace": (Release("laplace", L1, Fraction(4)), 0.75),
    "permute-and-flip": (Release("permute-and-flip", LINF, Fraction(12)), 0.5),
    "pq-perturbation": (Release("pq-perturbation", parameters=PQ), math.log(3)),
    "randomised-response": (Release("randomised-response", parameters=RR), math.log(3)),
    "subset-selection": (Release("subset-selection", parameters=SUBSET), math.log(4)),
    "hadamard-response": (Release("hadamard-response", parameters=HADAMARD), math.log(3)),
}


def size(release: Release) -> float:
    loss = loss_of(release)
    return loss.mu if isinstance(loss, GaussianLoss) else float(loss.epsilon)


def test_every_mechanism_has_an_example() -> None:
    assert set(EXAMPLES) == set(LOSSES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_loss_is_the_one_of_the_theorem_rounded_up(name: str) -> None:
    release, expected = EXAMPLES[name]
    assert expected <= size(release) * (1 + 1e-15)
    assert size(release) == pytest.approx(expected, rel=1e-12)
    assert loss_of(replace(release, count=7)) == replace(loss_of(release), count=7)


@pytest.mark.parametrize("name", [n for n, (r, _) in EXAMPLES.items() if r.scale is not None])
def test_more_noise_costs_less_and_a_wider_bound_more(name: str) -> None:
    release, _ = EXAMPLES[name]
    assert release.scale is not None
    assert release.bound is not None
    assert size(replace(release, scale=2 * release.scale)) < size(release)
    wider = Bound(release.bound.norm, 2 * release.bound.value)
    assert size(replace(release, bound=wider)) > size(release)


@pytest.mark.parametrize("name", [n for n, (r, _) in EXAMPLES.items() if r.bound is not None])
def test_a_bound_in_another_norm_is_refused_unless_there_is_one_dimension(name: str) -> None:
    release, _ = EXAMPLES[name]
    assert release.bound is not None
    other = L1 if release.bound.norm != "L1" else L2
    assert size(replace(release, bound=other)) == size(release)
    with pytest.raises(PromiseError, match="covers a bound in"):
        loss_of(replace(release, bound=other, length=2))
    with pytest.raises(PromiseError, match="needs a bound"):
        loss_of(replace(release, bound=None))


def test_only_the_exponential_mechanism_has_bounded_range() -> None:
    bounded = {name for name, (r, _) in EXAMPLES.items() if getattr(loss_of(r), "bounded_range", 0)}
    assert bounded == {"exponential"}


def test_a_coarse_grid_is_refused_with_a_remedy() -> None:
    with pytest.raises(PromiseError, match="step below"):
        loss_of(Release("gaussian", L2, Fraction(4), Fraction(1)))


@pytest.mark.parametrize("name", LOCAL)
def test_local_randomisers_are_not_amplified_by_sampling(name: str) -> None:
    with pytest.raises(UsageError, match="shuffle"):
        loss_of(replace(EXAMPLES[name][0], sampling=Fraction(1, 2)))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("randomised-response", {"m": Fraction(1), "p": Fraction(1, 2)}),
        ("randomised-response", {"m": Fraction(3), "p": Fraction(1)}),
        ("randomised-response", {"p": Fraction(1, 2)}),
        ("pq-perturbation", {"p": Fraction(1), "q": Fraction(1, 2)}),
        ("subset-selection", {**SUBSET, "size": Fraction(6)}),
        ("subset-selection", {**SUBSET, "size": Fraction(1, 2)}),
        ("subset-selection", {**SUBSET, "m": Fraction(13, 2)}),
        ("subset-selection", {**SUBSET, "p": Fraction(0)}),
        ("subset-selection", HADAMARD),
        ("hadamard-response", {"p": Fraction(1)}),
        ("hadamard-response", {}),
        ("above-threshold", {"threshold_scale": Fraction(0), "query_scale": Fraction(1)}),
        ("laplace", {}),
    ],
)
def test_impossible_parameters_are_refused(name: str, parameters: dict[str, Fraction]) -> None:
    with pytest.raises(PromiseError):
        loss_of(Release(name, LINF, parameters=parameters))


def test_an_unknown_mechanism_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match="laplace"):
        loss_of(Release("magic"))


def test_sampling_a_pure_release_amplifies_it() -> None:
    release = Release("laplace", L1, Fraction(3), sampling=Fraction(1, 10))
    assert size(release) == pytest.approx(math.log1p(0.1 * math.expm1(1)), rel=1e-12)


@given(st.fractions(min_value=0, max_value=10**6))
def test_upward_is_the_next_float(value: Fraction) -> None:
    found = upward(value)
    assert Fraction(found) >= value
    assert found == 0 or Fraction(math.nextafter(found, -math.inf)) < value


@given(
    st.fractions(min_value=Fraction(1, 10**6), max_value=Fraction(999, 1000)), st.integers(2, 99)
)
def test_randomised_response_is_never_rounded_down(p: Fraction, m: int) -> None:
    mpmath = pytest.importorskip("mpmath")
    release = Release("randomised-response", parameters={"m": Fraction(m), "p": p})
    odds = p * (m - 1) / (1 - p)
    with mpmath.workdps(60):
        exact = abs(mpmath.log(mpmath.mpf(odds.numerator) / odds.denominator))
        assert mpmath.mpf(size(release)) >= exact
        assert size(release) <= float(exact) * (1 + 1e-12) + 1e-300


def test_equal_losses_are_counted_together() -> None:
    one, other = PureLoss(Fraction(1), 2), GaussianLoss(1.0, 3)
    merged = merge([one, other, one, PureLoss(Fraction(1), 1, delta=1e-9)])
    assert set(merged) == {
        PureLoss(Fraction(1), 4),
        GaussianLoss(1.0, 3),
        PureLoss(Fraction(1), 1, delta=1e-9),
    }
    assert merge(merged[::-1]) == merged
    assert leak(merged) == 1e-9
