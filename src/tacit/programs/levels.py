"""How much noise each block gets: from the promise and the program's plan, and nothing else.

Everyone who adds noise computes this for himself (a federation's servers too), so nobody can be
talked into adding less. No state has a part in it: a round's noise is known before the first record
is read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache

from tacit.errors import InternalFault, UsageError
from tacit.privacy.accounting import calibrate
from tacit.privacy.accounting.losses import least_steps
from tacit.privacy.bound import Bound, Norm, round_up
from tacit.privacy.mechanisms import Gaussian, Laplace
from tacit.privacy.promise import Promise
from tacit.privacy.release import Release
from tacit.programs.program import Block, Plan, Query, Stage, norm_for

__all__ = ["Levels"]

AGREED_BITS = 11  # of a scale that was searched for


@dataclass
class Levels:
    """The noise of a whole run, and the record of what was released so far.

    `parts` is 1 where one place adds all the noise; above it, each mechanism adds one part, and the
    plan is kept by the sum of that many (a federation of servers that do not trust one another).
    `holders` is at how many holders one unit may be: it moves the sum so many times as far.
    """

    promise: Promise
    plan: Plan
    multipliers: Mapping[str, Fraction]
    parts: int = 1
    holders: int = 1
    used: set[int] = field(default_factory=set)
    _released: list[tuple[str, Release]] = field(default_factory=list)
    # Rounds ask the same blocks again and again. Not carried over by `replace`.
    _mechanisms: dict[Block, Laplace | Gaussian] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def planned(cls, promise: Promise, plan: Plan, parts: int = 1, holders: int = 1) -> Levels:
        if plan.windows:
            raise InternalFault("each window has the whole promise: plan its part by itself.")
        if not promise.is_private:
            return cls(promise, plan, {}, parts, holders)
        _check_norms(promise, plan)
        drafts = [
            (block.norm, block.weight / stage.count, stage.count, stage.sampling, sample_of(stage))
            for stage in plan.stages
            for block in stage.query.blocks
        ]
        scales = _scales(promise, tuple(drafts))
        names = [block.name for stage in plan.stages for block in stage.query.blocks]
        multipliers = {n: c for n, c in zip(names, scales, strict=True) if c is not None}
        levels = cls(promise, plan, multipliers, parts, holders)
        levels.planned_releases()  # refuses noise that could not be drawn, with nothing spent
        return levels

    def afresh(self) -> Levels:
        """The same noise, with nothing released yet."""
        return replace(self, used=set(), _released=[])

    def mechanism(self, block: Block) -> Laplace | Gaussian:
        """The noise of one block. Contributions are integers within the bound: nothing is rounded
        after they were measured, so the bound is that of the sum."""
        if block not in self._mechanisms:
            self._mechanisms[block] = self._mechanism(block)
        return self._mechanisms[block]

    def _mechanism(self, block: Block) -> Laplace | Gaussian:
        bound = Bound.of_contribution(
            block.norm,
            block.sensitivity * self.holders,
            self.promise.adjacency,
            block.nonnegative,
        )
        scale = bound.value * self.multipliers[block.name]
        if block.norm is Norm.L1:
            return Laplace(bound, round_up(scale), block.sum_grid, block.length, parts=self.parts)
        # The planned cost is that of a continuous Gaussian; see accounting/gaussian.md.
        variance = scale**2 + 4 * block.sum_grid.step**2
        scale = round_up(_root_up(variance))
        gaussian = Gaussian(bound, scale, block.sum_grid, block.length, parts=self.parts)
        self._check_parts(block, gaussian)
        return gaussian

    def planned_releases(self) -> tuple[Release, ...]:
        """All that the plan releases at most: known before anything is drawn."""
        if not self.promise.is_private:
            return ()
        return tuple(
            replace(spend, count=stage.count, sampling=stage.sampling, sample=sample_of(stage))
            for stage in self.plan.stages
            for block in stage.query.blocks
            for spend in self.mechanism(block).spend
        )

    def charge(self, number: int, query: Query) -> list[Laplace | Gaussian]:
        """The mechanisms of round `number`, counted; a round can be charged once.

        `query` is what is asked in it: the planned blocks, perhaps shorter ones.
        """
        stage = self.plan.stage(number)
        if number in self.used:
            raise UsageError(f"round {number} was released already: there is no second time.")
        check_asked(query, stage.query)
        self.used.add(number)
        if not self.promise.is_private:
            return []
        mechanisms = [self.mechanism(block) for block in query.blocks]
        for block, mechanism in zip(query.blocks, mechanisms, strict=True):
            (spend,) = mechanism.spend
            sample = sample_of(stage)
            # Blocks that share a sample are told apart: alike as they may be, they are one release.
            self._record(
                "" if sample is None else block.name,
                replace(spend, sampling=stage.sampling, sample=sample),
            )
        return mechanisms

    def _record(self, block: str, release: Release) -> None:
        for place, (name, known) in enumerate(self._released):
            if name == block and replace(known, count=1) == release:
                self._released[place] = name, replace(known, count=known.count + 1)
                return
        self._released.append((block, release))

    @property
    def releases(self) -> tuple[Release, ...]:
        """What was released so far, equal releases counted together."""
        return tuple(release for _, release in self._released)

    def _check_parts(self, block: Block, gaussian: Gaussian) -> None:
        """Parts must be wide enough to sum to what the plan is about (accounting/gaussian.md)."""
        (spend,) = gaussian.spend
        least = least_steps(spend) * spend.step
        if self.parts > 1 and gaussian.scale <= least:
            raise UsageError(
                f"block {block.name!r} has noise of scale {float(gaussian.scale):g} on a grid of "
                f"step {float(spend.step):g}; to be drawn in {self.parts} parts it must be above "
                f"{float(least):g}. Give the block a finer step, or promise a smaller epsilon."
            )


def check_asked(query: Query, planned: Query) -> None:
    """Raise unless the query asks the planned blocks, no longer than planned."""
    lengths = [block.length for block in query.blocks]
    if len(lengths) != len(planned.blocks) or query != planned.shortened(*lengths):
        raise UsageError("the round asks for other blocks than the plan has.")


def sample_of(stage: Stage) -> str | None:
    """The name of the sample that the blocks of a round share (accounting/sampling.md)."""
    if stage.sampling == 1:
        return None
    return " + ".join(block.name for block in stage.query.blocks)


# Norm, the weight of one round, rounds, rate and sample of a block.
_Draft = tuple[Norm, Fraction, int, Fraction, str | None]


@lru_cache(maxsize=128)
def _scales(promise: Promise, drafts: tuple[_Draft, ...]) -> tuple[Fraction | None, ...]:
    """The scale of each block for a bound of 1."""
    found = calibrate(promise, [_draft(*each) for each in drafts])
    return tuple(r.scale if r.sampling == 1 else _agreed(r.scale) for r in found)


def _draft(
    norm: Norm, weight: Fraction, count: int, sampling: Fraction, sample: str | None
) -> Release:
    """A release of bound 1 whose relative scale follows the block's weight."""
    laplace = norm is Norm.L1
    return Release(
        "laplace" if laplace else "gaussian",
        Bound(norm, Fraction(1)),
        1 / weight if laplace else round_up(1 / math.sqrt(weight)),
        count=count,
        sampling=sampling,
        sample=sample,
    )


def _agreed(scale: Fraction | None) -> Fraction | None:
    """A scale that was searched for, rounded up by 0.1 % at most.

    Floating point has a part in the search (Fourier transforms, logarithms), and other last digits
    on other machines; those who add noise, and those who check it, must find the same.
    """
    return None if scale is None else round_up(scale, AGREED_BITS)


def _check_norms(promise: Promise, plan: Plan) -> None:
    """A pure promise is kept by Laplace noise alone."""
    if norm_for(promise) is Norm.L2:
        return
    for stage in plan.stages:
        for block in stage.query.blocks:
            if block.norm is not Norm.L1:
                raise InternalFault(
                    f"block {block.name!r} has a bound in {block.norm}; this promise needs L1 "
                    "(programs ask norm_for)."
                )


def _root_up(value: Fraction) -> Fraction:
    """√value to 60 binary digits, rounded up."""
    shift = 60 + max(0, -math.floor(math.log2(value)))
    return Fraction(math.isqrt(int(value * 4**shift)) + 1, 2**shift)
