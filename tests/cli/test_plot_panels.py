from __future__ import annotations

from pathlib import Path

import pytest

from tacit.cli.plot_panels import Line, Panel, plot_panels

pytest.importorskip("matplotlib", reason="pictures need matplotlib")


def test_one_file_with_all_panels(tmp_path: Path) -> None:
    line = Line("tacit", [(0.1, (0.7, 0.8)), (1.0, (0.84, 0.85))], "#1f5fbf", bold=True)
    panels = [Panel(f"panel {i}", "ε", [line]) for i in range(3)]
    small, large = tmp_path / "one.png", tmp_path / "three.png"
    plot_panels(panels[:1], small)
    plot_panels(panels, large)
    assert small.read_bytes().startswith(b"\x89PNG")
    assert _height(large) > 1.5 * _height(small)  # two rows


def _height(path: Path) -> int:
    return int.from_bytes(path.read_bytes()[20:24], "big")
