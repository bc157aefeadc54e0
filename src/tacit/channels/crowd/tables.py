"""What a crowd's answers say: tables of counts with their error bars, and made consistent.

Everything here is computed from reports that are already randomised, so it costs no privacy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tacit.channels.crowd.halves import Halved
from tacit.channels.crowd.questions import Question
from tacit.data.schema import Schema
from tacit.errors import UsageError
from tacit.programs.tabulated import Marginal

__all__ = ["Table", "consistent", "estimated_tables", "label_share"]

Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Table:
    """An estimated table.

    counts   of people in each cell, one axis for each of the question's sizes; as estimated they
             are unbiased and may be negative, made consistent they are neither
    errors   the standard error of each count as estimated: the randomiser's noise alone, and by
             which people each half was answered, where halves were asked about
    reports  how many were counted
    shift    how many people liars can have added to a count or taken from it: a bound, not a
             spread, and 0 where none are assumed (liars.py)
    """

    question: Question
    counts: Reals
    errors: Reals
    reports: int
    shift: float = 0.0

    @classmethod
    def estimated(cls, question: Question, reports: NDArray[np.uint8]) -> Table:
        """From reports, a row of bytes each."""
        if question.kind != "table":
            raise UsageError(f"question {question.name} is for quantiles: it makes no table.")
        if question.half:
            raise UsageError(f"question {question.name} is half of one: use estimated_tables.")
        randomiser, people = question.randomiser, len(reports)
        counts = randomiser.estimate(reports)
        shares = np.clip(counts / max(people, 1), 0.0, 1.0)
        errors = np.sqrt(randomiser.variance(people, shares))
        shape = question.sizes
        return cls(question, counts.reshape(shape), errors.reshape(shape), people)

    @classmethod
    def of_halves(cls, answers: Mapping[Question, NDArray[np.uint8]]) -> Table:
        """From reports about the halves of one table; all have the same epsilon."""
        first = next(iter(answers))
        contrast = float(first.randomiser.hit - first.randomiser.miss)
        counted = {q.half: (float(q.randomiser.estimate(r)[1]), len(r)) for q, r in answers.items()}
        found = Halved.estimated(first.cells, counted, contrast)
        shape, people = first.sizes, sum(len(reports) for reports in answers.values())
        errors = np.sqrt(found.variances)
        return cls(first.table, found.counts.reshape(shape), errors.reshape(shape), people)

    def interval(self, deviations: float = 2.0) -> tuple[Reals, Reals]:
        """Where each count lies: so many standard errors to either side, and the liars' shift."""
        width = deviations * self.errors + self.shift
        return self.counts - width, self.counts + width

    def marginal(self, schema: Schema) -> Marginal:
        """As learners want it; from a table made consistent."""
        names = [column.name for column in schema.features]
        places = tuple(names.index(name) for name in self.question.features)
        return Marginal(places, self.counts, float(np.mean(self.errors**2)), self.reports)


def estimated_tables(answers: Mapping[Question, NDArray[np.uint8]]) -> list[Table]:
    """Each table that was asked for, whole or by its halves, in the order of the questions."""
    parts: dict[Question, dict[Question, NDArray[np.uint8]]] = {}
    for question, reports in answers.items():
        if question.kind == "table":
            parts.setdefault(question.table, {})[question] = reports
    return [
        Table.estimated(table, part[table]) if table in part else Table.of_halves(part)
        for table, part in parts.items()
    ]


def consistent(tables: Sequence[Table]) -> list[Table]:
    """The tables nearest to these whose counts are not negative, add up to the reports, and agree
    on the label. Tables that nobody answered stay as they are."""
    share = label_share(tables)
    return [_agreeing(table, share) if table.reports else table for table in tables]


def label_share(tables: Sequence[Table]) -> float:
    """The share of people with label 1, from all tables, the more certain ones more loudly.

    A table says ½ + (ones − zeros)/2n. For randomisers whose counts do not add up to n this is
    closer to the truth than ones/n: the error that both sides have in common is left out.
    """
    total, weights = 0.0, 0.0
    for table in tables:
        if not table.reports:
            continue
        zeros, ones = table.counts.reshape(-1, 2).sum(axis=0)
        said = 0.5 + (ones - zeros) / (2 * table.reports)
        noise = float((table.errors**2).sum()) / (2 * table.reports) ** 2
        weight = 1 / (noise + 0.25 / table.reports)  # and people were drawn by lot
        total, weights = total + weight * said, weights + weight
    return float(np.clip(total / weights, 0.0, 1.0)) if weights else 0.5


def _agreeing(table: Table, share: float) -> Table:
    """With each label's counts brought to what its share of the reports is.

    Cells move in proportion to their variance, noise and chance together: almost all alike where
    the noise is large, and in proportion to their counts where there is none.
    """
    counts = table.counts.reshape(-1, 2)
    chance = np.maximum(counts, 1.0)
    variances = table.errors.reshape(-1, 2) ** 2 + chance
    parts = (1 - share, share)
    found = [
        _nearest(counts[:, label], variances[:, label], part * table.reports)
        for label, part in enumerate(parts)
    ]
    return replace(table, counts=np.column_stack(found).reshape(table.counts.shape))


def _nearest(counts: Reals, variances: Reals, total: float) -> Reals:
    """The x ≥ 0 with Σx = total for which Σ (x − counts)²/variances is least.

    It is max(0, counts + λ·variances) for one λ (Karush, Kuhn, Tucker), found among those that
    keep the k cells which would be the last to vanish. With equal variances this is the projection
    onto the simplex, which Wang et al. (NDSS 2020) call norm-sub.
    """
    last = np.argsort(-counts / variances, kind="stable")
    multipliers = (total - np.cumsum(counts[last])) / np.cumsum(variances[last])
    stays = counts[last] + multipliers * variances[last] > 0
    kept = int(np.flatnonzero(stays)[-1]) if stays.any() else 0
    return np.asarray(np.maximum(counts + multipliers[kept] * variances, 0.0))
