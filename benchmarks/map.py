"""One round of logistic regression over all cores, against a hand-written numpy loop.

Ten million records of 124 features: ten passes over a million in memory. The peer is what one
writes by hand for a gradient: blocks of rows on as many threads, scores, residuals, a product, no
clipping, no rounding, no exact sums. Wall time, the two taking turns.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from tacit.cli.bench import Row
from tacit.data import Schema
from tacit.data.encode import Encoded
from tacit.data.records import ArrayRecords
from tacit.engines import Threads
from tacit.privacy import Promise
from tacit.programs.contribute import decoded, prepared, record_sum
from tacit.programs.logistic import Logistic

ROWS, PASSES, WIDTH, TURNS = 1_000_000, 10, 124, 3
BLOCK = 8192


def rows(say: Callable[[str], None]) -> Iterator[Row]:
    say("making a million records …")
    generator = np.random.default_rng(1)
    X = (generator.random((ROWS, WIDTH)) < 0.2) * 2.0 - 1.0
    y = (X @ generator.normal(size=WIDTH) > 0).astype(np.int64)
    program, state, query = _gradient_round(X, y)
    batches = [prepared(program, b, state) for b in ArrayRecords(X, y, rows=BLOCK).batches()]
    cores = os.cpu_count() or 1
    weights = generator.normal(size=WIDTH) / 10

    def ours() -> Any:
        engine = Threads(cores)
        for _ in range(PASSES):
            engine.map_sum(batches, lambda b: record_sum(program, b, state, query))

    def by_hand() -> Any:
        with ThreadPoolExecutor(cores) as pool:
            for _ in range(PASSES):
                starts = range(0, ROWS, BLOCK)
                sum(
                    pool.map(
                        lambda s: _gradient(X[s : s + BLOCK], y[s : s + BLOCK], weights), starts
                    )
                )

    pairs = []
    with threadpool_limits(1):  # one thread of BLAS in each of ours
        for turn in range(TURNS):
            say(f"turn {turn + 1} of {TURNS} …")
            pairs.append((_seconds(ours), _seconds(by_hand)))
    mine, peer = (median(side) for side in zip(*pairs, strict=True))
    yield Row("10,000,000 × 124, one round: seconds", mine, peer, "numpy loop", 1.5, at_most=True)


def _gradient(X: Any, y: Any, weights: Any) -> Any:
    residual = 1 / (1 + np.exp(-(X @ weights))) - y
    return X.T @ residual


def _gradient_round(X: Any, y: Any) -> tuple[Any, Any, Any]:
    """The program in its first round of gradients, reached on a part of the data."""
    columns: dict[str, Any] = {f"x{i}": {"type": "number", "bounds": [-1, 1]} for i in range(WIDTH)}
    columns["y"] = {"type": "category", "categories": ["0", "1"], "role": "label"}
    schema = Schema.from_dict({"columns": columns})
    program, promise = Logistic(), Promise(1.0, 1e-6)
    state = first = program.init(schema, promise)
    batch = prepared(program, Encoded(X[:20_000], y[:20_000], None), first)
    *before, gradient = program.plan(first)
    for stage in (*before, *[gradient] * 5):  # then weights have a usual size
        total = record_sum(program, batch, state, stage.query)
        state = program.reduce(decoded(total, stage.query), state)
    return program, state, gradient.query


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
