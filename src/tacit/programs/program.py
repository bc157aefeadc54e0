"""A program: what is learned, as init → (query → map → reduce)* → result.

It never sees noise levels, shares, ledgers or who holds the data. It declares, before anything is
read, how it divides the promise (`plan`), and in each round which sums it wants and how much one
unit may contribute to them (`query`). The framework clips every contribution to that bound, so a
program that under-declares is clipped, never trusted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.signing import digest
from tacit.data.encode import Encoded, Encoder
from tacit.data.schema import Schema
from tacit.errors import UsageError
from tacit.privacy.bound import Norm
from tacit.privacy.promise import Promise
from tacit.programs.prediction import Prediction

__all__ = ["Block", "Learner", "Program", "Query", "Share", "norm_for"]

S = TypeVar("S")
M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Share:
    """A named part of the promise, spent in `count` equal releases.

    `weight` is relative to the other shares: it divides ε when the promise is pure, and the
    (ε, δ) budget of Gaussians, which is quadratic in 1/σ, otherwise. With `sampling` below 1 each
    unit takes part in each of these rounds with that probability, secretly, and the channel scales
    the sum up accordingly. `norm` is that of its
    blocks where it is not `norm_for`'s: L1 asks for Laplace noise although δ > 0.
    """

    name: str
    weight: Fraction
    count: int = 1
    sampling: Fraction = Fraction(1)
    norm: Norm | None = None

    def __post_init__(self) -> None:
        if self.weight <= 0 or self.count < 1 or not 0 < self.sampling <= 1:
            raise UsageError(f"a share needs weight > 0, count ≥ 1, 0 < sampling ≤ 1, not {self}.")


@dataclass(frozen=True, slots=True)
class Block:
    """A slice of the vector, paid from the share of the same name (PEM's ε-splitting).

    bound   the largest `norm` of one unit's contribution; longer ones are shortened to it
    step    contributions are rounded to its multiples; by default fine enough not to matter
    """

    name: str
    length: int
    norm: Norm
    bound: Fraction
    step: Fraction | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", Norm(self.norm))
        object.__setattr__(self, "bound", Fraction(self.bound))
        if self.length < 1 or self.bound <= 0:
            raise UsageError(f"a block needs length ≥ 1 and bound > 0, not {self}.")


@dataclass(frozen=True, slots=True)
class Query:
    """What one round asks: the sum over all units of the blocks, one after another."""

    blocks: tuple[Block, ...]

    def __post_init__(self) -> None:
        names = [block.name for block in self.blocks]
        if not names or len(set(names)) < len(names):
            raise UsageError("a query needs blocks with names of their own.")

    @property
    def length(self) -> int:
        return sum(block.length for block in self.blocks)

    def slices(self) -> list[tuple[Block, slice]]:
        """Each block with its place in the vector."""
        found, start = [], 0
        for block in self.blocks:
            found.append((block, slice(start, start + block.length)))
            start += block.length
        return found

    def split(self, vector: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """The blocks of a sum by name."""
        return {block.name: vector[..., place] for block, place in self.slices()}


class Learner(ABC):
    """What has a name and makes models of records: a program, or what is averaged (averaging.py).

    models   the dataclasses that its models may be. They are sent and saved as bytes, and these
             are all that such bytes may become (files.py).
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    # False for a published method that is kept for comparison although its promise is broken.
    promise_holds: ClassVar[bool] = True
    models: ClassVar[tuple[type[Any], ...]] = ()

    def encoder(self, schema: Schema) -> Encoder:
        """How records become vectors; the default maps numbers to [−1, 1]."""
        return Encoder(schema, interval="symmetric")

    def predict(self, model: Any, X: NDArray[np.float64]) -> Prediction | None:
        """What a model says of each encoded record; None: it speaks of all records together."""
        return None

    def settings(self) -> dict[str, Any]:
        """What makes this program differ from another of its name; part of the certificate."""
        return {k: v for k, v in vars(self).items() if not k.startswith("_")}

    @property
    def digest(self) -> str:
        """SHA-256 of name and settings, for certificates."""
        settings = {name: repr(value) for name, value in self.settings().items()}
        return digest({"name": self.name, "settings": settings})


class Program(Learner, Generic[S, M]):
    """Written once; run through every channel. States are dataclasses of arrays and numbers."""

    # The dataclasses that `init` and `reduce` return; sent as bytes, like models.
    states: ClassVar[tuple[type[Any], ...]] = ()

    def prepare(self, batch: Encoded, state: S) -> Encoded:
        """What can be done to a batch once for all rounds; `map` sees what this returns.

        It may depend on the state only in what never changes from round to round.
        """
        return batch

    @abstractmethod
    def init(self, schema: Schema, promise: Promise) -> S:
        """The state before any data."""

    @abstractmethod
    def plan(self, state: S) -> Sequence[Share]:
        """How the promise is divided over all rounds; fixed once and for all by the first state."""

    @abstractmethod
    def query(self, state: S) -> Query | None:
        """What the next round asks, or None when there is nothing left to ask."""

    @abstractmethod
    def map(self, batch: Encoded, state: S) -> NDArray[np.float64]:
        """One row of contributions for each record of the batch."""

    @abstractmethod
    def reduce(self, total: NDArray[np.float64], state: S) -> S:
        """The next state, from the noisy sum."""

    @abstractmethod
    def result(self, state: S) -> M:
        """The model."""

    def map_sum(self, batch: Encoded, state: S) -> NDArray[np.int64] | None:
        """Optional fast path for the record unit: the sum of clipped contributions on the grid.

        Exactly what clipping, rounding and adding the rows of `map` gives (the contract suite
        compares), without building the rows. None: there is no fast path.
        """
        return None


def norm_for(promise: Promise) -> Norm:
    """Pure promises are kept by Laplace noise and bounds in L1, others by Gaussian noise and L2.

    Without privacy nothing is clipped by much either way; L2 is the natural one.
    """
    return Norm.L1 if promise.delta == 0 and promise.is_private else Norm.L2
