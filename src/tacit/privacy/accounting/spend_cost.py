"""What a whole spend can reveal, in a form that still composes with other spends.

A promise (ε, δ) is what remains of a plan once its structure is forgotten. A ledger that composes
many studies needs the structure: the losses that one unit meets, with the discreteness of the
noise, its parts and all rounding in them (losses.py). They are known before anything is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from tacit.privacy.accounting.compose import losses_of, scenarios
from tacit.privacy.accounting.losses import GaussianLoss, Loss, PureLoss, leak, merge, upward
from tacit.privacy.accounting.renyi import sampled_at
from tacit.privacy.promise import Adjacency
from tacit.privacy.release import Release

__all__ = ["SpendCost", "divergence_of", "group_delta"]

MAX_LOSSES, MAX_SCENARIOS = 64, 16  # of a cost that is stored; a longer one is not worth its place
# For rounding, and for the factor e^±2η of discrete noise (gaussian.md, corollary 2: η < 1e-18),
# which adds at most 2ηα/(α−1) to a divergence of order α.
_UP, _PLUS = 1 + 1e-9, 1e-15


@dataclass(frozen=True, slots=True)
class SpendCost:
    """For each part that a unit may be in, the losses it meets; the worst of them counts."""

    scenarios: tuple[tuple[Loss, ...], ...]

    @classmethod
    def of(cls, releases: Sequence[Release], adjacency: Adjacency | str) -> SpendCost | None:
        """The cost of all `releases` of a plan together; None if it is too long to be stored."""
        found = {tuple(losses_of(some)) for some in scenarios(releases, adjacency)}
        if not found or len(found) > MAX_SCENARIOS or any(len(s) > MAX_LOSSES for s in found):
            return None
        return cls(tuple(sorted(found, key=repr)))

    @classmethod
    def of_promise(cls, epsilon: Fraction, delta: float) -> SpendCost:
        """All that is known of a spend of which only (ε, δ) is known."""
        return cls(((PureLoss(epsilon, delta=delta),),))

    def divergence(self, order: int) -> float:
        """The Rényi divergence of this order, in the worse direction, rounded up."""
        worst = max(
            math.fsum(loss.count * divergence_of(loss, order) for loss in losses)
            for losses in self.scenarios
        )
        return worst * _UP + _PLUS

    @property
    def leak(self) -> float:
        """The probability with which the divergence says nothing."""
        return max(leak(losses) for losses in self.scenarios)

    def grouped(self, steps: int) -> SpendCost:
        """The cost for data sets that are so many neighbours apart (filter.md, lemma 3)."""
        if steps == 1:
            return self
        return SpendCost(tuple(tuple(merge(_grouped(x, steps) for x in s)) for s in self.scenarios))

    def as_body(self) -> list[list[dict[str, Any]]]:
        """As JSON without floats: each number as the text that names it exactly."""
        return [[_body(loss) for loss in losses] for losses in self.scenarios]

    @classmethod
    def from_body(cls, body: list[list[dict[str, Any]]]) -> SpendCost:
        """ValueError, TypeError or KeyError if it is none."""
        found = cls(tuple(tuple(_loss(one) for one in losses) for losses in body))
        if not found.scenarios or not all(found.scenarios):
            raise ValueError("a cost without losses")
        return found


def divergence_of(loss: Loss, order: int) -> float:
    """The Rényi divergence of one run."""
    match loss:
        case GaussianLoss(mu=mu, sampling=1.0):
            return order * mu**2 / 2  # Mironov 2017, proposition 7
        case GaussianLoss(mu=mu, sampling=rate):
            # Never more than without the sample: divergences are quasi-convex.
            return min(_sampled(mu, rate, order), order * mu**2 / 2)
        case PureLoss():
            return _pure(upward(loss.epsilon), order, loss.bounded_range)


@lru_cache(maxsize=1024)
def _sampled(mu: float, rate: float, order: int) -> float:
    return sampled_at(mu, rate, order)


def _pure(epsilon: float, order: int, bounded_range: bool) -> float:
    """As renyi._pure, at one order: randomised response is the worst (Mironov 2017, prop. 5)."""
    if epsilon == math.inf:
        return math.inf
    exact = (_log_cosh((order - 0.5) * epsilon) - _log_cosh(epsilon / 2)) / (order - 1)
    best = min(exact + 2.0**-50 * epsilon * order, order * epsilon**2 / 2, epsilon)
    # Cesar & Rogers 2021, lemma 3.4; the proof is in zcdp.py.
    return min(best, order * epsilon**2 / 8) if bounded_range else best


def _log_cosh(x: float) -> float:
    return x + math.log1p(math.exp(-2 * x)) - math.log(2)


def group_delta(epsilon: Fraction | float, delta: Fraction | float, steps: int) -> Fraction:
    """δ of an (ε, δ)-private release for data sets `steps` neighbours apart, rounded up.

    δ·(1 + e^ε + … + e^((k−1)ε)) (Dwork & Roth 2014, theorem 2.2, with δ followed through); 1 is
    as much as there is.
    """
    if not delta or steps == 1:
        return Fraction(delta)
    if epsilon * (steps - 1) > 700:
        return Fraction(1)
    total = math.fsum(math.exp(i * float(epsilon)) for i in range(steps)) * (1 + 1e-12)
    return min(Fraction(1), Fraction(upward(Fraction(delta) * Fraction(total))))


def _grouped(loss: Loss, steps: int) -> Loss:
    match loss:
        case GaussianLoss(mu=mu, count=count):
            return GaussianLoss(math.nextafter(steps * mu, math.inf), count)
        case PureLoss(epsilon=epsilon, count=count, delta=delta):
            more = float(group_delta(epsilon, delta, steps))
            return PureLoss(steps * epsilon, count, more, loss.bounded_range)


def _body(loss: Loss) -> dict[str, Any]:
    match loss:
        case GaussianLoss(mu=mu, count=count, sampling=rate):
            return {"law": "gaussian", "mu": repr(mu), "count": count, "sampling": repr(rate)}
        case PureLoss(epsilon=epsilon, count=count, delta=delta):
            return {
                "law": "pure",
                "epsilon": str(epsilon),
                "count": count,
                "delta": repr(delta),
                "bounded_range": loss.bounded_range,
            }


def _loss(body: dict[str, Any]) -> Loss:
    count = body["count"]
    if not isinstance(count, int) or count < 1:
        raise ValueError("a loss is met at least once")
    if body["law"] == "gaussian":
        mu, rate = float(body["mu"]), float(body["sampling"])
        if not (0 <= mu < math.inf and 0 < rate <= 1):
            raise ValueError("no such Gaussian")
        return GaussianLoss(mu, count, rate)
    if body["law"] != "pure":
        raise ValueError("no such law")
    epsilon, delta = Fraction(body["epsilon"]), float(body["delta"])
    if epsilon < 0 or not 0 <= delta <= 1:
        raise ValueError("no such loss")
    return PureLoss(epsilon, count, delta, bool(body["bounded_range"]))
