"""The layout of TOML files: plain values as lines, and as a form that can be signed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from tacit.data.schema import Schema
from tacit.errors import InputError, UsageError
from tacit.toml_text import read_text, toml_of

__all__ = [
    "exact",
    "fields",
    "read_toml",
    "schema_form",
    "schema_lines",
    "table_lines",
    "table_of",
    "tables_lines",
    "tagged",
]


def read_toml(path: Path, remedy: str) -> dict[str, Any]:
    """The plain data of a file; `remedy` is said where there is none."""
    return toml_of(read_text(path, remedy), str(path))


def table_of(document: Any, kind: Any, where: str) -> Any:
    """A table as its type; an InputError with the place for what does not fit."""
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        text = str(error).replace(" - at `$.", " in `").replace(" - at `$[", " in `[")
        names = getattr(kind, "__struct_fields__", None) or kind.__args__[0].__struct_fields__
        known = f" (it has: {', '.join(names)})" if "unknown field" in text else ""
        raise InputError(f"{where}: {text.replace('Object', 'it')}{known}.") from None


def fields(part: msgspec.Struct) -> dict[str, Any]:
    """What stands in a table: everything but what is None."""
    values = {name: getattr(part, name) for name in part.__struct_fields__}
    return {name: value for name, value in values.items() if value is not None}


def tagged(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings have no declared types: 1, 1.0 and "1.0" must not become the same text."""
    return {
        name: [_tag(v) for v in value] if isinstance(value, list) else _tag(value)
        for name, value in settings.items()
    }


def _tag(value: Any) -> Any:
    return {"float": value} if isinstance(value, float) else value


def exact(value: Any) -> Any:
    """Plain data that no reader's floating point can change."""
    if isinstance(value, float):
        return repr(value + 0.0)  # + 0.0: minus zero is zero
    if isinstance(value, dict):
        return {key: exact(v) for key, v in value.items()}
    return [exact(v) for v in value] if isinstance(value, (list, tuple)) else value


def schema_form(schema: Schema) -> dict[str, Any]:
    """Columns are a list here: their order is the order of the coordinates, and a canonical object
    has no order."""
    form = schema.to_dict()
    columns = [{"name": name, **body} for name, body in form.pop("columns").items()]
    return {**form, "columns": columns}


def tables_lines(comment: str, key: str, parts: tuple[Any, ...]) -> list[str]:
    """[[key]] once for each part."""
    lines = ["", comment]
    for number, part in enumerate(parts):
        lines += [*([""] if number else []), f"[[{key}]]", *table_lines(fields(part))]
    return lines


def schema_lines(schema: Schema) -> list[str]:
    """The schema's own file, one level down. A line that opens with a bracket heads a table there:
    texts are escaped to one line, and the lines of a long array are indented or close it."""
    lines = schema.to_toml().splitlines()
    moved = [f"[schema.{line[1:]}" if line.startswith("[") else line for line in lines]
    return ["[schema]", *moved]


def table_lines(table: dict[str, Any]) -> list[str]:
    return [f"{_key(key)} = {_value(value)}" for key, value in table.items()]


def _key(name: str) -> str:
    bare = name.isascii() and name and all(c.isalnum() or c in "-_" for c in name)
    return name if bare else _text(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (int, float)):
        return repr(value)
    if value is None:
        raise UsageError("a study file has no word for None: leave such settings out.")
    return "[" + ", ".join(_value(v) for v in value) + "]"


def _text(text: str) -> str:
    # JSON's escapes are TOML's, but TOML also wants DEL escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
