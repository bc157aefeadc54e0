"""One process per store: a lock that dies with its process and names it to others.

The lock is the system's own (flock; on Windows, a locked byte), on a file beside the store. However
the process ends, `kill -9` included, the system lets go of it: there is nothing to clean up, and no
process number that could be somebody else's by now.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import weakref
from datetime import UTC, datetime
from pathlib import Path

from tacit.errors import Refused

__all__ = ["Lock"]

FAR = 2**20  # the byte that Windows locks lies behind the words, which others must be able to read


class Lock:
    """Held from here to `release` or the end of the process; Refused if another one holds it."""

    def __init__(self, store: Path, path: Path | None = None, what: str = "") -> None:
        """At `path`, else beside the store; `what` is locked, in words, else the store."""
        self.path = path or store.with_name(store.name + ".lock")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        self.release = weakref.finalize(self, os.close, file)  # at the latest when it is dropped
        self.release.atexit = False
        try:
            _take(file)
        except OSError:
            words = _holder(file)
            self.release()
            raise Refused(
                f"{what or store} is in use by {words}. One process at a time may work on it, or a "
                "question could be answered twice: stop that one first, or name another folder."
            ) from None
        os.ftruncate(file, 0)
        os.pwrite(file, _myself(), 0)


def _take(file: int) -> None:
    """OSError if somebody else has it."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(file, FAR, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _myself() -> bytes:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return json.dumps({"pid": os.getpid(), "host": platform.node(), "since": since}).encode()


def _holder(file: int) -> str:
    """The process that holds the lock, in words; it may be about to write them."""
    try:
        said = json.loads(os.pread(file, 4096, 0))
        return f"process {said['pid']} on {said['host']}, since {said['since']}"
    except (ValueError, KeyError, TypeError, OSError):
        return "another process"
