"""One fit: its data and promise, the schema it is run under, what must be public.

A column whose bounds nobody stated has bounds = "private" in the schema: the first rounds of the
same plan find them (tacit.programs.ranged).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tacit.channels.central import Central, Outcome
from tacit.channels.studies.asked import asked_by_holder
from tacit.data.digests import digests_of_arrays
from tacit.data.records import ArrayRecords, Records
from tacit.data.schema import PRIVATE, Column, Schema
from tacit.errors import PromiseError, RangeWarning, SchemaError, UsageError
from tacit.estimators.budget import ledger_of
from tacit.estimators.conditions import SCORES_ARE_EXACT, conditions
from tacit.estimators.labels import Labels
from tacit.estimators.randomness import RunDigest, randomness_of
from tacit.estimators.scaling import Scaling
from tacit.privacy.certificate import Certificate
from tacit.privacy.ledger import RecordDigests, Reservation
from tacit.privacy.promise import Promise
from tacit.programs.program import Program
from tacit.programs.range_words import not_found, warned
from tacit.programs.ranged import ranged

if TYPE_CHECKING:
    from tacit.estimators.base import PrivateEstimator

__all__ = [
    "BOUNDS_READ_OFF",
    "Run",
    "column_bounds",
    "known_schema",
    "stated_bounds",
    "uniform_bounds",
]

Reals = NDArray[np.float64]
Bounds = tuple[float, float] | None  # None: nobody stated them

BOUNDS_READ_OFF = "Bounds were read off the data, since there was no privacy to protect."


class Run:
    """The program, and the search for bounds that nobody stated, under one promise and one plan.

    `schema` says what was stated and what is to be found; `learned` of the outcome has it all.
    """

    def __init__(
        self,
        estimator: PrivateEstimator,
        program: Program[Any, Any],
        X: Reals,
        y: NDArray[Any] | None,
        labels: Labels | None,
        label_bounds: Any,
    ) -> None:
        self.estimator, self.X, self.labels = estimator, X, labels
        self.y = y if labels is None else labels.numbers
        self.known = known_schema(estimator.schema)
        self.bounds = self._stated_bounds()
        self.label_bounds = self._stated_label(label_bounds)
        self.promise = self._promised()
        self.promise.check_population(len(X))
        self.remarks: list[str] = []
        digest = self._digest(program)  # of what was stated, not of what is read off
        if not self.promise.is_private:
            self._read_off()
        self.schema = self._schema()
        self.program = ranged(program, self.schema, estimator._uniform)
        self.channel = self._channel(digest)

    def _promised(self) -> Promise:
        estimator = self.estimator
        return Promise(
            estimator.epsilon,
            estimator.delta,
            adjacency=estimator.adjacency,  # type: ignore[arg-type]
        )

    def _channel(self, digest: RunDigest) -> Central:
        return Central(
            self.estimator._engine(),
            randomness_of(self.estimator.random_state, digest),
            progress=self.estimator._progress(),
        )

    def outcome(self) -> Outcome[Any, Any]:
        """What was released, with the schema it was learned under; the ledger is charged."""
        ledger, name = ledger_of(self.estimator.ledger), type(self.estimator).__name__
        if ledger is None:
            return self._release(None)
        self.remarks.append(SCORES_ARE_EXACT)
        cost = self.channel.planned_cost(self.program, self.schema, self.promise)
        dataset, records = self.estimator.dataset, self._records()
        if absent := ledger.decisions.left_out(dataset):
            absent.keep(None)  # refused: an array does not say whose its records are
        asked = asked_by_holder(ledger, self.program.written_name, self._columns())
        with ledger.reserve(
            self.promise, dataset, name, cost=cost, records=records, asked=asked
        ) as reservation:
            head = ledger.head
            outcome = self._release(reservation)
        return replace(outcome, certificate=replace(outcome.certificate, ledger=head))

    def warn(self, learned: Schema) -> None:
        """Of ranges that could not be found; after the release is kept, since it is paid for."""
        if missed := not_found(learned):
            message = warned(missed, len(self.schema.private))
            warnings.warn(message, RangeWarning, stacklevel=5)  # the line that called fit

    def _records(self) -> RecordDigests:
        """What is charged: the rows as they were given, and the meaning of their labels."""
        names = None if self.labels is None else self.labels.names
        return digests_of_arrays(self.X, self.y, classes=names)

    def _release(self, reservation: Reservation | None) -> Outcome[Any, Any]:
        outcome = self.channel.rounds(
            self.program, self._encoded(), self.schema, self.promise, reservation
        )
        return replace(outcome, certificate=self._told(outcome.certificate))

    def _encoded(self) -> Records:
        """Plain numbers where bounds are to be found, else as the program's encoder has them."""
        if not self.schema.private:
            return Scaling.of(self.schema).encode(self.program, self.X, self.y)
        X = self._clipped() if self.estimator._uniform else self._partly_encoded()
        y = self.y
        if y is not None and self.label_bounds is not None:
            y = np.clip(y, *self.label_bounds)
        return ArrayRecords(X, y)

    def _clipped(self) -> Reals:
        """Stated columns within their bounds; where all are to have one width, the state scales."""
        stated = [(-np.inf, np.inf) if b is None else b for b in self.bounds]
        low, high = np.array(stated, dtype=np.float64).T
        return np.clip(self.X, low, high)

    def _partly_encoded(self) -> Reals:
        """Stated columns as the program's encoder has them."""
        if all(b is None for b in self.bounds):
            return self.X
        ends = np.array([b or (-1.0, 1.0) for b in self.bounds], dtype=np.float64)
        scaled = Scaling(ends[:, 0], ends[:, 1]).encode(self.program, self.X, None).X
        return np.where([b is None for b in self.bounds], self.X, scaled)

    # ── bounds ──

    def _stated_bounds(self) -> list[Bounds]:
        """Of each column of X."""
        width, given = self.X.shape[1], self.estimator.bounds
        if self.known is not None:
            return _from_schema(self.known, width)
        return column_bounds(given, width)

    def _stated_label(self, given: Any) -> Bounds:
        if self.y is None or self.labels is not None:
            return None
        if given is not None:
            return stated_bounds(given)
        known = None if self.known is None else self.known.label
        return known.bounds if known is not None and isinstance(known.bounds, tuple) else None

    def _read_off(self) -> None:
        """Without privacy there is nothing to protect."""
        numbers = [c for c, b in zip(self.X.T, self.bounds, strict=True) if b is None]
        plain_label = self.y is not None and self.labels is None
        if numbers or (plain_label and self.label_bounds is None):
            self.remarks.append(BOUNDS_READ_OFF)
        pairs = zip(self.X.T, self.bounds, strict=True)
        self.bounds = [_ends(column) if b is None else b for column, b in pairs]
        if plain_label and self.label_bounds is None and self.y is not None:
            self.label_bounds = _ends(self.y)

    def _schema(self) -> Schema:
        label = self._label()
        names = self._names() or [f"x{i}" for i in range(self.X.shape[1])]
        if all(b is not None for b in self.bounds):
            low, high = np.array(self.bounds, dtype=np.float64).T
            return Scaling(low, high, label, self.estimator._uniform, names).schema
        columns = [
            Column(name=name, type="number", bounds=PRIVATE if b is None else b)
            for name, b in zip(names, self.bounds, strict=True)
        ]
        return Schema(columns=tuple(columns if label is None else [*columns, label]))

    def _digest(self, program: Program[Any, Any]) -> RunDigest:
        """Of all that the result depends on."""
        found = RunDigest(type(self.estimator).__name__, program, self.promise)
        for ends in (*self.bounds, self.label_bounds):
            found.add("none" if ends is None else "stated")
            found.add_numbers(np.array(ends or (), dtype=np.float64))
        found.add([] if self.labels is None else list(self.labels.names))
        found.add_numbers(self.X)
        if self.y is not None:
            found.add_numbers(self.y)
        return found

    # ── names ──

    def _names(self) -> Sequence[str] | None:
        """Of the columns: those of X, if it has names that a schema can have, else the schema's."""
        known = [] if self.known is None else [c.name for c in self.known.features]
        own = [str(name) for name in getattr(self.estimator, "feature_names_in_", [])]
        if own and all(own) and len(set(own)) == len(own):
            return own
        return known or None

    def _columns(self) -> tuple[str, ...] | None:
        """What a policy knows the columns by; None without names."""
        names = self._names()
        if names is None:
            return None
        known = None if self.known is None else self.known.label
        label = () if self.y is None else ("y" if known is None else known.name,)
        return (*names, *label)

    def _label(self) -> Column | None:
        if self.y is None:
            return None
        names = self._names() or ()
        known = None if self.known is None else self.known.label
        name = "y" if known is None else known.name
        while name in names:
            name += "_"
        if self.labels is not None:
            spelt = self.labels.names
            # An empty text is a class here, and not the spelling of a missing label.
            missing: tuple[str, ...] | None = () if "" in spelt else None
            return Column(
                name=name, type="category", role="label", categories=spelt, missing=missing
            )
        bounds = PRIVATE if self.label_bounds is None else self.label_bounds
        return Column(name=name, type="number", role="label", bounds=bounds)

    # ── the certificate ──

    def _told(self, certificate: Certificate) -> Certificate:
        return replace(
            certificate,
            remarks=(*certificate.remarks, *self.remarks),
            conditions=self._conditions() if self.promise.is_private else (),
        )

    def _conditions(self) -> tuple[str, ...]:
        return conditions(
            named=hasattr(self.estimator, "feature_names_in_"),
            stated=self._stated(),
            classes_read_off=self.labels is not None and not self.labels.stated,
        )

    def _stated(self) -> list[str]:
        """What was stated instead of being learned."""
        stated = []
        if any(b is not None for b in self.bounds):
            stated.append("bounds of the columns")
        if self.label_bounds is not None:
            stated.append("bounds of the label")
        if self.labels is not None and self.labels.stated:
            stated.append("classes")
        return stated


def known_schema(schema: Any) -> Schema | None:
    """A schema parameter: a Schema, the name of its file, or None."""
    if schema is None or isinstance(schema, Schema):
        return schema
    if not isinstance(schema, (str, os.PathLike)):
        raise UsageError(
            f"schema must be a tacit.data.Schema, or the path of its file, not "
            f"{type(schema).__name__}."
        )
    return Schema.load(os.fspath(schema))


def uniform_bounds(schema: Schema) -> Schema:
    """The same with all features' bounds widened to one width."""
    wide = Scaling(*Scaling.of(schema).ends, schema.label, True).schema.features
    bounds = dict(zip((c.name for c in schema.features), (c.bounds for c in wide), strict=True))
    columns = [
        msgspec.structs.replace(c, type="number", bounds=bounds[c.name]) if c.name in bounds else c
        for c in schema.columns
    ]
    return msgspec.structs.replace(schema, columns=tuple(columns))


def _from_schema(known: Schema, width: int) -> list[Bounds]:
    """The bounds of a schema's features, for arrays of numbers."""
    known.require_complete()
    plain = [c for c in known.features if c.is_number and c.edges is None]
    if len(plain) < len(known.features) or len(plain) != width:
        raise SchemaError(
            f"X has {width} columns of numbers, but the schema has {len(known.features)} features, "
            f"{len(plain)} of them numbers with bounds. Give a table with the schema's columns, by "
            "their names."
        )
    return [c.bounds if isinstance(c.bounds, tuple) else None for c in plain]


def column_bounds(given: Any, width: int) -> list[Bounds]:
    """A bounds parameter, for each of so many columns; None where it says nothing."""
    if given is None:
        return [None] * width
    low, high = _given(given, width)
    return [(float(a), float(b)) for a, b in zip(low, high, strict=True)]


def stated_bounds(given: Any) -> tuple[float, float]:
    """Of a label."""
    low, high = _given(given, 1)
    return float(low[0]), float(high[0])


def _given(bounds: Any, width: int) -> tuple[Reals, Reals]:
    """The public bounds as one low and one high per feature, checked."""
    try:
        low, high = (np.array(np.broadcast_to(b, width), dtype=np.float64) for b in bounds)
    except (TypeError, ValueError):
        raise PromiseError(
            f"bounds must be (low, high): two numbers, or two sequences of {width} numbers."
        ) from None
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise PromiseError("bounds must be finite, and every low below its high.")
    return low, high


def _ends(column: NDArray[Any]) -> tuple[float, float]:
    """Least and largest value of a column; around a constant, some room."""
    low, high = float(column.min()), float(column.max())
    return (low, high) if low < high else (low - 1.0, high + 1.0)
