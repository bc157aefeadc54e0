"""The functions of the language: what each takes, and what it makes of it."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.personal.events import Kind

__all__ = ["AGGREGATES", "CLOCK", "FUNCTIONS", "Means"]

NUMBER: frozenset[Kind] = frozenset({"number"})
ORDERED: frozenset[Kind] = frozenset({"number", "time"})
COUNTED: frozenset[Kind] = frozenset({"number", "boolean", "category", "text"})
ANY: frozenset[Kind] = COUNTED | {"time"}
TRUTH: frozenset[Kind] = frozenset({"boolean"})


@dataclass(frozen=True, slots=True)
class Means:
    """
    takes     kinds of values it takes; none if only events themselves
    gives     the kind it makes; None: the kind it was given
    events    whether the events themselves may be asked: `count(ride)`
    empty     what it says of nothing at all; None: missing
    about     one line for people
    """

    takes: frozenset[Kind]
    gives: Kind | None
    about: str
    events: bool = False
    empty: float | None = None


AGGREGATES: dict[str, Means] = {
    "count": Means(ANY, "number", "how many, of those known", events=True, empty=0.0),
    "sum": Means(NUMBER, "number", "all together", empty=0.0),
    "mean": Means(NUMBER, "number", "the arithmetic mean"),
    "min": Means(ORDERED, None, "the least"),
    "max": Means(ORDERED, None, "the greatest"),
    "range": Means(ORDERED, "number", "greatest less least"),
    "std": Means(NUMBER, "number", "standard deviation of a sample (n - 1); of two or more"),
    "median": Means(NUMBER, "number", "the middle one, or the mean of the two in the middle"),
    "first": Means(ANY, None, "the earliest"),
    "last": Means(ANY, None, "the latest"),
    "trend": Means(NUMBER, "number", "slope of the least-squares line, per day"),
    "distinct": Means(ANY, "number", "how many different ones", empty=0.0),
    "mode": Means(COUNTED, None, "the most frequent; of several, the first in order"),
    "entropy": Means(COUNTED, "number", "Shannon's, of the shares, in nats"),
    "share": Means(TRUTH, "number", "the part that is true, of those known", events=True),
    "since": Means(frozenset(), "number", "seconds from the last one to the cut-off", events=True),
    "gap": Means(frozenset(), "number", "mean seconds between one and the next", events=True),
}

CLOCK: dict[str, Kind] = {
    "hour": "number",
    "weekday": "number",
    "month": "number",
    "weekend": "boolean",
}

FUNCTIONS = frozenset({"abs", "log", "is_missing", *CLOCK})
