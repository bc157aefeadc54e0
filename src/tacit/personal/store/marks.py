"""Marks: 64 bits that tell one event from another, so that a second import adds nothing.

A mark is a keyed hash of an event's type, time and fields, computed for whole columns at once, and
of how many equal events came before it in the same export: two coffees on one day are two events,
and the same two in the next export. With n events of one source the chance that any two share a
mark by accident is n²/2⁶⁵: three in a million for ten million events. The key is the store's own,
so that nobody can prepare an export whose events collide.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Marks", "marks_of", "numbered", "ranks"]

Marks = NDArray[np.uint64]
Bytes = NDArray[np.uint8]
BLOCK = 8


def marks_of(key: bytes, name: str, table: pa.Table) -> Marks:
    """The marks of a table's rows. Missing values and the order of columns do not matter."""
    marks = np.full(table.num_rows, _seed(key, name), np.uint64)
    for column in sorted(table.column_names):
        hashed, there = _hashed(table[column], key)
        mixed = _mixed(marks ^ _mixed(hashed ^ _seed(key, f"{name}.{column}")))
        marks = mixed if there is None else np.where(there, mixed, marks)
    return marks


def numbered(marks: Marks, numbers: NDArray[np.int64]) -> Marks:
    """The marks of the events that so many equal ones came before: equal events told apart."""
    counted = numbers.astype(np.uint64)
    told: Marks = np.where(counted == 0, marks, _mixed(marks ^ _mixed(counted)))
    return told


def ranks(marks: Marks) -> NDArray[np.int64]:
    """How many equal ones came before each."""
    order = np.argsort(marks, kind="stable")
    ordered = marks[order]
    first = np.ones(len(marks), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(first)
    result = np.empty(len(marks), np.int64)
    result[order] = np.arange(len(marks)) - starts[np.cumsum(first) - 1] if len(marks) else 0
    return result


def _seed(key: bytes, text: str) -> np.uint64:
    made = hashlib.blake2b(text.encode(), key=key, digest_size=8).digest()
    return np.uint64(int.from_bytes(made, "little"))


def _mixed(words: Marks) -> Marks:
    """A permutation of 64 bits in which every bit depends on every bit (Stafford's variant 13 of
    the finaliser of MurmurHash3, as in SplitMix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Marks = words ^ (words >> np.uint64(31))
    return mixed


def _hashed(column: Any, key: bytes) -> tuple[Marks, NDArray[np.bool_] | None]:
    """A word for each value, and where there is one (None: everywhere)."""
    import pyarrow as pa

    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    there = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
    if pa.types.is_dictionary(array.type) or pa.types.is_string(array.type):
        return _texts(array, key), there
    if pa.types.is_floating(array.type):
        numbers = array.fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0  # -0.0 is 0.0
        return numbers.view(np.uint64), there
    if pa.types.is_boolean(array.type):
        return array.fill_null(False).to_numpy(zero_copy_only=False).astype(np.uint64), there
    times = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return times.view(np.uint64), there


def _texts(array: Any, key: bytes) -> Marks:
    """Each different text is hashed once."""
    import pyarrow as pa

    coded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    words = _text_words(coded.dictionary, key)
    codes = coded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return words[codes] if len(words) else np.zeros(len(codes), np.uint64)


def _text_words(texts: pa.StringArray, key: bytes) -> Marks:
    """Eight bytes at a time, of all texts at once; shorter ones drop out."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset :][: len(texts) + 1]
    offsets = offsets.astype(np.int64)
    held = texts.buffers()[2]
    data = np.zeros((0 if held is None else held.size) + BLOCK, np.uint8)
    if held is not None:
        data[: held.size] = np.frombuffer(held, np.uint8)
    lengths = np.diff(offsets)
    words = _mixed(_seed(key, "text") ^ lengths.astype(np.uint64))
    order = np.argsort(-lengths, kind="stable")
    longest_first = -lengths[order]
    windows = np.lib.stride_tricks.sliding_window_view(data, BLOCK)
    for start in range(0, int(lengths.max(initial=0)), BLOCK):
        active = order[: int(np.searchsorted(longest_first, -start, "left"))]
        block = windows[offsets[active] + start]
        left = lengths[active] - start
        block = np.where(np.arange(BLOCK) < left[:, None], block, np.uint8(0))
        words[active] = _mixed(words[active] ^ block.view(np.uint64)[:, 0])
    return words
