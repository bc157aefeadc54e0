"""Baskets, lists of items by name, as a table with one column for each item."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, UsageError

__all__ = ["Baskets", "are_baskets", "is_stream", "read_baskets"]

CONTAINERS = (list, tuple, set, frozenset)


class Baskets(NamedTuple):
    """Which record has which item, the items' names in order, and whether they were stated."""

    has: NDArray[np.float64]
    names: tuple[str, ...]
    stated: bool


def is_stream(X: Any) -> bool:
    """Whether it can be read once only."""
    return isinstance(X, Iterator)


def are_baskets(X: Any, items: Any = None) -> bool:
    """Whether X lists, for each record, names of items; numbers 0 and 1 are a table of items."""
    if getattr(X, "ndim", 1) != 1 or isinstance(X, (str, bytes, dict)) or hasattr(X, "columns"):
        return False
    rows = _rows(X)
    if rows and all(isinstance(row, (str, bytes)) for row in rows):
        raise InputError(
            'each basket is a text: give lists of items, [["bread", "milk"], ["milk"]].'
        )
    if not rows or not any(isinstance(row, (*CONTAINERS, np.ndarray)) for row in rows):
        return False
    if not all(isinstance(row, (*CONTAINERS, np.ndarray)) for row in rows):
        raise InputError("some baskets are no lists of items: give an empty list for none.")
    if items is not None or any(isinstance(row, (set, frozenset)) for row in rows):
        return True
    if len({len(row) for row in rows}) > 1:  # rows of a table would be of one length
        return True
    if _numbered(X, rows):
        raise InputError(
            "X lists whole numbers other than 0 and 1, all rows of one length: it may be baskets "
            "of numbered items, or a table. For baskets, state items=[…] or give sets; for a table "
            "of items, give an array of 0 and 1."
        )
    return any(isinstance(item, str) or item is None for row in rows for item in row)


def _numbered(X: Any, rows: list[Any]) -> bool:
    """Whether X, no array, lists rows of whole numbers that are no table of zeros and ones."""
    items = [item for row in rows for item in row] if isinstance(X, CONTAINERS) else []
    whole = all(isinstance(i, (int, np.integer)) and not isinstance(i, bool) for i in items)
    return bool(items) and whole and not set(items) <= {0, 1}


def read_baskets(X: Any, items: Any = None) -> Baskets:
    """One column for each of `items`, or of those that occur; an item twice counts once."""
    rows = [{_name(item) for item in row} for row in _rows(X)]
    names = sorted(set().union(*rows)) if items is None else _stated(items)
    place = {name: number for number, name in enumerate(names)}
    has = np.zeros((len(rows), len(names)))
    for number, row in enumerate(rows):
        if not row <= place.keys():
            raise InputError(
                f"row {number + 1} has an item that is none of the {len(names)} stated items. "
                "Correct it, or add it to items, if that it may occur is public."
            )
        has[number, [place[name] for name in row]] = 1.0
    if not names:
        raise InputError("the baskets have no item at all: state items, or give other baskets.")
    return Baskets(has, tuple(names), items is not None)


def _stated(items: Any) -> list[str]:
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise UsageError("items must list the names of all items that may occur.")
    names = [_name(item) for item in items]
    if not names or len(set(names)) < len(names):
        raise UsageError("items must be one or more different names.")
    return names


def _name(item: Any) -> str:
    if isinstance(item, (str, int, np.integer)) and not isinstance(item, bool) and str(item):
        return str(item)
    raise InputError("an item is named by a text or a whole number; a gap is no item.")


def _rows(X: Any) -> list[Any]:
    """Of a list, a column of pandas, polars or Arrow, or an array of lists."""
    for way in ("to_pylist", "to_list", "tolist"):
        if hasattr(X, way):
            return list(getattr(X, way)())
    return list(X) if isinstance(X, Iterable) else []
