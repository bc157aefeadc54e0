"""Which of many queries lie above a threshold, paying only for those that do (sparse_vector.md)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from tacit.crypto.prg import SYSTEM, Randomness
from tacit.errors import Refused, UsageError
from tacit.privacy import noise
from tacit.privacy.bound import Bound, Grid, Norm, round_up
from tacit.privacy.mechanisms.laplace import Laplace
from tacit.privacy.mechanisms.mechanism import pure_epsilon, rounding_grid, with_norm
from tacit.privacy.promise import Promise
from tacit.privacy.release import Release

__all__ = ["Answer", "SparseVector"]

# The share of the threshold in ε, 1 : 2^(2/3), minimises the variance of the comparison
# (Lyu, Su, Li 2017, section 4.2, for one positive answer).
THRESHOLD_SHARE = Fraction(3865, 10000)
BLOCK = 64


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether a query was above; its noisy value too, if that was paid for."""

    above: bool
    value: float | None = None


class SparseVector:
    """A stream of queries against one threshold, with at most `positives` answers "above".

    The threshold gets fresh noise after every positive answer, so that the run is a sequence of
    independent AboveThreshold mechanisms (Dwork & Roth 2014, algorithms 1 and 2). A numeric value
    is a release of its own with fresh noise: the noise of the comparison must not be reused.
    """

    def __init__(
        self,
        bound: Bound,
        promise: Promise,
        threshold: float,
        positives: int = 1,
        numeric_share: Fraction = Fraction(0),
        randomness: Randomness = SYSTEM,
    ) -> None:
        if positives < 1:
            raise UsageError(f"ask for at least one positive answer, not {positives}.")
        if not 0 <= numeric_share < 1:
            raise UsageError(f"the numeric share of ε lies in [0, 1), not {numeric_share}.")
        epsilon = pure_epsilon(promise) / positives
        self._grid, self.bound = rounding_grid(with_norm(bound, Norm.LINF), 1, False)
        compare = epsilon * (1 - numeric_share)
        self.threshold_scale = round_up(self.bound.value / (compare * THRESHOLD_SHARE))
        self.query_scale = round_up(2 * self.bound.value / (compare * (1 - THRESHOLD_SHARE)))
        self._numeric = _numeric(self.bound, self._grid, epsilon * numeric_share)
        self.positives, self.left = positives, positives
        self._threshold = int(self._grid.encode(threshold))
        self._randomness = randomness
        self._threshold_noise = self._draws(self.threshold_scale, min(positives, BLOCK))
        self._query_noise = self._draws(self.query_scale, BLOCK)
        # Drawn at the first question: a spend is written down before any noise exists.
        self._noisy_threshold: int | None = None

    @property
    def spend(self) -> tuple[Release, ...]:
        """The whole run, whether or not all its positive answers come."""
        parameters = {"threshold_scale": self.threshold_scale, "query_scale": self.query_scale}
        compare = Release(
            "above-threshold",
            self.bound,
            step=self._grid.step,
            count=self.positives,
            parameters=parameters,
        )
        if self._numeric is None:
            return (compare,)
        numeric = Release(
            "laplace",
            self._numeric.bound,
            self._numeric.scale,
            self._grid.step,
            count=self.positives,
        )
        return compare, numeric

    def ask(self, value: float) -> Answer:
        """Whether the query's value is above the threshold, under noise."""
        if not self.left:
            raise Refused(
                f"all {self.positives} positive answers are given: start a new run, at a new cost."
            )
        query = int(self._grid.encode(value))
        if self._noisy_threshold is None:
            self._noisy_threshold = self._threshold + next(self._threshold_noise)
        if query + next(self._query_noise) < self._noisy_threshold:
            return Answer(above=False)
        self.left -= 1
        self._noisy_threshold = None
        if self._numeric is None:
            return Answer(above=True)
        return Answer(above=True, value=float(self._numeric.release([value], self._randomness)[0]))

    def _draws(self, scale: Fraction, block: int) -> Iterator[int]:
        """Noise one by one, drawn in blocks: a single draw costs as much as a hundred."""
        while True:
            yield from noise.discrete_laplace(
                scale / self._grid.step, block, self._randomness
            ).tolist()


def _numeric(bound: Bound, grid: Grid, epsilon: Fraction) -> Laplace | None:
    """Laplace on the grid of the comparison, whose rounding the bound includes already."""
    if not epsilon:
        return None
    return Laplace(Bound(Norm.L1, bound.value), round_up(bound.value / epsilon), grid)
