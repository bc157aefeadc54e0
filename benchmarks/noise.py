"""Exact discrete noise, samples per second of processor time, against OpenDP.

Both sides draw from a secure generator; OpenDP's are `make_laplace` and `make_gaussian` over
vectors of 64-bit integers (its default T=int has 32 bits and saturates). The two take turns within
one run, and the median of each is compared, because the machine's speed drifts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from statistics import median

import numpy as np

from tacit.cli.bench import Row
from tacit.privacy import noise

SCALE = 2**10
BAR = 20.0


def rows(say: Callable[[str], None]) -> Iterator[Row]:
    for size, turns in ((10_000, 7), (1_000_000, 3)):
        for law, ours, theirs in _laws(size):
            say(f"{law}, {size:,} draws, {turns} turns each …")
            pairs = [(_seconds(ours), _seconds(theirs)) for _ in range(turns)]
            mine, peer = (size / median(side) for side in zip(*pairs, strict=True))
            yield Row(f"{law}, {size:,} draws: draws/s", mine, peer, "OpenDP 0.16", BAR)


def _laws(size: int) -> Iterator[tuple[str, Callable[[], object], Callable[[], object]]]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    values = np.zeros(size, dtype=np.int64)
    domain = dp.vector_domain(dp.atom_domain(T="i64"), size=size)
    laplace = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=float(SCALE))
    gaussian = dp.m.make_gaussian(domain, dp.l2_distance(T="i64"), scale=float(SCALE))
    scale = Fraction(SCALE)
    yield "discrete Laplace", lambda: noise.discrete_laplace(scale, size), lambda: laplace(values)
    variance = scale * scale
    yield (
        "discrete Gaussian",
        lambda: noise.discrete_gaussian(variance, size),
        lambda: gaussian(values),
    )


def _seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start
