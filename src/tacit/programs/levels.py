"""How much noise each block gets: from the promise and the program's plan, and nothing else.

Everyone who adds noise computes this for himself (a federation's servers too), so nobody can be
talked into adding less. Noise is measured in multiples of the bound, so that bounds and lengths may
change from round to round (PEM's dynamic L) while the cost of a round stays as planned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from tacit.errors import InternalFault, UsageError
from tacit.privacy.accounting import calibrate
from tacit.privacy.accounting.losses import least_steps
from tacit.privacy.bound import Bound, Grid, Norm, power_of_two_below, round_up
from tacit.privacy.mechanisms import Gaussian, Laplace
from tacit.privacy.promise import Promise
from tacit.privacy.release import Release
from tacit.programs.program import Block, Query, Share, norm_for

__all__ = ["Levels", "block_grid"]

# Contributions are rounded to this share of their bound (divided by √length): noise grows by less
# than one part in a million, and 2^40 units still fit 64 bits.
FINENESS = Fraction(1, 2**20)


def block_grid(block: Block) -> Grid:
    """The grid a block's contributions are rounded to."""
    if block.step is not None:
        return Grid(block.step)
    return Grid(power_of_two_below(block.bound * FINENESS / (math.isqrt(block.length - 1) + 1)))


@dataclass
class Levels:
    """The noise of a whole run, and the record of what was released so far.

    `parts` is 1 where one place adds all the noise; above it, each mechanism adds one part, and the
    plan is kept by the sum of that many (a federation of servers that do not trust one another).
    `holders` is how many holders' contributions one unit may have in a sum, each clipped by itself:
    so many times the bound, and so many roundings.
    """

    promise: Promise
    shares: Mapping[str, Share]
    multipliers: Mapping[str, Fraction]
    used: dict[str, int] = field(default_factory=dict)
    _released: list[Release] = field(default_factory=list)
    parts: int = 1
    holders: int = 1

    @classmethod
    def planned(
        cls, promise: Promise, plan: Sequence[Share], parts: int = 1, holders: int = 1
    ) -> Levels:
        shares = {share.name: share for share in plan}
        if len(shares) < len(plan) or not plan:
            raise UsageError("a plan needs at least one share, each with a name of its own.")
        if not promise.is_private:
            return cls(promise, shares, {}, parts=parts, holders=holders)
        drafts = [_draft(share, promise) for share in plan]
        scales = [release.scale for release in calibrate(promise, drafts)]
        multipliers = {s.name: c for s, c in zip(plan, scales, strict=True) if c is not None}
        return cls(promise, shares, multipliers, parts=parts, holders=holders)

    def mechanism(self, block: Block) -> Laplace | Gaussian:
        """The noise of one block, with what rounding single contributions adds to its bound."""
        grid = block_grid(block)
        size = self.holders * block.bound
        bound = Bound.of_contribution(block.norm, size, self.promise.adjacency)
        roundings = 2 if bound.value > size else 1  # replacing rounds two contributions
        widened = grid.widen(bound, block.length, self.holders * roundings)
        scale = widened.value * self.multipliers[block.name]
        self._expect(block, _norm(self.shares[block.name], self.promise))
        if block.norm is Norm.L1:
            return Laplace(widened, round_up(scale), grid, block.length, parts=self.parts)
        # The planned cost is that of a continuous Gaussian; see accounting/gaussian.md.
        variance = scale**2 + 4 * grid.step**2
        scale = round_up(_root_up(variance))
        gaussian = Gaussian(widened, scale, grid, block.length, parts=self.parts)
        self._check_parts(block, gaussian)
        return gaussian

    def count(self, query: Query) -> None:
        """Count a round against the plan; UsageError if it has no such round left."""
        for block in query.blocks:
            share = self.shares.get(block.name)
            if share is None:
                raise UsageError(
                    f"the query asks for {block.name!r}, which the plan has no share for."
                )
            self.used[block.name] = self.used.get(block.name, 0) + 1
            if self.used[block.name] > share.count:
                raise UsageError(
                    f"the plan allows {share.count} release(s) of {block.name!r}, no more."
                )

    def charge(self, query: Query) -> list[Laplace | Gaussian]:
        """The mechanisms of one round, counted against the plan."""
        self.count(query)
        if not self.promise.is_private:
            return []
        mechanisms = [self.mechanism(block) for block in query.blocks]
        for block, mechanism in zip(query.blocks, mechanisms, strict=True):
            (spend,) = mechanism.spend
            self._record(replace(spend, sampling=self.shares[block.name].sampling))
        return mechanisms

    def _record(self, release: Release) -> None:
        for place, known in enumerate(self._released):
            if replace(known, count=1) == release:
                self._released[place] = replace(known, count=known.count + 1)
                return
        self._released.append(release)

    def sampling(self, query: Query) -> Fraction:
        """With which probability a unit takes part in this round."""
        rates = {self.shares[block.name].sampling for block in query.blocks}
        if len(rates) > 1:
            raise UsageError("the blocks of one query share one sample: give them one rate.")
        return rates.pop()

    @property
    def releases(self) -> tuple[Release, ...]:
        """What was released so far, equal releases counted together."""
        return tuple(self._released)

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

    def _expect(self, block: Block, norm: Norm) -> None:
        if block.norm is not norm:
            raise InternalFault(
                f"block {block.name!r} has a bound in {block.norm}; this promise needs {norm} "
                "(programs ask norm_for)."
            )


def _draft(share: Share, promise: Promise) -> Release:
    """A release of bound 1 whose relative scale follows the share's weight."""
    each = share.weight / share.count
    scale = 1 / each if promise.delta == 0 else round_up(1 / math.sqrt(each))
    norm = _norm(share, promise)
    mechanism = "laplace" if norm is Norm.L1 else "gaussian"
    return Release(
        mechanism, Bound(norm, Fraction(1)), scale, count=share.count, sampling=share.sampling
    )


def _norm(share: Share, promise: Promise) -> Norm:
    return share.norm or norm_for(promise)


def _root_up(value: Fraction) -> Fraction:
    """√value to 60 binary digits, rounded up."""
    shift = 60 + max(0, -math.floor(math.log2(value)))
    return Fraction(math.isqrt(int(value * 4**shift)) + 1, 2**shift)
