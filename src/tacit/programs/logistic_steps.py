"""The rounds of private logistic regression: from a noisy sum to the next state (logistic.md)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.bound import Norm
from tacit.programs.features import FEATURE_STEP
from tacit.programs.logistic_calibration import (
    SMALLEST,
    Line,
    advanced,
    is_calibrated,
    remaining,
    settled,
    started,
)
from tacit.programs.logistic_state import UNIT, Learning, Schedule
from tacit.programs.windows import LATE, late_share, late_variance

__all__ = [
    "LARGEST_STEP",
    "calibrated",
    "calibration_holds",
    "calibration_started",
    "descended",
    "descent_resumed",
    "descent_started",
    "settled_line",
    "shrunk_mean",
]

Reals = NDArray[np.float64]

INTERCEPT = 0.25  # the constant feature, in units of a typical centred record
CLIP = 0.25  # of a record's gradient, in the same units, where noise is strong
ENOUGH = 200.0  # records per unit of noise from which on the clip may grow
LARGEST_CLIP = 2.0
DRIFT = 30.0  # how far noise alone may carry the weights
LARGEST_STEP = 80.0
FEW_PER_NOISE = 20.0  # records of a window, below which a calibration would follow noise alone
STABLE = 1.9  # step · curvature; momentum β is stable below 2 (1 + β)


def descent_started(state: Learning) -> Learning:
    """Clip and step, from how much noise there will be; for a pure promise after `reach`."""
    if state.norm == Norm.L1 and state.stage == "reach":
        return state
    rounds, momentum = state.schedule.rounds, state.schedule.momentum
    spread = state.noise_of("gradient") * state.reach * math.sqrt(state.weights.size) / state.count
    ratio = math.sqrt(rounds) / spread  # of signal to noise, all rounds together
    clip = min(LARGEST_CLIP, CLIP * math.sqrt(max(1.0, ratio / ENOUGH)))
    step = DRIFT * (1 - momentum) / (math.sqrt(rounds) * clip * spread)
    constant = max(1.0, round(INTERCEPT * state.scale / FEATURE_STEP)) * FEATURE_STEP
    return replace(
        state,
        stage="gradient",
        bound=clip * state.reach * state.scale,
        step=min(LARGEST_STEP, step),
        constant=constant,
    )


def descent_resumed(state: Learning) -> Learning:
    """A window begins, with more or fewer records: the weights go on as they were moving, so that
    what a window of next to none has stirred up is not carried on by the step of a larger one."""
    found = descent_started(state)
    return replace(found, velocity=state.velocity * (state.step / found.step))


def descended(total: Reals, state: Learning) -> Learning:
    """One step of heavy-ball descent (Polyak 1964)."""
    schedule = state.schedule
    sums = total.reshape(state.weights.shape[::-1]).T * state.bound
    gradient = sums / (state.count * state.scale)
    curvature = max(state.curvature, _curvature(gradient, state))
    velocity = schedule.momentum * state.velocity + gradient
    moved = min(state.step, STABLE / curvature if curvature > 0 else math.inf)
    weights = state.weights - moved * velocity
    return replace(
        state,
        weights=weights,
        velocity=velocity,
        gradient=gradient,
        average=_average(weights, state),
        curvature=curvature,
        step=moved,
        round=state.round + 1,
        stage=_after(state, schedule),
    )


def _after(state: Learning, schedule: Schedule) -> str:
    """The stage that follows a gradient."""
    return "scores" if (state.round + 1) % (schedule.each or schedule.rounds) == 0 else "gradient"


def calibration_started(typical: float, state: Learning) -> Learning:
    """In a later window slope and shifts go on from where they were."""
    known = replace(state, typical=typical, stage="calibration")
    if state.turns:
        return known
    line = started(state.line.at, typical)
    return replace(known, slope=line.slope, shift=line.shift)


def calibrated(total: Reals, state: Learning) -> Learning:
    """One Newton step for slope and shifts; the last two thirds of them are averaged, in windows
    the later ones so far. A window of too few records to say anything changes nothing."""
    turned = replace(state, turns=state.turns + 1)
    noise = state.noise_of("calibration")
    if not state.windows or state.count > FEW_PER_NOISE * noise:
        turned = _turned(total, noise, turned)
    return replace(turned, stage=_after_turn(turned))


def _turned(total: Reals, noise: float, state: Learning) -> Learning:
    line, spread = advanced(total, state.line, noise, Norm(state.norm), state.followed)
    share, mass = _share(state)
    return replace(
        state,
        slope=line.slope,
        shift=line.shift,
        settled=(1 - share) * state.settled + share * np.append(line.slope, line.shift),
        seen=(1 - share) * state.seen + share * total,
        doubt=math.hypot((1 - share) * state.doubt, share * spread) if share else state.doubt,
        mass=mass,
    )


def _share(state: Learning) -> tuple[float, float]:
    """Of this turn in the average, and the sum of all weights so far: in windows they grow with
    time as those of the weights do, and with what so many records tell."""
    if state.windows:
        own = state.turns**LATE * state.count**2
        return own / (state.mass + own), state.mass + own
    before = state.turns - 1 - state.schedule.calibrations // 3
    return (1 / (before + 1), before + 1.0) if before >= 0 else (0.0, 0.0)


def _after_turn(state: Learning) -> str:
    if state.turns % state.schedule.calibrations:
        return "calibration"
    return "done" if state.round == state.schedule.rounds else "count"


def settled_line(state: Learning) -> Line:
    """What scores become in the model."""
    slope = settled(float(state.settled[0]), state.doubt)
    return replace(state.line, slope=slope, shift=state.settled[1:])


def calibration_holds(state: Learning) -> bool:
    """From noisy sums and public numbers alone, so it costs nothing. Windows count for as many
    records at once as would have so much noise (windows.md)."""
    averaged = state.turns - state.schedule.calibrations // 3
    if state.windows:
        averaged = math.floor(1 / late_variance(float(state.turns))) if state.turns else 0
    if averaged <= 0:
        return False
    slope = max(SMALLEST, float(state.settled[0]))
    line = replace(state.line, slope=slope, shift=state.settled[1:])
    noise = state.noise_of("calibration") / math.sqrt(averaged)
    left = remaining(state.seen, line, noise, Norm(state.norm), state.followed)
    count = state.count * math.sqrt(state.window)
    return is_calibrated(count, state.epsilon, len(state.centre), left)


def _average(weights: Reals, state: Learning) -> Reals:
    """Of the second half of all weights; in windows of the later ones so far."""
    if state.windows:
        share = late_share(state.round + 1.0)
        return (1 - share) * state.average + share * weights
    rounds = state.schedule.rounds
    if state.round < rounds // 2:
        return state.average
    return state.average + weights / (rounds - rounds // 2)


def _curvature(gradient: Reals, state: Learning) -> float:
    """What the last two gradients prove about the curvature, by three deviations of their noise.

    Where the step is too long for the data (few or equal features), iterates swing ever wider,
    and the wider they swing the surer this is. It reads noisy sums only, so it costs nothing.
    """
    move = -state.step * state.velocity
    size = float(np.linalg.norm(move))
    if size == 0.0:
        return 0.0
    seen = float(((gradient - state.gradient) * move).sum()) / size**2
    deviation = state.noise_of("gradient") * state.bound / (state.count * state.scale)
    if state.windows and state.round % state.schedule.each == 0:  # other records than before
        deviation = math.hypot(deviation, 1 / math.sqrt(state.count))
    return seen - 3 * math.sqrt(2) * deviation / size


def shrunk_mean(total: Reals, state: Learning) -> Reals:
    """The noisy mean, shortened by as much as noise has lengthened it (James & Stein 1961)."""
    mean = total * (UNIT / state.mean_weight) / state.count
    noise = state.noise_of("mean") * state.bound / state.count
    square = float(mean @ mean)
    kept = max(0.0, 1 - len(mean) * noise**2 / square) if square > 0 else 0.0
    return np.asarray(np.clip(np.rint(kept * mean / FEATURE_STEP) * FEATURE_STEP, -1.0, 1.0))
