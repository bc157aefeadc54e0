"""Copies of a role's folder, of a whole home, or of a ledger, and putting them back.

A copy is consistent also while the role is at work: databases are copied by SQLite's own backup. It
holds what the folder holds, keys and the secret of a server's noise included, and is to be kept
like them.

A copy is old from the moment it is made. So what is put back is told so: a role's store gives up
what it may have said since (store.py), and a ledger's budgets are closed, since what was spent
after the copy is not in it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sqlite3
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from tacit import __version__
from tacit.channels.roles.store import PENDING, check_whole
from tacit.errors import CheckFailed, InputError, Refused
from tacit.privacy.ledger import Ledger
from tacit.privacy.ledger.chain import APPLICATION
from tacit.whole_file import whole_file

__all__ = ["Say", "back_up", "put_back"]

Say = Callable[[str], None]
VERSION = 1  # of archives
ABOUT = "tacit-backup.json"
LEFT_OUT = (".lock", "-wal", "-shm", "-journal")  # locks, and what a copied database has in itself
SQLITE = b"SQLite format 3\x00"


# ── making ──


def back_up(source: Path, archive: Path, say: Say) -> dict[str, Any]:
    """Copy a folder, or a single file, into `archive`; what it says of itself."""
    if not source.exists():
        raise InputError(f"{source} does not exist: name a role's folder, your home, or a ledger.")
    files = [(p, _name(p, source)) for p in _files(source, archive)]
    if not files:
        raise InputError(f"{source} is empty: there is nothing to copy.")
    about: dict[str, Any] = {
        "version": VERSION,
        "tacit": __version__,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "single": source.name if source.is_file() else None,
        "files": {},
    }
    before = os.umask(0o077)  # keys, shares and the secret of noise are in it
    try:
        with whole_file(archive) as file, tarfile.open(fileobj=file, mode="w") as tar:
            for path, name in files:
                say(name)
                about["files"][name] = _add(tar, path, name)
            _write(tar, ABOUT, json.dumps(about, indent=2).encode())
    finally:
        os.umask(before)
    return about


def _files(source: Path, archive: Path) -> Iterator[Path]:
    if source.is_file():
        yield source
        beside = source.with_name(source.name + ".known")  # what a ledger knows of its records
        yield from sorted(beside.glob("*.known"))
        return
    for path in sorted(source.rglob("*")):
        ours = path.is_file() and not path.is_symlink() and not path.name.endswith(LEFT_OUT)
        if ours and path.resolve() != archive.resolve() and path.parent.name != "seen":
            yield path


def _name(path: Path, source: Path) -> str:
    return path.relative_to(source.parent if source.is_file() else source).as_posix()


def _add(tar: tarfile.TarFile, path: Path, name: str) -> str:
    """Put a file into the archive; its digest."""
    with path.open("rb") as file:
        is_database = file.read(len(SQLITE)) == SQLITE
    with tempfile.TemporaryDirectory() as folder:
        if is_database:
            path = _copied(path, Path(folder) / "copy")
        content = path.read_bytes()
    _write(tar, name, content)
    return hashlib.sha256(content).hexdigest()


def _copied(path: Path, copy: Path) -> Path:
    check_whole(path)
    with closing(sqlite3.connect(path)) as database, closing(sqlite3.connect(copy)) as target:
        if _kind(database) == "old store":
            raise Refused(
                f"{path} is a store of tacit 0.1, which cannot be told that it was put back. Start "
                "its role once with this version, or copy its folder while nothing runs."
            )
        database.backup(target)
    return copy


def _write(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o600
    tar.addfile(entry, io.BytesIO(content))


def _kind(database: sqlite3.Connection) -> str:
    """What a database is: a role's store, a ledger, or neither."""
    if database.execute("PRAGMA application_id").fetchone()[0] == APPLICATION:
        return "ledger"
    found = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    tables = {name for (name,) in found}
    if "about" not in tables or "studies" in tables:
        return "other"
    return "store" if "identity" in tables else "old store"


# ── putting back ──


def put_back(archive: Path, target: Path, say: Say) -> dict[str, Any]:
    """Unpack an archive where nothing is, and tell what is in it that it was put back."""
    about = _about(archive)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise Refused(
            f"{target} is there already: what is newer is better than any copy. Move it away, if "
            "it is damaged, or name another place."
        )
    now = datetime.now(UTC).isoformat(timespec="seconds")
    told: dict[str, Any] = {"made": about["made"], "stores": [], "budgets": []}
    before = os.umask(0o077)
    try:
        for name, content in _contents(archive, about):
            say(name)
            path = target / name
            if about["single"] is not None:  # and what lies beside it, under the same name
                path = Path(f"{target}{name.removeprefix(about['single'])}")
            path.parent.mkdir(parents=True, exist_ok=True)
            if content.startswith(SQLITE):  # nobody ever finds one that was not told
                content = _told(content, name, now, told)
            with whole_file(path) as file:
                file.write(content)
    finally:
        os.umask(before)
    return told


def _about(archive: Path) -> dict[str, Any]:
    try:
        with tarfile.open(archive) as tar:
            file = tar.extractfile(ABOUT)
            about: dict[str, Any] = json.loads(file.read()) if file else {}
    except FileNotFoundError:
        raise InputError(f"{archive} does not exist.") from None
    except (tarfile.TarError, KeyError, ValueError, EOFError, OSError):
        raise InputError(f"{archive} is not a whole archive of tacit backup.") from None
    if about.get("version") != VERSION:
        raise InputError(
            f"{archive} is an archive of version {about.get('version')}; this tacit knows version "
            f"{VERSION}."
        )
    return about


def _contents(archive: Path, about: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Every file, checked before the first one is written."""
    found: dict[str, bytes] = {}
    with tarfile.open(archive) as tar:
        for entry in tar:
            file = tar.extractfile(entry)
            if entry.name != ABOUT and file is not None:
                found[entry.name] = file.read()
    for name, digest in about["files"].items():
        whole = hashlib.sha256(found.get(name, b"")).hexdigest() == digest
        if not whole or name.startswith("/") or ".." in PurePosixPath(name).parts:
            raise CheckFailed(f"{archive}: {name} is not as it was copied. Use another copy.")
    yield from ((name, found[name]) for name in about["files"])


def _told(content: bytes, name: str, now: str, told: dict[str, Any]) -> bytes:
    """A database that knows that it was put back."""
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / "copy"
        draft.write_bytes(content)
        with closing(sqlite3.connect(draft)) as database:
            kind = _kind(database)
            if kind == "store":
                with database:
                    database.execute("UPDATE identity SET restored = ?", (PENDING + now,))
                told["stores"].append(name)
        if kind == "ledger":
            _close_budgets(draft, told)
        return draft.read_bytes()


def _close_budgets(path: Path, told: dict[str, Any]) -> None:
    """What was spent after the copy is not in it: nothing more may be, until its owner says so."""
    ledger = Ledger.recover(path)
    allowed = {
        (entry.body["dataset"], entry.body["unit"]): entry.body
        for entry in ledger.entries()
        if entry.kind == "allow"
    }
    for (dataset, unit), body in sorted(allowed.items()):
        told["budgets"].append(
            {
                "dataset": dataset,
                "unit": unit,
                "epsilon": float(body["epsilon"]),
                "delta": float(body["delta"]),
            }
        )
