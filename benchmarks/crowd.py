"""How fast a crowd's study is: randomisers, tokens, rings, onions, and all of it between processes.

What each part compares with is said at the top of its file in crowd_parts/. How good the models are
is another question, and another benchmark: crowd_utility.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module

from tacit.cli.bench import Row

PARTS = ("randomisers", "tokens", "rings", "onions", "end_to_end")


def rows(say: Callable[[str], None]) -> Iterator[Row]:
    for part in PARTS:
        say(f"── crowd_parts/{part} ──")
        yield from import_module(f"crowd_parts.{part}").rows(say)
