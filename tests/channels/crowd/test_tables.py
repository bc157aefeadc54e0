"""Estimated tables: right within their error bars, and closer to the truth once consistent."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from tacit.channels.crowd.questions import Question
from tacit.channels.crowd.tables import Table, consistent, label_share
from tacit.crypto.prg import SeededRandomness
from tacit.data.schema import Column, Schema
from tacit.errors import UsageError

PEOPLE = 2_000
# Shares of the cells of age (3 codes) and label: some are empty, as in life.
TRUTH = np.array([[0.3, 0.0], [0.35, 0.05], [0.1, 0.2]])


def question(name: str = "t", sizes: tuple[int, ...] = (3, 2), epsilon: float = 1.0) -> Question:
    features = tuple(f"f{i}" for i in range(len(sizes) - 1))
    return Question(name, 0, "table", features, sizes, epsilon)


def asked(run: int, epsilon: float = 1.0, people: int = PEOPLE) -> tuple[Table, NDArray[np.int64]]:
    """A table, and the true counts of those who answered."""
    drawn = np.random.default_rng(run).multinomial(people, TRUTH.ravel())
    it = question(epsilon=epsilon)
    reports = it.randomiser.release(np.repeat(np.arange(6), drawn), SeededRandomness(run))
    return Table.estimated(it, reports), drawn.reshape(3, 2)


class TestEstimated:
    @pytest.mark.parametrize("epsilon", [0.5, 3.0])
    def test_errors_are_what_they_say(self, epsilon: float) -> None:
        """600 squared standardised errors have mean 1, within 5 standard deviations of it."""
        squares, signed = [], []
        for run in range(100):
            table, truth = asked(run, epsilon)
            assert table.reports == PEOPLE
            score = (table.counts - truth) / table.errors
            squares.append(score**2)
            signed.append(score)
        assert 0.7 < np.mean(squares) < 1.3
        assert abs(np.mean(signed)) < 0.2

    def test_nobody_answered(self) -> None:
        it = question()
        empty = np.zeros((0, it.randomiser.report_bytes), dtype=np.uint8)
        table = Table.estimated(it, empty)
        assert table.reports == 0
        assert not table.counts.any()
        assert consistent([table]) == [table]

    def test_quantiles_make_no_table(self) -> None:
        it = Question("q", 0, "quantiles", ("age",), (4,), 1.0)
        with pytest.raises(UsageError, match="quantiles"):
            Table.estimated(it, np.zeros((1, 1), dtype=np.uint8))

    def test_places_of_features_follow_the_schema(self) -> None:
        names = ("other", "f1", "f0")
        columns = [Column(name=n, type="category", categories=("a", "b")) for n in names]
        it = question(sizes=(2, 2, 2))
        table = Table(it, np.ones((2, 2, 2)), np.full((2, 2, 2), 3.0), 8)
        found = table.marginal(Schema(columns=tuple(columns)))
        assert (found.features, found.people, found.variance) == ((2, 1), 8, 9.0)


class TestConsistent:
    def test_closer_to_the_truth(self) -> None:
        """In every run: all four tables together, summed absolute errors."""
        for run in range(20):
            both = [asked(100 * run + i, epsilon=0.5) for i in range(4)]
            mended = consistent([table for table, _ in both])
            before = sum(float(np.abs(table.counts - truth).sum()) for table, truth in both)
            after = sum(
                float(np.abs(table.counts - truth).sum())
                for table, (_, truth) in zip(mended, both, strict=True)
            )
            assert after < before

    def test_one_label_for_all_is_closer_than_each_its_own(self) -> None:
        shares, own = [], []
        for run in range(20):
            tables = [asked(100 * run + i, epsilon=0.5)[0] for i in range(10)]
            shares.append(label_share(tables) - 0.25)
            own.append(label_share(tables[:1]) - 0.25)
        assert np.mean(np.square(shares)) < np.mean(np.square(own)) / 4

    @given(
        st.lists(
            st.tuples(
                arrays.arrays(np.float64, (3, 2), elements=st.floats(-500, 1500)),
                st.floats(0.0, 300.0),
                st.integers(1, 3000),
            ),
            min_size=1,
            max_size=4,
        )
    )
    def test_what_always_holds(self, drawn: list[tuple[NDArray[np.float64], float, int]]) -> None:
        tables = [
            Table(question(), counts, np.full((3, 2), error), people)
            for counts, error, people in drawn
        ]
        share = label_share(tables)
        assert 0.0 <= share <= 1.0
        for table in consistent(tables):
            assert (table.counts >= 0).all()
            assert table.counts.sum() == pytest.approx(table.reports)
            ones = table.counts[:, 1].sum() / table.reports
            assert ones == pytest.approx(share, abs=1e-9)

    def test_nearest_in_the_weighted_sense(self) -> None:
        """Against the definition: no feasible step from the result makes the distance smaller."""
        rng = np.random.default_rng(5)
        for _ in range(50):
            table = Table(question(), rng.normal(100, 120, (3, 2)), rng.uniform(1, 80, (3, 2)), 600)
            if not 0 < label_share([table]) < 1:
                continue  # all counts of a label are 0 then
            found = consistent([table])[0].counts
            weight = 1 / (table.errors**2 + np.maximum(table.counts, 1.0))
            slope = 2 * weight * (found - table.counts)  # of the squared distance
            for label in (0, 1):
                inside = found[:, label] > 1e-9
                level = slope[inside, label]
                assert np.allclose(level, level[0], atol=1e-6)
                assert (slope[~inside, label] >= level[0] - 1e-6).all()

    def test_without_noise_counts_move_in_proportion(self) -> None:
        one = Table(question(), np.array([[50.0, 10], [20, 10], [10, 0]]), np.zeros((3, 2)), 100)
        two = Table(question(), np.array([[30.0, 20], [30, 10], [0, 10]]), np.zeros((3, 2)), 100)
        mended = consistent([one, two])[0].counts
        assert np.allclose(mended[:, 0], np.array([50.0, 20, 10]) * 70 / 80, atol=0.5)
        assert mended[0, 1] == pytest.approx(mended[1, 1])
