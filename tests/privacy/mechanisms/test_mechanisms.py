"""What single mechanisms do beyond the contract."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from tacit.crypto.prg import SeededRandomness
from tacit.errors import InputError, Refused, UsageError
from tacit.privacy import Bound, Norm, Promise
from tacit.privacy.mechanisms import (
    Exponential,
    PermuteAndFlip,
    Quantile,
    SparseVector,
)

UNIT = Bound(Norm.LINF, Fraction(1))
FALSE_ALARM = 1e-6


class TestSelection:
    scores = np.array([0, 3, 2, 3, -1])

    def frequencies(self, mechanism: Exponential | PermuteAndFlip) -> np.ndarray:
        source = SeededRandomness(1)
        picks = [mechanism.release(self.scores, source) for _ in range(6000)]
        return np.bincount(picks, minlength=len(self.scores))

    def test_exponential_law(self) -> None:
        mechanism = Exponential.calibrated(UNIT, Promise(1.0), integral=True)
        law = np.exp(self.scores / float(mechanism.scale))
        observed = self.frequencies(mechanism)
        assert stats.chisquare(observed, law / law.sum() * 6000).pvalue > FALSE_ALARM

    def test_permute_and_flip_is_noisy_max_with_exponential_noise(self) -> None:
        """Ding et al. 2021, against a simulation of report-noisy-max."""
        mechanism = PermuteAndFlip.calibrated(UNIT, Promise(1.0), integral=True)
        observed = self.frequencies(mechanism)
        generator = np.random.default_rng(5)
        noise = generator.exponential(float(mechanism.scale), (400_000, len(self.scores)))
        law = np.bincount((self.scores + noise).argmax(axis=1), minlength=len(self.scores))
        assert stats.chisquare(observed, law / law.sum() * 6000).pvalue > FALSE_ALARM
        exponential = np.exp(self.scores / float(mechanism.scale))
        worse = exponential / exponential.sum() * 6000
        assert stats.chisquare(observed, worse).pvalue < FALSE_ALARM
        assert observed @ self.scores > worse @ self.scores

    def test_nothing_to_choose_from(self) -> None:
        with pytest.raises(UsageError, match="nothing to choose"):
            Exponential.calibrated(UNIT, Promise(1.0)).release([])


class TestSparseVector:
    def run(self, epsilon: float = 1000.0, **options: object) -> SparseVector:
        return SparseVector(UNIT, Promise(epsilon), 10.0, randomness=SeededRandomness(2), **options)  # type: ignore[arg-type]

    def test_with_little_noise_it_is_right(self) -> None:
        run = self.run(positives=2)
        answers = [run.ask(value).above for value in (1, 5, 20, 3, 30)]
        assert answers == [False, False, True, False, True]

    def test_it_refuses_after_the_last_positive(self) -> None:
        run = self.run()
        assert run.ask(100.0).above
        with pytest.raises(Refused, match="new run"):
            run.ask(1.0)

    def test_below_is_free(self) -> None:
        run = self.run()
        before = run.spend
        assert not any(run.ask(0.0).above for _ in range(500))
        assert run.spend == before

    def test_numbers_have_noise_of_their_own(self) -> None:
        run = self.run(numeric_share=Fraction(1, 2))
        answer = run.ask(100.0)
        assert answer.value == pytest.approx(100, abs=1)
        assert answer.value != 100
        assert self.run().ask(100.0).value is None

    def test_the_threshold_is_refreshed_after_a_positive_only(self) -> None:
        run = self.run(epsilon=1.0, positives=2)
        seen = []
        for value in (-1e6, -1e6, 1e6, -1e6):
            run.ask(value)
            seen.append(run._noisy_threshold)
        first, same, none, fresh = seen
        assert first == same
        assert none is None
        assert fresh not in (None, first)


class TestQuantile:
    @pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
    def test_close_on_much_data(self, q: float) -> None:
        data = np.random.default_rng(1).normal(50, 10, 20_000)
        mechanism = Quantile.calibrated(q, 0, 100, Promise(1.0))
        found = mechanism.release(data, SeededRandomness(5))
        assert abs((data < found).mean() - q) < 0.002

    def test_law_on_few_values(self) -> None:
        """Against the exponential mechanism computed point by point."""
        mechanism = Quantile.calibrated(0.5, 0.0, 1.0, Promise(2.0))
        data = np.array([0.25, 0.5, 0.5])
        source = SeededRandomness(6)
        drawn = np.array([mechanism.release(data, source) for _ in range(4000)])
        points = np.arange(0, 2**16 + 1) / 2**16
        below, upto = ((op(data, points[:, None])).sum(axis=1) for op in (np.less, np.less_equal))
        penalty = np.maximum(0, np.maximum(below - 1.5, 1.5 - upto))
        law = np.exp(-penalty / float(mechanism.scale))
        ends = np.array([0, 0.25, 0.5, 1.1])
        cells = [(points >= a) & (points < b) for a, b in pairwise(ends)]
        expected = np.array([law[cell].sum() for cell in cells])
        observed = np.histogram(drawn, ends)[0]
        assert stats.chisquare(observed, expected / expected.sum() * 4000).pvalue > FALSE_ALARM

    def test_a_value_shared_by_many_wins(self) -> None:
        data = np.repeat([20.0, 40.0, 60.0], [3000, 5000, 2000])
        source = SeededRandomness(8)
        for q, value in ((0.1, 20.0), (0.5, 40.0), (0.7, 40.0), (0.9, 60.0)):
            mechanism = Quantile.calibrated(q, 0, 100, Promise(1.0))
            assert mechanism.release(data, source) == value

    def test_outliers_and_empty_data_stay_inside_the_public_bounds(self) -> None:
        mechanism = Quantile.calibrated(0.5, -5.0, 5.0, Promise(1.0))
        for data in ([1e9, -1e9, 1e300], []):
            assert -5 <= mechanism.release(data, SeededRandomness(7)) <= 5

    @pytest.mark.parametrize("q", [0, 1, -1, 2])
    def test_impossible_shares(self, q: float) -> None:
        with pytest.raises(UsageError, match="between 0 and 1"):
            Quantile.calibrated(q, 0, 1, Promise(1.0))

    @pytest.mark.parametrize("bounds", [(1, 1), (2, 1), (0, np.inf), (np.nan, 1)])
    def test_impossible_bounds(self, bounds: tuple[float, float]) -> None:
        with pytest.raises(UsageError, match="public bounds"):
            Quantile.calibrated(0.5, *bounds, Promise(1.0))

    def test_missing_values_are_refused(self) -> None:
        with pytest.raises(InputError, match="NaN"):
            Quantile.calibrated(0.5, 0, 1, Promise(1.0)).release([np.nan])
