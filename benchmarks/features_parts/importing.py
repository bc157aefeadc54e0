"""Importing 1,000,000 events from a CSV file, against DuckDB's own CSV read and insert.

Both end with the same rows in a file of their own on the same disk. Ours also reads times in the
person's zone, remembers what it has so that a second import adds nothing, and keeps the events of
an import together, to be forgotten with it. The two take turns; medians of the elapsed time are
compared, since DuckDB uses all cores.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from zoneinfo import ZoneInfo

from features_parts.trips import NUMBERS, trips
from tacit.cli.bench import Row
from tacit.errors import CheckFailed, UsageError
from tacit.personal.importing import import_export
from tacit.personal.store.store import Store

EVENTS, QUICK_EVENTS, TURNS = 1_000_000, 100_000, 3
BAR = 3.0


def rows(say: Callable[[str], None], quick: bool) -> Iterator[Row]:
    try:
        import duckdb
    except ImportError:
        raise UsageError("the peer is missing: pip install duckdb.") from None
    events = QUICK_EVENTS if quick else EVENTS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder / "rides.csv", events)
        say(f"importing {events:,} events, {TURNS} turns each …")
        pairs = [(_ours(folder, events), _theirs(folder, events)) for _ in range(TURNS)]
        mine, peer = (median(side) for side in zip(*pairs, strict=True))
        what = f"import {events:,} events of a CSV file: s"
        yield Row(what, mine, peer, f"DuckDB {duckdb.__version__}", BAR, at_most=True)


def _write(path: Path, events: int) -> None:
    import pyarrow as pa
    from pyarrow import csv

    columns = trips(events, 10, shared=False).columns
    when = pa.array(columns["time"]).cast(pa.timestamp("us")).cast(pa.string())
    table = {"when": when, **{name: columns[name] for name in ("car", *NUMBERS, "city")}}
    csv.write_csv(pa.table(table), path)


def _ours(folder: Path, events: int) -> float:
    path = folder / "ours.store"
    start = time.perf_counter()
    store = Store.create(path, zone=ZoneInfo("UTC"))
    done = import_export(
        store, folder / "rides.csv", importer="csv", options={"type": "ride", "time": "when"}
    )
    store.close()
    seconds = time.perf_counter() - start
    added = sum(done.added.values())
    if added != events:
        raise CheckFailed(f"{added} of {events} events were imported.")
    path.unlink()
    return seconds


def _theirs(folder: Path, events: int) -> float:
    import duckdb

    path = folder / "peer.duckdb"
    start = time.perf_counter()
    with duckdb.connect(str(path)) as database:
        database.execute(
            'CREATE TABLE ride ("when" TIMESTAMP, car DOUBLE, price DOUBLE, length DOUBLE, '
            "wait DOUBLE, city VARCHAR)"
        )
        database.execute("INSERT INTO ride SELECT * FROM read_csv(?)", [str(folder / "rides.csv")])
    seconds = time.perf_counter() - start
    with duckdb.connect(str(path)) as database:
        (count,) = database.execute("SELECT count(*) FROM ride").fetchall()[0]
    if count != events:
        raise CheckFailed(f"DuckDB has {count} of {events} events.")
    path.unlink()
    return seconds
