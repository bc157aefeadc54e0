"""Stores: one process, whole files, no older copy, versions that are carried over."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tacit import children
from tacit.channels.federation.journal import Journal
from tacit.channels.federation.outbox import Outbox
from tacit.channels.federation.seals import Question
from tacit.channels.federation.server_store import ServerStore
from tacit.channels.roles.backup import back_up, put_back
from tacit.channels.roles.seen import Seen
from tacit.channels.roles.store import MEMORY, Store
from tacit.errors import CheckFailed, InputError, Refused
from tacit.home import tacit_home
from tacit.privacy.bound import Norm
from tacit.programs.program import Block, Query

STUDY = "ab" * 32
QUERY = Query((Block("sums", 4, Norm.L1, 1, None),))  # type: ignore[arg-type]


def stepped(path: Path, steps: int) -> None:
    """A journal that has taken so many more steps."""
    with closing(Journal(path, STUDY)) as journal:
        first = len(journal.steps()) + 1
        for number in range(first, first + steps):
            with journal.transaction():
                journal.put_step(number, b"state")


# ── one process ──


def test_a_second_opening_names_the_first(tmp_path: Path) -> None:
    path = tmp_path / "aggregator.db"
    with closing(Journal(path, STUDY)), pytest.raises(Refused, match="in use by process") as told:
        Journal(path, STUDY)
    assert f"process {os.getpid()} on " in str(told.value)
    Journal(path, STUDY).close()


def test_the_lock_dies_with_its_process(tmp_path: Path) -> None:
    code = (
        "import os, signal\n"
        "from tacit.channels.federation.journal import Journal\n"
        f"journal = Journal({str(tmp_path / 'a.db')!r}, {STUDY!r})\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    found = children.run([sys.executable, "-c", code], timeout=120, check=False)
    assert found.returncode != 0
    Journal(tmp_path / "a.db", STUDY).close()


def test_of_two_writers_one_closes(tmp_path: Path) -> None:
    """Were there no lock: the second one finds the round settled."""

    class Unlocked(ServerStore):
        alone = False

    first, second = (Unlocked(tmp_path / "server.db", STUDY) for _ in range(2))
    assert first.secret == second.secret
    with first.transaction():
        first.open_round(1, b"state", QUERY)
    questions = [Question(1, b"state", (name,), (b"1" * 32, b"2" * 32)) for name in ("a", "b")]
    with first.transaction():
        first.seal(questions[0])
        first.close_round(1, ["a"], b"answer")
    with pytest.raises(Refused, match="settled before"), second.transaction():
        second.seal(questions[1])
    with pytest.raises(Refused, match="settled before"), second.transaction():
        second.close_round(1, ["b"], b"another")
    assert first.rounds() == second.rounds()
    first.close()
    second.close()


# ── whole files ──


def test_an_empty_or_short_file_is_no_new_store(tmp_path: Path) -> None:
    path = tmp_path / "aggregator.db"
    stepped(path, 50)
    content = path.read_bytes()
    for rest in (0, 50, 100, 4096, len(content) - 1):
        path.write_bytes(content[:rest])
        with pytest.raises(InputError, match=r"tacit restore"):
            Journal(path, STUDY)
    path.write_bytes(content)
    with closing(Journal(path, STUDY)) as journal:
        assert len(journal.steps()) == 50


def test_a_damaged_log_beside_it_is_noticed(tmp_path: Path) -> None:
    """The log holds the newest steps: without them the store is older than what was seen."""
    path, log = tmp_path / "aggregator.db", tmp_path / "aggregator.db-wal"
    stepped(path, 1)
    journal = Journal(path, STUDY)
    with journal.transaction():
        journal.put_step(2, b"state")
    kept = log.read_bytes()
    old = path.read_bytes()
    journal.close()
    path.write_bytes(old)
    log.write_bytes(kept[: len(kept) // 2])
    with pytest.raises(CheckFailed, match="older copy"):
        Journal(path, STUDY)


def test_an_older_copy_or_none_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "aggregator.db"
    stepped(path, 3)
    older = path.read_bytes()
    stepped(path, 1)
    newest = path.read_bytes()
    path.write_bytes(older)
    with pytest.raises(CheckFailed, match="taken 3 steps, and this machine has seen it take 4"):
        Journal(path, STUDY)
    path.unlink()
    with pytest.raises(CheckFailed, match="is gone, and this machine has seen it"):
        Journal(path, STUDY)
    other = tmp_path / "elsewhere" / "aggregator.db"
    stepped(other, 9)
    path.write_bytes(other.read_bytes())
    with pytest.raises(CheckFailed, match="not the one"):
        Journal(path, STUDY)
    path.write_bytes(newest)
    Journal(path, STUDY).close()
    path.unlink()
    Seen.of(path, "aggregator", STUDY).forget()  # as its owner may, on purpose
    Journal(path, STUDY).close()


# ── copies at another place ──


def test_of_a_folder_and_its_copy_one_goes_on(tmp_path: Path) -> None:
    """Whichever is started, in whatever order, and however far each of them is."""
    first, copy = tmp_path / "first", tmp_path / "copy"
    stepped(first / "a.db", 2)
    shutil.copytree(first, copy)
    with pytest.raises(CheckFailed, match=r"copy/a.db is a copy of .*first/a.db, which is still"):
        Journal(copy / "a.db", STUDY)
    stepped(first / "a.db", 1)
    with pytest.raises(CheckFailed, match="taken 2 steps, and this machine has seen it take 3"):
        Journal(copy / "a.db", STUDY)
    shutil.rmtree(first)
    with pytest.raises(CheckFailed, match="taken 2 steps, and this machine has seen it take 3"):
        Journal(copy / "a.db", STUDY)


def test_a_folder_that_was_moved_goes_on_and_what_stays_does_not(tmp_path: Path) -> None:
    first, moved = tmp_path / "first", tmp_path / "moved"
    stepped(first / "a.db", 2)
    first.rename(moved)
    shutil.copytree(moved, tmp_path / "kept")
    stepped(moved / "a.db", 1)
    with pytest.raises(CheckFailed, match="is gone"):
        Journal(first / "a.db", STUDY)
    shutil.copytree(tmp_path / "kept", first, dirs_exist_ok=True)
    for place in ("first", "kept"):
        with pytest.raises(CheckFailed, match="older copy"):
            Journal(tmp_path / place / "a.db", STUDY)


def test_a_copy_waits_for_the_one_at_work_although_its_folder_is_gone(tmp_path: Path) -> None:
    first, copy = tmp_path / "first", tmp_path / "copy"
    stepped(first / "a.db", 2)
    shutil.copytree(first, copy)
    with closing(Journal(first / "a.db", STUDY)):
        shutil.rmtree(first)
        with pytest.raises(Refused, match=r"or a copy of it, is in use by process"):
            Journal(copy / "a.db", STUDY)
    Journal(copy / "a.db", STUDY).close()  # it was moved, then


def test_what_was_restored_is_the_only_one_that_goes_on(tmp_path: Path) -> None:
    """Neither the one that it replaces nor a copy of any age, at any place."""
    first, copy, back = (tmp_path / name for name in ("first", "copy", "back"))
    with closing(Outbox(first / "o.db", STUDY)) as outbox:
        outbox.keep(1, b"state", {"server": b"share"})
    back_up(first, tmp_path / "o.tar", lambda name: None)
    with closing(Outbox(first / "o.db", STUDY)) as outbox:
        outbox.keep(2, b"state", {"server": b"share"})
        name = outbox.id
    shutil.copytree(first, copy)
    with closing(Outbox(first / "o.db", STUDY)) as outbox:
        put_back(tmp_path / "o.tar", back, lambda name: None)
        with pytest.raises(Refused, match="in use"):
            Outbox(back / "o.db", STUDY)
        outbox.keep(3, b"state", {"server": b"share"})
    with closing(Outbox(back / "o.db", STUDY)) as outbox:
        assert outbox.id == name
    for place in (first, copy):
        with pytest.raises(CheckFailed, match="older copy"):
            Outbox(place / "o.db", STUDY)
    shutil.rmtree(back)
    shutil.copytree(copy, back)  # over the restored one
    with pytest.raises(CheckFailed, match="older copy"):
        Outbox(back / "o.db", STUDY)


def test_a_note_of_an_earlier_version_still_counts(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    stepped(path, 1)
    older = path.read_bytes()
    stepped(path, 1)
    for note in (tacit_home() / "seen").glob("*.json"):
        said = json.loads(note.read_bytes())
        del said["words"]
        note.write_text(json.dumps(said))
    path.write_bytes(older)
    with pytest.raises(CheckFailed, match="older copy"):
        Journal(path, STUDY)


def test_what_is_not_durable_is_not_seen(tmp_path: Path) -> None:
    path = tmp_path / "aggregator.db"
    with closing(Journal(path, STUDY)) as journal:
        with pytest.raises(sqlite3.IntegrityError):
            _twice(journal)
        with journal.transaction():
            journal.put_member("somebody", True)
    with closing(Journal(path, STUDY)) as journal:
        assert journal.steps() == []


def _twice(journal: Journal) -> None:
    with journal.transaction():
        for _ in range(2):  # the second time it is there
            journal.put_step(1, b"state")


# ── versions ──


def test_a_newer_store_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "outbox.db"
    Outbox(path, STUDY).close()
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version=9")
    with pytest.raises(InputError, match="version 9; this tacit knows versions up to 5"):
        Outbox(path, STUDY)


def test_every_kind_of_store_has_a_name_and_a_version() -> None:
    for kind in (Journal, Outbox, ServerStore):
        with closing(kind(MEMORY, STUDY)) as store:
            assert isinstance(store, Store)
            assert len(store.id) == 32
            assert store.database.execute("PRAGMA user_version").fetchone() == (kind.version,)


def test_a_secret_is_made_once(tmp_path: Path) -> None:
    with closing(ServerStore(tmp_path / "server.db", STUDY)) as store:
        secret = store.secret
    with closing(ServerStore(tmp_path / "server.db", STUDY)) as store:
        assert store.secret == secret
    with closing(ServerStore(tmp_path / "other.db", STUDY)) as store:
        assert store.secret != secret
    assert len(secret) == 32
    assert (tmp_path / "server.db").stat().st_mode & 0o077 == 0
