"""New records for an online study: a folder that files are put into, or a file that grows.

A record is used in one window and never again; all rounds of a window are about the same records.
Which records were used is noted in the outbox together with the first shares made of them, so a
crash between two windows, or in the midst of one, loses none and uses none twice; files are known
again by what was used of them (roles/growing.py).
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from tacit.channels.federation.contribution import Sum
from tacit.channels.federation.outbox import Outbox
from tacit.channels.federation.secret_samples import Samples, fresh_samples
from tacit.channels.roles.events import Tell
from tacit.channels.roles.growing import (
    FoundFile,
    NewRecords,
    Noted,
    UsedFile,
    begins,
    new_records,
)
from tacit.channels.roles.row_chain import (
    Links,
    Observe,
    bits_of,
    followed_key,
    key_value,
    linked_batches,
)
from tacit.channels.studies.study import Study
from tacit.crypto.prg import Randomness
from tacit.data.digests import Digester
from tacit.data.encode import Encoded
from tacit.data.records import ArrayRecords
from tacit.data.remaining import remaining
from tacit.engines import Serial
from tacit.errors import InputError, NoRecords
from tacit.privacy.ledger import RecordDigests
from tacit.privacy.policy import LeftOut
from tacit.programs.coarse import carried_length, combined
from tacit.programs.holding import Holding
from tacit.programs.program import Query

__all__ = ["Followed"]

LOOK_AGAIN = 1.0  # seconds
HURRY = 0.2  # of a window is kept for mapping and sending
TRIES = 3  # of reading files that are changed meanwhile
LINES = {".csv", ".tsv", ".txt", ".data", ".jsonl"}  # may be caught with half a line at the end


class _Version(NamedTuple):
    """As long as it is the same, a file is not read again."""

    inode: int
    bytes: int
    changed: int

    @classmethod
    def of(cls, path: Path) -> _Version:
        found = path.stat()
        return cls(found.st_ino, found.st_size, found.st_mtime_ns)


class _Changed(Exception):
    """A file is another one than it was a moment ago."""


class Followed:
    """The records of `path` that no window has used yet."""

    def __init__(
        self,
        study: Study,
        path: Path,
        outbox: Outbox,
        tell: Tell = lambda event, **fields: None,
        left_out: Callable[[], LeftOut] = lambda: LeftOut("data"),
        pay_for: Callable[[RecordDigests], None] = lambda records: None,
        samples: Samples = fresh_samples,
    ) -> None:
        if not path.exists():
            raise InputError(f"{path} does not exist: name the folder or file to watch.")
        self._study, self._path, self._outbox = study, path, outbox
        self._left_out, self._pay_for, self._samples = left_out, pay_for, samples
        self._encoder = study.program().encoder(study.schema)
        self._key, self._bits = followed_key(), bits_of(self._encoder.schema)
        self._sink, self._told = tell, set[str]()
        self._check_key()
        self._read: dict[tuple[Path, bool], tuple[_Version, Links]] = {}
        self._looked: tuple[object, list[NewRecords]] | None = None
        self._used: tuple[int, Noted] | None = None

    def _check_key(self) -> None:
        if not self._outbox.check_key(key_value(self._key)):
            raise InputError(
                f"{self._outbox.path} knows used records by digests under another secret than "
                "this machine's: none of them would be known again. Put back keys/records.key of "
                "your home, from a backup."
            )

    async def ready(self, seconds: float) -> None:
        """Wait for a new record, but not until the window is over."""
        last = seconds * (1 - HURRY)
        while last > 0 and not await asyncio.to_thread(self._has_new):
            await asyncio.sleep(min(LOOK_AGAIN, last))
            last -= LOOK_AGAIN

    def contribute(self, number: int, state: Any, query: Query) -> Sum:
        """The sum over this window's records: in its first round, over what is new. Nothing new
        adds up to zero, which looks like any share."""
        begun = self._outbox.window(self._study.window_of(number))
        for _ in range(TRIES):
            try:
                found = self._again(begun) if begun else self._look()
                digester = Digester(self._encoder.schema)
                sample = self._samples(number)  # of all batches together
                total = np.zeros(carried_length(query), dtype=np.int64)
                for batch in self._batches(found, digester.add):
                    total += self._summed(batch, number, state, query, sample)
                if begun:
                    return Sum(combined(total, query))  # noted and paid for in an earlier round
                self._pay_for(digester.digests)
                return Sum(combined(total, query), [one.note for one in found])
            except (_Changed, FileNotFoundError):
                continue
        raise InputError(
            f"{self._path}: files are renamed or rewritten while they are read. Put files there "
            "under their names at once (write elsewhere, then rename), and start again."
        )

    def _again(self, begun: list[tuple[UsedFile, int]]) -> list[NewRecords]:
        """What the window's first round was about, wherever it lies now."""
        paths, found = self._files(), []
        for used, start in begun:
            ordered = sorted(paths, key=lambda path: path.name != used.name)
            same = (path for path in ordered if begins(self._links(path), used.links))
            path = next(same, None)
            if path is None:
                raise self._refusal(
                    used.name,
                    "is gone or was rewritten in the midst of a window, all of whose rounds are "
                    "about the same records",
                    "Put it back as it was, under any name, and start again.",
                )
            found.append(NewRecords(FoundFile(path.name, used.links), start))
        return found

    def _summed(
        self, batch: Encoded, number: int, state: Any, query: Query, sample: Randomness
    ) -> Any:
        study = self._study
        rate = study.plan().stage(number).sampling
        stay = remaining(ArrayRecords(*batch), self._left_out())
        first = study.first_state()
        holding = Holding(study.program(), first, stay, study.promise, Serial().map_sum)
        return holding.carried(state, query, rate, sample)

    def _batches(self, found: list[NewRecords], observe: Observe) -> Iterator[Encoded]:
        left = self._study.take_part.records
        for one in found:
            left -= one.count
            if left < 0:
                self._refuse_more()
            if one.count:
                yield from self._after(one, observe)

    def _refuse_more(self) -> NoReturn:
        """Records are not moved to the next window: one more would then change every later one."""
        raise InputError(
            f"{self._path}: there are more than {self._study.take_part.records} new records, and "
            f"study {self._study.name} allows no more in one window. Agree on a larger records in "
            "[take_part], or hand out fewer at a time."
        )

    def _after(self, one: NewRecords, observe: Observe) -> Iterator[Encoded]:
        """The new records of a file, which must still be the one that was looked at."""
        place, links = 0, one.file.links
        for batch, read in self._linked(self._file(one.file.name), observe=observe):
            count = min(len(read), len(links) - place)
            if not np.array_equal(read[:count], links[place : place + count]):
                raise _Changed
            rows = slice(max(0, one.start - place), count)
            place += count
            if rows.start < count:
                yield Encoded(*(None if a is None else a[rows] for a in batch))  # type: ignore[arg-type]
        if place < len(links):
            raise _Changed

    # ── looking ──

    def _has_new(self) -> bool:
        try:
            return any(one.count for one in self._look())
        except (_Changed, FileNotFoundError):
            return False  # it is being changed: at the next look

    def _look(self) -> list[NewRecords]:
        """What is new. Nothing is read again if no file has changed since the last look."""
        paths = self._files()
        seen = (self._outbox.last(), [(path, _Version.of(path)) for path in paths])
        if self._looked is None or self._looked[0] != seen:
            files = [FoundFile(path.name, self._links(path)) for path in paths]
            self._looked = (
                seen,
                new_records(
                    files,
                    self._noted(),
                    self._bits,
                    lambda name: self._links(self._file(name), chained=False),
                    self._refusal,
                    self._tell,
                ),
            )
            self._read = {key: read for key, read in self._read.items() if key[0] in paths}
        return self._looked[1]

    def _noted(self) -> Noted:
        last = self._outbox.last()
        if self._used is None or self._used[0] != last:
            self._used = last, self._outbox.noted()
        return self._used[1]

    def _links(self, path: Path, chained: bool = True) -> Links:
        version, known = _Version.of(path), self._read.get((path, chained))
        if known is None or known[0] != version:
            known = self._read[path, chained] = version, self._joined(path, chained)
        return known[1]

    def _joined(self, path: Path, chained: bool) -> Links:
        parts = [links for _, links in self._linked(path, chained)]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint64)

    def _linked(
        self, path: Path, chained: bool = True, observe: Observe = lambda batch: None
    ) -> Iterator[tuple[Encoded, Links]]:
        with tempfile.TemporaryDirectory() as folder, suppress(NoRecords):  # none yet
            whole = _whole_lines(path, Path(folder))
            yield from linked_batches(whole, self._encoder, self._key, chained, observe)

    def _files(self) -> list[Path]:
        if not self._path.is_dir():
            return [self._path]
        hidden = (".", "~")
        found = [p for p in self._path.iterdir() if p.is_file() and not p.name.startswith(hidden)]
        # Files that are still being written carry another ending until they are whole.
        return sorted(p for p in found if p.suffix not in {".part", ".tmp"})

    def _file(self, name: str) -> Path:
        return self._path / name if self._path.is_dir() else self._path

    def _refusal(self, name: str, problem: str, remedy: str = "") -> InputError:
        return InputError(f"{self._file(name)} {problem}. {remedy or self._usual_remedy()}")

    def _usual_remedy(self) -> str:
        rotated = (
            "put what was used back beside it, under any name"
            if self._path.is_dir()
            else "follow the folder that it lies in, with what was used under another name"
        )
        return (
            "Which of its records are new cannot be said: put it back as it was; if it was "
            f"rotated, {rotated}; if all of its records are new, give it a name that no file had "
            "before."
        )

    def _tell(self, event: str, **fields: object) -> None:
        """Once, not at every look."""
        key = f"{event} {sorted(fields.items())}"
        if key not in self._told:
            self._told.add(key)
            self._sink(event, **fields)


def _whole_lines(path: Path, folder: Path) -> Path:
    """The file, or a copy up to its last line end if its last line is not complete yet."""
    if path.suffix not in LINES or _ends_with_a_line(path):
        return path
    data = path.read_bytes()
    copy = folder / path.name
    copy.write_bytes(data[: data.rfind(b"\n") + 1])
    return copy


def _ends_with_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        return file.read(1) in (b"", b"\n")
