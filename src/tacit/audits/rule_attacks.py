"""Attacks on the rules that no program's own game reaches.

Pure noise over one sample, both kinds of noise in one run, Laplace noise of a consortium, several
groups of peers, a shuffled crowd.

Claims are written down from the laws of the noise; no accountant is asked but for the figure of a
shuffled crowd, which is what is attacked there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.audits.central import Table, central_game
from tacit.audits.claims import MARGIN, Claim, Shifts, any_claim, gaussian_mu
from tacit.audits.consortium import Parties
from tacit.audits.game import Heard, WhiteBox
from tacit.audits.programs import numbers, records
from tacit.channels.consortium.terms import JointTerms
from tacit.crypto.prg import Randomness
from tacit.privacy.mechanisms import RandomisedResponse
from tacit.privacy.promise import Adjacency, Promise, Unit
from tacit.privacy.shuffled_response import shuffled_response
from tacit.programs.histogram import Histogram
from tacit.programs.mixture_published import PublishedMixture

__all__ = ["RULE_ATTACKS"]

TRIALS = 500
SAMPLED_TRIALS = 900


def sampled_blocks_pure() -> WhiteBox:
    """Four blocks of one query share one secret sample, under Laplace noise.

    With the unit in the sample with probability q, the distance of the two laws is q times that
    without sampling, and ε0 = ln(1 + (e^ε − 1)/q) is divided among the blocks.
    """
    promise, columns, rate = Promise(3.0), 4, Fraction(7, 8)
    table = Table(
        lambda: Histogram(bins=2),
        numbers(columns),
        promise,
        records(1, [-1.0] * columns),
        records(1, [1.0] * columns),
        sampling=rate,
    )
    whole = math.log1p(math.expm1(promise.epsilon) / float(rate))
    seen = Shifts(0.0, (whole / columns,) * columns).success() - 0.5
    return central_game(table, SAMPLED_TRIALS, Claim(promise, 0.5 + float(rate) * seen + MARGIN))


def laplace_and_gaussian() -> WhiteBox:
    """The report's mixture with Laplace noise on weights and Gaussian noise on the rest: 3 releases
    in each of 2 rounds share ε and δ evenly (its equations 16 and 17)."""
    promise, rounds = Promise(9.0, 1e-6), 2
    epsilon, delta = promise.epsilon / (3 * rounds), promise.delta / (3 * rounds)
    deviation = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    shifts = Shifts(math.sqrt(2 * rounds) / deviation, (epsilon,) * rounds)
    others, unit = records(40, [0.0, 0.0]), records(1, [math.sqrt(0.5)] * 2)
    table = Table(lambda: PublishedMixture(1, rounds=rounds), numbers(2), promise, others, unit)
    return central_game(table, TRIALS, Claim(promise, shifts.success() + MARGIN))


def consortium_pure() -> WhiteBox:
    """Laplace noise, whose bound is in L1: the record moves most coordinates alike."""
    parties = Parties(Promise(8.0, adjacency=Adjacency.REPLACE))
    roster = tuple(sorted(holder.key for holder in parties.study.holders))
    mechanism = JointTerms(parties.study, roster).mechanism
    assert mechanism is not None  # the promise is private
    bound = float(mechanism.bound.value / mechanism.grid.step)
    parts = np.abs(parties.moved) / bound
    assert parts.sum() <= 1  # what is claimed rests on it
    shifts = Shifts(0.0, tuple(parties.promise.epsilon * parts))
    return WhiteBox(Claim(parties.promise, shifts.success() + MARGIN), parties.run, TRIALS)


def several_groups() -> WhiteBox:
    """A peer in two groups, each of which costs the whole promise: both sums are seen."""
    groups, each = 2, Promise(7.0, 1e-6, adjacency=Adjacency.REPLACE)
    parties = Parties(each)

    def trial(present: bool, noise: Fraction, randomness: Randomness) -> Heard:
        heard = [parties.run(present, noise, randomness) for _ in range(groups)]
        shifts = [h.shifts for h in heard if h.shifts is not None]
        mu = math.hypot(*(s.mu for s in shifts))
        return Heard(sum(h.loss for h in heard), Shifts(mu), max(h.reach for h in heard))

    spent = replace(each, epsilon=groups * each.epsilon, delta=groups * each.delta)
    claim = Claim(spent, Shifts(math.sqrt(groups) * gaussian_mu(each)).success())
    return WhiteBox(claim, trial, TRIALS)


@dataclass(frozen=True)
class _Crowd:
    """Everybody sends a randomised bit, and the shuffler shows how many ones there are. The
    adversary knows all bits but one: those of the others are 0."""

    people: int
    local: float

    def trial(self, present: bool, noise: Fraction, randomness: Randomness) -> Heard:
        promise = Promise(self.local / float(noise), 0.0, Unit.PERSON, Adjacency.REPLACE)
        device = RandomisedResponse.calibrated(2, promise)
        bits = np.zeros(self.people, dtype=np.int64)
        bits[0] = present
        ones = int(device.release(bits, randomness).sum())
        with_one, with_none = self._laws(promise.epsilon)
        return Heard(float(np.log(with_one[ones]) - np.log(with_none[ones])))

    def _laws(self, epsilon: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Of the number of ones. Whatever noise is added, the adversary knows how much."""
        keep = 1 / (1 + math.exp(-epsilon))
        others = np.ones(1)
        for _ in range(self.people - 1):
            others = np.convolve(others, [keep, 1 - keep])
        return np.convolve(others, [1 - keep, keep]), np.convolve(others, [keep, 1 - keep])


def shuffled() -> WhiteBox:
    """The central figure of a crowd, claimed where typical outputs decide: with a large δ."""
    crowd, delta = _Crowd(people=60, local=2.5), 0.21
    each = Promise(crowd.local, 0.0, Unit.PERSON, Adjacency.REPLACE)
    (release,) = RandomisedResponse.calibrated(2, each).spend
    promise = Promise(shuffled_response(release, crowd.local, crowd.people, delta), delta)
    return WhiteBox(any_claim(promise), crowd.trial, 2000)


RULE_ATTACKS: dict[str, Callable[[], WhiteBox]] = {
    "sampled-several-blocks (pure)": sampled_blocks_pure,
    "laplace-and-gaussian": laplace_and_gaussian,
    "consortium (pure)": consortium_pure,
    "several-groups": several_groups,
    "shuffled": shuffled,
}
