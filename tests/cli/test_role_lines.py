"""What a role says of its rounds: one line on a terminal, each tenth in a log."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from rich.console import Console

from tacit.cli import roles


@pytest.fixture
def context() -> Iterator[click.Context]:
    with click.Context(click.Command("tacit")) as context:
        yield context


def told(monkeypatch: pytest.MonkeyPatch, folder: Path, terminal: bool) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=100, highlight=False)
    monkeypatch.setattr(roles, "people", lambda as_json=False: console)
    study: Any = SimpleNamespace(name="ages")
    role = roles.Role(study, "aggregator", folder, as_json=False)
    role.tell("holder joined", holder="[bold]north")
    for number in range(1, 31):
        role.tell("round done", round=number, of=30, holders=2)
    role.tell("window published", window=1)
    click.get_current_context().close()
    return out.getvalue()


def test_a_log_has_each_tenth_round(
    context: click.Context, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lines = told(monkeypatch, tmp_path, terminal=False).splitlines()
    rounds = [line for line in lines if "of 30" in line]
    assert [int(line.split()[2]) for line in rounds] == [1, 10, 20, 30]
    assert "aggregator: [bold]north joined" in lines
    assert lines[-1].startswith("aggregator: window 1 is over")


def test_a_terminal_has_the_newest_round_alone(
    context: click.Context, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = told(monkeypatch, tmp_path, terminal=True)
    assert "[bold]north joined" in said
    assert "window 1 is over" in said
    lasting = [line for line in said.split("\n") if "of 30" in line and "\x1b[2K" not in line]
    assert len(lasting) <= 1


def test_all_rounds_are_in_the_file_of_events(
    context: click.Context, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told(monkeypatch, tmp_path, terminal=False)
    assert (tmp_path / "events.jsonl").read_text().count("round done") == 30
