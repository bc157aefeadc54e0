"""Where a holder's map runs. An engine adds up what a function makes of items, and that is all.

Functions are pure and items are durable, so that a cluster may run them anywhere, and twice.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Engine", "Serial", "Threads"]

T = TypeVar("T")
Integers = NDArray[np.int64]


class Engine(Protocol):
    def map_sum(self, items: Iterable[T], function: Callable[[T], Integers]) -> Integers:
        """Σ function(item), in any order: integers, so the order does not show."""


class Serial:
    """One item after another in this thread."""

    def map_sum(self, items: Iterable[T], function: Callable[[T], Integers]) -> Integers:
        total: Integers | None = None
        for item in items:
            total = _added(total, function(item))
        return _checked(total)


class Threads:
    """All cores of this machine: numpy and Arrow let other threads run while they work.

    At most two items per worker are in memory at a time, so a table may be larger than memory.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or os.cpu_count() or 1

    def map_sum(self, items: Iterable[T], function: Callable[[T], Integers]) -> Integers:
        total: Integers | None = None
        waiting: deque[Future[Integers]] = deque()
        with ThreadPoolExecutor(self.workers) as pool:
            try:
                for item in items:
                    waiting.append(pool.submit(function, item))
                    if len(waiting) >= 2 * self.workers:
                        total = _added(total, waiting.popleft().result())
                while waiting:
                    total = _added(total, waiting.popleft().result())
            except BaseException:
                for future in waiting:
                    future.cancel()
                raise
        return _checked(total)


def _added(total: Integers | None, part: Integers) -> Integers:
    if total is None:
        return part.copy()
    total += part
    return total


def _checked(total: Integers | None) -> Integers:
    if total is None:
        raise ValueError("there is nothing to add up: give at least one item")
    return total
