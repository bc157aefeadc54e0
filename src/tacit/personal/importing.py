"""From an export to events in a store: all of it, or nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from tacit.errors import InputError, UsageError
from tacit.personal.events import NAME, EventType
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Importer, Reading
from tacit.personal.importers.plugins import importer_named, recognised
from tacit.personal.intake import Intake
from tacit.personal.store.store import Store
from tacit.personal.store.writing import Writer

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Imported", "Progress", "chosen_importer", "import_export"]

Progress = Callable[[int, int, int], None]
"""Is told the bytes read, the bytes there are, and the events so far."""


@dataclass(frozen=True)
class Imported:
    """What came of it: events that are new, that were there before, and records left out."""

    source: str
    importer: str
    added: Mapping[str, int]
    known: int
    damaged: int
    places: tuple[str, ...] = field(repr=False)


def import_export(
    store: Store,
    path: str | Path,
    importer: str | Importer | None = None,
    source: str | None = None,
    options: Mapping[str, str] | None = None,
    skip_damaged: bool = False,
    zone: ZoneInfo | None = None,
    progress: Progress | None = None,
) -> Imported:
    """Import an export.

    importer      by name, or itself; by default the one that recognises the export
    source        what its events' source is called; by default as the importer
    skip_damaged  leave records out that cannot be read, and report them; otherwise they are errors
    zone          of times that are written without one; by default the store's
    """
    export = Export(path)
    reader = _importer(importer, export)
    name = source or reader.name
    if not NAME.fullmatch(name):
        raise UsageError(f"{name[:40]!r} cannot name a source: small letters, digits and _.")
    unknown = sorted(set(options or {}) - set(reader.options))
    if unknown:
        known = ", ".join(reader.options) or "none"
        raise UsageError(f"{reader.name} has no option {unknown[0]}; it has: {known}.")
    reading = Reading(zone or store.zone, options, skip_damaged)
    intake = Intake(reading)
    added: Counter[str] = Counter()
    seen = 0
    with store.changing():
        writer = Writer(store, name, reader.name, export.name)

        def taken(ready: Iterable[tuple[EventType, pa.Table]]) -> None:
            nonlocal seen
            for kind, table in ready:
                added[kind.name] += writer.add(kind, table)
                seen += table.num_rows
                if progress is not None:
                    progress(export.seen, export.size, seen)

        for item in reader.read(export, reading):
            taken(intake.taken(item))
        taken(intake.rest())
    new = dict(sorted(added.items()))
    return Imported(
        name, reader.name, new, seen - sum(new.values()), reading.damages, tuple(reading.places)
    )


def chosen_importer(export: Export) -> Importer:
    """The one importer that recognises the export."""
    fitting = recognised(export)
    if not fitting:
        raise InputError(
            f"{export.path}: no importer recognises it. `tacit me importers` lists them; say which "
            "with --as."
        )
    if len(fitting) > 1:
        names = ", ".join(one.name for one in fitting)
        raise UsageError(f"{export.path}: {names} could read it. Say which with --as.")
    return fitting[0]


def _importer(importer: str | Importer | None, export: Export) -> Importer:
    if importer is None:
        return chosen_importer(export)
    return importer_named(importer) if isinstance(importer, str) else importer
