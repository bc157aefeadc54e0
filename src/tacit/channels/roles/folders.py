"""Where a role of a study keeps its state: a folder for each study, told apart by its digest.

A study that was corrected keeps its name and is another study: it has a folder of its own. Folders
of earlier versions bear the name alone, and are gone on with by the study that began them.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tacit.channels.studies.agreement import Named

__all__ = ["study_folder"]

DIGITS = 12  # of the digest: enough to tell all studies of one name apart


def study_folder(home: Path, study: Named, role: str) -> Path:
    """The folder of `role` in this study; one that was begun under the name alone, if it is its."""
    own = home / "studies" / f"{study.name}-{study.digest[:DIGITS]}-{role}"
    earlier = home / "studies" / f"{study.name}-{role}"
    return earlier if not own.exists() and _belongs(earlier, study.digest) else own


def _belongs(folder: Path, digest: str) -> bool:
    """Whether a store in the folder says that it is this study's."""
    return any(_study_of(path) == digest for path in sorted(folder.glob("*.db")))


def _study_of(path: Path) -> str | None:
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            found = database.execute("SELECT study FROM about").fetchone()
    except sqlite3.Error:
        return None
    return None if found is None else str(found[0])
