"""Releases over one secret sample, against the joint law of the whole mechanism, cell by cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.errors import CertificateInvalid, PromiseError, UsageError
from tacit.privacy import Adjacency, Bound, Norm, Promise, Release
from tacit.privacy.accounting import calibrate, cost, delta_of
from tacit.privacy.accounting.compose import ACCOUNTANTS, losses_of
from tacit.privacy.recompute import recomputed_epsilon

Reals = NDArray[np.float64]
ADD_REMOVE = Adjacency.ADD_REMOVE
some = settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
rates = st.sampled_from([Fraction(1, 50), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)])


def laplace(scale: float | Fraction, moved: int, **more: object) -> Release:
    return block("laplace", Norm.L1, scale, moved, **more)


def gaussian(scale: float | Fraction, moved: int, **more: object) -> Release:
    return block("gaussian", Norm.L2, scale, moved, **more)


def block(name: str, norm: Norm, scale: float | Fraction, moved: int, **more: object) -> Release:
    bound = Bound(norm, Fraction(moved))
    fields: dict[str, object] = {"sampling": Fraction(1, 10), "sample": "s", "step": Fraction(1)}
    return Release(name, bound, Fraction(scale), **{**fields, **more})  # type: ignore[arg-type]


# ── the truth, by enumeration ──


def noise(release: Release, reach: int) -> Reals:
    """The law of its noise on the integers −reach … reach."""
    assert release.scale is not None
    k, scale = np.arange(-reach, reach + 1), float(release.scale)
    if release.mechanism == "laplace":
        law = np.exp(-np.abs(k) / scale) * math.tanh(1 / (2 * scale))
    else:
        law = np.exp(-((k / scale) ** 2) / 2)
        law /= law.sum()
    return np.asarray(law, dtype=np.float64)


def laws(
    group: Sequence[Release], others: Sequence[Sequence[int]], reach: int
) -> tuple[Reals, Reals]:
    """What is seen with and without the unit, which moves every block as far as it may.

    `others` are in both data sets; everyone is in the sample with the same probability.
    """
    rate = float(group[0].sampling)
    unit = [int(r.bound.value) for r in group if r.bound is not None]
    known = [noise(release, reach) for release in group]

    def seen(people: Sequence[Sequence[int]]) -> Reals:
        total: Reals = np.zeros((2 * reach + 1,) * len(group))
        for present in product((False, True), repeat=len(people)):
            chance = math.prod(rate if here else 1 - rate for here in present)
            chosen = [p for p, here in zip(people, present, strict=True) if here]
            value = [sum(column) for column in zip(*chosen, strict=True)] or [0] * len(group)
            moved = [np.roll(law, v) for law, v in zip(known, value, strict=True)]
            total += chance * reduce(np.multiply.outer, moved)
        return total

    inner = (slice(2 * len(unit) * max(map(abs, unit)), -2 * len(unit) * max(map(abs, unit))),)
    cut = inner * len(group)  # without what np.roll carried over the edge
    return seen([*others, unit])[cut], seen(others)[cut]


def true_delta(first: Reals, second: Reals, epsilon: float) -> float:
    return max(
        float(np.maximum(a - math.exp(epsilon) * b, 0).sum())
        for a, b in ((first, second), (second, first))
    )


def true_epsilon(first: Reals, second: Reals, delta: float) -> float:
    low, high = 0.0, 60.0
    while high - low > 1e-7:
        middle = (low + high) / 2
        if true_delta(first, second, middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def twice(law: Reals) -> Reals:
    return np.asarray(np.multiply.outer(law.ravel(), law.ravel()))


# ── one run ──


@some
@given(
    st.lists(st.tuples(st.integers(2, 12), st.integers(1, 2)), min_size=2, max_size=3),
    rates,
    st.lists(st.integers(-2, 2), min_size=3, max_size=3),
)
def test_pure_blocks_cost_what_every_outcome_tells(
    sizes: list[tuple[int, int]], rate: Fraction, other: list[int]
) -> None:
    group = [laplace(Fraction(b, 2), moved, sampling=rate) for b, moved in sizes]
    first, second = laws(group, [other[: len(group)]], 20)
    ratios = np.log(first / second)
    truth = float(np.abs(ratios).max())
    claimed = cost(group, 0.0, ADD_REMOVE).epsilon
    again = recomputed_epsilon(group, 0.0)
    assert truth <= claimed * (1 + 1e-9)
    assert truth <= again * (1 + 1e-9)
    assert again == pytest.approx(claimed, rel=1e-9)
    # Nothing is wasted: somebody alone in the data is seen that well.
    alone, nobody = laws(group, [], 20)
    assert np.log(alone / nobody).max() == pytest.approx(claimed, rel=1e-9)


@some
@given(
    st.lists(st.tuples(st.integers(5, 12), st.integers(1, 6)), min_size=2, max_size=2),
    rates,
    st.lists(st.integers(-2, 2), min_size=2, max_size=2),
    st.sampled_from([1e-6, 1e-3]),
)
def test_gaussian_blocks_cost_the_joint_law(
    sizes: list[tuple[int, int]], rate: Fraction, other: list[int], delta: float
) -> None:
    group = [gaussian(sigma, moved, sampling=rate) for sigma, moved in sizes]
    found, again = cost(group, delta, ADD_REMOVE).epsilon, recomputed_epsilon(group, delta)
    for others in ([], [other]):
        first, second = laws(group, others, 130)
        truth = true_epsilon(first, second, delta)
        assert truth <= found * (1 + 1e-6) + 1e-6
        assert truth <= again * (1 + 1e-3) + 1e-6
        assert true_delta(first, second, found) <= delta * (1 + 1e-6) + 1e-12
        assert true_delta(first, second, 0.3) <= delta_of(group, 0.3, ADD_REMOVE) * (1 + 1e-6)
    if found > 0.01:  # a little more than the truth, for the grid and for what discretising costs
        alone = true_epsilon(*laws(group, [], 130), delta)
        assert found <= alone * 1.2 + 0.02


def test_three_gaussian_blocks() -> None:
    group = [gaussian(5, 2), gaussian(6, 3), gaussian(8, 5)]
    first, second = laws(group, [], 62)
    truth = true_epsilon(first, second, 1e-4)
    for found in (cost(group, 1e-4, ADD_REMOVE).epsilon, recomputed_epsilon(group, 1e-4)):
        assert truth * (1 - 1e-3) <= found <= truth * 1.2
    # Two of them, or each with a sample of its own, would be too cheap: the enumeration sees it.
    assert cost(group[1:], 1e-4, ADD_REMOVE).epsilon < truth
    apart = [replace(release, sample=None) for release in group]
    assert cost(apart, 1e-4, ADD_REMOVE).epsilon < truth


# ── several runs ──


@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 2)])
def test_two_runs_of_two_blocks(rate: Fraction) -> None:
    """Each run draws a sample of its own; within a run all blocks share one."""
    pure = [laplace(1, 1, sampling=rate, count=2), laplace(2, 1, sampling=rate, count=2)]
    first, second = (twice(law) for law in laws(pure, [], 14))
    for delta in (1e-3, 1e-2):
        truth = true_epsilon(first, second, delta)
        assert truth <= cost(pure, delta, ADD_REMOVE).epsilon
        assert truth <= recomputed_epsilon(pure, delta) * (1 + 1e-3)
    assert cost(pure, 0.0, ADD_REMOVE).epsilon == pytest.approx(
        2 * math.log1p(float(rate) * math.expm1(1.5)), rel=1e-9
    )


def test_runs_of_gaussian_blocks_are_runs_of_one() -> None:
    """Σμ² first, then the sample, then the runs: as one block of μ = 5 in place of 3 and 4."""
    group = [gaussian(30, k, step=Fraction(0), count=100) for k in (3, 4)]
    whole = [gaussian(30, 5, step=Fraction(0), count=100, sample=None)]
    for delta in (1e-9, 1e-5):
        for spent in (lambda r, d: cost(r, d, ADD_REMOVE).epsilon, recomputed_epsilon):
            assert spent(group, delta) == pytest.approx(spent(whole, delta), rel=1e-6)


groups = st.lists(
    st.tuples(
        st.booleans(),  # Gaussian or Laplace
        st.lists(st.integers(4, 40), min_size=1, max_size=4),  # scales of its blocks
        st.sampled_from([1, 2, 7]),  # runs
        rates,
    ),
    min_size=1,
    max_size=2,
)


def releases_of(drawn: list[tuple[bool, list[int], int, Fraction]]) -> list[Release]:
    return [
        (gaussian if normal else laplace)(
            Fraction(scale),
            1,
            step=Fraction(0),
            count=runs,
            sampling=rate,
            sample=f"sample {number}",
        )
        for number, (normal, scales, runs, rate) in enumerate(drawn)
        for scale in scales
    ]


@some
@given(groups, st.sampled_from([1e-8, 1e-5]), st.randoms(use_true_random=False))
def test_accountants_and_verifier_agree_on_random_groups(
    drawn: list[tuple[bool, list[int], int, Fraction]], delta: float, random: object
) -> None:
    releases = releases_of(drawn)
    found = cost(releases, delta, ADD_REMOVE).epsilon
    again = recomputed_epsilon(releases, delta)
    if math.isfinite(again) and found > 1e-3:
        assert again <= found * (1 + 1e-3)
        assert again >= found * (1 - 0.05) - 1e-3
    # Samples of their own never cost more than the shared one, and one more block never less.
    assert found <= cost([*releases, *releases_of(drawn[:1])], delta, ADD_REMOVE).epsilon * 1.002
    random.shuffle(releases)  # type: ignore[attr-defined]
    assert cost(releases, delta, ADD_REMOVE).epsilon == pytest.approx(found, rel=1e-6)


@some
@given(groups, st.sampled_from([0.0, 1e-6]), st.sampled_from([0.3, 2.0]))
def test_calibrated_groups_keep_the_promise(
    drawn: list[tuple[bool, list[int], int, Fraction]], delta: float, epsilon: float
) -> None:
    normal = delta > 0
    releases = releases_of([(normal, scales, runs, rate) for _, scales, runs, rate in drawn])
    fitted = calibrate(Promise(epsilon, delta), releases)
    assert [r.sample for r in fitted] == [r.sample for r in releases]
    spent = cost(fitted, delta, ADD_REMOVE).epsilon
    assert spent <= epsilon
    assert recomputed_epsilon(fitted, delta) <= epsilon * (1 + 1e-3)


# ── what is refused ──


@pytest.mark.parametrize(
    ("group", "why"),
    [
        ([gaussian(9, 1), laplace(9, 1)], "Gaussian and other"),
        ([laplace(9, 1), laplace(9, 1, count=2)], "one count"),
        ([laplace(9, 1), laplace(9, 1, sampling=Fraction(1, 5))], "one rate"),
        ([laplace(9, 1, part="window 1"), laplace(9, 1, count=3)], "one count"),
    ],
)
def test_groups_without_a_known_cost(group: list[Release], why: str) -> None:
    with pytest.raises(PromiseError, match=why):
        cost(group, 1e-6, ADD_REMOVE)
    with pytest.raises(PromiseError, match=why):
        calibrate(Promise(1.0, 1e-6), group)
    with pytest.raises(CertificateInvalid):
        recomputed_epsilon(group, 1e-6)


def test_who_is_asked_on_her_own_device_is_in_no_secret_sample() -> None:
    parameters = {"m": Fraction(2), "p": Fraction(3, 4)}
    asked = Release("randomised-response", parameters=parameters, sampling=Fraction(1, 10))
    for group in ([asked], [replace(asked, sample="s"), laplace(1, 1)]):
        with pytest.raises(UsageError, match="own device"):
            cost(group, 0.0, ADD_REMOVE)
        with pytest.raises(CertificateInvalid, match="own device"):
            recomputed_epsilon(group, 0.0)


def test_only_a_sample_has_a_name() -> None:
    with pytest.raises(PromiseError, match="no sample"):
        Release("laplace", Bound(Norm.L1, Fraction(1)), Fraction(1), sample="s")


def test_a_sample_that_reaches_into_parts() -> None:
    """Common releases and those of the unit's own part are joined if they share the sample."""
    releases = [laplace(2, 1), laplace(1, 1, part="a"), laplace(4, 1, part="b")]
    wanted = math.log1p(0.1 * math.expm1(1.5))
    assert cost(releases, 0.0, ADD_REMOVE).epsilon == pytest.approx(wanted)
    assert recomputed_epsilon(releases, 0.0) == pytest.approx(wanted)


def test_every_accountant_sees_the_group() -> None:
    group = [gaussian(9, 2), gaussian(9, 2), gaussian(9, 2)]
    apart = [replace(release, sample=None) for release in group]
    for name in ("renyi", "pld"):
        accountant = ACCOUNTANTS[name]
        joint = accountant.epsilon(losses_of(group), 1e-6)
        assert joint > 1.2 * accountant.epsilon(losses_of(apart), 1e-6)
