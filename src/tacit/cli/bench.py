"""`tacit bench [NAME]`: the files of `benchmarks/`, each side by side with a peer in one run."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from tacit.cli.output import fail, json_option, people, print_document
from tacit.errors import CheckFailed, UsageError

__all__ = ["Row", "bench"]

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison. The ratio ours / peer is what counts: absolute figures drift with the load.

    `bar` is the least ratio that is good enough, or the largest if `at_most`.
    """

    what: str
    ours: float
    peer: float
    peer_name: str
    bar: float
    at_most: bool = False

    @property
    def ratio(self) -> float:
        return self.ours / self.peer

    @property
    def ok(self) -> bool:
        return self.ratio <= self.bar if self.at_most else self.ratio >= self.bar

    def document(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "ours": self.ours,
            "peer": self.peer,
            "peer_name": self.peer_name,
            "ratio": self.ratio,
            "bar": self.bar,
            "ok": self.ok,
        }


@click.command()
@click.argument("name", required=False)
@click.option("--quick", is_flag=True, help="Fewer runs, for a first look.")
@click.option("--page", is_flag=True, help="Also write the page and pictures in docs/.")
@json_option
def bench(name: str | None, quick: bool, page: bool, as_json: bool) -> None:
    """Measure NAME against its peer in the same run; without NAME, list the benchmarks."""
    found = _benchmarks()
    if name is None:
        _list(found, as_json)
        return
    name = name.replace("-", "_")  # files are named as modules are
    if name not in found:
        raise UsageError(f"there is no benchmark {name!r}; there are: {', '.join(found)}.")
    words = people(as_json=True)
    module = _load(found[name])
    options = _options(name, module, {"quick": quick, "page": page})
    rows: list[Row] = list(module.rows(words.print, **options))
    if as_json:
        print_document({"bench": name, "rows": [row.document() for row in rows]})
    else:
        _table(name, rows)
    missed = [row.what for row in rows if not row.ok]
    if missed:
        fail(CheckFailed(f"below the bar: {', '.join(missed)}."))


def _benchmarks() -> dict[str, Path]:
    """The benchmarks of this checkout, or of the one the working directory is in."""
    for start in (Path(__file__).resolve(), Path.cwd() / "here"):
        for parent in start.parents:
            folder = parent / "benchmarks"
            if (parent / "pyproject.toml").is_file() and folder.is_dir():
                return {path.stem: path for path in sorted(folder.glob("*.py"))}
    raise UsageError("benchmarks are part of the source tree: run this inside a clone of tacit.")


def _options(name: str, module: ModuleType, asked: dict[str, bool]) -> dict[str, bool]:
    """What was asked for, if the benchmark has it."""
    known = inspect.signature(module.rows).parameters
    for option, value in asked.items():
        if value and option not in known:
            raise UsageError(f"benchmark {name!r} has no --{option}: leave it out.")
    return {option: True for option, value in asked.items() if value}


def _load(path: Path) -> ModuleType:
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # benchmarks import what they share from beside them
    spec = importlib.util.spec_from_file_location(f"benchmarks.{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _list(found: dict[str, Path], as_json: bool) -> None:
    about = {name: _summary(path) for name, path in found.items()}
    if as_json:
        print_document({"benchmarks": about})
        return
    for name, text in about.items():
        click.echo(f"{name:12} {text}")


def _summary(path: Path) -> str:
    return path.read_text().split('"""')[1].splitlines()[0]


def _table(name: str, rows: Iterable[Row]) -> None:
    from rich.table import Table

    table = Table(title=f"tacit bench {name}")
    for heading in ("what", "ours", "peer", "ratio", "bar", ""):
        table.add_column(heading, justify="left" if heading in ("what", "peer") else "right")
    for row in rows:
        table.add_row(
            row.what,
            f"{row.ours:,.4g}",
            f"{row.peer:,.4g} ({row.peer_name})",
            f"{row.ratio:.2f} ×",
            f"{'≤' if row.at_most else '≥'} {row.bar:g} ×",
            "[green]ok[/]" if row.ok else "[red]below the bar[/]",
        )
    people().print(table)
