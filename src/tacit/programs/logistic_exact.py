"""Logistic regression without privacy: the exact minimiser, from sums alone.

L-BFGS (Nocedal 1980; Nocedal & Wright 2006, algorithm 7.5) turned inside out: each round asks for
the loss and its gradient at one point, so it runs through every channel that can add.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InternalFault
from tacit.privacy.bound import Norm
from tacit.programs.contributions import Contribution, Products
from tacit.programs.encodings import Encoding, Kind, fields_of
from tacit.programs.features import Whole
from tacit.programs.logistic_gradient import residuals
from tacit.programs.program import Block, Query

__all__ = ["Exact", "exact_contributions", "exact_query", "exact_step", "with_constant"]

Reals = NDArray[np.float64]

STEP = Fraction(1, 2**26)
MOST = 5_000  # rounds, in case rounding keeps the gradient above the tolerance
MEMORY = 20  # pairs of moves and changes that stand for the Hessian
SUFFICIENT = 1e-4  # Armijo's share of the decrease that the slope promises


@dataclass(frozen=True, slots=True)
class Exact:
    """At `weights` the objective is `value`; asked next: weights + length · direction."""

    varies: ClassVar[tuple[str, ...]] = (
        "weights", "gradient", "direction", "value", "length", "round", "done"
    )  # fmt: skip
    grows: ClassVar[tuple[str, ...]] = ("moves", "changes")

    classes: tuple[str, ...]
    penalty: float
    tolerance: float
    weights: Reals
    gradient: Reals
    direction: Reals
    moves: Reals
    changes: Reals
    value: float = np.inf
    length: float = 0.0
    round: int = 0
    most: int = MOST
    done: bool = False
    features: Kind | None = None
    roles: tuple[int, ...] | None = None

    @classmethod
    def start(
        cls,
        classes: tuple[str, ...],
        shape: tuple[int, int],
        penalty: float,
        tolerance: float,
        encoding: Encoding | None = None,
    ) -> Exact:
        zeros, memory = np.zeros(shape), np.zeros((0, *shape))
        arrays = (zeros, zeros, zeros, memory, memory)
        features, roles = fields_of(encoding)
        first = cls(classes, penalty, tolerance, *arrays, value=1e300)
        return replace(first, features=features, roles=roles)

    @property
    def encoding(self) -> Encoding | None:
        """How records are seen; None: as they are encoded."""
        return Encoding.known(self.features, self.roles)

    @property
    def asked(self) -> Reals:
        return self.weights + self.length * self.direction


@dataclass(frozen=True, slots=True)
class Together(Contribution):
    """Several contributions side by side in one block, where nothing is private."""

    parts: tuple[Contribution, ...]

    @property
    def shape(self) -> tuple[int, int]:
        return self.parts[0].shape[0], sum(part.shape[1] for part in self.parts)

    def within(self, limit: int, norm: Norm) -> NoReturn:
        raise InternalFault("the exact minimiser is for runs without privacy: nothing is clipped.")

    def rows(self) -> NoReturn:
        raise InternalFault("contributions without a bound are added, never looked at.")

    def total(self, limit: int) -> NoReturn:
        raise InternalFault("contributions without a bound are added, never looked at.")

    def unclipped(self) -> NDArray[np.int64]:
        return np.concatenate([part.unclipped() for part in self.parts])


def with_constant(X: Reals) -> Reals:
    """Records with one feature more, which is always 1."""
    return np.hstack([X, np.ones((len(X), 1))])


def exact_query(first: Exact) -> Query:
    """Nothing is clipped without privacy: any bound will do."""
    return Query((Block("gradient", 2 + first.weights.size, Norm.L2, Fraction(1), STEP),))


def exact_contributions(
    features: Reals, y: NDArray[np.int64], state: Exact
) -> Sequence[Contribution]:
    """Of each record: 1 and its loss; its gradient. Rounded once for a batch, not for a record."""
    scores = np.asarray(features @ state.asked)
    losses = np.stack([np.ones(len(features)), _losses(scores, y)], axis=1) / float(STEP)
    gradients = Products(residuals(scores, y) / float(STEP), Whole(features))
    return [Together((Products(losses, Whole(np.ones((len(features), 1)))), gradients))]


def exact_step(total: Reals, state: Exact) -> Exact:
    """Accept the point that was asked about and choose the next, or come back nearer."""
    point = state.asked
    coef = np.vstack([point[:-1], np.zeros(point.shape[1])])  # the intercept is free
    value = float(total[1]) + state.penalty / 2 * float((coef * coef).sum())
    gradient = total[2:].reshape(point.shape[::-1]).T + state.penalty * coef
    slope = float((state.gradient * state.direction).sum())
    state = replace(state, round=state.round + 1)
    # Sums are known to about a step of the grid: a smaller increase is none.
    known = 8 * float(STEP) + 1e-13 * abs(state.value)
    if value > state.value + SUFFICIENT * state.length * slope + known:
        return _shortened(value, slope, state)
    state = _remembered(point - state.weights, gradient - state.gradient, state)
    small = float(np.abs(gradient).max()) <= state.tolerance * max(1.0, float(total[0]))
    state = replace(state, weights=point, gradient=gradient, value=value)
    if small or state.round >= MOST:
        return replace(state, done=True, length=0.0)
    return _headed(state)


def _headed(state: Exact) -> Exact:
    """The quasi-Newton direction, by the two-loop recursion (algorithm 7.4)."""
    heading = -state.gradient
    pairs = list(zip(state.moves, state.changes, strict=True))
    weights = []
    for move, change in reversed(pairs):
        weight = float((move * heading).sum() / (move * change).sum())
        weights.append(weight)
        heading = heading - weight * change
    if not pairs:
        return replace(state, direction=heading, length=1 / float(np.linalg.norm(state.gradient)))
    move, change = pairs[-1]
    heading = heading * float((move * change).sum() / (change * change).sum())
    for (move, change), weight in zip(pairs, reversed(weights), strict=True):
        heading = (
            heading + (weight - float((change * heading).sum() / (move * change).sum())) * move
        )
    return replace(state, direction=heading, length=1.0)


def _remembered(move: Reals, change: Reals, state: Exact) -> Exact:
    """The pair joins the memory if it shows positive curvature, as a convex loss must."""
    if float((move * change).sum()) <= 1e-10 * float((move * move).sum()):
        return state
    moves = np.concatenate([state.moves, move[None]])[-MEMORY:]
    return replace(
        state, moves=moves, changes=np.concatenate([state.changes, change[None]])[-MEMORY:]
    )


def _shortened(value: float, slope: float, state: Exact) -> Exact:
    """The minimum of the parabola through what is known, kept within a tenth and a half."""
    bend = value - state.value - state.length * slope
    best = -slope * state.length / (2 * bend) if bend > 0 else 0.5
    length = state.length * min(0.5, max(0.1, best))
    done = state.round >= MOST or length < 1e-12
    return replace(state, length=0.0 if done else length, done=done)


def _losses(scores: Reals, y: NDArray[np.int64]) -> Reals:
    """−log of the probability of the truth."""
    if scores.shape[1] == 1:
        return np.logaddexp(0.0, np.where(y == 1, -1.0, 1.0) * scores[:, 0])
    largest = scores.max(axis=1)
    own = scores[np.arange(len(y)), y.astype(np.intp)]
    return np.asarray(largest + np.log(np.exp(scores - largest[:, None]).sum(axis=1)) - own)
