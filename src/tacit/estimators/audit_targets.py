"""Games against whole estimators: the adversary sees every noisy sum, as in a federation.

A fitted model hides most of what its rounds released, so the game is played on the releases. The
claim has a large delta on purpose: it is a point of the privacy curve where typical outputs decide,
not rare ones, so that a few hundred runs tell calibrated noise from half of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.channels.central import Central
from tacit.crypto.prg import SYSTEM, Randomness
from tacit.data.encode import Encoded, Encoder
from tacit.data.records import ArrayRecords
from tacit.data.schema import Schema
from tacit.privacy.accounting import gaussian_scale
from tacit.privacy.audit_targets import Game
from tacit.privacy.promise import Promise
from tacit.programs.itemsets import FrequentItemsets
from tacit.programs.kmeans import KMeans
from tacit.programs.linear import LinearRegression
from tacit.programs.logistic import Learning, Logistic
from tacit.programs.logistic_gradient import FEATURE_STEP
from tacit.programs.mixture import Mixture
from tacit.programs.naive_bayes import NaiveBayes
from tacit.programs.pca import PCA
from tacit.programs.program import Program, Query, Share

__all__ = ["ESTIMATOR_TARGETS"]

CLAIM = Promise(0.1, 0.7)
# Of half the noise the game then proves ε ≥ 0.4 in the mean, four times the claim.
TRIALS = 450
# Enough that noise for one round in each of them is half the noise, which is caught.
ROUNDS = 4


class Overheard(Program[Any, list[NDArray[np.float64]]]):
    """A program whose result is everything that was released on the way."""

    name = "overheard"

    def __init__(self, program: Program[Any, Any]) -> None:
        self._program = program

    def encoder(self, schema: Schema) -> Encoder:
        return self._program.encoder(schema)

    def init(self, schema: Schema, promise: Promise) -> Any:
        return self._program.init(schema, promise), []

    def prepare(self, batch: Encoded, state: Any) -> Encoded:
        return self._program.prepare(batch, state[0])

    def plan(self, state: Any) -> Sequence[Share]:
        return self._program.plan(state[0])

    def query(self, state: Any) -> Query | None:
        return self._program.query(state[0])

    def map(self, batch: Encoded, state: Any) -> NDArray[np.float64]:
        return self._program.map(batch, state[0])

    def map_sum(self, batch: Encoded, state: Any) -> NDArray[np.int64] | None:
        return self._program.map_sum(batch, state[0])

    def reduce(self, total: NDArray[np.float64], state: Any) -> Any:
        # In units of the block's bound, so that rounds with other bounds compare.
        query = self._program.query(state[0])
        assert query is not None  # it was just answered
        heard = [total[p] / float(b.bound) for b, p in query.slices()]
        return self._program.reduce(total, state[0]), [*state[1], *heard]

    def result(self, state: Any) -> list[NDArray[np.float64]]:
        heard: list[NDArray[np.float64]] = state[1]
        return heard


class FirstGradient(Logistic):
    """Only the first gradient, with the whole promise.

    In later rounds the record's gradient points where earlier noise has led the weights, elsewhere
    in every run, and an adversary who knows nothing of the program cannot follow.
    """

    def init(self, schema: Schema, promise: Promise) -> Learning:
        state = super().init(schema, promise)
        assert isinstance(state, Learning)  # the claim is private
        last = state.schedule.rounds - 1
        # The least constant feature, so that the record moves one coordinate by the whole bound.
        return replace(state, stage="gradient", round=last, constant=FEATURE_STEP, bound=0.25)

    def plan(self, state: Any) -> Sequence[Share]:
        return [Share("gradient", Fraction(1))]


@dataclass(frozen=True, slots=True)
class _Setting:
    """A program, its schema, and two neighbouring tables: the last record is there or not."""

    program: Callable[[], Program[Any, Any]]
    label: dict[str, Any] | None
    width: int = 2


# One record at the far corner of the box, beside a few in its middle.
MIDDLE, CORNER = 0.0, 1.0


def _game(setting: _Setting, noise: Fraction, randomness: Randomness) -> Game:
    columns: dict[str, Any] = {
        f"x{i}": {"type": "number", "bounds": [-1, 1]} for i in range(setting.width)
    }
    if setting.label is not None:
        columns["y"] = {**setting.label, "role": "label"}
    return _played(setting, Schema.from_dict({"columns": columns}), noise, randomness)


def _played(setting: _Setting, schema: Schema, noise: Fraction, randomness: Randomness) -> Game:
    promise = _with_noise(noise)
    few = np.full((4, setting.width), MIDDLE)
    X = np.vstack([few, np.full((1, setting.width), CORNER)])
    y = None if setting.label is None else np.array([0, 1, 0, 1, 1])

    def play(present: bool, runs: int) -> Any:
        rows = len(X) if present else len(X) - 1
        records = ArrayRecords(X[:rows], None if y is None else y[:rows])
        channel = Central(randomness=randomness)
        heard = [
            channel.rounds(Overheard(setting.program()), records, schema, promise).model
            for _ in range(runs)
        ]
        length = min(sum(map(len, one)) for one in heard)
        return np.array([np.concatenate(one)[:length] for one in heard])

    return Game(play, (True, False), CLAIM, TRIALS)


def _with_noise(share: Fraction) -> Promise:
    """The promise that needs this share of the noise that the claim needs."""
    if share == 1:
        return CLAIM
    wanted = gaussian_scale(CLAIM.epsilon, CLAIM.delta) * float(share)
    low, high = CLAIM.epsilon, 50.0
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (
            (middle, high) if gaussian_scale(middle, CLAIM.delta) > wanted else (low, middle)
        )
    return Promise(high, CLAIM.delta)


CLASSES = {"type": "category", "categories": ["0", "1"]}
SETTINGS = {
    "LogisticRegression": _Setting(FirstGradient, CLASSES, width=1),
    "LinearRegression": _Setting(LinearRegression, {"type": "number", "bounds": [-1, 1]}, width=1),
    # One cluster and one component: which one a record falls to would differ from run to run.
    "KMeans": _Setting(lambda: KMeans(1, rounds=ROUNDS), None),
    "GaussianMixture": _Setting(lambda: Mixture(1, rounds=ROUNDS, coordinates="shared"), None),
    "NaiveBayes": _Setting(NaiveBayes, CLASSES),
    "PCA": _Setting(PCA, None),
}


def _itemsets(noise: Fraction, randomness: Randomness) -> Game:
    setting = _Setting(lambda: FrequentItemsets(0.5, max_length=1), None)
    schema = Schema.from_dict({"columns": {f"x{i}": {"type": "boolean"} for i in range(2)}})
    return _played(setting, schema, noise, randomness)


def _of(name: str) -> Callable[[Fraction, Randomness], Game]:
    def game(noise: Fraction, randomness: Randomness = SYSTEM) -> Game:
        return _game(SETTINGS[name], noise, randomness)

    return game


ESTIMATOR_TARGETS: dict[str, Callable[[Fraction, Randomness], Game]] = {
    **{name: _of(name) for name in SETTINGS},
    "FrequentItemsets": _itemsets,
}
