"""Instances (AnonML, tables 3.1 and 3.2): what each example is about, may see, and is asked.

In columns, since there may be many. An instance has a *cut-off*: its features see nothing that
happened at that moment or later. What is asked has a *stretch* of its own, which begins at the
cut-off or later. A label is known only once that stretch is over: a week that is not finished, and
in which no pipe has burst so far, is not yet a week without a burst.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.errors import Leakage, UsageError
from tacit.personal.dataset import Dataset
from tacit.personal.events import Event, Value
from tacit.personal.frame import EVER, Frame
from tacit.personal.matrix import Label
from tacit.personal.problems.labels import Labels, decided, labels_of

__all__ = ["Instance", "Instancer", "Instances", "last_moment"]

Moments = NDArray[np.int64]


@dataclass(frozen=True)
class Instance:
    """One example.

    dataset  the events that its features may see
    own      the event it is about, with the fields that are known beforehand
    label    None where it is not known yet
    """

    key: str
    cutoff: int
    dataset: Dataset
    own: Event | None
    label: Label | None


@dataclass(frozen=True, kw_only=True)
class Instances:
    """Some instances over the events of a dataset; one entry each, moments in microseconds.

    keys         for people: `pipe=3, 2024-02-12`
    cutoffs      features see what happened before
    label        an expression in the language of features, or a function of the events of the
                 label's stretch
    label_since  where that stretch begins …
    label_until  … and ends (exclusive)
    now          everything until then, and at that moment, has been recorded
    starts       where the instance's own span begins; by default at the cut-off
    moments      what it is about: `hour(moment)` is the hour of this; by default the cut-off
    groups       field → the value that each instance is restricted to (None: without a value)
    own, rows    the type of its own event, and the place of that event in its table
    known        fields of the own event that are known beforehand
    is_open      the stretches have no end of their own: they say nothing until one of the events
                 that the label reads has happened
    """

    dataset: Dataset
    keys: tuple[str, ...]
    cutoffs: Moments
    label: str | Callable[[Dataset], Value]
    label_since: Moments
    label_until: Moments
    now: int
    label_name: str = "label"
    starts: Moments | None = None
    moments: Moments | None = None
    groups: Mapping[str, tuple[str | float | None, ...]] = field(default_factory=dict)
    own: str | None = None
    rows: Moments | None = None
    known: frozenset[str] = frozenset()
    is_open: bool = False

    def __post_init__(self) -> None:
        columns = (self.cutoffs, self.label_since, self.label_until, self.starts, self.moments)
        sizes = {len(column) for column in (*columns, self.rows) if column is not None}
        sizes |= {len(values) for values in self.groups.values()}
        if sizes != {len(self.keys)}:
            raise UsageError("keys and all the columns of instances must be equally many.")
        if (self.own is None) != (self.rows is None):
            raise UsageError("`own` (the type) and `rows` (the places) go together.")
        early = self.label_since < self.cutoffs
        if early.any():
            raise Leakage(
                f"{int(early.sum())} instances are asked about a stretch that begins before their "
                "cut-off: their features would see what they are to predict. Begin the label's "
                "stretch at the cut-off or later."
            )
        if self.own is not None:
            unknown = self.known - set(self.dataset.of(self.own).kind.fields)
            if unknown:
                raise UsageError(f"known: {self.own} has no field {min(unknown)}.")

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def frame(self) -> Frame:
        """What features may see."""
        since = np.full(len(self), EVER, np.int64)
        return self._frame(since, self.cutoffs, self._spans(), self._known())

    @property
    def label_frame(self) -> Frame:
        """What labels may see: the label's stretch, and what was not known of the own event.

        An own event from before the cut-off is no part of what is asked.
        """
        return self._frame(self.label_since, self.label_until, self.label_since, self._asked())

    @property
    def is_over(self) -> NDArray[np.bool_]:
        """Whether the label's stretch is over: all of its moments have been recorded."""
        over: NDArray[np.bool_] = self.label_until - 1 <= self.now
        return over

    @property
    def label_span(self) -> int:
        """The longest time from a cut-off until its answer was known: rows that are nearer to one
        another than that have answers that overlap."""
        return int((decided(self) - self.cutoffs).max(initial=0))

    @cached_property
    def labels(self) -> Labels:
        return labels_of(self)

    def instance(self, place: int) -> Instance:
        """One of them by itself."""
        if not 0 <= place < len(self):
            raise UsageError(f"there is no instance {place}; there are {len(self)}, from 0.")
        frame = self.frame
        return Instance(
            self.keys[place],
            int(self.cutoffs[place]),
            frame.seen(self.dataset, place),
            self.own_event(place, frame.known),
            self.labels.field(self.label_name, place),
        )

    def own_event(self, place: int, fields: frozenset[str]) -> Event | None:
        """The instance's own event, with these of its fields."""
        if self.own is None or self.rows is None or self.rows[place] < 0:
            return None
        table = self.dataset.of(self.own)
        (event,) = table.take(self.rows[place : place + 1]).events()
        kept = {name: event.fields[name] for name in sorted(fields)}
        return Event(event.type, event.time, kept, event.source)

    def _frame(
        self, since: Moments, until: Moments, start: Moments, known: frozenset[str]
    ) -> Frame:
        moments = self.cutoffs if self.moments is None else self.moments
        rows = np.full(len(self), -1, np.int64) if self.rows is None else self.rows
        return Frame(since, until, start, moments, dict(self.groups), self.own, rows, known)

    def _spans(self) -> Moments:
        return self.cutoffs if self.starts is None else self.starts

    def _known(self) -> frozenset[str]:
        """All fields of own events that have happened before the cut-off; else what is known."""
        if self.own is not None and self._own_before().all():
            return frozenset(self.dataset.of(self.own).kind.fields)
        return self.known

    def _asked(self) -> frozenset[str]:
        if self.own is None or self._own_before().any():
            return frozenset()
        return frozenset(self.dataset.of(self.own).kind.fields)

    def _own_before(self) -> NDArray[np.bool_]:
        before = np.zeros(len(self), np.bool_)
        if self.own is not None and self.rows is not None:
            there = self.rows >= 0
            times = self.dataset.of(self.own).times
            before[there] = times[self.rows[there]] < self.cutoffs[there]
        return before


class Instancer(ABC):
    """What defines a problem: entity and label (AnonML, table 3.2)."""

    @abstractmethod
    def make_instances(self, dataset: Dataset, now: int | None = None) -> Instances:
        """The instances over these events.

        now  until when everything has been recorded; by default the last moment of the events
        """


def last_moment(dataset: Dataset) -> int | None:
    """When the last of these events happened; None if nothing ever did."""
    lasts = [int(table.times[-1]) for table in dataset.tables.values() if len(table.times)]
    return max(lasts, default=None)
