"""The promise that a program reckons with, where more noise is added than one place would need.

Programs choose clips, steps and thresholds by how much noise to expect, and know it from the
promise. In a federation every server adds noise, so there is more of it. A program is therefore
started with the smaller ε for which one trusted place would add just as much. Noise, plan and
certificate follow from the true promise; this changes only how well a program uses what it gets.
"""

from __future__ import annotations

from dataclasses import replace

from tacit.privacy.accounting import gaussian_scale
from tacit.privacy.accounting.gaussian import smallest_epsilon
from tacit.privacy.promise import Promise

__all__ = ["reckoned"]

DIGITS = 6  # of ε: no two machines disagree about so few


def reckoned(promise: Promise, spread: float) -> Promise:
    """The promise for which noise in one place has `spread` times this one's deviation."""
    if not promise.is_private or spread == 1.0:
        return promise
    if promise.delta == 0:
        return _with(promise, promise.epsilon / spread)
    wanted = spread * gaussian_scale(promise.epsilon, promise.delta)
    # Where δ alone allows for so much noise, any ε does: a program is told a small one.
    least = promise.epsilon / (2 * spread**2)
    return _with(promise, max(least, smallest_epsilon(1 / wanted, promise.delta)))


def _with(promise: Promise, epsilon: float) -> Promise:
    return replace(promise, epsilon=float(f"{epsilon:.{DIGITS}g}"))
