"""How far to trust an answer: one of four words, each with its rule and the numbers behind it.

    not at all  no model, or one that is not better than guessing on examples it had not seen
    little      better, but less than a tenth of guessing's error is surely avoided, or fewer than
                fifty examples, or a case unlike those before
    well        at least a quarter of guessing's error surely avoided, on two hundred examples
    fairly      everything between

*Surely* is the lower end of the 95 % interval of the test (scores.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tacit.personal.learning.prediction import Prediction
from tacit.personal.learning.report import Report

__all__ = ["Grade", "Trusted", "graded", "untrusted"]

Grade = Literal["not at all", "little", "fairly", "well"]
LITTLE, WELL = 0.1, 0.25  # of guessing's error
FEW, MANY = 50, 200  # examples


@dataclass(frozen=True)
class Trusted:
    grade: Grade
    because: str


def untrusted(because: str) -> Trusted:
    return Trusted("not at all", because)


def graded(report: Report, prediction: Prediction) -> Trusted:
    verdict, low = report.verdict, report.verdict.low or 0.0
    if verdict.outcome != "better":
        return untrusted(verdict.words)
    doubts = [
        words
        for words, holds in (
            (f"it surely avoids only {low:.0%} of guessing's error", low < LITTLE),
            (f"there are only {report.rows} examples", report.rows < FEW),
            ("this case is unlike those before", prediction.trust.similar == 0),
        )
        if holds
    ]
    if doubts:
        return Trusted("little", f"{verdict.words} But {' and '.join(doubts)}.")
    is_well = low >= WELL and report.rows >= MANY
    return Trusted("well" if is_well else "fairly", verdict.words)
