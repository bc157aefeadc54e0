"""Gaussian components: their densities, the statistics of records seen from them, and the way back.

One set of formulas for three kinds of covariance. A component stretches the unit ball by a
`factor`: a lower triangle L with LLᵀ = Σ for "full", one number per coordinate for "diag" and
"spherical".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tacit.programs.features import FEATURE_STEP, exact_product

__all__ = ["Components", "Kind", "covariance_of", "moments_length", "shares_of", "statistics"]

Reals = NDArray[np.float64]
Kind = Literal["full", "diag", "spherical"]
FEW = 16  # columns that are added up one by one


@dataclass(frozen=True, slots=True)
class Components:
    """Weights (K), means (K, d), factors (K, d, d) or (K, d), and the inverses of these."""

    weights: Reals
    means: Reals
    factors: Reals
    inverses: Reals

    @classmethod
    def of(cls, weights: Reals, means: Reals, covariances: Reals) -> Components:
        """From covariances of shape (K, d, d), (K, d) or (K,): which kind, their shape says."""
        if covariances.ndim == 3:
            factors = np.asarray(np.linalg.cholesky(covariances), np.float64)
            return cls(weights, means, factors, np.asarray(np.linalg.inv(factors), np.float64))
        if covariances.ndim == 1:
            covariances = np.repeat(covariances[:, None], means.shape[1], axis=1)
        return cls(weights, means, np.sqrt(covariances), 1 / np.sqrt(covariances))

    def standardised(self, k: int, X: Reals) -> Reals:
        """Each record seen from component k, in its standard deviations."""
        if self.factors.ndim == 2:
            return np.asarray((X - self.means[k]) / self.factors[k])
        return np.asarray((X - self.means[k]) @ self.inverses[k].T)

    def standardised_exactly(self, k: int, whole: Reals) -> Reals:
        """The same of records in whole numbers of FEATURE_STEP: one record's bits never depend on
        the others'."""
        if self.factors.ndim == 2:
            return self.standardised(k, whole * FEATURE_STEP)
        inverse = self.inverses[k]
        seen = exact_product(whole, inverse.T * FEATURE_STEP, 1 / FEATURE_STEP)
        seen -= inverse @ self.means[k]
        return seen

    def log_density(self, k: int, own: Reals) -> Reals:
        """ln(weight · density) of records as component k sees them, in its deviations."""
        scales = self.factors[k]
        if scales.ndim == 2:
            scales = np.diagonal(scales)
        at_centre = np.log(self.weights[k]) - np.log(scales * math.sqrt(2 * math.pi)).sum()
        return np.asarray(at_centre - _squares(own) / 2)

    def log_densities(self, X: Reals) -> Reals:
        """ln(weight · density) of vectors: (n, K)."""
        found = np.empty((len(X), len(self.means)))
        for k in range(len(self.means)):
            found[:, k] = self.log_density(k, self.standardised(k, X))
        return found

    def back(self, k: int, mean: Reals, reach: float) -> Reals:
        """A point seen from component k, in units of `reach` deviations, as a vector again."""
        factor = self.factors[k] * reach
        return np.asarray(self.means[k] + (factor @ mean if factor.ndim == 2 else factor * mean))

    def widened(self, k: int, covariance: Reals, reach: float) -> Reals:
        """A covariance seen from component k, in the vectors' coordinates again."""
        factor = self.factors[k] * reach
        if factor.ndim == 2:
            return np.asarray(factor @ covariance @ factor.T)
        return np.asarray(covariance * (factor[0] ** 2 if covariance.ndim == 0 else factor**2))


def shares_of(logs: Reals) -> Reals:
    """The probability of each component, from ln(weight · density) of each: (n, K)."""
    shares = np.exp(np.ascontiguousarray(logs - logs.max(axis=1, keepdims=True)))
    total = np.zeros(len(shares))
    for column in shares.T:
        total += column
    return np.asarray(shares / total[:, None])


def _squares(own: Reals) -> Reals:
    """The squared length of each row, always added up in the same order."""
    if own.shape[1] > FEW:
        return np.asarray(np.einsum("ij,ij->i", own, own))
    found = np.zeros(len(own))
    for column in own.T:
        found += column * column
    return found


def moments_length(kind: str, width: int) -> int:
    """How many second moments a component has."""
    return {"full": width * (width + 1) // 2, "diag": width, "spherical": 1}[kind]


def statistics(seen: Reals, kind: str, stretch: float) -> Reals:
    """1, s and the second moments of s, for each record s; the off-diagonal ones are multiplied by
    `stretch`: by √2, and ‖vec(ssᵀ)‖₂ = ‖s‖₂²."""
    rows, width = seen.shape
    out = np.empty((rows, 1 + width + moments_length(kind, width)))
    out[:, 0] = 1.0
    out[:, 1 : 1 + width] = seen
    if kind == "full":
        first, second, factor = _triangle(width, stretch)
        np.multiply(seen[:, first], seen[:, second] * factor, out=out[:, 1 + width :])
    elif kind == "diag":
        np.square(seen, out=out[:, 1 + width :])
    else:
        out[:, -1] = 0.0
        for column in seen.T:
            out[:, -1] += column * column
    return out


def covariance_of(mean: Reals, moments: Reals, kind: str, stretch: float, least: float) -> Reals:
    """The covariance of one component, from its mean and mean second moments (`statistics`).

    Noise can make it indefinite: eigenvalues below `least` are raised to it.
    """
    if kind == "diag":
        return np.maximum(moments - mean**2, least)
    if kind == "spherical":
        return np.asarray(max((moments[0] - mean @ mean) / len(mean), least))
    first, second, factor = _triangle(len(mean), stretch)
    whole = np.empty((len(mean), len(mean)))
    whole[first, second] = whole[second, first] = moments / factor
    values, vectors = np.linalg.eigh(whole - np.outer(mean, mean))
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)


def _triangle(width: int, stretch: float) -> tuple[NDArray[np.intp], NDArray[np.intp], Reals]:
    first, second = np.triu_indices(width)
    return first, second, np.where(first == second, 1.0, stretch)
