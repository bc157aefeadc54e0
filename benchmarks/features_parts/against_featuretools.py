"""Fifty features of 10,000 instances over 1,000,000 events, against featuretools.

The peer computes the same primitives over the same windows (`calculate_feature_matrix` with
cut-offs and a training window). Both are given their events in memory and use one core; processor
time. Its results are compared with ours: all must agree, with these differences of definition. Its
trend is per second, ours per day, and it gives none for two events. It looks at (cut-off - window,
cut-off], we at [cut-off - window, cut-off); no event falls on an edge here.

Two rows, since what the peer's time depends on is how many different cut-offs there are: ten that
all cars share, which is its best case; and one of its own for every instance, as in "before each
ride". That would take it a quarter of an hour or more: it is given the first of the instances, and
the two are compared per instance.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from features_parts.trips import NUMBERS, WINDOWS, Trips, features, trips
from tacit import children
from tacit.cli.bench import Row
from tacit.errors import CheckFailed, UsageError
from tacit.personal.durations import DAY, SECOND
from tacit.personal.features.engine import evaluate

# featuretools 1.31 does not run with pandas 3: it has an environment of its own.
PINS = ("featuretools==1.31.0", "woodwork==0.31.0", "pandas==2.3.3", "pyarrow", "setuptools")
PEER = Path(__file__).with_name("featuretools_peer.py")
PEER_NAME = "featuretools 1.31.0"
EVENTS, INSTANCES, TURNS = 1_000_000, 10_000, 3
QUICK_EVENTS, QUICK_INSTANCES = 100_000, 1_000
FIRST = 50  # instances of the peer's, where each has its own cut-off
BAR = 10.0

Say = Callable[[str], None]


def rows(say: Say, quick: bool) -> Iterator[Row]:
    events = QUICK_EVENTS if quick else EVENTS
    instances = QUICK_INSTANCES if quick else INSTANCES
    with tempfile.TemporaryDirectory() as folder:
        python = _environment(Path(folder), say)
        for shared in (True, False):
            data = trips(events, instances, shared)
            asked = instances if shared else FIRST
            say(f"{events:,} events, {instances:,} instances, {2 * 25} features …")
            ours = min(_ours(data)[0] for _ in range(TURNS)) / instances
            say(f"the peer, {asked:,} of the instances …")
            theirs = _theirs(python, Path(folder), data, asked) / asked
            _compare(_ours(data)[1], Path(folder), data, asked)
            what = "10 shared cut-offs" if shared else f"a cut-off each, the peer on {asked}"
            yield Row(f"{what}: instances/s", 1 / ours, 1 / theirs, PEER_NAME, BAR)


def _environment(folder: Path, say: Say) -> Path:
    say(f"an environment with {', '.join(PINS[:3])} …")
    children.run([sys.executable, "-m", "venv", str(folder / "env")], check=True)
    python = folder / "env" / "bin" / "python"
    done = children.run([str(python), "-m", "pip", "install", "-q", *PINS], check=False)
    if done.returncode:
        raise UsageError("the peer cannot be installed: pip said why above.")
    return python


def _ours(data: Trips) -> tuple[float, list[Any]]:
    dataset, frame = data.dataset(), data.frame()
    chosen = [feature for days in WINDOWS for feature in features(days)]
    start = time.process_time()
    columns, _, values = evaluate(chosen, dataset, frame)
    seconds = time.process_time() - start
    made: list[Any] = []
    for place, feature in enumerate(chosen):
        words, column = values.get(str(feature)), columns[:, place]
        made.append(column if words is None else _words(column, words))
    return seconds, made


def _words(column: Any, words: tuple[str, ...]) -> list[str]:
    return ["nan" if np.isnan(code) else words[int(code)] for code in column]


def _theirs(python: Path, folder: Path, data: Trips, asked: int) -> float:
    import pyarrow as pa
    import pyarrow.parquet as pq

    moment = pa.timestamp("us")
    rides = {
        "ride": np.arange(len(data.columns["time"])),
        "time": pa.array(data.columns["time"]).cast(moment),
        "car": data.columns["car"].astype(np.int64),
        **{name: data.columns[name] for name in (*NUMBERS, "city")},
    }
    cutoffs = pa.array(data.cutoffs).cast(moment)
    pq.write_table(pa.table(rides), folder / "events.parquet")
    pq.write_table(
        pa.table({"car": data.cars.astype(np.int64), "time": cutoffs}), folder / "instances.parquet"
    )
    command = [str(python), "-W", "ignore", str(PEER), str(folder), str(asked)]
    children.run([*command, *map(str, WINDOWS)], check=True)
    return float((folder / "seconds.txt").read_text())


def _compare(ours: list[Any], folder: Path, data: Trips, asked: int) -> None:
    """Raise unless both computed the same."""
    import pyarrow.parquet as pq

    for turn, days in enumerate(WINDOWS):
        theirs = pq.read_table(folder / f"features_{days}.parquet")
        mine = ours[turn * 25 : turn * 25 + 25]
        few = mine[0][:asked] < 3
        for name, column in zip(theirs.column_names, mine, strict=True):
            if not _agree(name, column[:asked], theirs[name].to_pylist(), few):
                raise CheckFailed(f"tacit and {PEER_NAME} differ in {name} over {days} days.")


def _agree(name: str, mine: Any, theirs: list[Any], few: Any) -> bool:
    if name.startswith("MODE"):
        return bool(mine == theirs)
    other = np.array([np.nan if value is None else value for value in theirs], np.float64)
    if name.startswith("TREND"):
        mine, other = mine[~few] * (SECOND / DAY), other[~few]
    return np.allclose(mine, other, rtol=1e-6, atol=1e-9, equal_nan=True)
