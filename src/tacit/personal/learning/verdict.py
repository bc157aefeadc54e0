"""Better than guessing, no better, or too few examples to tell: with a number behind each."""

from __future__ import annotations

import math

from tacit.personal.learning.report import Outcome, Verdict
from tacit.personal.learning.scores import LEVEL, Score
from tacit.personal.problems.problem import Asked

__all__ = ["CONSIDERABLE", "ENOUGH_BLOCKS", "verdict"]

Interval = tuple[float | None, float | None, float | None]

CONSIDERABLE = 0.25  # avoiding a quarter of the error would be worth knowing
ENOUGH_BLOCKS = 10  # fewer separate times say nothing about the next


def verdict(
    skill: Interval, rows: int, blocks: int, task: Asked, guess: str, scores: tuple[Score, ...]
) -> Verdict:
    """`skill` with its bounds, measured on `rows` rows at `blocks` separate times.

    Better if chance does not reach down to zero. To say that it is no better, chance must not reach
    up to a considerable skill: otherwise there were too few examples to see one. With `scores`, the
    skill is that of the last test; without, no model won a place in it.
    """
    value, low, high = skill
    outcome = _outcome(value, low, high, blocks)
    seen = ", ".join(filter(None, (_seen(task, scores), _change(value, low, high, blocks))))
    where = f"on the {rows} {'latest' if scores else 'earlier'} examples"
    if outcome == "better":
        words = f"Better than {guess}: {seen}, {where}."
    elif outcome == "no better":
        best = "" if scores else "the best model had "
        words = f"No better than {guess}: {best}{seen}, {where}."
    else:
        more = _times_more(low, high, blocks)
        words = (
            f"Too few examples to tell whether it is better than {guess}: {seen}, {where}, of "
            f"{_times(blocks)}. About {more} times as many would be needed."
        )
    return Verdict(
        outcome=outcome, skill=value, low=low, high=high, rows=rows, blocks=blocks, words=words
    )


def _outcome(value: float | None, low: float | None, high: float | None, blocks: int) -> Outcome:
    if value is None or low is None or high is None or blocks < ENOUGH_BLOCKS:
        return "too few"
    if low > 0:
        return "better"
    return "too few" if high >= CONSIDERABLE else "no better"


def _seen(task: Asked, scores: tuple[Score, ...]) -> str:
    """What people can picture: how often right, or how far off."""
    first = next(iter(scores), None)
    if first is None or first.value is None or first.baseline is None:
        return ""
    if task == "number":
        return f"off by {first.value:.4g} on average against {first.baseline:.4g}"
    return f"right {first.value:.0%} of the time against {first.baseline:.0%}"


def _times(blocks: int) -> str:
    return "1 separate time" if blocks == 1 else f"{blocks} separate times"


def _change(value: float | None, low: float | None, high: float | None, blocks: int) -> str:
    """The error beside that of guessing, with bounds where there are enough times for them."""
    if value is None:
        return "the error cannot be compared"
    if low is None or high is None or blocks < ENOUGH_BLOCKS:
        return f"{_less(value)} error"
    return f"{_less(value)} error ({LEVEL:.0%} sure: from {_less(low)} to {_less(high)})"


def _less(share: float) -> str:
    return f"{abs(share):.0%} {'less' if share > 0 else 'more'}"


def _times_more(low: float | None, high: float | None, blocks: int) -> int:
    """How many times as many examples would show a considerable skill: chance's reach falls with
    the root of their number."""
    if low is None or high is None or blocks < ENOUGH_BLOCKS:
        return max(2, math.ceil(ENOUGH_BLOCKS / max(blocks, 1)))
    return max(2, math.ceil(((high - low) / 2 / CONSIDERABLE) ** 2))
