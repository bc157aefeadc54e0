"""What an adversary needs of a run: the program with an ear, and the channel with less noise."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.channels.central import Central
from tacit.data.encode import Encoded, Encoder
from tacit.data.schema import Schema
from tacit.privacy.mechanisms import Gaussian, Laplace
from tacit.privacy.promise import Promise
from tacit.privacy.release import Release
from tacit.programs.contributions import Contribution
from tacit.programs.program import Program, Query, Stage

__all__ = ["Watched", "Weakened", "weakened"]


class Watched(Program[Any, Any]):
    """The program itself; every state and the noisy sum that it led to are remembered."""

    name = "watched"

    def __init__(self, program: Program[Any, Any]) -> None:
        self._program = program
        self._heard: list[tuple[Any, NDArray[np.float64]]] = []

    @property
    def heard(self) -> list[tuple[Any, NDArray[np.float64]]]:
        return self._heard

    def windowed(self, windows: int) -> Watched:
        found = copy.copy(self)  # which remembers in the same list
        found._program = self._program.windowed(windows)
        return found

    def settings(self) -> dict[str, Any]:
        return self._program.settings()

    def encoder(self, schema: Schema) -> Encoder:
        return self._program.encoder(schema)

    def init(self, schema: Schema, promise: Promise) -> Any:
        return self._program.init(schema, promise)

    def plan(self, first: Any) -> Sequence[Stage]:
        return self._program.plan(first)

    def admit(self, state: Any) -> None:
        self._program.admit(state)

    def asked(self, state: Any, query: Query) -> Query | None:
        return self._program.asked(state, query)

    def prepare(self, batch: Encoded, first: Any) -> Encoded:
        return self._program.prepare(batch, first)

    def seen_under(self, state: Any, query: Query) -> bytes | None:
        return self._program.seen_under(state, query)

    def seen(self, batch: Encoded, state: Any) -> Encoded:
        return self._program.seen(batch, state)

    def map(
        self, batch: Encoded, state: Any, query: Query
    ) -> NDArray[np.float64] | Sequence[Contribution]:
        return self._program.map(batch, state, query)

    def reduce(self, total: NDArray[np.float64], state: Any) -> Any:
        self._heard.append((state, total))
        return self._program.reduce(total, state)

    def result(self, state: Any) -> Any:
        return self._program.result(state)

    def learned_schema(self, schema: Schema, state: Any) -> Schema:
        return self._program.learned_schema(schema, state)


@dataclass(frozen=True)
class Weakened(Central):
    """The central channel, but where it draws noise it draws only this part of it."""

    noise: Fraction = Fraction(1, 2)

    def _noisy(
        self,
        total: NDArray[np.int64],
        query: Query,
        mechanisms: Sequence[Laplace | Gaussian],
        choosing: Promise | None = None,
        choices: list[Release] | None = None,
    ) -> NDArray[np.float64]:
        if choosing is not None:
            choosing = replace(choosing, epsilon=choosing.epsilon / float(self.noise))
        less = weakened(mechanisms, self.noise)
        # Whoever cheats does not say so: the channel would refuse to certify what it really cost.
        untold: list[Release] | None = None if choices is None else []
        return Central._noisy(self, total, query, less, choosing, untold)


def weakened(
    mechanisms: Sequence[Laplace | Gaussian], noise: Fraction
) -> Sequence[Laplace | Gaussian]:
    """The same mechanisms with this part of their noise."""
    return [replace(each, scale=each.scale * noise) for each in mechanisms]
