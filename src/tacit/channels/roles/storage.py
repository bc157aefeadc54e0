"""Whether an error says that the machine cannot write: a disk that is full, gone or read-only.

Such a fault says nothing about a study or its records: once there is room, whoever is started again
goes on.
"""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

from tacit.errors import StorageError

__all__ = ["storage_error", "storage_problem"]

FAULTS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}
# Primary result codes of SQLite: https://www.sqlite.org/rescode.html
SQLITE_FAULTS = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
}


def storage_problem(error: BaseException) -> str | None:
    """What the system said, if it could not write; None for any other error."""
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        return str(error) if code in SQLITE_FAULTS else None
    if isinstance(error, OSError) and error.errno in FAULTS:
        place = "" if error.filename is None else f": {error.filename}"
        return f"{error.strerror or 'the disk failed'}{place}"
    return None


def storage_error(problem: str, folder: Path | None = None) -> StorageError:
    where = "a file of this role or of your home" if folder is None else str(folder)
    return StorageError(
        f"{where} cannot be written ({problem}). Nothing is lost: make room, or make it writable, "
        "and start again; it goes on where it was."
    )
