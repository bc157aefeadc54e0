"""The distinguishing game: a second opinion that knows nothing of any proof or accountant.

An adversary sees one output and says which of two neighbouring inputs it came from. If every
event S has P[M(D) ∈ S] ≤ e^ε P[M(D′) ∈ S] + δ, it cannot win often. We run the mechanism as a black
box on both inputs, let the adversary choose its event on one half of the runs, and count on the
other half; Clopper–Pearson intervals give a lower bound on ε that is wrong with probability at most
1 − confidence (Jagielski, Ullman, Oprea 2020; Ding et al. 2018 for the choice of the event).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import AuditFailed, UsageError
from tacit.privacy.promise import Promise

__all__ = ["AuditReport", "Play", "audit", "clopper_pearson"]

Play = Callable[[Any, int], ArrayLike]
"""(input, runs) ↦ one output per run, as rows; the adversary sees nothing else."""

BINS = 64  # events are unions of at most this many bins of outputs


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The largest ε that the game could prove, against the claim."""

    claim: Promise
    epsilon: float
    trials: int
    confidence: float

    @property
    def passed(self) -> bool:
        return self.epsilon <= self.claim.epsilon

    def check(self) -> None:
        if not self.passed:
            raise AuditFailed(
                f"the game proves ε ≥ {self.epsilon:.3f} at confidence {self.confidence}, "
                f"but ε = {self.claim.epsilon:g} is claimed: there is less noise than promised."
            )


def audit(
    play: Play,
    neighbours: tuple[Any, Any],
    claim: Promise,
    trials: int = 100_000,
    confidence: float = 1 - 1e-6,
) -> AuditReport:
    """Play the game on two neighbouring inputs and bound ε from below."""
    if trials < 100:
        raise UsageError(f"{trials} trials cannot show anything: take at least 100.")
    outputs = [_rows(play(data, trials), trials) for data in neighbours]
    half = trials // 2
    bins = _Bins.learn(outputs[0][:half], outputs[1][:half])
    learned = [bins.count(rows[:half]) for rows in outputs]
    held_out = [bins.count(rows[half:]) for rows in outputs]
    # Two directions, two bounds each: a union bound over the four.
    risk = (1 - confidence) / 4
    found = 0.0
    for first, second in ((0, 1), (1, 0)):
        event = _best_event(learned[first], learned[second], claim.delta, risk)
        inside = (int(held_out[first][event].sum()), int(held_out[second][event].sum()))
        found = max(found, _epsilon(*inside, trials - half, claim.delta, risk))
    return AuditReport(claim, found, trials, confidence)


def clopper_pearson(successes: int, trials: int, risk: float) -> tuple[float, float]:
    """Bounds on a probability, each wrong with probability at most `risk`."""
    from scipy.special import betaincinv

    low = betaincinv(successes, trials - successes + 1, risk) if successes else 0.0
    missed = trials - successes
    high = betaincinv(successes + 1, missed, 1 - risk) if missed else 1.0
    return float(low), float(high)


def _epsilon(first: int, second: int, trials: int, delta: float, risk: float) -> float:
    """Lower bound on ln((p − δ) / p′) from counts of the same event."""
    low = clopper_pearson(first, trials, risk)[0] - delta
    high = clopper_pearson(second, trials, risk)[1]
    return math.log(low / high) if low > high else 0.0


def _best_event(
    first: NDArray[np.int64], second: NDArray[np.int64], delta: float, risk: float
) -> NDArray[np.int64]:
    """The bins with the largest likelihood ratios, as many as prove the most."""
    order = np.argsort(-(first + 0.5) / (second + 0.5), kind="stable")
    ins, outs = np.cumsum(first[order]), np.cumsum(second[order])
    total = int(first.sum())
    proven = [_epsilon(int(a), int(b), total, delta, risk) for a, b in zip(ins, outs, strict=True)]
    return order[: int(np.argmax(proven)) + 1]


def _rows(outputs: ArrayLike, trials: int) -> NDArray[np.float64]:
    array = np.asarray(outputs, dtype=np.float64)
    if array.shape[:1] != (trials,):
        raise UsageError(f"the game asked for {trials} outputs and got {array.shape}.")
    return array.reshape(trials, -1)


@dataclass(frozen=True, slots=True)
class _Bins:
    """Bins of a one-dimensional statistic: the output itself, or its most telling projection."""

    direction: NDArray[np.float64]
    edges: NDArray[np.float64]

    @classmethod
    def learn(cls, first: NDArray[np.float64], second: NDArray[np.float64]) -> _Bins:
        spread = np.concatenate([first, second]).std(axis=0)
        direction = (first.mean(axis=0) - second.mean(axis=0)) / np.where(
            spread > 0, spread, 1
        ) ** 2
        if first.shape[1] == 1 or not direction.any():
            direction = np.eye(first.shape[1])[0]
        seen = np.concatenate([first, second]) @ direction
        values = np.unique(seen)
        if len(values) > BINS:
            values = np.unique(np.quantile(seen, np.arange(1, BINS) / BINS, method="nearest"))
        return cls(direction, values)

    def count(self, rows: NDArray[np.float64]) -> NDArray[np.int64]:
        places = np.searchsorted(self.edges, rows @ self.direction, side="left")
        return np.bincount(places, minlength=len(self.edges) + 1)
