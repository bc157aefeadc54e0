"""Features for all instances at once.

    events of a type, in order of group and time        timelines.py
    an instance's events: a range of that order         timelines.py
    values and condition of each event                  expressions.py
    the known ones among them: a series                 series.py
    each aggregate on all ranges of a series            series.py, trees.py, sweep.py, wavelet.py
    buckets: shorter ranges, then the same again        buckets.py

No aggregate is handed anything but its ranges, and no range reaches to the cut-off or to another
group. What several features share (orders, ranges, series) is made once. One series is held at a
time, so that memory does not grow with the number of features.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.personal.dataset import Dataset
from tacit.personal.durations import SECOND
from tacit.personal.events import Kind
from tacit.personal.features.expressions import valued
from tacit.personal.features.nodes import (
    Aggregate,
    Column,
    Feature,
    Moment,
    Own,
    Static,
    children,
)
from tacit.personal.features.reductions import Reductions
from tacit.personal.features.rows import column_values
from tacit.personal.features.signature import kind_of
from tacit.personal.features.timelines import Spans
from tacit.personal.features.values import Values
from tacit.personal.frame import Frame

__all__ = ["Evaluated", "evaluate"]


class Evaluated(NamedTuple):
    """A column for each feature, NaN where nothing can be said.

    kinds   number, boolean, or category: then the entries are places in `values[str(feature)]`,
            which holds the words that occur, in order
    """

    columns: NDArray[np.float64]
    kinds: tuple[Kind, ...]
    values: dict[str, tuple[str, ...]]


def evaluate(features: Sequence[Feature], dataset: Dataset, frame: Frame) -> Evaluated:
    """Every feature of every instance. An InputError for what does not fit the events, a Leakage
    for what is not known beforehand."""
    types = dataset.types
    kinds: list[Kind] = [kind_of(f, types, frame.own, frame.known) for f in features]
    made = Reductions(dataset, frame).all(_aggregates(features), Spans.of(frame))
    columns = np.empty((frame.size, len(features)), np.float64, order="F")
    words: dict[str, tuple[str, ...]] = {}
    for place, (feature, kind) in enumerate(zip(features, kinds, strict=True)):
        values = valued(feature, _Leaves(dataset, frame, made).values, dataset)
        columns[:, place] = values.data  # a literal is as good for every instance
        if kind == "category":
            columns[:, place], words[str(feature)] = _occurring(columns[:, place], values.words)
    return Evaluated(columns, tuple(kinds), words)


class _Leaves:
    """What is known of the instances themselves."""

    def __init__(
        self, dataset: Dataset, frame: Frame, made: Mapping[Aggregate | Static, Values]
    ) -> None:
        self._dataset, self._frame, self._made = dataset, frame, made

    def values(self, node: Feature) -> Values:
        match node:
            case Aggregate() | Static():
                return self._made[node]
            case Own(field):
                return self._own(field)
            case Moment():
                return Values("time", self._frame.at / SECOND)
            case _:
                raise TypeError(f"a {type(node).__name__} belongs inside an aggregate")

    def _own(self, field: str) -> Values:
        assert self._frame.own is not None  # kind_of has seen to it
        all_ = column_values(Column(self._frame.own, field), self._dataset)
        rows = self._frame.rows
        data = np.full(len(rows), np.nan)
        there = np.flatnonzero(rows >= 0)
        data[there] = all_.data[rows[there]]
        return Values(all_.kind, data, all_.words)


def _aggregates(features: Iterable[Feature]) -> Iterable[Aggregate | Static]:
    for feature in features:
        if isinstance(feature, Aggregate | Static):
            yield feature
        else:
            yield from _aggregates(children(feature))


def _occurring(
    codes: NDArray[np.float64], words: tuple[str, ...]
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Only the words that occur: others may be of a time or a group that must not be seen."""
    known = ~np.isnan(codes)
    found, places = np.unique(codes[known].astype(np.int64), return_inverse=True)
    made = np.full(len(codes), np.nan)
    made[known] = places
    return made, tuple(words[place] for place in found)
