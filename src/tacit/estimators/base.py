"""What all estimators share: a promise, public bounds (or private ones), a ledger, a certificate.

An estimator is a program run through the central channel, with scikit-learn's manners.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from tacit.channels.central import Central, Outcome
from tacit.crypto.prg import SYSTEM, Randomness, SeededRandomness
from tacit.crypto.signing import SigningKey, digest
from tacit.data.records import ArrayRecords
from tacit.data.schema import Column, Schema
from tacit.engines import Engine, Serial, Threads
from tacit.errors import PromiseError, SchemaError
from tacit.estimators.scaling import Scaling
from tacit.privacy.accounting import cost
from tacit.privacy.certificate import Certificate
from tacit.privacy.ledger import Ledger, Reservation
from tacit.privacy.promise import Promise
from tacit.privacy.release import Release
from tacit.programs.files import to_bytes
from tacit.programs.program import Program
from tacit.programs.ranges import Range, Ranges

__all__ = ["PrivateEstimator", "randomness_of", "signing_key"]

M = TypeVar("M")
Reals = NDArray[np.float64]

# With no bounds given, this share of ε and δ finds them.
BOUNDS_SHARE = 0.1
LABELS_ARE_PUBLIC = "The set of labels was read off the data: it is taken to be public."
BOUNDS_READ_OFF = "Bounds were read off the data, since there was no privacy to protect."


class PrivateEstimator(BaseEstimator):
    """Parameters that every estimator takes.

    epsilon, delta, adjacency   the promise; `epsilon=math.inf` runs without noise
    bounds                      (low, high), public: two numbers, or one value per feature each
    schema                      or a Schema (or its file) whose features are numbers with bounds, in
                                the order of X's columns
    ledger, dataset             path of a ledger to charge, and the data set's name in it
    random_state                None: secure randomness; a number: repeatable, and NOT secure
    n_jobs                      None or 1: one core; -1: all
    verbose                     1 shows progress
    """

    # One scale for all features, where distances between records matter.
    _uniform = False

    certificate_: Certificate

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        bounds: Any = None,
        schema: Any = None,
        adjacency: str = "add-remove",
        ledger: str | None = None,
        dataset: str = "data",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.schema = schema
        self.adjacency = adjacency
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(
        self,
        program: Program[Any, M],
        X: Reals,
        y: NDArray[Any] | None = None,
        classes: NDArray[Any] | None = None,
        label_bounds: Any = None,
    ) -> tuple[M, Scaling]:
        """Find bounds, run the program, and charge the ledger once for both.

        y is a class number if `classes` are given, else a plain number.
        """
        promise = Promise(self.epsilon, self.delta, adjacency=self.adjacency)  # type: ignore[arg-type]
        promise.check_population(len(X))
        key = signing_key()  # before anything is spent
        run = _Run(self, program, X, y, classes, label_bounds, promise)
        if self.ledger is None:
            outcome, scaling = run.release(None)
        else:
            ledger = Ledger(self.ledger)
            with ledger.reserve(promise, self.dataset, type(self).__name__) as reservation:
                head = ledger.head
                outcome, scaling = run.release(reservation)
            outcome = replace(outcome, certificate=replace(outcome.certificate, ledger=head))
        subject = digest(to_bytes(outcome.model))
        self.certificate_ = replace(outcome.certificate, subject=subject).signed(key)
        self.n_rounds_ = outcome.rounds
        return outcome.model, scaling

    def _channel(self) -> Central:
        return Central(self._engine(), randomness_of(self.random_state), progress=self._progress())

    def _engine(self) -> Engine:
        if self.n_jobs in (None, 1):
            return Serial()
        return Threads(None if self.n_jobs == -1 else self.n_jobs)

    def _progress(self) -> Any:
        if not self.verbose:
            return None
        return lambda done, planned: print(f"round {done} of {planned}", flush=True)


class _Run:
    """One fit: its data and promise, and what was decided about bounds on the way."""

    def __init__(
        self,
        estimator: PrivateEstimator,
        program: Program[Any, Any],
        X: Reals,
        y: NDArray[Any] | None,
        classes: NDArray[Any] | None,
        label_bounds: Any,
        promise: Promise,
    ) -> None:
        self.estimator, self.program, self.promise = estimator, program, promise
        self.X, self.y, self.classes, self.label_bounds = X, y, classes, label_bounds
        self.bounds = estimator.bounds
        if estimator.schema is not None:
            self.bounds = _from_schema(estimator.schema, X.shape[1])
        self.channel = estimator._channel()
        self.remarks = [] if classes is None else [LABELS_ARE_PUBLIC]
        self.ranges: tuple[Release, ...] = ()

    def release(self, reservation: Reservation | None) -> tuple[Outcome[Any, Any], Scaling]:
        scaling, promise = self._scaling(reservation)
        records = scaling.encode(self.program, self.X, self.y)
        outcome = self.channel.rounds(self.program, records, scaling.schema, promise, reservation)
        return replace(outcome, certificate=self._whole(outcome.certificate)), scaling

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
            ends = _given(self.bounds, width)
        else:
            ends, low, high = (low[:width], high[:width]), low[width:], high[width:]
        return Scaling(*ends, self._label(low, high), self.estimator._uniform), promise

    def _unbounded(self) -> list[NDArray[Any]]:
        """The numbers whose bounds nobody gave."""
        found = [] if self.bounds is not None else [self.X]
        if self.y is not None and self.classes is None and self.label_bounds is None:
            found.append(self.y)
        return found

    def _label(self, low: Reals, high: Reals) -> Column | None:
        if self.y is None:
            return None
        if self.classes is not None:
            names = tuple(str(i) for i in range(len(self.classes)))
            return Column(name="y", type="category", role="label", categories=names)
        if self.label_bounds is not None:
            low, high = _given(self.label_bounds, 1)
        ends = (float(low[0]), float(high[0]))
        return Column(name="y", type="number", role="label", bounds=ends)

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
        )


def randomness_of(random_state: Any) -> Randomness:
    """None is the system's; a number, or a generator of numpy's, is repeatable and not secure."""
    if random_state is None:
        return SYSTEM
    if isinstance(random_state, (int, np.integer)):
        return SeededRandomness(int(random_state))
    return SeededRandomness(int(random_state.randint(2**31)))


def signing_key() -> SigningKey:
    """The holder's, or where nothing can be written, one for this certificate alone."""
    try:
        return SigningKey.of_holder()
    except OSError:
        return SigningKey.generate()


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


def _from_schema(schema: Any, width: int) -> tuple[list[float], list[float]]:
    """The bounds of a schema's features, for arrays of numbers."""
    known = schema if isinstance(schema, Schema) else Schema.load(schema)
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
