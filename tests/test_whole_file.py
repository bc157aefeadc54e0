"""Files appear whole, and nothing but a file is ever replaced."""

from __future__ import annotations

import json
import os
import pty
import socket
import stat
import sys
import threading
import tty
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.channels.studies.agreement import agreed
from tacit.cli.main import main
from tacit.cli.results import write_result
from tacit.data.schema import Column, Schema
from tacit.errors import TacitError, UsageError
from tacit.programs.kmeans import KMeans, KMeansModel
from tacit.programs.model_file import save_model
from tacit.whole_file import whole_file, write_whole

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="devices and pipes as on Unix")

NEW = b"new content\n"


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_an_ordinary_file(tmp_path: Path) -> None:
    file = tmp_path / "out.csv"
    write_whole(file, NEW)
    write_whole(file, "größer")
    assert file.read_text(encoding="utf-8") == "größer"
    assert names(tmp_path) == {"out.csv"}


def test_permissions_stay(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(b"old")
    file.chmod(0o640)
    write_whole(file, NEW)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_the_old_content_stays_until_all_is_there(tmp_path: Path) -> None:
    file = tmp_path / "out.csv"
    file.write_bytes(b"old")

    def half() -> None:
        with whole_file(file) as draft:
            draft.write(NEW)
            draft.flush()
            assert file.read_bytes() == b"old"
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        half()
    assert file.read_bytes() == b"old"
    assert names(tmp_path) == {"out.csv"}


def test_a_draft_follows_nobodys_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who guesses its name in a folder for all cannot have another file written."""
    monkeypatch.setattr("tacit.whole_file.secrets.token_hex", lambda size: "guessed")
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / ".out.csv.guessed").symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "out.csv", NEW)
    assert victim.read_bytes() == b"precious"


# ── symbolic links ──


@pytest.mark.parametrize("links", [1, 2, 3])
def test_a_link_stays_and_its_file_is_written(tmp_path: Path, links: int) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    target = folder / "file"
    target.write_bytes(b"old")
    before = target
    for number in range(links):
        link = tmp_path / f"link-{number}"
        link.symlink_to(before if number % 2 else os.path.relpath(before, tmp_path))
        before = link
    write_whole(before, NEW)
    assert before.is_symlink()
    assert target.read_bytes() == NEW
    assert not target.is_symlink()
    assert names(folder) == {"file"}


def test_a_link_to_nothing_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nothing")
    with pytest.raises(UsageError, match="does not exist"):
        write_whole(link, NEW)
    assert names(tmp_path) == {"link"}
    assert link.is_symlink()


def test_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        write_whole(tmp_path / "a", NEW)
    assert names(tmp_path) == {"a", "b"}


def test_who_may_not_write_to_a_file_does_not_replace_it_by_a_link(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write to everything")
    target, link = tmp_path / "file", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o444)
    link.symlink_to(target)
    with pytest.raises(PermissionError):
        write_whole(link, NEW)
    assert target.read_bytes() == b"old"


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_what_is_open_already_is_written_to(tmp_path: Path, kind: str) -> None:
    """`--out /dev/stdout`, `--out >(gzip)`: the process at the other end keeps what it has open."""
    if kind == "pipe":
        reading, writing = os.pipe()
    else:
        reading = writing = os.open(tmp_path / "open", os.O_RDWR | os.O_CREAT)
    before = os.fstat(writing).st_ino
    link = tmp_path / "link"
    link.symlink_to(f"/proc/self/fd/{writing}")
    write_whole(link, NEW)
    assert os.read(reading, 100) == NEW
    assert os.fstat(writing).st_ino == before
    assert link.is_symlink()
    assert kind == "pipe" or (tmp_path / "open").stat().st_ino == before
    for one in {reading, writing}:
        os.close(one)


# ── what is no file ──


class Pipe:
    """A named pipe with a reader."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "special"
        os.mkfifo(self.path)
        self._said: list[bytes] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        with self.path.open("rb") as pipe:
            self._said.append(pipe.read())

    def said(self) -> bytes:
        self._reader.join()
        return self._said[0]


class Terminal:
    """A character device of one's own."""

    def __init__(self, folder: Path) -> None:
        self._ours, theirs = pty.openpty()
        tty.setraw(theirs)
        self._theirs = theirs
        self.path = Path(os.ttyname(theirs))

    def said(self) -> bytes:
        found = os.read(self._ours, 10_000)
        os.close(self._ours)
        os.close(self._theirs)
        return found


class Null:
    """A copy of /dev/null; the machine's own is never touched."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "special"
        try:
            os.mknod(self.path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
            self.path.open("wb").close()
        except OSError:
            pytest.skip("only root makes devices, and not in every file system")

    def said(self) -> None:
        return None


SPECIAL = pytest.mark.parametrize("kind", [Pipe, Terminal, Null])


def outcome(path: Path) -> tuple[int, int, int]:
    found = path.lstat()
    return found.st_mode, found.st_rdev, found.st_ino


@SPECIAL
@pytest.mark.parametrize("by_link", [False, True])
def test_devices_and_pipes_are_written_to(kind: Any, by_link: bool, tmp_path: Path) -> None:
    special = kind(tmp_path)
    before, path = outcome(special.path), special.path
    if by_link:
        path = tmp_path / "link"
        path.symlink_to(special.path)
    write_whole(path, NEW)
    assert outcome(special.path) == before
    assert special.said() in (NEW, None)
    assert path.is_symlink() == by_link


def test_a_folder_and_a_socket_are_refused(tmp_path: Path) -> None:
    folder, link, address = tmp_path / "folder", tmp_path / "link", tmp_path / "socket"
    folder.mkdir()
    link.symlink_to(folder)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(address))
        for path, word in ((folder, "folder"), (link, "folder"), (address, "socket")):
            before = outcome(path)
            with pytest.raises(UsageError, match=f"is a {word}"):
                write_whole(path, NEW)
            assert outcome(path) == before
    assert names(tmp_path) == {"folder", "link", "socket"}


def test_a_disk_is_refused(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    try:
        os.mknod(disk, stat.S_IFBLK | 0o600, os.makedev(7, 250))
    except OSError:
        pytest.skip("only root makes devices, and not in every file system")
    with pytest.raises(UsageError, match="is a disk"):
        write_whole(disk, NEW)


def test_what_became_something_else_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    file = tmp_path / "out"

    def overtaken() -> None:
        with whole_file(file) as draft:
            draft.write(NEW)
            os.mkfifo(file)

    with pytest.raises(UsageError, match="is a pipe"):
        overtaken()
    assert stat.S_ISFIFO(file.stat().st_mode)
    assert names(tmp_path) == {"out"}


# ── in every command that replaces files ──


class _Study:
    name, digest = "heart", "0" * 64


def _predict(path: Path, folder: Path) -> None:
    schema = Schema(columns=(Column(name="a", type="number", bounds=(0.0, 1.0)),))
    model = KMeansModel(np.zeros((2, 1)), np.ones(2))
    save_model(folder / "model", model, KMeans(2), schema)
    (folder / "records.csv").write_text("a\n0.5\n")
    _command("predict", folder / "model", folder / "records.csv", "--out", path)


def _agreed(path: Path, folder: Path) -> None:
    (folder / "studies").mkdir(exist_ok=True)
    place = folder / "studies" / "heart.json"
    place.symlink_to(path)
    agreed(_Study(), folder, _Study.digest)


def _command(*words: object) -> None:
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    if left.value.code:
        raise TacitError


COMMANDS: dict[str, Callable[[Path, Path], object]] = {
    "predict": _predict,
    "agreed": _agreed,
    "result": lambda path, folder: write_result(path, NEW, "{}"),
}


@SPECIAL
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_replaces_what_is_no_file(kind: Any, command: str, tmp_path: Path) -> None:
    special = kind(tmp_path)
    if command == "result" and special.path.parent != tmp_path:
        pytest.skip("writes a certificate beside it")
    before = outcome(special.path)
    COMMANDS[command](special.path, tmp_path)
    assert outcome(special.path) == before
    assert special.said() != b""


def test_a_prediction_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_bytes(b"old")
    schema = Schema(columns=(Column(name="a", type="number", bounds=(0.0, 1.0)),))
    save_model(tmp_path / "model", KMeansModel(np.zeros((2, 1)), np.ones(2)), KMeans(2), schema)
    (tmp_path / "records.csv").write_text("a\n0.5\nhello\n")
    with pytest.raises(TacitError):
        _command("predict", tmp_path / "model", tmp_path / "records.csv", "--out", out)
    assert out.read_bytes() == b"old"
    assert json.dumps(sorted(names(tmp_path))) == '["model", "out.csv", "records.csv"]'
