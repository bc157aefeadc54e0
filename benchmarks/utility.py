"""How much accuracy privacy costs, for every program: all of utility_*.py, one after another."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from pathlib import Path

from tacit.cli.bench import Row


def rows(say: Callable[[str], None]) -> Iterator[Row]:
    for path in sorted(Path(__file__).parent.glob("utility_*.py")):
        say(f"── {path.stem} ──")
        yield from runpy.run_path(str(path))["rows"](say)
