"""How far noise moves what is made of noisy second moments, to first order (proof: moments.md).

A symmetric matrix of moments has independent noise on its triangle, of a known deviation. What
follows from it is linear in small noise, so its standard errors are known: from the released
numbers alone, at no cost.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.programs.moment_rounds import MomentState, Summary

__all__ = ["errors_of_line"]

Reals = NDArray[np.float64]


def errors_of_line(
    state: MomentState, summary: Summary, slope: Reals, inverse: Reals, centring: bool
) -> Reals:
    """Standard errors of coefficients and intercept, in encoded features and the scaled label.

    slope, inverse   the solution, and what made it of products, as records are seen
    """
    weight, mean, width = summary.weight, summary.mean, len(state.owner)
    before = mean[:width]
    offset = float(mean[width] - before @ slope)
    through = np.concatenate([[-offset if centring else 0.0], -slope, [1.0]])
    residual = _covariance(state, through)
    # Back from (x − centre)/scale, of features and label alike.
    one = np.eye(width + 1)[0]
    moved = inverse @ (np.eye(width + 1)[1:] - np.outer(before, one) * centring)
    start = one / weight - before @ moved
    scale, centre = state.scale, state.centre[:width]
    coefficients = moved * (scale[-1] / scale[:-1])[:, None]
    intercept = (scale[-1] * start - centre @ coefficients) * centring
    both = np.vstack([coefficients, intercept])
    return np.asarray(np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", both, residual, both), 0.0)))


def _covariance(state: MomentState, through: Reals) -> Reals:
    """Of the noise in the residuals' sums, M t for the moments M of (1, u, v): where t = (−offset,
    −slope, 1), without noise the least-squares solution has none but the label's own."""
    width, weights = len(state.owner), np.ones(len(through))
    weights[[0, -1]] = state.moments.weight
    squares = (state.entry_noise / np.outer(weights, weights)) ** 2
    own = through[1:-1]
    # What two values of one column have in common follows from the sums (known_products).
    known = np.equal.outer(state.owner, state.owner) & ~np.eye(width, dtype=bool)
    place = state.centre[:width] / state.scale[:width]
    of_sums = np.zeros((width + 1, width + 2))
    of_sums[0] = through
    of_sums[1:, 1:-1] = np.diag(through[0] - known @ (place * own))
    of_sums[1:, 1:-1] -= place[:, None] * known * own
    of_sums[1:, 0] = -place * (known @ (place * own))
    found: Reals = (of_sums * squares[0]) @ of_sums.T
    free = np.where(known, 0.0, squares[1:-1, 1:-1])
    rest = free * np.outer(own, own)
    # Each entry is in two rows, so residuals of two rows share it; a row has all of its own.
    np.fill_diagonal(rest, free @ own**2 + squares[1:-1, -1] * through[-1] ** 2)
    found[1:, 1:] += rest
    return found
