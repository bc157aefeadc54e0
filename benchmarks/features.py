"""How fast features are computed, against featuretools, and events imported, against DuckDB.

What each part compares, and how, is said at the top of its file in features_parts/.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module

from tacit.cli.bench import Row

PARTS = ("importing", "against_featuretools")


def rows(say: Callable[[str], None], quick: bool = False) -> Iterator[Row]:
    for part in PARTS:
        say(f"── features_parts/{part} ──")
        yield from import_module(f"features_parts.{part}").rows(say, quick)
