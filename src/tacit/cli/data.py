"""`tacit data`: public data sets, and drafts of schemas."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.output import json_option, people, print_document
from tacit.errors import DatasetError, InputError, UsageError

if TYPE_CHECKING:
    from tacit.data.catalogue import Entry
    from tacit.data.describe import Decisions
    from tacit.data.schema import Schema

__all__ = ["data"]


@click.group()
def data() -> None:
    """Data sets and schemas."""


@data.command("list")
@json_option
def list_sets(as_json: bool) -> None:
    """The public data sets tacit knows, and where their files are."""
    from rich.table import Table

    from tacit.data.catalogue import CATALOGUE

    rows = [_row(known) for known in CATALOGUE.values()]
    if as_json:
        print_document({"datasets": rows})
        return
    table = Table("name", "rows", "where", "what", box=None, pad_edge=False)
    for row in rows:
        table.add_row(row["name"], f"{row['rows']:,}", row["where"] or "not here", row["what"])
    console = people()
    console.print(table)
    console.print("\nFetch one with: tacit data fetch NAME. Files of your own: set TACIT_DATA.")


def _row(known: Entry) -> dict[str, Any]:
    from tacit.data.fetch import locate

    return {
        "name": known.name,
        "title": known.title,
        "rows": known.rows,
        "what": known.what,
        "where": locate(known.files),
        "files": [file.name for file in known.files],
        "source": known.source,
        "caution": known.caution,
    }


@data.command("fetch")
@click.argument("names", nargs=-1, required=True)
@click.option(
    "--partial", is_flag=True, help="Accept a copy that lacks rows, if there is no other."
)
@json_option
def fetch_sets(names: tuple[str, ...], partial: bool, as_json: bool) -> None:
    """Put data sets into the cache and check them against their pins."""
    from tacit.data.catalogue import entry

    wanted = [entry(name) for name in names]  # a wrong name stops it before anything is fetched
    got, failures = [], []
    for known in wanted:
        try:
            got.append(_fetched(known, partial))
        except DatasetError as error:
            failures.append(error)
            if not as_json:
                _say(str(error))
    if as_json and not failures:
        print_document({"datasets": got})
    if failures:
        reasons = " ".join(map(str, failures)) if as_json else "see above."
        count = f"{len(failures)} of {len(wanted)} data sets could not be had"
        raise DatasetError(f"{count}: {reasons}")


def _fetched(known: Entry, partial: bool) -> dict[str, Any]:
    from tacit.data.datasets import load_dataset

    found = load_dataset(known.name, partial=partial, say=_say)
    tests = 0 if found.test is None else found.test.num_rows
    rows = found.train.num_rows + tests
    _say(f"{known.name}: {rows:,} rows, {found.found}. {found.source}.")
    if found.caution:
        _say(f"{known.name}: note: {found.caution}.")
    return {
        "name": known.name,
        "rows": rows,
        "train": found.train.num_rows,
        "test": tests,
        "where": found.found,
        "source": found.source,
        "caution": found.caution,
    }


def _say(text: str) -> None:
    click.echo(text, err=True)


@data.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--schema",
    "schema_file",
    required=True,
    type=click.Path(path_type=Path),
    help="What the table should be.",
)
@click.option("--program", "program_name", help="Also what this program wants of a label.")
@json_option
def check(file: Path, schema_file: Path, program_name: str | None, as_json: bool) -> None:
    """List everything that is wrong with FILE: each kind of fault of each column, the first row
    that has it, and how many do. Values are not shown."""
    from tacit.cli.table_view import checked_table, deliver_report
    from tacit.data.schema import Schema as Known

    schema, learner = Known.load(schema_file), None
    if program_name is not None:
        from tacit.programs.registry import learner_named

        learner = learner_named(program_name)
    report = checked_table(file, schema, program=learner)
    deliver_report(report, as_json, schema=str(schema_file))


@data.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Write the schema there.")
@click.option("--force", is_flag=True, help="Overwrite what is there.")
@click.option("--no-header", is_flag=True, help="The first line is a record.")
@click.option("--delimiter", help="Between cells; guessed if not given.")
@click.option("--label", help="The column to be learned.")
@click.option("--person", help="The column that says whose record it is.")
@click.option("--bounds", multiple=True, metavar="NAME=LOW:HIGH", help="Public bounds.")
@click.option("--categories", multiple=True, metavar="NAME=A,B,…", help="All values, public.")
@click.option("--ask", is_flag=True, help="Ask for the open bounds and categories, one by one.")
@click.option(
    "--public-data",
    is_flag=True,
    help="The data is itself public: read bounds and categories off it. Never for private data.",
)
@json_option
def describe(
    file: Path,
    out: Path | None,
    force: bool,
    no_header: bool,
    delimiter: str | None,
    label: str | None,
    person: str | None,
    bounds: tuple[str, ...],
    categories: tuple[str, ...],
    ask: bool,
    public_data: bool,
    as_json: bool,
) -> None:
    """Draft a schema for FILE: names and types guessed, bounds and categories left as TODO.

    Bounds and categories are not read off the data, since a schema is shared with everyone: the
    largest value in a column is somebody's value.
    """
    from tacit.data.describe import Decisions
    from tacit.data.describe import describe as draft

    if ask and not sys.stdin.isatty():
        raise UsageError("--ask needs a terminal: give --bounds and --categories instead.")
    if out is not None and out.exists() and not force:
        raise UsageError(f"{out} is there already: give --force to overwrite it.")
    decisions = Decisions(
        bounds=dict(map(_parse_bounds, bounds)),
        categories=dict(map(_parse_categories, categories)),
        label=label,
        person=person,
    )
    options: dict[str, Any] = {
        "header": not no_header,
        "delimiter": "\t" if delimiter == "\\t" else delimiter,
        "public_data": public_data,
    }
    schema = draft(str(file), decisions=decisions, **options)
    if ask and schema.todo:
        schema = draft(str(file), decisions=_asked(schema, decisions), **options)
    _deliver(schema, file, out, as_json)


def _deliver(schema: Schema, file: Path, out: Path | None, as_json: bool) -> None:
    text = schema.to_toml()
    if out is not None:
        try:
            out.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InputError(f"{out}: cannot be written ({error.strerror}).") from None
    if as_json:
        where = str(out) if out else None
        document = {"file": str(file), "out": where, "todo": schema.todo}
        print_document({**document, "schema": schema.to_dict()})
    elif out is None:
        click.echo(text, nl=False)
    if schema.todo:
        _say(f"{len(schema.todo)} column(s) still TODO: {', '.join(schema.todo)}.")
        _say("Fill them in from public knowledge; data is not read with a schema that says TODO.")
    if out is not None:
        _say(f"Wrote {out}.")


def _parse_bounds(text: str) -> tuple[str, tuple[float, float]]:
    name, equals, pair = text.rpartition("=")
    try:
        return name, _range(pair if equals else "")
    except ValueError:
        message = f"--bounds wants NAME=LOW:HIGH, such as age=0:120, not {text!r}."
        raise UsageError(message) from None


def _range(text: str) -> tuple[float, float]:
    low, _, high = text.partition(":")
    return float(low), float(high)


def _parse_categories(text: str) -> tuple[str, list[str]]:
    name, equals, values = text.partition("=")
    if not equals or not values:
        raise UsageError(f"--categories wants NAME=A,B,…, such as sex=Male,Female, not {text!r}.")
    return name, _split(values)


def _split(text: str) -> list[str]:
    return [value.strip() for value in text.split(",") if value.strip()]


def _asked(schema: Schema, decisions: Decisions) -> Decisions:
    """What the person at the terminal decides; an empty answer leaves the TODO."""
    from tacit.data.describe import Decisions as Decided

    bounds, categories = dict(decisions.bounds), dict(decisions.categories)
    _say("Answer from public knowledge, not from the data. Enter leaves a TODO.")
    for name, what in schema.todo.items():
        if what == "bounds":
            answer = _prompt(f"Bounds of {name} (low:high)", _range)
            bounds |= {name: answer} if answer else {}
        else:
            values = _prompt(f"Categories of {name} (a, b, …)", _split)
            categories |= {name: values} if values else {}
    return Decided(bounds, categories, decisions.label, decisions.person)


def _prompt(question: str, read: Any) -> Any:
    while True:
        answer = click.prompt(question, default="", show_default=False, err=True)
        if not answer.strip():
            return None
        try:
            return read(answer)
        except ValueError:
            _say("That was not understood: two numbers with a colon between, such as 0:120.")
