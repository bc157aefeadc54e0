"""A role's store: what is left when it is dropped."""

from __future__ import annotations

import gc
import sqlite3
import weakref
from pathlib import Path

import pytest

from tacit.channels.federation.journal import Journal
from tacit.channels.roles.store import MEMORY
from tacit.errors import Refused


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_a_store_that_is_dropped_is_closed(tmp_path: Path, where: str) -> None:
    store = Journal(MEMORY if where == "memory" else tmp_path / "journal.db", "a study")
    store.put_member("somebody", True)
    database, dropped = store.database, weakref.ref(store)
    del store
    gc.collect()
    assert dropped() is None
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        database.execute("SELECT 1")
    assert where == "memory" or Journal(tmp_path / "journal.db", "a study").members()


def test_a_store_that_is_refused_is_closed(tmp_path: Path) -> None:
    Journal(tmp_path / "journal.db", "a study").close()
    with pytest.raises(Refused):
        Journal(tmp_path / "journal.db", "another study")
    gc.collect()
    assert not (tmp_path / "journal.db-wal").exists()
