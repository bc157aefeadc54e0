"""Tables asked for by halves: right within their error bars, whatever the number of cells."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.channels.crowd.binning import cells
from tacit.channels.crowd.halves import Halved, halves_of, in_half, order_of
from tacit.channels.crowd.learning import collected, learn
from tacit.channels.crowd.plan import Plan, PlanTerms
from tacit.channels.crowd.questions import Question
from tacit.channels.crowd.tables import Table, estimated_tables
from tacit.crypto.prg import SeededRandomness
from tacit.data.batch import Batch
from tacit.data.schema import Column, Schema
from tacit.errors import UsageError
from tacit.programs.tabulated_bayes import TabulatedBayes

SEED = bytes(range(32))
COINS = PlanTerms(public_coins=True)
SCHEMA = Schema(
    columns=(
        Column(name="group", type="category", categories=("a", "b", "c")),
        Column(name="flag", type="boolean"),
        Column(name="label", type="boolean", role="label"),
    )
)


def people(number: int) -> Batch:
    """Group c and the flag make the label likelier."""
    rng = np.random.default_rng(3)
    group, flag = rng.integers(0, 3, number), rng.integers(0, 2, number)
    label = rng.random(number) < 0.2 + 0.4 * (group == 2) + 0.2 * flag
    columns = {"group": group, "flag": flag, "label": label}
    return Batch(SCHEMA, {k: v.astype(np.int32) for k, v in columns.items()}, number)


def table(epsilon: float = 1.0) -> Question:
    return Question("table-0", 0, "table", ("group",), (3, 2), epsilon)


@given(st.integers(2, 64))
def test_halves_tell_all_cells_apart(number: int) -> None:
    """From the exact shares of every half, the exact counts of every cell."""
    rng = np.random.default_rng(number)
    truth = rng.multinomial(1000, rng.dirichlet(np.ones(number)))
    inside = {
        half: float(truth @ in_half(np.arange(number), half))
        for half in range(1, halves_of(number) + 1)
    }
    asked = 50
    found = Halved.estimated(number, {h: (n / 1000 * asked, asked) for h, n in inside.items()}, 0.5)
    assert order_of(number) >= number > order_of(number) // 2
    assert np.allclose(found.counts / (asked * len(inside)), truth / 1000)


def test_a_half_is_answered_with_yes_or_no() -> None:
    batch = people(40)
    whole = cells(table(), SCHEMA, {}, batch)
    for half in table().halved():
        assert half.randomiser.m == 2
        assert half.table == table()
        assert (cells(half, SCHEMA, {}, batch) == in_half(whole, half.half)).all()


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_errors_are_what_they_say(epsilon: float) -> None:
    """600 standardised errors have mean 0 and mean square 1, within 5 standard deviations: the
    truth is that of all people of whom the lots choose, by far more than are asked."""
    shares = np.array([0.3, 0.0, 0.35, 0.05, 0.1, 0.2])
    halves, each = table(epsilon).halved(), 300
    scores = []
    for run in range(100):
        rng, noise = np.random.default_rng(run), SeededRandomness(run)
        answers = {}
        for half in halves:
            drawn = in_half(rng.choice(6, each, p=shares), half.half)
            answers[half] = half.randomiser.release(drawn, noise)
        (found,) = estimated_tables(answers)
        assert found.reports == each * len(halves)
        scores.append((found.counts - shares.reshape(3, 2) * found.reports) / found.errors)
    assert abs(np.mean(scores)) < 0.2
    assert 0.7 < np.mean(np.square(scores)) < 1.3


def test_a_half_that_nobody_answered_says_nothing() -> None:
    halves = table().halved()
    answers = {h: np.zeros((0, 1), dtype=np.uint8) for h in halves}
    assert not estimated_tables(answers)[0].counts.any()
    answers[halves[0]] = np.array([[1]] * 4, dtype=np.uint8)
    found = estimated_tables(answers)[0]
    assert found.reports == 4
    assert np.isfinite(found.errors).all()
    with pytest.raises(UsageError, match="estimated_tables"):
        Table.estimated(halves[0], answers[halves[0]])


class TestPlan:
    def test_every_half_is_a_question(self) -> None:
        plan = Plan.drawn_up(SCHEMA, COINS, 1.0, 1000, SEED)
        assert len(plan.questions) == halves_of(6) + halves_of(4)
        assert plan.person_epsilon == 1.0
        expected = plan.expected(1000)
        assert sum(expected.values()) == 1000
        # How features and label go together is asked of twice as many as the rest.
        assert expected["table-0-half-3"] == pytest.approx(2 * expected["table-0-half-2"], abs=2)

    def test_a_model_comes_out(self) -> None:
        batch = people(6000)
        plan = Plan.drawn_up(SCHEMA, COINS, 3.0, batch.rows, SEED)
        tables, schema = collected(plan, 4, batch, SEED, SeededRandomness("halves"))
        model = learn(TabulatedBayes(), schema, tables)
        assert [t.question.name for t in tables] == ["table-0", "table-1"]
        weights = model.coef[0]
        assert weights[2] > max(weights[0], weights[1])  # group c
        assert weights[3] > 0  # the flag

    def test_what_does_not_go_together(self) -> None:
        anonml = PlanTerms(kind="anonml", partitions=1, subsets=1, size=1, public_coins=True)
        with pytest.raises(UsageError, match="one-question"):
            Plan.drawn_up(SCHEMA, anonml, 1.0, 1000, SEED)
        many = Column(name="many", type="category", categories=tuple(map(str, range(40))))
        wide = Schema(columns=(many, *SCHEMA.columns[1:]))
        with pytest.raises(UsageError, match="at most 64 cells"):
            Plan.drawn_up(wide, COINS, 1.0, 100_000, SEED)
        with pytest.raises(UsageError, match="no half 8"):
            Question("t", 0, "table", ("group",), (3, 2), 1.0, half=8)
