"""An export as it was downloaded: a file, a folder, or an archive, read where it lies.

Nothing is ever unpacked under a name that the export chooses. Names that lead out of it, links, and
archives that would swell beyond reason are refused before anything is read.
"""

from __future__ import annotations

import fnmatch
import gzip
import io
import os
import re
import shutil
import stat
import struct
import tempfile
import weakref
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, TextIO, cast

from tacit.errors import InputError

__all__ = ["Export", "Member"]

MOST_MEMBERS = 200_000
SWELL = 200  # times its packed size that a member may have; JSON and XML reach 10 to 30
FREE = 1 << 20  # bytes that anything may unpack to
LARGEST = 64 << 30  # bytes of one member
BUFFER = 1 << 20
GZIP = b"\x1f\x8b"
ZIPS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")  # with files, without any, in parts
TAR = (257, b"ustar")
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
# What zipfile and zlib raise on archives that are damaged or made to harm.
BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    IndexError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
)
# What systems add to every folder and archive, never the service's.
JUNK = re.compile(r"(.*/)?(__MACOSX/.*|\._[^/]*|\.DS_Store|Thumbs\.db|desktop\.ini)", re.IGNORECASE)

Opened = Callable[[], BinaryIO]


@dataclass(frozen=True)
class Member:
    """One file of an export; one that is packed as .gz is unpacked and named without."""

    name: str  # relative, with slashes
    size: int  # bytes, unpacked; for .gz an estimate
    _opened: Opened

    def open(self) -> BinaryIO:
        """Its bytes, from the start."""
        return self._opened()

    @contextmanager
    def text(self) -> Iterator[TextIO]:
        """Its text: UTF-8, with or without a mark at the start, any ends of lines.

        Bytes that are no UTF-8 come as lone surrogates (U+DC80 to U+DCFF), so that the reader can
        say in which record they stand.
        """
        with (
            self.open() as stream,
            io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="") as lines,
        ):
            yield lines

    def head(self, size: int = 4096) -> bytes:
        """Its first bytes; what cannot be unpacked has none."""
        try:
            with self.open() as stream:
                return stream.read(size)
        except InputError:
            return b""

    @contextmanager
    def on_disk(self) -> Iterator[Path]:
        """A private copy, for parsers that need a file of their own; gone afterwards."""
        with tempfile.TemporaryDirectory(prefix="tacit-") as folder:
            path = Path(folder) / "member"
            with self.open() as stream, path.open("wb") as copy:
                shutil.copyfileobj(stream, copy, BUFFER)
            yield path


class Export:
    """What the user downloaded. `seen` counts the bytes that were read of it so far."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.seen = 0
        try:
            self.members = self._listed()
        except FileNotFoundError:
            raise InputError(f"{self.path}: there is no such file or folder.") from None
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read ({error.strerror}).") from None

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def size(self) -> int:
        return sum(member.size for member in self.members)

    def find(self, *patterns: str) -> list[Member]:
        """Members whose name, or whose name's last part, fits a pattern; letters in any case."""
        lower = [pattern.lower() for pattern in patterns]
        return [
            member
            for member in self.members
            if any(_fits(member.name.lower(), pattern) for pattern in lower)
        ]

    def _listed(self) -> list[Member]:
        mode = self.path.stat().st_mode
        if stat.S_ISDIR(mode):
            return self._folder()
        if not stat.S_ISREG(mode):  # opening a pipe would wait for ever
            raise InputError(f"{self.path}: is neither a file nor a folder.")
        with self.path.open("rb") as stream:
            start = stream.read(4)
        if start[:4] in ZIPS:
            return self._archive()
        member = self._file(self.path, self.path.name, packed=start[:2] == GZIP)
        _refuse_tar(member.head(512), self.path)
        self.seen = 0
        return [member]

    def _folder(self) -> list[Member]:
        """Files below the folder; links are refused, since they may lead anywhere."""
        members: list[Member] = []
        for folder, folders, files in os.walk(self.path, onerror=_raise, followlinks=False):
            folders.sort()
            if any((Path(folder) / one).is_symlink() for one in folders):
                raise InputError(f"{self.path}: holds a link to a folder. Take it out.")
            for file in sorted(files):
                path = Path(folder) / file
                name = path.relative_to(self.path).as_posix()
                if not stat.S_ISREG(path.lstat().st_mode):
                    raise InputError(f"{_shown(name)}: is a link or no ordinary file. Take it out.")
                if not JUNK.fullmatch(name):
                    members.append(self._file(path, name, packed=name.lower().endswith(".gz")))
            if len(members) > MOST_MEMBERS:
                raise InputError(f"{self.path}: holds more than {MOST_MEMBERS:,} files.")
        return members

    def _file(self, path: Path, name: str, packed: bool) -> Member:
        def opened() -> BinaryIO:
            try:
                return path.open("rb", buffering=0)
            except OSError as error:
                raise InputError(f"{_shown(name)}: cannot be read ({error.strerror}).") from None

        size = path.stat().st_size
        if not packed:
            return self._member(name, size, opened)
        return self._member(*_unpacked(name, size, opened))

    def _member(self, name: str, size: int, opened: Opened) -> Member:
        name = _shown(name)

        def counted() -> BinaryIO:
            return cast(BinaryIO, io.BufferedReader(_Counted(opened(), self, name), BUFFER))

        return Member(name, size, counted)

    def _archive(self) -> list[Member]:
        try:
            archive = zipfile.ZipFile(self.path)
        except BROKEN:
            raise InputError(
                f"{self.path}: is cut short or no whole zip archive. Download it again."
            ) from None
        weakref.finalize(self, archive.close)
        entries = archive.infolist()
        if len(entries) > MOST_MEMBERS:
            raise InputError(f"{self.path}: holds more than {MOST_MEMBERS:,} files.")
        for entry in entries:
            _check_entry(entry, self.path)
        # Entries may share their packed bytes: then each looks harmless, but not all together.
        if sum(entry.file_size for entry in entries) > _most(self.path.stat().st_size):
            raise InputError(f"{self.path}: unpacks to far more than it should: refused.")
        return [
            self._entry(archive, entry)
            for entry in entries
            if not entry.is_dir() and not JUNK.fullmatch(entry.filename)
        ]

    def _entry(self, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Member:
        name, size = entry.filename, entry.file_size

        def opened() -> BinaryIO:
            try:
                stream = archive.open(entry)
            except BROKEN:
                raise _cut_short(name) from None
            # The directory of an archive may lie about sizes: what is read is counted.
            return cast(BinaryIO, _Limited(stream, size, name))

        if name.lower().endswith(".gz"):
            return self._member(*_unpacked(name, size, opened))
        return self._member(name, size, opened)


class _Counted(io.RawIOBase):
    """Passes bytes on and adds them to what was seen of the export."""

    def __init__(self, stream: BinaryIO, export: Export, name: str) -> None:
        self._stream, self._export, self._name = stream, export, name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        try:
            count: int = self._stream.readinto(buffer)  # type: ignore[attr-defined]
        except OSError as error:
            raise InputError(f"{self._name}: cannot be read ({error.strerror}).") from None
        self._export.seen += count
        return count

    def close(self) -> None:
        self._stream.close()
        super().close()


class _Limited(io.RawIOBase):
    """Unpacked bytes, up to a limit: a bomb goes off here, harmlessly."""

    def __init__(self, stream: IO[bytes] | gzip.GzipFile, limit: int, name: str) -> None:
        self._stream, self._left, self._name = stream, limit, _shown(name)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        try:
            data = self._stream.read(len(buffer))
        except InputError:
            raise
        except BROKEN:
            raise _cut_short(self._name) from None
        self._left -= len(data)
        if self._left < 0:
            raise InputError(f"{self._name}: unpacks to far more than it should: refused.")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


def _unpacked(name: str, size: int, opened: Opened) -> tuple[str, int, Opened]:
    """Name, size (estimated) and bytes of a .gz without its packing."""
    inner = re.sub(r"\.gz(ip)?$", "", name, flags=re.IGNORECASE)

    def stream() -> BinaryIO:
        packed = io.BufferedReader(cast(io.RawIOBase, opened()), BUFFER)
        unpacked = gzip.GzipFile(fileobj=packed)
        unpacked.myfileobj = packed  # type: ignore[assignment]  # closed with it
        return cast(BinaryIO, _Limited(unpacked, min(_most(size), LARGEST), name))

    return inner, 8 * size, stream


def _most(packed: int) -> int:
    return max(FREE, SWELL * packed)


def _fits(name: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(
        name.rpartition("/")[2], pattern
    )


def _shown(name: str) -> str:
    """The name as it may be printed: file names hold any bytes, those that steer terminals too."""
    text = os.fsencode(name).decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def _raise(error: OSError) -> None:
    raise error


def _cut_short(name: str) -> InputError:
    return InputError(f"{_shown(name)}: is cut short or damaged in the archive. Download it again.")


def _refuse_tar(start: bytes, path: Path) -> None:
    at, mark = TAR
    if start[at : at + len(mark)] == mark:
        raise InputError(f"{path}: is a tar archive. Unpack it, and import the folder.")


def _check_entry(entry: zipfile.ZipInfo, path: Path) -> None:
    name = entry.orig_filename  # zipfile's own `filename` ends at a NUL
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if (
        not parts
        or name.startswith(("/", "\\"))
        or ".." in parts
        or re.match(r"[A-Za-z]:", name)
        or "\0" in name
    ):
        raise InputError(f"{path}: holds a name that leads out of the archive: refused.")
    if stat.S_ISLNK(entry.external_attr >> 16):
        raise InputError(f"{path}: holds a link: refused.")
    if entry.flag_bits & 1:
        raise InputError(f"{path}: is encrypted. Unpack it first, and import the folder.")
    if entry.compress_type not in METHODS:
        raise InputError(f"{path}: is packed in an unusual way. Unpack it, and import the folder.")
    if entry.file_size > min(_most(entry.compress_size), LARGEST):
        raise InputError(f"{path}: unpacks to far more than it should: refused.")
