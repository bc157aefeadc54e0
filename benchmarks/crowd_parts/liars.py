"""Liars, and estimates that were tried against them.

The attack. Liars know the true table of every question and each other's reports, and want what each
feature says of the label turned round. One after the other takes, of all valid reports, the one
that lowers Σ (P(c|1) − P(c|0))·(log-odds of code c) the most, by its gradient at what the others
have left of the table, with the smoothing that the learner will apply. They are drawn at random
among the people, since the lots say who is asked what.

Medians of groups: people are divided into groups at random, after they have answered; each count is
the median of the groups' estimates (Lugosi and Mendelson 2019). Clipped: with D the difference of a
table from one in which the feature says nothing, and B what the liars can have added to Σ|D|, the
log-odds of all codes are cut at one level such that Σ|D| falls by B: the best answer to a
worst case, for scores that are judged by their square. What it takes off does not depend on how
many lie in fact: nobody knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crowd_parts.problems import Problem
from tacit.channels.crowd.binning import cells
from tacit.channels.crowd.halves import halves_of, in_half, order_of, weight_of
from tacit.channels.crowd.liars import liar_weight
from tacit.channels.crowd.questions import Question
from tacit.channels.crowd.tables import Table, consistent
from tacit.privacy.mechanisms.randomisers import Randomiser
from tacit.privacy.mechanisms.response import RandomisedResponse
from tacit.privacy.mechanisms.subset import SubsetSelection

Reals = NDArray[np.float64]
Reports = NDArray[np.uint8]


class Attack:
    """A share of the people lies; the reports of all are kept for whoever wants to see them."""

    def __init__(self, problem: Problem, share: float, run: int) -> None:
        people = problem.train.rows
        self._problem = problem
        self._lies = np.zeros(people, dtype=np.bool_)
        self._lies[np.random.default_rng(run).permutation(people)[: round(share * people)]] = True
        self._left: dict[Question, Reals] = {}
        self.answers: dict[Question, Reports] = {}

    def __call__(self, question: Question, people: NDArray[np.int64], reports: Reports) -> Reports:
        reports = reports.copy()
        aim = _Aim(question, len(people), self._truth(question.table))
        left = self._left.setdefault(question.table, aim.truth * aim.people)
        for row in np.flatnonzero(self._lies[people]):
            reports[row], added = aim.lie(left)
            left += added
        self.answers[question] = reports
        return reports

    def _truth(self, table: Question) -> Reals:
        found = cells(table, self._problem.schema, {}, self._problem.train)
        return np.bincount(found, minlength=table.cells).reshape(-1, 2) / len(found)


class _Aim:
    """What is to be done to one question's table."""

    def __init__(self, question: Question, asked: int, truth: Reals) -> None:
        self.question, self.truth = question, truth
        self.randomiser = question.randomiser
        self.contrast = float(self.randomiser.hit - self.randomiser.miss)
        given = truth / truth.sum(axis=0)
        self._apart = given[:, 1] - given[:, 0]
        if not question.half:
            self.people = float(asked)
            self._noise = float(np.sqrt(self.randomiser.variance(asked)))
            return
        weights = [weight_of(half) for half in range(1, halves_of(question.cells) + 1)]
        order = order_of(question.cells)
        self.people = asked * sum(weights) / weight_of(question.half)
        spread = sum(weights) * sum(1 / weight for weight in weights) * self.people
        self._noise = float(np.sqrt(spread)) / (order * self.contrast)
        signs = 1.0 - 2.0 * in_half(np.arange(question.cells), question.half)
        each = sum(weights) / (weight_of(question.half) * order * self.contrast)
        self._column = (signs * each).reshape(truth.shape)

    def lie(self, left: Reals) -> tuple[Reports, Reals]:
        """The report of one liar, and what it adds to the table."""
        smooth = np.maximum(left, 0.0) + self._noise + 1
        gradient = np.column_stack([-self._apart / smooth[:, 0], self._apart / smooth[:, 1]])
        if self.question.half:
            outside = float((gradient * self._column).sum()) < 0
            report = np.array([0 if outside else 1], dtype=np.uint8)
            return report, self._column if outside else -self._column
        chosen = np.argsort(gradient, axis=None)[: self.randomiser.most_supported]
        added = np.full(self.truth.size, -float(self.randomiser.miss))
        added[chosen] += 1
        return _supporting(self.randomiser, chosen), (added / self.contrast).reshape(left.shape)


def _supporting(randomiser: Randomiser, chosen: NDArray[np.intp]) -> Reports:
    """The report that supports exactly these cells."""
    if isinstance(randomiser, RandomisedResponse):
        return np.frombuffer(int(chosen[0]).to_bytes(randomiser.report_bytes, "little"), np.uint8)
    assert isinstance(randomiser, SubsetSelection)
    bits = np.zeros(8 * randomiser.report_bytes, dtype=np.uint8)
    bits[chosen] = 1
    return np.packbits(bits, bitorder="little")


# ── what was tried against them ──


def medians(answers: Mapping[Question, Reports], groups: int, run: int) -> list[Table]:
    """Whole tables, each count the median of so many groups' estimates."""
    rng, found = np.random.default_rng(run), []
    for question, reports in answers.items():
        parts = np.array_split(rng.permutation(len(reports)), groups)
        shares = [question.randomiser.estimate(reports[part]) / len(part) for part in parts]
        counts = (np.median(shares, axis=0) * len(reports)).reshape(question.sizes)
        found.append(replace(Table.estimated(question, reports), counts=counts))
    return found


def clipped(tables: list[Table], share: float) -> list[Table]:
    """Whole tables made consistent, without what this share of liars can have added."""
    return [_clipped(table, share) for table in consistent(tables)]


def _clipped(table: Table, share: float) -> Table:
    counts, randomiser = table.counts.reshape(-1, 2), table.question.randomiser
    ones = counts[:, 1].sum() / table.reports
    people = counts.sum(axis=1)
    apart, scale = counts[:, 1] - ones * people, people * ones * (1 - ones)
    lies = share * table.reports * randomiser.most_supported * max(ones, 1 - ones)
    level = _level(np.abs(apart), scale, lies / float(randomiser.hit - randomiser.miss))
    kept = ones * people + np.clip(apart, -level * scale, level * scale)
    return replace(table, counts=np.column_stack([people - kept, kept]).reshape(table.counts.shape))


def _level(sizes: Reals, scale: Reals, budget: float) -> float:
    """The least level, 0 or more, with Σ max(0, sizes − level·scale) ≤ budget; by bisection."""
    low, high = 0.0, float((sizes / np.maximum(scale, 1e-9)).max())
    for _ in range(60):
        middle = (low + high) / 2
        if np.maximum(sizes - middle * scale, 0.0).sum() > budget:
            low = middle
        else:
            high = middle
    return high if low > 0 else 0.0


def heaviest(questions: list[Question]) -> float:
    """What one of many liars adds, in people, in the table where it is most."""
    return max(liar_weight(question).each for question in questions)
