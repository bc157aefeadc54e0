"""Three rounds that linear regression and PCA share: mean, spread, moments (proof: moments.md).

The first two are cheap, and noise hardly hurts them: where records are, and how far from there.
Seen from their centre and in their own scale records are short, so the last round, which pays for
all that a model needs, has far less noise. Nothing is left to tune: the length at which records are
cut follows from the noise and the noisy number of records.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.data.encode import Encoded
from tacit.data.schema import Schema
from tacit.privacy.bound import Norm, power_of_two_below, round_up
from tacit.privacy.promise import Promise
from tacit.programs.contributions import Contribution, Rows
from tacit.programs.layout import owners
from tacit.programs.levels import Levels
from tacit.programs.moments import Moments, View, joined, known_products
from tacit.programs.program import Block, Plan, Program, Query, Stage, norm_for
from tacit.programs.windows import over

__all__ = ["MomentRounds", "MomentState", "Summary"]

Reals = NDArray[np.float64]
M = TypeVar("M")

SHARES = {"mean": 4, "spread": 2, "moments": 94}
LEAST = 0.05  # a coordinate's variance, of all coordinates' average: less is noise, or constant
FINENESS = Fraction(1, 2**22)  # of the first two rounds' bounds: to this their rows are rounded
SLACK = 1 + Fraction(1, 2**20)  # no record in range is within rounding of the bound


@dataclass(frozen=True, slots=True)
class MomentState:
    """owner     the column of each coordinate
    low, high  the label's public bounds; −1 and 1 without a label
    noise      standard deviation on each number of mean, spread, moments, and moments of a window
               that is not the first
    stage      what the next round asks; `done` counts those of moments
    count      noisy number of records
    centre, scale, unit   as records are seen (moments.View), the label last
    total      the noisy triangle, empty before its round; the sum over windows
    """

    varies: ClassVar[tuple[str, ...]] = ("stage", "done", "count", "centre", "scale", "unit")
    grows: ClassVar[tuple[str, ...]] = ("total",)

    columns: int
    norm: str
    private: bool
    labelled: bool
    owner: NDArray[np.int64]
    low: float
    high: float
    noise: tuple[float, ...]
    centre: Reals
    scale: Reals
    unit: float
    total: Reals
    stage: str
    count: float = 1.0
    done: int = 0
    windows: int = 0

    @property
    def moments(self) -> Moments:
        width = len(self.owner)
        return Moments(self.columns, width, self.labelled, Norm(self.norm), self.private)

    @property
    def view(self) -> View:
        return View(self.centre, self.scale, self.unit)

    @property
    def counted(self) -> float:
        """What a record counts beside its coordinates, for a count that is more exact than they."""
        return float(round((self.columns + self.labelled) ** 0.25 * 2**8)) / 2**8

    @property
    def entry_noise(self) -> float:
        """Standard deviation on a product of two seen coordinates, summed over all records."""
        first, later = self.noise[2:]
        return self.unit**2 * math.sqrt(first**2 + max(0, self.done - 1) * later**2)

    # What noise of deviation 1 on each number of the triangle makes of what follows from it, to
    # first order: all that a model need keep of its noise, whoever adds it (shown_moments.py).

    def noise_of_moments(self, mean: Reals) -> float:
        """The spectral norm of noise on centred second moments: of a mean m, ‖δ mᵀ + m δᵀ‖ and
        |δ| ‖m‖² come from centring."""
        each, (sums, ones) = self.unit**2, self._noise_of_sums
        root, away = math.sqrt(len(self.owner)), float(np.linalg.norm(mean))
        return 2 * each * (root + 1) + 2 * sums * root * away + ones * away**2

    def noise_of_means(self, weight: float, kept: Reals) -> Reals:
        """On each coordinate's mean, in its own unit. So much is `kept` of the last round's; the
        rest is the centre, which has the noise of the first one."""
        sums, ones = self._noise_of_sums
        centre = self._first * max(1, self.done) / self.count
        return np.hypot(kept * self.scale * (sums + ones) / weight, (1 - kept) * centre)

    def noise_of_weight(self, weight: float) -> float:
        """Relative to it."""
        return self._noise_of_sums[1] / weight

    @property
    def noise_of_count(self) -> float:
        """In windows the count grows as a sum of the triangles does."""
        ones = self._noise_of_sums[1]
        if not self._first:
            return ones
        own = self._first / self.counted * max(1, self.done)
        return math.hypot(own, ones) if self.done > 1 else own

    @property
    def _first(self) -> float:
        """The deviation in the first round, as so many of the last one's; 0 if there was none."""
        return self.noise[0] * self.unit**2 / self.entry_noise if self.noise[0] else 0.0

    @property
    def _noise_of_sums(self) -> tuple[float, float]:
        """On a sum of coordinates, and on the sum of ones or of labels."""
        weight = self.moments.weight
        return self.unit**2 / weight, self.unit**2 / weight**2


class Summary(NamedTuple):
    """What the noisy triangle says of records as they are seen; a record that was shortened by f
    counts as f² of one.

    weight   of all records
    mean     of (x − centre)/scale, the label last; so much of it was `kept` beside its noise
    second   Σ of products, centred at that mean where the program centres
    noise    standard deviation on each number of `second`, but for those with the label
    """

    weight: float
    mean: Reals
    second: Reals
    noise: float
    kept: Reals


class MomentRounds(Program[MomentState, M]):
    """A program whose model follows from centred second moments.

    own_scale   how far each coordinate gets a scale of its own: 1 by its deviation, 0 one for all
    """

    version = 2  # 1 had one round, with records as they are in their public bounds
    reads = (1,)
    states = (MomentState,)
    own_scale: ClassVar[float]

    @property
    @abstractmethod
    def _centring(self) -> bool:
        """Whether the mean is taken off."""

    def _label_bounds(self, schema: Schema) -> tuple[float, float] | None:
        """The label's public bounds; None for a program without label."""
        return None

    def init(self, schema: Schema, promise: Promise) -> MomentState:
        owner, bounds = owners(schema), self._label_bounds(schema)
        low, high = (-1.0, 1.0) if bounds is None else bounds
        seen, labelled = len(owner) + (bounds is not None), bounds is not None
        norm = norm_for(promise)
        moments = Moments(len(schema.features), len(owner), labelled, norm, promise.is_private)
        draft = MomentState(
            moments.columns, norm.value, moments.private, labelled, owner, low, high, (0.0,) * 4,
            centre=np.zeros(seen),
            scale=np.ones(seen),
            unit=math.sqrt(moments.box) if moments.private else moments.exact_unit(),
            total=np.zeros(0),
            stage="moments" if moments.boxed else "mean",
            windows=self._windows,
        )  # fmt: skip
        return replace(draft, noise=_noises(promise, Plan(tuple(self.plan(draft)))))

    def windowed(self, windows: int) -> MomentRounds[M]:
        """Centre, scale and unit are those of the first window; triangles are added up."""
        return over(self, windows)

    def plan(self, first: MomentState) -> Sequence[Stage]:
        asked = ("moments",) if first.moments.boxed else tuple(SHARES)
        stages = [
            Stage(Query((_block(name, first),)), window=min(1, first.windows)) for name in asked
        ]
        later = range(2, first.windows + 1)
        return [*stages, *(replace(stages[-1], window=window) for window in later)]

    def map(self, batch: Encoded, state: MomentState, query: Query) -> Sequence[Contribution]:
        (block,) = query.blocks
        y: Any = None
        if state.labelled:
            assert batch.y is not None  # the schema has a label
            y = 2.0 * (batch.y - state.low) / (state.high - state.low) - 1.0
        if block.name == "moments":
            return [state.moments.contribution(batch.X, y, state.view)]
        whole = joined(batch.X, y, state.private)
        if block.name == "mean":
            values = np.column_stack([np.full(len(whole), state.counted), whole])
        else:
            values = (whole - state.centre) ** 2
        return [Rows(values / float(block.grid.step))]

    def reduce(self, total: Reals, state: MomentState) -> MomentState:
        match state.stage:
            case "mean":
                # A count that drowns in its noise is not to be divided by.
                count = max(float(total[0]), state.noise[0], 1.0) / state.counted
                mean = _shortened(total[1:] / count, state.noise[0] / count)
                centre = np.clip(mean, -1.0, 1.0) if self._centring else state.centre
                return replace(state, stage="spread", count=count, centre=centre)
            case "spread":
                return self._scaled(total / state.count, state)
            case _:
                return _added(total, state)

    def _scaled(self, spread: Reals, state: MomentState) -> MomentState:
        width, noise = len(state.owner), state.noise[1] / state.count
        scale = np.sqrt(
            np.append(
                _variances(spread[:width], noise, self.own_scale),
                _variances(spread[width:], noise, 1.0) if state.labelled else (),
            )
        )
        # In windows noise adds up more slowly than records do.
        records = state.count * math.sqrt(max(1, state.windows))
        unit = math.sqrt(state.moments.longest(state.noise[2], records))
        return replace(state, stage="moments", scale=scale, unit=unit)

    def _summary(self, state: MomentState) -> Summary:
        moments, noise, width = state.moments, state.entry_noise, len(state.owner)
        whole = moments.matrix(state.total, state.unit)
        weight = max(float(whole[0, 0]), noise / moments.weight**2, 1.0)
        seen = whole[0, 1:] / weight
        mean = seen.copy()
        mean[:width] = _shortened(mean[:width], noise / moments.weight / weight)
        mean[width:] = _shortened(mean[width:], noise / moments.weight**2 / weight)
        second = whole[1:, 1:]
        second[:width, :width] = known_products(
            second[:width, :width], state.owner, weight, mean[:width], state.view
        )
        kept = np.divide(mean, seen, out=np.ones_like(mean), where=seen != 0)
        mean = mean if self._centring else np.zeros_like(mean)
        return Summary(weight, mean, second - weight * np.outer(mean, mean), noise, kept)


def _block(name: str, state: MomentState) -> Block:
    moments, norm, weight = state.moments, Norm(state.norm), Fraction(SHARES[name])
    if name == "moments":
        return moments.block(name, weight)
    # Of columns that each have norm 1 at most; what is longer is shortened.
    entries, columns, own = len(state.centre), moments.columns + moments.labelled, Fraction(0)
    if name == "mean":
        entries, own = entries + 1, Fraction(state.counted)
    longest = columns + own if norm is Norm.L1 else Fraction(math.sqrt(columns + own**2))
    bound = round_up(longest * SLACK)
    step = power_of_two_below(bound * FINENESS)
    return Block(name, entries, norm, bound, step, weight, nonnegative=name == "spread")


def _noises(promise: Promise, plan: Plan) -> tuple[float, ...]:
    """Of mean, spread, moments, and moments of later windows; 0 for what is not asked."""
    found = dict.fromkeys((*SHARES, "later"), 0.0)
    if promise.is_private:
        shape = math.sqrt(2) if promise.delta == 0 else 1.0
        for window in {min(1, plan.windows), min(2, plan.windows)}:
            levels = Levels.planned(promise, plan.part(window))
            for stage in levels.plan.stages:
                (block,) = stage.query.blocks
                name = "later" if window == 2 else block.name
                found[name] = shape * float(levels.mechanism(block).scale)
    return tuple(found.values())


def _added(total: Reals, state: MomentState) -> MomentState:
    """The triangle, and in windows the sum of them: the count grows as its first entry does, as far
    as that can be told from noise."""
    each = (state.unit / state.moments.weight) ** 2
    if not state.done:
        count = float(total[0]) * each
        known = state.count if not state.moments.boxed else max(1.0, count)
        return replace(state, total=total, done=1, count=known)
    both = state.total + total
    least = max(1.0, state.entry_noise / state.moments.weight**2)
    before, after = (max(least, float(sums[0]) * each) for sums in (state.total, both))
    grown = max(1.0, after / before)
    return replace(state, total=both, done=state.done + 1, count=state.count * grown)


def _shortened(mean: Reals, noise: float) -> Reals:
    """A noisy mean, shortened by as much as noise has lengthened it (James & Stein 1961)."""
    square = float(mean @ mean)
    kept = max(0.0, 1 - len(mean) * noise**2 / square) if square > 0 else 0.0
    return np.asarray(kept * mean)


def _variances(spread: Reals, noise: float, own: float) -> Reals:
    """Each coordinate's variance, drawn towards their average by as much as noise has driven them
    apart; and by the power 1 − `own` of what is left."""
    average = min(1.0, max(float(spread.mean()), 2 * noise / math.sqrt(len(spread)), 1e-9))
    apart = float(spread.var())
    kept = max(0.0, 1 - noise**2 / apart) if apart > 0 else 0.0
    ratios = np.clip(1 + kept * (spread / average - 1), LEAST, 4.0 / average)
    return np.asarray(average * ratios**own)
