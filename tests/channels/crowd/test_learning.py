"""A whole study in memory: plan, lots, answers under noise, tables, model."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.channels.crowd.learning import collected, learn
from tacit.channels.crowd.plan import Plan, PlanTerms
from tacit.channels.crowd.tables import Table
from tacit.crypto.prg import SeededRandomness
from tacit.data.batch import Batch
from tacit.data.discrete import Discrete
from tacit.data.schema import Column, Schema
from tacit.errors import UsageError
from tacit.programs.logistic import Logistic
from tacit.programs.model_file import model_bytes, model_from_bytes
from tacit.programs.partition_ensemble import PartitionEnsemble
from tacit.programs.tabulated import Tabulated
from tacit.programs.tabulated_bayes import TabulatedBayes

SEED = bytes(range(32))
PEOPLE = 12_000
SCHEMA = Schema(
    columns=(
        Column(name="hours", type="integer", bounds=(0, 99)),
        Column(name="group", type="category", categories=("a", "b", "c"), when_missing="category"),
        Column(name="flag", type="boolean"),
        Column(name="label", type="boolean", role="label"),
    )
)
ANONML = PlanTerms(kind="anonml", bins=2, partitions=3, subsets=2, size=1)


def people() -> Batch:
    """Many hours, group c and the flag each make the label likelier; median hours are 30."""
    rng = np.random.default_rng(1)
    hours = rng.integers(0, 61, PEOPLE)
    group = rng.integers(0, 4, PEOPLE)
    flag = rng.integers(0, 2, PEOPLE)
    odds = (hours - 30) / 10 + (group == 2) + flag - 1
    label = rng.random(PEOPLE) < 1 / (1 + np.exp(-odds))
    columns = {
        "hours": hours.astype(np.float64),
        "group": group.astype(np.int32),
        "flag": flag.astype(np.int32),
        "label": label.astype(np.int32),
    }
    return Batch(SCHEMA, columns, PEOPLE)


def study(terms: PlanTerms, epsilon: float) -> tuple[list[Table], Schema]:
    plan = Plan.drawn_up(SCHEMA, terms, epsilon, PEOPLE, SEED)
    return collected(plan, terms.bins, people(), SEED, SeededRandomness("study"))


@pytest.mark.parametrize(
    ("terms", "learner", "least"),
    [
        (PlanTerms(), TabulatedBayes(), 0.75),
        (ANONML, PartitionEnsemble(), 0.68),
    ],
)
def test_a_model_comes_out(terms: PlanTerms, learner: Tabulated, least: float) -> None:
    tables, schema = study(terms, 4.0)
    model = learn(learner, schema, tables)
    saved = model_from_bytes(model_bytes(model, learner, schema))
    batch = people()
    known = Batch(schema, batch.columns, batch.rows)
    said = saved.predict(saved.encoder.encode(known).X)
    assert said is not None
    assert np.mean(said.values == Discrete(schema).labels(known)) > least


def test_edges_are_found_on_the_way() -> None:
    _, schema = study(ANONML, 6.0)
    (edge,) = schema.column("hours").edges or ()
    assert 25 <= edge <= 36
    assert schema.column("hours").bounds == (0, 99)


def test_everyone_answers_as_often_as_the_plan_says() -> None:
    for terms in (PlanTerms(), ANONML):
        plan = Plan.drawn_up(SCHEMA, terms, 1.0, PEOPLE, SEED)
        tables, _ = study(terms, 1.0)
        expected = plan.expected(PEOPLE)
        assert {t.question.name for t in tables} == {
            q.name for q in plan.questions if q.kind == "table"
        }
        assert all(table.reports == expected[table.question.name] for table in tables)


def test_tables_are_right_within_their_errors() -> None:
    """Counts of a code, over all people, against what each table estimates: 5 errors at the most,
    with what the drawing of lots adds."""
    tables, schema = study(PlanTerms(), 4.0)
    batch = people()
    known = Batch(schema, batch.columns, batch.rows)
    discrete = Discrete(schema)
    codes = np.column_stack([discrete.codes(known), discrete.labels(known)])
    names = [*(column.name for column in schema.features), ""]
    for table in tables:
        places = [names.index(name) for name in (*table.question.features, "")]
        cells = np.ravel_multi_index(codes[:, places].T, table.question.sizes)
        share = np.bincount(cells, minlength=table.question.cells) / PEOPLE
        lots = table.reports * share * (1 - share)
        off = table.counts.ravel() - table.reports * share
        assert (np.abs(off) < 5 * np.sqrt(table.errors.ravel() ** 2 + lots) + 1e-9).all()


def test_the_same_seeds_give_the_same_tables() -> None:
    one, two = study(PlanTerms(), 1.0)[0], study(PlanTerms(), 1.0)[0]
    assert all(np.array_equal(a.counts, b.counts) for a, b in zip(one, two, strict=True))


def test_learners_of_records_are_refused() -> None:
    tables, schema = study(PlanTerms(), 1.0)
    with pytest.raises(UsageError, match="tabulated-bayes"):
        learn(Logistic(), schema, tables)
