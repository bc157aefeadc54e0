"""Known records: noting and checking a table's records, against reading the table without that.

A million records like those of Adult are read, checked and encoded, from Parquet and from CSV. With
known records they are also digested, compared with another data set of a million, and added to
their own. The two take turns; of each the fastest of five counts, since what else the machine does
only adds to a time. The size is that of a file with a
hundred million digests (with --quick, ten million).
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from tacit.cli.bench import Row
from tacit.data.datasets import dataset_schema
from tacit.data.digests import Digester
from tacit.data.encode import Encoder
from tacit.data.records import TableRecords
from tacit.data.schema import Schema
from tacit.privacy import Ledger, Promise
from tacit.privacy.ledger.known_file import Header, KnownFile, write_known

ROWS, QUICK_ROWS, TURNS = 1_000_000, 200_000, 5
DIGESTS, QUICK_DIGESTS = 100_000_000, 10_000_000
BYTES_PER_RECORD = 4.0  # 400 MB for a hundred million
PROMISE = Promise(0.1)


def rows(say: Callable[[str], None], quick: bool = False) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["TACIT_HOME"] = str(folder / "home")
        yield from _times(say, folder, QUICK_ROWS if quick else ROWS)
        yield _size(say, folder, QUICK_DIGESTS if quick else DIGESTS)


def _times(say: Callable[[str], None], folder: Path, number: int) -> Iterator[Row]:
    say(f"making {number:,} records …")
    schema = dataset_schema("adult")
    files = {"Parquet": folder / "table.parquet", "CSV": folder / "table.csv"}
    table = _table(schema, number, seed=1)
    pyarrow.parquet.write_table(table, files["Parquet"])
    layout = pyarrow.csv.WriteOptions(include_header=schema.file.header)
    pyarrow.csv.write_csv(table, files["CSV"], layout)
    ledger, names = Ledger(folder / "ledger.db"), (f"data {i}" for i in count())
    _charge(ledger, "other", _read(_table(schema, number, seed=2), schema, known=True))
    for kind, path in files.items():
        pairs = []
        for turn in range(TURNS):
            say(f"{kind}, turn {turn + 1} of {TURNS} …")
            without = _seconds(lambda path=path: _read(path, schema, known=False))
            pairs.append((_noted(path, schema, ledger, next(names)), without))
        ours, peer = (min(side) for side in zip(*pairs, strict=True))
        yield Row(f"{number:,} from {kind}: seconds", ours, peer, "reading alone", 1.2, True)


def _noted(path: Path, schema: Schema, ledger: Ledger, name: str) -> float:
    """With known records, under a new name; forgotten again, for the next turn."""
    found = _seconds(lambda: _charge(ledger, name, _read(path, schema, known=True)))
    for file in ledger.known._files():
        if file.header.account == name:
            file.path.unlink()
    return found


def _read(source: Any, schema: Schema, known: bool) -> Any:
    digester = Digester(schema) if known else None
    for _ in TableRecords(source, Encoder(schema), digester and digester.add).batches():
        pass
    return digester and digester.digests


def _charge(ledger: Ledger, name: str, records: Any) -> None:
    ledger.allow(name, "record", 1.0)
    ledger.reserve(PROMISE, name, "bench", records=records).commit()


def _table(schema: Schema, number: int, seed: int) -> pa.Table:
    draw = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    for column in schema.used:
        if isinstance(column.bounds, tuple):
            low, high = column.bounds
            columns[column.name] = draw.integers(int(low), int(high), number)
        else:
            names = np.array(column.categories)
            columns[column.name] = names[draw.integers(0, len(names), number)]
    return pa.table(columns)


def _size(say: Callable[[str], None], folder: Path, number: int) -> Row:
    say(f"writing {number:,} digests …")
    digests = np.random.default_rng(3).integers(0, 2**48, number, dtype=np.uint64)
    digests.sort()
    digests = digests[np.append(True, digests[1:] != digests[:-1])]
    path, found = folder / "large.known", len(digests)
    write_known(path, Header("large", "columns", "key", found, found, found, found), digests)
    assert KnownFile(path).has(digests[::1000]).all()
    what = f"{found:,} records: bytes a record"
    return Row(what, path.stat().st_size / found, 1.0, "one byte", BYTES_PER_RECORD, True)


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
