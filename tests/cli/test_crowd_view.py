"""How people see what a crowd has answered: noise and lies stand beside each other."""

from __future__ import annotations

import io
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[1] / "simulation"))

from crowd_cast import SCHEMA, proposed

from tacit.channels.crowd.harvest import Harvest
from tacit.channels.crowd.liars import liar_weight, widened
from tacit.channels.crowd.proposal import Proposal
from tacit.channels.crowd.tables import estimated_tables
from tacit.cli.crowd_view import collected_document, draw_tables, print_collected
from tacit.crypto.prg import SeededRandomness

PEOPLE = 90


def collected(corrupt: int) -> tuple[Proposal, Harvest]:
    """Thirty answers to each of three tables."""
    proposal = proposed(PEOPLE).proposal
    group = msgspec.structs.replace(proposal.group, corrupt=corrupt)
    proposal = msgspec.structs.replace(proposal, group=group)
    plan = proposal.drawn_up
    answers = {
        q: q.randomiser.release(np.arange(30) % q.cells, SeededRandomness(q.name))
        for q in plan.questions
    }
    tables = widened(estimated_tables(answers), plan, PEOPLE, corrupt)
    certificate: Any = SimpleNamespace(
        amplified=None, participation=None, promise=SimpleNamespace(epsilon=2.0)
    )
    return proposal, Harvest(tables, SCHEMA, b"", certificate)


def words(corrupt: int) -> str:
    out = io.StringIO()
    print_collected(Console(file=out, width=1000), *collected(corrupt), Counter(), {})
    return out.getvalue()


def test_noise_alone() -> None:
    proposal, harvest = collected(0)
    document = collected_document(proposal, harvest, Counter(), {})
    assert document["liars"]["assumed"] == 0
    assert all(bars["shift"] == 0 < bars["error"] for bars in document["tables"].values())
    said = words(0)
    assert "No liars are assumed" in said
    assert "by lies" not in said


def test_noise_and_lies() -> None:
    proposal, harvest = collected(2)
    document = collected_document(proposal, harvest, Counter(), {})
    for question in proposal.drawn_up.questions:
        weight = liar_weight(question)
        assert document["tables"][question.name]["shift"] == pytest.approx(2 * weight.cell)
        assert document["liars"]["weights"][question.name]["together"] == 2 * weight.each
    said = words(2)
    assert said.count("by lies") == 3
    assert "At most 2 liars are assumed" in said


def test_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw_tables(collected(2)[1], tmp_path / "tables.png")
    assert (tmp_path / "tables.png").stat().st_size > 1000
