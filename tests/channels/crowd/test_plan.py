"""Plans: everybody draws one lot of each draw, nobody pays more than was promised, and what cannot
be planned is refused."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tacit.channels.crowd.plan import Lot, Plan, PlanTerms
from tacit.channels.crowd.questions import Question
from tacit.data.schema import Schema
from tacit.errors import SchemaError, UsageError

SEED = hashlib.sha256(b"proposal").digest()
LOTS = hashlib.sha256(b"joint seed").digest()
FALSE_ALARM = 1e-6
PEOPLE = 5_000

DEFAULT = PlanTerms()
ANONML = PlanTerms(kind="anonml", bins=2, partitions=4, subsets=2, size=2)


def schema(**columns: dict[str, Any]) -> Schema:
    label = {"type": "boolean", "role": "label"}
    return Schema.from_dict({"columns": {**columns, "label": label}})


COLUMNS: dict[str, dict[str, Any]] = {
    "age": {"type": "integer", "bounds": [0, 100]},
    "income": {"type": "number", "bounds": [0, 1e5], "when_missing": "category"},
    "hours": {"type": "integer", "edges": [35, 41]},
    "colour": {"type": "category", "categories": ["red", "green", "blue"]},
    "smokes": {"type": "boolean", "when_missing": "category"},
    "children": {"type": "integer", "bounds": [0, 2]},
}
PERSON = schema(**COLUMNS)
DISCRETE = schema(**{name: COLUMNS[name] for name in ("hours", "colour", "smokes", "children")})


def plan(terms: PlanTerms = DEFAULT, of: Schema = PERSON, epsilon: float = 1.0) -> Plan:
    return Plan.drawn_up(of, terms, epsilon, PEOPLE, SEED)


PLANS = {"one question": plan(), "anonml": plan(ANONML), "without numbers": plan(of=DISCRETE)}


# ── which questions ──────────────────────────────────────────────────────────────────────────────


def test_codes_of_every_kind_of_column() -> None:
    tables = tuple((name,) for name in COLUMNS)
    sizes = {q.features[0]: q.sizes for q in plan(PlanTerms(tables=tables)).questions[-6:]}
    assert sizes == {
        "age": (4, 2),
        "income": (5, 2),  # four bins, and missing
        "hours": (3, 2),
        "colour": (3, 2),
        "smokes": (3, 2),
        "children": (3, 2),  # three values make three bins, not four
    }


def test_numbers_are_searched_before_tables_are_asked() -> None:
    made = PLANS["one question"]
    searched = [q for q in made.questions if q.kind == "quantiles"]
    assert {q.features for q in searched} == {
        ("age",),
        ("income",),
    }  # not children: edges are known
    assert all(q.stage == q.step for q in searched)
    assert {q.sizes for q in searched} == {(4,), (5,)}
    assert {q.stage for q in made.questions if q.kind == "table"} == {made.stages - 1}
    assert [len(made.in_stage(stage)) for stage in range(made.stages - 1)] == [2] * 4
    assert PLANS["without numbers"].stages == 1


def test_only_numbers_that_are_asked_for_are_searched() -> None:
    made = plan(PlanTerms(tables=(("age", "colour"), ("smokes",))))
    assert {q.features for q in made.questions if q.kind == "quantiles"} == {("age",)}
    assert [q.sizes for q in made.questions[-2:]] == [(4, 3, 2), (3, 2)]
    alone = plan(PlanTerms(tables=(("colour",), ("smokes",))))
    assert alone.stages == 1
    assert sum(alone.expected(PEOPLE).values()) == PEOPLE


def test_search_is_the_share_of_people_who_are_asked_for_quantiles() -> None:
    made = plan(PlanTerms(search=0.25))
    counts = made.expected(PEOPLE)
    searching = sum(counts[q.name] for q in made.questions if q.kind == "quantiles")
    assert searching == pytest.approx(0.25 * PEOPLE, abs=1)


def test_the_authors_tables_get_people_by_the_root_of_their_cells() -> None:
    made = plan(PlanTerms(tables=(("hours", "colour"), ("smokes",))), of=DISCRETE)
    large, small = made.expected(PEOPLE).values()
    assert large / small == pytest.approx(math.sqrt(18 / 6), rel=0.01)


def test_anonml_has_partitions_of_disjoint_subsets() -> None:
    made = PLANS["anonml"]
    quantiles, partitions = made.draws
    assert len(partitions) == 4
    for lot in partitions:
        subsets = [made.question(name).features for name in lot.questions]
        assert [len(s) for s in subsets] == [2, 2]
        assert len({feature for s in subsets for feature in s}) == 4
    assert all(len(lot.questions) == 1 for lot in quantiles)
    other = Plan.drawn_up(PERSON, ANONML, 1.0, PEOPLE, LOTS)
    assert other.questions != made.questions  # the subsets follow from the seed
    assert [q.name for q in other.questions if q.kind == "table"] == [
        q.name for q in made.questions if q.kind == "table"
    ]


@pytest.mark.statistical
def test_anonml_draws_features_uniformly() -> None:
    terms = PlanTerms(kind="anonml", partitions=1, subsets=1, size=1)
    seeds = (hashlib.sha256(bytes([n % 256, n // 256])).digest() for n in range(1_200))
    drawn = [Plan.drawn_up(DISCRETE, terms, 1.0, 50, seed).questions[0].features for seed in seeds]
    counts = Counter(drawn)
    assert len(counts) == 4
    assert stats.chisquare(list(counts.values())).pvalue > FALSE_ALARM


@pytest.mark.parametrize("name", PLANS)
def test_names_are_different_and_plain(name: str) -> None:
    names = PLANS[name].names
    assert len(set(names)) == len(names)
    assert all(set(n) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") for n in names)
    assert [PLANS[name].question(n).name for n in names] == list(names)
    with pytest.raises(UsageError, match="no question 'other'"):
        PLANS[name].question("other")


# ── of whom ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", PLANS)
def test_everyone_has_one_lot_of_each_draw(name: str) -> None:
    made, people = PLANS[name], 1_000
    drawn = made.everyone(people, LOTS)
    assert drawn.shape == (len(made.draws), people)
    counted: Counter[str] = Counter()
    for place in range(0, people, 50):
        asked = made.asked(place, people, LOTS)
        lots = [draw[n].questions for draw, n in zip(made.draws, drawn[:, place], strict=True)]
        assert sorted(q.name for q in asked) == sorted(n for lot in lots for n in lot)
        assert [q.stage for q in asked] == sorted(q.stage for q in asked)
    for draw, lots_drawn in zip(made.draws, drawn, strict=True):
        for number, size in enumerate(np.bincount(lots_drawn, minlength=len(draw))):
            counted.update(dict.fromkeys(draw[number].questions, int(size)))
    assert counted == made.expected(people)
    with pytest.raises(UsageError, match="places 0 to 999, not 1000"):
        made.asked(people, people, LOTS)


@pytest.mark.parametrize("name", PLANS)
def test_nobody_has_more_answers_than_packets(name: str) -> None:
    made = PLANS[name]
    most = [0] * made.stages
    for place in range(200):
        stages = Counter(q.stage for q in made.asked(place, 200, LOTS))
        most = [max(a, stages[stage]) for stage, a in enumerate(most)]
    assert most == [made.packets(stage) for stage in range(made.stages)]


def test_packets_of_each_plan() -> None:
    one, anonml = PLANS["one question"], PLANS["anonml"]
    assert {one.packets(stage) for stage in range(one.stages)} == {1}
    assert [anonml.packets(stage) for stage in range(anonml.stages)][-2:] == [1, 2]


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=30), st.integers(0, 10_000))
def test_people_are_divided_by_weight(weights: list[int], people: int) -> None:
    questions = tuple(
        Question(f"table-{i}", 0, "table", ("a",), (2, 2), 1.0) for i in range(len(weights))
    )
    draw = tuple(Lot(w, (q.name,)) for w, q in zip(weights, questions, strict=True))
    counts = list(Plan(questions, (draw,)).expected(people).values())
    assert sum(counts) == people
    for count, weight in zip(counts, weights, strict=True):
        assert abs(count - Fraction(people * weight, sum(weights))) < 1


@pytest.mark.statistical
def test_lots_do_not_favour_places_and_draws_are_independent() -> None:
    people = 20_000
    quantiles, partitions = PLANS["anonml"].everyone(people, LOTS)
    both = np.zeros((quantiles.max() + 1, partitions.max() + 1))
    np.add.at(both, (quantiles, partitions), 1)
    assert stats.chi2_contingency(both).pvalue > FALSE_ALARM
    early = np.stack([np.bincount(half, minlength=4) for half in np.split(partitions, 2)])
    assert stats.chi2_contingency(early).pvalue > FALSE_ALARM
    # One draw for both would be caught.
    twice = np.zeros((4, 4))
    np.add.at(twice, (partitions, partitions), 1)
    assert stats.chi2_contingency(twice).pvalue < FALSE_ALARM


def test_each_person_is_asked_once() -> None:
    """One question in all; in AnonML's plan one for quantiles, and a partition's tables."""
    for place in range(100):
        assert len(PLANS["one question"].asked(place, 100, LOTS)) == 1
        kinds = [question.kind for question in PLANS["anonml"].asked(place, 100, LOTS)]
        assert kinds == ["quantiles", "table", "table"]


# ── at which cost ────────────────────────────────────────────────────────────────────────────────


@given(st.floats(1e-3, 20.0), st.integers(1, 3), st.booleans())
def test_nobody_pays_more_than_promised(epsilon: float, subsets: int, numbers: bool) -> None:
    terms = PlanTerms(kind="anonml", bins=2, partitions=3, subsets=subsets, size=1)
    made = Plan.drawn_up(PERSON if numbers else DISCRETE, terms, epsilon, PEOPLE, SEED)
    for place in range(0, 300, 10):
        paid = sum(Fraction(q.epsilon) for q in made.asked(place, 300, LOTS))
        assert paid <= Fraction(made.person_epsilon) <= Fraction(epsilon)
    assert made.person_epsilon == pytest.approx(epsilon, rel=1e-12)


def test_one_question_has_the_whole_epsilon() -> None:
    made = PLANS["one question"]
    assert {q.epsilon for q in made.questions} == {1.0}
    assert made.person_epsilon == made.attribute_epsilon == 1.0


def test_the_thesis_figure_is_the_maximum_over_attributes() -> None:
    """Three answers of a third each: two name the label, two at most name any one feature."""
    made = PLANS["anonml"]
    assert made.person_epsilon == pytest.approx(1.0)
    assert made.attribute_epsilon == pytest.approx(2 / 3)
    one_table = plan(PlanTerms(kind="anonml", bins=2, partitions=4, subsets=1, size=6))
    assert one_table.attribute_epsilon == pytest.approx(1.0)  # its median and its table
    many = plan(PlanTerms(kind="anonml", partitions=4, subsets=3, size=1), of=DISCRETE)
    assert many.attribute_epsilon == pytest.approx(1.0)  # the label is in every table


# ── what cannot be planned ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("terms", "problem"),
    [
        (PlanTerms(bins=1), "bins must be 2 or more"),
        (PlanTerms(search=0.0), "between 0 and 1"),
        (PlanTerms(search=1.0), "between 0 and 1"),
        (PlanTerms(search=math.nan), "between 0 and 1"),
        (PlanTerms(partitions=3), "are for kind"),
        (PlanTerms(tables=(("age", "age"),)), "different features"),
        (PlanTerms(tables=(("age",), ("age",))), "no two are of the same"),
        (PlanTerms(tables=(("weight",),)), "The features are: age, income"),
        (PlanTerms(tables=((),)), "one or more"),
        (PlanTerms(tables=(("label",),)), "features of the schema"),
        (PlanTerms(tables=(tuple(COLUMNS),), bins=10), "17820 cells; at most 1024"),
        (PlanTerms(kind="anonml"), "partitions, subsets and size of at least 1"),
        (PlanTerms(kind="anonml", partitions=2, subsets=4, size=2), "at most the 6 features"),
        (PlanTerms(kind="anonml", partitions=2, subsets=-1, size=-2), "at least 1"),
        (PlanTerms(kind="anonml", tables=(("age",),)), "anonml draws its own"),
        (PlanTerms(kind="anonml", partitions=3_000, subsets=1, size=1), "too few for"),
    ],
)
def test_impossible_terms_are_refused(terms: PlanTerms, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        plan(terms)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_impossible_epsilons_are_refused(epsilon: float) -> None:
    with pytest.raises(UsageError, match="a number above 0"):
        plan(epsilon=epsilon)


def test_a_group_too_small_for_its_questions_is_refused() -> None:
    with pytest.raises(UsageError, match=r"20 people are too few for .* Wait for a larger group"):
        Plan.drawn_up(PERSON, PlanTerms(), 1.0, 20, SEED)
    with pytest.raises(UsageError, match="0 people are too few"):
        PLANS["one question"].require(0)


@pytest.mark.parametrize(
    "label",
    [
        {"type": "category", "role": "label", "categories": ["a", "b", "c"]},
        {"type": "number", "role": "label", "bounds": [0, 1]},
        {"type": "boolean"},
    ],
)
def test_a_label_has_two_values(label: dict[str, Any]) -> None:
    odd = Schema.from_dict({"columns": {"colour": COLUMNS["colour"], "y": label}})
    with pytest.raises(SchemaError, match="two values"):
        plan(of=odd)


def test_an_unfinished_schema_is_refused() -> None:
    with pytest.raises(SchemaError, match="TODO"):
        plan(of=schema(age={"type": "number", "bounds": "TODO"}))


def test_a_slip_in_the_table_of_a_proposal_is_noticed() -> None:
    with pytest.raises(msgspec.ValidationError, match="partition"):
        msgspec.convert({"kind": "anonml", "partition": 3}, PlanTerms)
    read = msgspec.convert({"tables": [["age", "colour"], ["smokes"]]}, PlanTerms)
    assert read == PlanTerms(tables=(("age", "colour"), ("smokes",)))
