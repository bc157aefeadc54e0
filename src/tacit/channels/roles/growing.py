"""Which records of files that grow are new. Files are known by what was used of them, not by name.

Of every file the links of the records that were used are kept (row_chain.py). At a look each file
of the folder is matched with them:

    it begins with all that was used of a file     it is that file, whatever it is called now: what
                                                   comes after is new (a renamed or rotated log)
    so does another file                           a copy: left out, with a warning
    it has a known name and another beginning      new, if what was used is found under another
                                                   name (a rotated log) and most of its records
                                                   are not among those; refused otherwise: it was
                                                   rewritten, reordered or cut
    all of it was used, as a part of a file        a copy: left out, with a warning
    it begins like a used file, then differs       refused
    nothing of it is known                         new

Records that are often alike (few columns, few categories) begin alike by chance. Where what two
files have in common says less than EVIDENCE bits, copies are told apart by name, and it is said.
A file that was both renamed and rewritten since the last look is a new file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tacit.channels.roles.events import Tell
from tacit.channels.roles.row_chain import Links
from tacit.errors import InputError

__all__ = ["FileNote", "FoundFile", "NewRecords", "UsedFile", "new_records"]

EVIDENCE = 40  # bits in common that are no coincidence


@dataclass(frozen=True, slots=True)
class UsedFile:
    """What was used of a file, and what it was called then. `id` is None until it is stored."""

    id: int | None
    name: str
    links: Links


@dataclass(frozen=True, slots=True, eq=False)
class FoundFile:
    """A file as it is now."""

    name: str
    links: Links


@dataclass(frozen=True, slots=True)
class FileNote:
    """What is to be stored once records were used: for the file `id`, or a new one if None, its
    name now and the links after the first `start`."""

    id: int | None
    name: str
    start: int
    links: Links


@dataclass(frozen=True, slots=True)
class NewRecords:
    """The records of a file from `start` on were not used; up to there they were, as file `id`."""

    file: FoundFile
    start: int = 0
    id: int | None = None

    @property
    def note(self) -> FileNote:
        start = 0 if self.id is None else self.start  # adopted: nothing is stored of it yet
        return FileNote(self.id, self.file.name, start, self.file.links[start:])

    @property
    def count(self) -> int:
        return len(self.file.links) - self.start


@dataclass
class _Look:
    """One look at a folder. Only files that begin with the same record are compared."""

    used: list[UsedFile]
    bits: float
    rows: Callable[[str], Links]
    refuse: Callable[[str, str], InputError]
    tell: Tell
    found: list[NewRecords] = field(default_factory=list)
    owners: dict[int, FoundFile] = field(default_factory=dict)  # by their places in `used`
    alike: dict[int, list[tuple[Links, str]]] = field(default_factory=lambda: defaultdict(list))
    places: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for place, one in enumerate(self.used):
            self.places[int(one.links[0])].append(place)
            self.alike[int(one.links[0])].append((one.links, one.name))

    def match(self, files: Sequence[FoundFile]) -> list[NewRecords]:
        files = [file for file in files if len(file.links)]
        by_name = {file.name for file in files if self._own(file, file.name)}
        others = [file for file in files if file.name not in by_name]
        others.sort(key=lambda file: (-len(file.links), file.name))
        fresh = [file for file in others if not self._own(file)]
        named = {one.name: place for place, one in enumerate(self.used)}
        for file in fresh:
            if file.name in named:
                self._check_rotated(file, named[file.name])
            if self._is_new(file):
                self.alike[int(file.links[0])].append((file.links, file.name))
                self.found.append(NewRecords(file))
        return sorted(self.found, key=lambda one: one.file.name)

    def _own(self, file: FoundFile, before: str | None = None) -> bool:
        """Whether it is a file that we know (by the name `before`), which no other file is yet."""
        places = [
            place
            for place in self.places.get(int(file.links[0]), ())
            if place not in self.owners
            and before in (None, self.used[place].name)
            and _begins(file.links, self.used[place].links)
        ]
        if not places:
            return False
        place = max(places, key=lambda p: len(self.used[p].links))
        one = self.used[place]
        if one.name != file.name:
            self.tell("file renamed", file=file.name, before=one.name, records=len(one.links))
        self.owners[place] = file
        self.found.append(NewRecords(file, len(one.links), one.id))
        return True

    def _check_rotated(self, file: FoundFile, place: int) -> None:
        """What was used under its name must be elsewhere, and this something else."""
        count, moved = len(self.used[place].links), self.owners.get(place)
        if moved is None:
            raise self.refuse(
                file.name,
                f"does not begin with the {count} records that were used of it, and no other file "
                "does: it was rewritten, reordered or cut",
            )
        own = np.unique(self.rows(file.name))
        again = int(np.isin(own, self.rows(moved.name)[:count]).sum())
        if 2 * again >= len(own) and again * self.bits >= EVIDENCE:
            raise self.refuse(
                file.name,
                f"has {again} of the records that were used of it, in another order: those are in "
                f"{moved.name} too",
            )

    def _is_new(self, file: FoundFile) -> bool:
        for links, other in self.alike.get(int(file.links[0]), ()):
            shared = _shared(file.links, links)
            within = shared in (len(links), len(file.links))
            if shared * self.bits < EVIDENCE:
                if within:
                    self.tell("file alike", file=file.name, other=other, records=shared)
            elif within:
                self.tell("file left out", file=file.name, other=other, records=shared)
                return False
            else:
                raise self.refuse(
                    file.name,
                    f"begins with {shared} records that were used already (as {other}) and then "
                    "differs: it was cut, reordered or put together anew",
                )
        return True


def new_records(
    files: Sequence[FoundFile],
    used: Sequence[UsedFile],
    counted: Mapping[str, int],
    bits: float,
    rows: Callable[[str], Links],
    refuse: Callable[[str, str], InputError],
    tell: Tell,
) -> list[NewRecords]:
    """What is new in these files, and which file each is; InputError where that cannot be said.

    counted   how many records were used of files that nothing else is known of (tacit 0.1)
    bits      that one record tells about which it is
    rows      of a file: a digest of each record by itself, whatever stands before it
    """
    adopted = []
    for file in files:
        count = counted.get(file.name, 0)
        if count > len(file.links):
            raise refuse(file.name, f"has fewer records than the {count} that were used of it")
        if count:
            tell("file adopted", file=file.name, records=count)
            adopted.append(UsedFile(None, file.name, file.links[:count]))
    look = _Look([one for one in (*used, *adopted) if len(one.links)], bits, rows, refuse, tell)
    return look.match(files)


def _begins(links: Links, beginning: Links) -> bool:
    """The last link of a beginning stands for all of it."""
    count = len(beginning)
    return count <= len(links) and bool(links[count - 1] == beginning[-1])


def _shared(one: Links, other: Links) -> int:
    """How many records two files have in common at their beginning."""
    count = min(len(one), len(other))
    differs = one[:count] != other[:count]
    return int(differs.argmax()) if differs.any() else count
