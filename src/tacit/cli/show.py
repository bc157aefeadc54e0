"""`tacit show MODEL`: what a model says, with the noise beside every number."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.output import json_option, people, print_document
from tacit.cli.verify import SUFFIX
from tacit.errors import InputError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.privacy.certificate import Certificate
    from tacit.programs.shown import Cell, Table

__all__ = ["show"]

WIDE = 6  # columns on a page; features of a model with more stand below one another
CURVES = 6  # on a page; of more it says where they are
EVERY = 12  # points of a curve that a page leaves out, and one


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--records", type=click.IntRange(min=1), help="How many records it was learned from.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw it as a PNG here.")
@json_option
def show(model: Path, records: int | None, plot: Path | None, as_json: bool) -> None:
    """Say what MODEL has found, with the noise that the promise put on it beside every number.

    "±" is a standard error; "± ≤" a bound on it, to first order, where a number was derived from
    noisy ones; "± ≈" an estimate. "/n": to be divided by the number of records, which not every
    model knows; say it with --records if you do.

    A certificate beside the model is verified first: exit code 6 if it does not hold. Without one
    nothing is known of the noise.
    """
    from tacit.programs.files import read
    from tacit.programs.model_file import model_from_bytes
    from tacit.programs.shown import Noise
    from tacit.programs.shown_models import tables_of

    data = read(model)
    certificate = _certificate(model, data)
    saved = model_from_bytes(data, str(model))
    try:
        tables = tables_of(saved, Noise(certificate, records))
    except InputError as error:
        raise InputError(f"{model}: {error}") from None
    if plot is not None:
        _drawn(tables, plot, model)
    head = {
        "model": str(model),
        "program": saved.program.name,
        "version": saved.program.version,
        "certificate": None if certificate is None else str(certificate.promise),
    }
    if as_json:
        drawn = {} if plot is None else {"plot": str(plot)}
        return print_document({**head, **drawn, "tables": [_plain(table) for table in tables]})
    return _print(people(), head, tables)


def _certificate(model: Path, data: bytes) -> Certificate | None:
    """The one beside the model, checked against these very bytes."""
    from tacit.crypto.signing import digest
    from tacit.privacy.certificate import Certificate
    from tacit.programs.files import read

    beside = model.with_name(model.name + SUFFIX)
    if not beside.exists():
        words = people(as_json=True)
        words.print(
            f"warning: no certificate beside {model}: its noise is not known.", markup=False
        )
        return None
    found = Certificate.from_json(read(beside))
    found.verify(subject=digest(data))
    return found


def _drawn(tables: tuple[Table, ...], plot: Path, model: Path) -> None:
    from tacit.cli.show_plot import draw

    if plot.resolve() in (model.resolve(), model.with_name(model.name + SUFFIX).resolve()):
        raise UsageError(f"--plot {plot} would overwrite what is read: name another file.")
    draw(tables, plot)


def _plain(table: Table) -> dict[str, Any]:
    from tacit.programs.shown import plain

    rows = [[plain(cell) for cell in row] for row in table.rows]
    return {"title": table.title, "columns": table.columns, "rows": rows, "note": table.note}


def _print(console: Console, head: dict[str, Any], tables: tuple[Table, ...]) -> None:
    from rich.table import Table as Grid
    from rich.text import Text

    promise = head["certificate"] or "no certificate"
    console.print(f"{head['program']}, version {head['version']} · {promise}", markup=False)
    curves = sum(table.curve for table in tables)
    for table in (_on_page(table) for table in tables if not table.curve or curves <= CURVES):
        console.print(Text(f"\n{_printable(table.title)}", style="bold"))
        grid = Grid(box=None, pad_edge=False)
        for name in table.columns:
            grid.add_column(Text(_printable(name)), overflow="fold")
        for row in table.rows:
            grid.add_row(*(Text(_said(cell)) for cell in row))
        console.print(grid)
        if table.note:
            console.print(_printable(table.note), markup=False)
    if curves > CURVES:
        console.print(f"\n{curves} columns have curves: --plot FILE draws them, --json has them.")


def _on_page(table: Table) -> Table:
    if table.curve:
        return replace(table, rows=table.rows[::EVERY])
    return table.turned if len(table.columns) > WIDE and table.rows else table


def _said(cell: Cell) -> str:
    if isinstance(cell, str):
        return _printable(cell)
    if isinstance(cell, float):
        return f"{cell:.5g}"
    if cell.noise is None:
        return f"{cell.value:.5g} ± ?"
    sign = {"standard error": "±", "bound": "± ≤", "estimate": "± ≈"}[cell.kind]
    return f"{cell.value:.5g} {sign} {cell.noise:.2g}{'/n' if cell.share else ''}"


def _printable(text: str) -> str:
    """Names come from others' files: nothing in them may act on a terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
