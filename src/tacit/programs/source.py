"""The source files of a program's package, by digest: how parties know that they run the same code.

A program of tacit has a version, and its code is that of the release. What others write changes
whenever they save a file. So a study has the SHA-256 of every source file of the package, and each
party compares them with its own before it takes part. The package's own dependencies are not in it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from importlib.machinery import all_suffixes
from pathlib import Path

from tacit.crypto.signing import digest
from tacit.errors import Refused, UsageError
from tacit.programs.program import Learner

__all__ = ["check_source", "source_of"]

MOST_FILES = 500
CODE = tuple(all_suffixes())  # .py, and what is compiled
SEVERAL = 5  # files named in one message


def source_of(kind: type[Learner]) -> dict[str, str]:
    """Every source file of the package, or of a module without one its file: path → SHA-256."""
    top = kind.__module__.split(".")[0]
    file = getattr(sys.modules.get(top), "__file__", None)
    if top == "__main__" or file is None:
        raise UsageError(
            f"program {kind.__qualname__} has no source files that other parties could have: write "
            "it into a module or package of its own, and import it from there."
        )
    path = Path(file)
    if path.name.partition(".")[0] != "__init__":
        return {path.name: _digest(path)}
    files = sorted(_importable(path.parent))
    if len(files) > MOST_FILES:
        raise UsageError(
            f"package {top} has {len(files)} source files, and {MOST_FILES} are the most that a "
            "study names: put the program into a package of its own."
        )
    return {f"{top}/{file.relative_to(path.parent).as_posix()}": _digest(file) for file in files}


def _importable(folder: Path) -> Iterator[Path]:
    """All that `import` could find below it: links to folders are followed, each folder once, and
    what is compiled is code as well. Not what Python keeps of sources for itself."""
    seen = set[str]()
    for top, folders, names in os.walk(folder, followlinks=True):
        seen.add(os.path.realpath(top))
        folders[:] = sorted(
            name
            for name in folders
            if name != "__pycache__" and os.path.realpath(os.path.join(top, name)) not in seen
        )
        yield from (Path(top) / name for name in names if name.endswith(CODE))


def check_source(kind: type[Learner], agreed: Mapping[str, str]) -> None:
    """Refused, with the files that differ, unless the code here is the code that was agreed."""
    here = source_of(kind)
    if here == dict(agreed):
        return
    changed = [name for name in here if name in agreed and here[name] != agreed[name]]
    absent = [name for name in agreed if name not in here]
    extra = [name for name in here if name not in agreed]
    what = {"other than agreed": changed, "missing here": absent, "only here": extra}
    said = "; ".join(f"{how}: {_some(names)}" for how, names in what.items() if names)
    raise Refused(
        f"the code of program {kind.__qualname__} here is not the code that was agreed ({said}). "
        "Install the very version that the study's author has, or ask the author to sign the study "
        "anew with yours: tacit study sign FILE."
    )


def _digest(path: Path) -> str:
    try:
        return digest(path.read_bytes())
    except OSError as error:
        raise Refused(f"{path.name}: source file cannot be read ({error.strerror}).") from None


def _some(names: list[str]) -> str:
    """Names come from others' files: nothing in them may act on a terminal."""
    more = f" and {len(names) - SEVERAL} more" if len(names) > SEVERAL else ""
    return ", ".join(ascii(name[:100])[1:-1] for name in names[:SEVERAL]) + more
