"""Copies and putting them back: consistent, checked, and told to whoever was put back."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tacit.channels.consortium.journals import Attempt, PartyJournal
from tacit.channels.federation.journal import Journal
from tacit.channels.federation.server_store import ServerStore
from tacit.channels.roles import backup
from tacit.channels.roles.backup import back_up, put_back
from tacit.cli.main import main
from tacit.data.digests import digests_of_arrays
from tacit.errors import CheckFailed, InputError, LedgerTampered, Refused
from tacit.privacy.ledger import Ledger
from tacit.privacy.promise import Promise

STUDY = "ab" * 32


def quiet(name: str) -> None:
    pass


def test_a_server_at_work_is_copied_and_put_back(tmp_path: Path) -> None:
    folder, archive = tmp_path / "role", tmp_path / "copy.tar"
    store = ServerStore(folder / "server.db", STUDY)
    with store.transaction():
        store.put_share(1, "somebody", "full", b"share")
    (folder / "events.jsonl").write_text("{}\n")
    about = back_up(folder, archive, quiet)
    assert set(about["files"]) == {"server.db", "events.jsonl"}
    assert archive.stat().st_mode & 0o077 == 0
    secret, name = store.secret, store.id
    store.close()
    with pytest.raises(Refused, match="there already"):
        put_back(archive, folder, quiet)
    for path in folder.iterdir():
        path.unlink()
    assert put_back(archive, folder, quiet)["stores"] == ["server.db"]
    for _ in range(2):  # it stays told
        with closing(ServerStore(folder / "server.db", STUDY)) as store:
            assert store.restored is not None
            assert (store.secret, store.id) == (secret, name)
            assert not list(store.shares_of(1))  # holders send theirs again


def test_who_cannot_go_on_soundly_gives_the_study_up(tmp_path: Path) -> None:
    with closing(PartyJournal(tmp_path / "role/party.db", STUDY)) as party:
        party.begin(Attempt(1, ("a", "b"), b"seed"))
    back_up(tmp_path / "role", tmp_path / "midst.tar", quiet)
    with closing(PartyJournal(tmp_path / "role/party.db", STUDY)) as party:
        party.put_result(b"model", "certificate")
    back_up(tmp_path / "role", tmp_path / "over.tar", quiet)
    put_back(tmp_path / "midst.tar", tmp_path / "first", quiet)
    for _ in range(2):
        with pytest.raises(Refused, match="gives the study up"):
            PartyJournal(tmp_path / "first/party.db", STUDY)
    put_back(tmp_path / "over.tar", tmp_path / "second", quiet)
    with closing(PartyJournal(tmp_path / "second/party.db", STUDY)) as party:
        assert party.result() == (b"model", "certificate")


@pytest.mark.parametrize("place", ["again.db", "ledger.db"])
def test_the_budgets_of_a_ledger_are_closed(tmp_path: Path, place: str) -> None:
    path, promise = tmp_path / "ledger.db", Promise(0.5, 1e-7)
    ledger = Ledger(path)
    ledger.allow("patients", "record", 2.0, 1e-6)
    ledger.reserve(promise, "patients", "before").commit()
    back_up(path, tmp_path / "ledger.tar", quiet)
    ledger.reserve(promise, "patients", "after").commit()  # is not in the copy
    path.rename(tmp_path / "moved.db")
    told = put_back(tmp_path / "ledger.tar", tmp_path / place, quiet)
    assert told["budgets"] == [
        {"dataset": "patients", "unit": "record", "epsilon": 2.0, "delta": 1e-6}
    ]
    again = Ledger(tmp_path / place)
    again.verify()
    assert again.balance("patients", "record").spent.epsilon == 0.5
    with pytest.raises(Refused):
        again.reserve(promise, "patients", "more")
    again.allow("patients", "record", 2.0, 1e-6)  # its owner's word
    again.reserve(promise, "patients", "more").release()
    with pytest.raises(LedgerTampered):  # two ledgers of one name would each know a half
        Ledger(tmp_path / "moved.db")


@pytest.mark.parametrize("kind", ["store", "ledger"])
def test_broken_off_it_leaves_nothing_that_was_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    source = tmp_path / "role" / "file.db"
    if kind == "store":
        ServerStore(source, STUDY).close()
    else:
        Ledger(source).allow("patients", "record", 2.0)
    back_up(source.parent, tmp_path / "copy.tar", quiet)
    monkeypatch.setattr(backup, "_told", lambda *_: pytest.fail("broken off"))
    with pytest.raises(pytest.fail.Exception):
        put_back(tmp_path / "copy.tar", tmp_path / "there", quiet)
    assert not list((tmp_path / "there").rglob("*.db"))


def test_a_ledger_comes_with_what_it_knows_of_its_records(tmp_path: Path) -> None:
    rows = np.random.default_rng(1).normal(size=(500, 3))
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.allow("patients", "record", 2.0)
    ledger.reserve(Promise(0.5), "patients", "a", records=digests_of_arrays(rows)).commit()
    back_up(tmp_path / "ledger.db", tmp_path / "copy.tar", quiet)
    put_back(tmp_path / "copy.tar", tmp_path / "elsewhere/other.db", quiet)
    again = Ledger(tmp_path / "elsewhere/other.db")
    assert again.known.counts() == ledger.known.counts() == {"patients": 500}
    again.allow("copy", "record", 2.0)
    with pytest.raises(Refused, match="patients"):
        again.reserve(Promise(0.5), "copy", "b", records=digests_of_arrays(rows))


def test_a_damaged_archive_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    Journal(tmp_path / "role/aggregator.db", STUDY).close()
    archive = tmp_path / "copy.tar"
    back_up(tmp_path / "role", archive, quiet)
    content = bytearray(archive.read_bytes())
    content[2000] ^= 1  # in the database
    (tmp_path / "other.tar").write_bytes(content)
    with pytest.raises(CheckFailed, match="not as it was copied"):
        put_back(tmp_path / "other.tar", tmp_path / "there", quiet)
    assert not (tmp_path / "there").exists()
    for size in (0, 100, 3000):
        (tmp_path / "short.tar").write_bytes(bytes(archive.read_bytes()[:size]))
        with pytest.raises(InputError, match="not a whole archive"):
            put_back(tmp_path / "short.tar", tmp_path / "there", quiet)


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Journal(tmp_path / "role/aggregator.db", STUDY).close()

    def ran(*words: object) -> tuple[int, dict[str, object]]:
        with pytest.raises(SystemExit) as left:
            main([*map(str, words), "--json"])
        return int(left.value.code or 0), json.loads(capsys.readouterr().out)

    archive = tmp_path / "copy.tar"
    assert ran("backup", tmp_path / "role", archive)[1]["files"] == 1
    code, told = ran("restore", archive, tmp_path / "there")
    assert (code, told["stores"]) == (0, ["aggregator.db"])
    assert ran("restore", archive, tmp_path / "there")[0] == 4
    assert ran("backup", tmp_path / "nothing", archive)[0] == 3
    assert ran("restore", tmp_path / "nothing", tmp_path / "x")[0] == 3
