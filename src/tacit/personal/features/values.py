"""One value for each row or instance, of one kind, and what operators do with such.

Missing is NaN. Categories are places in a sorted list of words. Two may be computed together if
they are of one length, or one of them has length one: a literal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.personal.events import Kind
from tacit.personal.features.nodes import Number, Text

__all__ = ["Values", "among", "binary", "categories", "literal", "negated"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Values:
    """`words` are the values of a category, in order; times are seconds since 1970."""

    kind: Kind
    data: Floats
    words: tuple[str, ...] = ()


def categories(codes: NDArray[np.int32], words: list[str]) -> Values:
    """From places in a list of any order, -1 for missing: places in the sorted list."""
    found = tuple(sorted(set(words)))
    rank = {word: place for place, word in enumerate(found)}
    places = np.array([*(rank[word] for word in words), np.nan], np.float64)
    return Values("category", places[codes], found)


def literal(value: float | str | bool) -> Values:
    if isinstance(value, str):
        return Values("category", np.zeros(1), (value,))
    return Values("boolean" if isinstance(value, bool) else "number", np.array([float(value)]))


def binary(op: str, left: Values, right: Values) -> Values:
    if op in ARITHMETIC:
        return _arithmetic(op, left, right)
    if op in ("and", "or"):
        return Values("boolean", LOGIC[op](left.data, right.data))
    data = right.data if left.words == right.words else _translated(right, left.words)
    missing = np.isnan(left.data) | np.isnan(right.data)
    return Values("boolean", np.where(missing, np.nan, COMPARISONS[op](left.data, data)))


def negated(values: Values) -> Values:
    return Values("boolean", 1.0 - values.data)


def among(values: Values, chosen: tuple[Number | Text, ...]) -> Values:
    if values.words:
        wanted = {value.value for value in chosen}
        codes = [place for place, word in enumerate(values.words) if word in wanted]
    else:
        codes = [value.value for value in chosen if isinstance(value, Number)]  # type: ignore[misc]
    found = np.isin(values.data, np.array(codes, np.float64)).astype(np.float64)
    return Values("boolean", np.where(np.isnan(values.data), np.nan, found))


def _arithmetic(op: str, left: Values, right: Values) -> Values:
    """What is no finite number, such as a division by nothing, is missing."""
    with np.errstate(all="ignore"):
        data = ARITHMETIC[op](left.data, right.data)
    kind: Kind = "time" if left.kind == "time" and right.kind == "number" else "number"
    return Values(kind, np.where(np.isfinite(data), data, np.nan))


def _translated(values: Values, words: tuple[str, ...]) -> Floats:
    """Categories as places in another list of words; -1 for words that are not in it."""
    if not values.words:
        return values.data
    rank = {word: place for place, word in enumerate(words)}
    places = np.array([rank.get(word, -1) for word in values.words], np.float64)
    known = ~np.isnan(values.data)
    found = np.full(len(values.data), np.nan)
    found[known] = places[values.data[known].astype(np.int64)]
    return found


def _and(left: Floats, right: Floats) -> Floats:
    """Kleene: false if either is false, else missing if either is missing."""
    no = (left == 0.0) | (right == 0.0)
    return np.where(no, 0.0, left * right)


def _or(left: Floats, right: Floats) -> Floats:
    return 1.0 - _and(1.0 - left, 1.0 - right)


Operation = Callable[[Floats, Floats], Floats]

LOGIC: dict[str, Operation] = {"and": _and, "or": _or}

ARITHMETIC: dict[str, Operation] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}

COMPARISONS: dict[str, Callable[[Floats, Floats], NDArray[np.bool_]]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
