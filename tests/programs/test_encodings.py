"""Curves and bins: what they make of records, and what is learned with them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tacit.channels.central import Central
from tacit.crypto.prg import SeededRandomness
from tacit.data import Schema
from tacit.data.records import ArrayRecords
from tacit.errors import InputError, UsageError
from tacit.privacy import Promise
from tacit.privacy.bound import Norm
from tacit.programs.encodings import BINS, DEGREES, Encoding, checked_features, encoding_for
from tacit.programs.expected import expected_error
from tacit.programs.files import from_bytes, to_bytes
from tacit.programs.logistic import Logistic, LogisticModel
from tacit.programs.logistic_model import SEEN
from tacit.programs.model_file import model_bytes, model_from_bytes
from tacit.programs.registry import learner_named
from tacit.programs.settings import plain_settings

MIXED = Schema.from_dict(
    {
        "columns": {
            "flag": {"type": "boolean"},
            "age": {"type": "integer", "bounds": [18, 90]},
            "dose": {"type": "number", "bounds": [0, 2], "when_missing": "category"},
            "cut": {"type": "number", "bounds": [0, 10], "edges": [3, 6]},
            "kind": {"type": "category", "categories": ["a", "b"]},
            "y": {"type": "category", "categories": ["no", "yes"], "role": "label"},
        }
    }
)
ROLES = (0, 1, 2, 0, 0, 0, 0, 0, 0)
KINDS: tuple[Any, ...] = ("curves", "bins")
any_records = arrays(
    np.float64, (5, len(ROLES)), elements=st.floats(allow_nan=True, allow_infinity=True)
)
inside = arrays(np.float64, (5, 3), elements=st.floats(-1, 1))


def numbers(count: int) -> Schema:
    columns: dict[str, Any] = {f"x{i}": {"type": "number", "bounds": [-4, 4]} for i in range(count)}
    columns["y"] = {"type": "category", "categories": ["0", "1"], "role": "label"}
    return Schema.from_dict({"columns": columns})


def test_roles_follow_from_the_types_of_the_columns() -> None:
    found = encoding_for("curves", MIXED)
    assert found == Encoding("curves", ROLES)
    assert found.width == 7 + 2 * len(DEGREES)
    assert encoding_for("bins", MIXED) == Encoding("bins", ROLES)
    assert encoding_for("auto", MIXED) == found
    assert encoding_for("raw", MIXED) is None


def test_auto_leaves_tables_without_numbers_as_they_are() -> None:
    columns = {c: v for c, v in MIXED.to_dict()["columns"].items() if c not in ("age", "dose")}
    assert encoding_for("auto", Schema.from_dict({"columns": columns})) is None


@pytest.mark.parametrize("kind", KINDS)
@given(X=any_records)
def test_whatever_a_record_holds_it_is_within_and_the_same_alone(kind: Any, X: Any) -> None:
    encoding = Encoding(kind, ROLES)
    with np.errstate(all="raise", under="ignore"):
        found = encoding.of(X)
    assert found.shape == (5, encoding.width)
    assert (np.abs(found) <= 1.0).all()
    for row in range(5):
        assert np.array_equal(encoding.of(X[row : row + 1])[0], found[row])


@pytest.mark.parametrize("kind", KINDS)
@given(X=inside)
def test_no_record_is_longer_than_the_bound(kind: Any, X: Any) -> None:
    """The longest are at the ends, where all polynomials are ±1."""
    encoding = Encoding(kind, (1, 1, 1))
    for rows in (X, np.ones((1, 3)), -np.ones((1, 3))):
        seen = encoding.of(rows)
        assert (np.abs(seen).sum(axis=1) <= encoding.bound(Norm.L1, 3.0)).all()
        lengths = np.linalg.norm(seen, axis=1)
        assert (lengths <= encoding.bound(Norm.L2, math.sqrt(3.0))).all()
    longest = np.linalg.norm(encoding.of(np.ones((1, 3))))
    assert longest == pytest.approx(encoding.bound(Norm.L2, math.sqrt(3.0)))


def test_curves_are_chebyshevs() -> None:
    """T_k(cos θ) = cos kθ."""
    angles = np.linspace(0, math.pi, 101)
    made = Encoding("curves", (1,)).of(np.cos(angles)[:, None])
    degrees = np.arange(1, len(DEGREES) + 1)
    assert np.allclose(made, np.cos(np.outer(angles, degrees)) * DEGREES, atol=1e-12)


def test_bins_have_one_width_and_their_lower_end() -> None:
    ends = np.array([float(Fraction(2 * k, BINS) - 1) for k in range(BINS + 1)])
    made = Encoding("bins", (1,)).of(ends[:, None])
    assert made.argmax(axis=1).tolist() == [*range(BINS), BINS - 1]
    assert (made.sum(axis=1) == 1).all()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_missing_is_nothing_but_missing(kind: Any) -> None:
    encoding = Encoding(kind, (2, 0))
    found = encoding.of(np.array([[0.0, 1.0], [0.7, 1.0], [0.7, 0.0]]))
    assert found[:, 0].tolist() == [1.0, 1.0, 0.0]
    assert not found[:2, encoding.places(0)].any()
    assert found[2, encoding.places(0)].any()


@pytest.mark.parametrize("roles", [(), (0, 0), (2,), (2, 1), (3,), (-1, 1)])
def test_damaged_roles_are_refused(roles: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="damaged"):
        Encoding("curves", roles)


def test_what_nobody_can_choose_is_refused() -> None:
    with pytest.raises(UsageError, match="one of auto, raw, bins, curves, not 'splines'"):
        checked_features("splines")
    with pytest.raises(UsageError, match="'auto' or 'raw' or 'bins' or 'curves'"):
        learner_named("logistic", None, {"features": "splines"})


def test_raw_features_are_not_named() -> None:
    """What was agreed before there was a choice is the same program still."""
    assert plain_settings(Logistic()) == {"penalty": 1.0, "tolerance": 1e-5}
    assert Logistic().digest == Logistic(features="raw").digest
    assert len({Logistic(features=f).digest for f in ("raw", "auto", "bins", "curves")}) == 4
    assert learner_named("logistic", 2, {}).digest == Logistic().digest


def model(kind: Any) -> LogisticModel:
    encoding = Encoding(kind, ROLES)
    coef = np.random.default_rng(0).normal(size=(1, encoding.width))
    return LogisticModel.of(coef, np.zeros(1), ("no", "yes"), encoding, True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_file_says_how_it_sees_records(kind: Any) -> None:
    data = model_bytes(model(kind), Logistic(features=kind), MIXED)
    saved = model_from_bytes(data)
    assert saved.model.encoding == Encoding(kind, ROLES)
    assert saved.program.settings()["features"] == kind
    assert model_bytes(saved.model, saved.program, saved.schema) == data
    assert saved.program.remarks(saved.model) == (SEEN[kind],)
    assert set(SEEN.values()) < set(Logistic.may_remark)
    X = np.random.default_rng(1).uniform(-1, 1, (20, len(ROLES)))
    far = np.where(np.abs(X) > 0.9, X * 1e6, X)
    near = np.clip(far, -1, 1)
    assert np.array_equal(saved.model.scores(far), saved.model.scores(near))


def test_a_model_that_contradicts_itself_is_refused() -> None:
    whole = to_bytes(model("curves"))
    assert from_bytes(LogisticModel, whole).features == "curves"
    for spoilt in (b'\\"curves\\"', b"[0, 1, 2,"):
        assert spoilt in whole
    with pytest.raises(InputError, match="damaged"):
        from_bytes(LogisticModel, whole.replace(b"[0, 1, 2, 0,", b"[0, 1, 1, 2,"))
    with pytest.raises(InputError, match="other coefficients"):
        LogisticModel(np.zeros((1, 5)), np.zeros(1), ("no", "yes"), None, "bins", ROLES)
    with pytest.raises(InputError, match="both features and roles"):
        LogisticModel(np.zeros((1, 5)), np.zeros(1), ("no", "yes"), None, "bins")


def ring(rows: int, seed: int) -> tuple[Any, Any]:
    """Which of two clouds around the origin, one wider than the other: no line parts them."""
    generator = np.random.default_rng(seed)
    y = generator.integers(0, 2, rows)
    X = generator.normal(0, np.where(y == 1, 2.0, 1.0)[:, None], (rows, 8))
    return np.clip(X / 4, -1, 1), y


@pytest.mark.parametrize("promise", [Promise(1.0, 1e-6), Promise(2.0)], ids=["gaussian", "pure"])
def test_curves_follow_what_no_line_can(promise: Promise) -> None:
    """Seeded, so that it repeats."""
    train, test = ring(6000, 1), ring(4000, 2)
    found = {}
    for features in ("raw", "curves", "bins"):
        channel = Central(randomness=SeededRandomness(7))
        program = Logistic(features=checked_features(features))
        learned = channel.run(program, ArrayRecords(*train), numbers(8), promise).model
        found[features] = float(np.mean(learned.predict(test[0]) == test[1]))
    assert found["raw"] < 0.6
    assert found["curves"] > 0.85
    assert found["bins"] > 0.75


def test_in_windows_too() -> None:
    X, y = ring(8000, 3)
    windows = [ArrayRecords(X[i::2], y[i::2]) for i in range(2)]
    channel, program = Central(randomness=SeededRandomness(7)), Logistic(features="curves")
    outcome = list(channel.follow(program, windows, numbers(8), Promise(1.0, 1e-6)))[-1]
    test = ring(4000, 2)
    assert np.mean(outcome.model.predict(test[0]) == test[1]) > 0.8


def test_curves_are_expected_to_cost_little() -> None:
    """ring() and others: curves need hardly more records than lines, bins many times as many."""
    promise, needed = Promise(1.0, 1e-6), {}
    for features in ("raw", "curves", "bins"):
        program = Logistic(features=checked_features(features))
        needed[features] = expected_error(program, numbers(20), promise, 100).needed_n or 0
    assert 1.0 < needed["curves"] / needed["raw"] < 1.5
    assert needed["bins"] > 2 * needed["raw"]
