"""What `tacit me` shows of sources, events and imports."""

from __future__ import annotations

import csv
import datetime
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from tacit.personal.dataset import EventTable
from tacit.personal.events import EPOCH, MICROSECOND, EventType, Value
from tacit.personal.importers.importer import Importer
from tacit.personal.importing import Imported, Progress
from tacit.personal.store.store import Source

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "day",
    "events_document",
    "imported_document",
    "importers_document",
    "importing",
    "print_events",
    "print_imported",
    "print_importers",
    "print_sources",
    "print_types",
    "safe_cell",
    "shown",
    "sources_document",
    "time_of",
    "types_document",
    "write_events",
]

PLACES = 5  # damaged records that are shown to people


# ── imports ──


@contextmanager
def importing(console: Console) -> Iterator[Progress]:
    """A bar that follows the bytes of an export."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[events]:,} events"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None, events=0)

        def told(read: int, of: int, events: int) -> None:
            bar.update(task, completed=min(read, of), total=max(of, 1), events=events)

        yield told


def imported_document(done: Imported) -> dict[str, Any]:
    return {
        "source": done.source,
        "importer": done.importer,
        "added": dict(done.added),
        "known": done.known,
        "damaged": done.damaged,
        "places": list(done.places),
    }


def print_imported(console: Console, done: Imported) -> None:
    total = sum(done.added.values())
    of = ", ".join(f"{count:,} {name}" for name, count in done.added.items() if count)
    text = f"{done.source}: {total:,} events added" + (f" ({of})" if of else "")
    if done.known:
        text += f"; {done.known:,} were here already"
    console.print(text + ".", markup=False)
    if done.damaged:
        console.print(f"{done.damaged:,} records were damaged and left out:", markup=False)
        for place in done.places[:PLACES]:
            console.print(f"  {place}", markup=False)
        if done.damaged > PLACES:
            console.print("  … (--json lists up to a hundred)", markup=False)


def importers_document(known: Mapping[str, Importer], broken: Mapping[str, str]) -> dict[str, Any]:
    return {
        "importers": [
            {
                "name": one.name,
                "title": one.title,
                "hint": one.hint,
                "events": [kind.name for kind in one.types],
                "options": dict(one.options),
            }
            for one in known.values()
        ],
        "broken": dict(broken),
    }


def print_importers(
    console: Console, known: Mapping[str, Importer], broken: Mapping[str, str]
) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("--as", "reads", "how to get it"):
        table.add_column(heading, overflow="fold")
    for one in known.values():
        options = "".join(f"\n-o {name}=…  {text}" for name, text in one.options.items())
        table.add_row(one.name, one.title, one.hint + options)
    console.print(table, soft_wrap=False)
    for name, reason in broken.items():
        console.print(f"{name}: does not load: {reason}", markup=False)


# ── what is there ──


def sources_document(sources: list[Source], zone: ZoneInfo) -> dict[str, Any]:
    return {
        "sources": [
            {
                "name": source.name,
                "importer": source.importer,
                "exports": list(source.exports),
                "events": source.events,
                "since": day(source.since, zone),
                "until": day(source.until, zone),
            }
            for source in sources
        ]
    }


def print_sources(console: Console, sources: list[Source], zone: ZoneInfo) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("source", "importer", "events", "from", "to"):
        table.add_column(heading, justify="right" if heading == "events" else "left")
    for source in sources:
        ends = (day(source.since, zone) or "", day(source.until, zone) or "")
        table.add_row(source.name, source.importer, f"{source.events:,}", *ends)
    console.print(table)


def types_document(types: Mapping[str, EventType], counts: Mapping[str, int]) -> dict[str, Any]:
    return {
        "types": [
            {
                "name": kind.name,
                "events": counts[kind.name],
                "static": kind.static,
                "about": kind.about,
                "fields": dict(kind.fields),
            }
            for kind in types.values()
        ]
    }


def print_types(
    console: Console, types: Mapping[str, EventType], counts: Mapping[str, int]
) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("type", "events", "what it is", "fields"):
        table.add_column(heading, justify="right" if heading == "events" else "left")
    for kind in types.values():
        fields = ", ".join(f"{name} ({there})" for name, there in kind.fields.items())
        table.add_row(kind.name, f"{counts[kind.name]:,}", kind.about, fields)
    console.print(table, soft_wrap=False)


def events_document(table: EventTable, zone: ZoneInfo, limit: int) -> dict[str, Any]:
    latest = [
        {"time": when, "source": source, **values}
        for when, source, values in _rows(_latest(table, limit), zone)
    ]
    return {"type": table.kind.name, "events": table.rows, "shown": latest}


def print_events(console: Console, table: EventTable, zone: ZoneInfo, limit: int) -> None:
    from rich.table import Table

    view = Table(box=None, pad_edge=False)
    for heading in ("time", "source", *table.kind.fields):
        view.add_column(heading, overflow="ellipsis", no_wrap=True, max_width=40)
    for when, source, values in _rows(_latest(table, limit), zone):
        view.add_row(when or "", source, *(shown(value) for value in values.values()))
    console.print(view, soft_wrap=False)
    if table.rows > limit:
        console.print(f"the latest {limit:,} of {table.rows:,}", markup=False)


def write_events(table: EventTable, zone: ZoneInfo, path: Path) -> None:
    """All events as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["time", "source", *table.kind.fields])
        for when, source, values in _rows(table, zone):
            cells = ("" if value is None else value for value in values.values())
            writer.writerow([when or "", source, *(safe_cell(cell) for cell in cells)])


def safe_cell(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula gets an apostrophe, which it hides."""
    if isinstance(value, str) and value.lstrip(" \"'").startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{value}"
    return value


def shown(value: Value) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return "" if value is None else str(value)


def day(moment: int | None, zone: ZoneInfo) -> str | None:
    return None if moment is None else time_of(moment, zone)[:10]


def time_of(moment: int, zone: ZoneInfo) -> str:
    """As the person's clock shows it."""
    return (EPOCH + moment * MICROSECOND).astimezone(zone).isoformat(timespec="minutes")


def _latest(table: EventTable, limit: int) -> EventTable:
    return EventTable(table.kind, table.table.slice(max(0, table.rows - limit)))


def _rows(table: EventTable, zone: ZoneInfo) -> Iterator[tuple[str | None, str, dict[str, Any]]]:
    for event in table.events():
        when = None if event.time is None else event.time.astimezone(zone).isoformat()
        values = {name: _plain(event.fields[name], zone) for name in table.kind.fields}
        yield when, event.source, values


def _plain(value: Value, zone: ZoneInfo) -> Any:
    is_time = isinstance(value, datetime.datetime)
    return value.astimezone(zone).isoformat() if is_time else value  # type: ignore[union-attr]
