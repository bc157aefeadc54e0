"""One file of known records: digests in rising order, written once and never changed.

    b"tacK", version, length of the header   4 + 4 + 4 bytes, little-endian
    header                                   JSON: see Header
    counts                                   how many digests begin with each prefix
    rests                                    of each digest, what follows its prefix
    SHA-256                                  of all that is before

The 48 bits of a digest are cut into a prefix of 0 to 3 bytes, which is not stored but counted, and
a rest. So ten million records take 4 bytes each and a hundred million 3.2, and two files can be
merged into the file of their union, which no Bloom filter allows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.row_digests import DIGEST_BITS
from tacit.errors import InputError
from tacit.whole_file import whole_file

__all__ = ["Header", "KnownFile", "Words", "layout_of", "write_known"]

Words = NDArray[np.uint64]

MAGIC, VERSION = b"tacK", 1
SEAL_BYTES = 32
START_BYTES = 12
MAX_HEADER_BYTES = 1 << 20
DIGEST_BYTES = DIGEST_BITS // 8
PIECE_ROWS = 1 << 20  # looked up, or written, at a time


@dataclass(frozen=True, slots=True)
class Header:
    """What a file says of itself.

    account   the data set whose records they are
    columns   by which they are told apart
    key       which secret the digests were made with, as a digest of it
    count     of digests
    rows      of the largest table that was charged, how many of them were different, and how many
    distinct  stood alone in it: this shows how much two independent tables have in common by
    alone     chance
    window_rows  of windows that brought anything new, and how many of their records did: the same
    window_new   for a data set that comes in windows, in each of which nothing may repeat
    matches   data set → how many of these records it knew when they were added
    """

    account: str
    columns: str
    key: str
    count: int
    rows: int
    distinct: int
    alone: int
    window_rows: int = 0
    window_new: int = 0
    matches: dict[str, int] = field(default_factory=dict)


def layout_of(count: int) -> int:
    """The bytes of the prefix that need the least room for so many digests."""
    return min(range(4), key=lambda prefix: 256**prefix + count * (DIGEST_BYTES - prefix))


def write_known(path: Path, header: Header, digests: Words) -> None:
    """All of it or nothing; on the disk on return. `digests` rise, and none is there twice."""
    prefix = layout_of(len(digests))
    rest = DIGEST_BYTES - prefix
    counts = _counts(digests, 8 * rest, 256**prefix)
    # Of digests, which are as good as random, no prefix has many more than others.
    width = next(w for w in (1, 2, 4, 8) if int(counts.max(initial=0)) < 256**w)
    about = json.dumps({**asdict(header), "prefix": prefix, "width": width}).encode()
    seal = hashlib.sha256()
    with whole_file(path) as file:
        for part in _parts(about, counts.astype(f"<u{width}"), digests, rest):
            seal.update(part)
            file.write(part)
        file.write(seal.digest())
    path.chmod(0o600)


def _counts(digests: Words, rest_bits: int, prefixes: int) -> NDArray[np.int64]:
    """How many digests begin with each prefix."""
    counts = np.zeros(prefixes, dtype=np.int64)
    for start in range(0, len(digests), PIECE_ROWS):
        found = (digests[start : start + PIECE_ROWS] >> np.uint64(rest_bits)).astype(np.int64)
        first = int(found[0])
        counts[first : int(found[-1]) + 1] += np.bincount(found - first)
    return counts


def _parts(about: bytes, counts: NDArray[Any], digests: Words, rest: int) -> Iterator[bytes]:
    numbers = VERSION.to_bytes(4, "little") + len(about).to_bytes(4, "little")
    yield MAGIC + numbers + about
    yield counts.tobytes()
    for start in range(0, len(digests), PIECE_ROWS):
        piece = digests[start : start + PIECE_ROWS].astype("<u8")
        yield piece.view(np.uint8).reshape(-1, 8)[:, :rest].tobytes()


class KnownFile:
    """A file that was checked when it was opened: InputError, with what to do, if it is damaged."""

    def __init__(self, path: Path) -> None:
        self.path = path
        raw = self._mapped()
        length = int.from_bytes(raw[8:START_BYTES].tobytes(), "little")
        try:
            about = json.loads(raw[START_BYTES : START_BYTES + length].tobytes())
            self._rest = DIGEST_BYTES - int(about.pop("prefix"))
            width, buckets = int(about.pop("width")), 256 ** (DIGEST_BYTES - self._rest)
            self.header = Header(**about)
            body = raw[START_BYTES + length : -SEAL_BYTES]
            self._counts = body[: buckets * width].view(f"<u{width}")
            self._rests = body[buckets * width :].reshape(self.header.count, self._rest)
        except (ValueError, TypeError, KeyError):
            raise self._damaged() from None

    def _mapped(self) -> NDArray[np.uint8]:
        if self.path.stat().st_size < START_BYTES + SEAL_BYTES:
            raise self._damaged()
        raw = np.memmap(self.path, np.uint8, mode="r")
        if raw[:4].tobytes() != MAGIC:
            raise self._damaged()
        version = int.from_bytes(raw[4:8].tobytes(), "little")
        if version != VERSION:
            raise InputError(
                f"{self.path} was written by another version of tacit (its format is {version}, "
                f"and this one reads {VERSION}): use that version, or a newer one."
            )
        if hashlib.sha256(raw[:-SEAL_BYTES].data).digest() != raw[-SEAL_BYTES:].tobytes():
            raise self._damaged()
        return raw

    def _damaged(self) -> InputError:
        return InputError(
            f"{self.path} is damaged: it no longer says which records were charged. Put it back "
            "from a backup. If there is none, remove it: budgets stay as they are, but a copy of "
            "these records under another name is then not recognised."
        )

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        return np.concatenate(([0], np.cumsum(self._counts, dtype=np.int64)))

    @property
    def digests(self) -> Words:
        """All of them, rising."""
        prefixes = np.arange(len(self._counts), dtype=np.uint64)
        return self._joined(np.repeat(prefixes, self._counts), self._rests)

    def has(self, digests: Words) -> NDArray[np.bool_]:
        """Which of these, given in rising order, are in the file."""
        pieces = range(0, len(digests), PIECE_ROWS)
        found = [self._has(digests[start : start + PIECE_ROWS]) for start in pieces]
        return np.concatenate(found) if found else np.zeros(0, dtype=bool)

    def _has(self, digests: Words) -> NDArray[np.bool_]:
        """Only the places with a prefix that is asked for are read."""
        prefixes = digests >> np.uint64(8 * self._rest)
        prefixes = prefixes[np.append(True, prefixes[1:] != prefixes[:-1])]
        first, last = self._starts[prefixes], self._starts[prefixes + np.uint64(1)]
        lengths = last - first
        ends = np.cumsum(lengths)
        if ends[-1] == last[-1] - first[0]:  # nothing lies between them
            rests = self._rests[first[0] : last[-1]]
        else:
            rests = self._rests[np.arange(ends[-1]) + np.repeat(first - (ends - lengths), lengths)]
        stored = self._joined(np.repeat(prefixes, lengths), rests)
        if not len(stored):
            return np.zeros(len(digests), dtype=bool)
        places = np.minimum(np.searchsorted(stored, digests), len(stored) - 1)
        return np.asarray(stored[places] == digests)

    def _joined(self, prefixes: Words, rests: NDArray[np.uint8]) -> Words:
        words = np.zeros((len(rests), 8), dtype=np.uint8)
        words[:, : self._rest] = rests
        low = words.view("<u8").reshape(len(rests)).astype(np.uint64, copy=False)
        return np.asarray(low | prefixes << np.uint64(8 * self._rest))
