"""Is the network worth it? Invented networks, good and bad, judged by one peer's own records.

The peer measures (`tacit peer measure`) and votes by what it found. Its vote is compared with the
better of the two that it could have gone by blindly: its own model of all its records, and the
plain vote of the network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.channels.peers.ensemble import Ensemble
from tacit.channels.peers.measuring import MeasurePlan, measured
from tacit.channels.peers.pact import Pact
from tacit.channels.studies.tables import Chosen, Terms
from tacit.cli.bench import Row
from tacit.crypto.prg import SeededRandomness
from tacit.data.encode import Encoded
from tacit.data.schema import Column, Schema
from tacit.privacy.promise import Promise

Reals = NDArray[np.float64]
Source = np.random.Generator

WIDTH, TESTED = 6, 4000
EPSILON, SHARE = 1.0, 0.3
BARS = {150: 0.025, 400: 0.01, 2000: 0.01}  # own records → the most that may be lost
OTHER = (1, 1, 1, -1, -1, 1, 1)  # the signs of what matters to another population
SCHEMA = Schema(
    columns=(
        *(Column(name=f"x{i}", type="number", bounds=(-1, 1)) for i in range(WIDTH)),
        Column(name="y", type="boolean", role="label"),
    )
)
PACT = Pact(
    name="invented",
    question="Is the network worth it?",
    chosen=Chosen(name="averaged-logistic", version=1, settings={"penalty": 0.01}),
    terms=Terms(epsilon=1.0, delta=1e-6),
    group_size=3,
    smallest=50,
    schema=SCHEMA,
)


@dataclass(frozen=True)
class Line:
    """A received model."""

    weights: Reals
    classes: tuple[str, ...] = ("false", "true")

    def predict(self, X: Reals) -> NDArray[np.int64]:
        return (self._scores(X) > 0).astype(np.int64)

    def probabilities(self, X: Reals) -> Reals:
        found = 1 / (1 + np.exp(-self._scores(X)))
        return np.column_stack([1 - found, found])

    def _scores(self, X: Reals) -> Reals:
        return np.asarray(X @ self.weights[:-1] + self.weights[-1])


@dataclass(frozen=True)
class Network:
    """`received` draws the models' weights from the peer's own truth; `shift` skews its labels."""

    name: str
    received: Callable[[Source, Reals], Reals]
    shift: float = 0.0


def around(truth: Reals, count: int, doubt: float, source: Source) -> Reals:
    return truth + source.normal(0, doubt, (count, len(truth)))


def constants(truth: Reals, count: int) -> Reals:
    """Models that say the rarer class of everything."""
    return np.tile(np.append(np.zeros(WIDTH), -np.sign(truth[-1]) or 1.0), (count, 1))


NETWORKS = (
    Network("one good model", lambda s, w: around(w, 1, 0.1, s)),
    Network("one fair model", lambda s, w: around(w, 1, 0.5, s)),
    Network("one useless model", lambda s, w: around(0 * w, 1, 1.0, s)),
    Network("three fair models", lambda s, w: around(w, 3, 0.6, s)),
    Network("ten good models", lambda s, w: around(w, 10, 0.3, s)),
    Network("ten noisy models", lambda s, w: around(w, 10, 1.5, s)),
    Network("ten useless models", lambda s, w: around(0 * w, 10, 1.0, s)),
    Network("ten opposite models", lambda s, w: around(-w, 10, 0.3, s)),
    Network(
        "three good, seven useless models",
        lambda s, w: np.vstack([around(w, 3, 0.2, s), around(0 * w, 7, 1.0, s)]),
    ),
    Network(
        "six good, four opposite models",
        lambda s, w: np.vstack([around(w, 6, 0.3, s), around(-w, 4, 0.3, s)]),
    ),
    Network("ten good models, skewed labels", lambda s, w: around(w, 10, 0.3, s), 1.5),
    Network("ten noisy models, skewed labels", lambda s, w: around(w, 10, 1.5, s), 1.5),
    Network("ten constant models, skewed labels", lambda s, w: constants(w, 10), 1.5),
    Network("models of another population", lambda s, w: around(w * OTHER, 5, 0.2, s)),
)


@dataclass(frozen=True)
class Outcome:
    """Mean shares of errors on records that nobody has seen."""

    name: str
    records: int
    own: float
    network: float
    weighed: float

    @property
    def lost(self) -> float:
        return self.weighed - min(self.own, self.network)


def outcomes(runs: int, sizes: Iterable[int] = BARS) -> Iterator[Outcome]:
    for records in sizes:
        for place, network in enumerate(NETWORKS):
            found = [_run(network, records, [place, records, run]) for run in range(runs)]
            yield Outcome(network.name, records, *np.mean(found, axis=0).tolist())


def _run(network: Network, records: int, seed: list[int]) -> tuple[float, float, float]:
    source = np.random.default_rng(seed)
    truth = np.append(source.normal(0, 1, WIDTH), network.shift)
    mine, unseen = _records(truth, records, source), _records(truth, TESTED, source)
    models = {str(i): Line(row) for i, row in enumerate(network.received(source, truth))}
    plan = MeasurePlan(Promise(EPSILON), len(models), SHARE, records)
    worth = measured(PACT, models, mine, plan, randomness=SeededRandomness(str(seed)))
    own = PACT.averaged.model(PACT.averaged.train(mine, SCHEMA), SCHEMA)
    received = list(models.values())
    voters = (
        Ensemble([own]),
        Ensemble(received),
        Ensemble(received, own, worth.weights(list(models))),
    )
    own_wrong, network_wrong, weighed = (_wrong(voter, unseen) for voter in voters)
    return own_wrong, network_wrong, weighed


def _records(truth: Reals, count: int, source: Source) -> Encoded:
    X = source.uniform(-1, 1, (count, WIDTH))
    y = X @ truth[:-1] + truth[-1] + source.normal(0, 0.5, count) > 0
    return Encoded(X, y.astype(np.int64), None)


def _wrong(voter: Ensemble, unseen: Encoded) -> float:
    return float((voter.predict(unseen.X) != unseen.y).mean())


def worth_rows(runs: int) -> Iterator[Row]:
    """The worst network of each size."""
    found = list(outcomes(runs))
    for records in BARS:
        worst = max((one for one in found if one.records == records), key=lambda one: one.lost)
        what = (
            f"{len(NETWORKS)} invented networks measured with {records} own records, ε = "
            f"{EPSILON:g}: errors above the better of own and network, at worst ({worst.name})"
        )
        yield Row(what, max(0.0, worst.lost), BARS[records], "the bar", 1.0, at_most=True)
