"""How far this machine has seen a store come, noted outside the store's folder.

A store that is put back to an earlier state, or is gone, cannot know. A note in the user's home
folder (`seen/`) can: it holds the store's random name and how many steps it had taken. It guards
against mistakes: a folder copied back, a file emptied, a volume that was not mounted. Whoever puts
the whole machine back puts the note back with it; others remember then (federation/server.md).

A note may be behind its store, never ahead of it: it is written once a step is on the disk.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from tacit.errors import CheckFailed
from tacit.home import tacit_home

__all__ = ["Seen"]


@dataclass(frozen=True, slots=True)
class Seen:
    """The note about one store, named by its place, role and study."""

    store: Path
    note: Path

    @classmethod
    def of(cls, store: Path, role: str, study: str) -> Seen:
        place = store.resolve()
        name = hashlib.sha256(f"{place}\n{role}\n{study}".encode()).hexdigest()[:32]
        return cls(place, tacit_home() / "seen" / f"{name}.json")

    def write(self, id: str, steps: int) -> None:
        """Replace the note. Not synced: after a power failure it may be behind, as it may."""
        self.note.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"store": str(self.store), "id": id, "steps": steps})
        content = text.encode().ljust(1024)  # one length: never half old, half new
        # Written over, not emptied first: a full disk leaves the older note.
        with os.fdopen(os.open(self.note, os.O_WRONLY | os.O_CREAT, 0o666), "wb") as file:
            file.write(content)
            file.truncate()

    def read(self) -> tuple[str, int] | None:
        try:
            said = json.loads(self.note.read_bytes())
            return str(said["id"]), int(said["steps"])
        except (OSError, ValueError, KeyError, TypeError):
            return None  # never seen, or the note itself was lost

    def check_missing(self) -> None:
        """There is no store: there must never have been one."""
        if self.read() is not None:
            raise CheckFailed(
                f"{self.store} is gone, and this machine has seen it before. A new one would "
                f"answer again what the old one has answered. {self._remedy}"
            )

    def check(self, id: str, steps: int) -> None:
        """The store is here, with this name, after so many steps."""
        seen = self.read()
        if seen is None or (seen[0] == id and steps >= seen[1]):
            return
        what = (
            f"has taken {steps} steps, and this machine has seen it take {seen[1]}: an older copy "
            "was put in its place"
            if seen[0] == id
            else "is not the one that this machine has seen here before"
        )
        raise CheckFailed(f"{self.store} {what}. {self._remedy}")

    @property
    def _remedy(self) -> str:
        return (
            "Put the newest one back. From a backup of `tacit backup`, use `tacit restore`, which "
            "gives up what may have been answered since. If it was removed on purpose, also remove "
            f"{self.note}"
        )

    def forget(self) -> None:
        if self.note.exists():
            os.unlink(self.note)
