"""What liars can do: against every report that is accepted, and every choice that they have."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import hypergeom

from tacit.channels.crowd.halves import halves_of, in_half, order_of, weight_of
from tacit.channels.crowd.liars import (
    CHANCE,
    liar_weight,
    liars_among,
    liars_document,
    lies_explained,
    widened,
)
from tacit.channels.crowd.plan import Plan, PlanTerms
from tacit.channels.crowd.questions import Question
from tacit.channels.crowd.tables import Table, estimated_tables
from tacit.data.schema import Column, Schema
from tacit.privacy.mechanisms.perturbation import PQPerturbation
from tacit.privacy.mechanisms.randomisers import KINDS
from tacit.privacy.mechanisms.subset import SubsetSelection

SCHEMA = Schema(
    columns=(
        Column(name="f0", type="category", categories=tuple("abcdefgh")),
        Column(name="label", type="boolean", role="label"),
    )
)


def question(cells: int, epsilon: float) -> Question:
    return Question("table-0", 0, "table", ("f0",), (cells // 2, 2), epsilon)


@pytest.mark.parametrize("cells", [2, 4, 6, 8])
@pytest.mark.parametrize("epsilon", [0.2, 0.5, 1.0, 2.0, 4.0])
def test_no_accepted_report_weighs_more(cells: int, epsilon: float) -> None:
    """Of all reports: the most added to a cell, and to several, is exactly what is said."""
    it = question(cells, epsilon)
    assert it.randomiser.report_bytes == 1
    every = [bytes([octet]) for octet in range(256)]
    added = [it.randomiser.estimate(it.rows([r])) for r in every if it.accepts(r)]
    weight = liar_weight(it)
    assert weight.cell == pytest.approx(max(a.max() for a in added))
    assert weight.each == pytest.approx(max(np.maximum(a, 0).sum() for a in added))
    assert weight.total(3) == pytest.approx(3 * weight.each)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [2, 3, 5, 8])
def test_the_most_that_a_report_supports(kind: type, m: int) -> None:
    made = kind.calibrated(m, question(2, 1.0).promise)  # type: ignore[attr-defined]
    rows = np.arange(256, dtype=np.uint8)[:, None]
    valid = rows[made.valid(rows)]
    supported = [int(made._supporters(row[None, :]).sum()) for row in valid]
    assert made.most_supported == max(supported)


def test_figures_that_are_published() -> None:
    """Of a table of 16 cells, whole and by halves (liars.md)."""
    whole = [round(liar_weight(question(16, e)).each) for e in (0.5, 1.0, 2.0)]
    halved = [round(liar_weight(question(16, e).halved()[0]).each, 1) for e in (0.5, 1.0, 2.0)]
    assert whole == [29, 13, 4]
    assert halved == [8.4, 4.7, 3.1]


@pytest.mark.parametrize(("epsilon", "alike", "moved"), [(0.5, 20.9, 23.0), (1.0, 10.3, 8.3)])
def test_no_estimate_undoes_it(epsilon: float, alike: float, moved: float) -> None:
    """Two tables of 16 cells whose reports c liars can make alike: how far apart they may be."""
    made = question(16, epsilon).randomiser
    assert isinstance(made, SubsetSelection)
    m, s, p = made.m, made.size, float(made.hit)
    step = p / math.comb(m - 1, s - 1) - (1 - p) / math.comb(m - 1, s)
    # Half of the cells have 1/m more, the others less: ½ in total variation.
    law = sum(
        math.comb(m // 2, k) * math.comb(m // 2, s - k) * abs(2 * k - s) * step / m / 2
        for k in range(s + 1)
    )
    assert 0.5 / law == pytest.approx(alike, abs=0.05)
    assert s / float(made.hit - made.miss) / 2 == pytest.approx(moved, abs=0.05)


def test_reports_of_any_number_of_ones_are_never_asked_for() -> None:
    """Bits that are set independently would let a liar support every cell."""
    for cells, epsilon in product((2, 4, 6, 10, 16, 32, 100, 500, 1024), (0.1, 0.5, 1.0, 3.0, 8.0)):
        assert not isinstance(question(cells, epsilon).randomiser, PQPerturbation)


class TestHalves:
    def test_a_report_adds_as_much_as_is_said(self) -> None:
        """One answer more to each half in turn, among as many as the plan asks."""
        it = question(6, 1.0)
        weight, halves = liar_weight(it.halved()[0]), it.halved()
        before = {h: 4000 * weight_of(h.half) for h in halves}
        most = 0.0
        for lied in halves:
            for bit in (0, 1):
                most = max(most, float(_moved(halves, before, lied, bit).max()))
        assert most == pytest.approx(weight.cell, rel=0.001)

    def test_whatever_they_say_together(self) -> None:
        """Five liars, lots drawn 300 times, every choice of their five bits: what they add to all
        cells of their choice is below the bound in the mean."""
        cells, liars = 8, 5
        weight = liar_weight(question(cells, 1.0).halved()[0])
        contrast = float(question(2, 1.0).randomiser.hit * 2 - 1)
        halves = np.arange(1, halves_of(cells) + 1)
        weights = np.array([weight_of(int(h)) for h in halves])
        signs = np.column_stack([1 - 2 * in_half(np.arange(cells), int(h)) for h in halves])
        each = signs * weights.sum() / (weights * order_of(cells) * contrast)
        own = liars / order_of(cells)
        choices = np.array(list(product((-1, 1), repeat=liars)))
        rng = np.random.default_rng(1)
        worst = []
        for _ in range(300):
            lots = rng.choice(len(halves), liars, p=weights / weights.sum())
            worst.append(np.maximum(choices @ each[:, lots].T + own, 0).sum(axis=1).max())
        assert 0.7 * weight.total(liars) < np.mean(worst) < weight.total(liars)

    def test_many_of_them_weigh_less_than_where_they_choose(self) -> None:
        for cells, epsilon in product((6, 8, 12, 16, 32), (0.25, 0.5, 1.0)):
            whole = question(cells, epsilon)
            assert liar_weight(whole.halved()[0]).total(100) < liar_weight(whole).total(100)


def _moved(
    halves: list[Question], asked: dict[Question, int], lied: Question, bit: int
) -> NDArray[np.float64]:
    """What one more report, `bit`, about the half `lied` adds to each cell."""
    honest = {
        h: np.repeat(np.array([[0], [1]], dtype=np.uint8), n // 2, 0) for h, n in asked.items()
    }
    one = np.array([[bit]], dtype=np.uint8)
    more = {h: np.concatenate([r, one]) if h == lied else r for h, r in honest.items()}
    (before,), (after,) = estimated_tables(honest), estimated_tables(more)
    return np.asarray(after.counts - before.counts)


class TestShift:
    @pytest.mark.parametrize(("reports", "people", "liars"), [(50, 1000, 20), (300, 400, 7)])
    def test_the_lots_seldom_give_a_table_more(self, reports: int, people: int, liars: int) -> None:
        found = liars_among(reports, people, liars)
        law = hypergeom(people, liars, reports)
        assert law.sf(found) <= CHANCE < law.sf(found - 1)

    def test_no_more_than_there_are(self) -> None:
        assert liars_among(10, 10, 4) == 4
        assert liars_among(2, 1000, 900) == 2
        assert liars_among(10, 100, 0) == liars_among(0, 100, 5) == 0

    def test_error_bars_are_widened(self) -> None:
        plan = Plan.drawn_up(SCHEMA, PlanTerms(), 1.0, 400, bytes(32))
        (it,) = plan.questions
        table = Table(it, np.full((8, 2), 25.0), np.full((8, 2), 10.0), 400)
        (same,) = widened([table], plan, 400, 0)
        assert same == table
        (wide,) = widened([table], plan, 400, 6)
        assert wide.shift == pytest.approx(6 * liar_weight(it).cell)
        low, high = wide.interval(2.0)
        assert np.allclose(high - low, 2 * (20 + wide.shift))
        assert (wide.errors == table.errors).all()

    def test_the_truth_lies_within_what_liars_can_do(self) -> None:
        """Without any noise to hide behind: liars who all add to one cell reach the bound."""
        it = question(16, 1.0)
        made = it.randomiser
        assert isinstance(made, SubsetSelection)
        bits = np.zeros((7, 16), dtype=np.uint8)
        bits[:, : made.size] = 1
        added = made.estimate(np.packbits(bits, axis=1, bitorder="little"))
        assert added.max() == pytest.approx(7 * liar_weight(it).cell)
        taken = 7 * float(made.miss / (made.hit - made.miss))
        assert added.min() == pytest.approx(-taken)
        assert made.miss < Fraction(1, 2)  # so that it adds more than it takes


class TestWords:
    def test_what_is_said_before_anyone_joins(self) -> None:
        plan = Plan.drawn_up(SCHEMA, PlanTerms(), 1.0, 400, bytes(32))
        none, some = (" ".join(lies_explained(plan, liars)) for liars in (0, 5))
        assert "add 3.2 people to one combination of table-0" in none
        assert "add 12.7 people" in none
        assert "No liars are assumed" in none
        assert "At most 5 liars are assumed" in some
        assert "up to 15.9 people" in some
        assert "63.6 to all together" in some
        document = liars_document(plan, 5)
        assert document["assumed"] == 5
        assert document["weights"]["table-0"]["together"] == pytest.approx(63.6, abs=0.1)

    def test_halves(self) -> None:
        plan = Plan.drawn_up(SCHEMA, PlanTerms(public_coins=True), 1.0, 400, bytes(32))
        assert "drawn by lot" in " ".join(lies_explained(plan, 0))
        assert list(liars_document(plan, 1)["weights"]) == ["table-0"]
