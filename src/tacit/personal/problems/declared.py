"""Instances as a problem declares them, for people who do not code."""

from __future__ import annotations

import datetime

import numpy as np
from numpy.typing import NDArray

from tacit.personal.dataset import Dataset, EventTable
from tacit.personal.durations import DAY, duration
from tacit.personal.problems.grouping import group_words
from tacit.personal.problems.instances import Instancer, Instances, last_moment
from tacit.personal.problems.problem import Problem
from tacit.personal.problems.spans import Spans, spans_of
from tacit.personal.problems.windows import midnight

__all__ = ["DeclaredInstancer", "needed_events"]

Moments = NDArray[np.int64]


class DeclaredInstancer(Instancer):
    """Makes the instances of a problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def make_instances(self, dataset: Dataset, now: int | None = None) -> Instances:
        needed = needed_events(self.problem, dataset)
        if now is None:
            now = last_moment(needed) or 0  # without any event there is no instance either
        spans = spans_of(self.problem.instance, needed, now)
        base = self._cutoffs(spans, needed)
        chosen = self._askable(spans, base, now)
        return self._instances(spans.take(chosen), base[chosen], needed, now)

    def _cutoffs(self, spans: Spans, dataset: Dataset) -> Moments:
        """Where the label's stretch begins; features end so much earlier as the lead says."""
        term = self.problem.cutoff
        if term in ("start", "end"):
            return spans.starts if term == "start" else spans.ends
        if "-" in term:
            at = midnight(datetime.date.fromisoformat(term), dataset.zone)
            return np.full(len(spans.starts), at, np.int64)
        return spans.starts + duration(term)

    def _askable(self, spans: Spans, base: Moments, now: int) -> NDArray[np.bool_]:
        """Windows need a cut-off that has been reached, and something that happened before it. A
        session that is over before the cut-off is not asked about. Both are known at the cut-off,
        so that leaving these out gives nothing away."""
        per, horizon = self.problem.instance.per, self.problem.label.horizon
        cutoffs = base - self.problem.lead
        if per == "window":
            askable: NDArray[np.bool_] = (cutoffs <= now + 1) & (cutoffs > spans.firsts)
            return askable
        if per == "session" and not horizon:
            return base < spans.ends
        return np.ones(len(base), np.bool_)

    def _instances(self, spans: Spans, base: Moments, dataset: Dataset, now: int) -> Instances:
        problem, terms = self.problem, self.problem.instance
        until, is_open = self._stretch_ends(spans, base, now)
        values = [spans.groups[i] for i in spans.ids.tolist()]
        return Instances(
            dataset=dataset,
            keys=_keys(problem, spans, dataset),
            cutoffs=base - problem.lead,
            label=problem.label.value,
            label_name=problem.label.name,
            label_since=base,
            label_until=until,
            now=now,
            starts=spans.starts,
            moments=spans.starts if terms.per == "event" else base,
            groups={f: tuple(v[place] for v in values) for place, f in enumerate(terms.by)},
            own=terms.event if terms.per == "event" else None,
            rows=spans.rows,
            known=frozenset(terms.known),
            is_open=is_open,
        )

    def _stretch_ends(self, spans: Spans, base: Moments, now: int) -> tuple[Moments, bool]:
        horizon, per = self.problem.label.horizon, self.problem.instance.per
        if horizon not in ("", "ever"):
            return base + duration(horizon), False
        if horizon == "ever" or per in ("group", "user"):
            return np.maximum(base, now + 1), True
        return spans.ends, False


def needed_events(problem: Problem, dataset: Dataset) -> Dataset:
    """The events and fields that a problem names, and no others: all that it ever reads."""
    problem.check_against(dataset.types)
    tables = {}
    for name, kind in problem.types.items():
        head = ["source"] if kind.static else ["time", "source"]
        columns = dataset.of(name).table.select([*head, *kind.fields])
        tables[name] = EventTable(kind, columns)
    return Dataset(tables, dataset.zone)


def _keys(problem: Problem, spans: Spans, dataset: Dataset) -> tuple[str, ...]:
    """For people: the group, and when it begins on the person's clock."""
    terms = problem.instance
    if terms.per == "user":
        return ("me",) * len(spans.starts)
    having = [t for t in dataset.tables.values() if set(terms.by) <= set(t.kind.fields)]
    words = [group_words(having[0], terms.by, group) for group in spans.groups]
    if terms.per == "group":
        return tuple(words[i] for i in spans.ids.tolist())
    whole_days = terms.every and duration(terms.every) % DAY == 0
    local = dataset.local(spans.starts).view("datetime64[us]")
    dates = np.datetime_as_string(local, unit="D" if whole_days else "m").tolist()
    said = [date.replace("T", " ") for date in dates]
    if not terms.by:
        return tuple(said)
    return tuple(f"{words[i]}, {date}" for i, date in zip(spans.ids.tolist(), said, strict=True))
