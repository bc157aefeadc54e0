"""How far this machine has seen a store come, noted outside the store's folder.

A store that is put back to an earlier state, is copied to another place, or is gone, cannot know.
Notes in the user's home folder (`seen/`) can. One is named by the store's place and says which
store is there; one is named by the store's random name and says where it is and how many steps it
had taken. They guard against mistakes: a folder copied back or to another path, a file emptied, a
volume that was not mounted. Whoever puts the whole machine back puts the notes back with it; others
remember then (federation/server.md).

A note may be behind its store, never ahead of it: it is written once a step is on the disk.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tacit.errors import CheckFailed
from tacit.home import tacit_home

__all__ = ["Note", "Seen"]


@dataclass(frozen=True, slots=True)
class Note:
    """What was seen: a store of this name, at this place, after so many steps. `words` are the
    role's own, for the time after a restore."""

    store: str
    id: str
    steps: int
    words: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """The notes about one store, named by its place, role and study, and by its random name."""

    store: Path
    role: str
    study: str

    @classmethod
    def of(cls, store: Path, role: str, study: str) -> Seen:
        return cls(store.resolve(), role, study)

    @property
    def note(self) -> Path:
        return self._file(str(self.store), ".json")

    def lock(self, id: str) -> Path:
        """The file to lock, which all copies of a store have in common."""
        return self._file(f"id {id}", ".lock")

    def _file(self, what: str, ending: str) -> Path:
        name = hashlib.sha256(f"{what}\n{self.role}\n{self.study}".encode()).hexdigest()[:32]
        return tacit_home() / "seen" / f"{name}{ending}"

    def _of_id(self, id: str) -> Path:
        return self._file(f"id {id}", ".json")

    def write(self, id: str, steps: int, words: str = "") -> None:
        """Replace both notes. Not synced: after a power failure they may be behind, as they may."""
        self.note.parent.mkdir(parents=True, exist_ok=True)
        said = {"store": str(self.store), "id": id, "steps": steps, "words": words}
        content = json.dumps(said).encode().ljust(1024)  # one length: never half old, half new
        for note in (self._of_id(id), self.note):
            # Written over, not emptied first: a full disk leaves the older note.
            with os.fdopen(os.open(note, os.O_WRONLY | os.O_CREAT, 0o666), "wb") as file:
                file.write(content)
                file.truncate()

    def here(self) -> Note | None:
        """Of the store that was seen at this place."""
        return _read(self.note)

    def named(self, id: str) -> Note | None:
        """Of the store of this name, wherever it was."""
        return _read(self._of_id(id))

    def check_missing(self) -> None:
        """There is no store: there must never have been one."""
        if self.here() is not None:
            raise CheckFailed(
                f"{self.store} is gone, and this machine has seen it before. A new one would "
                f"answer again what the old one has answered. {_remedy(self.note)}"
            )

    def check(self, here: Note | None, named: Note | None, id: str, steps: int) -> None:
        """The store is here, with this name, after so many steps; the notes are older than that."""
        if here is not None and here.id != id:
            raise CheckFailed(
                f"{self.store} is not the one that this machine has seen here before. "
                f"{_remedy(self.note)}"
            )
        for note, file in ((here, self.note), (named, self._of_id(id))):
            if note is not None and steps < note.steps:
                raise CheckFailed(
                    f"{self.store} has taken {steps} steps, and this machine has seen it take "
                    f"{note.steps}: an older copy was put in its place. {_remedy(file)}"
                )
        if named is not None and named.store != str(self.store) and _is_at(named.store, id):
            raise CheckFailed(
                f"{self.store} is a copy of {named.store}, which is still there. Each could answer "
                f"what the other one has answered: go on with {named.store}, or move it, rather "
                "than copy it. From a backup of `tacit backup`, use `tacit restore`."
            )

    def forget(self) -> None:
        if self.note.exists():
            os.unlink(self.note)


def _read(note: Path) -> Note | None:
    try:
        said = json.loads(note.read_bytes())
        return Note(said["store"], str(said["id"]), int(said["steps"]), said.get("words", ""))
    except (OSError, ValueError, KeyError, TypeError):
        return None  # never seen, or the note itself was lost


def _is_at(place: str, id: str) -> bool:
    """Whether the store of this name is there, and can be read: a damaged one answers nobody."""
    if not Path(place).exists():
        return False
    try:
        with closing(sqlite3.connect(f"{Path(place).as_uri()}?mode=ro", uri=True)) as database:
            return bool(database.execute("SELECT id FROM identity").fetchone() == (id,))
    except sqlite3.Error:
        return False


def _remedy(note: Path) -> str:
    return (
        "Put the newest one back. From a backup of `tacit backup`, use `tacit restore`, which "
        "gives up what may have been answered since. If it was removed on purpose, also remove "
        f"{note}"
    )
