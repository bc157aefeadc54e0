"""How fast a federation's round is: sharing, SecAgg+ beside it, growth, uploads over TLS.

What each part compares with is said at the top of its file, federation_PART.py. How good the models
are is another question, and another benchmark: federation_utility.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from pathlib import Path

from tacit.cli.bench import Row

PARTS = ("crypto", "flower", "scaling", "uploads")


def rows(say: Callable[[str], None]) -> Iterator[Row]:
    for part in PARTS:
        say(f"── federation_{part} ──")
        path = Path(__file__).with_name(f"federation_{part}.py")
        yield from runpy.run_path(str(path))["rows"](say)
