"""What people who lie can do to a crowd's tables (proof: liars.md).

Whoever sends a valid report sends one, whatever it says. An honest report is mostly noise, so the
estimate multiplies every report by 1/(hit − miss) and more: a lie weighs more than a person.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tacit.channels.crowd.halves import halves_of, order_of, weight_of
from tacit.channels.crowd.plan import Plan
from tacit.channels.crowd.questions import Question
from tacit.channels.crowd.tables import Table

__all__ = [
    "LiarWeight",
    "liar_weight",
    "liar_weights",
    "liars_among",
    "liars_document",
    "lies_explained",
    "widened",
]

CHANCE = 1e-3  # that the lots give a table more liars than are reckoned with


class LiarWeight(NamedTuple):
    """In people: how far liars move the counts of one table.

    cell    the most that one report adds to one cell
    each    the most that it adds to all cells of its sender's choice; where halves are asked
            about, a liar's part of what many of them add
    chance  where halves are asked about: what the lots add to the square of the sum, for each liar
    """

    cell: float
    each: float
    chance: float = 0.0

    def total(self, liars: float) -> float:
        """The most that so many of them add to all cells of their choice; where halves are asked
        about, in the mean over the lots."""
        return liars / 2 + math.sqrt(((self.each - 0.5) * liars) ** 2 + self.chance * liars)


def liar_weight(question: Question) -> LiarWeight:
    """Of those who answer this question; of a half, those who answer any half of its table."""
    randomiser = question.randomiser
    contrast = float(randomiser.hit - randomiser.miss)
    if not question.half:
        cell = float(1 - randomiser.miss) / contrast
        return LiarWeight(cell, randomiser.most_supported * cell)
    weights = [weight_of(half) for half in range(1, halves_of(question.cells) + 1)]
    people = sum(weights)
    return LiarWeight(
        (1 + people / contrast) / order_of(question.cells),
        0.5 + math.sqrt(0.25 + len(weights) / (2 * contrast) ** 2),
        people * sum(1 / weight for weight in weights) / (2 * contrast) ** 2,
    )


def liar_weights(plan: Plan) -> dict[str, LiarWeight]:
    """Of every table of a plan, by name."""
    return {q.table.name: liar_weight(q) for q in plan.questions if q.kind == "table"}


def liars_among(reports: int, people: int, liars: int) -> int:
    """How many of the liars among the people answer a question with so many reports: exceeded with
    a probability of at most `CHANCE`, since the lots are drawn when it is known who takes part."""
    most = min(reports, liars)
    weights = [_ways(liars, k) + _ways(people - liars, reports - k) for k in range(most + 1)]
    total, beyond = _ways(people, reports), 0.0
    for number in range(most, 0, -1):
        beyond += math.exp(weights[number] - total)
        if beyond > CHANCE:
            return number
    return 0


def _ways(n: int, k: int) -> float:
    """ln of the number of ways to choose k of n; −∞ where there are none."""
    if not 0 <= k <= n:
        return -math.inf
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def widened(tables: Sequence[Table], plan: Plan, people: int, liars: int) -> list[Table]:
    """The tables with the shift that so many liars among the people can have caused."""
    weights = liar_weights(plan)
    return [
        replace(t, shift=liars_among(t.reports, people, liars) * weights[t.question.name].cell)
        for t in tables
    ]


def liars_document(plan: Plan, liars: int) -> dict[str, Any]:
    """What `lies_explained` says, for programs: in people, for each table."""
    tables = {
        name: {"cell": weight.cell, "each": weight.each, "together": weight.total(liars)}
        for name, weight in liar_weights(plan).items()
    }
    return {"assumed": liars, "weights": tables}


def lies_explained(plan: Plan, liars: int) -> list[str]:
    """In plain words, for people who decide whether to take part, and whether to believe it."""
    weights = liar_weights(plan)
    name = max(weights, key=lambda name: weights[name].each)
    most = weights[name]
    lines = [
        "Nobody can check whether an answer is true. Since honest answers are mostly noise, a lie "
        f"counts for more than one person: it can add {most.cell:.1f} people to one combination of "
        f"{name}, the table where lies weigh most.",
    ]
    if any(question.half for question in plan.questions):
        lines.append(
            "Each person is asked about one half of the combinations, drawn by lot, so liars "
            f"cannot choose theirs: many of them add {most.each:.1f} people each, all combinations "
            "of that table together."
        )
    else:
        lines.append(f"It can add {most.each:.1f} people to combinations of the liar's choice.")
    if not liars:
        return [*lines, "No liars are assumed (corrupt = 0): error bars show the noise alone."]
    return [
        *lines,
        f"At most {liars} liars are assumed (corrupt): if all of them are asked about that table, "
        f"they add up to {liars * most.cell:.1f} people to one combination, and "
        f"{most.total(liars):.1f} to all together. Error bars are widened by what so many can do.",
    ]
