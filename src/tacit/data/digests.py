"""What tells one record from another, as keyed digests: the person's id, or else the whole row.

A row is the values of all columns that its schema reads, as the schema understands them: numbers
within their bounds, categories and booleans by their meaning. So the order of rows and columns, the
format of the file and the types in it make no difference.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.crypto.local_secret import local_secret
from tacit.crypto.row_digests import RowDigests
from tacit.privacy.ledger.known import RecordDigests

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.data.batch import Batch
    from tacit.data.records import Records
    from tacit.data.schema import Column, Schema

__all__ = ["Digester", "digests_of", "digests_of_arrays"]

ID_BYTES = 64  # of a text id that are taken as they are; a longer one is hashed first


class Digester:
    """Collects the digests of a table's records, batch by batch, while it is read anyway."""

    def __init__(self, schema: Schema) -> None:
        self._columns = _identifying(schema)
        self._is_id = schema.person is not None
        self._domain = _domain(self._is_id, [column.name for column in self._columns])
        self._tables = {c.name: _meanings(c) for c in self._columns if not _is_numeric(c)}
        self._function: RowDigests | None = None
        self._found: list[NDArray[np.uint64]] = []

    def add(self, batch: Batch) -> None:
        if batch.rows:
            words = [
                word
                for column in self._columns
                if column.name not in self._tables
                for word in _words(column, batch.columns[column.name])
            ]
            if self._tables:  # one word for all: it halves the blocks to be enciphered
                words.append(self._categories(batch))
            if self._function is None:
                self._function = RowDigests(_secret(), self._domain, len(words))
            self._found.append(self._function(words))

    def _categories(self, batch: Batch) -> NDArray[np.uint64]:
        total = np.zeros(batch.rows, dtype=np.uint64)
        for name, table in self._tables.items():
            total += table[batch.columns[name]]
        return total

    @property
    def digests(self) -> RecordDigests:
        """Of all batches so far."""
        return RecordDigests.of(self._domain, _key(), self._found, are_ids=self._is_id)


def digests_of(records: Records) -> RecordDigests:
    """Of records that a program is about to be run on."""
    from tacit.data.records import ArrayRecords, TableRecords, whole
    from tacit.data.tables import read_batches

    if isinstance(records, TableRecords):
        digester = Digester(records.encoder.schema)
        for batch in read_batches(records.source, records.encoder.schema):
            digester.add(batch)
        return digester.digests
    if isinstance(records, ArrayRecords):
        return digests_of_arrays(records.X, records.y, records.person)
    return digests_of_arrays(*whole(records))


def digests_of_arrays(
    X: NDArray[np.float64],
    y: NDArray[Any] | None = None,
    person: NDArray[Any] | None = None,
    classes: Sequence[str] | None = None,
) -> RecordDigests:
    """Of rows in memory: of the persons, if there are any, else of all numbers and the label.

    With `classes`, y holds their places; the label's meaning is then the class.
    """
    if person is not None:
        is_text = person.dtype.kind not in "iu"
        words = _text_words(person) if is_text else [person.astype(np.int64).view(np.uint64)]
        domain = _domain(True, ["person"])
    else:
        words = [_number_words(column, may_miss=True) for column in np.asarray(X, np.float64).T]
        domain = _domain(False, [f"array of {len(words)}", *([] if y is None else ["label"])])
        if y is not None and classes is not None:
            words.append(np.array([_meaning("label", name) for name in classes], np.uint64)[y])
        elif y is not None:
            words.append(_number_words(y.astype(np.float64), may_miss=True))
    function = RowDigests(_secret(), domain, len(words))
    return RecordDigests.of(domain, _key(), [function(words)], are_ids=person is not None)


def _words(column: Column, values: NDArray[Any]) -> list[NDArray[np.uint64]]:
    """Of a person's id, or of numbers."""
    if column.role == "person" and column.type == "text":
        return _text_words(values)
    if column.role == "person":
        return [values.astype(np.int64, copy=False).view(np.uint64)]
    return [_number_words(values, may_miss=column.when_missing == "category")]


def _identifying(schema: Schema) -> list[Column]:
    if schema.person is not None:
        return [schema.person]
    return sorted(schema.used, key=lambda column: column.name)


def _is_numeric(column: Column) -> bool:
    return column.is_number or column.role == "person"


def _domain(is_id: bool, names: Sequence[str]) -> str:
    return json.dumps({"id" if is_id else "columns": names}, ensure_ascii=False)


def _secret() -> bytes:
    return local_secret("known records")


def _key() -> str:
    return hashlib.sha256(b"tacit known records" + _secret()).hexdigest()[:16]


def _number_words(values: NDArray[Any], may_miss: bool) -> NDArray[np.uint64]:
    """The bits of a float64; one NaN stands for all."""
    floats = np.ascontiguousarray(values, dtype=np.float64)
    if may_miss:
        floats = np.where(np.isnan(floats), np.nan, floats + 0.0)  # minus zero is zero
    return floats.view(np.uint64)


def _meanings(column: Column) -> NDArray[np.uint64]:
    """A word for each place in the categories, and one for a missing value after the last."""
    names: Sequence[str] = ("false", "true")
    if column.type != "boolean" and isinstance(column.categories, tuple):
        names = column.categories
    meanings = [_meaning(column.name, name) for name in (*names, None)]
    return np.array(meanings, dtype=np.uint64)


def _meaning(column: str, name: str | None) -> int:
    text = json.dumps([column, name]).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little")


def _text_words(values: NDArray[Any]) -> list[NDArray[np.uint64]]:
    """The length and the bytes of each text, padded; all in as many words."""
    texts = [str(value).encode() for value in values]
    lengths = np.array([len(text) for text in texts], dtype=np.uint64)
    short = [t if len(t) <= ID_BYTES else hashlib.sha512(t).digest() for t in texts]
    padded = np.array(short, dtype=f"S{ID_BYTES}").view("<u8").reshape(len(texts), ID_BYTES // 8)
    return [lengths, *(np.ascontiguousarray(word, dtype=np.uint64) for word in padded.T)]
