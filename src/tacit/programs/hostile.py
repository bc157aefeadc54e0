"""What an aggregator that wants to learn of a record could send, and records that would help him.

States are built from what a program's states are made of, so this needs no knowledge of a program:
every field that travels, at its extremes and between them, alone and together with others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator, default_rng  # chooses what to try: nothing here is noise
from numpy.typing import NDArray

from tacit.data.encode import Encoded
from tacit.programs.states import state_bytes, varying

__all__ = ["EXTREMES", "damaged", "hostile_records", "hostile_states", "layouts", "taken"]

Array = NDArray[Any]
Integers = NDArray[np.int64]

TINY, LEAST, MOST = 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308
MAGNITUDES = (
    TINY, LEAST, 1e-300, 1e-160, 1e-9, 2.0**-17, 0.5, 1.0, 3.0, 2.0**20, 2.0**53, 1e154, 1e300, MOST
)  # fmt: skip
EXTREMES = (0.0, -0.0, *MAGNITUDES, *(-value for value in MAGNITUDES))
NOT_FINITE = (np.nan, np.inf, -np.inf)
MANY = 40  # copies of all records in the longest batch: longer than any block of a kernel
WHOLE = (0, 1, -1, 2, 7, 50, 2**31 - 1, 2**53 + 1, 2**63 - 1, -(2**63))
TEXTS = ("", "done", "size", "gradient", "L1", "\x00", "é" * 50)


def hostile_states(known: Sequence[Any], generator: Generator, count: int) -> Iterator[bytes]:
    """`count` states as they could arrive, made of `known` ones; some cannot be read."""
    kind = type(known[0])
    names = sorted(varying(kind))
    for _ in range(count if names else 1):
        state, other = (known[int(generator.integers(len(known)))] for _ in range(2))
        several = generator.integers(1, len(names) + 1) if generator.integers(3) == 0 else 1
        chosen = generator.choice(names, several, replace=False) if names else ()
        pairs = ((str(name), getattr(state, name), getattr(other, name)) for name in chosen)
        changes = {name: _changed(value, also, generator) for name, value, also in pairs}
        try:
            yield state_bytes(replace(state, **changes))
        except (ValueError, TypeError, ArithmeticError):
            continue  # the class itself does not allow for it, so nobody reads it either


def damaged(data: bytes, generator: Generator, count: int) -> Iterator[bytes]:
    """Bytes that are no state: cut, prolonged, and with single bytes changed."""
    yield from (b"", b"\x00" * 8, b"\xff" * 64, data + b"\x00", data[:-1])
    for _ in range(count):
        place = int(generator.integers(len(data)))
        yield data[:place]
        yield data[:place] + bytes([generator.integers(256)]) + data[place + 1 :]


def hostile_records(X: Array, y: Array | None, generator: Generator, own: int = 12) -> Encoded:
    """Records at and far beyond the ends of what an encoder gives, and some of `X` itself."""
    width = X.shape[1]
    alternating = np.where(np.arange(width) % 2, 1.0, -1.0)
    rows: list[Any] = [np.full(width, value) for value in (*NOT_FINITE, 0.0, -0.0)]
    rows += [alternating * value for value in (1.0, 0.5, 2.0**-17, TINY, 1e6, 1e300, MOST)]
    rows += [np.full(width, value) for value in (1 / 3, -0.7)]  # equal: they lie on many ties
    rows += [np.ones(width), -np.ones(width), np.eye(width)[width // 2], alternating * np.nan]
    for value in (*NOT_FINITE, 1e300, 1.0):
        spoilt = X[generator.integers(len(X))].copy()
        spoilt[generator.integers(width)] = value
        rows.append(spoilt)
    rows += [generator.choice(EXTREMES, width), generator.choice((-1.0, 0.0, 1.0), width)]
    rows += [np.rint(generator.normal(0, 2**15, width)) * 2.0**-16 + 2.0**-17]  # between two steps
    rows += list(X[generator.integers(len(X), size=own)])
    found = np.array(rows, dtype=np.float64)
    people = generator.integers(len(found) // 4, size=len(found))
    return Encoded(found, _labels(y, len(found), generator), people)


def layouts(records: Encoded) -> Iterator[tuple[Encoded, Integers]]:
    """All records; each alone; and all of them in batches of other shapes, orders and strides."""
    count = len(records.X)
    everyone = np.arange(count)
    yield records, everyone
    for place in range(count):
        yield taken(records, np.array([place])), np.array([place])
    yield from ((taken(records, p), p) for p in (everyone[::-1].copy(), np.repeat(everyone, 2)))
    yield from ((taken(records, everyone[k : k + 7]), everyone[k : k + 7]) for k in (0, 3))
    yield from ((taken(records, p), p) for p in (everyone[:2], everyone[-2:]))
    many = default_rng(0).permutation(np.tile(everyone, MANY))
    yield taken(records, many), many
    yield records._replace(X=np.asfortranarray(records.X)), everyone
    yield taken(records, slice(None, None, -1)), everyone[::-1]
    yield taken(records, slice(1, None, 2)), everyone[1::2]
    spread = np.full((count, 2 * records.X.shape[1] + 1), np.nan)
    spread[:, 1::2] = records.X
    yield records._replace(X=spread[:, 1::2]), everyone


def taken(records: Encoded, which: Any) -> Encoded:
    """Some of the records."""
    return Encoded(*(None if part is None else part[which] for part in records))  # type: ignore[arg-type]


def _labels(y: Array | None, count: int, generator: Generator) -> Array | None:
    if y is None:
        return None
    found = np.asarray(generator.choice(y, count))
    strange: Sequence[Any]
    if found.dtype.kind == "f":
        strange = (*NOT_FINITE, 1e300, -MOST, TINY)
    elif found.dtype.kind in "iu":
        limits = np.iinfo(found.dtype)
        strange = (limits.min, limits.max, 99)
    else:
        strange = ()
    for value in strange:
        found[generator.integers(count)] = value
    return found


def _changed(value: Any, other: Any, generator: Generator) -> Any:
    """Something of the same kind, or nearly; `other` is what another state has there."""
    if isinstance(value, np.ndarray):
        return _array(value, other, generator)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return int(generator.choice(np.array(WHOLE, dtype=object)))
    if isinstance(value, float):
        return _number(value, generator)
    if isinstance(value, str):
        return str(generator.choice(TEXTS))
    if isinstance(value, tuple):
        part = _changed(value[0], value[0], generator) if value else 1e300
        return (part,) * int(generator.integers(4))
    return None


def _number(value: float, generator: Generator) -> Any:
    match generator.integers(4):
        case 0:
            return value * 10.0 ** float(generator.integers(-320, 309))
        case 1:
            return float(generator.normal()) * 10.0 ** float(generator.integers(-12, 13))
        case 2 if generator.integers(50) == 0:
            return float(generator.choice(NOT_FINITE))
        case _:
            return float(generator.choice(EXTREMES))


def _array(value: Array, other: Any, generator: Generator) -> Array:
    if generator.integers(20) == 0:
        return _unfit(value, generator)
    if value.dtype.kind == "f":
        ways = _FLOATS
    elif value.dtype.kind in "iu":
        ways = _INTEGERS
    else:
        return ~value if value.dtype.kind == "b" else value
    if isinstance(other, np.ndarray) and generator.integers(10) == 0:
        return other
    with np.errstate(all="ignore"):
        return np.asarray(ways[generator.integers(len(ways))](value, generator), value.dtype)


def _unfit(value: Array, generator: Generator) -> Array:
    """Of another type, shape or rank."""
    ways: list[Callable[[], Array]] = [
        lambda: value[None],
        lambda: value.ravel(),
        lambda: np.concatenate([value, value]) if value.ndim else value[None],
        lambda: value[:0] if value.ndim else value[None],
        lambda: value.astype(np.float32),
        lambda: value.astype(np.int64),
        lambda: value.astype(np.uint8),
        lambda: value.T.copy(),
    ]
    with np.errstate(all="ignore"):
        return ways[generator.integers(len(ways))]()


def _one_entry(value: Array, entry: Any, generator: Generator) -> Array:
    found = value.copy()
    if found.size:
        found.ravel()[generator.integers(found.size)] = entry
    return found


def _rows_repeated(value: Array, generator: Generator) -> Array:
    if not len(np.atleast_1d(value)) or not value.ndim:
        return value
    return np.asarray(value[generator.integers(len(value), size=len(value))])


def _balanced(value: Array, generator: Generator) -> Array:
    """Entries of which any column adds up to about nothing: what is left is rounding."""
    found = generator.normal(size=value.shape)
    return np.asarray(found - found.sum(axis=0) / max(1, len(found)) if value.ndim else found)


def _magnitude(generator: Generator) -> float:
    return float(10.0 ** generator.integers(-308, 309))


_FLOATS: list[Callable[[Array, Generator], Any]] = [
    lambda v, g: np.full(v.shape, g.choice(EXTREMES)),
    lambda v, g: np.full(v.shape, g.choice(MAGNITUDES)) * g.choice((-1.0, 1.0), v.shape),
    lambda v, g: _one_entry(v, g.choice(EXTREMES), g),
    lambda v, g: g.choice(EXTREMES, v.shape),
    lambda v, g: v * g.choice(EXTREMES),
    lambda v, g: v * _magnitude(g),
    lambda v, g: g.normal(size=v.shape) * _magnitude(g),
    lambda v, g: g.normal(size=v.shape) * 2.0 ** float(g.integers(-30, 31)),
    lambda v, g: np.rint(g.normal(size=v.shape)),  # ties
    lambda v, g: np.rint(v * 2.0**16) * 2.0**-16 + 2.0**-17,  # halfway between steps
    lambda v, g: v + 2.0**-40 * g.normal(size=v.shape),  # off the grid
    lambda v, g: -v,
    lambda v, g: _balanced(v, g) * g.choice((1.0, 2.0**40, 1e300, 0.2 * MOST)),
    _rows_repeated,
    lambda v, g: _one_entry(v, g.choice(NOT_FINITE), g) if g.integers(8) == 0 else v,
]

_WHOLE = (0, -1, 1, 10_000, np.iinfo(np.int32).max, np.iinfo(np.int32).min)
_INTEGERS: list[Callable[[Array, Generator], Any]] = [
    lambda v, g: np.full(v.shape, g.choice(_WHOLE)),
    lambda v, g: _one_entry(v, g.choice(_WHOLE), g),
    lambda v, g: g.integers(-1, 12, v.shape),
    _rows_repeated,
    lambda v, g: v[::-1].copy() if v.ndim else v,
    lambda v, g: np.concatenate([v, v]) if v.ndim else v,
    lambda v, g: v + 1,
]
