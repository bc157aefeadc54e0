"""Games against every mechanism: neighbouring inputs on which it gives away as much as it may.

`noise` is the share of the calibrated noise that is used: 1 must pass, 1/2 must be caught.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.crypto.prg import SYSTEM, Randomness
from tacit.privacy.audit import Play
from tacit.privacy.bound import Bound, Norm
from tacit.privacy.mechanisms import (
    Exponential,
    Gaussian,
    HadamardResponse,
    L2Laplace,
    Laplace,
    PermuteAndFlip,
    PQPerturbation,
    Quantile,
    RandomisedResponse,
    SparseVector,
    SubsetSelection,
)
from tacit.privacy.mechanisms.local import Randomiser
from tacit.privacy.promise import Adjacency, Promise

__all__ = ["TARGETS", "Game"]


@dataclass(frozen=True, slots=True)
class Game:
    """What `audit` needs: a black box, two neighbouring inputs, the claim, and enough runs."""

    play: Play
    neighbours: tuple[Any, Any]
    claim: Promise
    trials: int


PURE = Promise(1.0)
LOCAL = Promise(1.0, unit="person", adjacency=Adjacency.REPLACE)  # type: ignore[arg-type]
APPROXIMATE = Promise(1.0, 1e-5)


def laplace(noise: Fraction, randomness: Randomness = SYSTEM) -> Game:
    mechanism = Laplace.calibrated(Bound(Norm.L1, Fraction(1)), PURE)
    return _additive(replace(mechanism, scale=mechanism.scale * noise), PURE, 100_000, randomness)


def gaussian(noise: Fraction, randomness: Randomness = SYSTEM) -> Game:
    mechanism = Gaussian.calibrated(Bound(Norm.L2, Fraction(1)), APPROXIMATE)
    halved = replace(mechanism, scale=mechanism.scale * noise)
    return _additive(halved, APPROXIMATE, 1_000_000, randomness)


def laplace_in_parts(noise: Fraction, randomness: Randomness = SYSTEM) -> Game:
    mechanism = Laplace.calibrated(Bound(Norm.L1, Fraction(1)), PURE)
    parts = replace(mechanism, scale=mechanism.scale * noise, parts=3)
    return _additive(parts, PURE, 100_000, randomness)


def gaussian_in_parts(noise: Fraction, randomness: Randomness = SYSTEM) -> Game:
    mechanism = Gaussian.calibrated(Bound(Norm.L2, Fraction(1)), APPROXIMATE)
    parts = replace(mechanism, scale=mechanism.scale * noise, parts=3)
    return _additive(parts, APPROXIMATE, 1_000_000, randomness)


def _additive(
    mechanism: Laplace | Gaussian, claim: Promise, trials: int, randomness: Randomness
) -> Game:
    def play(value: float, runs: int) -> Any:
        seen = mechanism.grid.encode(np.full(runs, value))
        for _ in range(mechanism.parts):  # the adversary sees the sum, never one part
            seen = mechanism.perturb(seen, randomness)
        return seen

    return Game(play, (0.0, 1.0), claim, trials)


def l2_laplace(noise: Fraction, randomness: Randomness = SYSTEM) -> Game:
    mechanism = L2Laplace.calibrated(Bound(Norm.L2, Fraction(1)), PURE, length=2)
    mechanism = replace(mechanism, scale=mechanism.scale * noise)

    def play(value: Any, runs: int) -> Any:
        return np.array([mechanism.release(value, randomness) for _ in range(runs)])

    return Game(play, ([0.0, 0.0], [1.0, 0.0]), PURE, 60_000)


# One good score among many bad ones, against the reverse: the ratio tends to e^ε with their number.
SCORES = ([1] + [0] * 12, [0] + [1] * 12)


def exponential(noise: Fraction, randomness: Randomness = SYSTEM) -> Game:
    return _selection(Exponential.calibrated(UNIT_SCORES, PURE, integral=True), noise, randomness)


def permute_and_flip(noise: Fraction, randomness: Randomness = SYSTEM) -> Game:
    return _selection(
        PermuteAndFlip.calibrated(UNIT_SCORES, PURE, integral=True), noise, randomness
    )


UNIT_SCORES = Bound(Norm.LINF, Fraction(1))


def _selection(
    mechanism: Exponential | PermuteAndFlip, noise: Fraction, randomness: Randomness
) -> Game:
    mechanism = replace(mechanism, scale=mechanism.scale * noise)

    def play(scores: list[int], runs: int) -> Any:
        return [mechanism.release(scores, randomness) == 0 for _ in range(runs)]

    return Game(play, SCORES, PURE, 20_000)


def sparse_vector(noise: Fraction, randomness: Randomness = SYSTEM) -> Game:
    """Some queries below, then one above, against the reverse; the adversary sees which was first.

    All runs are one stream: after each positive answer the mechanism starts afresh.
    """
    claim = Promise(2.0)
    below, above = [0.0] * 4 + [1.0], [1.0] * 4 + [0.0]

    def play(values: list[float], runs: int) -> Any:
        whole = Promise(claim.epsilon * runs / float(noise))
        stream = SparseVector(UNIT_SCORES, whole, 0.5, positives=runs, randomness=randomness)
        return [_first_positive(stream, values) for _ in range(runs)]

    return Game(play, (below, above), claim, 20_000)


def _first_positive(stream: SparseVector, values: list[float]) -> int:
    for index, value in enumerate(values):
        if stream.ask(value).above:
            return index
    while not stream.ask(2.0**30).above:  # ends this run, whatever its threshold
        pass
    return len(values)


def quantile(noise: Fraction, randomness: Randomness = SYSTEM) -> Game:
    """A value that makes the points below it better and those above it worse, by as much each."""
    mechanism = Quantile.calibrated(0.5, 0.0, 1.0, PURE)
    mechanism = replace(mechanism, scale=mechanism.scale * noise)

    def play(values: list[float], runs: int) -> Any:
        return [mechanism.release(values, randomness) for _ in range(runs)]

    return Game(play, ([0.0] * 4, [0.0] * 4 + [0.9]), PURE, 20_000)


def randomised_response(noise: Fraction, randomness: Randomness = SYSTEM) -> Game:
    return _local(RandomisedResponse.calibrated(4, _promised(noise)), randomness)


def pq_perturbation(noise: Fraction, randomness: Randomness = SYSTEM) -> Game:
    return _local(PQPerturbation.calibrated(3, _promised(noise)), randomness)


def rappor(noise: Fraction, randomness: Randomness = SYSTEM) -> Game:
    return _local(PQPerturbation.rappor(3, _promised(noise)), randomness)


def subset_selection(noise: Fraction, randomness: Randomness = SYSTEM) -> Game:
    return _local(SubsetSelection.calibrated(8, _promised(noise)), randomness)


def hadamard_response(noise: Fraction, randomness: Randomness = SYSTEM) -> Game:
    return _local(HadamardResponse.calibrated(6, _promised(noise)), randomness)


def _promised(noise: Fraction) -> Promise:
    """Half the noise of a local randomiser is twice the epsilon."""
    return Promise(LOCAL.epsilon / float(noise))


def _local(randomiser: Randomiser, randomness: Randomness) -> Game:
    """A report of one byte, as one of 256 symbols; the adversary knows the two values."""

    def play(value: int, runs: int) -> Any:
        return randomiser.release(np.full(runs, value), randomness)[:, 0]

    return Game(play, (0, 1), LOCAL, 50_000)


TARGETS: dict[str, Callable[[Fraction, Randomness], Game]] = {
    "laplace": laplace,
    "gaussian": gaussian,
    "laplace-in-parts": laplace_in_parts,
    "gaussian-in-parts": gaussian_in_parts,
    "l2-laplace": l2_laplace,
    "exponential": exponential,
    "permute-and-flip": permute_and_flip,
    "sparse-vector": sparse_vector,
    "quantile": quantile,
    "randomised-response": randomised_response,
    "pq-perturbation": pq_perturbation,
    "rappor": rappor,
    "subset-selection": subset_selection,
    "hadamard-response": hadamard_response,
}
