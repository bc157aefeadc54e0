"""TOML that anybody may have written: read with bounds on what it may cost.

`tomllib` keeps every prefix of a dotted key, so a key of n parts costs n² of memory (100,000 parts:
tens of gigabytes), nests as deeply as a text says, and reads a file of any size.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from tacit.errors import InputError

__all__ = ["MAX_BYTES", "MAX_DOTS", "read_text", "toml_of"]

MAX_BYTES = 2**23  # of a file: a study of 50,000 holders
MAX_DOTS = 20  # of one key
MAX_SAID = 200  # characters of what the parser says
# One that is not closed goes to the end of the line: nothing is tried twice.
STRING = re.compile(r'"(?:[^"\\]|\\.)*\\?(?:"|$)|' + r"'[^']*(?:'|$)")
KEYLIKE = re.compile(r"[\w\-. \t]+")  # a key and its dots; lists of numbers have commas in between


def read_text(path: Path, remedy: str, most: int = MAX_BYTES) -> str:
    """A text file of at most so many bytes; `remedy` is said where there is none."""
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file. {remedy}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from None
    if len(data) > most:
        raise _too_large(str(path), most)
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text. Save it as UTF-8.") from None


def toml_of(text: str, where: str, most: int = MAX_BYTES) -> dict[str, Any]:
    """The plain data of a TOML text; InputError, with `where`, for anything else."""
    if len(text.encode()) > most:
        raise _too_large(where, most)
    if _longest_key(text) > MAX_DOTS:
        raise InputError(
            f"{where}: a key has more than {MAX_DOTS} dots: write tables, such as [schema.columns]."
        )
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InputError(f"{where}: is not valid TOML: it is nested too deeply.") from None
    except ValueError as error:  # TOMLDecodeError is one, and so is a number of a million digits
        raise InputError(f"{where}: is not valid TOML: {str(error)[:MAX_SAID]}.") from None


def _longest_key(text: str) -> int:
    """The most dots of anything that may be a key. A key stands on one line."""
    # Where a text of several lines begins and ends is not looked for: then every dot counts.
    plain = '"""' not in text and "'''" not in text
    most = 0
    for row in text.split("\n"):
        if row.count(".") <= MAX_DOTS:
            continue
        seen = STRING.sub("s", row).partition("#")[0] if plain else row
        most = max(most, *(run.count(".") for run in KEYLIKE.findall(seen)), 0)
    return most


def _too_large(where: str, most: int) -> InputError:
    return InputError(f"{where}: is larger than {most} bytes: name fewer things.")
