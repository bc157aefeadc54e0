"""Pictures are drawn for every kind of report."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from planted import NAMES, planted

from tacit.personal.learning.picture import draw_report
from tacit.personal.learning.training import train
from tacit.personal.problems.problem import Asked


@pytest.mark.parametrize(
    ("task", "strength", "rows"), [("boolean", 2, 60), ("category", 2, 60), ("number", 0, 12)]
)
def test_a_report_is_drawn(task: Asked, strength: float, rows: int, tmp_path: Path) -> None:
    made = planted(rows, task, strength)
    names = (f"{'very long ' * 20} $ name", "$x^2$", *NAMES[2:])
    path = tmp_path / "report.png"
    draw_report(train(replace(made, names=names), task, models=["linear"]), path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 20_000
