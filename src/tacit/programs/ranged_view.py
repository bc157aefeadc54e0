"""Records whose ranges are still to be found: how they travel, and how they are seen once they are.

They travel with plain numbers in the columns that are searched for, and as the program's own
encoder has them in all others. Under ranges they are what that encoder would have made of them.
Both work on each number by itself: a record's bits do not depend on its batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.batch import Batch
from tacit.data.encode import Encoded, Encoder
from tacit.data.schema import PRIVATE, Column, Schema
from tacit.errors import UsageError
from tacit.programs.layout import layout
from tacit.programs.program import Learner

__all__ = ["RangedEncoder", "View", "blank"]

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]


class RangedEncoder(Encoder):
    """As the program's own encoder has it, but plain numbers where bounds are still to be found."""

    def __init__(self, schema: Schema, program: Learner, uniform: bool = False) -> None:
        schema.require_complete()
        self._own = program.encoder(blank(schema))
        super().__init__(blank(schema), interval=self._own.interval, ball=self._own.ball)
        self.schema, self._plain = schema, _numbers(schema, uniform)
        self._open = schema.private

    def encode(self, batch: Batch) -> Encoded:
        if batch.schema != self.schema:
            raise UsageError("the batch was read with another schema than the encoder's.")
        # The program's encoder says what is missing, and reads nothing else in these columns.
        nothing = {
            c.name: np.where(np.isnan(batch.columns[c.name]), np.nan, 0.0) for c in self._open
        }
        columns = {**batch.columns, **nothing}
        X, y, person = self._own.encode(Batch(self._own.schema, columns, batch.rows))
        for place, column in self._plain:
            values = batch.columns[column.name]
            if place >= 0:
                # Missing values say so in a coordinate of their own.
                X[:, place] = np.nan_to_num(values, nan=0.0)
            else:
                y = np.asarray(values, dtype=np.float64)
        return Encoded(X, y, person)


@dataclass(frozen=True, slots=True)
class View:
    """Where the searched columns are, and what ranges make of them.

    columns           the searched columns, as agreed
    places            the coordinate of each, −1 for the label
    flags             the coordinate that says its value is missing, or −1
    at_low, at_high   the program's encoding of the ends of a range
    """

    columns: tuple[Column, ...]
    places: Integers
    flags: Integers
    at_low: Reals
    at_high: Reals

    @classmethod
    def of(cls, program: Learner, schema: Schema, uniform: bool = False) -> View:
        searched = _numbers(schema, uniform)
        low, high = _encoded_ends(program, blank(schema))
        at = [max(place, 0) for place, _ in searched]
        flags = [p + 1 if c.when_missing == "category" and p >= 0 else -1 for p, c in searched]
        return cls(
            columns=tuple(column for _, column in searched),
            places=np.array([place for place, _ in searched], dtype=np.int64),
            flags=np.array(flags, dtype=np.int64),
            at_low=low[at],
            at_high=high[at],
        )

    @property
    def are_features(self) -> NDArray[np.bool_]:
        return np.asarray(self.places >= 0)

    def values(self, batch: Encoded) -> Reals:
        """The plain numbers of the searched columns; NaN where a value is missing."""
        found = np.empty((len(batch.X), len(self.places)))
        for at, (place, flag) in enumerate(zip(self.places, self.flags, strict=True)):
            found[:, at] = batch.X[:, place] if place >= 0 else batch.y
            if flag >= 0:
                found[batch.X[:, flag] > 0.5, at] = np.nan
        return found

    def seen(self, batch: Encoded, low: Reals, high: Reals) -> Encoded:
        """As the program's own encoder would have it with these bounds; the label in [−1, 1]."""
        X, y, values = np.array(batch.X), batch.y, self.values(batch)
        with np.errstate(all="ignore"):
            scaled = np.clip((values - low) / (high - low), 0.0, 1.0)
        for at, (place, flag) in enumerate(zip(self.places, self.flags, strict=True)):
            if place < 0:
                y = 2.0 * scaled[:, at] - 1.0
                continue
            inside = self.at_low[at] + scaled[:, at] * (self.at_high[at] - self.at_low[at])
            X[:, place] = inside if flag < 0 else np.where(batch.X[:, flag] > 0.5, 0.0, inside)
        return Encoded(X, y, batch.person)

    def under(self, learned: Schema, batch: Encoded) -> Encoded:
        """The same with the bounds of a schema that has them, and the label as it is."""
        ends = [learned.column(column.name).bounds for column in self.columns]
        low, high = np.array(ends, dtype=np.float64).reshape(-1, 2).T
        return self.seen(batch, low, high)._replace(y=batch.y)


def blank(schema: Schema) -> Schema:
    """The schema with [−1, 1] in the place of what is to be found: no plan depends on bounds."""
    return schema.with_ranges({c.name: (-1.0, 1.0, False) for c in schema.private})


def _numbers(schema: Schema, uniform: bool) -> list[tuple[int, Column]]:
    """The searched columns with their coordinate, −1 for the label; with `uniform` all numbers that
    are features, since their widths are compared."""
    chosen = []
    for column, place in layout(blank(schema)):
        agreed = schema.column(column.name)
        plain = agreed.is_number and agreed.edges is None
        if agreed.bounds == PRIVATE or (uniform and plain):
            chosen.append((place.start, agreed))
    label = schema.label
    if label is not None and label.bounds == PRIVATE:
        chosen.append((-1, label))
    return chosen


def _encoded_ends(program: Learner, schema: Schema) -> tuple[Reals, Reals]:
    """Of every coordinate, the encodings of the lowest and of the highest value of its column."""
    plain = Schema(columns=schema.features)
    columns: dict[str, NDArray[Any]] = {}
    for column in plain.columns:
        if column.is_number:
            bounds = column.bounds if isinstance(column.bounds, tuple) else (0.0, 0.0)
            columns[column.name] = np.array(bounds)
        else:
            columns[column.name] = np.zeros(2, dtype=np.int32)
    low, high = program.encoder(plain).encode(Batch(plain, columns, 2)).X
    return low, high
