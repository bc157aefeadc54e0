"""`tacit bench crowd-liars` at tiny sizes: the attack, what is tried against it, its judgement."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.channels.crowd.liars import liar_weight
from tacit.channels.crowd.questions import Question
from tacit.channels.crowd.tables import Table
from tacit.cli import bench
from tacit.cli.main import main
from tacit.data import Batch, Column, Schema


@pytest.fixture
def module() -> Any:
    return bench._load(bench._benchmarks()["crowd_liars"])


def problem(module: Any, name: str = "Adult", people: int = 4_000) -> Any:
    """Two categories, of which both decide."""
    letters = tuple("abcdef")
    named = [Column(name=f"c{i}", type="category", categories=letters) for i in range(2)]
    schema = Schema(columns=(*named, Column(name="y", type="boolean", role="label")))

    def batch(seed: int) -> Batch:
        rng = np.random.default_rng(seed)
        columns = {c.name: rng.integers(0, 6, people).astype(np.int32) for c in named}
        score = columns["c0"] + columns["c1"] + rng.normal(0, 2, people)
        return Batch(schema, {**columns, "y": (score > 5).astype(np.int32)}, people)

    return module.Problem(name, schema, batch(1), batch(2))


def test_liars_turn_the_plain_model_round_and_coins_withstand(module: Any) -> None:
    tiny = problem(module)
    honest, lied = (
        [module.studied(tiny, 1.0, share, run) for run in range(3)] for share in (0.0, 0.04)
    )
    for method in (module.PLAIN, module.COINS, module.MEDIANS):
        assert np.mean([study[method] for study in honest]) > 0.78
    assert np.mean([study[module.PLAIN] for study in lied]) < 0.45
    assert np.mean([study[module.COINS] for study in lied]) > 0.65


def test_a_lie_weighs_what_is_said(module: Any) -> None:
    """What the attack adds to a table is no more than liar_weight allows, and reaches it."""
    tiny = problem(module)
    for coins in (None, True):
        _, attack = module._tables(tiny, 1.0, 0.05, 1, coins)
        _, silent = module._tables(tiny, 1.0, 0.0, 1, coins)
        for question, left in attack._left.items():
            asked = next(q for q in attack.answers if q.table == question)
            moved = np.maximum(left - silent._left[question], 0).sum()
            most = liar_weight(asked).total(0.05 * 4_000)
            assert moved < most
            assert coins or moved > 0.2 * most


def test_clipping_takes_off_what_was_assumed(module: Any) -> None:
    it = Question("table-0", 0, "table", ("c0",), (6, 2), 1.0)
    counts = np.array([[50.0, 150], [150, 50], [100, 100], [90, 110], [110, 90], [100, 100]])
    table = Table(it, counts, np.full((6, 2), 20.0), 1200)
    none, some, all_ = (module.clipped([table], share)[0] for share in (0.0, 0.01, 0.2))
    assert np.allclose(none.counts, counts)
    lies = 0.01 * 1200 * 0.5 * it.randomiser.most_supported
    lies /= float(it.randomiser.hit - it.randomiser.miss)
    assert np.abs(counts - some.counts)[:, 1].sum() == pytest.approx(lies)
    assert np.allclose(all_.counts, 100)


def test_the_command(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "adult", lambda say: problem(module))
    monkeypatch.setattr(module, "oulad", lambda say: problem(module, "OULAD"))
    monkeypatch.setattr(module, "EPSILONS", (1.0,))
    monkeypatch.setattr(module, "SHARES", (0.0, 0.01))
    monkeypatch.setattr(module, "QUICK", 1)
    monkeypatch.setattr(bench, "_load", lambda path: module)
    with pytest.raises(SystemExit) as stopped:
        main(["bench", "crowd-liars", "--quick"])
    assert stopped.value.code in (0, None)


def test_what_is_judged(module: Any) -> None:
    points = [
        module.Point("Adult", epsilon, method, share, 0.8 - 5 * share * (method != module.COINS))
        for epsilon in module.EPSILONS
        for method in module.METHODS
        for share in module.SHARES
    ]
    assert all(row.ok for row in module.judged(points))
    worse = [p._replace(auc=0.6) if p.method == module.COINS else p for p in points]
    missed = [row.what for row in module.judged(worse) if not row.ok]
    assert len(missed) == 4
    assert all("public coins" in what for what in missed)
    assert len(list(module.table_lines(points))) == 2 + 12
