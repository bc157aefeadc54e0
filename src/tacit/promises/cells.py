"""The cells: everything that can be asked for, whether it makes sense or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import product
from typing import Any

from tacit.privacy.promise import Adjacency, Unit
from tacit.programs.registry import OWN

__all__ = ["AXES", "CHANNELS", "KINDS", "Cell", "cells"]

# The federation's second noise policy and the consortium's second protocol are channels of their
# own here: other noise is added, by others.
CHANNELS = (
    "central",
    "federation",
    "federation, honest",
    "consortium",
    "consortium, as published",
    "peers",
    "crowd",
)
KINDS = ("pure", "δ", "none")  # δ = 0, δ > 0, ε = ∞


@dataclass(frozen=True, slots=True)
class Cell:
    """One promise that somebody may ask for.

    kind        "pure" (δ = 0), "δ" (δ > 0) or "none" (ε = ∞, for comparison)
    sampling    each unit takes part in each round with a probability below 1
    windows     new records arrive in windows, each of which is to have the whole promise
    selection   only coordinates that stand out are released
    holders     with how many holders one person may be: 1, or 2 for any k above 1
    """

    channel: str
    program: str
    unit: Unit
    adjacency: Adjacency
    kind: str
    sampling: bool = False
    windows: bool = False
    selection: bool = False
    holders: int = 1


AXES: dict[str, tuple[Any, ...]] = {
    "channel": CHANNELS,
    "program": tuple(sorted(OWN)),
    "unit": tuple(Unit),
    "adjacency": tuple(Adjacency),
    "kind": KINDS,
    "sampling": (False, True),
    "windows": (False, True),
    "selection": (False, True),
    "holders": (1, 2),
}
assert [field.name for field in fields(Cell)] == list(AXES)


def cells() -> Iterator[Cell]:
    """All of them, in a fixed order."""
    for values in product(*AXES.values()):
        yield Cell(*values)
