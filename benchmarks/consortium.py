"""How fast a consortium's run is: encryption, comparison, and both protocols as a whole.

What each part compares with is said at the top of its file, consortium_PART.py. How good the models
are is another question, and another benchmark: consortium_utility.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from pathlib import Path

from tacit.cli.bench import Row

PARTS = ("crypto", "comparison", "protocols")


def rows(say: Callable[[str], None]) -> Iterator[Row]:
    for part in PARTS:
        say(f"── consortium_{part} ──")
        path = Path(__file__).with_name(f"consortium_{part}.py")
        yield from runpy.run_path(str(path))["rows"](say)
