"""Schema documents on disk: TOML or JSON in, TOML out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tacit.errors import InputError, SchemaError
from tacit.toml_text import read_text, toml_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_document", "write_toml"]

WHY_TODO = {
    "bounds": (
        "# TODO: bounds that are public knowledge (unit, instrument, law, common sense), such as\n"
        "# [0, 120]. They are not read off the data: its largest value is somebody's value.\n"
        "# Values outside are clipped."
    ),
    "categories": (
        "# TODO: every value that may occur, from public knowledge. They are not read off the\n"
        "# data: that a rare value occurs at all would give somebody away."
    ),
}


def read_document(path: Path) -> dict[str, Any]:
    """The plain data of a `.json` file, or of a TOML file with any other ending."""
    try:
        text = read_text(path, f"Draft one with: tacit data describe FILE --out {path}")
        if path.suffix != ".json":
            return toml_of(text, str(path))
        document = json.loads(text, object_pairs_hook=_no_duplicates)
    except json.JSONDecodeError as error:
        raise SchemaError(f"{path}: is not valid JSON: {error}.") from None
    except RecursionError:
        raise SchemaError(f"{path}: is not valid JSON: it is nested too deeply.") from None
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from None
    except InputError as error:
        raise SchemaError(str(error)) from None
    if not isinstance(document, dict):
        raise SchemaError(f"{path}: must hold an object with `columns`.")
    return document


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # JSON readers keep the last of two equal keys: one column would vanish without a word.
    seen = dict(pairs)
    if len(seen) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise SchemaError(f"{twice!r} is there twice. Keep one of them.")
    return seen


def write_toml(document: dict[str, Any]) -> str:
    """A schema's plain data as TOML, with the reason beside each TODO."""
    lines = [f"{_key(k)} = {_value(v)}" for k, v in document.items() if not isinstance(v, dict)]
    for key, table in document.items():
        if key == "columns":
            for name, body in table.items():
                lines += ["", f"[columns.{_key(name)}]", *_body(body)]
        elif isinstance(table, dict):
            lines += ["", f"[{_key(key)}]", *_body(table)]
    return "\n".join(lines).lstrip("\n") + "\n"


def _body(table: dict[str, Any]) -> list[str]:
    lines = []
    for key, value in table.items():
        if value == "TODO" and key in WHY_TODO:
            lines.append(WHY_TODO[key])
        lines.append(f"{_key(key)} = {_value(value)}")
    return lines


def _key(name: str) -> str:
    bare = name.isascii() and name and all(c.isalnum() or c in "-_" for c in name)
    return name if bare else _string(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, (int, float)):
        whole = float(value).is_integer() and abs(value) < 1e15
        return str(int(value)) if whole else repr(float(value))
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + "}"
    return _array([_value(v) for v in value])


def _array(items: list[str]) -> str:
    flat = "[" + ", ".join(items) + "]"
    if len(flat) <= 88:
        return flat
    lines, line = [], "   "
    for item in items:
        if len(line) + len(item) > 96 and line.strip():
            lines.append(line)
            line = "   "
        line += f" {item},"
    return "[\n" + "\n".join([*lines, line]) + "\n]"


def _string(text: str) -> str:
    # JSON's escapes are TOML's, but TOML also wants DEL escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
