"""The promise: what a holder was told, in numbers and in the unit it protects."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from tacit.errors import PromiseError, PromiseWarning

__all__ = ["Adjacency", "Promise", "Unit"]


class Unit(StrEnum):
    """What is protected."""

    RECORD = "record"
    PERSON = "person"
    HOLDER = "holder"


class Adjacency(StrEnum):
    """Which two data sets must look alike: one unit more or less, or one unit exchanged."""

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class Promise:
    """(epsilon, delta)-differential privacy for one `unit` under one `adjacency`.

    For neighbouring data sets D, D′ and every set S of results,
    P[M(D) ∈ S] ≤ exp(epsilon) · P[M(D′) ∈ S] + delta (Dwork & Roth 2014, definition 2.4).
    `epsilon=math.inf` promises nothing: it runs without noise, for comparison.
    """

    epsilon: float
    delta: float = 0.0
    unit: Unit = Unit.RECORD
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _number("epsilon", self.epsilon))
        object.__setattr__(self, "delta", _number("delta", self.delta))
        if not self.epsilon > 0:
            raise PromiseError(
                f"epsilon must be above 0, not {self.epsilon}: smaller is more private; "
                "0.1 to 1 is strong, math.inf means no privacy at all."
            )
        if not 0 <= self.delta < 1:
            raise PromiseError(
                f"delta must lie in [0, 1), not {self.delta}: it is the probability that the "
                "promise fails; take 0, or far less than one over the number of units."
            )
        object.__setattr__(self, "unit", _choice(Unit, "unit", self.unit))
        object.__setattr__(self, "adjacency", _choice(Adjacency, "adjacency", self.adjacency))

    @property
    def is_private(self) -> bool:
        return math.isfinite(self.epsilon)

    def check_population(self, units: int) -> None:
        """Warn if delta would allow publishing one of `units` in the clear."""
        if self.delta and self.delta * units >= 1:
            warnings.warn(
                f"delta = {self.delta:g} is not below 1/n = {1 / units:.2g} for n = {units} "
                f"{self.unit}s: it would allow one {self.unit} to be published outright. "
                f"Take delta ≤ {0.01 / units:.0e}.",
                PromiseWarning,
                stacklevel=2,
            )

    def __str__(self) -> str:
        delta = f", δ = {self.delta:g}" if self.delta else ""
        return f"ε = {self.epsilon:g}{delta} per {self.unit} ({self.adjacency})"


_E = TypeVar("_E", Unit, Adjacency)


def _choice(kind: type[_E], name: str, value: str) -> _E:
    try:
        return kind(value)
    except ValueError:
        choices = ", ".join(repr(k.value) for k in kind)
        raise PromiseError(f"{name} must be one of {choices}, not {value!r}.") from None


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        try:
            value = float(value)  # type: ignore[arg-type]  # numpy scalars, Fractions
        except (TypeError, ValueError):
            raise PromiseError(f"{name} must be a number, not {value!r}.") from None
    if math.isnan(value):
        raise PromiseError(f"{name} is NaN: give a number.")
    return float(value)
