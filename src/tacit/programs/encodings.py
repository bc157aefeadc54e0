"""Numbers as curves or bins: what lets a linear model follow what is not a line (logistic.md).

An encoding looks at encoded records, whose numbers lie in [−1, 1] by public bounds or by those that
were found. It is a fixed function of one record and of the columns' types, so it costs nothing, and
is the same in every holder's rounds and in prediction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tacit.data.schema import Schema
from tacit.errors import InputError, UsageError
from tacit.privacy.bound import Norm
from tacit.programs.layout import layout
from tacit.programs.prediction import within

__all__ = [
    "BINS",
    "DEGREES",
    "Encoding",
    "Features",
    "Kind",
    "checked_features",
    "encoding_for",
    "fields_of",
]

Reals = NDArray[np.float64]
Places = NDArray[np.intp]
Features = Literal["auto", "raw", "bins", "curves"]
Kind = Literal["bins", "curves"]

# Models mean these numbers: others need another version of the programs that use them.
BINS = 16  # of equal width: their ends are parts of a power of two, so that comparing is exact
# What Chebyshev's polynomials T₁, T₂, … are multiplied with. A smooth curve has small coefficients
# for high degrees (Trefethen 2013, theorem 7.1), and records that are hardly longer share their
# clip better.
DEGREES = (1.0, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 1 / 6)
AS_IS, NUMBER, NUMBER_OR_MISSING = 0, 1, 2


def encoding_for(features: str, schema: Schema) -> Encoding | None:
    """What is chosen for the columns of a schema; None: records as they are.

    "auto" looks at the types of the columns and at nothing else, so that nobody has to pay for the
    choice: curves where there is a number without edges.
    """
    roles = _roles(schema)
    if features == "raw" or not any(roles):
        return None
    return Encoding("bins" if features == "bins" else "curves", roles)


@dataclass(frozen=True)
class Encoding:
    """Which coordinates of an encoded record are numbers, and what becomes of these.

    roles   of each coordinate: AS_IS; NUMBER; or NUMBER_OR_MISSING, after which comes the
            coordinate that says whether it is missing: if so, all that is made of it is 0

    Coordinates that stay come first, then those of each number, one number after another.
    """

    kind: Kind
    roles: tuple[int, ...]

    def __post_init__(self) -> None:
        known = self.kind in get_args(Kind) and set(self.roles) <= {0, 1, 2}
        flags = [after for role, after in pairwise((*self.roles, NUMBER)) if role == 2]
        if not known or any(flags) or not any(self.roles):
            raise InputError("an encoding's kind or roles are damaged.")

    @classmethod
    def known(cls, kind: Kind | None, roles: tuple[int, ...] | None) -> Encoding | None:
        """That of a state or model, which are made of plain fields; None: as they are."""
        return None if kind is None or roles is None else cls(kind, roles)

    @cached_property
    def numbers(self) -> Places:
        return np.flatnonzero(self.roles)

    @cached_property
    def others(self) -> Places:
        return np.flatnonzero(np.equal(self.roles, AS_IS))

    @property
    def each(self) -> int:
        """How many coordinates a number becomes."""
        return len(DEGREES) if self.kind == "curves" else BINS

    @property
    def width(self) -> int:
        return len(self.others) + self.each * len(self.numbers)

    @property
    def effective(self) -> float:
        """How many coordinates of full length it amounts to."""
        return len(self.others) + len(self.numbers) * self._squares

    def places(self, number: int) -> slice:
        """The coordinates of one number, counted from 0."""
        start = len(self.others) + number * self.each
        return slice(start, start + self.each)

    def of(self, X: Reals) -> Reals:
        """Encoded records under the encoding: every coordinate in [−1, 1]."""
        if X.shape[1] != len(self.roles):
            raise UsageError(f"records have {X.shape[1]} coordinates here, not {len(self.roles)}.")
        seen = within(X)
        values = seen[:, self.numbers]
        found = np.empty((len(seen), self.width))
        found[:, : len(self.others)] = seen[:, self.others]
        made = self.basis(values)
        for at, place in enumerate(self.numbers):
            if self.roles[place] == NUMBER_OR_MISSING:
                made[seen[:, place + 1] > 0.5, at] = 0.0
        found[:, len(self.others) :] = made.reshape(len(seen), self.each * len(self.numbers))
        return found

    def basis(self, values: Reals) -> Reals:
        """What becomes of numbers in [−1, 1]: a last axis more."""
        if self.kind == "bins":
            ends = np.arange(1, BINS) * (2.0 / BINS) - 1.0
            places = np.searchsorted(ends, values, side="right")
            return np.asarray(places[..., None] == np.arange(BINS), dtype=np.float64)
        found = np.empty((*values.shape, len(DEGREES)))
        before, now = np.ones_like(values), values
        for place, weight in enumerate(DEGREES):
            # Single operations of IEEE 754: the same bits whatever the batch.
            np.multiply(now, weight, out=found[..., place])
            before, now = now, 2.0 * values * now - before
        return np.clip(found, -1.0, 1.0, out=found)

    def bound(self, norm: Norm, before: float) -> float:
        """The largest norm of a record, if it is at most `before` as encoded (rounded up). There
        one number has 1 of it, and |T| ≤ 1; rounding of 2^−53 has room in 1 + 2^−40."""
        if self.kind == "bins":
            return before
        count = len(self.numbers)
        if norm is Norm.L1:
            return (before + count * (sum(DEGREES) - 1.0)) * (1 + 2.0**-40)
        return math.sqrt(before**2 + count * (self._squares - 1.0)) * (1 + 2.0**-40)

    @property
    def _squares(self) -> float:
        """The largest squared length of what one number becomes; of bins, which are all but one 0,
        as many as there are: each is learned by itself."""
        return sum(weight**2 for weight in DEGREES) if self.kind == "curves" else float(BINS)


def fields_of(encoding: Encoding | None) -> tuple[Kind | None, tuple[int, ...] | None]:
    """What `Encoding.known` takes."""
    return (None, None) if encoding is None else (encoding.kind, encoding.roles)


def checked_features(features: object) -> Features:
    """UsageError for what nobody can choose."""
    known: tuple[Features, ...] = get_args(Features)
    if features not in known:
        raise UsageError(f"features must be one of {', '.join(known)}, not {features!r}.")
    return known[known.index(features)]


def _roles(schema: Schema) -> tuple[int, ...]:
    found: list[int] = []
    # What bounds are, and whether they are known yet, makes no difference.
    blank = schema.with_ranges({column.name: (-1.0, 1.0, False) for column in schema.private})
    for column, place in layout(blank):
        width = place.stop - place.start
        if column.is_number and column.edges is None:
            found += [NUMBER] if width == 1 else [NUMBER_OR_MISSING, AS_IS]
        else:
            found += [AS_IS] * width
    return tuple(found)
