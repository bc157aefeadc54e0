"""`tacit me`: a person's own data on her own machine, from exports to models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tacit.cli.me_learn import ask, features, instances, predict, train
from tacit.cli.me_problems import adopt, problems, share
from tacit.cli.me_problems import show as show_problem
from tacit.cli.me_store import moment_of, opened, pairs_of, store_options
from tacit.cli.output import json_option, people, print_document
from tacit.errors import UsageError

__all__ = ["me"]


@click.group()
def me() -> None:
    """Your own data on your own machine: import, look, ask, learn. Nothing is sent anywhere.

    The store is `me.db` in tacit's folder. It is sealed if you set a passphrase (`tacit me seal`);
    then give it in TACIT_PASSPHRASE, or when asked.
    """


# ── bringing data in ──


@me.command("import")
@click.argument("export", type=click.Path(path_type=Path))
@click.option("--as", "importer", help="Which importer; by default the one that recognises it.")
@click.option("--source", help="What to call where it came from; by default as the importer.")
@click.option(
    "-o", "--option", "options", multiple=True, metavar="NAME=VALUE", help="For the importer."
)
@click.option("--zone", help="Of times that are written without one: Europe/Zurich.")
@click.option("--skip-damaged", is_flag=True, help="Leave out records that cannot be read.")
@store_options
@json_option
def import_(
    export: Path,
    importer: str | None,
    source: str | None,
    options: tuple[str, ...],
    zone: str | None,
    skip_damaged: bool,
    store: Path | None,
    as_json: bool,
) -> None:
    """Import EXPORT: a file, folder or zip as you downloaded it. `tacit me importers` lists kinds.

    Importing it again adds nothing; a newer export adds what is new. All of it is imported, or
    nothing.
    """
    from tacit.cli.me_view import imported_document, importing, print_imported
    from tacit.personal.importing import import_export

    with opened(store, create=zone or "") as held, importing(people(as_json=True)) as progress:
        done = import_export(
            held,
            export,
            importer,
            source,
            pairs_of(options, "NAME=VALUE"),
            skip_damaged,
            _zone(zone),
            progress,
        )
    if as_json:
        print_document(imported_document(done))
    else:
        print_imported(people(), done)


@me.command()
@json_option
def importers(as_json: bool) -> None:
    """List the kinds of exports that can be imported, and how to get them."""
    from tacit.cli.me_view import importers_document, print_importers
    from tacit.personal.importers.plugins import broken
    from tacit.personal.importers.plugins import importers as known

    if as_json:
        print_document(importers_document(known(), broken()))
    else:
        print_importers(people(), known(), broken())


@me.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--person", default=0, show_default=True, help="Which one: others, other habits.")
@json_option
def example(folder: Path, person: int, as_json: bool) -> None:
    """Write the exports of an invented student into FOLDER, to try things out."""
    from tacit.personal.example import write_example

    files = write_example(folder, person)
    if as_json:
        print_document({"files": [str(path) for path in files]})
    else:
        for path in files:
            people().print(str(path), markup=False)


# ── looking at it ──


@me.command()
@store_options
@json_option
def sources(store: Path | None, as_json: bool) -> None:
    """Where your events came from."""
    from tacit.cli.me_view import print_sources, sources_document

    with opened(store) as held:
        found, zone = held.sources(), held.zone
    if as_json:
        print_document(sources_document(found, zone))
    else:
        print_sources(people(), found, zone)


@me.command()
@click.argument("type_", metavar="[TYPE]", required=False)
@click.option("--since", help="2024-01-31, or 2024-01-31T07:00.")
@click.option("--until", help="Before then.")
@click.option("--source", "from_", multiple=True, help="Only from there. Several.")
@click.option("--limit", default=20, show_default=True, help="How many to show; the latest.")
@click.option("--out", type=click.Path(path_type=Path), help="Write all of them as CSV here.")
@store_options
@json_option
def events(
    type_: str | None,
    since: str | None,
    until: str | None,
    from_: tuple[str, ...],
    limit: int,
    out: Path | None,
    store: Path | None,
    as_json: bool,
) -> None:
    """Show the types of your events, or the events of one TYPE."""
    from tacit.cli import me_view as view

    with opened(store) as held:
        if type_ is None:
            types, counts = held.catalogue(), held.counts()
        else:
            zone = held.zone
            dataset = held.dataset(
                [type_], moment_of(since, zone), moment_of(until, zone), from_ or None
            )
    if type_ is None:
        if out is not None:
            raise UsageError("say which type of events to write: tacit me events TYPE --out FILE")
        if as_json:
            print_document(view.types_document(types, counts))
        else:
            view.print_types(people(), types, counts)
        return
    table = dataset.of(type_)
    if out is not None:
        view.write_events(table, dataset.zone, out)
    if as_json:
        print_document(view.events_document(table, dataset.zone, limit))
    else:
        view.print_events(people(), table, dataset.zone, limit)


# ── keeping it to oneself ──


@me.command()
@click.argument("source")
@click.option("--yes", is_flag=True, help="Do not ask.")
@store_options
@json_option
def forget(source: str, yes: bool, store: Path | None, as_json: bool) -> None:
    """Take everything away that came from SOURCE, and every model that learned from it."""
    with opened(store) as held:
        for found in [one for one in held.sources() if one.name == source and not yes]:
            click.confirm(f"Forget {found.events:,} events from {source}?", abort=True, err=True)
        gone = held.forget(source)
    if as_json:
        print_document({"source": gone.name, "events": gone.events})
    else:
        people().print(f"{gone.events:,} events from {gone.name} are gone.", markup=False)


@me.command()
@click.option("--off", is_flag=True, help="Take the passphrase away.")
@store_options
@json_option
def seal(off: bool, store: Path | None, as_json: bool) -> None:
    """Seal your store with a passphrase, or with another one. It cannot be recovered."""
    from tacit.cli.me_store import new_passphrase

    with opened(store, create="") as held:
        held.reseal(None if off else new_passphrase())
    if as_json:
        print_document({"sealed": not off})
    else:
        people().print("The store is open." if off else "The store is sealed.", markup=False)


def _zone(name: str | None) -> Any:
    from tacit.cli.me_store import zone_named

    return None if name is None else zone_named(name)


for command in (share, adopt, problems, show_problem, instances, features, train, predict, ask):
    me.add_command(command)
