"""The clock, and which process made a reservation: all that the ledger reads of its surroundings.

A reservation whose process is gone was interrupted. A process number alone does not name a process,
since numbers are used again: the time it started and the boot of its machine are noted with it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

__all__ = ["Fate", "Owner", "Surroundings", "entry_time", "later"]

log = logging.getLogger("tacit.ledger")

PROC = Path("/proc")
CLOCK_TOLERANCE = timedelta(minutes=1)  # between processes and machines that share a ledger


class Fate(StrEnum):
    """What became of the process that made a reservation, as far as can be seen from here."""

    RUNNING = "running"
    GONE = "gone"
    ELSEWHERE = "elsewhere"  # before the last boot, in another container, on another machine


@dataclass(frozen=True, slots=True)
class Owner:
    """One process. `started` is None where the system does not tell it cheaply."""

    host: str
    pid: int
    started: int | None

    def as_body(self) -> dict[str, Any]:
        return asdict(self)


class Surroundings:
    """The real clock and the real processes; tests give others."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def owner(self) -> Owner:
        """This process; asked anew each time, since a fork changes the answer."""
        pid = os.getpid()
        state = process_state(pid)
        return Owner(this_host(), pid, state[1] if state else None)

    def fate(self, owner: Owner) -> Fate:
        if owner.host != this_host():
            return Fate.ELSEWHERE
        return fate_here(owner, process_state(owner.pid), exists(owner.pid))


def entry_time(clock: datetime, newest: str) -> str:
    """When an entry is made: never before the newest one, whatever the clock says. Else what is
    spent while the clock is set back would be old as soon as it is right again."""
    at = clock.isoformat(timespec="milliseconds")
    if not newest:
        return at
    behind = datetime.fromisoformat(newest) - clock
    if behind > CLOCK_TOLERANCE:
        log.warning(
            "this machine's clock says %s, and the ledger's newest entry was made at %s: what is "
            "written now gets that time. Set the clock right.",
            at,
            newest,
        )
    return later(at, newest)


def later(one: str, other: str) -> str:
    """Of two timestamps; an empty one is before all others."""
    if not one or not other:
        return one or other
    return max(one, other, key=datetime.fromisoformat)


def fate_here(owner: Owner, state: tuple[str, int] | None, number_in_use: bool) -> Fate:
    """The fate of a process of this host, from what the system says of its number."""
    if state is None:
        return Fate.RUNNING if number_in_use else Fate.GONE
    letter, started = state
    ended = letter in "ZX"  # killed, and not yet collected by its parent
    return Fate.GONE if ended or started != owner.started else Fate.RUNNING


def this_host() -> str:
    """A name for this boot of this machine (and this container), which tells nothing about it."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text()
        # Process numbers mean nothing outside their namespace.
        boot += os.readlink(PROC / "self/ns/pid")
    except OSError:
        boot = platform.node()
    return hashlib.sha256(boot.encode()).hexdigest()[:16]


def process_state(pid: int) -> tuple[str, int] | None:
    """State letter and start time from /proc (proc(5), fields 3 and 22); None if it has none."""
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    # Field 2 is the program's name in brackets and may itself hold blanks and brackets.
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[19])


def exists(pid: int) -> bool:
    """Whether the process number is in use."""
    if sys.platform == "win32":
        return False  # os.kill would end the process there; the holder's word decides instead
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
