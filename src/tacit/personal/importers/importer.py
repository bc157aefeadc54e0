"""What an importer is: it reads one kind of export and yields events, in order of the file.

A third party's importer is a class in a package of its own, named in that package's metadata:

    [project.entry-points."tacit.importers"]
    runkeeper = "tacit_runkeeper:Runkeeper"

and tested by subclassing `tacit.personal.importers.contract.ImporterContract`.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable
from zoneinfo import ZoneInfo

from tacit.errors import InputError
from tacit.personal.events import EventType, Value
from tacit.personal.importers.export import Export

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Importer", "Reading", "Record", "Rows"]

SHOWN = 100  # damaged records whose places are kept


class Record(NamedTuple):
    """One event, and where in the export it stands: `line 12`, `Streaming_2024.json, item 7`.

    Its time is the moment when what it says is known. One that lasts stands at its end, and
    `seconds` says how long it lasted: were a night put at its start, a prediction made at midnight
    would see the morning. What is planned, as an appointment, is known before, and stands at its
    start.
    """

    kind: EventType
    time: datetime.datetime | None
    values: Mapping[str, Value]
    place: str


@dataclass(frozen=True, slots=True)
class Rows:
    """Many events at once, for formats that are tables: as fast as the parser.

    The columns are `time` (timestamp[us, UTC]; absent if static) and the fields of the type:
    float64, bool, string or timestamp[us, UTC]. Record i of them stands at `places(i)`.
    """

    kind: EventType
    table: pa.Table
    member: str
    first: int  # the line or row number of the first of them

    def place(self, index: int) -> str:
        return f"{self.member}, row {self.first + index}"


class Reading:
    """What an importer is given beside the export, and where it reports."""

    def __init__(
        self,
        zone: ZoneInfo,
        options: Mapping[str, str] | None = None,
        skip_damaged: bool = False,
    ) -> None:
        """
        zone     of times that the export writes without one
        options  what the user said for this importer, by the names it declares
        """
        self.zone, self.options, self.damages = zone, dict(options or {}), 0
        self.places: list[str] = []
        self._skip = skip_damaged

    def damaged(self, place: str, reason: str) -> None:
        """Say that a record cannot be read: an error, or noted if the user asked to skip those.

        `reason` says what is wrong with the form and never shows a value of the record.
        """
        if not self._skip:
            raise InputError(
                f"{place}: {reason} Nothing was imported. Mend it, or leave such records out with "
                "--skip-damaged."
            )
        self.damages += 1
        if len(self.places) < SHOWN:
            self.places.append(f"{place}: {reason}")


@runtime_checkable
class Importer(Protocol):
    """
    name     what users say: `spotify`; also what its events' source is called by default
    title    for lists: `Spotify streaming history`
    hint     how to get the export, in a sentence or two
    types    the events it makes; empty if that depends on the file
    options  what may be said for it: name → help
    """

    # Read-only, so that plain class attributes of narrower types fit.
    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def hint(self) -> str: ...

    @property
    def types(self) -> tuple[EventType, ...]: ...

    @property
    def options(self) -> Mapping[str, str]: ...

    def recognises(self, export: Export) -> bool:
        """Whether this looks like its export, from names and the first bytes alone."""
        ...

    def read(self, export: Export, reading: Reading) -> Iterator[Record | Rows]:
        """The events, streaming: never the whole export in memory.

        A record that cannot be read goes to `reading.damaged`; an export that is empty yields
        nothing; one that breaks off in the middle of a record has that record damaged.
        """
        ...
