"""Which questions are asked, of whom, and at which cost (proof of the cost: plan.md).

Everybody draws lots. A lot is some questions; a person who draws it answers all of them. How the
questions of a study are chosen: planning.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from tacit.channels.crowd.planning import Lot, PlanTerms, planned
from tacit.channels.crowd.questions import Question
from tacit.crypto.lots import order
from tacit.data.schema import Schema
from tacit.errors import UsageError

__all__ = ["Lot", "Plan", "PlanTerms"]

FEWEST = 2  # people to a question: an answer that stands alone is mixed with nobody's


@dataclass(frozen=True, slots=True)
class Plan:
    """The questions of a study, and the draws in each of which every person gets one lot."""

    questions: tuple[Question, ...]
    draws: tuple[tuple[Lot, ...], ...]

    @classmethod
    def drawn_up(
        cls, schema: Schema, terms: PlanTerms, epsilon: float, people: int, seed: bytes
    ) -> Plan:
        """The plan of a proposal: the same for everyone who reads it.

        epsilon  what a person pays for everything together, at the most
        people   the smallest group that the proposal allows
        seed     32 public bytes from which AnonML's subsets of features follow, such as a digest
        """
        plan = cls(*planned(schema, terms, epsilon, people, seed))
        plan.require(people)
        return plan

    def question(self, name: str) -> Question:
        for question in self.questions:
            if question.name == name:
                return question
        raise UsageError(f"the plan has no question {name!r}. It has: {', '.join(self.names)}.")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(question.name for question in self.questions)

    # ── when ─────────────────────────────────────────────────────────────────────────────────────

    @property
    def stages(self) -> int:
        """Steps of the search for quantiles, and then the tables."""
        return 1 + max(question.stage for question in self.questions)

    def in_stage(self, stage: int) -> tuple[Question, ...]:
        return tuple(question for question in self.questions if question.stage == stage)

    def packets(self, stage: int) -> int:
        """The most answers that anyone has for a stage. Everyone sends so many packets, with cover
        for what is missing: who sends when would show who was asked what."""
        here = {question.name for question in self.in_stage(stage)}
        return sum(
            max(len(here.intersection(lot.questions)) for lot in draw) for draw in self.draws
        )

    # ── who ──────────────────────────────────────────────────────────────────────────────────────

    def everyone(self, people: int, seed: bytes) -> NDArray[np.int64]:
        """The number of the lot that each person has, for each draw: (draws, people).

        People are known by their places in the roster. The seed is the joint seed of crypto/lots.
        """
        return _everyone(self.draws, people, seed)

    def asked(self, place: int, people: int, seed: bytes) -> tuple[Question, ...]:
        """What the person at this place in the roster answers, in the order of the stages."""
        if not 0 <= place < people:
            raise UsageError(f"a roster of {people} has the places 0 to {people - 1}, not {place}.")
        lots = zip(self.draws, self.everyone(people, seed)[:, place], strict=True)
        mine = [self.question(name) for draw, lot in lots for name in draw[lot].questions]
        return tuple(sorted(mine, key=lambda question: question.stage))

    def expected(self, people: int) -> dict[str, int]:
        """How many people answer each question: the same whatever the lots."""
        counts = dict.fromkeys(self.names, 0)
        for draw in self.draws:
            for lot, size in zip(draw, _divided(draw, people), strict=True):
                for name in lot.questions:
                    counts[name] += size
        return counts

    def require(self, people: int) -> None:
        """Refuse a group that leaves a question to fewer than two people."""
        counts = self.expected(people)
        name = min(counts, key=lambda name: counts[name])
        if counts[name] < FEWEST:
            raise UsageError(
                f"{people} people are too few for {len(counts)} questions: {counts[name]} would "
                f"answer {name}. Wait for a larger group, or ask less: name fewer tables, take "
                "fewer partitions, or give numbers public edges."
            )

    # ── at which cost ────────────────────────────────────────────────────────────────────────────

    @property
    def person_epsilon(self) -> float:
        """The most that anyone pays: the sum over all her answers, as a ledger charges it."""
        return self._most(None)

    @property
    def attribute_epsilon(self) -> float:
        """The thesis's figure (eq. 7.4): the most that any one attribute, a feature or the label,
        is answered for. It protects a person only if her attributes had nothing to do with one
        another; it is shown beside the sum, and charged to nobody."""
        return max(map(self._most, {name for q in self.questions for name in _attributes(q)}))

    def _most(self, attribute: str | None) -> float:
        """The dearest lots of all draws together, rounded up; with an attribute: of those answers
        in which it has a part."""
        cost = {
            question.name: Fraction(question.epsilon)
            for question in self.questions
            if attribute is None or attribute in _attributes(question)
        }
        exact = sum(
            (
                max(sum(cost.get(name, 0) for name in lot.questions) for lot in draw)
                for draw in self.draws
            ),
            start=Fraction(0),
        )
        rounded = float(exact)
        return rounded if Fraction(rounded) >= exact else math.nextafter(rounded, math.inf)


LABEL = ""  # no column has this name


def _attributes(question: Question) -> tuple[str, ...]:
    return (*question.features, LABEL) if question.kind == "table" else question.features


@lru_cache(maxsize=4)  # in a simulation everyone asks for the same
def _everyone(draws: tuple[tuple[Lot, ...], ...], people: int, seed: bytes) -> NDArray[np.int64]:
    drawn = np.empty((len(draws), people), dtype=np.int64)
    for number, draw in enumerate(draws):
        lots = np.repeat(np.arange(len(draw)), _divided(draw, people))
        drawn[number, order(seed, f"draw {number}", people)] = lots
    drawn.flags.writeable = False
    return drawn


def _divided(draw: tuple[Lot, ...], people: int) -> list[int]:
    """How many people get each lot: their parts of all, cut where the running sum of the weights
    says, in whole numbers, so that all add up and none is off by one or more."""
    total = sum(lot.weight for lot in draw)
    sums = accumulate((lot.weight for lot in draw), initial=0)
    return [b - a for a, b in pairwise(people * part // total for part in sums)]
