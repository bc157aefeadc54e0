"""Whether probabilities and coefficients of logistic regression are true: slope and log loss.

The slope is that of a regression of held-out labels on the model's scores (1: probabilities mean
what they say; below: too sure). Public bounds, defaults otherwise, ε = 1 and δ = 1e-6 unless said,
means of 20 runs (`--quick`: 5), each on records of its own, against scikit-learn without privacy on
the same ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shared_parts.probabilities import calibration_slope, log_loss, slope_row
from tacit.channels.federation.local import Federation
from tacit.cli.bench import Row
from tacit.crypto.prg import SeededRandomness
from tacit.data.records import ArrayRecords
from tacit.data.schema import Column, Schema
from tacit.errors import CalibrationWarning
from tacit.estimators import LogisticRegression
from tacit.privacy.promise import Promise
from tacit.programs.logistic import Logistic

__all__ = ["Case", "measured", "rows"]

Reals = NDArray[np.float64]
Part = tuple[Reals, NDArray[np.int64]]

RUNS, QUICK_RUNS, HELD_OUT = 20, 5, 10_000
DELTA = 1e-6
PEER = "scikit-learn, no privacy"


class Case(NamedTuple):
    """Features uniform in [−1, 1], or `tied`: mostly one common factor.

    federated   two holders with half of the records each, and two servers with all noise each
    """

    what: str
    records: int
    truth: tuple[float, ...]
    constant: float = 0.0
    epsilon: float = 1.0
    tied: bool = False
    federated: bool = False
    more: tuple[tuple[str, Any], ...] = ()


def _random(width: int, size: float = 1.0) -> tuple[float, ...]:
    return tuple(np.random.default_rng(width).normal(0, size, width))


FOUR = (2.0, -1.0, 0.5, 0.0)
CASES = (
    Case("2 features", 20_000, (2.0, -1.0)),
    Case("4 features", 20_000, FOUR, -0.5),
    Case("20 features", 20_000, _random(20)),
    Case("60 features", 20_000, _random(60)),
    Case("123 features", 20_000, _random(123)),
    Case("20 weak features", 20_000, _random(20, 0.2)),
    Case("4 strong features", 20_000, (12.0, -8.0, 4.0, 0.0)),
    Case("3 % in one class", 20_000, FOUR, -3.5),
    Case("20 tied features", 20_000, _random(20, 2.0), tied=True),
    Case("2,000 records, ε = 10", 2000, FOUR, -0.5, epsilon=10.0),
    Case("replace-one", 20_000, FOUR, -0.5, more=(("adjacency", "replace"),)),
    Case("4 features", 5000, FOUR, -0.5),
    Case("20 features", 5000, _random(20)),
    Case("50 features", 5000, _random(50)),
    Case("4 features, δ = 0", 20_000, FOUR, -0.5, more=(("delta", 0.0),)),
    Case("a federation, 4 features", 20_000, FOUR, -0.5, federated=True),
    Case("a federation, 20 features", 20_000, _random(20), federated=True),
    Case("a federation, 123 features", 20_000, _random(123), federated=True),
    Case("a federation, 4 features", 5000, FOUR, -0.5, federated=True),
    Case("a federation, 20 features", 5000, _random(20), federated=True),
)


def rows(say: Callable[[str], None], quick: bool = False) -> Iterator[Row]:
    runs = QUICK_RUNS if quick else RUNS
    for case in CASES:
        say(f"calibration: {case.what}, {case.records:,} records, {runs} runs …")
        found = np.array([measured(case, seed) for seed in range(runs)])
        yield from _judged(case, *found.mean(axis=0))


def _judged(case: Case, slope: float, loss: float, peer: float, first: float) -> Iterator[Row]:
    large = case.records * case.epsilon >= 20_000
    head = f"{case.what}, n·ε = {case.records * case.epsilon:,.0f}"
    yield slope_row(head, slope, (0.9, 1.1) if large else (0.8, 1.25))
    if large:
        bar = (peer + 0.01) / peer
        yield Row(f"{head}: log loss (at most 0.01 more)", loss, peer, PEER, bar, at_most=True)
    if case.truth == FOUR and not case.more:
        yield Row(f"{head}: first coefficient (shown)", first, 2.0, "the truth", 1.25, at_most=True)


def measured(case: Case, seed: int) -> tuple[float, float, float, float]:
    """Slope and log loss of ours on held-out records, the loss without privacy, and our first
    coefficient."""
    from sklearn.linear_model import LogisticRegression as Plain

    X, y = _drawn(case, seed)
    learned = _federation if case.federated else _one_place
    scores, first = learned(case, (X[HELD_OUT:], y[HELD_OUT:]), X[:HELD_OUT], seed)
    plain, truth = Plain().fit(X[HELD_OUT:], y[HELD_OUT:]), y[:HELD_OUT]
    peer = log_loss(plain.decision_function(X[:HELD_OUT]), truth)
    return calibration_slope(scores, truth), log_loss(scores, truth), peer, first


def _one_place(case: Case, part: Part, unseen: Reals, seed: int) -> tuple[Reals, float]:
    """Scores of records that were not learned from, and the first coefficient."""
    ours = LogisticRegression(
        epsilon=case.epsilon, bounds=(-1, 1), random_state=seed, **dict(case.more)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        ours.fit(*part)
    return ours.decision_function(unseen), float(ours.coef_[0, 0])


def _federation(case: Case, part: Part, unseen: Reals, seed: int) -> tuple[Reals, float]:
    names = [f"x{i}" for i in range(len(case.truth))]
    columns = [Column(name=name, type="number", bounds=(-1.0, 1.0)) for name in names]
    schema = Schema(columns=(*columns, Column(name="y", type="boolean", role="label")))
    halves = [ArrayRecords(*(values[start::2] for values in part)) for start in (0, 1)]
    channel = Federation(2, randomness=lambda *at: SeededRandomness(f"{seed} {at}"))
    model = channel.run(Logistic(), halves, schema, Promise(case.epsilon, DELTA)).model
    return model.scores(unseen)[:, 0], float(model.coef[0, 0])


def _drawn(case: Case, seed: int) -> Part:
    generator = np.random.default_rng(seed)
    shape = (HELD_OUT + case.records, len(case.truth))
    if case.tied:
        common, own = generator.normal(size=(shape[0], 1)), generator.normal(size=shape)
        X = np.clip((0.9 * common + 0.44 * own) / 3, -1, 1)
    else:
        X = generator.uniform(-1, 1, shape)
    chance = 1 / (1 + np.exp(-(X @ np.array(case.truth) + case.constant)))
    return X, (generator.random(shape[0]) < chance).astype(np.int64)
