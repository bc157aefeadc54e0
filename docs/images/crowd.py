"""Draws crowd.png: what ten thousand made-up students say. Redraw: python docs/images/crowd.py"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from tacit.channels.crowd.learning import collected
from tacit.channels.crowd.plan import Plan, PlanTerms
from tacit.cli.crowd_view import draw_tables
from tacit.crypto.prg import SeededRandomness
from tacit.data.batch import Batch
from tacit.data.schema import Schema

__all__ = ["draw"]

FOLDER = Path(__file__).parent
PEOPLE, EPSILON = 10_000, 2.0


def draw(path: Path) -> None:
    """The guide's study, with more people."""
    guide = (FOLDER.parent / "guide" / "crowd.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```toml\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    schema = Schema.from_dict(tomllib.loads(text))
    chance = np.random.default_rng(1)
    hours = chance.gamma(1.5, 3.0, PEOPLE).clip(0, 60)
    forum = chance.random(PEOPLE) < 0.2 + 0.3 * (hours > 6)
    leave = chance.random(PEOPLE) < 0.75 - 0.3 * (hours > 2) - 0.2 * (hours > 6) - 0.1 * forum
    columns = {
        "hours": hours,
        "forum": forum.astype(np.int32),
        "quit": leave.astype(np.int32),
    }
    plan = Plan.drawn_up(
        schema,
        PlanTerms(tables=(("hours",), ("forum",), ("hours", "forum"))),
        EPSILON,
        PEOPLE,
        bytes(32),
    )
    tables, found = collected(
        plan, 4, Batch(schema, columns, PEOPLE), bytes(32), SeededRandomness(1)
    )
    draw_tables(SimpleNamespace(tables=tables, schema=found), path)  # type: ignore[arg-type]


if __name__ == "__main__":
    draw(FOLDER / "crowd.png")
