"""What was learned, as plain data: everything that a command, a page or a picture shows."""

from __future__ import annotations

from typing import Literal

import msgspec

from tacit.personal.learning.calibration import Calibration, Point
from tacit.personal.learning.models import Recipe
from tacit.personal.learning.scores import Score
from tacit.personal.problems.problem import Asked

__all__ = ["Outcome", "Range", "Report", "Stretch", "Tried", "Useful", "Verdict"]

Outcome = Literal["better", "no better", "too few"]


class Verdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Is it better than guessing?

    skill   the share of guessing's error that is avoided, between `low` and `high`
    rows    on how many examples that was measured
    blocks  at how many separate times
    words   all of it in plain words
    """

    outcome: Outcome
    skill: float | None
    low: float | None
    high: float | None
    rows: int
    blocks: int
    words: str


class Tried(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A recipe and its mean error in the folds: absolute, or Brier's score."""

    recipe: Recipe
    loss: float


class Useful(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much skill is lost when a feature is shuffled among the rows, between two bounds."""

    name: str
    lost: float
    low: float | None
    high: float | None


class Stretch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rows tested together: the share of right answers or the mean absolute error, in time."""

    since: int
    until: int
    rows: int
    value: float
    baseline: float
    is_last: bool


class Range(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to add to a number for a range that should hold it.

    coverage  how often it should, from errors on rows later than those learned from
    measured  how often it did on the latest rows, with the errors before them; None if too few
    rows      of how many errors it was made
    """

    low: float
    high: float
    coverage: float
    measured: float | None
    rows: int


class Report(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All there is to say about a model.

    rows         labelled examples, of which the latest `held_out` were the last test
    in_time      whether rows had an order of time; otherwise they were split at random
    recipe       what was chosen; `baseline` is the better way of guessing
    guess        what that guessing is, in words: `always saying no`
    features     what the model looks at, without what was redundant
    useful       the most useful of them first
    reliability  for classes: was it true as often as said
    said         for numbers: what was said and what was true, on the latest rows
    over_time    fold by fold, the last test at the end
    """

    task: Asked
    label: str
    classes: tuple[str, ...]
    rows: int
    held_out: int
    in_time: bool
    recipe: Recipe
    baseline: Recipe
    guess: str
    features: tuple[str, ...]
    tried: tuple[Tried, ...]
    scores: tuple[Score, ...]
    verdict: Verdict
    useful: tuple[Useful, ...]
    reliability: tuple[Point, ...]
    said: tuple[tuple[float, float], ...]
    over_time: tuple[Stretch, ...]
    calibration: Calibration
    range: Range | None
    notes: tuple[str, ...]
