"""Which records of files that grow are new. Files are known by what was used of them, not by name.

Of every file the links of the records that were used are kept (row_chain.py). At a look each file
of the folder is matched with them:

    it begins with all that was used of a file     it is that file, whatever it is called now: what
                                                   comes after is new (a renamed or rotated log)
    so does another file                           what comes after is new too (a daily snapshot)
    all of it is in another file's beginning       a copy: left out, with a warning
    it has a known name and another beginning      new, if what was used is found under another
                                                   name (a rotated log) and most of its records
                                                   are not among those; refused otherwise: it was
                                                   rewritten, reordered or cut
    it begins like another file, then differs      refused
    nothing of it is known                         new

Then the records that are new are looked up one by one among all that were used, in whatever file
and order they come: where more of them are known than chance explains, the file is refused.

Records that are often alike (few columns, few categories) begin alike by chance. Where what two
files have in common says less than EVIDENCE bits, files are told apart by name, and it is said;
where a single record does, its records are not looked up.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from tacit.channels.roles.events import Tell
from tacit.channels.roles.row_chain import Links
from tacit.errors import InputError

__all__ = ["FileNote", "FoundFile", "NewRecords", "Noted", "UsedFile", "begins", "new_records"]

EVIDENCE = 40  # bits in common that are no coincidence
FEWEST = 2  # records that come again before it is more than chance
SURPRISE = math.log(1e6)  # a false refusal in so many windows
NONE = np.zeros(0, dtype=np.uint64)


class Refuse(Protocol):
    """The error about a file: what is wrong, and what to do if that is not the usual remedy."""

    def __call__(self, name: str, problem: str, remedy: str = "") -> InputError: ...


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
    name now and the links after the first `start`; and a digest of each new record by itself. New
    are those from `fresh` on."""

    id: int | None
    name: str
    start: int
    links: Links
    rows: Links
    fresh: int = 0


@dataclass(frozen=True, slots=True)
class Noted:
    """What is stored of earlier windows.

    counted   how many records were used of files that nothing else is known of (tacit 0.1)
    rows      digests of the records by themselves, each as often as it was used
    """

    files: Sequence[UsedFile] = ()
    counted: Mapping[str, int] = field(default_factory=dict)
    rows: Links = field(default_factory=lambda: NONE)


@dataclass(frozen=True, slots=True)
class NewRecords:
    """The records of a file from `start` on were not used.

    id       of what is stored of it, which is the links of the first `stored` records; or None
    named    whether its name is as it was
    rows     digests of the new records by themselves
    """

    file: FoundFile
    start: int = 0
    id: int | None = None
    stored: int = 0
    named: bool = False
    rows: Links = field(default_factory=lambda: NONE)

    @property
    def used_before(self) -> int:
        """How many of its records were used in earlier windows, for all that is stored of it."""
        adopted = self.named and self.id is None
        return self.start if adopted else self.stored

    @property
    def note(self) -> FileNote:
        links = self.file.links[self.stored :]
        return FileNote(self.id, self.file.name, self.stored, links, self.rows, self.start)

    @property
    def count(self) -> int:
        return len(self.file.links) - self.start


@dataclass(frozen=True, slots=True, eq=False)
class _Beginning:
    """Records that others may begin with, too; the first `used` of them were used before."""

    links: Links
    name: str
    used: int = 0


@dataclass
class _Look:
    """One look at a folder. Only files that begin with the same record are compared."""

    used: list[UsedFile]
    bits: float
    rows: Callable[[str], Links]
    refuse: Refuse
    tell: Tell
    found: list[NewRecords] = field(default_factory=list)
    owners: dict[int, FoundFile] = field(default_factory=dict)  # by their places in `used`
    alike: dict[int, list[_Beginning]] = field(default_factory=lambda: defaultdict(list))
    places: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for place, one in enumerate(self.used):
            self.places[int(one.links[0])].append(place)
            self._add(_Beginning(one.links, one.name))

    def _add(self, one: _Beginning) -> None:
        self.alike[int(one.links[0])].append(one)

    def match(self, files: Sequence[FoundFile]) -> list[NewRecords]:
        files = [file for file in files if len(file.links)]
        by_name = {file.name for file in files if self._own(file, {file.name})}
        others = [file for file in files if file.name not in by_name]
        others.sort(key=lambda file: (-len(file.links), file.name))
        sure = {one.name for one in self.used if self.tells(len(one.links))}
        # Something else under a file's name says that the file was moved, however little it tells.
        moved = sure | {file.name for file in others}
        fresh = [file for file in others if not self._own(file, moved)]
        named = {one.name: place for place, one in enumerate(self.used)}
        for file in fresh:
            if file.name in named:
                self._check_rotated(file, named[file.name])
            start = self._start(file)
            if start < len(file.links):
                self._add(_Beginning(file.links, file.name, start))
                self.found.append(NewRecords(file, start))
        return sorted(self.found, key=lambda one: one.file.name)

    def tells(self, records: int) -> bool:
        """Whether so many records in common are no coincidence."""
        return records * self.bits >= EVIDENCE

    def _own(self, file: FoundFile, names: set[str]) -> bool:
        """Whether it is a file that we know by one of these names, which no other file is yet."""
        places = [
            place
            for place in self.places.get(int(file.links[0]), ())
            if place not in self.owners
            and self.used[place].name in names
            and begins(file.links, self.used[place].links)
        ]
        if not places:
            return False
        place = max(places, key=lambda p: len(self.used[p].links))
        one = self.used[place]
        if one.name != file.name:
            self.tell("file renamed", file=file.name, before=one.name, records=len(one.links))
        self.owners[place] = file
        stored = 0 if one.id is None else len(one.links)
        start = self._after(file, len(one.links))
        self._add(_Beginning(file.links, file.name, start))
        self.found.append(NewRecords(file, start, one.id, stored, one.name == file.name))
        return True

    def _after(self, file: FoundFile, start: int) -> int:
        """Where it is new, if another file has grown by the same records."""
        for other in self.alike[int(file.links[0])]:
            shared = _shared(file.links, other.links)
            if shared > start and self.tells(shared):
                self.tell("file goes on", file=file.name, other=other.name, records=shared)
                start = shared
        return start

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

    def _start(self, file: FoundFile) -> int:
        """How many records at its beginning are others' too; all of them, if it is a copy."""
        start = 0
        for other in self.alike.get(int(file.links[0]), ()):
            shared = _shared(file.links, other.links)
            within = shared in (len(other.links), len(file.links))
            if not self.tells(shared):
                if within:
                    self.tell("file alike", file=file.name, other=other.name, records=shared)
            elif shared == len(file.links):
                self.tell("file left out", file=file.name, other=other.name, records=shared)
                return shared
            elif within:
                self.tell("file goes on", file=file.name, other=other.name, records=shared)
                start = max(start, shared)
            elif shared > other.used:
                raise self.refuse(
                    file.name,
                    f"begins with {shared} records that were used already (as {other.name}) and "
                    "then differs: it was cut, reordered or put together anew",
                )
        return start


def _looked_up(look: _Look, found: list[NewRecords], used: Links) -> list[NewRecords]:
    """With the digests of the new records; InputError where those were used before."""
    if not look.tells(1) or not any(one.count for one in found):
        return found
    rows = [look.rows(one.file.name)[: len(one.file.links)] for one in found]
    # Of files that earlier versions have used, digests of single records are not stored.
    before = [own[: one.used_before] for own, one in zip(rows, found, strict=True)]
    stored = np.unique(np.concatenate(before))
    known = np.concatenate([used, stored[~np.isin(stored, used)]])
    checked = []
    for one, own in zip(found, rows, strict=True):
        fresh = own[one.start :]
        again, expected = _come_again(fresh, known)
        familiar = again + (0 if one.named else one.start)  # in all that is new under its name
        if again and familiar >= FEWEST and _is_surprising(again, expected):
            raise look.refuse(
                one.file.name,
                f"has {again} records among its {len(fresh)} new ones that were used before, or "
                "are new in another file as well",
                "Take those out of it, in whatever order they come: a record is used once.",
            )
        known = np.concatenate([known, fresh]) if len(fresh) else known
        checked.append(replace(one, rows=fresh))
    return checked


def _come_again(fresh: Links, known: Links) -> tuple[int, float]:
    """How many records that are known once come again, and how many would by chance.

    Records that are the same only in what they say are often there more than once already. The
    chance that the next one is like one that was seen once is twice the share of those seen twice
    (Good 1953, The population frequencies of species).
    """
    if not len(fresh) or not len(known):
        return 0, 0.0
    rows, counts = np.unique(known, return_counts=True)
    again = int(np.isin(np.unique(fresh), rows[counts == 1]).sum())
    return again, len(fresh) * 2 * float((counts == 2).sum()) / len(known)


def _is_surprising(found: int, expected: float) -> bool:
    """By Chernoff's bound for a Poisson number."""
    if found <= expected:
        return False
    return expected == 0 or found * math.log(found / expected) - found + expected > SURPRISE


def new_records(
    files: Sequence[FoundFile],
    noted: Noted,
    bits: float,
    rows: Callable[[str], Links],
    refuse: Refuse,
    tell: Tell,
) -> list[NewRecords]:
    """What is new in these files, and which file each is; InputError where that cannot be said.

    bits      that one record tells about which it is
    rows      of a file: a digest of each record by itself, whatever stands before it
    """
    adopted = []
    for file in files:
        count = noted.counted.get(file.name, 0)
        if count > len(file.links):
            raise refuse(file.name, f"has fewer records than the {count} that were used of it")
        if count:
            tell("file adopted", file=file.name, records=count)
            adopted.append(UsedFile(None, file.name, file.links[:count]))
    used = [one for one in (*noted.files, *adopted) if len(one.links)]
    look = _Look(used, bits, rows, refuse, tell)
    return _looked_up(look, look.match(files), noted.rows)


def begins(links: Links, beginning: Links) -> bool:
    """The last link of a beginning stands for all of it."""
    count = len(beginning)
    return count <= len(links) and bool(links[count - 1] == beginning[-1])


def _shared(one: Links, other: Links) -> int:
    """How many records two files have in common at their beginning."""
    count = min(len(one), len(other))
    differs = one[:count] != other[:count]
    return int(differs.argmax()) if differs.any() else count
