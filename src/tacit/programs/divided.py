"""Records that are divided among components: what each adds to their counts, sums and moments.

A record s_k that counts for w_k in component k adds w_k·(1, s_k, s_k s_kᵀ) there. The products are
never built: their sum over records is one matrix product, their length follows from ‖s_k‖ alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.bound import Norm
from tacit.programs.components import moments_length
from tacit.programs.contributions import EXACT, TOLERANCE, Contribution, fitting, rounded
from tacit.programs.features import Features, sizes_of

__all__ = ["DIAGONAL", "MOMENT", "Divided", "off_diagonal"]

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]

# What s and its moments count for, in whole numbers: √2 for off-diagonal moments is 11/8, so that
# all statistics of a record stay whole numbers, and no longer than with √2.
DIAGONAL = 8
SPREAD = {Norm.L1: 8, Norm.L2: 11}
MOMENT = 2**7  # s in so many steps of its unit


def off_diagonal(norm: Norm) -> float:
    """What off-diagonal moments are multiplied by."""
    return SPREAD[norm] / DIAGONAL


@dataclass(frozen=True, slots=True)
class Divided(Contribution):
    """weights (records, K), and K arrays of records as each component sees them.

    `seen` are whole numbers of 1/MOMENT (of anything, where nothing is private). A row is, for each
    component, w·8·MOMENT², w·8·MOMENT·s, w·8·sᵢ², w·11·sᵢsⱼ (w·8·sᵢsⱼ in L1): all of one unit.
    """

    weights: Reals
    seen: tuple[Reals, ...]
    kind: str
    norm: Norm

    @property
    def shape(self) -> tuple[int, int]:
        width = self.seen[0].shape[1]
        return len(self.weights), len(self.seen) * (1 + width + moments_length(self.kind, width))

    def within(self, limit: int, norm: Norm) -> Divided:
        seen, sizes = zip(*(self._finite(each) for each in self.seen), strict=True)
        length = self._lengths(self.weights, sizes)
        if norm is not Norm.L1:
            length = np.sqrt(length)
        factor = np.minimum(1.0, limit * (1 - TOLERANCE) / np.maximum(length, 1.0))
        most = Features.LARGEST_WEIGHT
        weights = np.clip(self.weights * factor[:, None], -most, most)

        def fits(whole: Reals) -> NDArray[np.bool_]:
            return fitting(self._lengths(whole, sizes), limit, norm)

        return replace(self, weights=rounded(weights, fits), seen=seen)

    def _finite(self, seen: Reals) -> tuple[Reals, Reals]:
        """With 0 for every record that is not finite, and sizes: 0 times NaN would be NaN."""
        sizes = self._sizes(seen)
        finite = np.isfinite(sizes)
        if finite.all():
            return seen, sizes
        return np.where(finite[:, None], seen, 0.0), np.where(finite, sizes, 0.0)

    def _lengths(self, weights: Reals, sizes: Sequence[Reals]) -> Reals:
        """In L1, or squared in L2. Added up component by component: the order never depends on the
        batch."""
        found = np.zeros(len(weights))
        for weight, size in zip(weights.T, sizes, strict=True):
            found += (np.abs(weight) if self.norm is Norm.L1 else weight * weight) * size
        return found

    def _sizes(self, seen: Reals) -> Reals:
        """Of a component's statistics of weight 1: their length in L1, squared in L2."""
        squares = sizes_of(seen, Norm.L2)
        if self.norm is Norm.L1:
            ones = sizes_of(seen, Norm.L1)
            moments = (ones * ones + squares) / 2 if self.kind == "full" else squares
            return np.asarray(DIAGONAL * (MOMENT**2 + MOMENT * ones + moments))
        fourths = squares * squares
        if self.kind != "spherical":
            fourths = sizes_of(seen * seen, Norm.L2)
        moments = DIAGONAL**2 * fourths
        if self.kind == "full":
            moments = moments + SPREAD[Norm.L2] ** 2 * ((squares * squares - fourths) / 2)
        return np.asarray(DIAGONAL**2 * (MOMENT**4 + MOMENT**2 * squares) + moments)

    def rows(self) -> Integers:
        width = self.seen[0].shape[1]
        first, second = np.triu_indices(width)
        parts = []
        for weight, seen in zip(self.weights.T, self.seen, strict=True):
            match self.kind:
                case "full":
                    moments = seen[:, first] * seen[:, second] * self._factors(width)
                case "diag":
                    moments = DIAGONAL * seen * seen
                case _:
                    moments = DIAGONAL * sizes_of(seen, Norm.L2)[:, None]
            constant = np.full((len(seen), 1), DIAGONAL * MOMENT**2)
            parts.append(weight[:, None] * np.hstack([constant, DIAGONAL * MOMENT * seen, moments]))
        return np.hstack(parts).astype(np.int64)

    def total(self, limit: int) -> Integers:
        # No number of a row is longer than the limit, so so many of them add up exactly.
        records = max(1, EXACT // limit)
        total = np.zeros(self.shape[1], dtype=np.int64)
        for start in range(0, len(self.weights), records):
            total += self._sum(slice(start, start + records)).astype(np.int64)
        return total

    def unclipped(self) -> Integers:
        return np.asarray(np.rint(self._sum(slice(None))).astype(np.int64))

    def _sum(self, part: slice) -> Reals:
        found = []
        for weight, each in zip(self.weights[part].T, self.seen, strict=True):
            seen, width = each[part], each.shape[1]
            weighted = seen * weight[:, None]
            match self.kind:
                case "full":
                    moments = (weighted.T @ seen)[np.triu_indices(width)] * self._factors(width)
                case "diag":
                    moments = DIAGONAL * np.einsum("ij,ij->j", weighted, seen)
                case _:
                    moments = DIAGONAL * np.array([np.vdot(weighted, seen)])
            sums = DIAGONAL * MOMENT * weighted.sum(axis=0)
            found += [np.array([DIAGONAL * MOMENT**2 * weight.sum()]), sums, moments]
        return np.concatenate(found)

    def _factors(self, width: int) -> Reals:
        first, second = np.triu_indices(width)
        return np.where(first == second, float(DIAGONAL), float(SPREAD[self.norm]))
