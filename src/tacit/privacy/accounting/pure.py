"""The plainest accountant: epsilons add up, exactly. The only one that can keep delta at 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from tacit.privacy.accounting.losses import Loss, PureLoss, leak, upward

__all__ = ["delta", "epsilon", "total"]


def total(losses: Sequence[Loss]) -> Fraction | None:
    """Σ count·ε (Dwork & Roth 2014, theorem 3.16), or None if a loss has no finite epsilon."""
    pure = [loss for loss in losses if isinstance(loss, PureLoss)]
    if len(pure) < len(losses):
        return None
    return sum((loss.count * loss.epsilon for loss in pure), Fraction(0))


def epsilon(losses: Sequence[Loss], delta: float) -> float:
    summed = total(losses)
    return math.inf if summed is None or leak(losses) > delta else upward(summed)


def delta(losses: Sequence[Loss], epsilon: float) -> float:
    summed = total(losses)
    return 1.0 if summed is None or summed > Fraction(epsilon) else min(1.0, leak(losses))
