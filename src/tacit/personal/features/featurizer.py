"""The featurizer (AnonML, table 3.2): from instances to the feature matrix."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.errors import UsageError
from tacit.personal.dataset import Dataset, EventTable
from tacit.personal.events import EventType, Kind, Value, moment
from tacit.personal.features.engine import evaluate
from tacit.personal.features.language import parse
from tacit.personal.features.nodes import Feature
from tacit.personal.frame import Frame
from tacit.personal.matrix import FeatureMatrix

__all__ = ["FeatureFunction", "Featurizer"]

FeatureFunction = Callable[[Dataset], Value]


@dataclass(frozen=True)
class Featurizer:
    """Features in their language, and functions for those who code.

    A function is handed the data set of one instance, which holds nothing that the instance may
    not see: no event at or after its cut-off, none of another group. What is known of its own event
    is there as the one static event of type `own`.
    """

    features: tuple[Feature, ...] = ()
    functions: Mapping[str, FeatureFunction] = field(default_factory=dict)

    @classmethod
    def of(cls, *features: str, **functions: FeatureFunction) -> Featurizer:
        """`Featurizer.of("count(ride, 7d)", busy=lambda seen: seen.of("ride").rows > 9)`."""
        return cls(tuple(parse(text) for text in features), functions)

    @property
    def names(self) -> tuple[str, ...]:
        return (*map(str, self.features), *self.functions)

    def make(
        self,
        dataset: Dataset,
        frame: Frame,
        keys: Sequence[str],
        labels: NDArray[np.float64],
        label: str,
        classes: tuple[str, ...] = (),
    ) -> FeatureMatrix:
        """A row for each instance of the frame. `labels` are numbers, or places in `classes`."""
        columns, kinds, values = evaluate(self.features, dataset, frame)
        made = [_column(name, self._called(name, dataset, frame)) for name in self.functions]
        names = list(self.functions)
        values |= {n: words for n, (_, _, words) in zip(names, made, strict=True) if words}
        return FeatureMatrix(
            tuple(keys),
            frame.until,
            self.names,
            (*kinds, *(kind for kind, _, _ in made)),
            np.column_stack([columns, *(data for _, data, _ in made)]),
            labels,
            label,
            classes,
            values,
        )

    def _called(self, name: str, dataset: Dataset, frame: Frame) -> list[Value]:
        function = self.functions[name]
        return [function(_instance(dataset, frame, place)) for place in range(frame.size)]


def _instance(dataset: Dataset, frame: Frame, place: int) -> Dataset:
    seen = frame.seen(dataset, place)
    row = int(frame.rows[place])
    if frame.own is None or row < 0:
        return seen
    return Dataset({**seen.tables, "own": _own(dataset.of(frame.own), row, frame)}, seen.zone)


def _own(table: EventTable, row: int, frame: Frame) -> EventTable:
    names = [name for name in table.kind.fields if name in frame.known]
    kind = EventType(
        name="own", fields={name: table.kind.fields[name] for name in names}, static=True
    )
    return EventTable.of(kind, table.table.slice(row, 1).select(["source", *names]))


def _column(name: str, values: list[Value]) -> tuple[Kind, NDArray[np.float64], tuple[str, ...]]:
    """All of one kind, or None."""
    found = {type(value) for value in values if value is not None}
    if found == {str}:
        words = sorted({value for value in values if isinstance(value, str)})
        rank = {word: float(place) for place, word in enumerate(words)}
        codes = [np.nan if value is None else rank[str(value)] for value in values]
        return "category", np.array(codes, np.float64), tuple(words)
    if not (found <= {bool} or found <= {int, float} or found <= {datetime.datetime}):
        raise UsageError(
            f"{name}: a feature function returns numbers, truths, texts or times, always of one "
            "kind, and None for missing."
        )
    data = np.array([_number(value) for value in values], np.float64)
    data[~np.isfinite(data)] = np.nan
    return "boolean" if found == {bool} else "number", data, ()


def _number(value: Value) -> float:
    if value is None or isinstance(value, str):
        return np.nan
    return moment(value) / 1e6 if isinstance(value, datetime.datetime) else float(value)
