"""States and models on disk: arrays in safetensors, the rest in JSON inside the same file."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tacit.errors import InputError, InternalFault

__all__ = ["from_bytes", "load", "save", "to_bytes"]

T = TypeVar("T")
PLAIN = (str, int, float, bool, type(None))


def to_bytes(value: Any) -> bytes:
    """A dataclass of arrays, numbers, texts, fractions and tuples of these, as one file."""
    from safetensors.numpy import save as save_tensors

    if not is_dataclass(value):
        raise InternalFault(f"{type(value).__name__} is not a dataclass")
    arrays: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for field in fields(value):
        content = getattr(value, field.name)
        if isinstance(content, np.ndarray):
            arrays[field.name] = np.ascontiguousarray(content)
        else:
            rest[field.name] = _plain(content)
    text = json.dumps({"type": type(value).__name__, "fields": rest}, sort_keys=True)
    return bytes(save_tensors(arrays, metadata={"tacit": text}))


def from_bytes(kind: type[T], data: bytes) -> T:
    """The dataclass that `to_bytes` wrote."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as load_tensors

    try:
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        about = json.loads(header["__metadata__"]["tacit"])
        arrays = load_tensors(data)
    except (ValueError, KeyError, TypeError, SafetensorError):
        raise InputError("this is not a model or state of tacit, or it is damaged.") from None
    if about["type"] != kind.__name__:
        raise InputError(f"this is a {about['type']}, not a {kind.__name__}.")
    return kind(**arrays, **{name: _back(content) for name, content in about["fields"].items()})


def save(value: Any, path: str | Path) -> None:
    Path(path).write_bytes(to_bytes(value))


def load(kind: type[T], path: str | Path) -> T:
    try:
        return from_bytes(kind, Path(path).read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None


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


def _back(content: Any) -> Any:
    if isinstance(content, dict) and "fraction" in content:
        return Fraction(content["fraction"])
    if isinstance(content, dict) and "tuple" in content:
        return tuple(_back(c) for c in content["tuple"])
    return content
