"""Files of problems: read with care, since they come from strangers; written with words for people.

A problem is a page of text. Whatever is larger, deeper or stranger than that is refused before
anything looks at it, and no text in it can play tricks on a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tacit.data.toml import fields, read_toml, table_lines
from tacit.errors import InputError, TacitError

if TYPE_CHECKING:
    from tacit.personal.problems.problem import Problem

__all__ = [
    "FORMAT",
    "canonical_form",
    "check_texts",
    "plain_document",
    "read_document",
    "write_toml",
]

FORMAT = "tacit problem 1"
LARGEST = 64 << 10  # bytes of a file
LONGEST = 2000  # characters of a text
DEEPEST = 8  # tables or lists within one another

TOP = """\
# A prediction problem: which events it needs, what one instance is, what is asked of it, and from
# what it is told. It is plain data: nothing in it can run, and using it sends nothing anywhere.
"""
EVENTS = "# The events it reads, and their fields."
INSTANCE = "# What one example is, and until when its features may look."
LABEL = "# What is to be predicted."
FEATURES = "# What is known of an example: these features, and those made by stacking."
COLUMNS = "# For a study of many people: the columns of the one row that each of them has."


def read_document(path: Path) -> dict[str, Any]:
    """The plain data of a file, if it is no larger than a problem can be."""
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: is no ordinary file. Give the file of a problem.")
        if path.exists() and path.stat().st_size > LARGEST:
            raise InputError(
                f"{path}: is larger than {LARGEST >> 10} KiB; the file of a problem is a page of "
                "text. Check that it is the right one."
            )
        return read_toml(path, "Write one, or see `tacit me problems`.")
    except TacitError:
        raise
    except RecursionError:
        raise InputError(f"{path}: lists or tables are nested too deep.") from None
    except (ValueError, OSError):  # numbers of thousands of digits; names no file can have
        raise InputError(f"{path}: cannot be read as TOML.") from None


def plain_document(document: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The document without its format, once every text in it is known to be harmless."""
    try:
        check_texts(document)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    plain = dict(document)
    if plain.pop("format", FORMAT) != FORMAT:
        raise InputError(
            f"{where}: this version of tacit reads the format {FORMAT!r}. Update tacit, or ask the "
            "author for a file of that format."
        )
    return plain


def check_texts(document: Mapping[str, Any]) -> None:
    """Raise for texts and names that are too long, or hold what a terminal would obey."""
    for text in _texts(document):
        if len(text) > LONGEST:
            raise InputError(f"a text is longer than {LONGEST} characters. Shorten it.")
        if not text.isprintable():
            raise InputError(
                "a text holds line ends or characters that cannot be seen. Write each text on one "
                "line, in visible characters."
            )


def _texts(value: Any, depth: int = 0) -> Iterable[str]:
    if depth > DEEPEST:
        raise InputError("lists or tables are nested too deep.")
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _texts(inner, depth + 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner, depth + 1)


def canonical_form(problem: Problem) -> dict[str, Any]:
    """Everything, as plain data that is the same for the same problem: what is hashed and signed.

    Columns are a list here, since their order is that of the features.
    """
    form = fields(problem)
    for name in ("instance", "label", "features"):
        form[name] = fields(form[name])
    columns = [[name, feature] for name, feature in problem.columns.items()]
    return {"format": FORMAT, **form, "columns": columns}


def write_toml(problem: Problem) -> str:
    """The file for people: every table with a line that says what it is for."""
    head = {"format": FORMAT, "name": problem.name, "question": problem.question}
    if problem.about:
        head["about"] = problem.about
    lines = [TOP, *table_lines(head)]
    if problem.static:
        lines += table_lines({"static": problem.static})
    lines += ["", EVENTS]
    for number, (name, kinds) in enumerate(sorted(problem.events.items())):
        table = table_lines(dict(sorted(kinds.items())))
        lines += [*([""] if number else []), f"[events.{name}]", *table]
    for comment, name in ((INSTANCE, "instance"), (LABEL, "label"), (FEATURES, "features")):
        lines += ["", comment, f"[{name}]", *table_lines(_said(getattr(problem, name)))]
    if problem.columns:
        lines += ["", COLUMNS, "[columns]", *table_lines(problem.columns)]
    return "\n".join(lines) + "\n"


def _said(part: msgspec.Struct) -> dict[str, Any]:
    """What was said: what has its default value is left out."""
    defaults = {field.name: field.default for field in msgspec.structs.fields(part)}
    return {name: value for name, value in fields(part).items() if value != defaults[name]}
