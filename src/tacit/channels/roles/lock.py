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
from datetime import UTC, datetime
from pathlib import Path

from tacit.errors import Refused

__all__ = ["Lock"]

FAR = 2**20  # the byte that Windows locks lies behind the words, which others must be able to read


class Lock:
    """Held from here to `release` or the end of the process; Refused if another one holds it."""

    def __init__(self, store: Path) -> None:
        self.path = store.with_name(store.name + ".lock")
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _take(self._file)
        except OSError:
            words = _holder(self._file)
            os.close(self._file)
            raise Refused(
                f"{store} is in use by {words}. One process at a time may work on it, or a "
                "question could be answered twice: stop that one first, or name another folder."
            ) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, _myself(), 0)

    def release(self) -> None:
        if self._file >= 0:
            os.close(self._file)  # and with it the lock
            self._file = -1


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
