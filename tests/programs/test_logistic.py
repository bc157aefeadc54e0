"""Logistic regression: exact sums, utility, audits, and the bounds of output perturbation."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from rounds import check_sums, half_the_noise, planned, ready

from tacit.channels.central import Central
from tacit.crypto.prg import SeededRandomness
from tacit.data import Schema
from tacit.data.records import ArrayRecords
from tacit.errors import InputError, UsageError
from tacit.privacy import Norm, Promise, audit
from tacit.programs import logistic
from tacit.programs.contribute import record_sum
from tacit.programs.files import from_bytes, to_bytes
from tacit.programs.levels import Levels
from tacit.programs.logistic import Logistic, LogisticModel
from tacit.programs.logistic_output import LogisticOutput, bound, train
from tacit.programs.logistic_steps import LARGEST_STEP
from tacit.programs.program import Query, Stage

PROMISES = {"pure": Promise(1.0), "gaussian": Promise(1.0, 1e-5)}


def schema(features: int, classes: int = 2) -> Schema:
    columns: dict[str, Any] = {
        f"x{i}": {"type": "number", "bounds": [-1, 1]} for i in range(features)
    }
    names = [str(i) for i in range(classes)]
    columns["y"] = {"type": "category", "role": "label", "categories": names}
    return Schema.from_dict({"columns": columns})


def made(n: int, d: int, classes: int = 2, seed: int = 0, spread: float = 0.3) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    X = np.clip(generator.normal(-0.5, spread, (n, d)), -1, 1)
    weights = np.random.default_rng(99).normal(0, 3 / spread, (d, classes)) / math.sqrt(d)
    scores = (X + 0.5) @ weights + generator.gumbel(size=(n, classes))
    return X, scores.argmax(axis=1)


def run(X: Any, y: Any, promise: Promise, seed: int = 1, classes: int = 2) -> LogisticModel:
    channel = Central(randomness=SeededRandomness(seed))
    program = Logistic(tolerance=1e-8)
    return channel.run(program, ArrayRecords(X, y), schema(X.shape[1], classes), promise).model


def asked(stages: Sequence[Stage], name: str) -> Query:
    """What the stage of this name asks."""
    return next(stage.query for stage in stages if stage.query.blocks[0].name == name)


def gradient_states(d: int, classes: int, promise: Promise) -> Iterator[Any]:
    """States whose next round is a gradient, with all kinds of weights, centres and bounds."""
    generator = np.random.default_rng(d)
    state: Any = Logistic().init(schema(d, classes), promise)
    for size in (0.0, 1e-3, 1.0, 50.0, 1e6):
        centre = np.rint(generator.uniform(-1, 1, d) * 2**16) / 2**16
        weights = generator.normal(0, 1, state.weights.shape) * size
        scale = float(generator.uniform(0.01, 2))
        yield replace(
            state,
            stage="gradient",
            centre=centre,
            weights=weights,
            average=weights,
            slope=float(generator.uniform(0.01, 3)),
            shift=generator.normal(0, 3, len(state.shift)),
            typical=float(generator.uniform(0.01, 30)),
            scale=scale,
            constant=round(scale * 2**14) / 2**16,
            bound=float(generator.uniform(0.1, 2)) * scale,
        )


@pytest.mark.parametrize("stage", ["gradient", "scores", "calibration"])
@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("promise", PROMISES.values(), ids=PROMISES)
def test_sums_are_exact_bounded_and_additive(stage: str, classes: int, promise: Promise) -> None:
    program, d = Logistic(), 7
    generator = np.random.default_rng(0)
    wild = np.vstack(
        [np.zeros((2, d)), np.full((2, d), 1e9), np.full((2, d), -1e160), np.eye(d) * 30]
    )
    X = np.vstack([generator.uniform(-1, 1, (300, d)), generator.normal(0, 50, (20, d)), wild])
    y = generator.integers(0, classes, len(X))
    first = program.init(schema(d, classes), promise)
    query = asked(planned(program, first).stages, stage)
    for state in gradient_states(d, classes, promise):
        rows = check_sums(program, ready(program, X, y, first), state, query)
        assert rows.any()
        singles = [
            record_sum(program, ready(program, X[i : i + 1], y[i : i + 1], first), state, query)
            for i in range(len(X))
        ]
        assert np.array_equal(np.array(singles), rows)


def test_missing_values_are_refused() -> None:
    X, y = made(50, 2)
    X[3, 1] = math.nan
    with pytest.raises(InputError, match="NaN or infinite: treat missing values"):
        run(X, y, Promise(1.0, 1e-5))


@pytest.mark.parametrize("classes", [2, 4])
def test_without_privacy_it_is_scikit_learns(classes: int) -> None:
    from sklearn.linear_model import LogisticRegression

    X, y = made(600, 5, classes)
    peer = LogisticRegression(tol=1e-10, max_iter=10_000).fit(X, y)
    model = run(X, y, Promise(math.inf), classes=classes)
    assert np.allclose(model.coef, peer.coef_, atol=1e-3)
    assert np.allclose(model.intercept, peer.intercept_, atol=1e-3)
    assert np.array_equal(model.predict(X), peer.predict(X))
    assert model.classes == tuple(str(i) for i in range(classes))
    assert to_bytes(from_bytes(LogisticModel, to_bytes(model))) == to_bytes(model)


@pytest.mark.parametrize(
    ("promise", "classes", "gap"),
    [
        (Promise(1.0, 1e-5), 2, 0.015),
        (Promise(0.2, 1e-5), 2, 0.03),
        (Promise(1.0, 1e-5, adjacency="replace"), 2, 0.02),
        (Promise(2.0, 1e-5), 4, 0.04),
        (Promise(2.0), 2, 0.06),
    ],
)
@pytest.mark.parametrize("spread", [0.3, 0.02])
def test_it_learns_whatever_the_scale(
    promise: Promise, classes: int, gap: float, spread: float
) -> None:
    X, y = made(8000, 8, classes, spread=spread)
    Xt, yt = made(4000, 8, classes, seed=5, spread=spread)
    best = made_error(spread, classes)
    errors = [
        float(np.mean(run(X, y, promise, seed, classes).predict(Xt) != yt)) for seed in range(2)
    ]
    assert np.mean(errors) <= best + gap


def made_error(spread: float, classes: int) -> float:
    """Of scikit-learn on the same records, without privacy or regularisation."""
    from sklearn.linear_model import LogisticRegression

    X, y = made(8000, 8, classes, spread=spread)
    Xt, yt = made(4000, 8, classes, seed=5, spread=spread)
    return 1 - float(LogisticRegression(C=1e4, max_iter=10_000).fit(X, y).score(Xt, yt))


def test_equal_features_do_not_make_it_swing() -> None:
    """The step that suits many features is too long for few; the curvature cuts it."""
    X, y = made(20_000, 1)
    promise = Promise(4.0, 1e-5)
    outcome = Central(randomness=SeededRandomness(3)).run(
        Logistic(), ArrayRecords(X, y), schema(1), promise
    )
    assert isinstance(outcome.state, logistic.Learning)
    assert outcome.state.step < LARGEST_STEP
    free = run(X, y, Promise(math.inf))
    assert abs(outcome.model.coef[0, 0] / free.coef[0, 0] - 1) < 0.25


def test_one_person_counts_once() -> None:
    X, y = made(2000, 3)
    promise = Promise(2.0, 1e-5, unit="person")
    records = ArrayRecords(X, y, person=np.arange(2000) // 4)
    outcome = Central(randomness=SeededRandomness(3)).run(Logistic(), records, schema(3), promise)
    assert np.mean(outcome.model.predict(X) != y) < 0.35


class FirstGradient(Logistic):
    """Only the first gradient, with the whole promise: short enough to be played often."""

    def init(self, schema: Schema, promise: Promise) -> logistic.Learning:
        state = super().init(schema, promise)
        assert isinstance(state, logistic.Learning)
        last = state.schedule.rounds - 1
        # The least constant feature, so that a record moves one coordinate by the whole bound.
        return replace(state, stage="gradient", round=last, constant=2.0**-16, bound=0.25)

    def plan(self, first: Any) -> list[Stage]:
        return [Stage(asked(super().plan(first), "gradient"))]


def play(extra: int, runs: int) -> Any:
    """Two records whose gradients cancel, and perhaps one more, which is clipped to the bound."""
    X, y = np.array([[0.5], [0.5], [1.0]]), np.array([0, 1, 1])
    records = ArrayRecords(X[: 2 + extra], y[: 2 + extra])
    channel = Central(randomness=SeededRandomness(extra))
    columns, promise = schema(1), GAME
    states = (channel.run(FirstGradient(), records, columns, promise).state for _ in range(runs))
    return np.array([state.gradient[:, 0] for state in states])  # type: ignore[union-attr]


# Pure, because with a small delta half the noise shows only in events as rare as delta.
GAME = Promise(2.0)
TRIALS = 2000


def test_audit_passes() -> None:
    assert audit(play, (1, 0), GAME, trials=TRIALS).passed


def test_audit_catches_half_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Levels.mechanism

    def cheating(self: Levels, block: Any) -> Any:
        return half_the_noise(honest(self, block))

    monkeypatch.setattr(Levels, "mechanism", cheating)
    assert not audit(play, (1, 0), GAME, trials=TRIALS).passed


@pytest.mark.parametrize(
    ("label", "problem"),
    [(None, "role"), ({"type": "number", "bounds": [0, 1]}, "edges")],
)
def test_labels_must_be_classes(label: dict[str, Any] | None, problem: str) -> None:
    columns: dict[str, Any] = {"x": {"type": "number", "bounds": [0, 1]}}
    if label is not None:
        columns["y"] = {**label, "role": "label"}
    with pytest.raises(UsageError, match=problem):
        Logistic().init(Schema.from_dict({"columns": columns}), Promise(1.0))


# -- output perturbation --------------------------------------------------------------------------


@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 40),
    st.integers(1, 6),
    st.sampled_from([1e-3, 0.01, 0.1, 1.0]),
)
@settings(max_examples=60, deadline=None)
def test_the_minimiser_moves_no_further_than_its_bound(
    seed: int, n: int, d: int, penalty: float
) -> None:
    generator = np.random.default_rng(seed)
    X, y = generator.normal(0, 1, (n + 1, d)), generator.integers(0, 2, n + 1)
    X[0] *= 100  # is shortened to the ball
    start, norm = train(X[:n], y[:n], penalty)
    assert norm <= 1e-9
    replaced, _ = train(X[1:], y[1:], penalty)
    added, _ = train(X, y, penalty)
    limit = float(bound(n, penalty, 1e-9).value)
    assert np.linalg.norm(start - replaced) <= limit
    assert np.linalg.norm(start - added) <= limit


def test_the_bound_is_nearly_met() -> None:
    """One record of each class, exchanged for their opposites: the bound is not loose."""
    X, penalty = np.ones((1, 1)), 10.0
    apart = abs(train(X, [1], penalty)[0] - train(X, [0], penalty)[0])[0]
    assert apart > 0.45 * float(bound(1, penalty).value)


def test_solver_error_and_averages_are_part_of_the_bound() -> None:
    assert bound(100, 0.5).value == Fraction(2, 50)
    assert bound(100, 0.5, 0.25).value == Fraction(2, 50) + 1
    assert bound(100, 0.5, models=4).value == Fraction(1, 100)
    assert bound(100, 0.5).norm is Norm.L2
    with pytest.raises(UsageError):
        bound(0, 0.5)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_output_perturbation_learns(delta: float) -> None:
    generator = np.random.default_rng(0)
    X = generator.normal(0, 0.5, (20_000, 4))
    y = (X @ [3.0, -2.0, 1.0, 0.0] + generator.logistic(0, 0.3, 20_000) > 0).astype(int)
    promise = Promise(1.0, delta, adjacency="replace")
    exact = LogisticOutput(0.01).release(X, y, Promise(math.inf))
    noisy = LogisticOutput(0.01).release(X, y, promise, randomness=SeededRandomness(1))
    assert exact.releases == ()
    assert noisy.promise_holds
    assert noisy.releases[0].mechanism == ("gaussian" if delta else "l2-laplace")
    assert np.mean(noisy.predict(X) != y) <= np.mean(exact.predict(X) != y) + 0.02


def test_as_published_says_that_its_promise_does_not_hold() -> None:
    X, y = made(100, 3)
    promise = Promise(1.0, adjacency="replace")
    model = LogisticOutput(0.1, as_published=True).release(X, y, promise)
    assert not model.promise_holds
    assert "NOT hold" in model.remarks[0]
    assert model.releases[0].mechanism == "laplace"
    expected = 2 / (100 * 1.0 * 0.1)
    assert float(model.releases[0].scale or 0) == pytest.approx(expected, rel=1e-2)


def test_add_remove_needs_a_public_number_of_records() -> None:
    X, y = made(100, 3)
    output = LogisticOutput(0.1)
    with pytest.raises(UsageError, match="records="):
        output.release(X, y, Promise(1.0))
    with pytest.raises(UsageError, match="fewer"):
        output.release(X, y, Promise(1.0), records=101)
    assert output.release(X, y, Promise(1.0), records=90).promise_holds
    with pytest.raises(UsageError, match="penalty"):
        train(X, y, 0.0)
