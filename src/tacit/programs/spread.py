"""Starting points that everyone may know: made-up records, spread evenly over the schema's box.

Clustering has to start somewhere. A record of the data would be given away by it, so programs start
from records that nobody has: the schema says what a record may be, and a low-discrepancy sequence
picks some that lie apart (the sphere packing of Su et al. 2016, made to fit categories too).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.batch import Batch
from tacit.data.encode import Encoder
from tacit.data.schema import Column

__all__ = ["box", "made_up"]

Reals = NDArray[np.float64]


def made_up(encoder: Encoder, count: int) -> Reals:
    """`count` vectors of records that nobody has, spread evenly over what the schema allows.

    Each column's range is cut into `count` equal parts and every part is used once. Which parts
    meet in a record follows from the fractions of j·√p, p the column's prime: a Kronecker sequence
    stays uniform in as many dimensions as there are primes (Niederreiter 1992, section 3.1).
    """
    steps = np.arange(1, count + 1)
    places = {
        column.name: (np.argsort(np.argsort(steps * math.sqrt(prime) % 1.0)) + 0.5) / count
        for column, prime in zip(encoder.schema.features, _primes(), strict=False)
    }
    return _encoded(encoder, {c.name: _values(c, places[c.name]) for c in encoder.schema.features})


def box(encoder: Encoder) -> tuple[Reals, Reals]:
    """The least and the largest value that each coordinate of a vector can have."""
    most = max(2, *(_kinds(column) for column in encoder.schema.features))
    places = np.linspace(0.0, 1.0, most)  # as close as the narrowest part: each is met
    columns = {}
    for column in encoder.schema.features:
        values = _values(column, places)
        missing = math.nan if column.is_number else _kinds(column)
        last = missing if column.when_missing == "category" else values[-1]
        columns[column.name] = np.append(values, np.asarray(last, values.dtype))
    X = _encoded(encoder, columns)
    return X.min(axis=0), X.max(axis=0)


def _encoded(encoder: Encoder, columns: dict[str, NDArray[Any]]) -> Reals:
    rows = len(next(iter(columns.values())))
    others = [c.name for c in encoder.schema.used if c.role != "feature"]
    blank = {name: np.zeros(rows) for name in others}
    return encoder.encode(Batch(encoder.schema, {**columns, **blank}, rows)).X


def _values(column: Column, places: Reals) -> NDArray[Any]:
    """What stands at these places, from 0 to 1, of the column's range."""
    kinds = _kinds(column)
    if not kinds:
        assert isinstance(column.bounds, tuple)  # the encoder was built: the schema is complete
        low, high = column.bounds
        return low + places * (high - low)
    index = np.minimum((places * kinds).astype(np.int32), kinds - 1)
    if not column.is_number:
        return index
    assert column.edges is not None
    starts = np.array([column.edges[0] - 1.0, *column.edges])  # bins are closed on their left
    return starts[index]


def _kinds(column: Column) -> int:
    """How many values a column can have; 0 for a number without bins."""
    if column.is_number:
        return 0 if column.edges is None else len(column.edges) + 1
    return 2 if column.type == "boolean" else len(column.categories or ())


def _primes() -> Iterator[int]:
    found: list[int] = []
    candidate = 2
    while True:
        if all(candidate % p for p in found if p * p <= candidate):
            found.append(candidate)
            yield candidate
        candidate += 1
