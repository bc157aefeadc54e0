"""How far this machine has seen a ledger: a mark kept apart from the ledger's file.

An older copy of a ledger is a valid ledger, in which spends are missing. So after each write the
number and hash of the newest entry are noted in the holder's home under the ledger's own name, and
that name under the file's path; opening a ledger that has less, or something else, is an error. A
mark that lags behind, as after a crash, only notices less. A mark also has the policy in force, so
that neither an older copy nor a ledger that is made anew comes without it. Marks are replaced by
newer ones, and never removed.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from tacit.errors import LedgerTampered, UsageError
from tacit.home import tacit_home
from tacit.whole_file import write_whole

__all__ = ["Mark", "check_history", "is_there", "mark_at", "mark_of", "note", "remedy", "replace"]

log = logging.getLogger("tacit.ledger")


@dataclass(frozen=True, slots=True)
class Mark:
    """The newest entry that was seen of a ledger, and the text of the policy in force then."""

    ledger: str
    seq: int
    head: str
    policy: str | None = None


def mark_at(path: Path) -> Mark | None:
    """What was seen of the ledger at this path."""
    named = _read(_place("path", str(path)))
    return None if named is None else mark_of(named.ledger) or named


def mark_of(ledger: str) -> Mark | None:
    """What was seen of this ledger, at any path."""
    return _read(_place("ledger", ledger))


def is_there(path: Path) -> bool:
    """Whether there is a ledger; LedgerTampered if there was one, or one that was not empty."""
    if not path.exists():
        mark = mark_at(path)
        if mark is None:
            return False
        if path.exists():  # another process has just made it
            return True
        raise LedgerTampered(
            f"there is no ledger at {path}, where this machine has seen one with "
            f"{mark.seq} entries: it is not made anew. {remedy(path)}"
        )
    if path.is_file() and path.stat().st_size == 0:
        raise LedgerTampered(
            f"{path} is empty, which a ledger never is: it was cut off, or is none. {remedy(path)}"
        )
    return True


def note(path: Path, mark: Mark) -> None:
    """Keep the mark, unless more was seen already."""
    place, newest = _place("path", str(path)), _place("ledger", mark.ledger)
    named, before = _read(place), _read(newest)
    if named is None or named.ledger != mark.ledger:  # names the ledger; how far is noted once
        _write(place, mark)
    if before is None or before.seq < mark.seq:
        _write(newest, mark)


def replace(path: Path, mark: Mark) -> None:
    """By the holder's word this is the ledger now, though more was seen of it, or another."""
    for place in (_place("path", str(path)), _place("ledger", mark.ledger)):
        _write(place, mark)


def check_history(
    path: Path, ledger: str, hashes: list[str], read_again: Callable[[], list[str]]
) -> None:
    """LedgerTampered if this machine has seen more of the ledger, or another one at this path.

    Another process may write an entry and its mark after `hashes` were read and before the marks
    are. So the file is read once more before it is called older: it has every entry whose mark was
    there, because a mark is made after its entry.
    """
    marks = [mark for mark in (mark_at(path), mark_of(ledger)) if mark is not None]
    if not all(_has(hashes, mark) for mark in marks):
        hashes = read_again()
    for mark in marks:
        if mark.ledger != ledger:
            raise LedgerTampered(f"{path} is another ledger than was here before. {remedy(path)}")
        if not _has(hashes, mark):
            raise LedgerTampered(
                f"{path} is older than what this machine has seen: entry {mark.seq} was there, and "
                f"is missing or another one now (it ends with entry {len(hashes)}). Spends may be "
                f"forgotten. {remedy(path)}"
            )


def _has(hashes: list[str], mark: Mark) -> bool:
    return len(hashes) >= mark.seq and hashes[mark.seq - 1] == mark.head


def remedy(path: Path) -> str:
    return (
        "Put the newest copy of it back. If there is none, "
        f"`tacit budget recover --ledger {path}` goes on with what there is, and closes every "
        "budget until you set it anew."
    )


def _place(kind: str, name: str) -> Path:
    digest = hashlib.sha256(f"{kind}:{name}".encode()).hexdigest()[:32]
    return tacit_home() / "seen" / f"{digest}.json"


def _read(place: Path) -> Mark | None:
    try:
        body = json.loads(place.read_text(encoding="utf-8"))
        policy = body.get("policy")
        return Mark(
            str(body["ledger"]),
            int(body["seq"]),
            str(body["head"]),
            None if policy is None else str(policy),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        log.warning("%s cannot be read: whether a ledger is the newest copy is not checked", place)
        return None


def _write(place: Path, mark: Mark) -> None:
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(place, json.dumps(asdict(mark)))
    except (OSError, UsageError) as error:
        log.warning("%s cannot be written (%s): an older copy may go unnoticed", place, error)
