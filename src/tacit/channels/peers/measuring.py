"""A peer judges the network and itself by records of its own that it has held back (worth.md).

What is held back nobody trains on, so it tells how well a model does on what it has not seen. Each
record is in one cell of one small table, so noise for one record hides it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.channels.peers.ensemble import Classifier, Ensemble
from tacit.channels.peers.pact import Pact
from tacit.channels.peers.worth import Worth, hidden_below, shares
from tacit.crypto.prg import SYSTEM, Randomness
from tacit.data.encode import Encoded
from tacit.errors import Refused, UsageError
from tacit.privacy.bound import Bound, Norm
from tacit.privacy.mechanisms.laplace import Laplace
from tacit.privacy.noise import uniform_below
from tacit.privacy.promise import Adjacency, Promise, Unit
from tacit.privacy.release import Release

__all__ = ["SHARES", "MeasurePlan", "measured"]

Reals = NDArray[np.float64]
Flags = NDArray[np.bool_]

SHARES = 0.05, 0.5  # the least and the most that may be held back
WHOLE = 2**32  # of so many chances, a share is so many
APART = 0.125  # error rates under noise of this deviation tell a garbage model from a good one


@dataclass(frozen=True)
class MeasurePlan:
    """What is drawn for one measurement of so many models: known before a record is read.

    Half of ε for how often each model is wrong, half for the table of own against network. Where
    there is one model, or `smallest`, the records that everybody has at least, are too few to tell
    models apart under this noise, the table has the whole ε, and the models vote alike.
    """

    promise: Promise
    models: int
    share: float
    smallest: int

    def __post_init__(self) -> None:
        if self.promise.unit is not Unit.RECORD:
            raise Refused(
                f"a measurement hides single records, not a whole {self.promise.unit}: all counts "
                "would be its own. In this network nothing can be measured privately."
            )
        if self.promise.delta or not self.promise.is_private:
            raise UsageError("a measurement has a finite epsilon, and delta 0.")
        if not SHARES[0] <= self.share <= SHARES[1]:
            raise UsageError(f"share = {self.share:g}: hold back {SHARES[0]} to {SHARES[1]}.")
        if self.models < 1:
            raise UsageError("no model has arrived yet, so there is nothing to measure.")

    @property
    def by_model(self) -> Laplace | None:
        """For the number of records and each model's errors (worth.md, claim 1)."""
        if not self._by_model:
            return None
        return Laplace.calibrated(
            self._models_bound, self._promise(2), self.models + 1, integral=True
        )

    @property
    def table(self) -> Laplace:
        """For the four cells."""
        bound = Bound.of_contribution(Norm.L1, 1, self.promise.adjacency)
        stages = 2 if self._by_model else 1
        return Laplace.calibrated(bound, self._promise(stages), 4, integral=True)

    @property
    def spend(self) -> tuple[Release, ...]:
        """What one measurement costs, whatever it finds."""
        first = () if self.by_model is None else self.by_model.spend
        return (*first, *self.table.spend)

    def could_tell(self, records: int) -> bool:
        """Whether so many records are enough to be seen through the noise, in the mean. For public
        numbers: how many there are is private, and who is refused would be seen to have few."""
        return self.share * records > hidden_below(float(self.table.scale))

    @property
    def _by_model(self) -> bool:
        """Whether the noise on a model's errors is small beside the records held back."""
        deviation = math.sqrt(2) * 2 * float(self._models_bound.value) / self.promise.epsilon
        return self.models > 1 and deviation <= APART * self.share * self.smallest

    @property
    def _models_bound(self) -> Bound:
        removed = self.promise.adjacency is Adjacency.ADD_REMOVE  # then it counts as a record, too
        return Bound(Norm.L1, Fraction(self.models + removed))

    def _promise(self, stages: int) -> Promise:
        epsilon = self.promise.epsilon / stages
        return Promise(epsilon, 0.0, self.promise.unit, self.promise.adjacency)


@dataclass(frozen=True)
class _Guarded:
    """A received model, asked for one record at a time: what it says of one is a function of that
    record alone, to the last bit. Where it fails, it has no vote."""

    model: Classifier

    @property
    def classes(self) -> tuple[str, ...]:
        return self.model.classes

    def predict(self, X: Reals) -> NDArray[np.int64]:
        return np.array([self._says(row[None, :].copy()) for row in X], dtype=np.int64)

    def probabilities(self, X: Reals) -> Reals:
        rows = [self._chances(row[None, :].copy()) for row in X]
        return np.array(rows).reshape(len(X), len(self.classes))

    def _says(self, row: Reals) -> int:
        try:
            with np.errstate(all="ignore"):
                (place,) = self.model.predict(row)
                return int(place)
        except Exception:  # whatever it is that arrived
            return -1

    def _chances(self, row: Reals) -> Reals:
        nothing = np.zeros(len(self.classes))
        try:
            with np.errstate(all="ignore"):
                (found,) = np.asarray(self.model.probabilities(row), dtype=np.float64)
        except Exception:  # whatever it is that arrived
            return nothing
        return found if found.shape == nothing.shape and np.isfinite(found).all() else nothing


def measured(
    pact: Pact,
    models: Mapping[str, Classifier],
    records: Encoded,
    plan: MeasurePlan,
    mine: int = 0,
    randomness: Randomness = SYSTEM,
) -> Worth:
    """What the network's `models`, by name, are worth beside a model of one's own records. `mine`
    of them were made with records of ours."""
    if len(models) != plan.models:
        raise UsageError(f"planned for {plan.models} models, but {len(models)} were given.")
    held = _held_back(len(records.X), plan.share, randomness)
    rest, judges = _rows(records, ~held), _rows(records, held)
    guarded = [_Guarded(model) for model in models.values()]
    counts = _counted(guarded, judges, plan, randomness)
    scale = 0.0 if plan.by_model is None else float(plan.by_model.scale)
    network = Ensemble(guarded, None, shares(counts, scale, len(guarded[0].classes), len(guarded)))
    cells = _cells(_right(_Guarded(_own(pact, rest)), judges), _right(network, judges))
    return Worth(
        network=pact.digest,
        epsilon=plan.promise.epsilon,
        adjacency=str(plan.promise.adjacency),
        share=plan.share,
        classes=len(network.classes),
        models=tuple(models),
        mine=mine,
        counts=counts,
        counts_scale=scale,
        cells=tuple(plan.table.release(cells, randomness).tolist()),
        cells_scale=float(plan.table.scale),
    )


def _held_back(count: int, share: float, randomness: Randomness) -> Flags:
    """Each record by a coin of its own, so that no record decides about another."""
    return np.asarray(uniform_below(WHOLE, count, randomness) < round(share * WHOLE))


def _own(pact: Pact, rest: Encoded) -> Classifier:
    """The model of what is not held back; of nothing, one that knows nothing."""
    averaged, schema = pact.averaged, pact.schema
    empty = np.zeros(averaged.length(schema))
    vector = averaged.train(rest, schema) if len(rest.X) else empty
    found: Classifier = averaged.model(vector, schema)
    return found


def _counted(
    models: list[_Guarded], judges: Encoded, plan: MeasurePlan, randomness: Randomness
) -> tuple[float, ...]:
    """How many records judge, and of how many each model is wrong, under noise; or nothing."""
    mechanism = plan.by_model
    if mechanism is None:
        return ()
    wrong = [int((~_right(model, judges)).sum()) for model in models]
    noisy = mechanism.release(np.array([len(judges.X), *wrong], dtype=np.int64), randomness)
    return tuple(noisy.tolist())


def _right(model: Classifier | Ensemble, judges: Encoded) -> Flags:
    """Of which records the model is right; each is asked about alone."""
    said = [int(model.predict(row[None, :])[0]) for row in judges.X]
    return np.asarray(np.array(said, dtype=np.int64) == np.asarray(judges.y))


def _cells(own: Flags, network: Flags) -> NDArray[np.int64]:
    """Of how many records both are right, own alone, the network alone, and neither."""
    both = [own & network, own & ~network, ~own & network, ~own & ~network]
    return np.array([int(cell.sum()) for cell in both], dtype=np.int64)


def _rows(records: Encoded, chosen: Flags) -> Encoded:
    return Encoded(*(None if c is None else c[chosen] for c in records))  # type: ignore[arg-type]
