"""A program's settings as plain data, as they stand in a study or model file, and back.

Plain data are numbers, texts, truth values and lists. A fraction is written as text, "1/3", and a
tuple as a list. What a setting may be is said by the type hints of the program's constructor.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from tacit.errors import InternalFault, TacitError, UsageError

if TYPE_CHECKING:
    from tacit.programs.program import Learner

__all__ = ["built", "plain_settings"]

MOST_TEXT = 1000  # of a fraction; longer ones only cost time


def plain_settings(program: Learner) -> dict[str, Any]:
    """The settings of a program as plain data, from which `built` makes it again."""
    return {name: _plain(value) for name, value in program.settings().items()}


def built(kind: type[Learner], settings: Mapping[str, Any]) -> Learner:
    """A program of this kind with these settings, or a UsageError that says what it takes."""
    hints = _parameters(kind)
    unknown = [name for name in settings if name not in hints]
    if unknown:
        known = ", ".join(hints) or "none"
        raise UsageError(
            f"program {kind.name!r} has no setting {str(unknown[0])[:40]!r}. It has: {known}."
        )
    arguments = {}
    for name, value in settings.items():
        try:
            arguments[name] = _fitted(value, hints[name])
        except (TypeError, ValueError):
            raise UsageError(
                f"setting {name!r} of program {kind.name!r} must be {_said(hints[name])}: "
                "correct it, or leave it out for the default."
            ) from None
    try:
        return kind(**arguments)
    except (TypeError, ValueError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"program {kind.name!r} does not take these settings: {error}") from None
    except TacitError:
        raise
    except Exception as error:  # whatever somebody else's constructor does
        raise UsageError(
            f"program {kind.name!r} cannot be made with these settings ({type(error).__name__}): "
            "correct them, or ask whoever wrote it."
        ) from None


def _parameters(kind: type[Learner]) -> dict[str, Any]:
    """The constructor's parameters with their type hints, Any where there is none."""
    if kind.__init__ is object.__init__:
        return {}
    hints = get_type_hints(kind.__init__)
    found = inspect.signature(kind).parameters.values()
    named = [p.name for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return {name: hints.get(name, Any) for name in named}


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise InternalFault(f"settings are numbers, texts and lists, not {type(value).__name__}")


def _fitted(value: Any, hint: Any) -> Any:
    """The value as the hint has it; ValueError or TypeError if it cannot be that."""
    origin, parts = get_origin(hint) or hint, get_args(hint)
    if origin in (Union, UnionType):
        return _first(value, parts)
    if origin in (list, tuple, Sequence):
        return _listed(value, parts)
    if origin is Literal and isinstance(value, (str, int)) and value in parts:
        return value
    if origin is Fraction and isinstance(value, (str, int, float)):
        return _fraction(value)
    if origin is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return _finite(value)
    if origin is int and type(value) is int:
        return value
    if origin in (bool, str, NoneType) and isinstance(value, origin):
        return value
    if origin is Any:
        return tuple(value) if isinstance(value, list) else value
    raise TypeError


def _first(value: Any, hints: tuple[Any, ...]) -> Any:
    for hint in hints:
        try:
            return _fitted(value, hint)
        except (TypeError, ValueError):
            continue
    raise TypeError


def _listed(value: Any, hints: tuple[Any, ...]) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise TypeError
    each = hints[0] if hints else Any
    return tuple(_fitted(part, each) for part in value)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError
    return value


def _fraction(value: float | str) -> Fraction:
    # "1e999999999" is a short text and a fraction without end.
    if isinstance(value, str) and ("e" in value.lower() or len(value) > MOST_TEXT):
        raise ValueError
    try:
        return Fraction(value)
    except (ZeroDivisionError, OverflowError):
        raise ValueError from None


def _said(hint: Any) -> str:
    """A type hint in words."""
    origin, parts = get_origin(hint) or hint, get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(_said(part) for part in parts if part is not NoneType)
    if origin in (list, tuple, Sequence):
        return "a list" + (f", each {_said(parts[0])}" if parts else "")
    if origin is Literal:
        return " or ".join(repr(part) for part in parts)
    words = {
        int: "a whole number",
        float: "a finite number",
        bool: "true or false",
        str: "a text",
        Fraction: 'a fraction such as "1/3"',
    }
    return words.get(origin, "a number, a text or a list")
