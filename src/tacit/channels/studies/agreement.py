"""What a role has agreed to: the digest of a study, remembered under its name at first use.

A study runs for days and its file can be exchanged meanwhile. Whoever took part once under a name
takes part under the same terms, or says in so many words that the new ones are agreed to as well.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Protocol

from tacit.errors import InputError, Refused
from tacit.whole_file import write_whole

__all__ = ["Named", "agreed", "check_agreed", "remember"]


class Named(Protocol):
    """A study of any channel."""

    @property
    def name(self) -> str: ...

    @property
    def digest(self) -> str: ...


def agreed(study: Named, home: Path, agree: str | None = None) -> None:
    """Remember the study's digest in `home`, or refuse a study that is not the remembered one.

    `agree` is the digest that a person has typed: it must be this study's, and replaces what was
    agreed to before.
    """
    check_agreed(study, home, agree)
    remember(study, home)


def remember(study: Named, home: Path) -> None:
    """From here on this is the study of its name: something is about to be said in it."""
    path = _path(study, home)
    try:
        if _read(path) == study.digest:
            return
    except InputError:
        pass  # damaged, and agreed to anew
    _write(path, study)


def check_agreed(study: Named, home: Path, agree: str | None = None) -> None:
    """Refuse a study that is not the remembered one of its name; nothing is remembered yet."""
    found = study.digest
    if agree is not None:
        _expect(study, agree.lower())
        return
    known = _read(_path(study, home))
    if known is not None and known != found:
        raise Refused(
            f"study {study.name}: you agreed to the one with digest {known}, and this file has "
            f"{found}. Read it (tacit study show FILE). To agree to it as well, say: "
            f"--agree {found}. Otherwise ask its author for the file as it was."
        )


def _path(study: Named, home: Path) -> Path:
    return home / "studies" / f"{study.name}.json"


def _expect(study: Named, typed: str) -> None:
    if typed != study.digest:
        raise Refused(
            f"study {study.name}: its digest is {study.digest}, not the one given with --agree. "
            "Compare with what its author told you, and read it: tacit study show FILE"
        )


def _read(path: Path) -> str | None:
    try:
        if path.exists() and not path.is_file():
            raise ValueError  # a pipe would be waited for
        document = json.loads(path.read_text(encoding="utf-8"))
        return str(document["digest"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"{path}: is not a record of what was agreed to. Move it away, and agree anew with "
            "--agree DIGEST."
        ) from None


def _write(path: Path, study: Named) -> None:
    """In one step, so that a crash leaves the old record or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps({"study": study.name, "digest": study.digest}))
