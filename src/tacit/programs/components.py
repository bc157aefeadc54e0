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

from tacit.privacy.bound import Norm
from tacit.programs.features import FEATURE_STEP, exact_product

__all__ = ["Components", "Kind", "covariance_of", "moments_length", "statistics"]

Reals = NDArray[np.float64]
Kind = Literal["full", "diag", "spherical"]


@dataclass(frozen=True, slots=True)
class Components:
    """Weights (K), means (K, d), factors (K, d, d) or (K, d)."""

    weights: Reals
    means: Reals
    factors: Reals

    @classmethod
    def of(cls, weights: Reals, means: Reals, covariances: Reals) -> Components:
        """From covariances of shape (K, d, d), (K, d) or (K,): which kind, their shape says."""
        if covariances.ndim == 3:
            return cls(weights, means, np.asarray(np.linalg.cholesky(covariances), np.float64))
        if covariances.ndim == 1:
            covariances = np.repeat(covariances[:, None], means.shape[1], axis=1)
        return cls(weights, means, np.sqrt(covariances))

    def standardised(self, X: Reals) -> Reals:
        """Each record seen from each component, in its standard deviations: (K, n, d)."""
        if self.factors.ndim == 2:
            return np.asarray((X[None] - self.means[:, None]) / self.factors[:, None])
        inverses = np.linalg.inv(self.factors).transpose(0, 2, 1)
        return np.asarray((X[None] - self.means[:, None]) @ inverses)

    def standardised_exactly(self, whole: Reals) -> Reals:
        """The same of records in whole numbers of FEATURE_STEP: one record's bits never depend on
        the others'."""
        if self.factors.ndim == 2:
            return self.standardised(whole * FEATURE_STEP)
        found = np.empty((len(self.means), *whole.shape))
        for k, inverse in enumerate(np.linalg.inv(self.factors)):
            seen = exact_product(whole, inverse.T * FEATURE_STEP, 1 / FEATURE_STEP)
            found[k] = seen - inverse @ self.means[k]
        return found

    def log_densities(self, own: Reals) -> Reals:
        """ln(weight · density) of standardised records: (n, K)."""
        scales = self.factors
        if scales.ndim == 3:
            scales = np.diagonal(scales, axis1=1, axis2=2)
        at_centre = np.log(self.weights) - np.log(scales * math.sqrt(2 * math.pi)).sum(axis=1)
        squares = np.zeros(own.shape[:2])
        for j in range(own.shape[2]):  # one by one: always in the same order
            squares += own[..., j] * own[..., j]
        return np.ascontiguousarray((at_centre[:, None] - squares / 2).T)

    def responsibilities(self, own: Reals) -> Reals:
        """The probability of each component, for each standardised record: (n, K)."""
        logs = self.log_densities(own)
        shares = np.exp(np.ascontiguousarray(logs - logs.max(axis=1, keepdims=True)))
        total = np.zeros(len(shares))
        for column in shares.T:
            total += column
        return np.asarray(shares / total[:, None])

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


def moments_length(kind: str, width: int) -> int:
    """How many second moments a component has."""
    return {"full": width * (width + 1) // 2, "diag": width, "spherical": 1}[kind]


def statistics(seen: Reals, kind: str, norm: Norm) -> Reals:
    """1, s and the second moments of s, for each record s.

    In L2 the off-diagonal moments are multiplied by √2, so that ‖vec(ssᵀ)‖₂ = ‖s‖₂².
    """
    rows, width = seen.shape
    out = np.empty((rows, 1 + width + moments_length(kind, width)))
    out[:, 0] = 1.0
    out[:, 1 : 1 + width] = seen
    if kind == "full":
        first, second, factor = _triangle(width, norm)
        np.multiply(seen[:, first], seen[:, second] * factor, out=out[:, 1 + width :])
    elif kind == "diag":
        np.square(seen, out=out[:, 1 + width :])
    else:
        out[:, -1] = 0.0
        for column in seen.T:
            out[:, -1] += column * column
    return out


def covariance_of(mean: Reals, moments: Reals, kind: str, norm: Norm, least: float) -> Reals:
    """The covariance of one component, from its mean and mean second moments.

    Noise can make it indefinite: eigenvalues below `least` are raised to it.
    """
    if kind == "diag":
        return np.maximum(moments - mean**2, least)
    if kind == "spherical":
        return np.asarray(max((moments[0] - mean @ mean) / len(mean), least))
    first, second, factor = _triangle(len(mean), norm)
    whole = np.empty((len(mean), len(mean)))
    whole[first, second] = whole[second, first] = moments / factor
    values, vectors = np.linalg.eigh(whole - np.outer(mean, mean))
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)


def _triangle(width: int, norm: Norm) -> tuple[NDArray[np.intp], NDArray[np.intp], Reals]:
    first, second = np.triu_indices(width)
    off = 1.0 if norm is Norm.L1 else math.sqrt(2)
    return first, second, np.where(first == second, 1.0, off)
