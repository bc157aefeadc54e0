"""States and models as bytes: arrays in safetensors, the rest in JSON inside the same file.

A state comes over a network from a party that nobody has to trust. So a file is read by what the
dataclass says of its fields, never by what the file says of itself: nothing is imported, executed
or unpickled, and whatever does not fit is an InputError.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from tacit.errors import InputError, InternalFault, TacitError

__all__ = [
    "OPTIONAL",
    "about_of",
    "fields_from_bytes",
    "from_bytes",
    "load",
    "read",
    "save",
    "to_bytes",
]

T = TypeVar("T")
PLAIN = (str, int, float, bool, type(None))
DAMAGED = "this is not a model or state of tacit, or it is damaged."
# No exponents: Fraction("1e999999999") would fill the memory. Longer than any float's fraction.
FRACTION = re.compile(r"-?[0-9]{1,700}(/[1-9][0-9]{0,699})?", re.ASCII)
LARGEST = 2**63  # whole numbers of a state fit 64 bits
# Metadata of a dataclass's field that came later: where it is None it is not written, and files
# from before it are read, and written again, as they were.
OPTIONAL: Mapping[str, bool] = MappingProxyType({"optional": True})


class _Unfit(Exception):
    """A value is not of the kind that its field has."""


def to_bytes(
    value: Any, about: Mapping[str, Any] | None = None, only: Collection[str] | None = None
) -> bytes:
    """A dataclass of arrays, numbers, texts, fractions and tuples of these, as one file.

    `about` is plain data that travels with it; `only` names the fields to write, if not all. Equal
    values give equal bytes: everything stands in one entry of the metadata, because safetensors
    keeps several in no certain order.
    """
    from safetensors.numpy import save as save_tensors

    if not is_dataclass(value):
        raise InternalFault(f"{type(value).__name__} is not a dataclass")
    arrays: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for field in sorted(fields(value), key=lambda field: field.name):
        if only is not None and field.name not in only:
            continue
        content = getattr(value, field.name)
        if content is None and field.metadata.get("optional"):
            continue
        if isinstance(content, np.ndarray):
            arrays[field.name] = np.ascontiguousarray(content).reshape(content.shape)
        else:
            rest[field.name] = _plain(content)
    head = {} if about is None else {"about": about}
    text = json.dumps({**head, "fields": rest, "type": type(value).__name__})
    return bytes(save_tensors(arrays, metadata={"tacit": text}))


def from_bytes(kinds: type[T] | tuple[type[T], ...], data: bytes) -> T:
    """The dataclass that `to_bytes` wrote; of several kinds, the one that the file names."""
    known = {kind.__name__: kind for kind in (kinds if isinstance(kinds, tuple) else (kinds,))}
    named = _head(data)["type"]
    if named not in known:
        raise InputError(f"this is a {named[:40]!r}, not a {' or a '.join(known) or 'known kind'}.")
    kind = known[named]
    found = fields_from_bytes(kind, data)
    try:
        return kind(**found)
    except (TacitError, ValueError, TypeError, ArithmeticError):  # its own __post_init__ objects
        raise InputError(f"this {named} is damaged: its fields contradict one another.") from None


def fields_from_bytes(
    kind: type[Any], data: bytes, only: Collection[str] | None = None
) -> dict[str, Any]:
    """The fields of a dataclass that `to_bytes` wrote; with `only`, these, and others are not
    looked at."""
    head, arrays = _head(data), _arrays(data)
    named, rest = head["type"], head["fields"]
    if named != kind.__name__:
        raise InputError(f"this is a {named[:40]!r}, not a {kind.__name__}.")
    hints: dict[str, Any] = _hints(kind)  # type: ignore[arg-type]  # classes are hashable
    wanted = hints.keys() if only is None else hints.keys() & set(only)
    there = arrays.keys() | rest.keys()
    wanted -= {one.name for one in fields(kind) if one.metadata.get("optional")} - there
    extra = there - hints.keys() if only is None else set()
    if not wanted <= there or extra or arrays.keys() & rest.keys():
        raise InputError(f"this {named} has fields missing, twice or too many: it is damaged.")
    found = {}
    for name in hints:
        if name not in wanted:
            continue
        try:
            is_array = name in arrays
            hint = hints[name]
            found[name] = _checked(arrays[name], hint) if is_array else _back(rest[name], hint)
        except _Unfit as error:
            raise InputError(f"this {named} is damaged: its {name} {error}.") from None
    return found


def about_of(data: bytes) -> Any:
    """What was given to `to_bytes` as `about`, unchecked; None if nothing was."""
    return _head(data).get("about")


def save(value: Any, path: str | Path) -> None:
    Path(path).write_bytes(to_bytes(value))


def load(kinds: type[T] | tuple[type[T], ...], path: str | Path) -> T:
    return from_bytes(kinds, read(path))


def read(path: str | Path) -> bytes:
    """The bytes of a file, or an InputError that says why they cannot be had."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None


def _head(data: bytes) -> dict[str, Any]:
    """What stands beside the arrays: `type`, `fields` by name, and `about` if it was given."""
    try:
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        head = json.loads(header["__metadata__"]["tacit"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(DAMAGED) from None
    if not isinstance(head, dict) or not isinstance(head.get("fields"), dict):
        raise InputError(DAMAGED)
    if not isinstance(head.get("type"), str):
        raise InputError(DAMAGED)
    return head


def _arrays(data: bytes) -> dict[str, Any]:
    from safetensors import SafetensorError
    from safetensors.numpy import load as load_tensors

    try:
        return dict(load_tensors(data))
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, ImportError):
        raise InputError(DAMAGED) from None


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _plain(content: Any) -> Any:
    if isinstance(content, Fraction):
        return {"fraction": str(content)}
    if isinstance(content, tuple):
        return {"tuple": [_plain(c) for c in content]}
    if isinstance(content, np.generic):
        return content.item()
    if isinstance(content, PLAIN):
        return content
    raise InternalFault(f"a state holds arrays, numbers and texts, not {type(content).__name__}")


def _checked(array: Any, hint: Any) -> Any:
    """An array, if the field is one, of its kind of numbers."""
    if (get_origin(hint) or hint) is not np.ndarray:
        raise _Unfit("is an array")
    scalar = next(iter(get_args(get_args(hint)[1])), Any) if get_args(hint) else Any
    wanted = get_origin(scalar) or scalar
    if wanted is not Any and not issubclass(array.dtype.type, wanted):
        raise _Unfit(f"holds numbers of type {array.dtype}")
    return array


def _back(content: Any, hint: Any) -> Any:
    """A plain value as its field has it; the hint leads, so that nothing recurses without end."""
    origin, arguments = get_origin(hint) or hint, get_args(hint)
    if origin in (Union, UnionType):
        return _one_of(content, arguments)
    if origin is tuple:
        return _tuple(content, arguments)
    if origin is Fraction:
        return _fraction(content)
    if not _is_of(content, origin, arguments):
        raise _Unfit(f"is not of type {getattr(hint, '__name__', hint)}")
    return content


def _is_of(content: Any, kind: Any, allowed: tuple[Any, ...]) -> bool:
    if kind is np.ndarray:
        return False  # arrays do not stand in the JSON
    if kind is Literal:
        return isinstance(content, PLAIN) and content in allowed
    if kind is float:
        return isinstance(content, float) or _is_whole(content)
    if kind is int:
        return _is_whole(content)
    if kind in (str, bool, NoneType):
        return isinstance(content, kind)
    raise InternalFault(f"a state holds arrays, numbers and texts, not {kind}")


def _is_whole(content: Any) -> bool:
    return type(content) is int and -LARGEST <= content < LARGEST


def _one_of(content: Any, hints: tuple[Any, ...]) -> Any:
    for hint in hints:
        try:
            return _back(content, hint)
        except _Unfit:
            continue
    raise _Unfit("is of none of its types")


def _tuple(content: Any, hints: tuple[Any, ...]) -> tuple[Any, ...]:
    parts = content.get("tuple") if isinstance(content, dict) and len(content) == 1 else None
    if not isinstance(parts, list):
        raise _Unfit("is not a tuple")
    each = [hints[0]] * len(parts) if hints[-1:] == (Ellipsis,) else list(hints)
    if len(each) != len(parts):
        raise _Unfit(f"does not have {len(each)} parts")
    return tuple(_back(part, hint) for part, hint in zip(parts, each, strict=True))


def _fraction(content: Any) -> Fraction:
    text = content.get("fraction") if isinstance(content, dict) and len(content) == 1 else None
    if not isinstance(text, str) or not FRACTION.fullmatch(text):
        raise _Unfit("is not a fraction")
    return Fraction(text)
