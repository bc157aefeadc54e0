"""Records that can be read again and again, as encoded batches: what programs iterate over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.data.batch import Batch
from tacit.data.encode import Encoded, Encoder
from tacit.data.tables import read_batches
from tacit.errors import InputError, UsageError

__all__ = ["ArrayRecords", "Records", "TableRecords", "whole"]

BATCH_ROWS = 8192  # a batch of a hundred features stays in a core's cache


class Records(Protocol):
    """One pass over the data per call."""

    def batches(self) -> Iterator[Encoded]: ...


@dataclass(frozen=True, slots=True)
class ArrayRecords:
    """Vectors that are in memory and encoded already."""

    X: NDArray[np.float64]
    y: NDArray[Any] | None = None
    person: NDArray[Any] | None = None
    rows: int = BATCH_ROWS

    def __post_init__(self) -> None:
        if not len(self.X):
            raise UsageError("there are no records.")
        if not (_finite(self.X) and _finite(self.y)):
            raise InputError("a value is NaN or infinite: treat missing values in the schema.")

    def batches(self) -> Iterator[Encoded]:
        for start in range(0, len(self.X), self.rows):
            part = slice(start, start + self.rows)
            yield Encoded(*(None if a is None else a[part] for a in (self.X, self.y, self.person)))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class TableRecords:
    """A file or table, read and encoded anew in every pass, so that it may exceed memory.

    `observe` is given each batch before it is encoded.
    """

    source: Any
    encoder: Encoder
    observe: Callable[[Batch], None] | None = None

    def batches(self) -> Iterator[Encoded]:
        for batch in read_batches(self.source, self.encoder.schema, batch_rows=BATCH_ROWS):
            if self.observe is not None:
                self.observe(batch)
            if batch.rows:
                yield self.encoder.encode(batch)


def _finite(values: NDArray[Any] | None) -> bool:
    """Whether no number is NaN or infinite; what is not a float is finite."""
    return values is None or values.dtype.kind != "f" or bool(np.isfinite(values).all())


def whole(records: Records) -> Encoded:
    """All of them in memory at once."""
    columns = zip(*records.batches(), strict=True)
    return Encoded(*(None if c[0] is None else np.concatenate(c) for c in columns))  # type: ignore[arg-type]
