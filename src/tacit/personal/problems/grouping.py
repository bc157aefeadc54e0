"""Things that fields tell apart: pipes, courses, cities. Events without a value are one more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.personal.dataset import EventTable

__all__ = ["Group", "Grouping", "group_words", "grouping"]

Group = tuple[str | float | None, ...]


@dataclass(frozen=True)
class Grouping:
    """The group of each row of a table: a place in `groups`, which are in order of their values."""

    groups: tuple[Group, ...]
    ids: NDArray[np.int64]


def grouping(table: EventTable, by: Sequence[str]) -> Grouping:
    """Rows by the values of these fields; all in one group if there are none."""
    ids = np.zeros(table.rows, np.int64)
    groups: list[Group] = [()]
    for field in by:
        codes, values = _coded(table, field)
        pairs, ids = np.unique(ids * (len(values) + 1) + codes, return_inverse=True)
        groups = [
            (*groups[pair // (len(values) + 1)], (*values, None)[pair % (len(values) + 1)])
            for pair in pairs.tolist()
        ]
    return Grouping(tuple(groups), ids.astype(np.int64))


def _coded(table: EventTable, field: str) -> tuple[NDArray[np.int64], list[str] | list[float]]:
    """Places among the sorted values; the place after the last where there is none."""
    if table.kind_of(field) in ("category", "text"):
        codes, values = table.codes(field)
        order = sorted(set(values))
        rank = {value: place for place, value in enumerate(order)}
        places = np.array([*(rank[value] for value in values), len(order)], np.int64)
        return places[codes], order
    numbers = table.numbers(field) + 0.0  # minus zero is zero
    found = np.unique(numbers[~np.isnan(numbers)])
    codes64 = np.where(np.isnan(numbers), len(found), np.searchsorted(found, numbers))
    return codes64.astype(np.int64), [float(value) for value in found]


def group_words(table: EventTable, by: Sequence[str], group: Group) -> str:
    """For people: `pipe=3, new=true`."""
    said = []
    for field, value in zip(by, group, strict=True):
        if value is None:
            text = "none"
        elif isinstance(value, str):
            text = value
        else:
            boolean = table.kind_of(field) == "boolean"
            text = ("true" if value else "false") if boolean else f"{value:.12g}"
        said.append(f"{field}={text}")
    return ", ".join(said)
