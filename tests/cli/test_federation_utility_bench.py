"""`tacit bench federation-utility` at tiny sizes: its parts, its judgement, its files."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.cli import bench
from tacit.cli.main import main
from tacit.data import Schema
from tacit.errors import CheckFailed
from tacit.privacy import Promise
from tacit.privacy.bound import Norm
from tacit.programs.kmeans import KMeans


@pytest.fixture(scope="module")
def module() -> Any:
    return bench._load(bench._benchmarks()["federation_utility"])


def replacing(epsilon: float, delta: float = 0.0) -> Promise:
    return Promise(epsilon, delta, adjacency="replace")  # type: ignore[arg-type]


class TestNoise:
    @pytest.mark.parametrize("adders", [1, 2, 100])
    @pytest.mark.parametrize(("norm", "variance"), [(Norm.L1, 2.0), (Norm.L2, 1.0)])
    def test_variances_of_all_who_add_noise_sum_up(
        self, module: Any, norm: Norm, variance: float, adders: int
    ) -> None:
        drawn = module.added(norm, 3.0, adders, (200_000,), np.random.default_rng(0))
        assert np.var(drawn) == pytest.approx(variance * 9 * adders, rel=0.02)
        assert abs(np.mean(drawn)) < 5 * np.std(drawn) / math.sqrt(len(drawn))

    def test_one_laplace_has_its_shape(self, module: Any) -> None:
        """P[|x| > b ln 4] = 1/4; of a Gaussian with that variance it is 0.33."""
        drawn = module.added(Norm.L1, 3.0, 1, (200_000,), np.random.default_rng(1))
        assert np.mean(np.abs(drawn) > 3 * math.log(4)) == pytest.approx(0.25, abs=0.005)


class TestSums:
    SCHEMA = Schema.from_dict(
        {"columns": {name: {"type": "number", "bounds": [-1, 1]} for name in "ab"}}
    )
    PROMISE = replacing(1.0, 1e-6)

    def test_holders_learn_what_one_sum_learns(self, module: Any) -> None:
        X = np.random.default_rng(2).uniform(-1, 1, size=(90, 2))
        program = KMeans(2, 3)
        one = module.summed(program, (X,), self.SCHEMA, self.PROMISE, module.by_servers(2, 0), 2)
        told = (program, (X,), self.SCHEMA, self.PROMISE)
        module.check_federated(*told, (7, 2), one)
        with pytest.raises(CheckFailed, match="another model"):
            module.check_federated(*told, (7, 3), one)


class TestGradientDescent:
    SETTINGS = (
        (replacing(1e9), 2, 1.0),
        (replacing(1e9, 1e-6), 2, 1.0),
        (replacing(0.1), 100, 1.0),
        (replacing(1e9), 2, 0.01),
    )

    def data(self) -> tuple[Any, Any, Any]:
        generator = np.random.default_rng(3)
        X = (generator.random((400, 6)) < 0.5).astype(np.float64)
        return X, (X[:, 0] > X[:, 1]).astype(np.int64), np.arange(400) % 4

    def test_it_learns_unless_noise_drowns_it(self, module: Any) -> None:
        X, y, fold = self.data()
        found = module.gradient_descent(X, y, fold, self.SETTINGS, 60, 2)
        laplace, gaussian, drowned, slow = found
        for weights in (laplace, gaussian):
            assert weights.shape == (6, 2)
            assert np.all(weights[0] > 0)
            assert np.all(weights[1] < 0)
        assert np.abs(drowned).max() > 100 * np.abs(laplace).max()
        assert 0 < np.abs(slow).max() < np.abs(laplace).max() / 10

    def test_each_run_leaves_out_its_fold(self, module: Any) -> None:
        X, y, fold = self.data()
        before = module.gradient_descent(X, y, fold, self.SETTINGS, 5, 2)[0]
        after = module.gradient_descent(
            X, np.where(fold == 0, 1 - y, y), fold, self.SETTINGS, 5, 2
        )[0]
        assert np.array_equal(before[:, 0], after[:, 0])
        assert not np.array_equal(before[:, 1], after[:, 1])


class TestJudgement:
    def points(self, module: Any, ours: float) -> list[Any]:
        values = dict.fromkeys(module.METHODS, (0.7, 0.8))
        values |= {module.NONE: (0.85,), module.OURS: (ours - 0.01, ours + 0.01)}
        found = [
            module.Point("adult", method, epsilon, clients, runs)
            for method, runs in values.items()
            for epsilon, clients in ((0.1, 100), (1.0, 100), (1.0, 1000))
        ]
        return [*found, module.Point("adult", module.ADDED, 1.0, 100, (0.85,))]

    def test_half_a_point_is_the_bar(self, module: Any) -> None:
        for ours, good in ((0.8455, True), (0.8445, False)):
            rows = list(module.adult_rows(self.points(module, ours)))
            assert [row.ok for row in rows[:3]] == [good, good, True]
            assert {row.peer_name for row in rows[3:]} == set(module.LEAST)
            assert all(row.ok for row in rows[3:])

    def test_losses_must_not_be_above_the_published_ones(self, module: Any) -> None:
        def point(method: str, *runs: float) -> Any:
            return module.Point("nursery", method, 1.0, 100, runs)

        ours = point(module.OURS, -0.01, 0.03)
        better, worse = point(module.PUBLISHED, 0.4), point(module.ALONE, 0.005)
        rows = list(module.loss_rows([ours, better, worse]))
        assert [row.ok for row in rows] == [True, False]

    def test_table_and_panels_hold_every_point(self, module: Any, tmp_path: Path) -> None:
        points = self.points(module, 0.84)
        module.write_points(points, tmp_path / "points.csv")
        with (tmp_path / "points.csv").open(newline="") as file:
            table = list(csv.DictReader(file))
        assert len(table) == len(points)
        own = [row for row in table if row["method"] == module.OURS]
        assert {(row["delta"], row["adjacency"]) for row in own} == {("1e-06", "replace")}
        over_epsilon, over_clients, *others = module.panels(points)
        assert [len(panel.lines) for panel in (over_epsilon, over_clients)] == [5, 5]
        assert [place for place, _ in over_clients.lines[0].points] == [100.0, 1000.0]
        assert not any(panel.lines for panel in others)


def test_a_name_may_be_written_with_hyphens(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "no-such-thing"])
    assert "no_such_thing" in capsys.readouterr().err
