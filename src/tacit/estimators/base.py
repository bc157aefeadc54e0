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
from tacit.data.batch import Batch
from tacit.data.records import ArrayRecords
from tacit.data.schema import Column, Schema
from tacit.engines import Engine, Serial, Threads
from tacit.errors import PromiseError
from tacit.privacy.accounting import cost
from tacit.privacy.certificate import Certificate
from tacit.privacy.ledger import Ledger, Reservation
from tacit.privacy.promise import Promise
from tacit.privacy.release import Release
from tacit.programs.program import Program
from tacit.programs.ranges import Range, Ranges

__all__ = ["PrivateEstimator", "Scaling"]

S = TypeVar("S")
M = TypeVar("M")
Reals = NDArray[np.float64]

# With neither bounds nor schema, this share of ε and δ finds bounds.
BOUNDS_SHARE = Fraction(1, 10)
LABELS_ARE_PUBLIC = "The set of labels was read off the data: it is taken to be public."
BOUNDS_READ_OFF = "Bounds were read off the data, since there was no privacy to protect."


class Scaling:
    """Public bounds of plain numeric features, and the affine map into a program's encoding."""

    def __init__(self, low: Reals, high: Reals, label: Column | None = None) -> None:
        self.low, self.high = low, high
        columns = [
            Column(name=f"x{i}", type="number", bounds=(float(a), float(b)))
            for i, (a, b) in enumerate(zip(low, high, strict=True))
        ]
        self.schema = Schema(columns=tuple(columns if label is None else [*columns, label]))

    def encode(self, program: Program[Any, Any], X: Reals, y: NDArray[Any] | None) -> ArrayRecords:
        encoder = program.encoder(self.schema)
        clipped = np.clip(X, self.low, self.high)
        columns: dict[str, NDArray[Any]] = {f"x{i}": clipped[:, i] for i in range(X.shape[1])}
        label = self.schema.label
        if label is not None and y is not None:
            columns[label.name] = y
        encoded = encoder.encode(Batch(self.schema, columns, len(X)))
        return ArrayRecords(encoded.X, encoded.y)

    def affine(self, program: Program[Any, Any]) -> tuple[Reals, Reals]:
        """slope, offset with encoded = slope · x + offset inside the bounds."""
        ends = np.stack([self.low, self.high])
        plain = Scaling(self.low, self.high)
        at_low, at_high = plain.encode(program, ends, None).X
        slope = (at_high - at_low) / (self.high - self.low)
        return slope, at_low - slope * self.low


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Parameters that every estimator takes.

    epsilon, delta, adjacency   the promise; `epsilon=math.inf` runs without noise
    bounds                      (low, high), public: numbers, or one value per feature
    ledger, dataset             path of a ledger to charge, and the data set's name in it
    random_state                None: secure randomness; a number: repeatable, and NOT secure
    n_jobs                      None or 1: one core; -1: all
    verbose                     1 shows progress
    """

    epsilon: float
    delta: float
    adjacency: str
    bounds: Any
    ledger: str | None
    dataset: str
    random_state: Any
    n_jobs: int | None
    verbose: int
    certificate_: Certificate

    def _promise(self) -> Promise:
        return Promise(self.epsilon, self.delta, adjacency=self.adjacency)  # type: ignore[arg-type]

    def _randomness(self) -> Randomness:
        if self.random_state is None:
            return SYSTEM
        if isinstance(self.random_state, (int, np.integer)):
            return SeededRandomness(int(self.random_state))
        return SeededRandomness(int(self.random_state.randint(2**31)))

    def _fit(
        self, program: Program[S, M], X: Reals, y: NDArray[Any] | None, label: Column | None = None
    ) -> tuple[M, Scaling]:
        """Find bounds, run the program, charge the ledger once for both."""
        promise = self._promise()
        promise.check_population(len(X))
        channel = Central(self._engine(), self._randomness(), progress=self._progress())
        if self.ledger is None:
            outcome, scaling = self._released(channel, program, X, y, label, promise, None)
        else:
            ledger = Ledger(self.ledger)
            purpose = type(self).__name__
            with ledger.reserve(promise, self.dataset, purpose) as reservation:
                outcome, scaling = self._released(
                    channel, program, X, y, label, promise, reservation
                )
                head = ledger.head
            outcome = replace(outcome, certificate=replace(outcome.certificate, ledger=head))
        self.certificate_ = outcome.certificate
        return outcome.model, scaling

    def _released(
        self,
        channel: Central,
        program: Program[S, M],
        X: Reals,
        y: NDArray[Any] | None,
        label: Column | None,
        promise: Promise,
        reservation: Reservation | None,
    ) -> tuple[Outcome[S, M], Scaling]:
        remarks = [LABELS_ARE_PUBLIC] if label is not None and label.categories else []
        ranges: tuple[Release, ...] = ()
        rest = promise
        if self.bounds is not None:
            low, high = _given(self.bounds, X.shape[1])
        elif promise.is_private:
            share, rest = _split(promise)
            found = _learned(channel, X, share, reservation)
            low, high = found.model.low, found.model.high
            ranges = found.certificate.releases
            remarks.append(f"Bounds were learned with ε = {share.epsilon:g} of the promise.")
        else:
            low, high = _read_off(X)
            remarks.append(BOUNDS_READ_OFF)
        scaling = Scaling(low, high, label)
        records = scaling.encode(program, X, y)
        outcome = channel.rounds(program, records, scaling.schema, rest, reservation)
        certificate = _whole(outcome.certificate, promise, ranges, remarks)
        return replace(outcome, certificate=certificate), scaling

    def _engine(self) -> Engine:
        jobs = getattr(self, "n_jobs", None)
        return Serial() if jobs in (None, 1) else Threads(None if jobs == -1 else jobs)

    def _progress(self) -> Any:
        if not self.verbose:
            return None
        return lambda done, planned: print(f"round {done} of {planned}", flush=True)


def _split(promise: Promise) -> tuple[Promise, Promise]:
    """A share for the bounds and the rest; ε and δ add up (basic composition)."""
    share = float(BOUNDS_SHARE)
    first, second = (
        replace(promise, epsilon=promise.epsilon * part, delta=promise.delta * part)
        for part in (share, 1 - share)
    )
    return first, second


def _learned(
    channel: Central, X: Reals, promise: Promise, reservation: Reservation | None
) -> Outcome[Any, Range]:
    nothing = Schema(columns=(Column(name="x", type="number", bounds=(0, 1)),))
    return channel.rounds(Ranges(X.shape[1]), ArrayRecords(X), nothing, promise, reservation)


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


def _read_off(X: Reals) -> tuple[Reals, Reals]:
    low, high = X.min(axis=0), X.max(axis=0)
    flat = low >= high
    return np.where(flat, low - 1, low), np.where(flat, high + 1, high)


def _whole(
    certificate: Certificate, promise: Promise, ranges: tuple[Release, ...], remarks: list[str]
) -> Certificate:
    """One certificate for the bounds and the program, under the whole promise."""
    releases = (*ranges, *certificate.releases)
    found = cost(releases, promise.delta, promise.adjacency).accountant if releases else "none"
    return replace(
        certificate, promise=promise, releases=releases, accountant=found, remarks=tuple(remarks)
    )
