"""Models that a run can have released: one form in bytes, and no longer than training and noise
allow.

An average of trained vectors is no longer than the longest one can be, and the noise on it hardly
ever exceeds a length that is known too. What is longer is garbage, or sabotage, and is refused
without a look at any record. Parties, and strangers who have the study, apply the same check.
"""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np

from tacit.data.schema import Schema
from tacit.errors import CheckFailed, InputError
from tacit.privacy.bound import Norm
from tacit.privacy.mechanisms import Gaussian, Laplace
from tacit.privacy.promise import Unit
from tacit.programs.averaging import Averaged
from tacit.programs.averaging_bounds import noise_norm
from tacit.programs.files import from_bytes
from tacit.programs.model_file import model_bytes

__all__ = ["check_model", "farthest", "within"]

RARE = 2.0**-40  # so often an honest model is taken for garbage
ROUNDING = 1e-9  # of an average and its vector, in double precision


def check_model(data: bytes, averaged: Averaged, schema: Schema, limit: float) -> None:
    """CheckFailed unless `data` is a model of this program and schema, in the one form that it has,
    and no longer than `limit`."""
    try:
        model = from_bytes(averaged.models, data)
        if model_bytes(model, averaged, schema) != data:
            raise InputError("another form")
    except InputError:
        raise CheckFailed(
            "the model is not the file that this study's program writes for its schema."
        ) from None
    if not within(model, averaged, schema, limit):
        raise CheckFailed(
            "the model has another shape than this study's, or is longer than any honest one."
        )


def farthest(
    averaged: Averaged, smallest: int, mechanism: Gaussian | Laplace | None, members: int = 1
) -> float:
    """What the length of an honest average of `members` vectors hardly ever exceeds.

    `mechanism` is what is added to their sum: each member adds one of its parts. Without one,
    rounding is left to the caller, who knows the grid.
    """
    longest = float(averaged.bound(smallest, Unit.HOLDER).value) / 2
    if mechanism is None:
        return longest * (1 + ROUNDING)
    surplus = members / mechanism.parts
    normal = mechanism.bound.norm is Norm.L2
    # Laplace: so many whole noises are more than these parts.
    factor = math.sqrt(surplus) if normal else math.ceil(surplus)
    rounding = math.sqrt(mechanism.length) * float(mechanism.grid.step)
    noise = factor * noise_norm(mechanism, RARE / math.ceil(surplus)) / members
    return (longest + rounding + noise) * (1 + ROUNDING)


def within(model: Any, averaged: Averaged, schema: Schema, limit: float) -> bool:
    """Whether this is a model of the program for the schema, and no longer than `limit`."""
    length = averaged.length(schema)
    if not _is_shaped(model, averaged.model(np.zeros(length), schema)):
        return False
    vector = np.asarray(averaged.vector(model, schema), dtype=np.float64)
    # Coordinates first: the square of a huge one is no number.
    if vector.shape != (length,) or not np.abs(vector).max(initial=0.0) <= limit:
        return False
    return float(np.linalg.norm(vector)) <= limit


def _is_shaped(model: Any, like: Any) -> bool:
    """Of one class, with arrays of one shape, all finite; whatever is no array (classes) equal."""
    return type(model) is type(like) and all(
        _is_alike(getattr(model, field.name), getattr(like, field.name)) for field in fields(like)
    )


def _is_alike(value: Any, like: Any) -> bool:
    if not isinstance(like, np.ndarray):
        return type(value) is type(like) and bool(value == like)
    if not isinstance(value, np.ndarray) or (value.shape, value.dtype) != (like.shape, like.dtype):
        return False
    return bool(np.isfinite(value).all())
