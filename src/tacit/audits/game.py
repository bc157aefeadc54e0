"""The white-box game: a coin, a run, a likelihood ratio, a guess; and how surely it shows a fault.

The adversary's loss is the logarithm of how much likelier all releases are if the unit is there.
With a fair coin its best guess is the sign, so there is no threshold to be learned, and every trial
counts. The number of right guesses is binomial; its Clopper–Pearson bound is compared with what the
claim allows. Two numbers say what that is worth, and both are reported: the *false-alarm rate*,
which a run that keeps its claim never exceeds, and the *power*, the probability that a run with
less noise is caught.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tacit.audits.claims import Claim, Shifts, mu_of
from tacit.crypto.prg import SYSTEM, Randomness
from tacit.errors import AuditFailed, UsageError
from tacit.privacy import noise as draws
from tacit.privacy.audit import clopper_pearson

__all__ = ["CONFIDENCE", "Heard", "Report", "WhiteBox", "play", "power"]

CONFIDENCE = 1 - 1e-6
FEWEST = 20


@dataclass(frozen=True, slots=True)
class Heard:
    """What one run told the adversary.

    loss     log p(releases | the unit is there) − log p(releases | it is not), as claimed
    shifts   how far the unit moved the releases; None where the law is not known in closed form
    reach    the largest part of its bound that the unit used: above 1, the bound is broken
    """

    loss: float
    shifts: Shifts | None = None
    reach: float = 0.0


Trial = Callable[[bool, Fraction, Randomness], Heard]
"""(is the unit there, part of the calibrated noise, source of all that is drawn)"""


@dataclass(frozen=True, slots=True)
class WhiteBox:
    """A game against one program in one channel. `trials` is enough for the power it states."""

    claim: Claim
    trial: Trial
    trials: int


@dataclass(frozen=True, slots=True)
class Report:
    """wins, trials   right guesses
    expected          how often the guess is right in the long run, by the law of the noise; where
                      that is not known, as often as it was
    """

    claim: Claim
    wins: int
    trials: int
    confidence: float
    expected: float
    reach: float

    @property
    def success(self) -> float:
        """A lower bound on how often the adversary is right; wrong with 1 − confidence."""
        return clopper_pearson(self.wins, self.trials, 1 - self.confidence)[0]

    @property
    def mu(self) -> float:
        """The same as μ: no mechanism that is μ′-GDP for a μ′ below it is guessed so often."""
        return mu_of(self.success)

    @property
    def passed(self) -> bool:
        return self.success <= self.claim.success and self.reach <= 1

    @property
    def false_alarms(self) -> float:
        """How often a run that just keeps the claim is accused."""
        return power(self.claim, self.claim.success, self.trials, self.confidence)

    @property
    def power(self) -> float:
        """How often this many runs like these are caught."""
        return power(self.claim, self.expected, self.trials, self.confidence)

    def check(self) -> None:
        if self.reach > 1:
            raise AuditFailed(f"one unit moved a sum by {self.reach:.3g} times its bound.")
        if not self.passed:
            raise AuditFailed(
                f"the game proves μ ≥ {self.mu:.3f} at confidence {self.confidence}, but "
                f"μ = {self.claim.mu:.3f} is claimed: there is less noise than promised."
            )


def play(
    game: WhiteBox,
    noise: Fraction = Fraction(1),
    randomness: Randomness = SYSTEM,
    trials: int | None = None,
    confidence: float = CONFIDENCE,
    progress: Callable[[int, int], None] = lambda done, planned: None,
) -> Report:
    """Toss, run and guess `trials` times, with `noise` times the calibrated noise."""
    planned = trials or game.trials
    if planned < FEWEST:
        raise UsageError(f"{planned} trials cannot show anything: take at least {FEWEST}.")
    coins = draws.bernoulli(Fraction(1, 2), planned, randomness)
    heard, wins = [], 0
    for done, present in enumerate(coins.tolist(), start=1):
        heard.append(game.trial(present, noise, randomness))
        wins += (heard[-1].loss > 0) == present
        progress(done, planned)
    reach = max(each.reach for each in heard)
    expected = _expected([each.shifts for each in heard], float(noise), wins / planned)
    return Report(game.claim, wins, planned, confidence, expected, reach)


def power(claim: Claim, success: float, trials: int, confidence: float = CONFIDENCE) -> float:
    """The probability that so many guesses, each right with `success`, break the claim."""
    from scipy.special import betainc

    least = trials + 1  # the fewest wins that do
    while least > 0 and clopper_pearson(least - 1, trials, 1 - confidence)[0] > claim.success:
        least -= 1
    return float(betainc(least, trials - least + 1, success)) if least <= trials else 0.0


def _expected(shifts: Sequence[Shifts | None], noise: float, observed: float) -> float:
    known = [each for each in shifts if each is not None]
    if len(known) < len(shifts):
        return observed
    # States differ from run to run, and so does how far the unit moves them: a few tell the mean.
    few = known[:: max(1, len(known) // 32)] if any(each.laplace for each in known) else known
    return sum(each.success(noise) for each in few) / len(few)
