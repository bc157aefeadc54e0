"""A program: what is learned, as init → (map → reduce)* → result.

It never sees noise levels, shares, ledgers or who holds the data. Before anything is read it
declares its `plan`: which sums each round asks for, how much one unit may contribute to them, and
which part of the promise pays for each. Nothing of that can change afterwards: a state, which in a
federation comes from an aggregator that nobody has to trust, chooses only how records are looked
at. The framework clips every contribution to the planned bound, on the integers that are added
(sensitivity.md), so a program that under-declares is clipped, never trusted.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.signing import digest
from tacit.data.encode import Encoded, Encoder
from tacit.data.schema import Column, Schema
from tacit.errors import UsageError
from tacit.privacy.bound import Grid, Norm, power_of_two_below
from tacit.privacy.promise import Promise
from tacit.programs.contributions import Contribution
from tacit.programs.prediction import Prediction

__all__ = ["Block", "Learner", "Plan", "Program", "Query", "Stage", "norm_for"]

S = TypeVar("S")
M = TypeVar("M")

# Where a block names no step: contributions are rounded to this part of its bound. So squares of
# what one unit contributes add up below 2^52, which floating point adds exactly.
FINENESS = Fraction(1, 2**24)


@dataclass(frozen=True, slots=True)
class Block:
    """A slice of the vector with its own bound and its own part of the promise (PEM's ε-splitting).

    length   of the slice; at most so much, where a state may ask for less (`Program.asked`)
    bound    the largest `norm` of one unit's contribution; longer ones are shortened to it
    step     contributions are whole multiples of it: a power of two; by default 2^−24 of the bound
    weight   of the promise, relative to all other blocks of the plan, for all rounds of its stage:
             it divides ε when the promise is pure, and 1/σ² of Gaussian noise otherwise
    limit    the largest norm of one unit's contribution, in whole steps of the `grid`
    shift    each holder's sum leaves it rounded to 2^shift steps, where so many units may be in a
             sum that finer ones would not fit an integer (coarse.md); 0: as it is
    nonnegative   whether contributions are kept at 0 or above, as counts are: whoever is replaced
             then moves the sum √2 times as far in L2, instead of twice (sensitivity.md)
    """

    name: str
    length: int
    norm: Norm
    bound: Fraction
    step: Fraction | None = None
    weight: Fraction = Fraction(1)
    shift: int = 0
    nonnegative: bool = False
    # They follow from the others, and are asked for in every round.
    grid: Grid = field(init=False, repr=False, compare=False)
    limit: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", Norm(self.norm))
        object.__setattr__(self, "bound", Fraction(self.bound))
        object.__setattr__(self, "weight", Fraction(self.weight))
        if self.length < 1 or self.bound <= 0 or self.weight <= 0:
            raise UsageError(f"a block needs length ≥ 1, bound > 0 and weight > 0, not {self}.")
        step = power_of_two_below(self.bound * FINENESS) if self.step is None else self.step
        object.__setattr__(self, "grid", Grid(step))
        object.__setattr__(self, "step", self.grid.step)
        object.__setattr__(self, "limit", int(self.bound / self.grid.step))
        if self.limit < 1:
            raise UsageError(f"block {self.name!r}: its step is larger than its bound.")
        if self.shift < 0:
            raise UsageError(f"block {self.name!r}: shift = {self.shift}; it is 0 or more.")

    @property
    def sum_grid(self) -> Grid:
        """What sums are multiples of, once they have left a holder."""
        return self.grid if self.shift == 0 else Grid(self.grid.step * 2**self.shift)

    @property
    def rounding(self) -> int:
        """How much further one unit can move a sum because it is rounded, in steps of `sum_grid`:
        one step in each coordinate (coarse.md)."""
        if self.shift == 0:
            return 0
        return math.isqrt(self.length - 1) + 1 if self.norm is Norm.L2 else self.length

    @property
    def sum_limit(self) -> int:
        """How far one unit can move a sum that has left its holder, in steps of `sum_grid`."""
        return -(-self.limit >> self.shift) + self.rounding

    @property
    def sensitivity(self) -> Fraction:
        """How far adding or removing one unit moves the sum."""
        return self.sum_limit * self.sum_grid.step


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

    def shortened(self, *lengths: int) -> Query:
        """The same blocks with so many coordinates each: never more than planned."""
        blocks = zip(self.blocks, lengths, strict=True)
        if any(length > block.length for block, length in blocks):
            raise UsageError("a round cannot ask for longer vectors than the plan has.")
        pairs = zip(self.blocks, lengths, strict=True)
        return Query(tuple(replace(block, length=length) for block, length in pairs))


@dataclass(frozen=True, slots=True)
class Stage:
    """`count` rounds that ask the same, one after another.

    With `sampling` below 1 each unit takes part in each of these rounds with that probability,
    secretly, in all blocks or in none, and the channel scales the sum up accordingly.
    `window` says whose records these rounds are about, where records arrive in windows, from 1.
    """

    query: Query
    count: int = 1
    sampling: Fraction = Fraction(1)
    window: int = 0

    def __post_init__(self) -> None:
        if self.count < 1 or not 0 < self.sampling <= 1:
            raise UsageError(
                f"a stage needs count ≥ 1 and 0 < sampling ≤ 1, not {self.count}, {self.sampling}."
            )


@dataclass(frozen=True)
class Plan:
    """All rounds of a run, fixed before any record is read.

    Where records arrive in windows, each window has rounds of its own, and the whole promise for
    them: its `part` is a plan by itself.
    """

    stages: tuple[Stage, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "stages", tuple(self.stages))
        names = [(s.window, block.name) for s in self.stages for block in s.query.blocks]
        if not names or len(set(names)) < len(names):
            raise UsageError("a plan needs at least one block, each with a name of its own.")
        windows = list(dict.fromkeys(stage.window for stage in self.stages))
        if windows not in ([0], list(range(1, len(windows) + 1))):
            raise UsageError("the windows of a plan come one after another, from 1.")

    @cached_property
    def rounds(self) -> int:
        return sum(stage.count for stage in self.stages)

    @cached_property
    def releases(self) -> int:
        """How many there are in all rounds: blocks that are asked together count one each."""
        return sum(stage.count * len(stage.query.blocks) for stage in self.stages)

    def stage(self, number: int) -> Stage:
        """That of round `number`, from 1; UsageError if the plan has no such round."""
        left = number
        for stage in self.stages if number >= 1 else ():
            if left <= stage.count:
                return stage
            left -= stage.count
        raise UsageError(f"the plan has rounds 1 to {self.rounds}; there is no round {number}.")

    @property
    def windows(self) -> int:
        """How many there are; 0 if all rounds are about the same records."""
        return self.stages[-1].window

    def part(self, window: int) -> Plan:
        """The rounds of one window, as a plan by itself; of window 0, all of a plan without."""
        return Plan(tuple(replace(s, window=0) for s in self.stages if s.window == window))

    def place(self, number: int) -> tuple[int, int]:
        """The window of round `number`, and which of the window's rounds it is, from 1."""
        window = self.stage(number).window
        before = sum(stage.count for stage in self.stages if stage.window < window)
        return window, number - before

    def ends_window(self, number: int) -> bool:
        """Whether round `number` is the last one about its records."""
        if number == self.rounds:
            return True
        return self.stage(number).window != self.stage(number + 1).window

    def sampled(self, rate: Fraction) -> Plan:
        """The same rounds over secret samples."""
        if rate == 1:
            return self
        return Plan(tuple(replace(stage, sampling=rate) for stage in self.stages))


class Learner(ABC):
    """What has a name and makes models of records: a program, or what is averaged (averaging.py).

    models   the dataclasses that its models may be. They are sent and saved as bytes, and these
             are all that such bytes may become (files.py).
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    # Earlier versions whose models this one reads and uses; it does not run their plans.
    reads: ClassVar[tuple[int, ...]] = ()
    # False for a published method that is kept for comparison although its promise is broken.
    promise_holds: ClassVar[bool] = True
    # Whether later rounds, or the model, are about what stands out in noisy sums (frequent sets).
    selects: ClassVar[bool] = False
    models: ClassVar[tuple[type[Any], ...]] = ()
    # All that `remarks` may say, for whoever checks a certificate without its model.
    may_remark: ClassVar[tuple[str, ...]] = ()

    # Set by the registry alone, where what was agreed calls it by a former name.
    _written_name: str | None = None

    @property
    def written_name(self) -> str:
        """Its name in files, certificates and digests: that of today, unless what was agreed has a
        former one, which nobody may change (`tacit.program_names`)."""
        return self._written_name or self.name

    def encoder(self, schema: Schema) -> Encoder:
        """How records become vectors; the default maps numbers to [−1, 1]."""
        return Encoder(schema, interval="symmetric")

    def finds_bounds(self, schema: Schema) -> tuple[Column, ...]:
        """The columns whose bounds the model's schema may have from a run, not from agreement."""
        return schema.private

    def predict(self, model: Any, X: NDArray[np.float64]) -> Prediction | None:
        """What a model says of each encoded record; None: it speaks of all records together.

        Of vectors that no record has, a model says what it says of the nearest ones that a fit
        would have seen (`tacit.programs.prediction.within`).
        """
        return None

    def remarks(self, model: Any) -> tuple[str, ...]:
        """What whoever uses this model must know: of the model alone, so that everyone who has it
        finds the same. Certificates of a federation and of estimators say it too."""
        return ()

    def sees(self, schema: Schema) -> str:
        """In a sentence, how it looks at records if not as they are encoded: for those who decide
        on a study. Of the settings and the columns' types alone."""
        return ""

    def settings(self) -> dict[str, Any]:
        """What makes this program differ from another of its name; part of the certificate."""
        return {k: v for k, v in vars(self).items() if not k.startswith("_")}

    @property
    def digest(self) -> str:
        """SHA-256 of name and settings, for certificates."""
        settings = {name: repr(value) for name, value in self.settings().items()}
        return digest({"name": self.written_name, "settings": settings})


class Program(Learner, Generic[S, M]):
    """Written once; run through every channel. States are dataclasses of arrays and numbers.

    A state class names in `varies` the fields that change from round to round, and in `grows` those
    of them whose shape does too; only these are sent. Everything else follows from the study, and
    everyone takes it from the first state that they compute themselves (states.py).
    """

    # The dataclasses that `init` and `reduce` return; sent as bytes, like models. By default what
    # stands in the brackets: `class Mine(Program[State, Model])`.
    states: ClassVar[tuple[type[Any], ...]] = ()

    def __init_subclass__(cls, **more: Any) -> None:
        """`class Mine(Program[State, Model])` declares both, unless the class says otherwise."""
        super().__init_subclass__(**more)
        for base in cls.__dict__.get("__orig_bases__", ()):
            if get_origin(base) is Program:
                for name, kind in zip(("states", "models"), get_args(base), strict=True):
                    if name not in cls.__dict__ and isinstance(kind, type) and is_dataclass(kind):
                        setattr(cls, name, (kind,))

    # In how many windows records arrive; 0 if they are all there. Set by `windowed` alone.
    _windows: int = 0

    @abstractmethod
    def init(self, schema: Schema, promise: Promise) -> S:
        """The state before any data."""

    @abstractmethod
    def plan(self, first: S) -> Sequence[Stage]:
        """All rounds, from the first state: what they ask, and what pays for it."""

    def windowed(self, windows: int) -> Program[Any, M]:
        """The same, learned from records that arrive in so many windows, each record in one.

        Its plan says of every stage which window it is about (`Stage.window`), and never ends
        before the last; after each window `result` is a model of all records so far. By default
        for programs of one round: their sums are added up (windows.py). A program of several rounds
        says itself how it goes on from window to window.
        """
        from tacit.programs.windows import Accumulating

        return Accumulating(self, windows)

    def admit(self, state: S) -> None:
        """Raise InputError for a state that cannot be worked with; it depends on nothing else.

        Holders and servers ask this of every state that arrives. What it lets through must be
        harmless all the same: it is for what would otherwise fail on every record.
        """
        return

    def asked(self, state: S, query: Query) -> Query | None:
        """What is asked of the planned round: all of it, shorter vectors, or nothing any more."""
        return query

    def prepare(self, batch: Encoded, first: S) -> Encoded:
        """What can be done to a batch once for all rounds; `map` sees what this returns.

        It is given the first state, which holds nothing of anybody's data, and no other.
        """
        return batch

    def seen_under(self, state: S, query: Query) -> bytes | None:
        """None: `map` looks at prepared batches as they are. Else, exactly all that `seen` reads of
        the state: as long as these bytes stay the same, what it made is used again."""
        return None

    def seen(self, batch: Encoded, state: S) -> Encoded:
        """A prepared batch as `map` looks at it, where `seen_under` is not None."""
        return batch

    @abstractmethod
    def map(
        self, batch: Encoded, state: S, query: Query
    ) -> NDArray[np.float64] | Sequence[Contribution]:
        """What each record contributes: one row each, or for each block a `Contribution`.

        Which round it is, the query tells, not the state. A record's contribution may depend on
        nothing but the record, the state and the query: not on the batch it is in.
        """

    @abstractmethod
    def reduce(self, total: NDArray[np.float64], state: S) -> S:
        """The next state, from the noisy sum."""

    @abstractmethod
    def result(self, state: S) -> M:
        """The model."""

    def learned_schema(self, schema: Schema, state: S) -> Schema:
        """The schema that the model is read with: the agreed one, unless bounds were to be found
        under the promise (ranged.py)."""
        return schema


def norm_for(promise: Promise) -> Norm:
    """Pure promises are kept by Laplace noise and bounds in L1, others by Gaussian noise and L2.

    Without privacy nothing is clipped by much either way; L2 is the natural one.
    """
    return Norm.L1 if promise.delta == 0 and promise.is_private else Norm.L2
