"""Clipping: no unit's contribution is longer than the bound it was promised under."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InputError, UsageError
from tacit.privacy.bound import Norm

__all__ = ["clip_to_ball", "norm_named"]


def clip_to_ball(
    X: ArrayLike, radius: float = 1.0, norm: Norm | str = Norm.L2
) -> NDArray[np.float64]:
    """Each row, shortened to `radius` if it is longer; its direction stays.

    Rounding is in the safe direction: in exact arithmetic no returned row is longer than
    `radius`. For that, rows within a rounding error of the sphere are shortened by as much.
    """
    array = np.array(X, dtype=np.float64, ndmin=2)
    kind = norm_named(norm)
    if not 1e-200 <= radius <= 1e200:
        raise UsageError(f"radius must be a number above 0 (and below 1e200), not {radius}.")
    if not np.isfinite(array).all():
        raise InputError("a value is NaN or infinite: treat missing values in the schema.")
    if kind is Norm.LINF:
        return np.clip(array, -radius, radius)
    largest = np.abs(array).max(axis=1, initial=0.0)
    # Divided by its largest entry first: squares neither overflow nor vanish.
    shape = array / np.where(largest > 0, largest, 1.0)[:, None]
    order = 1 if kind is Norm.L1 else 2
    length = np.linalg.norm(shape, ord=order, axis=1)
    # A sum of d terms, a root and two products: a relative error of less than (d + 8) ulp.
    safe = radius * (1.0 - (array.shape[1] + 8) * np.finfo(np.float64).eps)
    with np.errstate(over="ignore"):
        long = largest * length > safe
    array[long] = shape[long] * (safe / length[long])[:, None]
    return array


def norm_named(norm: Norm | str) -> Norm:
    try:
        return Norm(norm)
    except ValueError:
        choices = ", ".join(repr(n.value) for n in Norm)
        raise UsageError(f"norm must be one of {choices}, not {norm!r}.") from None
