"""Documents are executed: python blocks and `console run` blocks run, other commands must parse."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from tacit import children
from tacit.cli.main import cli

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(r"^```(\w+)( run)?(?: as \w+)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TACIT = [sys.executable, "-m", "tacit.cli"]
EXPECTED = "error,ignore:Its probabilities and the size of its coefficients"


def blocks(kind: str, run: bool) -> list[Any]:
    found: list[Any] = []
    for page in PAGES:
        for match in BLOCK.finditer(page.read_text(encoding="utf-8")):
            if match[1] == kind and bool(match[2]) == run:
                line = page.read_text(encoding="utf-8")[: match.start()].count("\n") + 1
                name = f"{page.relative_to(ROOT)}:{line}"
                found.append(pytest.param(match[3], id=name))
    return found


def environment(folder: Path) -> dict[str, str]:
    """A user's own machine: nothing of ours but the data sets at hand. Warnings are errors, but for
    the one that small examples deserve, and the pages speak of: probabilities of few records."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TACIT_H", "TACIT_L", "XDG_"))}
    return {**kept, "TACIT_HOME": str(folder / "home"), "PYTHONWARNINGS": EXPECTED}


def run(command: list[str], folder: Path) -> None:
    done = children.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"{shlex.join(command[-3:])}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("code", blocks("python", run=False))
def test_python_blocks_run(code: str, tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(code, encoding="utf-8")
    run([sys.executable, str(script)], tmp_path)


def commands(text: str) -> list[list[str]]:
    lines = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
    words = [shlex.split(line.removesuffix(" &"), comments=True) for line in lines]
    bare = [[w for i, w in enumerate(ws) if i or "=" not in w] for ws in words]
    return [ws[1:] for ws in bare if ws and ws[0].removeprefix(".venv/bin/") == "tacit"]


def is_of_the_demonstration(block: Any) -> bool:
    """Thirteen processes take a minute: tests/cli/test_demo.py runs it, and checks the results."""
    return "tacit demo" in block.values[0]


@pytest.mark.parametrize(
    "text", [one for one in blocks("console", run=True) if not is_of_the_demonstration(one)]
)
def test_console_blocks_run(text: str, tmp_path: Path) -> None:
    for words in commands(text):
        run([*TACIT, *words], tmp_path)


@pytest.mark.parametrize("text", blocks("console", run=False))
def test_commands_exist(text: str) -> None:
    for words in commands(text):
        command: click.Command = cli
        with click.Context(cli) as context:
            while isinstance(command, click.Group) and words and not words[0].startswith("-"):
                found = command.get_command(context, words[0])
                assert found is not None, f"there is no command {words[0]!r}"
                command, words = found, words[1:]
            command.make_parser(context).parse_args(list(words))


def test_one_page_has_the_demonstration() -> None:
    (block,) = filter(is_of_the_demonstration, blocks("console", run=True))
    assert str(block.id).startswith("docs/guide/first-steps.md:")


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_decisions_cover_every_dependency() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    needed = [*project["dependencies"], *(need for extra in extras for need in extra)]
    names = {re.split(r"[<>=\[]", need)[0] for need in needed} - {"tacit"}
    pages = " ".join(
        p.read_text(encoding="utf-8").lower() for p in ROOT.glob("docs/decisions/*.md")
    )
    assert not [n for n in names if n not in pages and n.removeprefix("pytest-") not in pages]


def test_the_tests_that_a_page_names_are_there() -> None:
    """In docs/explain/equivocation.md each document has its test."""
    page = (ROOT / "docs/explain/equivocation.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:\w+/)*test_\w+\.py)`", page)
    assert len(named) > 20
    for name in named:
        assert list((ROOT / "tests").glob(f"**/{name}")), name
