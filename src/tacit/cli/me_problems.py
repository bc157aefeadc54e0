"""`tacit me problems|show|share|adopt`: definitions of what to predict."""

from __future__ import annotations

from pathlib import Path

import click

from tacit.cli.keys import HOLDER, key_named
from tacit.cli.me_store import opened, store_options
from tacit.cli.output import fail, json_option, people, print_document
from tacit.errors import CheckFailed, UsageError

__all__ = ["adopt", "problems", "share", "show"]

file_argument = click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))


@click.command()
@store_options
@json_option
def problems(store: Path | None, as_json: bool) -> None:
    """List the problems that you keep, and which have a model."""
    with opened(store) as held:
        kept, models = held.kept("problem"), held.kept("model")
    rows = [
        {
            "name": one.name,
            "question": one.about,
            "events": list(one.types),
            "model": name in models,
        }
        for name, one in kept.items()
    ]
    if as_json:
        print_document({"problems": rows})
        return
    for row in rows:
        trained = ", trained" if row["model"] else ""
        people().print(f"{row['name']}{trained}: {row['question']}", markup=False)
    if not rows:
        people().print("None yet. Write one, train on it, or: tacit me adopt", markup=False)


@click.command()
@file_argument
@json_option
def show(file: Path, as_json: bool) -> None:
    """Explain a problem or bundle FILE in plain words: what it reads, what it predicts."""
    from rich.text import Text

    from tacit.crypto.signing import fingerprint
    from tacit.personal.problems.bundle import Bundle

    bundle = Bundle.load(file)
    sections = bundle.explained()
    if as_json:
        print_document(
            {
                "name": bundle.problem.name,
                "digest": bundle.digest,
                "author": bundle.author or None,
                "explanation": {section.title: list(section.lines) for section in sections},
            }
        )
    else:
        console = people()
        console.print(Text(bundle.problem.name, style="bold"))
        console.print(f"digest  {bundle.digest}", markup=False)
        by = f"signed by {fingerprint(bundle.author)}" if bundle.author else "not signed"
        console.print(by, markup=False)
        for section in sections:
            console.print(Text(f"\n{section.title}", style="bold"))
            for line in section.lines:
                console.print(f"  {line}", markup=False)
    if bundle.signature:
        try:
            bundle.check_signature()
        except CheckFailed as error:
            fail(error)


@click.command()
@file_argument
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--key", "key_name", default=HOLDER, show_default=True, help="Who signs.")
@click.option(
    "--schema",
    type=click.Path(path_type=Path),
    help="Also draft the schema of a crowd's study here: bounds are left for you to write in.",
)
@json_option
def share(file: Path, bundle: Path, key_name: str, schema: Path | None, as_json: bool) -> None:
    """Sign the problem in FILE and write it as BUNDLE, to be given to others.

    A bundle holds no data and runs no code. Others look at it with `tacit me show`.
    """
    from tacit.personal.problems.bundle import Bundle
    from tacit.personal.problems.row import schema_of

    for path in filter(None, (bundle, schema)):
        if path.exists():
            raise UsageError(f"{path} is there already: it is not overwritten.")
    signed = Bundle.load(file).signed(key_named(key_name))
    bundle.write_text(signed.to_toml(), encoding="utf-8")
    if schema is not None:
        schema.write_text(schema_of(signed.problem).to_toml(), encoding="utf-8")
    if as_json:
        print_document({"bundle": str(bundle), "digest": signed.digest, "author": signed.author})
    else:
        people().print(f"{bundle}: digest {signed.digest}", markup=False)


@click.command()
@file_argument
@click.option("--yes", is_flag=True, help="You have read what it does.")
@store_options
@json_option
def adopt(file: Path, yes: bool, store: Path | None, as_json: bool) -> None:
    """Keep the problem in the bundle FILE, to train on it. It is explained first."""
    from tacit.personal.pipeline import adopt as keep
    from tacit.personal.problems.bundle import Bundle

    bundle = Bundle.load(file)
    bundle.check_signature()
    if not yes:
        console = people(as_json=True)
        for section in bundle.explained():
            console.print(f"\n{section.title}", markup=False)
            for line in section.lines:
                console.print(f"  {line}", markup=False)
        click.confirm("Keep it?", abort=True, err=True)
    with opened(store) as held:
        bundle.problem.check_against(held.catalogue())
        keep(held, bundle)
    if as_json:
        print_document({"name": bundle.problem.name, "digest": bundle.digest})
    else:
        name = bundle.problem.name
        people().print(f"{name} is kept. Next: tacit me train {name}", markup=False)
