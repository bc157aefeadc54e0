"""States as they travel: what rounds change, and nothing else.

In a federation a state comes from an aggregator that nobody has to trust. What never changes
(norms, layouts, bounds, schedules) follows from the study, so it is not sent: everyone computes the
first state and takes all of that from it. What is sent must be of the first state's kind, with
arrays of its types and shapes, and finite; whatever else it says is harmless (sensitivity.md). All
of this depends on the bytes alone: a refusal tells nothing of anybody's records.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from tacit.errors import InputError, TacitError
from tacit.programs.files import fields_from_bytes, to_bytes

__all__ = ["state_bytes", "state_from", "varying"]


def state_bytes(state: Any) -> bytes:
    """What rounds change of a state."""
    return to_bytes(state, only=varying(type(state)))


def state_from(data: bytes, first: Any) -> Any:
    """The state that the bytes tell of, everything else as in the first; InputError if none."""
    kind = type(first)
    sent = fields_from_bytes(kind, data, varying(kind))
    grows = getattr(kind, "grows", ())
    for name, value in sent.items():
        _check_finite(name, value)
        if isinstance(value, np.ndarray):
            _check_array(name, value, getattr(first, name), name in grows)
    try:
        return replace(first, **sent)
    except (TacitError, ValueError, TypeError, ArithmeticError):  # its own __post_init__ objects
        raise InputError("this state's fields contradict one another.") from None


def varying(kind: type[Any]) -> frozenset[str]:
    """The fields that travel. A class that does not say what varies sends all that it has."""
    if not hasattr(kind, "varies"):
        return frozenset(field.name for field in fields(kind))
    return frozenset((*kind.varies, *getattr(kind, "grows", ())))


def _check_finite(name: str, value: Any) -> None:
    if isinstance(value, tuple):
        for part in value:
            _check_finite(name, part)
        return
    number = isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")
    if number and not np.isfinite(value).all():
        raise InputError(f"this state's {name} is not finite.")


def _check_array(name: str, value: Any, first: Any, grows: bool) -> None:
    if value.dtype != first.dtype or value.ndim != first.ndim:
        raise InputError(f"this state's {name} is an array of another kind.")
    if not grows and value.shape != first.shape:
        raise InputError(f"this state's {name} has another shape than the study's.")
