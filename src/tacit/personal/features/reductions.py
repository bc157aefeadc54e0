"""All aggregates that some features need, over given stretches of time: one series at a time."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tacit.personal.dataset import Dataset
from tacit.personal.features.buckets import Layout, first_seen, layouts
from tacit.personal.features.expressions import valued
from tacit.personal.features.nodes import (
    Aggregate,
    Column,
    Events,
    Feature,
    Static,
    Window,
    leaves,
    type_of,
)
from tacit.personal.features.rows import row_truths, row_values
from tacit.personal.features.series import REDUCERS, Reach, Series
from tacit.personal.features.sources import bucketed, finest
from tacit.personal.features.timelines import Spans, Timeline, timeline
from tacit.personal.features.values import Values
from tacit.personal.features.vocabulary import AGGREGATES
from tacit.personal.frame import EVER, Frame

__all__ = ["Reductions"]

Ints = NDArray[np.int64]
Needed = Aggregate | Static
Done = dict[Needed, Values]


class Reductions:
    def __init__(self, dataset: Dataset, frame: Frame) -> None:
        self._dataset, self._frame = dataset, frame
        self._timelines: dict[str, Timeline] = {}

    def all(self, needed: Iterable[Needed], spans: Spans) -> Done:
        """The value of each for each span."""
        done: Done = {}
        rows: dict[tuple[Feature, Feature | None], list[Aggregate]] = {}
        stacked: dict[tuple[Window, int], list[Aggregate]] = {}
        for node in dict.fromkeys(needed):
            if isinstance(node, Static):
                done[node] = self._static(node, spans)
            elif inner := bucketed(node):
                stacked.setdefault((node.window, inner[0].every or 0), []).append(node)
            else:
                rows.setdefault((node.of, node.where), []).append(node)
        ranges = _Ranges(self, spans)
        for (of, where), nodes in rows.items():
            done |= self._over_rows(of, where, nodes, ranges)
        for (window, every), nodes in stacked.items():
            done |= self._over_buckets(window, every, nodes, spans)
        return done

    def timeline(self, type_: str) -> Timeline:
        if type_ not in self._timelines:
            self._timelines[type_] = timeline(self._dataset.of(type_), self._frame.groups)
        return self._timelines[type_]

    # ── over rows ──

    def _over_rows(
        self, of: Feature, where: Feature | None, nodes: list[Aggregate], ranges: _Ranges
    ) -> Done:
        type_ = type_of(of)
        assert type_ is not None
        series, known = self._series(of, where, type_)
        done: Done = {}
        for node in nodes:
            low, high = ranges.of(type_, node.window)
            reach = Reach(known[low], known[high], ranges.spans.until)
            if node.name == "share" and isinstance(of, Events):
                done[node] = Values("number", _share(reach.counts, (high - low).astype(np.float64)))
            else:
                done[node] = _reduced(node, series, reach)
        return done

    def _series(self, of: Feature, where: Feature | None, type_: str) -> tuple[Series, Ints]:
        """What is known, in order, and how much of it stands before each place in that order."""
        line = self.timeline(type_)
        order = line.order if line.order is not None else slice(None)
        holds = np.ones(line.table.rows, np.bool_)
        values = Values("number", np.zeros(0))
        if where is not None:
            holds = row_truths(where, type_, self._dataset)
        if not isinstance(of, Events):
            values = row_values(of, type_, self._dataset)
            holds = holds & ~np.isnan(values.data)
        chosen = holds[order]
        known = np.concatenate([[0], np.cumsum(chosen)])
        places = np.flatnonzero(chosen) if line.order is None else line.order[chosen]
        data = values.data if isinstance(of, Events) else values.data[places]
        moments = line.table.times[places] if not line.table.kind.static else places
        return Series(values.kind, data, values.words, moments), known

    def _static(self, node: Static, spans: Spans) -> Values:
        series, known = self._series(Column(node.type, node.field), None, node.type)
        low, high = self.timeline(node.type).whole(spans.who)
        return _reduced(
            Aggregate("last", node), series, Reach(known[low], known[high], spans.until)
        )

    # ── over buckets ──

    def _over_buckets(
        self, window: Window, every: int, nodes: list[Aggregate], spans: Spans
    ) -> Done:
        """The aggregates inside, for every bucket as if it were an instance; then those outside."""
        inside = [inner for node in nodes for inner in bucketed(node)]
        shortest = min(finest(node) or every for node in nodes)
        endless = bool((spans.begins(window) == EVER).any())
        firsts = self._firsts(inside, spans) if endless else np.full_like(spans.until, EVER)
        parts: dict[Aggregate, list[Values]] = {node: [] for node in nodes}
        for layout in layouts(spans, firsts, window, every, shortest):
            made = self.all(inside, layout.buckets)
            for node in nodes:
                values = valued(node.of, lambda at: made[at], self._dataset)  # type: ignore[index]  # noqa: B023
                parts[node].append(_reduced_buckets(node, values, layout))
        return {node: _joined(parts[node]) for node in nodes}

    def _firsts(self, inside: Iterable[Aggregate], spans: Spans) -> Ints:
        """When the first of the events happened that the buckets are of."""
        firsts = np.full(len(spans.who), np.iinfo(np.int64).max)
        for type_ in sorted({t for node in inside for t in _types(node)}):
            line = self.timeline(type_)
            moments = line.table.times if line.order is None else line.table.times[line.order]
            here = first_seen(*line.reach(spans, None), moments)
            firsts = np.where(here == EVER, firsts, np.minimum(firsts, here))
        return np.where(firsts == np.iinfo(np.int64).max, EVER, firsts)


class _Ranges:
    """The range of each span, once for each type and window."""

    def __init__(self, reductions: Reductions, spans: Spans) -> None:
        self.spans = spans
        self._reductions = reductions
        self._made: dict[tuple[str, Window], tuple[Ints, Ints]] = {}

    def of(self, type_: str, window: Window) -> tuple[Ints, Ints]:
        key = (type_, window)
        if key not in self._made:
            self._made[key] = self._reductions.timeline(type_).reach(self.spans, window)
        return self._made[key]


def _reduced(node: Aggregate, series: Series, reach: Reach) -> Values:
    means = AGGREGATES[node.name]
    with np.errstate(all="ignore"):
        data = REDUCERS[node.name](series, reach)
    data = np.where(np.isfinite(data), data, np.nan)
    kept = means.gives is None
    return Values(means.gives or series.kind, data, series.words if kept else ())


def _reduced_buckets(node: Aggregate, values: Values, layout: Layout) -> Values:
    buckets = layout.buckets
    data = np.broadcast_to(values.data, buckets.until.shape)
    holds = ~np.isnan(data)
    known = np.concatenate([[0], np.cumsum(holds)])
    series = Series(values.kind, data[holds], values.words, buckets.until[holds])
    return _reduced(node, series, Reach(known[layout.low], known[layout.high], layout.high))


def _share(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    return part / np.where(whole > 0, whole, np.nan)


def _types(node: Aggregate) -> Iterable[str]:
    for leaf in leaves(node.of):
        if isinstance(leaf, Aggregate):
            yield from _types(leaf)
        else:
            yield leaf.type


def _joined(parts: list[Values]) -> Values:
    """Of one feature: all have the same words."""
    if not parts:
        return Values("number", np.empty(0))
    return Values(parts[0].kind, np.concatenate([part.data for part in parts]), parts[0].words)
