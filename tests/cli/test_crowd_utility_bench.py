"""`tacit bench crowd-utility` at tiny sizes: its parts, its judgement, its files."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tacit.cli import bench
from tacit.cli.main import main
from tacit.data import Batch, Column, Schema
from tacit.errors import DatasetError


@pytest.fixture
def module() -> Any:
    return bench._load(bench._benchmarks()["crowd_utility"])


def problem(module: Any, name: str = "Adult", people: int = 3_000) -> Any:
    """Two numbers and a flag, of which one number decides."""
    numbers = [
        Column(name=f"n{i}", type="integer", bounds=(0, 99), edges=(25, 50, 75)) for i in range(2)
    ]
    flags = [Column(name=f"b{i}", type="boolean") for i in range(6)]
    label = Column(name="y", type="boolean", role="label")
    schema = Schema(columns=(*numbers, *flags, label))

    def batch(seed: int) -> Batch:
        rng = np.random.default_rng(seed)
        columns: dict[str, Any] = {
            c.name: rng.integers(0, 100, people).astype(np.float64) for c in numbers
        }
        columns |= {c.name: rng.integers(0, 2, people).astype(np.int32) for c in flags}
        columns["y"] = (columns["n0"] + rng.normal(0, 20, people) > 60).astype(np.int32)
        return Batch(schema, columns, people)

    return module.Problem(name, schema, batch(1), batch(2))


def test_auc_is_scikit_learns(module: Any) -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(500) < 0.3
    scores = np.round(rng.normal(truth, 1.0), 1)  # with ties
    assert module.auc(scores, truth) == pytest.approx(roc_auc_score(truth, scores))


def test_every_plan_learns_and_keeps_to_epsilon(module: Any) -> None:
    module.RUNS["Adult"] = 1
    tiny = problem(module)
    assert module.auc(module.without_privacy(tiny), module._truth(tiny)) > 0.9
    for method in module.PLANS:
        point = module.studied(tiny, method, 8.0)
        assert point.mean > 0.6
        assert len(point.qualities) == len(point.runs)
        assert point.attribute_epsilon <= 8.0
    ours = module.studied(tiny, module.OURS, 8.0)
    assert ours.mean > 0.85
    assert ours.attribute_epsilon == 8.0
    assert module.studied(tiny, module.SINGLE, 6.0).attribute_epsilon == pytest.approx(4.0)


def test_the_command(module: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "RUNS", {"Adult": 1, "OULAD": 1})
    monkeypatch.setattr(module, "BARS", {1.0: 0.0001, 8.0: 2.0})
    monkeypatch.setattr(module, "problems", lambda say: [problem(module), problem(module, "OULAD")])
    monkeypatch.setattr(bench, "_load", lambda path: module)
    with pytest.raises(SystemExit) as stopped:
        main(["bench", "crowd-utility"])
    assert stopped.value.code == 6  # no AUC is 2
    rows = list(csv.DictReader((tmp_path / "bench/crowd-utility.csv").read_text().splitlines()))
    assert len(rows) == 2 * 2 * len(module.METHODS)
    assert {row["method"] for row in rows} == set(module.METHODS)
    assert (tmp_path / "bench" / "crowd-utility.png").stat().st_size > 1000


def test_what_is_judged(module: Any) -> None:
    points = [
        module.Point("Adult", method, epsilon, epsilon / 2, (0.9 - 0.1 * place,))
        for place, method in enumerate(module.METHODS)
        for epsilon in module.BARS
    ]
    rows = list(module.judged(points))
    assert len(rows) == len(module.BARS) * len(module.PLANS)
    assert all(row.ok for row in rows)
    worse = [p._replace(runs=(0.5,)) if p.method == module.OURS else p for p in points]
    assert not any(row.ok for row in module.judged(worse) if row.peer_name == "the bar")
    elsewhere = [p._replace(problem="OULAD") for p in worse]
    assert all(row.ok and row.peer_name == "no privacy" for row in module.judged(elsewhere))


class TestProblems:
    """On the data sets themselves, where they can be had."""

    @pytest.fixture
    def found(self, module: Any) -> dict[str, Any]:
        try:
            return {p.name: p for p in module.problems(lambda _: None)}
        except DatasetError as error:
            pytest.skip(str(error))

    def test_people_and_labels(self, found: dict[str, Any]) -> None:
        shares = {}
        for name, it in found.items():
            label = it.schema.label
            shares[name] = float(np.mean(it.train.columns[label.name]))
            assert abs(float(np.mean(it.test.columns[label.name])) - shares[name]) < 0.02
        assert found["Adult"].train.rows == 32_561
        assert found["Adult"].test.rows == 16_281
        assert shares["Adult"] == pytest.approx(0.2408, abs=1e-4)
        assert 0.5 < shares["OULAD"] < 0.7
        assert shares["KDD Cup"] == pytest.approx(0.83, abs=0.01)

    def test_nothing_gives_the_label_away(self, found: dict[str, Any]) -> None:
        """No code of any one feature is nearly always of one class, where both are common."""
        for name in ("OULAD", "KDD Cup"):
            it = found[name]
            names = [column.name for column in it.schema.columns]
            assert not {"date_unregistration", "final_result", "label"} & set(names)
        oulad = found["OULAD"]
        truth = oulad.train.columns["passed"] == 1
        for column in oulad.schema.features:
            values = oulad.train.columns[column.name]
            for value in np.unique(values):
                with_it = truth[values == value]
                assert len(with_it) < 500 or 0.03 < with_it.mean() < 0.97
