"""Plain numeric features with public bounds, as a schema, and the way into a program's encoding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.batch import Batch
from tacit.data.records import ArrayRecords
from tacit.data.schema import Column, Schema
from tacit.programs.program import Learner

__all__ = ["Mixed", "Scaling"]

Reals = NDArray[np.float64]
ROWS = 1024  # at a time: they stay in the cache between the four steps


class Scaling:
    """The bounds of each feature; `uniform` widens them to one width, which keeps angles."""

    def __init__(
        self,
        low: Reals,
        high: Reals,
        label: Column | None = None,
        uniform: bool = False,
        names: Sequence[str] | None = None,
    ) -> None:
        if uniform:
            middle, reach = (low + high) / 2, (high - low).max() / 2
            low, high = middle - reach, middle + reach
        self.low, self.high, self.label = low, high, label
        self._known: tuple[Learner, Reals] | None = None
        columns = [
            Column(name=name, type="number", bounds=(float(a), float(b)))
            for name, a, b in zip(names or _numbered(len(low)), low, high, strict=True)
        ]
        self.schema = Schema(columns=tuple(columns if label is None else [*columns, label]))

    @classmethod
    def of(cls, schema: Schema) -> Scaling:
        """That of a schema which a scaling has made."""
        ends = [c.bounds for c in schema.features if isinstance(c.bounds, tuple)]
        low, high = np.array(ends, dtype=np.float64).reshape(-1, 2).T
        return cls(low, high, schema.label, names=[c.name for c in schema.features])

    @property
    def ends(self) -> tuple[Reals, Reals]:
        return self.low, self.high

    def encode(self, program: Learner, X: Reals, y: NDArray[Any] | None) -> ArrayRecords:
        """What the program's encoder makes of X; in one go, because all columns are numbers."""
        at_low, at_high = self._ends(program)
        slope, offset = self.affine(program)
        encoded = np.empty(X.shape)
        for start in range(0, len(X), ROWS):
            part = encoded[start : start + ROWS]
            np.multiply(X[start : start + ROWS], slope, out=part)
            part += offset
            # The map rises, so clipping after it clips values to their bounds, and rounding too.
            np.maximum(part, at_low, out=part)
            np.minimum(part, at_high, out=part)
        if self.label is not None and y is not None and isinstance(self.label.bounds, tuple):
            y = np.clip(y, *self.label.bounds)
        return ArrayRecords(encoded, y)

    def affine(self, program: Learner) -> tuple[Reals, Reals]:
        """slope, offset with encoded = slope · x + offset inside the bounds."""
        at_low, at_high = self._ends(program)
        slope = (at_high - at_low) / (self.high - self.low)
        return slope, at_low - slope * self.low

    def _ends(self, program: Learner) -> Reals:
        """The encodings of the lowest and of the highest record; asked for often, made once."""
        if self._known is None or self._known[0] is not program:
            self._known = program, self._encoded_ends(program)
        return self._known[1]

    def _encoded_ends(self, program: Learner) -> Reals:
        plain = Schema(columns=self.schema.features)
        ends = np.stack([self.low, self.high])
        names = (column.name for column in plain.columns)
        columns: dict[str, NDArray[Any]] = dict(zip(names, ends.T, strict=True))
        return program.encoder(plain).encode(Batch(plain, columns, 2)).X


class Mixed:
    """The same for columns of any type: the coordinates of numbers are scaled, those of categories,
    bins and gaps are 0 or 1."""

    def __init__(self, schema: Schema) -> None:
        self.schema = Schema(columns=schema.features)

    @classmethod
    def of(cls, schema: Schema) -> Mixed:
        return cls(schema)

    def affine(self, program: Learner) -> tuple[Reals, Reals]:
        """slope, offset with encoded = slope · x + offset inside the bounds, one each for every
        coordinate; x is a number in its own unit, or 0 or 1."""
        encoder = program.encoder(self.schema)
        reach = 1.0 if encoder.ball is None else 1.0 / encoder.bound_before(encoder.ball)
        slope, offset = np.full(encoder.width, reach), np.zeros(encoder.width)
        base = 0.0 if encoder.interval == "unit" else -1.0
        for column, start in zip(self.schema.columns, encoder.starts, strict=False):
            if column.is_number and column.edges is None and isinstance(column.bounds, tuple):
                low, high = column.bounds
                slope[start] = reach * (1.0 - base) / (high - low)
                offset[start] = reach * base - slope[start] * low
        return slope, offset


def _numbered(width: int) -> list[str]:
    return [f"x{i}" for i in range(width)]
