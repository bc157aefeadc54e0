"""What private logistic regression knows between two rounds, and how its rounds are planned.

Why: logistic.md. The rounds themselves are in logistic_steps.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.bound import Norm
from tacit.programs.encodings import Encoding, Kind
from tacit.programs.features import FEATURE_STEP, Whole
from tacit.programs.logistic_calibration import Line, weights_of
from tacit.programs.logistic_gradient import View
from tacit.programs.windows import LATE, rounds_each

__all__ = ["STEP", "UNIT", "Learning", "Schedule"]

Reals = NDArray[np.float64]

# Vectors have a bound of 1, in so many steps: what is 1 stands for, a state says.
STEP = Fraction(1, 2**30)
UNIT = FEATURE_STEP / float(STEP)  # a weight so large makes features count as they are


@dataclass(frozen=True, slots=True)
class Schedule:
    """Gradient's rounds, momentum, and the share of each stage, in the order they run.

    each   in windows: the gradient's rounds of one; each window begins with the number of its
           records, and the first one with all other stages too
    """

    rounds: int
    momentum: float
    shares: dict[str, int]
    calibrations: int
    each: int = 0

    def part(self, stage: str) -> Fraction:
        """Of the promise."""
        return Fraction(self.shares[stage], sum(self.shares.values()))

    def count(self, stage: str) -> int:
        """The rounds of a stage, in windows of each one."""
        gradients = self.each or self.rounds
        return {"gradient": gradients, "calibration": self.calibrations}.get(stage, 1)

    def over(self, windows: int) -> Schedule:
        each, turns = rounds_each(self.rounds, windows), rounds_each(2 * self.calibrations, windows)
        shares = {"count": 4, **self.shares}
        return replace(self, rounds=each * windows, shares=shares, calibrations=turns, each=each)


# The cost of Gaussian rounds grows with √rounds, so there may be many; that of Laplace rounds
# grows with their number. Noise of the first stages hardly hurts.
GAUSSIAN = Schedule(
    100,
    0.9,
    {"size": 2, "mean": 3, "spread": 2, "gradient": 85, "scores": 1, "calibration": 7},
    calibrations=6,
)
PURE = Schedule(
    10,
    0.8,
    {"size": 4, "mean": 8, "spread": 3, "reach": 3, "gradient": 69, "scores": 2, "calibration": 11},
    calibrations=4,
)
DOUBTFUL = 1e6  # the doubt about a slope of which nothing is known


@dataclass(frozen=True, slots=True)
class Learning:
    """Everything in units of a typical centred record, except what says otherwise.

    classes, norm, top, noise, epsilon, features and roles follow from the study; all else changes
    with the rounds.

    norm, reach      what contributions are clipped in, and how much longer records are in it
    top              largest length of an encoded record, in `norm` and in L2
    noise            standard deviation on a sum with bound 1, if it had the whole promise
    count            noisy number of records
    centre, constant, bound   in encoded features: mean, intercept feature, gradient's bound
    scale            typical distance to the centre
    epsilon          of the promise, for an exchanged record halved
    typical          how far scores deviate from that at the centre
    slope, shift     of the scores, so far (logistic_calibration.py), after so many `turns`
    settled, seen    the mean of the later ones, slope first, and that of their noisy sums
    doubt, mass      what noise leaves of it, relative to the slope; how much it counts
    """

    varies: ClassVar[tuple[str, ...]] = (
        "weights", "velocity", "gradient", "average", "centre", "stage", "round", "count",
        "scale", "reach", "constant", "bound", "step", "curvature",
        "typical", "slope", "shift", "turns", "settled", "seen", "doubt", "mass",
    )  # fmt: skip

    classes: tuple[str, ...]
    norm: str
    top: tuple[float, float]
    noise: float
    epsilon: float
    weights: Reals
    velocity: Reals
    gradient: Reals
    average: Reals
    centre: Reals
    shift: Reals
    settled: Reals
    seen: Reals
    stage: str = "size"
    round: int = 0
    count: float = 1.0
    scale: float = 1.0
    reach: float = 1.0
    constant: float = 1.0
    bound: float = 1.0
    step: float = 0.0
    curvature: float = 0.0
    typical: float = 1.0
    slope: float = 1.0
    turns: int = 0
    doubt: float = DOUBTFUL
    mass: float = 0.0
    windows: int = 0
    features: Kind | None = None
    roles: tuple[int, ...] | None = None

    @property
    def encoding(self) -> Encoding | None:
        """How records are seen; None: as they are encoded."""
        return Encoding.known(self.features, self.roles)

    @property
    def schedule(self) -> Schedule:
        whole = PURE if self.norm == Norm.L1 else GAUSSIAN
        return whole.over(self.windows) if self.windows else whole

    @property
    def view(self) -> View:
        """What the gradient of a record depends on."""
        weights = self.weights / self.scale
        return View(self.centre, self.constant, weights, UNIT / self.bound)

    @property
    def matrix(self) -> Reals:
        """The averaged weights of the features, in their own units."""
        return weights_of(self.average[:-1] / self.scale)

    @property
    def line(self) -> Line:
        """What scores become."""
        at = weights_of(self.average[-1:] / self.scale)[0] * self.constant
        return Line(self.slope, self.shift, at, self.typical)

    @property
    def mean_weight(self) -> float:
        """What records are multiplied with, so that one of length `bound` has length 1."""
        return float(np.clip(np.rint(UNIT / self.bound), 1.0, Whole.LARGEST_WEIGHT))

    @property
    def window(self) -> int:
        """Which one it is, from 1 on; without windows 1."""
        return math.ceil(max(1, self.round) / self.schedule.each) if self.windows else 1

    @property
    def followed(self) -> float:
        """By how many parameters the averaged weights follow the labels of the records at hand: by
        all they have, or in windows by the share that the latest one has in the average."""
        return self.free * (1 - (1 - 1 / self.window) ** (LATE + 1))

    @property
    def free(self) -> int:
        """How many weights can be chosen: of several classes, those of one follow from the rest. A
        coordinate that is short is followed less by a descent that stops early."""
        outputs, whole = self.weights.shape[1], len(self.weights)
        encoding = self.encoding
        if encoding is not None:
            whole = min(whole, math.ceil(encoding.effective) + 1)
        return int(whole * max(1, outputs - 1))

    def noise_of(self, stage: str) -> float:
        """Standard deviation on one sum with bound 1 that is paid from the stage's share."""
        part, count = float(self.schedule.part(stage)), self.schedule.count(stage)
        return self.noise * (count / part if self.norm == Norm.L1 else math.sqrt(count / part))
