"""Files that appear only when they are whole, without harm to what is not a file.

A draft beside the file is renamed over it, so that a reader and a crash find the old content or the
new one, never a part. A rename replaces whatever has the name, so only files are written like that:

    nothing there, an ordinary file   written beside, then renamed
    a symbolic link to one            the same, to what it points at; the link stays
    a device, a pipe                  written to, as `>` in a shell does
    what /proc shows of a process     likewise: `/dev/stdout`, `/dev/fd/3`, `>(command)`
    all else                          refused: a directory, a disk, a socket, a link to nothing
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from tacit.errors import UsageError

__all__ = ["whole_file", "write_whole"]

MOST_LINKS = 40  # as many as Linux follows
PROCESSES = Path("/proc")
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
OLD = os.O_WRONLY | getattr(os, "O_BINARY", 0)


def write_whole(path: str | Path, content: bytes | str) -> None:
    """All of the content, or none of it; a text as UTF-8."""
    with whole_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole_file(path: str | Path) -> Iterator[IO[bytes]]:
    """A file to write to. It has its name once the block has ended well, and on the disk by then.

    UsageError if there is something at `path` that must not be replaced or written to; an OSError
    where the system refuses.
    """
    target = _target(Path(path))
    if target is None:
        with os.fdopen(os.open(path, OLD | os.O_TRUNC), "wb") as stream:
            yield stream
        return
    draft = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(draft, NEW, 0o666), "wb") as file:
            with suppress(FileNotFoundError):
                os.chmod(draft, target.stat().st_mode & 0o777)  # who could read it still can
            yield file
            file.flush()
            os.fsync(file.fileno())
        _check(target, _kind(target))  # it may have been a long time
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def _target(path: Path) -> Path | None:
    """The ordinary file to be replaced or made, or None for what is written to as it is."""
    kind = _kind(path)
    if kind is not None and (stat.S_ISCHR(kind) or stat.S_ISFIFO(kind)):
        return None
    _check(path, kind)
    if not path.is_symlink():
        return path
    if kind is None:
        raise UsageError(
            f"{path} is a symbolic link to a file that does not exist: make that file, or name it "
            "itself."
        )
    # Only who may write to the file may replace it through a link. The system knows more than we
    # do, such as that strangers' links in /tmp are not followed (fs.protected_symlinks).
    os.close(os.open(path, OLD))
    return _behind_links(path)


def _behind_links(path: Path) -> Path | None:
    for _ in range(MOST_LINKS):
        if not path.is_symlink():
            return path
        folder = path.parent.resolve()
        if folder.is_relative_to(PROCESSES):
            return None  # open already in some process, which would go on with the old file
        path = folder / path.readlink()
    raise UsageError(f"{path} is a symbolic link that leads nowhere: name the file itself.")


def _kind(path: Path) -> int | None:
    """What is there, links followed; None for nothing."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _check(path: Path, kind: int | None) -> None:
    if kind is None or stat.S_ISREG(kind):
        return
    what = next((words for is_one, words in _OTHERS if is_one(kind)), "no ordinary file")
    raise UsageError(f"{path} is {what} and is not written over: name a file.")


_OTHERS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISBLK, "a disk"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISFIFO, "a pipe"),
)
