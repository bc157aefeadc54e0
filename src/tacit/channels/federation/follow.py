"""New records for an online study: a folder that files are put into, or a file that grows.

A record is used in one window and never again. How many records of each file were used is noted in
the outbox together with the shares made of them, so a crash between two windows loses none and uses
none twice.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from tacit.channels.federation.contribution import Sum
from tacit.channels.federation.outbox import Outbox
from tacit.channels.studies.study import Study
from tacit.data.batch import Batch
from tacit.data.digests import Digester
from tacit.data.encode import Encoded
from tacit.data.records import ArrayRecords, TableRecords
from tacit.data.remaining import remaining
from tacit.engines import Serial
from tacit.errors import InputError
from tacit.privacy.ledger import RecordDigests
from tacit.privacy.policy import LeftOut
from tacit.programs.holding import Holding
from tacit.programs.program import Query

__all__ = ["Followed"]

LOOK_AGAIN = 1.0  # seconds
HURRY = 0.2  # of a window is kept for mapping and sending
LINES = {".csv", ".tsv", ".txt", ".data", ".jsonl"}  # may be caught with half a line at the end


class Followed:
    """The records of `path` that no window has used yet."""

    def __init__(
        self,
        study: Study,
        path: Path,
        outbox: Outbox,
        left_out: Callable[[], LeftOut] = lambda: LeftOut("data"),
        pay_for: Callable[[RecordDigests], None] = lambda records: None,
    ) -> None:
        if not path.exists():
            raise InputError(f"{path} does not exist: name the folder or file to watch.")
        self._study, self._path, self._outbox = study, path, outbox
        self._left_out, self._pay_for = left_out, pay_for
        self._encoder = study.program().encoder(study.schema)

    async def ready(self, seconds: float) -> None:
        """Wait for a new record, but not until the window is over."""
        last = seconds * (1 - HURRY)
        while last > 0 and not await asyncio.to_thread(self._has_new):
            await asyncio.sleep(min(LOOK_AGAIN, last))
            last -= LOOK_AGAIN

    def contribute(self, number: int, state: Any, query: Query) -> Sum:
        """The sum over what is new. Nothing new adds up to zero, which looks like any share."""
        total, used = np.zeros(query.length, dtype=np.int64), {}
        program, promise = self._study.program(), self._study.promise
        first, rate = self._study.first_state(), self._study.plan().stage(number).sampling
        left = self._study.take_part.records
        digester = Digester(self._encoder.schema)
        for name, seen, batches in self._new(digester.add):
            count = 0
            for batch in batches:
                count, left = count + len(batch.X), left - len(batch.X)
                if left < 0:
                    self._refuse()
                stay = remaining(ArrayRecords(*batch), self._left_out())
                holding = Holding(program, first, stay, promise, Serial().map_sum)
                total += holding.sum(state, query, rate)
            used[name] = seen + count
        self._pay_for(digester.digests)
        return Sum(total, used)

    def _refuse(self) -> NoReturn:
        """Records are not moved to the next window: one more would then change every later one."""
        raise InputError(
            f"{self._path}: there are more than {self._study.take_part.records} new records, and "
            f"study {self._study.name} allows no more in one window. Agree on a larger records in "
            "[take_part], or hand out fewer at a time."
        )

    def _has_new(self) -> bool:
        return any(len(batch.X) for _, _, batches in self._new() for batch in batches)

    def _new(
        self, observe: Callable[[Batch], None] | None = None
    ) -> Iterator[tuple[str, int, Iterator[Encoded]]]:
        """Each file with how much of it was used, and what comes after that."""
        used = self._outbox.used()
        for path in self._files():
            seen = used.get(path.name, 0)
            yield path.name, seen, self._after(path, seen, observe)

    def _files(self) -> list[Path]:
        if not self._path.is_dir():
            return [self._path]
        hidden = (".", "~")
        found = [p for p in self._path.iterdir() if p.is_file() and not p.name.startswith(hidden)]
        # Files that are still being written carry another ending until they are whole.
        return sorted(p for p in found if p.suffix not in {".part", ".tmp"})

    def _after(
        self, path: Path, seen: int, observe: Callable[[Batch], None] | None
    ) -> Iterator[Encoded]:
        with tempfile.TemporaryDirectory() as folder:
            whole = _whole_lines(path, Path(folder))
            for batch in TableRecords(whole, self._encoder, observe).batches():
                fresh = max(0, min(seen, len(batch.X)))
                seen -= fresh
                if fresh < len(batch.X):
                    yield Encoded(*(None if a is None else a[fresh:] for a in batch))  # type: ignore[arg-type]


def _whole_lines(path: Path, folder: Path) -> Path:
    """The file, or a copy up to its last line end if its last line is not complete yet."""
    if path.suffix not in LINES:
        return path
    data = path.read_bytes()
    if data.endswith(b"\n"):
        return path
    copy = folder / path.name
    copy.write_bytes(data[: data.rfind(b"\n") + 1])
    return copy
