"""Which records were charged, and to which data set: keyed digests in a folder beside the ledger.

A budget belongs to a name, and the same table under another name would get a fresh one. So what is
charged is remembered, and a table of which another data set knows more than a tenth is refused with
both names. This guards a holder against mistakes, not others against the holder, who may remove the
folder, change every row a little, or keep a second ledger.

The folder holds files that are written once, each a set of digests of one data set (known_file.py).
Its set is their union: adding writes another file, and merging writes the union before it removes
the parts. So after a crash at any moment nothing is forgotten. What is proved stands in known.md.
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
import secrets
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tacit.errors import InputError, Refused
from tacit.privacy.ledger.known_file import Header, KnownFile, Words, write_known

if TYPE_CHECKING:
    from tacit.privacy.ledger.reservation import Reservation

__all__ = ["IDS", "MAX_SHARE", "KnownRecords", "RecordDigests", "Verdict", "compared"]

log = logging.getLogger("tacit.ledger")

MAX_SHARE = 0.1  # of a table's records that another data set may know, beyond chance
DEVIATIONS = 4.0  # standard deviations by which chance may exceed what is expected of it
MIN_MATCHES = 5  # fewer may be a person who was in two places
IDS = '{"id": true}'  # for columns: records are told apart by whose they are
FEW_RECORDS = 20  # below, equal multiplicities may be a coincidence


@dataclass(frozen=True, slots=True)
class RecordDigests:
    """The records of a table about to be charged.

    columns  by which they are told apart, in words
    key      a digest of the secret that made the digests
    digests  rising, each once
    rows     of the table, and how many of them stand alone in it: the more repeat, the more two
    alone    independent tables have in common by chance
    """

    columns: str
    key: str
    digests: Words
    rows: int
    alone: int

    @classmethod
    def of(
        cls, columns: str, key: str, digests: Sequence[Words], *, are_ids: bool
    ) -> RecordDigests:
        """From the digest of each row. An id stands for one person, however often it occurs."""
        values = np.concatenate(digests) if digests else np.zeros(0, dtype=np.uint64)
        values.sort()
        first = np.ones(len(values), dtype=bool)
        np.not_equal(values[1:], values[:-1], out=first[1:])
        distinct = values[first]
        if are_ids:
            return cls(columns, key, distinct, len(distinct), len(distinct))
        rows, alone = len(values), int(np.count_nonzero(first & np.append(first[1:], True)))
        if alone == 0 and len(distinct) >= FEW_RECORDS:
            # A table that was written out twice says no more of chance than one of its halves.
            times = np.diff(np.append(np.flatnonzero(first), rows))
            copies = int(np.gcd.reduce(times))
            rows, alone = rows // copies, int(np.count_nonzero(times == copies))
        return cls(columns, key, distinct, rows, alone)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether another data set knows too many of the records, and whether that could be told."""

    is_known: bool
    is_certain: bool


def compared(records: int, matches: int, chance: float) -> Verdict:
    """`chance` is the share of matches that an independent table would have; known.md says why.

    It cannot be told if even an exact copy would not stand out.
    """
    expected = chance * records
    limit = expected + MAX_SHARE * (records - expected)
    limit += DEVIATIONS * math.sqrt(expected * (1 - chance))
    return Verdict(matches > limit, records > limit)


def chance_of_match(known: Sequence[Header]) -> float:
    """The share of an independent table that `known` would know, at most: the chance that a row is
    one of those before it (Good 1953), by the known records alone. The table in question is not
    asked: one that was oversampled would excuse itself."""
    if all(header.columns == IDS for header in known):
        return 0.0  # an id that occurs in both is the same person
    return max(_by_table(known), _by_windows(known))


def _by_table(known: Sequence[Header]) -> float:
    largest = max(known, key=lambda header: header.rows)
    if not largest.rows:
        return 0.0
    among = _at_most(largest.rows - largest.alone, largest.rows)
    growth = sum(header.count for header in known) / largest.distinct
    return 1.0 - math.pow(1.0 - among, max(1.0, growth))


def _by_windows(known: Sequence[Header]) -> float:
    """The chance grows while windows come: it is now about twice its mean."""
    rows = sum(header.window_rows for header in known)
    new = sum(header.window_new for header in known)
    return 1.0 - (1.0 - _at_most(rows - new, rows)) ** 2 if rows else 0.0


def _at_most(repeats: int, rows: int) -> float:
    """A share that was counted on few rows may be larger than it looks."""
    return min(1.0, (repeats + 2 * math.sqrt(repeats + 1)) / rows)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The digests that a data set does not know yet, how many of them each other one knows, and
    the files of all."""

    new: Words
    matches: Mapping[str, int]
    files: Mapping[str, list[KnownFile]]


class KnownRecords:
    """The records that were charged to the data sets of one ledger."""

    def __init__(self, ledger: Path) -> None:
        self.folder = ledger.with_name(ledger.name + ".known")
        self._opened: dict[str, KnownFile] = {}

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Alone among all processes, from checking until what was charged is added."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise InputError(
                f"{self.folder}, where the records that were charged are noted, cannot be written "
                f"({error.strerror}): make it a folder that you may write."
            ) from None
        try:
            _lock(file)
            yield
        finally:
            os.close(file)  # and with it the lock

    def charging(
        self,
        dataset: str,
        table: RecordDigests,
        distinct: Iterable[frozenset[str]],
        reserve: Callable[[], Reservation],
    ) -> Reservation:
        """Check, reserve, and add: Refused before anything is reserved, and on the disk before any
        noise is drawn. What could not be added is not reserved either."""
        with self.locked():
            comparison = self.check(dataset, table, distinct)
            reservation = reserve()
            try:
                self.add(dataset, table, comparison)
            except BaseException:
                reservation.release()
                raise
        return reservation

    def check(
        self,
        dataset: str,
        table: RecordDigests,
        distinct: Iterable[frozenset[str]],
        windows: bool = False,
    ) -> Comparison:
        """Refused if another data set knows the records, unless the two are stated to be distinct.

        Records that `dataset` itself knows are its own, whoever else knows them.
        """
        stated, found = set(distinct), self._compare(dataset, table)
        new, own = found.new, found.files.get(dataset, [])
        for name, matches in found.matches.items():
            if frozenset((dataset, name)) in stated:
                continue
            other = found.files[name]
            asked = _as_known(table, dataset, len(new), windows)
            if _is_known(asked, matches, _headers(own), _headers(other)):
                raise Refused(_refusal(dataset, name))
            certain = compared(len(new), matches, chance_of_match(_headers(other))).is_certain
            if not certain and matches > MAX_SHARE * len(new):
                log.warning(
                    "the records of data set %r repeat too often to tell whether they are those "
                    "of data set %r: they are taken for others, as the names say",
                    dataset,
                    name,
                )
        return found

    def add(
        self, dataset: str, table: RecordDigests, comparison: Comparison, windows: bool = False
    ) -> None:
        """Remember that the records were charged; on the disk on return.

        comparison  what `check` found under the same lock
        windows     whether they are a part that no earlier call has brought
        """
        new = comparison.new
        if not len(new):
            return
        found = {name: count for name, count in comparison.matches.items() if count}
        self._write(replace(_as_known(table, dataset, len(new), windows), matches=found), new)
        self._merge(dataset, table)

    def _compare(self, dataset: str, table: RecordDigests) -> Comparison:
        files: dict[str, list[KnownFile]] = {}
        for file in self._comparable(table):
            files.setdefault(file.header.account, []).append(file)
        new = _without(table.digests, files.get(dataset, []))
        others = sorted(files.keys() - {dataset}) if len(new) else []
        matches = {name: len(new) - len(_without(new, files[name])) for name in others}
        return Comparison(new, matches, files)

    def counts(self) -> dict[str, int]:
        """About how many records of each data set are known; one table that was charged by
        different columns counts once."""
        found: dict[str, dict[str, int]] = {}
        for file in self._files():
            by_columns = found.setdefault(file.header.account, {})
            columns = file.header.columns
            by_columns[columns] = by_columns.get(columns, 0) + file.header.count
        return {account: max(by_columns.values()) for account, by_columns in found.items()}

    def _comparable(self, table: RecordDigests) -> list[KnownFile]:
        files = self._files()
        for file in files:
            if file.header.key != table.key:
                raise InputError(
                    f"{file.path} was made with another secret than this user's "
                    "(keys/records.key in $TACIT_HOME), so records cannot be compared with it. Put "
                    "that secret back; or remove the file, and a copy of its records under another "
                    "name is not recognised."
                )
        return [file for file in files if file.header.columns == table.columns]

    def _files(self) -> list[KnownFile]:
        """All files, each checked once; one that was merged meanwhile is in another by now."""
        while True:
            paths = sorted(self.folder.glob("*.known"))
            try:
                for path in paths:
                    if path.name not in self._opened:
                        self._opened[path.name] = KnownFile(path)
            except FileNotFoundError:
                continue
            self._opened = {path.name: self._opened[path.name] for path in paths}
            return list(self._opened.values())

    def _write(self, header: Header, digests: Words) -> None:
        name = hashlib.sha256(header.account.encode()).hexdigest()[:12]
        write_known(
            self.folder / f"{name}-{secrets.token_hex(8)}.known",
            replace(header, count=len(digests)),
            digests,
        )

    def _merge(self, dataset: str, table: RecordDigests) -> None:
        """Keep every file more than twice as large as all smaller ones together, so that there are
        few, and each record is seldom written again."""
        own = [f for f in self._comparable(table) if f.header.account == dataset]
        own.sort(key=lambda file: -file.header.count)
        sizes = [file.header.count for file in own]
        for place, size in enumerate(sizes[:-1]):
            if size <= 2 * sum(sizes[place + 1 :]):
                parts = own[place:]
                union = np.unique(np.concatenate([f.digests for f in parts]))
                self._write(_merged([f.header for f in parts]), union)
                for file in parts:
                    file.path.unlink(missing_ok=True)
                return


def _headers(files: Iterable[KnownFile]) -> list[Header]:
    return [file.header for file in files]


def _as_known(table: RecordDigests, dataset: str, new: int, windows: bool) -> Header:
    """What a file would say of the table."""
    head = (dataset, table.columns, table.key, new)
    if windows:
        return Header(*head, 0, 0, 0, window_rows=table.rows, window_new=new)
    return Header(*head, table.rows, len(table.digests), table.alone)


def _is_known(asked: Header, matches: int, own: Sequence[Header], other: Sequence[Header]) -> bool:
    """Too many of what is asked for, of all that its data set has had with it, or of all that the
    other one knows: pieces that are each below the limit add up."""
    name = other[0].account
    everything = [asked, *own]
    records = sum(header.count for header in everything)
    together = matches + sum(header.matches.get(name, 0) for header in own)
    if together < min(MIN_MATCHES, records):
        return False
    chance, known = chance_of_match(other), sum(header.count for header in other)
    # How many of the other's records are here by chance, these records say.
    their_chance = max(chance_of_match(everything), chance)
    return (
        (matches >= min(MIN_MATCHES, records) and compared(asked.count, matches, chance).is_known)
        or compared(records, together, chance).is_known
        or compared(known, together, their_chance).is_known
    )


def _merged(parts: Sequence[Header]) -> Header:
    """Of files that have no record in common."""
    matches: Counter[str] = Counter()
    for header in parts:
        matches.update(header.matches)
    return replace(
        max(parts, key=lambda header: header.rows),
        window_rows=sum(header.window_rows for header in parts),
        window_new=sum(header.window_new for header in parts),
        matches=dict(matches),
    )


def _without(digests: Words, files: Iterable[KnownFile]) -> Words:
    """Those that are in none of the files."""
    for file in files:
        digests = digests[~file.has(digests)]
    return digests


def _refusal(dataset: str, name: str) -> str:
    return (
        f"more than {MAX_SHARE:.0%} of these records are known as data set {name!r}, and would now "
        f"be charged to {dataset!r}, as if nothing had been spent on them. Charge them to the data "
        f"set that knows them (--dataset {shlex.quote(name)}). If they are other records, say so, "
        f"and it is noted in the ledger: tacit budget distinct {shlex.quote(dataset)} "
        f"{shlex.quote(name)} --reason ..."
    )


def _lock(file: int) -> None:
    """Wait until nobody else has it."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(file, msvcrt.LK_LOCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)
