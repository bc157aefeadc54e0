"""A new user's first call: defaults only, on tables that nobody here has tuned to.

All of defaults_parts/*.py, one after another; each has `rows(say, quick)` and says at its top what
its bars are.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from pathlib import Path

from tacit.cli.bench import Row


def rows(say: Callable[[str], None], quick: bool = False) -> Iterator[Row]:
    for path in sorted((Path(__file__).parent / "defaults_parts").glob("[a-z]*.py")):
        say(f"── {path.stem} ──")
        yield from runpy.run_path(str(path))["rows"](say, quick=quick)
