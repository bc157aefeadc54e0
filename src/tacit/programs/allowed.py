"""Which programs of no installed package the owner of this machine has allowed, by module:Class.

A study names a program, and anybody may write a study. So what a name makes this machine import is
decided here, by its owner, one program at a time: `tacit program allow`.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from tacit.errors import InputError, Refused, UsageError
from tacit.home import tacit_home
from tacit.program_names import PATTERN
from tacit.programs.program import Learner
from tacit.whole_file import write_whole

__all__ = ["PLACE", "allow", "allowed", "check_declared", "forbid", "imported"]

WORD = r"[A-Za-z_][A-Za-z0-9_]{0,99}"
PLACE = re.compile(rf"{WORD}(\.{WORD}){{0,9}}:{WORD}", re.ASCII)
TOP = "# Programs that studies may run on this machine: tacit program allow MODULE:CLASS\n"


def allowed() -> tuple[str, ...]:
    """All that are; nothing is imported, and where there is no list, none is made."""
    try:
        lines = _list().read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError):
        raise InputError(
            f"{_list()} cannot be read: mend it, or remove it and allow programs anew."
        ) from None
    return tuple(line.strip() for line in lines if PLACE.fullmatch(line.strip()))


def allow(place: str) -> type[Learner]:
    """Import the program, for the first time, and note that it may be; UsageError if it is none."""
    kind = imported(place)
    _write(sorted({*allowed(), place}))
    return kind


def forbid(place: str) -> None:
    if place not in allowed():
        raise UsageError(f"{place} is not allowed here. Allowed: {', '.join(allowed()) or 'none'}.")
    _write([known for known in allowed() if known != place])


def imported(place: str) -> type[Learner]:
    """The class at module:Class. Only for what its owner has allowed, or is about to."""
    if not PLACE.fullmatch(place):
        raise UsageError(f"{place[:100]!r} names no program: write MODULE:CLASS, as in `import`.")
    module, name = place.split(":")
    try:
        kind = getattr(importlib.import_module(module), name)
    except Exception as error:  # whatever a module does when it is imported
        raise Refused(
            f"program {place} cannot be imported ({type(error).__name__}). Install the package "
            "that has it where tacit is installed, or mend it."
        ) from None
    if not (isinstance(kind, type) and issubclass(kind, Learner)):
        raise Refused(f"{place} is not a subclass of tacit.programs.Program: name one that is.")
    check_declared(kind, place)
    return kind


def check_declared(kind: type[Learner], place: str) -> None:
    """Refused, in words for its author, unless the class says all that everyone asks of it."""
    name, version = getattr(kind, "name", None), kind.version
    missing = sorted(getattr(kind, "__abstractmethods__", ()))
    if missing:
        raise Refused(f"{place} does not define {', '.join(missing)}: a program has all of them.")
    if not (isinstance(name, str) and PATTERN.fullmatch(name)):
        raise Refused(
            f"{place} needs a name in lower case, with hyphens between words: write "
            'name = "score-histogram", or the like, into the class.'
        )
    if not (type(version) is int and version >= 1):
        raise Refused(f"{place} needs a version, a whole number from 1: write version = 1.")


def _list() -> Path:
    return tacit_home() / "programs"


def _write(places: list[str]) -> None:
    _list().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(_list(), TOP + "".join(f"{place}\n" for place in places))
