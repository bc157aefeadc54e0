"""Study files: TOML in, TOML out with words for people, and the canonical form that is signed."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

from tacit.errors import InputError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    import msgspec

    from tacit.channels.studies.study import Study

__all__ = ["FORMAT", "canonical_form", "read_toml", "write_toml"]

FORMAT = "tacit study 1"

TOP = """\
# A study: what several holders learn together, and what each of them is promised.
# `tacit study show FILE` explains it; `tacit study check FILE` looks for mistakes.
# Whoever changes anything signs it anew (`tacit study sign FILE`), and everyone agrees anew.
"""
PROGRAM = "# What is learned. The plan of this program, under this promise, has the rounds above."
PROMISE = "# What each holder is promised, about one unit: a record, a person or a whole holder."
NOISE = """\
# Who adds how much noise. "every-server": each adds all of it, and the promise holds even if all
# other servers collude. "honest" with honest = h: h servers must not collude, and there is less
# noise."""
CONSORTIUM = """\
# Parties average models that each trains alone, with noise that they draw together. The promise
# holds if at most `colluding` of them work together with the curator, which is the aggregator, and
# if every party has at least `smallest` records. protocol = "as-published" is another, for
# comparison: its promise does not hold, and it alone encrypts, with keys of `key_bits`."""
TAKE_PART = "# How many holders must, and may, take part; the most records that one may bring."
DEADLINES = "# Seconds: for holders to gather, and for each round."
ONLINE = "# Each round is one window of new records; each window keeps the whole promise."
SERVERS = "# Each adds up one share of every holder's sum: random numbers. Run by different people."
AGGREGATOR = "# Puts the servers' noisy sums together, and sees those only."
HOLDERS = "# Who may bring data, known by their keys (`tacit keys show`)."
SCHEMA = "# What the columns mean. All bounds and categories are public knowledge, never from data."
SIGNATURE = "# Over everything above, comments and layout excepted."


def read_toml(path: Path) -> dict[str, Any]:
    """The plain data of a study file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{path}: there is no such file. Write one with: tacit study new {path}"
        ) from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text. Save it as UTF-8.") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: is not valid TOML: {error}.") from None


def canonical_form(study: Study) -> dict[str, Any]:
    """Everything but the signature, as plain data that no reader's floating point can change.

    Columns are a list here: their order is the order of the coordinates, and a canonical object has
    no order.
    """
    schema = study.schema.to_dict()
    columns = [{"name": name, **body} for name, body in schema.pop("columns").items()]
    form = {
        "format": FORMAT,
        **_head(study),
        "program": {**_fields(study.chosen), "settings": _tagged(study.chosen.settings)},
        "promise": _promise(study),
        "noise": _fields(study.noise),
        "take_part": _fields(study.take_part),
        "deadlines": _fields(study.deadlines),
        "online": None if study.online is None else _fields(study.online),
        "servers": [_fields(server) for server in study.servers],
        "aggregator": _fields(study.aggregator),
        "holders": [_fields(holder) for holder in study.holders],
        "schema": {**schema, "columns": columns},
    }
    if study.consortium is not None:
        form["consortium"] = _fields(study.consortium)
    exact: dict[str, Any] = _exact(form)
    return exact


def write_toml(study: Study) -> str:
    """The file for people: every table with a line that says what it is for."""
    chosen = _fields(study.chosen)
    settings = chosen.pop("settings")
    lines = [TOP, *_lines({"format": FORMAT, **_head(study)})]
    lines += ["", PROGRAM, "[program]", *_lines(chosen)]
    if settings:
        lines += ["", "[program.settings]", *_lines(settings)]
    lines += ["", PROMISE, "[promise]", *_lines(_promise(study))]
    if study.consortium is None:
        lines += ["", NOISE, "[noise]", *_lines(_fields(study.noise))]
    else:
        lines += ["", CONSORTIUM, "[consortium]", *_lines(_fields(study.consortium))]
    lines += ["", TAKE_PART, "[take_part]", *_lines(_fields(study.take_part))]
    lines += ["", DEADLINES, "[deadlines]", *_lines(_fields(study.deadlines))]
    if study.online is not None:
        lines += ["", ONLINE, "[online]", *_lines(_fields(study.online))]
    if study.servers:
        lines += _list(SERVERS, "servers", study.servers)
    lines += ["", AGGREGATOR, "[aggregator]", *_lines(_fields(study.aggregator))]
    lines += _list(HOLDERS, "holders", study.holders)
    lines += ["", SCHEMA, *_schema_lines(study)]
    if study.signature is not None:
        lines += ["", SIGNATURE, "[signature]", *_lines(_fields(study.signature))]
    return "\n".join(lines) + "\n"


def _head(study: Study) -> dict[str, Any]:
    return {"name": study.name, "question": study.question, "rounds": study.rounds}


def _promise(study: Study) -> dict[str, Any]:
    promise = study.promise
    return {
        "epsilon": promise.epsilon,
        "delta": promise.delta,
        "unit": promise.unit.value,
        "adjacency": promise.adjacency.value,
    }


def _fields(part: msgspec.Struct) -> dict[str, Any]:
    values = {name: getattr(part, name) for name in part.__struct_fields__}
    return {name: value for name, value in values.items() if value is not None}


def _tagged(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings have no declared types: 1, 1.0 and "1.0" must not become the same text."""
    return {
        name: [_tag(v) for v in value] if isinstance(value, list) else _tag(value)
        for name, value in settings.items()
    }


def _tag(value: Any) -> Any:
    return {"float": value} if isinstance(value, float) else value


def _exact(value: Any) -> Any:
    if isinstance(value, float):
        return repr(value + 0.0)  # + 0.0: minus zero is zero
    if isinstance(value, dict):
        return {key: _exact(v) for key, v in value.items()}
    return [_exact(v) for v in value] if isinstance(value, (list, tuple)) else value


def _list(comment: str, key: str, parts: tuple[Any, ...]) -> list[str]:
    lines = ["", comment]
    for number, part in enumerate(parts):
        lines += [*([""] if number else []), f"[[{key}]]", *_lines(_fields(part))]
    return lines


def _schema_lines(study: Study) -> list[str]:
    """The schema's own file, one level down. A line that opens with a bracket heads a table there:
    texts are escaped to one line, and the lines of a long array are indented or close it."""
    lines = study.schema.to_toml().splitlines()
    moved = [f"[schema.{line[1:]}" if line.startswith("[") else line for line in lines]
    return ["[schema]", *moved]


def _lines(table: dict[str, Any]) -> list[str]:
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
