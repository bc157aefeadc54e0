"""A holder whose disk fills up at any write, and is started again: one model, one charge."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.channels.federation.aggregator import Aggregator
from tacit.channels.federation.contribution import from_records
from tacit.channels.federation.holder import Holder
from tacit.channels.federation.journal import Journal
from tacit.channels.federation.local import _from_holder, _to_servers, local_study
from tacit.channels.federation.outbox import Outbox
from tacit.channels.federation.server import Server
from tacit.channels.federation.server_store import ServerStore
from tacit.channels.roles.budget import LedgerBudget, NoBudget
from tacit.channels.roles.seen import Seen
from tacit.channels.roles.storage import storage_problem
from tacit.channels.roles.store import MEMORY
from tacit.channels.studies.study import Study
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.data.records import ArrayRecords
from tacit.data.schema import Column, Schema
from tacit.errors import InputError, Refused, StorageError, StudyStopped
from tacit.privacy.ledger import Ledger, Owner, Surroundings
from tacit.privacy.ledger.owner import Fate
from tacit.privacy.promise import Promise
from tacit.programs.kmeans import KMeans

KEYS = [SigningKey.generate() for _ in range(3)]
SCHEMA = Schema(columns=(Column(name="x", type="number", bounds=(0.0, 1.0)),))
STUDY = local_study(KMeans(2, 3), 2, SCHEMA, Promise(1.0, 1e-6), KEYS)
RECORDS = [ArrayRecords(np.linspace(0, 1, 9).reshape(-1, 1) ** power) for power in (1, 2)]
WRITES = ("INSERT", "UPDATE", "DELETE", "BEGIN IMMEDIATE", "COMMIT")


@dataclass
class Disk:
    """Counts writes; from number `full` on they fail: `lasting`, or that one only."""

    full: int
    lasting: bool
    writes: int = 0
    failed: list[str] = field(default_factory=list)

    def write(self, what: str, error: Callable[[], Exception]) -> None:
        self.writes += 1
        if self.writes == self.full or (self.lasting and self.full <= self.writes):
            self.failed.append(what)
            raise error()

    def free(self) -> None:
        self.full, self.lasting = 0, False


def database_full() -> Exception:
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    return error


def no_space() -> Exception:
    return OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Callable[[Disk], None]:
    """Has all files of SQLite, and the notes about stores, on that disk."""
    connect, write = sqlite3.connect, Seen.write

    def put(disk: Disk) -> None:
        class Failing(sqlite3.Connection):
            def execute(self, statement: str, *rest: Any) -> sqlite3.Cursor:
                if statement.startswith(WRITES):
                    disk.write(statement.split("(")[0], database_full)
                return super().execute(statement, *rest)

        def opened(path: Any, *rest: Any, **options: Any) -> sqlite3.Connection:
            kind = sqlite3.Connection if path == MEMORY else Failing
            return connect(path, *rest, factory=kind, **options)

        def noted(self: Seen, id: str, steps: int, words: str = "") -> None:
            disk.write("note", no_space)
            write(self, id, steps, words)

        monkeypatch.setattr(sqlite3, "connect", opened)
        monkeypatch.setattr(Seen, "write", noted)

    return put


class Gone(Surroundings):
    def now(self) -> datetime:
        return datetime(2026, 1, 2, tzinfo=UTC)

    def fate(self, owner: Owner) -> Fate:
        return Fate.GONE


class Cast:
    """A federation in which one holder, with a ledger and an outbox on a disk, may fail."""

    def __init__(self, root: Path, study: Study = STUDY) -> None:
        self.root, self.study, self.lives = root, study, 0
        self.servers = {
            server.key: Server(
                study,
                key,
                ServerStore(MEMORY, study.digest),
                lambda number, place=place: SeededRandomness(f"{place} {number}"),
            )
            for place, (server, key) in enumerate(zip(study.servers, KEYS, strict=False))
        }
        self.aggregator = Aggregator(study, KEYS[-1], Journal(MEMORY, study.digest), 0.0)
        self.other = Holder(
            study,
            study.holders[1].key,
            Outbox(MEMORY, study.digest),
            from_records(study, RECORDS[1]),
            NoBudget(),
        )

    def live(self, contribute: Any = None) -> bytes:
        """One life of the holder: the model, or the error that ended it, as `tacit join` does."""
        self.lives += 1
        ledger = Ledger(self.root / "ledger.db", Gone())
        budget, outbox = LedgerBudget.of(self.study, ledger, "d"), None
        try:
            outbox = Outbox(self.root / "outbox.db", self.study.digest)
            contribute = contribute or from_records(self.study, RECORDS[0])
            key = self.study.holders[0].key
            return self._model(Holder(self.study, key, outbox, contribute, budget))
        except BaseException as error:
            budget.stop(error)
            raise
        finally:
            if outbox is not None:
                outbox.close()

    def _model(self, member: Holder) -> bytes:
        while member.result is None:
            _to_servers(self.aggregator, self.servers)
            for one in (member, self.other):
                _from_holder(one, self.aggregator, self.servers)
        return member.result[0]


def allowed(root: Path) -> None:
    Ledger(root / "ledger.db", Gone()).allow("d", "record", 1.0, 1e-6)


def check_one_charge(root: Path) -> None:
    ledger = Ledger(root / "ledger.db", Gone())
    ledger.verify()
    kinds = [entry.kind for entry in ledger.entries()]
    assert (kinds.count("commit"), kinds.count("draw")) == (1, 1)
    assert ledger.balance("d", "record").spent.epsilon == 1
    assert not ledger.open_spends()


@pytest.mark.parametrize("lasting", [True, False])
def test_a_full_disk_at_any_write(
    tmp_path: Path, on: Callable[[Disk], None], lasting: bool
) -> None:
    models, failed, number = set(), set(), 0
    while True:
        number += 1
        root = tmp_path / str(number)
        root.mkdir()
        allowed(root)
        cast, disk = Cast(root), Disk(number, lasting)
        on(disk)
        for _ in range(2):
            try:
                models.add(cast.live())
                break
            except Exception as error:
                if not isinstance(error, StorageError) and storage_problem(error) is None:
                    raise
                disk.free()
        else:
            raise AssertionError("it did not go on")
        disk.free()
        check_one_charge(root)
        failed.update(disk.failed[:1])
        if not disk.failed:
            break
    assert number > 30
    assert len(models) == 1
    assert {"note", "COMMIT", "BEGIN IMMEDIATE", "INSERT INTO result VALUES "} <= failed


class Defect(Exception):
    pass


@pytest.mark.parametrize(
    "error",
    [no_space(), MemoryError(), KeyboardInterrupt(), Defect(), InputError("a bad cell")],
    ids=lambda error: type(error).__name__,
)
def test_whatever_is_not_final_is_gone_on_with(tmp_path: Path, error: BaseException) -> None:
    allowed(tmp_path)
    cast, right = Cast(tmp_path), from_records(STUDY, RECORDS[0])

    def failing(number: int, state: Any, query: Any) -> Any:
        if number == 2:
            raise error
        return right(number, state, query)

    with pytest.raises(type(error)):
        cast.live(failing)
    ledger = Ledger(tmp_path / "ledger.db", Gone())
    (spend,) = ledger.interrupted()
    assert spend.resumable
    assert spend.drawn
    cast.live()
    check_one_charge(tmp_path)


def test_only_a_final_refusal_settles(tmp_path: Path) -> None:
    allowed(tmp_path)
    ledger = Ledger(tmp_path / "ledger.db", Gone())
    for error, is_open in ((Refused("no"), True), (StudyStopped("for good"), False)):
        budget = LedgerBudget.of(STUDY, ledger, "d")
        budget.belongs_to("one")
        budget.reserve(1)
        budget.spend(1)
        budget.stop(error)
        assert bool(ledger.open_spends()) is is_open
    assert ledger.balance("d", "record").spent.epsilon == 1


def test_what_was_not_begun_is_given_back(tmp_path: Path) -> None:
    allowed(tmp_path)
    ledger = Ledger(tmp_path / "ledger.db", Gone())
    budget = LedgerBudget.of(STUDY, ledger, "d")
    budget.reserve(1)
    budget.stop(Defect())
    assert ledger.balance("d", "record").left.epsilon == 1


def test_a_failed_note_leaves_the_older_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACIT_HOME", str(tmp_path))
    note = Seen.of(tmp_path / "a.db", "holder", "study")
    note.write("id", 3)

    def full(*_: Any) -> Any:
        raise no_space()

    with monkeypatch.context() as patch:
        patch.setattr("os.fdopen", full)
        with pytest.raises(OSError, match="No space"):
            note.write("id", 4)
    for found in (note.here(), note.named("id")):
        assert found is not None
        assert (found.id, found.steps) == ("id", 3)
