"""Learning from records that arrive in windows: how sums of one round are added up (windows.md).

A record lies in one window, so every window has the whole promise to itself. A program of one round
asks the same sum of every window, and the sum over all records is the sum over windows. Its noise
has grown by √w after w windows, which the program is told as if the promise were smaller.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.data.encode import Encoded, Encoder
from tacit.data.schema import Schema
from tacit.errors import UsageError
from tacit.privacy.promise import Promise
from tacit.programs.contributions import Contribution
from tacit.programs.prediction import Prediction
from tacit.programs.program import Plan, Program, Query, Stage
from tacit.programs.reckoned import reckoned

__all__ = [
    "SETTLING",
    "Accumulated",
    "Accumulating",
    "at_rest",
    "late_share",
    "late_variance",
    "over",
    "rounds_each",
]

Reals = NDArray[np.float64]
M = TypeVar("M")
N = TypeVar("N", float, Reals)
P = TypeVar("P", bound=Program[Any, Any])
SETTLING = 20  # rounds after which clusters have mostly found their places
MAX_WINDOWS = 2_000  # each has a model and a certificate; a stage for each is planned and checked
LATE = 3  # how strongly later rounds count for more than earlier ones


@dataclass(frozen=True)
class Accumulated:
    """first    the program's own state before any data: records are mapped with it, always
    done     windows so far
    total    the noisy sum over all of them
    """

    varies: ClassVar[tuple[str, ...]] = ("done", "total")

    schema: Schema
    promise: Promise
    first: Any
    done: int
    total: Reals


class Accumulating(Program[Accumulated, M]):
    """A program of one round over windows; in all else it is the program itself."""

    states = (Accumulated,)

    def __init__(self, program: Program[Any, M], windows: int) -> None:
        _check(windows)
        self._program, self._windows = program, windows
        self.name, self.version = program.name, program.version  # type: ignore[misc]
        self._written_name = program._written_name
        self.may_remark = program.may_remark  # type: ignore[misc]
        self.models, self.promise_holds = program.models, program.promise_holds  # type: ignore[misc]

    def settings(self) -> dict[str, Any]:
        return self._program.settings()

    def encoder(self, schema: Schema) -> Encoder:
        return self._program.encoder(schema)

    def init(self, schema: Schema, promise: Promise) -> Accumulated:
        first = self._program.init(schema, promise)
        plan = Plan(tuple(self._program.plan(first)))
        if plan.rounds > 1 or plan.windows:
            raise UsageError(
                f"{self.name} has {plan.rounds} rounds and does not say how it learns from "
                "windows. Give the program a method `windowed`, or run it over all records at once."
            )
        length = plan.stage(1).query.length
        return Accumulated(schema, promise, first, 0, np.zeros(length))

    def plan(self, first: Accumulated) -> Sequence[Stage]:
        (stage,) = self._program.plan(first.first)
        return [replace(stage, window=number) for number in range(1, self._windows + 1)]

    def asked(self, state: Accumulated, query: Query) -> Query | None:
        return None if state.done >= self._windows else query

    def prepare(self, batch: Encoded, first: Accumulated) -> Encoded:
        return self._program.prepare(batch, first.first)

    def map(
        self, batch: Encoded, state: Accumulated, query: Query
    ) -> NDArray[np.float64] | Sequence[Contribution]:
        return self._program.map(batch, state.first, query)

    def reduce(self, total: Reals, state: Accumulated) -> Accumulated:
        return replace(state, done=state.done + 1, total=state.total + total)

    def result(self, state: Accumulated) -> M:
        """As of one round with as much noise as has come together."""
        noisier = reckoned(state.promise, math.sqrt(max(1, state.done)))
        first = self._program.init(state.schema, noisier)
        return self._program.result(self._program.reduce(state.total, first))

    def predict(self, model: M, X: Reals) -> Prediction | None:
        return self._program.predict(model, X)

    def remarks(self, model: Any) -> tuple[str, ...]:
        return self._program.remarks(model)


def over(program: P, windows: int) -> P:
    """The same program, which is told that records arrive in so many windows (`_windows`)."""
    _check(windows)
    found = copy.copy(program)
    found._windows = windows
    return found


def _check(windows: int) -> None:
    if not 1 <= windows <= MAX_WINDOWS:
        raise UsageError(f"windows = {windows}: have at least one, and at most {MAX_WINDOWS:,}.")


def rounds_each(rounds: int, windows: int) -> int:
    """How many rounds every window has, for `rounds` in all: no fewer, and one at least. Without
    windows, all of them."""
    return math.ceil(rounds / max(1, windows))


def late_share(number: N) -> N:
    """How much the `number`-th of a sequence counts in an average that forgets its beginning.

    The average gives the t-th a weight that grows like t³ (Shamir & Zhang 2013, section 4: of
    polynomial decay), so it is about that over the later part of all so far, however many there
    will be. Its variance is about 16/7 of that of a plain average.
    """
    return (LATE + 1) / (number + LATE)


def at_rest(number: N, last: int, settling: int = SETTLING) -> N:
    """The round's number, counted from the end of the beginning, in which clusters still find
    their places and nothing is averaged; 1 until then. `last` is the number of all rounds."""
    found: N = np.maximum(number - min(settling, last // 3), 1.0)
    return found


def late_variance(number: N) -> N:
    """The variance of such an average of so many, relative to that of one; above 1 for few."""
    return (LATE + 1) ** 2 / ((2 * LATE + 1) * number)
