"""One fit: its data and promise, what was decided about bounds on the way, what must be public."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.channels.central import Central, Outcome
from tacit.channels.studies.asked import asked_by_holder
from tacit.data.digests import digests_of_arrays
from tacit.data.records import ArrayRecords
from tacit.data.schema import Column, Schema
from tacit.errors import PromiseError, SchemaError
from tacit.estimators.conditions import SCORES_ARE_EXACT, conditions
from tacit.estimators.labels import Labels
from tacit.estimators.randomness import RunDigest, randomness_of
from tacit.estimators.scaling import Scaling
from tacit.privacy.accounting import SpendCost, cost
from tacit.privacy.certificate import Certificate
from tacit.privacy.ledger import Ledger, RecordDigests, Reservation
from tacit.privacy.promise import Promise
from tacit.privacy.release import Release
from tacit.programs.program import Program
from tacit.programs.ranges import Range, Ranges

if TYPE_CHECKING:
    from tacit.estimators.base import PrivateEstimator

__all__ = ["Run", "known_schema"]

Reals = NDArray[np.float64]

# With no bounds given, this share of ε and δ finds them.
BOUNDS_SHARE = 0.1
BOUNDS_READ_OFF = "Bounds were read off the data, since there was no privacy to protect."


class Run:
    """Finds bounds if nobody gave them, and runs the program, under one promise."""

    def __init__(
        self,
        estimator: PrivateEstimator,
        program: Program[Any, Any],
        X: Reals,
        y: NDArray[Any] | None,
        labels: Labels | None,
        label_bounds: Any,
    ) -> None:
        self.estimator, self.program, self.X, self.labels = estimator, program, X, labels
        self.y = y if labels is None else labels.numbers
        self.schema = known_schema(estimator.schema)
        self.bounds = self._stated_bounds()
        self.label_bounds = None if label_bounds is None else _given(label_bounds, 1)
        self.promise = Promise(
            estimator.epsilon,
            estimator.delta,
            adjacency=estimator.adjacency,  # type: ignore[arg-type]
        )
        self.promise.check_population(len(X))
        self.channel = Central(
            estimator._engine(),
            randomness_of(estimator.random_state, self._digest()),
            progress=estimator._progress(),
        )
        self.remarks: list[str] = []
        self.ranges: tuple[Release, ...] = ()

    def outcome(self) -> tuple[Outcome[Any, Any], Schema]:
        """What was released, and the schema it was learned under; the ledger is charged."""
        if self.estimator.ledger is None:
            return self._release(None)
        ledger, name = Ledger(self.estimator.ledger), type(self.estimator).__name__
        self.remarks.append(SCORES_ARE_EXACT)
        cost, dataset = self._planned_cost(), self.estimator.dataset
        records = self._records()
        if absent := ledger.decisions.left_out(dataset):
            absent.keep(None)  # refused: an array does not say whose its records are
        asked = asked_by_holder(ledger, self.program.name, self._columns())
        with ledger.reserve(
            self.promise, dataset, name, cost=cost, records=records, asked=asked
        ) as reservation:
            head = ledger.head
            outcome, schema = self._release(reservation)
        return replace(outcome, certificate=replace(outcome.certificate, ledger=head)), schema

    def _records(self) -> RecordDigests:
        """What is charged: the rows as they were given, and the meaning of their labels."""
        names = None if self.labels is None else self.labels.names
        return digests_of_arrays(self.X, self.y, classes=names)

    def _planned_cost(self) -> SpendCost | None:
        """Where bounds are stated, the whole plan is known before anything is drawn."""
        if self._unbounded():
            return None
        scaling, promise = self._scaling(None)
        return self.channel.planned_cost(self.program, scaling.schema, promise)

    def _release(self, reservation: Reservation | None) -> tuple[Outcome[Any, Any], Schema]:
        scaling, promise = self._scaling(reservation)
        records = scaling.encode(self.program, self.X, self.y)
        outcome = self.channel.rounds(self.program, records, scaling.schema, promise, reservation)
        return replace(outcome, certificate=self._whole(outcome.certificate)), scaling.schema

    def _stated_bounds(self) -> tuple[Reals, Reals] | None:
        width = self.X.shape[1]
        if self.schema is not None:
            return _given(_from_schema(self.schema, width), width)
        given = self.estimator.bounds
        return None if given is None else _given(given, width)

    def _digest(self) -> RunDigest:
        """Of all that the result depends on."""
        found = RunDigest(type(self.estimator).__name__, self.program, self.promise)
        for ends in (self.bounds, self.label_bounds):
            found.add("none" if ends is None else "stated")
            for end in ends or ():
                found.add_numbers(end)
        found.add([] if self.labels is None else list(self.labels.names))
        found.add_numbers(self.X)
        if self.y is not None:
            found.add_numbers(self.y)
        return found

    def _scaling(self, reservation: Reservation | None) -> tuple[Scaling, Promise]:
        """The bounds, and what is left of the promise."""
        numbers = self._unbounded()
        promise = self.promise
        if not numbers:
            low, high = np.zeros(0), np.zeros(0)
        elif promise.is_private:
            share, promise = _split(promise)
            low, high = self._learned(np.column_stack(numbers), share, reservation)
        else:
            low, high = _read_off(np.column_stack(numbers))
            self.remarks.append(BOUNDS_READ_OFF)
        width = self.X.shape[1]
        if self.bounds is not None:
            ends = self.bounds
        else:
            ends, low, high = (low[:width], high[:width]), low[width:], high[width:]
        names = self._names()
        label = self._label(low, high, names or ())
        return Scaling(*ends, label, self.estimator._uniform, names), promise

    def _unbounded(self) -> list[NDArray[Any]]:
        """The numbers whose bounds nobody gave."""
        found: list[NDArray[Any]] = [] if self.bounds is not None else [self.X]
        if self.y is not None and self.labels is None and self.label_bounds is None:
            found.append(self.y)
        return found

    def _names(self) -> Sequence[str] | None:
        """Of the columns: those of X, if it has names that a schema can have, else the schema's."""
        known = [] if self.schema is None else [c.name for c in self.schema.features]
        own = [str(name) for name in getattr(self.estimator, "feature_names_in_", [])]
        if own and all(own) and len(set(own)) == len(own):
            return own
        return known or None

    def _columns(self) -> tuple[str, ...] | None:
        """What a policy knows the columns by; None without names."""
        names = self._names()
        if names is None:
            return None
        known = None if self.schema is None else self.schema.label
        label = () if self.y is None else ("y" if known is None else known.name,)
        return (*names, *label)

    def _label(self, low: Reals, high: Reals, names: Sequence[str]) -> Column | None:
        if self.y is None:
            return None
        known = None if self.schema is None else self.schema.label
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
        if self.label_bounds is not None:
            low, high = self.label_bounds
        ends = (float(low[0]), float(high[0]))
        return Column(name=name, type="number", role="label", bounds=ends)

    def _learned(
        self, numbers: Reals, share: Promise, reservation: Reservation | None
    ) -> tuple[Reals, Reals]:
        nothing = Schema(columns=(Column(name="x", type="number", bounds=(0, 1)),))
        program, records = Ranges(numbers.shape[1]), ArrayRecords(numbers)
        found: Outcome[Any, Range] = self.channel.rounds(
            program, records, nothing, share, reservation
        )
        self.ranges = found.certificate.releases
        self.remarks.append(f"Bounds were learned with ε = {share.epsilon:g} of the promise.")
        return found.model.low, found.model.high

    def _whole(self, certificate: Certificate) -> Certificate:
        """One certificate for the bounds and the program, under the whole promise."""
        promise, releases = self.promise, (*self.ranges, *certificate.releases)
        found = cost(releases, promise.delta, promise.adjacency).accountant if releases else "none"
        return replace(
            certificate,
            promise=promise,
            releases=releases,
            accountant=found,
            remarks=(*certificate.remarks, *self.remarks),
            conditions=self._conditions() if promise.is_private else (),
        )

    def _conditions(self) -> tuple[str, ...]:
        stated = []
        if self.bounds is not None:
            stated.append("bounds of the columns")
        if self.label_bounds is not None:
            stated.append("bounds of the label")
        if self.labels is not None and self.labels.stated:
            stated.append("classes")
        return conditions(
            named=hasattr(self.estimator, "feature_names_in_"),
            stated=stated,
            classes_read_off=self.labels is not None and not self.labels.stated,
        )


def known_schema(schema: Any) -> Schema | None:
    """A schema parameter: a Schema, the name of its file, or None."""
    return schema if schema is None or isinstance(schema, Schema) else Schema.load(schema)


def _split(promise: Promise) -> tuple[Promise, Promise]:
    """A share for the bounds, and the rest; ε and δ add up (basic composition)."""
    exact = Fraction(BOUNDS_SHARE)
    first, second = (
        replace(
            promise,
            epsilon=float(np.nextafter(float(Fraction(promise.epsilon) * part), 0)),
            delta=promise.delta * float(part),
        )
        for part in (exact, 1 - exact)
    )
    return first, second


def _from_schema(known: Schema, width: int) -> tuple[list[float], list[float]]:
    """The bounds of a schema's features, for arrays of numbers."""
    known.require_complete()
    plain = [c for c in known.features if c.is_number and isinstance(c.bounds, tuple)]
    if len(plain) < len(known.features) or len(plain) != width:
        raise SchemaError(
            f"X has {width} columns of numbers, but the schema has {len(known.features)} features, "
            f"{len(plain)} of them numbers with bounds. Encode categories first "
            "(tacit.data.Encoder), or run the program on the table itself (docs/guide/programs.md)."
        )
    ends = [c.bounds for c in plain if isinstance(c.bounds, tuple)]
    return [low for low, _ in ends], [high for _, high in ends]


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


def _read_off(X: NDArray[Any]) -> tuple[Reals, Reals]:
    low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    flat = low >= high
    return np.where(flat, low - 1, low), np.where(flat, high + 1, high)
