"""Records of a table as a chain of keyed digests: one link for each, which stands for all up to it.

Two tables begin with the same n records exactly if their n-th links are equal, whatever the files
are called and however they are written. The key is this user's own (crypto/local_secret.py): nobody
who finds a link can test a guess against it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.local_secret import local_secret
from tacit.data.batch import Batch
from tacit.data.encode import Encoded, Encoder
from tacit.data.records import BATCH_ROWS
from tacit.data.schema import Column, Schema
from tacit.data.tables import read_batches

__all__ = ["Links", "Observe", "RowChain", "bits_of", "followed_key", "key_value", "linked_batches"]

Links = NDArray[np.uint64]
Observe = Callable[[Batch], None]

CHAIN_BYTES = 16  # carried from record to record; 8 of them are kept as the link
NUMBER_BITS = 10  # a measurement of three digits: numbers are rarely all different
PERSON_BITS = 20


def followed_key() -> bytes:
    return local_secret("followed files")


def key_value(key: bytes) -> bytes:
    """Tells one key from another, and says nothing about it."""
    return hashlib.blake2b(b"tacit key of links", digest_size=16, key=key).digest()


class RowChain:
    """The links of one table, record by record; not `chained`, each stands for its record alone."""

    def __init__(self, key: bytes, chained: bool = True) -> None:
        self._key, self._last, self._chained = key, bytes(CHAIN_BYTES), chained

    def add(self, batch: Batch) -> Links:
        """The links of the next records; those of a table do not depend on how it is cut."""
        last, key, kept = self._last, self._key, []
        for row in _rows(batch):
            link = hashlib.blake2b(last + row, digest_size=CHAIN_BYTES, key=key).digest()
            kept.append(link[:8])
            last = link if self._chained else last
        self._last = last
        return np.frombuffer(b"".join(kept), dtype="<u8").astype(np.uint64)


def linked_batches(
    path: Path,
    encoder: Encoder,
    key: bytes,
    chained: bool = True,
    observe: Observe = lambda batch: None,
) -> Iterator[tuple[Encoded, Links]]:
    """The records of a file, encoded, with their links; `observe` is given each batch as read."""
    chain = RowChain(key, chained)
    for batch in read_batches(path, encoder.schema, batch_rows=BATCH_ROWS):
        if batch.rows:
            observe(batch)
            yield encoder.encode(batch), chain.add(batch)


def bits_of(schema: Schema) -> float:
    """How much a record tells about which one it is, at most: low where records are often alike."""
    return sum(_column_bits(column) for column in schema.used)


def _column_bits(column: Column) -> float:
    if column.role == "person":
        return PERSON_BITS
    if column.is_number:
        return NUMBER_BITS
    return math.log2(max(2, len(column.categories or ())))


def _rows(batch: Batch) -> list[bytes]:
    """Each record as bytes that no other record has."""
    names = sorted(batch.columns)
    numbers = [batch.columns[name] for name in names if batch.columns[name].dtype != object]
    texts = [batch.columns[name] for name in names if batch.columns[name].dtype == object]
    fixed = [_words(values) for values in numbers]
    table = np.stack(fixed, axis=1) if fixed else np.zeros((batch.rows, 0), dtype=">i8")
    width, data = 8 * table.shape[1], table.tobytes()
    rows = [data[start : start + width] for start in range(0, width * batch.rows, width or 1)]
    rows = rows or [b""] * batch.rows
    for values in texts:
        rows = [row + _text(value) for row, value in zip(rows, values, strict=True)]
    return rows


def _words(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind != "f":
        return values.astype(">i8")
    values = np.where(np.isnan(values), np.nan, values + 0.0)  # one NaN, one zero
    return values.astype(">f8").view(">i8")


def _text(value: object) -> bytes:
    data = str(value).encode()
    return len(data).to_bytes(8) + data
