"""How a plan is drawn up: questions follow from the schema by rules that everyone can repeat.

tacit's own plan has one draw, of lots with one question each: whoever answers one question with
the whole epsilon gives more than who answers k of them with a k-th each (plan.md). AnonML's has two
draws: one of k_p partitions, with k_h tables of k_s features each, and before it one of a single
question for quantiles, where numbers are still to be cut into bins.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import msgspec

from tacit.channels.crowd.binning import distinct, is_to_be_cut, searches
from tacit.channels.crowd.choice import default_tables
from tacit.channels.crowd.halves import weight_of
from tacit.channels.crowd.quantiles import steps_of_search
from tacit.channels.crowd.questions import Question
from tacit.crypto.lots import order
from tacit.data.discrete import Discrete, with_edges
from tacit.data.schema import Column, Schema
from tacit.errors import UsageError

__all__ = ["Lot", "PlanTerms", "planned"]

MOST_CELLS = 1024  # of a table: beyond, what a crowd says about one cell is noise
MOST_HALVED = 64  # of a table that is asked for by halves: there are nearly as many questions
WHOLE = 1_000_000  # weights are whole numbers, which everyone divides alike


class PlanTerms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a proposal's questions are chosen.

    kind        one-question: each person answers one, with the whole epsilon; anonml: each person
                answers a partition's, and one for quantiles, epsilon divided among them
    bins        how many to cut a number into that has bounds but no edges
    search      one-question: the share of people who are asked for quantiles instead of tables
    tables      one-question: the author's choice of features to be asked for together, instead of
                the automatic one
    public_coins
                one-question: each person is asked whether her cell is in one half of a table's,
                drawn by lot, not which it is: liars weigh less, and so does the crowd (halves.md)
    partitions  anonml: k_p, how many parts the group is divided into
    subsets     anonml: k_h, how many tables each of them is asked for
    size        anonml: k_s, how many features a table has besides the label
    """

    kind: Literal["one-question", "anonml"] = "one-question"
    bins: int = 4
    search: float = 0.1
    tables: tuple[tuple[str, ...], ...] = ()
    public_coins: bool | None = None
    partitions: int | None = None
    subsets: int | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Lot:
    """What a person may draw: questions, by name; drawn in proportion to its weight."""

    weight: int
    questions: tuple[str, ...]


Draws = tuple[tuple[Lot, ...], ...]
Chosen = list[tuple[tuple[int, ...], float]]  # places of the features of a table, and its weight


def planned(
    schema: Schema, terms: PlanTerms, epsilon: float, people: int, seed: bytes
) -> tuple[tuple[Question, ...], Draws]:
    """The questions of a study, and the draws in each of which every person gets one lot."""
    if not 0 < epsilon < math.inf:
        raise UsageError(f"a person's epsilon is a number above 0, not {epsilon:g}.")
    _check_terms(terms)
    schema.require_complete()
    edges = {name: search.edges for name, search in searches(schema, terms.bins).items()}
    sizes = Discrete(with_edges(schema, edges)).sizes  # wherever the edges will be: as many
    draft = _Draft(schema.features, sizes, terms, people)
    if terms.kind == "anonml":
        return _anonml(draft, epsilon, seed)
    return _one_question(draft, epsilon)


@dataclass(frozen=True, slots=True)
class _Draft:
    """What all questions of a plan are written from."""

    features: tuple[Column, ...]
    sizes: tuple[int, ...]
    terms: PlanTerms
    people: int

    def searched(self, used: Iterable[int]) -> list[int]:
        """Those of the used features for whose edges people must be asked."""
        bins = self.terms.bins
        return [
            place
            for place in sorted(set(used))
            if is_to_be_cut(self.features[place]) and distinct(self.features[place]) > bins
        ]

    def search(self, places: Sequence[int], epsilon: float, people: int) -> list[list[Question]]:
        """For each feature, its questions for quantiles, one for each step."""
        if not places:
            return []
        each = people // len(places)
        steps = max(
            steps_of_search(self.terms.bins, epsilon, each, distinct(self.features[place]))
            for place in places
        )
        return [[self.quantiles(place, step, epsilon) for step in range(steps)] for place in places]

    def quantiles(self, place: int, step: int, epsilon: float) -> Question:
        return Question(
            name=f"quantiles-{place}-{step}",
            stage=step,
            kind="quantiles",
            features=(self.features[place].name,),
            sizes=(self.sizes[place],),
            epsilon=epsilon,
            step=step,
        )

    def table(self, name: str, places: Sequence[int], stage: int, epsilon: float) -> Question:
        names = tuple(self.features[place].name for place in places)
        sizes = (*(self.sizes[place] for place in places), 2)
        if math.prod(sizes) > MOST_CELLS:
            raise UsageError(
                f"a table of {', '.join(names)} and the label has {math.prod(sizes)} cells; at "
                f"most {MOST_CELLS} are allowed. Join categories, or ask for fewer at a time."
            )
        return Question(name, stage, "table", names, sizes, epsilon)


# ── one question for each person ─────────────────────────────────────────────────────────────────


def _one_question(draft: _Draft, epsilon: float) -> tuple[tuple[Question, ...], Draws]:
    to_search = draft.searched(range(len(draft.features)))
    share = Fraction(draft.terms.search) if to_search else Fraction(0)
    chosen = _chosen(draft, epsilon, int(draft.people * (1 - share)))
    used = draft.searched(place for places, _ in chosen for place in places)
    share = share if used else Fraction(0)
    search = draft.search(used, epsilon, int(draft.people * share))
    stage = len(search[0]) if search else 0
    tables = [
        draft.table(f"table-{'-'.join(map(str, places))}", places, stage, epsilon)
        for places, _ in chosen
    ]
    quantiles = [question for questions in search for question in questions]
    asked = list(zip(tables, (weight for _, weight in chosen), strict=True))
    if draft.terms.public_coins:
        asked = [half for table, weight in asked for half in _halved(table, weight)]
    weights = [
        *_weights([1.0] * len(quantiles), share),
        *_weights([weight for _, weight in asked], 1 - share),
    ]
    questions = (*quantiles, *(question for question, _ in asked))
    lots = (Lot(w, (q.name,)) for w, q in zip(weights, questions, strict=True))
    return questions, (tuple(lots),)


def _halved(table: Question, weight: float) -> list[tuple[Question, float]]:
    """The questions about a table's halves, and their parts of its weight."""
    if table.cells > MOST_HALVED:
        raise UsageError(
            f"plan: with public_coins a table has at most {MOST_HALVED} cells, since each of its "
            f"halves is a question of its own; {table.name} has {table.cells}. Join categories, "
            "ask for fewer features at a time, or leave public_coins out."
        )
    parts = table.halved()
    total = sum(weight_of(part.half) for part in parts)
    return [(part, weight * weight_of(part.half) / total) for part in parts]


def _weights(parts: Sequence[float], share: Fraction) -> list[int]:
    """Whole numbers in proportion to the parts, which together have this share of all."""
    total = sum(map(Fraction, parts))
    return [max(1, round(WHOLE * share * Fraction(part) / total)) for part in parts]


def _chosen(draft: _Draft, epsilon: float, people: int) -> Chosen:
    """The author's tables, the larger ones asked of more people; or what the public rule says."""
    if not draft.terms.tables:
        pairs = not draft.terms.public_coins
        return default_tables(draft.sizes, epsilon, people, pairs)
    places = {column.name: place for place, column in enumerate(draft.features)}
    found = [tuple(places.get(name, -1) for name in names) for names in draft.terms.tables]
    if any(min(table, default=-1) < 0 for table in found) or _repeated(found):
        raise UsageError(
            "plan, tables: each is one or more different features of the schema, and no two are of "
            f"the same. The features are: {', '.join(places)}."
        )
    # m cells asked of n people have the variance m/n together: Σ mᵢ/nᵢ is least for nᵢ ∝ √mᵢ.
    cells = (2 * math.prod(draft.sizes[place] for place in table) for table in found)
    return [(table, math.sqrt(m)) for table, m in zip(found, cells, strict=True)]


def _repeated(tables: Sequence[tuple[int, ...]]) -> bool:
    sets = [frozenset(table) for table in tables]
    return len(set(sets)) < len(sets) or any(
        len(found) < len(table) for found, table in zip(sets, tables, strict=True)
    )


# ── AnonML's plan ────────────────────────────────────────────────────────────────────────────────


def _anonml(draft: _Draft, epsilon: float, seed: bytes) -> tuple[tuple[Question, ...], Draws]:
    """k_p partitions of k_h disjoint subsets of k_s features; epsilon divided among the answers."""
    partitions, subsets, size = _numbers_of_anonml(draft)
    tables = [
        [tuple(int(f) for f in drawn[i * size : (i + 1) * size]) for i in range(subsets)]
        for drawn in (
            order(seed, f"partition {number}", len(draft.features)) for number in range(partitions)
        )
    ]
    used = draft.searched(f for partition in tables for table in partition for f in table)
    each = _divided(epsilon, subsets + bool(used))
    search = draft.search(used, each, draft.people)
    stage = len(search[0]) if search else 0
    asked = [
        [
            draft.table(f"partition-{p}-table-{t}", table, stage, each)
            for t, table in enumerate(partition)
        ]
        for p, partition in enumerate(tables)
    ]
    quantiles = [question for questions in search for question in questions]
    first = tuple(Lot(1, (question.name,)) for question in quantiles)
    second = tuple(Lot(1, tuple(question.name for question in group)) for group in asked)
    questions = (*quantiles, *(question for group in asked for question in group))
    return questions, (first, second) if first else (second,)


def _numbers_of_anonml(draft: _Draft) -> tuple[int, int, int]:
    terms, features = draft.terms, len(draft.features)
    numbers = (terms.partitions or 0, terms.subsets or 0, terms.size or 0)
    if min(numbers) < 1 or numbers[1] * numbers[2] > features:
        raise UsageError(
            "plan: anonml needs partitions, subsets and size of at least 1, and subsets × size at "
            f"most the {features} features of the schema; given were {numbers[0]}, {numbers[1]} "
            f"and {numbers[2]}."
        )
    return numbers


def _divided(epsilon: float, answers: int) -> float:
    """An equal part of epsilon, rounded down, so that all parts never exceed it."""
    part = epsilon / answers
    while Fraction(part) * answers > Fraction(epsilon):
        part = math.nextafter(part, 0.0)
    return part


# ── what cannot be planned ───────────────────────────────────────────────────────────────────────


def _check_terms(terms: PlanTerms) -> None:
    if terms.bins < 2:
        raise UsageError(f"plan: bins must be 2 or more, not {terms.bins}.")
    if not 0 < terms.search < 1:
        raise UsageError(f"plan: search is a share of people between 0 and 1, not {terms.search}.")
    if terms.kind == "anonml" and (terms.tables or terms.public_coins):
        raise UsageError(
            'plan: tables and public_coins are for kind = "one-question"; anonml draws its own.'
        )
    if terms.kind == "one-question" and any((terms.partitions, terms.subsets, terms.size)):
        raise UsageError('plan: partitions, subsets and size are for kind = "anonml".')
