"""TOML that is written to exhaust its reader: refused in little time and memory, wherever it is
read."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from tacit.channels.crowd.proposal import Proposal
from tacit.channels.studies.study import Study
from tacit.data.schema import Schema
from tacit.data.toml import read_toml
from tacit.errors import InputError
from tacit.privacy.policy import Policy
from tacit.toml_text import MAX_BYTES, MAX_DOTS, toml_of

MANY = 100_000
LONG = ".".join(["a"] * MANY)
QUOTED = ".".join(['"a.b"'] * MANY)
HOSTILE = {
    "a key": f"{LONG} = 1",
    "a table": f"[{LONG}]",
    "an array of tables": f"[[{LONG}]]",
    "in a table": f"x = {{ {LONG} = 1 }}",
    "quoted parts": f"{QUOTED} = 1",
    "blanks between": f"{LONG.replace('.', ' . ')} = 1",
    "behind a text": f"x = {{ y = '\"', {LONG} = 1 }}",
    "behind a text of several lines": f'x = ["""\n""", {{{LONG} = 1}}, ""]',
    "behind a hash in a text": f"x = {{ y = '#', {LONG} = 1 }}",
    "deep": "x = " + "[" * MANY,
    "deep tables": "x = " + "{a=" * MANY,
    "a long number": "x = " + "9" * MANY,
    "quotes that do not end": "x = " + "." * 30 + '"\\' * MANY,
    "too large": "#" * (MAX_BYTES + 1),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_it_is_refused_with_little_memory(name: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"^here: ") as caught:
            toml_of(HOSTILE[name], "here")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**28  # a key of so many parts would take 40 GB
    assert len(str(caught.value)) < 400


FILES: dict[str, Callable[[Path], object]] = {
    "study": Study.load,
    "schema": Schema.load,
    "proposal": Proposal.load,
    "policy": Policy.load,
    "any": lambda path: read_toml(path, ""),
}


@pytest.mark.parametrize("kind", FILES)
def test_every_kind_of_file_is_guarded(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "file.toml"
    path.write_text(f"{LONG[:20_001]} = 1")
    with pytest.raises(InputError, match="dots"):
        FILES[kind](path)


def test_what_people_write_is_read() -> None:
    """Lists of numbers, dates, texts and comments have as many dots as they like."""
    dots = "." * (5 * MAX_DOTS)
    numbers = ", ".join(f"{i}.5" for i in range(500))
    text = f"""
# {dots}
edges = [{numbers}]
question = "{dots}"  # {dots}
other = '{dots} # "'
when = 2030-01-01T00:00:00.5
[schema.columns."a.b.c"]
bounds = [0.0, 1.0]
"""
    read = toml_of(text, "here")
    assert len(read["edges"]) == 500
    assert read["question"] == dots
    assert read["schema"]["columns"]["a.b.c"]["bounds"] == [0.0, 1.0]
    assert toml_of(".".join("a" * (MAX_DOTS + 1)) + " = 1", "here")
    assert toml_of('x = """\nof several lines\n"""', "here") == {"x": "of several lines\n"}
