"""What a promise lets an adversary win: the most often a fair coin can be guessed.

Someone tosses a coin, runs D or D′, and the adversary guesses which from all that was released. For
a test with error rates α and β it is right with probability 1 − (α + β)/2, at most (1 + TV)/2.

None of this asks an accountant: the formulas here are few, and written down from the definitions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.errors import UsageError
from tacit.privacy.promise import Promise
from tacit.programs.program import Plan

__all__ = [
    "Claim",
    "Shifts",
    "any_claim",
    "choice_and_value",
    "gaussian_claim",
    "gaussian_mu",
    "laplace_claim",
    "mu_of",
]

MARGIN = 1e-4  # what numerical integration may be wrong by, in favour of the accused
POINTS = 1 << 13
SMOOTHING = 200  # the steps of a law with atoms are smoothed by this part of its spread


@dataclass(frozen=True, slots=True)
class Shifts:
    """How far one unit moves what was released, in units of the noise that is claimed.

    mu        the length of the move under Gaussian noise, in standard deviations
    laplace   the move of each coordinate under Laplace noise, in scales
    rate      the probability that the unit is in the sample, in a single round
    """

    mu: float = 0.0
    laplace: tuple[float, ...] = ()
    rate: float = 1.0

    def success(self, noise: float = 1.0) -> float:
        """How often the likelihood ratio guesses right with `noise` times the claimed noise."""
        found = _inverted(self, noise) if self.laplace else _normal(self.mu / (2 * noise))
        # log(1 − q + q·e^loss) has the sign of the loss; a unit that was not drawn is not there.
        return 0.5 + self.rate * (found - 0.5)


@dataclass(frozen=True, slots=True)
class Claim:
    """A promise, and how often it lets an adversary guess right."""

    promise: Promise
    success: float

    @property
    def mu(self) -> float:
        """The Gaussian mechanism with the same success (Dong, Roth, Su 2022)."""
        return mu_of(self.success)


def mu_of(success: float) -> float:
    """μ-GDP allows a success of Φ(μ/2)."""
    from scipy.special import ndtri

    return 2 * float(ndtri(max(0.5, success)))


def gaussian_claim(promise: Promise) -> Claim:
    """Gaussian noise of any number of rounds is one Gaussian of as much: the μ of the promise."""
    return Claim(promise, _normal(gaussian_mu(promise) / 2))


def gaussian_mu(promise: Promise) -> float:
    """The largest μ with Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) ≤ δ (Balle & Wang 2018, theorem 8)."""
    from scipy.special import log_ndtr

    def excess(mu: float) -> float:
        near, far = log_ndtr([mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu])
        return float(np.exp(near) - np.exp(epsilon + far)) - promise.delta

    if not 0 < promise.delta < 1:
        raise UsageError("Gaussian noise needs a promise with δ above 0.")
    epsilon, low, high = promise.epsilon, 1e-6, 1e3
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) <= 0 else (low, middle)
    return high


def laplace_claim(
    promise: Promise, plan: Plan, moves: Sequence[Sequence[NDArray[np.float64]]] | None = None
) -> Claim:
    """ε divided among all blocks and rounds by their weights; each a Laplace mechanism.

    `moves` tells for each round and block by which parts of its bound the unit moves coordinates,
    where that is the same whatever the state: what is spread over many is harder to see. Without
    it the worst is assumed, one coordinate that moves by all of the bound (laplace.md).
    """
    total = sum((b.weight for s in plan.stages for b in s.query.blocks), Fraction(0))
    shifts: list[float] = []
    for number in range(1, plan.rounds + 1):
        stage = plan.stage(number)
        for place, block in enumerate(stage.query.blocks):
            epsilon = float(Fraction(promise.epsilon) * block.weight / total / stage.count)
            parts = [1.0] if moves is None else moves[number - 1][place].tolist()
            shifts += [epsilon * part for part in parts]
    return Claim(promise, Shifts(0.0, tuple(shifts)).success() + MARGIN)


def choice_and_value(choosing: float, epsilon: float) -> float:
    """The success against a choice that is `choosing`-private and a Laplace release.

    The worst choice is randomised response (Kairouz, Oh, Viswanath 2015): it adds ± choosing to the
    loss, and is right with probability e^choosing / (1 + e^choosing).
    """
    right, value = 1 / (1 + math.exp(-choosing)), Shifts(0.0, (epsilon,))
    helped, misled = (_inverted(value, 1.0, offset) for offset in (choosing, -choosing))
    return right * helped + (1 - right) * misled + MARGIN


def any_claim(promise: Promise) -> Claim:
    """What (ε, δ) alone says, whatever the noise: TV ≤ (e^ε − 1 + 2δ)/(e^ε + 1)
    (Kairouz, Oh, Viswanath 2015, remark 2.2)."""
    ratio = math.exp(promise.epsilon)
    return Claim(promise, (1 + (ratio - 1 + 2 * promise.delta) / (ratio + 1)) / 2)


def _normal(value: float) -> float:
    from scipy.special import ndtr

    return float(ndtr(value))


def _inverted(shifts: Shifts, noise: float, offset: float = 0.0) -> float:
    """P[loss + offset > 0] if the unit is there, by the formula of Gil-Pelaez (1951)."""
    spread = math.sqrt(shifts.mu**2 * noise**2 + sum(a * a for a in shifts.laplace))
    if spread == 0:
        return 0.5
    width = spread / SMOOTHING
    # Beyond 6/width nothing is left.
    u: NDArray[np.float64] = np.linspace(0.0, 6 / width, POINTS, endpoint=False)
    u = u + u[1] / 2
    log = -((width * u) ** 2) / 2 + 0j
    log += 1j * u * (offset + shifts.mu**2 / 2) - (shifts.mu * noise * u) ** 2 / 2
    transform = np.exp(log)
    for shift, count in _counted(shifts.laplace):
        transform *= _laplace_transform(u, shift, noise) ** count
    return 0.5 + float((transform.imag / u).sum() * (u[1] - u[0])) / math.pi


def _laplace_transform(
    u: NDArray[np.float64], shift: float, noise: float
) -> NDArray[np.complex128]:
    """Of |x| − |x − a| for x = a + Laplace(noise): a with ½, −a with ½e^(−a/noise), and between."""
    rate = 1 / noise + 2j * u
    above, below = np.exp(1j * u * shift), np.exp(-shift / noise - 1j * u * shift)
    return np.asarray((above + below) / 2 + (above - below) / (2 * noise * rate))


def _counted(shifts: Sequence[float]) -> list[tuple[float, int]]:
    """Equal shifts, to three digits of a per cent, once each."""
    sizes, counts = np.unique(np.round(shifts, 5), return_counts=True)
    return [(float(a), int(n)) for a, n in zip(sizes, counts, strict=True) if a > 0]
