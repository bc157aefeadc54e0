"""What is asked for, put into the data: the exam of tomorrow, known or imagined, and what is
supposed to happen before it.

An imagined event has a time and the fields that the question itself fixes, and nothing else.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.personal.ask.expressions import Condition, condition_text
from tacit.personal.ask.reading import Reading
from tacit.personal.dataset import Dataset, EventTable
from tacit.personal.durations import DAY
from tacit.personal.events import EPOCH, MICROSECOND, Event, Value, moment
from tacit.personal.features.conditions import fulfils

__all__ = ["IMAGINED", "Posed", "posed"]

IMAGINED = "imagined"  # the source of events that have not happened
MOST_ASKED = 10
LOOKED_BACK = 60  # days


@dataclass(frozen=True)
class Posed:
    """The data with what is imagined, and which instances are asked about.

    at         when they begin: moments of events, or the beginning of the stretch of time
    imagined   whether the asked-for event is in no calendar
    known      how many events of the type are recorded already for a stretch of time to come
    """

    dataset: Dataset
    at: tuple[int, ...]
    imagined: bool
    known: int = 0


def posed(reading: Reading, dataset: Dataset, now: datetime.datetime) -> Posed:
    if reading.target.shape == "window":
        start, end = moment(reading.horizon.start), moment(reading.horizon.end)
        known = dataset.of(reading.entity).between(start, end).rows
        return Posed(_supposing(reading, dataset, start, now), (start,), False, known)
    coming = _coming(reading, dataset, now)
    if coming:
        return Posed(_supposing(reading, dataset, coming[0], now), coming, False)
    table = dataset.of(reading.entity)
    when = _usual_time(reading, dataset, now)
    fields = {c.field: _value_for(c, table) for c in reading.conditions}
    event = Event(reading.entity, EPOCH + when * MICROSECOND, fields, IMAGINED)
    return Posed(_supposing(reading, dataset.with_event(event), when, now), (when,), True)


def _coming(reading: Reading, dataset: Dataset, now: datetime.datetime) -> tuple[int, ...]:
    """Events of that type within the stretch asked about; without one, the next."""
    table = dataset.of(reading.entity)
    since = max(moment(now) + 1, moment(reading.horizon.start) if reading.horizon.stated else 0)
    later = table.times >= since
    if reading.horizon.stated:
        later &= table.times < moment(reading.horizon.end)
    if reading.conditions:
        later &= fulfils(condition_text(reading.conditions, reading.entity), table, dataset.zone)
    found = np.unique(table.times[later]).tolist()
    return tuple(found[: MOST_ASKED if reading.horizon.stated else 1])


def _usual_time(reading: Reading, dataset: Dataset, now: datetime.datetime) -> int:
    """The first day asked about, at the median hour of such events; tomorrow if none was said."""
    local = dataset.local(dataset.of(reading.entity).between(None, moment(now)).times) % DAY
    start = reading.horizon.start
    hour = int(np.median(local)) if len(local) else DAY // 2
    midnight = start.replace(hour=0, minute=0, second=0, microsecond=0)
    wall = midnight + datetime.timedelta(microseconds=hour // 60_000_000 * 60_000_000)
    last = reading.horizon.end - datetime.timedelta(minutes=1)
    return moment(min(max(wall, start + datetime.timedelta(minutes=1)), last))


def _supposing(reading: Reading, dataset: Dataset, before: int, now: datetime.datetime) -> Dataset:
    """With an event for each supposition."""
    for supposed in reading.suppositions:
        table = dataset.of(supposed.type)
        fields = {c.field: _value_for(c, table) for c in supposed.conditions}
        time = EPOCH + _usual_before(table, before, moment(now)) * MICROSECOND
        dataset = dataset.with_event(Event(supposed.type, time, fields, IMAGINED))
    return dataset


def _usual_before(table: EventTable, before: int, now: int) -> int:
    """As long before as the last such event usually is at that time of day; in the future."""
    times = before - DAY * np.arange(1, LOOKED_BACK)
    places = np.searchsorted(table.times, times, "left") - 1
    there = places >= 0
    gaps = (times - table.times[places])[there]
    usual = before - (int(np.median(gaps)) if len(gaps) else 1)
    return usual if now < usual < before else before - 1


def _value_for(condition: Condition, table: EventTable) -> Value:
    """A value that fulfils the condition: the usual one of past events that did."""
    if condition.operator == "=" or isinstance(condition.value, str | bool):
        return condition.value
    numbers: NDArray[np.float64] = table.numbers(condition.field)
    fits = _COMPARES[condition.operator](numbers, condition.value)
    if fits.any():
        return float(np.median(numbers[fits]))
    step = {"<": -1e-6, ">": 1e-6}.get(condition.operator, 0.0)
    return condition.value + step * max(1.0, abs(condition.value))


_COMPARES = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
