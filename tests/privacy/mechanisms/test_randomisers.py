"""Local randomisers: every probability by enumeration, estimates, choice, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import minimize_scalar

from tacit.crypto.prg import SeededRandomness
from tacit.errors import InputError, PromiseError, UsageError
from tacit.privacy import Promise
from tacit.privacy.accounting import cost
from tacit.privacy.mechanisms import (
    HadamardResponse,
    PQPerturbation,
    RandomisedResponse,
    SubsetSelection,
)
from tacit.privacy.mechanisms.bits import count_bits
from tacit.privacy.mechanisms.local import Randomiser, exp_of_minus_epsilon
from tacit.privacy.mechanisms.perturbation import best_p
from tacit.privacy.mechanisms.randomisers import KINDS, best_randomiser

Law = dict[bytes, Fraction]
MAKERS: dict[str, Callable[[int, Promise], Randomiser]] = {
    "response": RandomisedResponse.calibrated,
    "perturbation": PQPerturbation.calibrated,
    "rappor": PQPerturbation.rappor,
    "subset": SubsetSelection.calibrated,
    "hadamard": HadamardResponse.calibrated,
}
SIZES = [2, 3, 5, 8]
EPSILONS = [0.05, 1.0, 3.0]


def law(randomiser: Randomiser, value: int) -> Law:
    """The probability of every report about this value, from the definition alone."""
    m = randomiser.m
    if isinstance(randomiser, RandomisedResponse):
        other = (1 - randomiser.p) / (m - 1)
        return {bytes([v]): randomiser.p if v == value else other for v in range(m)}
    if isinstance(randomiser, PQPerturbation):
        found = {}
        for bits in product((0, 1), repeat=m):
            ones = [randomiser.p if v == value else randomiser.q for v in range(m)]
            found[mask(v for v in range(m) if bits[v])] = math.prod(
                one if bit else 1 - one for bit, one in zip(bits, ones, strict=True)
            )
        return found
    if isinstance(randomiser, SubsetSelection):
        size, p = randomiser.size, randomiser.p
        with_it = p / math.comb(m - 1, size - 1)
        without = (1 - p) / math.comb(m - 1, size)
        return {
            mask(chosen): with_it if value in chosen else without
            for chosen in combinations(range(m), size)
        }
    assert isinstance(randomiser, HadamardResponse)
    order = 2 ** math.ceil(math.log2(m + 1))
    return {
        bytes([j]): 2 * (randomiser.p if sign(value + 1, j) > 0 else 1 - randomiser.p) / order
        for j in range(order)
    }


def mask(chosen: object) -> bytes:
    return sum(1 << v for v in chosen).to_bytes(1, "little")  # type: ignore[attr-defined]


def sign(i: int, j: int) -> int:
    return -1 if bin(i & j).count("1") % 2 else 1


def row(report: bytes) -> np.ndarray:
    return np.frombuffer(report, dtype=np.uint8).reshape(1, -1)


@pytest.fixture(params=[(n, m, e) for n in MAKERS for m in SIZES for e in EPSILONS], ids=str)
def case(request: pytest.FixtureRequest) -> tuple[Randomiser, float]:
    name, m, epsilon = request.param
    return MAKERS[name](m, Promise(epsilon)), epsilon


class TestEnumerated:
    def test_the_worst_likelihood_ratio_is_the_promise(
        self, case: tuple[Randomiser, float]
    ) -> None:
        randomiser, epsilon = case
        laws = [law(randomiser, value) for value in range(randomiser.m)]
        assert all(sum(one.values()) == 1 for one in laws)
        worst = max(a[y] / b[y] for a in laws for b in laws for y in a)
        assert 0.999 * epsilon < math.log(worst) <= epsilon
        assert math.log(worst) == pytest.approx(cost(randomiser.spend, 0.0, "replace").epsilon)

    def test_hits_and_misses(self, case: tuple[Randomiser, float]) -> None:
        """Each report's support, as the collector counts it, weighted by the law."""
        randomiser, _ = case
        for value in range(randomiser.m):
            expected = [Fraction(0)] * randomiser.m
            for report, probability in law(randomiser, value).items():
                for v in np.flatnonzero(randomiser._supporters(row(report))):
                    expected[v] += probability
            assert expected[value] == randomiser.hit
            assert all(expected[v] == randomiser.miss for v in range(randomiser.m) if v != value)

    def test_estimates_are_unbiased(self, case: tuple[Randomiser, float]) -> None:
        randomiser, _ = case
        value = randomiser.m - 1
        mean = sum(
            float(probability) * randomiser.estimate(row(report))
            for report, probability in law(randomiser, value).items()
        )
        assert mean == pytest.approx(np.eye(randomiser.m)[value], abs=1e-9)

    def test_variance_and_expected_error(self, case: tuple[Randomiser, float]) -> None:
        """Of one person's report, exactly; n people's add up."""
        randomiser, _ = case
        truth = np.eye(randomiser.m)[0]
        squares = sum(
            float(probability) * (randomiser.estimate(row(report)) - truth) ** 2
            for report, probability in law(randomiser, 0).items()
        )
        assert randomiser.variance(1, truth) == pytest.approx(squares)
        assert randomiser.variance(7, truth) == pytest.approx(7 * squares)
        assert randomiser.expected_error(1) == pytest.approx(math.sqrt(squares.sum()))
        assert randomiser.expected_error(100) == pytest.approx(randomiser.expected_error(1) / 10)

    def test_valid_is_what_an_honest_person_can_send(self, case: tuple[Randomiser, float]) -> None:
        randomiser, _ = case
        everything = np.arange(256, dtype=np.uint8).reshape(-1, 1)
        possible = {report[0] for report in law(randomiser, 0)}
        assert set(np.flatnonzero(randomiser.valid(everything))) == possible


PEOPLE = 400_000
FALSE_ALARM = 1e-6
LAWS: dict[str, Randomiser] = {
    "response": RandomisedResponse.calibrated(6, Promise(1.0)),
    "perturbation": PQPerturbation.calibrated(6, Promise(1.0)),
    "rappor": PQPerturbation.rappor(6, Promise(1.0)),
    "subset": SubsetSelection.calibrated(8, Promise(0.6)),
    "subset of one": SubsetSelection.calibrated(6, Promise(3.0)),
    "subset of all but one": SubsetSelection(6, 5, Fraction(9, 10)),
    "hadamard": HadamardResponse.calibrated(6, Promise(1.0)),
}


def p_value(reports: NDArray[np.uint8], randomiser: Randomiser, value: int) -> float:
    expected = np.zeros(256)
    for report, probability in law(randomiser, value).items():
        expected[report[0]] = float(probability) * len(reports)
    observed = np.bincount(reports[:, 0], minlength=256)
    possible = expected > 0
    assert not observed[~possible].any()
    return float(stats.chisquare(observed[possible], expected[possible]).pvalue)


@pytest.mark.statistical
@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("value", [0, 3])
def test_reports_follow_the_law(name: str, value: int) -> None:
    randomiser = LAWS[name]
    reports = randomiser.release(np.full(PEOPLE, value), SeededRandomness(f"{name} {value}"))
    assert p_value(reports, randomiser, value) > FALSE_ALARM
    for factor in (Fraction(97, 100), Fraction(102, 100)):
        wrong = replace(randomiser, p=randomiser.p * factor)  # type: ignore[type-var]
        assert p_value(reports, wrong, value) < FALSE_ALARM
    assert p_value(reports, randomiser, value + 1) < FALSE_ALARM


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("m", [2, 9, 200, 300, 70_000])
def test_reports_have_one_length_and_are_valid(name: str, m: int) -> None:
    randomiser = MAKERS[name](m, Promise(1.0))
    reports = randomiser.release([0, m - 1, m // 2] * 50, SeededRandomness(1))
    assert reports.dtype == np.uint8
    assert reports.shape == (150, randomiser.report_bytes)
    assert randomiser.valid(reports).all()
    assert randomiser.estimate(reports).shape == (m,)
    assert randomiser.release(np.arange(0), SeededRandomness(1)).shape == (
        0,
        randomiser.report_bytes,
    )
    assert not randomiser.estimate(reports[:0]).any()


@pytest.mark.parametrize("name", MAKERS)
def test_estimates_of_parts_add_up(name: str) -> None:
    randomiser = MAKERS[name](20, Promise(1.0))
    reports = randomiser.release(np.arange(20).repeat(30), SeededRandomness(2))
    halves = randomiser.estimate(reports[:211]) + randomiser.estimate(reports[211:])
    assert halves == pytest.approx(randomiser.estimate(reports))
    assert reports[::2].base is not None  # a view that is not contiguous counts the same
    assert randomiser.estimate(reports[::2]) == pytest.approx(
        randomiser.estimate(reports[::2].copy())
    )


class TestGarbage:
    @pytest.mark.parametrize("name", MAKERS)
    def test_other_shapes_are_refused(self, name: str) -> None:
        randomiser = MAKERS[name](20, Promise(1.0))
        wide = np.zeros((3, randomiser.report_bytes + 1), dtype=np.uint8)
        for bad in (wide, wide[0], wide[:, 1:].astype(np.int64)):
            with pytest.raises(InputError, match="rows of"):
                randomiser.valid(bad)
            with pytest.raises(InputError, match="rows of"):
                randomiser.estimate(bad)

    @pytest.mark.parametrize("name", MAKERS)
    def test_impossible_reports_are_not_estimated(self, name: str) -> None:
        randomiser = MAKERS[name](20, Promise(1.0))
        reports = randomiser.release([3] * 10, SeededRandomness(3))
        reports[4] = 255  # 20 values: no number, no mask and no column is all ones
        assert randomiser.valid(reports).tolist() == [True] * 4 + [False] + [True] * 5
        with pytest.raises(InputError, match="valid"):
            randomiser.estimate(reports)

    def test_a_mask_of_another_size(self) -> None:
        randomiser = SubsetSelection.calibrated(20, Promise(1.0))
        report = randomiser.release([3], SeededRandomness(3))
        report[0, 0] ^= 1
        assert not randomiser.valid(report).any()

    @pytest.mark.parametrize("name", MAKERS)
    @pytest.mark.parametrize("bad", [[-1], [4], [0.5], ["a"]])
    def test_values_outside_the_cells(self, name: str, bad: list[object]) -> None:
        with pytest.raises(InputError, match="from 0 to 3"):
            MAKERS[name](4, Promise(1.0)).release(bad)

    @pytest.mark.parametrize("name", MAKERS)
    def test_impossible_calibrations(self, name: str) -> None:
        with pytest.raises(UsageError, match="at least two"):
            MAKERS[name](1, Promise(1.0))
        with pytest.raises(PromiseError, match="too small"):
            MAKERS[name](4, Promise(1e-13))
        with pytest.raises(UsageError, match="infinite"):
            MAKERS[name](4, Promise(math.inf))

    @pytest.mark.parametrize("p", [Fraction(0), Fraction(1), Fraction(3, 2)])
    def test_impossible_p(self, p: Fraction) -> None:
        with pytest.raises(UsageError, match="0 < p < 1"):
            PQPerturbation.calibrated(3, Promise(1.0), p=p)


@settings(max_examples=60)
@given(st.integers(2, 3000), st.floats(0.01, 12.0), st.sampled_from(sorted(MAKERS)))
def test_no_calibration_costs_more_than_its_promise(m: int, epsilon: float, name: str) -> None:
    randomiser = MAKERS[name](m, Promise(epsilon))
    spent = cost(randomiser.spend, 0.0, "replace").epsilon
    assert 0.999 * epsilon < spent <= epsilon * (1 + 1e-12)


class TestTheBestP:
    @pytest.mark.parametrize("m", [2, 3, 10, 100, 2000])
    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 8.0])
    def test_it_is_equation_7_3_and_the_minimum(self, m: int, epsilon: float) -> None:
        x = math.exp(epsilon)
        root = math.sqrt((m - 1) * (x**3 + x) + ((m - 1) ** 2 + 1) * x**2)
        printed = (x**2 + m * x - x - root) / (x**2 - 1)
        best = float(best_p(m, exp_of_minus_epsilon(Promise(epsilon))))
        assert best == pytest.approx(printed, rel=1e-6)

        def error(p: float) -> float:
            q = p / (p + (1 - p) * x)
            return ((m - 1) * q * (1 - q) + p * (1 - p)) / (p - q) ** 2

        found = minimize_scalar(error, bounds=(1e-3, 1 - 1e-6), method="bounded")
        assert error(best) <= found.fun * (1 + 1e-9)
        assert best == pytest.approx(found.x, rel=1e-2)
        made = PQPerturbation.calibrated(m, Promise(epsilon))
        assert float(made.squared_error) <= error(best) * 1.0002
        assert made.q.denominator <= 2**24

    def test_rappor_and_unary_encoding_are_special_cases(self) -> None:
        u = exp_of_minus_epsilon(Promise(1.0))
        two, rappor = best_p(2, u), PQPerturbation.rappor(2, Promise(1.0))
        assert rappor.q == 1 - rappor.p
        assert float(two) == pytest.approx(float(rappor.p))
        assert float(best_p(10**9, u)) == pytest.approx(0.5, abs=1e-4)
        unary = PQPerturbation.calibrated(7, Promise(1.0), p=Fraction(1, 2))
        assert unary.p == Fraction(1, 2)
        assert float(unary.q) == pytest.approx(1 / (math.e + 1))


class TestTheBestRandomiser:
    @pytest.mark.parametrize(
        ("m", "epsilon", "kind"),
        [
            (2, 1.0, RandomisedResponse),
            (16, 4.0, RandomisedResponse),
            (16, 1.0, SubsetSelection),
            (1024, 4.0, SubsetSelection),
            (1024, 0.1, HadamardResponse),
        ],
    )
    def test_who_is_best_where(self, m: int, epsilon: float, kind: type[Randomiser]) -> None:
        assert type(best_randomiser(m, Promise(epsilon))) is kind

    @settings(max_examples=40)
    @given(st.integers(2, 600), st.floats(0.05, 8.0))
    def test_nobody_is_better_by_a_percent_nor_as_good_and_shorter(
        self, m: int, epsilon: float
    ) -> None:
        best = best_randomiser(m, Promise(epsilon))
        others = [kind.calibrated(m, Promise(epsilon)) for kind in KINDS]
        least = min(other.expected_error(1) for other in others)
        assert best.expected_error(1) <= 1.01 * least * (1 + 1e-12)
        for other in others:
            if other.report_bytes < best.report_bytes:
                assert other.expected_error(1) > 1.01 * least * (1 - 1e-12)

    def test_it_is_a_question_of_privacy_only(self) -> None:
        """Neither unit nor adjacency changes the choice: reports are compared by replace anyway."""
        one = best_randomiser(12, Promise(1.0))
        assert best_randomiser(12, Promise(1.0, unit="person", adjacency="replace")) == one  # type: ignore[arg-type]


@given(st.integers(1, 40), st.integers(0, 200), st.integers(0, 2**32))
def test_counting_packed_bits(width: int, rows: int, seed: int) -> None:
    bits = np.random.default_rng(seed).integers(0, 2, (rows, width), dtype=np.uint8)
    packed = np.packbits(bits, axis=1, bitorder="little")
    assert count_bits(packed, width).tolist() == bits.sum(axis=0).tolist()


def test_counting_many_pieces_of_packed_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.privacy.mechanisms.bits.PIECE", 1000)
    bits = np.random.default_rng(1).integers(0, 2, (5000, 13), dtype=np.uint8)
    packed = np.packbits(bits, axis=1, bitorder="little")
    assert count_bits(packed, 13).tolist() == bits.sum(axis=0).tolist()
    assert count_bits(np.full((5000, 2), 255, np.uint8), 13).tolist() == [5000] * 13
