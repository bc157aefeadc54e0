"""What the counts of smaller sets say about larger ones, and how far to believe a noisy count.

Noise grows with the length of the sets, because a record holds C(l, k) sets of length k, while
counts shrink. But the smaller sets, which are known better, foretell the larger ones. All of this
works on noisy numbers only, so it costs no privacy (itemsets.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tacit.programs.apriori import Sets, Tree

__all__ = ["Counts", "Known", "trust"]

Counts = NDArray[np.float64]
LEAST = 1.0  # in products and quotients a count is at least one record


@dataclass(frozen=True, slots=True)
class Known:
    """The frequent sets so far, with their counts; the empty set is in every record."""

    tree: Tree
    counts: Sequence[Counts]
    records: float

    def count(self, sets: Sets) -> Counts:
        """The counts of sets that are frequent."""
        return self._of(sets.shape[1], self.tree.find(sets))

    def _of(self, length: int, places: NDArray[np.int64]) -> Counts:
        if length == 0:
            return np.full(len(places), self.records)
        family: Counts = self.counts[length - 1]
        return family[places]

    def expected(self, sets: Sets) -> tuple[Counts, Counts]:
        """What to expect of sets all of whose subsets are known, and the most they can have.

        If the items i and j of a set t are independent given the rest of it, then
        n(t) = n(t−i) n(t−j) / n(t−i−j). We take the geometric mean over all pairs i, j. No
        record holds t without holding t−i, so n(t) ≤ n(t−i); and n(t) ≥ n(t−i) + n(t−j) − n(t−i−j).
        """
        length = sets.shape[1]
        places = self.tree.subsets_of(sets)
        less = [self._of(length - 1, places[:, i]) for i in range(length)]
        most = np.min(less, axis=0)
        least, logs = np.zeros(len(sets)), np.zeros(len(sets))
        pairs = list(combinations(range(length), 2))
        for i, j in pairs:  # without j, item i is still the i-th
            rest = self._of(length - 2, self.tree.subsets[length - 2][places[:, j], i])
            least = np.maximum(least, less[i] + less[j] - rest)
            logs += _log(less[i]) + _log(less[j]) - _log(rest)
        return np.clip(np.exp(logs / len(pairs)), np.minimum(least, most), most), most


def trust(noisy: Counts, expected: Counts, variance: float) -> float:
    """How far to believe noisy counts: 1 wholly, 0 not at all, take what is expected instead.

    (noisy − expected)² is on average the noise's variance plus τ², how wrong the expectation is; so
    τ² can be read off the noisy counts, and τ²/(τ² + variance) is the weight with the least mean
    squared error (empirical Bayes; Efron & Morris 1973). Without noise it is 1.
    """
    if variance == 0:
        return 1.0
    surprise = max(0.0, float(np.mean((noisy - expected) ** 2)) - variance)
    return surprise / (surprise + variance)


def _log(counts: Counts) -> Counts:
    return np.log(np.maximum(counts, LEAST))
