"""The promise: what a holder was told, in numbers and in the unit it protects."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from numbers import Real
from typing import TypeVar

from tacit import notebook
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


@dataclass(frozen=True, slots=True, repr=False)
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

    def __repr__(self) -> str:
        """As it is written, without what is usual: Promise(1.0, 1e-06)."""
        more = [repr(self.epsilon)]
        more += [repr(self.delta)] if self.delta else []
        more += [] if self.unit is Unit.RECORD else [f"unit={self.unit.value!r}"]
        usual = self.adjacency is Adjacency.ADD_REMOVE
        more += [] if usual else [f"adjacency={self.adjacency.value!r}"]
        return f"Promise({', '.join(more)})"

    def _repr_html_(self) -> str:
        return notebook.table("Promise", self._shown())

    def _shown(self) -> list[tuple[str, str]]:
        changed = "one more or less" if self.adjacency is Adjacency.ADD_REMOVE else "one exchanged"
        return [
            ("ε", f"{self.epsilon:g}" + ("" if self.is_private else " (no privacy)")),
            ("δ", f"{self.delta:g}"),
            ("protects", f"each {self.unit}: {changed}"),
        ]

    def __str__(self) -> str:
        delta = f", δ = {self.delta:g}" if self.delta else ""
        return f"ε = {self.epsilon:g}{delta} per {self.unit} ({self.adjacency})"


_E = TypeVar("_E", Unit, Adjacency)


def _choice(kind: type[_E], name: str, value: object) -> _E:
    choices = ", ".join(repr(k.value) for k in kind)
    if not isinstance(value, str):  # a list, None, a number: none of them names anything
        raise PromiseError(f"{name} must be one of {choices}, not {value!r}.")
    try:
        return kind(value)
    except ValueError:
        raise PromiseError(f"{name} must be one of {choices}, not {value!r}.") from None


def _number(name: str, value: object) -> float:
    """A real number: Python's, numpy's, a fraction or a decimal. What only looks like one is
    refused: "1" may be a column read as text, True an answer to another question."""
    plain = value.item() if _is_numpy_scalar(value) else value  # type: ignore[attr-defined]
    if isinstance(plain, bool) or not isinstance(plain, (Real, Decimal)):
        raise PromiseError(f"{name} must be a number, not {value!r}.{_remedy(name, value)}")
    try:
        number = float(plain)
    except OverflowError:
        raise PromiseError(f"{name} is too large: give math.inf to promise nothing.") from None
    if math.isnan(number):
        raise PromiseError(f"{name} is NaN: give a number.")
    return number


def _is_numpy_scalar(value: object) -> bool:
    return type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0


def _remedy(name: str, value: object) -> str:
    """What was meant, if that can be told."""
    if isinstance(value, str):
        try:
            return f" Write {name}={float(value):g}, without quotes."
        except ValueError:
            return f" Write it as {name}=1.0." if name == "epsilon" else f" Write {name}=1e-6."
    if value is None:
        return " math.inf promises nothing; 1.0 is usual." if name == "epsilon" else " Give 0."
    return ""
