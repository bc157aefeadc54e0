"""The events, the instances and the fifty features that both sides compute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.personal.dataset import Dataset, EventTable
from tacit.personal.durations import DAY
from tacit.personal.events import EventType
from tacit.personal.features.language import parse
from tacit.personal.features.nodes import Feature
from tacit.personal.frame import EVER, Frame

ENTITIES = 1000
YEAR = 365 * DAY
BASE = 1_699_999_980_000_000  # a whole minute
NUMBERS = ("price", "length", "wait")
WINDOWS = (28, 91)  # days
KIND = EventType(
    name="ride",
    fields={"car": "number", **dict.fromkeys(NUMBERS, "number"), "city": "category"},
)


@dataclass(frozen=True)
class Trips:
    """Columns of the events in order of time, and the instances: which car, and until when."""

    columns: dict[str, Any]
    cars: Any
    cutoffs: Any

    def dataset(self) -> Dataset:
        """Made anew, so that nothing is remembered between turns."""
        import pyarrow as pa

        table = pa.table(
            {
                "time": pa.array(self.columns["time"]).cast(pa.timestamp("us", tz="UTC")),
                **{name: self.columns[name] for name in ("car", *NUMBERS, "city")},
            }
        )
        return Dataset({"ride": EventTable.of(KIND, table)})

    def frame(self) -> Frame:
        size = len(self.cutoffs)
        nothing = np.full(size, -1, np.int64)
        groups = {"car": tuple(self.cars.tolist())}
        until = self.cutoffs
        return Frame(np.full(size, EVER), until, until, until, groups, None, nothing, frozenset())


def trips(events: int, instances: int, shared: bool) -> Trips:
    """Ten cut-offs that all cars share, or one of its own for each instance."""
    rng = np.random.default_rng(8)
    times = BASE + _moments(rng, events)
    cities = np.array([f"city{number:02}" for number in range(40)])
    columns = {
        "time": times,
        "car": rng.integers(0, ENTITIES, events).astype(np.float64),
        "price": rng.gamma(4.0, 5.0, events),
        "length": rng.gamma(2.0, 3.0, events),
        "wait": rng.normal(300.0, 60.0, events),
        "city": cities[np.minimum(rng.geometric(0.1, events) - 1, 39)],
    }
    if shared:
        each = instances // 10
        cars = np.tile(np.arange(each, dtype=np.float64), 10)
        steps = np.repeat(np.arange(10), each)
        return Trips(columns, cars, BASE + 180 * DAY + steps * 18 * DAY + 500)
    moments = BASE + 100 * DAY + np.sort(rng.integers(0, 265 * DAY // 1000, instances)) * 1000 + 500
    return Trips(columns, rng.integers(0, ENTITIES, instances).astype(np.float64), moments)


def _moments(rng: Any, events: int) -> Any:
    """Different milliseconds, none within the first second of a minute: the peer's trend is per
    second, but per minute where the first event of a range falls on a whole one."""
    drawn = np.sort(rng.choice(YEAR // 60_000_000 * 59_000, events, replace=False))
    minutes, rest = np.divmod(drawn, 59_000)
    return minutes * 60_000_000 + (rest + 1000) * 1000


def features(days: int) -> list[Feature]:
    """Twenty-five for each window, in the order of the peer's."""
    texts = [f"count(ride, {days}d)", f"since(ride, {days}d)"]
    for name in ("sum", "mean", "min", "max", "std", "last", "trend"):
        texts += [f"{name}(ride.{field}, {days}d)" for field in NUMBERS]
    return [
        parse(t) for t in (*texts, f"distinct(ride.city, {days}d)", f"mode(ride.city, {days}d)")
    ]
