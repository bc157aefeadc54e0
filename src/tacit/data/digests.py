"""What tells one record from another, as keyed digests: the person's id, or else the whole row.

A row is the values of all columns that its schema reads, as they stand in the table: numbers to
six digits, categories and booleans by their meaning. An id is a text in composed form (UAX #15),
without blanks at its ends; a whole number is the same id however it is spelt. So the order of rows
and columns, the format of the file, the types in it, the name of the id's column and a study's
bounds and fillings make no difference.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.crypto.local_secret import local_secret
from tacit.crypto.row_digests import RowDigests
from tacit.privacy.ledger.known import IDS, RecordDigests

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.data.batch import Batch
    from tacit.data.records import Records
    from tacit.data.schema import Column, Schema

__all__ = ["Digester", "digests_of", "digests_of_arrays"]

WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
EXACT = 2.0**24  # whole numbers up to here are the same in single precision
DIGITS = 6  # of other numbers


class Digester:
    """Collects the digests of a table's records, batch by batch, while it is read anyway."""

    def __init__(self, schema: Schema) -> None:
        self._columns = _identifying(schema)
        self._is_id = schema.person is not None
        names = [column.name for column in self._columns]
        self._domain = IDS if self._is_id else _domain(names)
        self._tables = {c.name: _meanings(c) for c in self._columns if not _is_numeric(c)}
        self._function: RowDigests | None = None
        self._found: list[NDArray[np.uint64]] = []

    def add(self, batch: Batch) -> None:
        if batch.rows:
            words = [
                word
                for column in self._columns
                if column.name not in self._tables
                for word in _words(column, _as_read(batch, column.name))
            ]
            if self._tables:  # one word for all: it halves the blocks to be enciphered
                words.append(self._categories(batch))
            if self._function is None:
                self._function = RowDigests(_secret(), self._domain, len(words))
            self._found.append(self._function(words))

    def _categories(self, batch: Batch) -> NDArray[np.uint64]:
        total = np.zeros(batch.rows, dtype=np.uint64)
        for name, table in self._tables.items():
            total += table[_as_read(batch, name)]
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
        words, domain = _id_words(person), IDS
    else:
        words = [_number_words(column, may_miss=True) for column in np.asarray(X, np.float64).T]
        domain = _domain([f"array of {len(words)}", *([] if y is None else ["label"])])
        if y is not None and classes is not None:
            words.append(np.array([_meaning("label", name) for name in classes], np.uint64)[y])
        elif y is not None:
            words.append(_number_words(y.astype(np.float64), may_miss=True))
    function = RowDigests(_secret(), domain, len(words))
    return RecordDigests.of(domain, _key(), [function(words)], are_ids=person is not None)


def _words(column: Column, values: NDArray[Any]) -> list[NDArray[np.uint64]]:
    """Of a person's id, or of numbers."""
    if column.role == "person":
        return _id_words(values)
    return [_number_words(values, may_miss=column.when_missing in ("category", "fill"))]


def _as_read(batch: Batch, name: str) -> NDArray[Any]:
    return batch.raw.get(name, batch.columns[name])


def _identifying(schema: Schema) -> list[Column]:
    if schema.person is not None:
        return [schema.person]
    return sorted(schema.used, key=lambda column: column.name)


def _is_numeric(column: Column) -> bool:
    return column.is_number or column.role == "person"


def _domain(names: Sequence[str]) -> str:
    return json.dumps({"columns": names}, ensure_ascii=False)


def _secret() -> bytes:
    return local_secret("known records")


def _key() -> str:
    return hashlib.sha256(b"tacit known records" + _secret()).hexdigest()[:16]


def _number_words(values: NDArray[Any], may_miss: bool) -> NDArray[np.uint64]:
    """The bits of a float64; one NaN stands for all."""
    floats = _rounded(np.ascontiguousarray(values, dtype=np.float64))
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


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """To single precision, then to six digits: a copy in single precision, or one that was printed
    with six digits or more, has the same numbers, nearly always. Whole numbers stay as they are."""
    if np.abs(values).max(initial=0.0) < EXACT and (np.rint(values) == values).all():
        return values  # the usual case, told quickly
    with np.errstate(over="ignore", under="ignore"):
        single = values.astype(np.float32).astype(np.float64)
    whole = (np.rint(single) == single) & (np.abs(single) < EXACT)
    rest = np.flatnonzero(~whole & np.isfinite(single))
    if len(rest):
        some = single[rest]
        scale = POWERS[DIGITS - 1 - np.floor(np.log10(np.abs(some))).astype(np.int64) + ZERO_POWER]
        single[rest] = np.rint(some * scale) / scale
    beyond = np.isinf(single)
    return np.where(beyond, values, single) if beyond.any() else single


ZERO_POWER = 60  # single precision has exponents from -45 to 38
POWERS = np.array([float(f"1e{power}") for power in range(-ZERO_POWER, ZERO_POWER + 1)])


def _id_words(values: NDArray[Any]) -> list[NDArray[np.uint64]]:
    """Two words: zero and a whole number, or 127 bits of a text's SHA-256 and a one."""
    if values.dtype.kind in "iu" and (values.dtype.kind == "i" or values.max(initial=0) < 2**63):
        numbers = values.astype(np.int64).view(np.uint64)
        return [np.zeros(len(numbers), dtype=np.uint64), numbers]
    pairs = b"".join(_id_pair(str(value)) for value in values)
    words = np.frombuffer(pairs, "<u8").reshape(-1, 2)
    return [np.ascontiguousarray(word, dtype=np.uint64) for word in words.T]


def _id_pair(identifier: str) -> bytes:
    text = identifier if identifier.isascii() else unicodedata.normalize("NFC", identifier)
    text = text.strip()
    if WHOLE.fullmatch(text):
        return bytes(8) + int(text).to_bytes(8, "little", signed=True)
    found = hashlib.sha256(text.encode()).digest()
    return bytes([found[0] | 1]) + found[1:16]
