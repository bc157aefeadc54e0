"""What parties train alone: in the ball, within the bounds of a record and of a whole holder."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.channels.consortium.local import averaged, consortium_study
from tacit.channels.consortium.terms import JointTerms
from tacit.channels.studies.study import Consortium
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.data.encode import Encoded
from tacit.data.records import ArrayRecords
from tacit.data.schema import Column, Schema
from tacit.errors import InputError, UsageError
from tacit.privacy.accounting import gaussian_scale
from tacit.privacy.promise import Promise, Unit
from tacit.programs.averaging import AveragedLogistic, RootedLogisticModel
from tacit.programs.files import from_bytes, to_bytes

SCHEMA = Schema(
    columns=(
        *(Column(name=f"x{i}", type="number", bounds=(0, 10)) for i in range(3)),
        Column(name="kind", type="category", categories=("a", "b")),
        Column(name="y", type="boolean", role="label"),
    )
)
WIDTH = 5
RECORDS: tuple[Literal["boxed", "rooted"], ...] = ("boxed", "rooted")
KEYS = [SigningKey.generate() for _ in range(5)]
HOLDER = Promise(1.0, 1e-5, Unit.HOLDER)


def some(rng: np.random.Generator, count: int, way: str) -> Encoded:
    X = rng.random((count, WIDTH)) if way == "rooted" else rng.uniform(-1, 1, (count, WIDTH))
    return Encoded(X, (X[:, 0] + rng.normal(0, 0.3, count) > 0.5).astype(np.int64), None)


# ── records ──


@given(st.lists(st.floats(0, 1), min_size=3, max_size=3), st.booleans(), st.sampled_from(RECORDS))
def test_records_lie_in_the_ball(numbers: list[float], second: bool, way: Any) -> None:
    row = [*numbers, float(not second), float(second)]
    found = AveragedLogistic(records=way).prepared(np.array([row]), SCHEMA)
    assert np.linalg.norm(found) <= 1 + 1e-12


def test_rooted_records_have_one_length() -> None:
    rows = np.array([[0.0001] * WIDTH, [1.0] * WIDTH, [0.5, 0, 0, 0, 0.02]])
    found = AveragedLogistic(records="rooted").prepared(rows, SCHEMA)
    assert np.linalg.norm(found, axis=1) == pytest.approx([1, 1, 1])
    nothing = AveragedLogistic(records="rooted").prepared(np.zeros((1, WIDTH)), SCHEMA)
    assert np.isfinite(nothing).all()


def test_a_record_is_prepared_by_itself() -> None:
    rows = np.random.default_rng(0).random((9, WIDTH))
    made = AveragedLogistic(records="rooted")
    alone = np.vstack([made.prepared(row[None, :], SCHEMA) for row in rows])
    assert np.array_equal(alone, made.prepared(rows, SCHEMA))


@pytest.mark.parametrize("way", RECORDS)
def test_the_model_says_what_the_vector_says(way: Any) -> None:
    made = AveragedLogistic(0.02, records=way)
    own = some(np.random.default_rng(1), 200, way)
    vector = made.train(own, SCHEMA)
    model = made.model(vector, SCHEMA)
    scores = made.prepared(own.X, SCHEMA) @ vector
    assert (model.predict(own.X) == (scores > 0)).all()
    assert model.probabilities(own.X)[:, 1] == pytest.approx(1 / (1 + np.exp(-scores)))
    assert made.vector(model, SCHEMA) == pytest.approx(vector)
    assert (model.predict(own.X) == own.y).mean() > 0.6
    found = made.predict(model, own.X)
    assert found is not None
    assert found.kind == "class"


def test_a_rooted_model_is_kept_as_it_is() -> None:
    made = AveragedLogistic(0.02, records="rooted")
    model = made.model(np.arange(6.0), SCHEMA)
    assert isinstance(model, RootedLogisticModel)
    again = from_bytes(made.models, to_bytes(model))
    assert isinstance(again, RootedLogisticModel)
    assert np.array_equal(again.coef, model.coef)


@pytest.mark.parametrize("wrong", [{"records": "round"}, {"radius": 0.0}, {"penalty": -1.0}])
def test_settings_that_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        AveragedLogistic(**wrong)


# ── bounds ──


@settings(max_examples=60)
@given(
    st.integers(0, 10**6),
    st.sampled_from([0.003, 0.05, 0.3, 2.0]),
    st.sampled_from(RECORDS),
    st.sampled_from([0.2, 1.0, 1e9]),
)
def test_one_record_moves_a_vector_by_its_bound(
    seed: int, penalty: float, way: Any, radius: float
) -> None:
    rng = np.random.default_rng(seed)
    made = AveragedLogistic(penalty, records=way, radius=radius)
    one, other = some(rng, 8, way), some(rng, 8, way)
    X, y = one.X.copy(), np.array(one.y)
    X[0], y[0] = other.X[0], 1 - y[0]
    moved = made.train(Encoded(X, y, None), SCHEMA) - made.train(one, SCHEMA)
    assert np.linalg.norm(moved) <= float(made.bound(8).value)


@settings(max_examples=60)
@given(
    st.integers(0, 10**6),
    st.sampled_from([0.003, 0.05, 0.3, 2.0]),
    st.sampled_from(RECORDS),
    st.sampled_from([0.2, 1.0, 1e9]),
)
def test_a_whole_holder_moves_a_vector_by_its_bound(
    seed: int, penalty: float, way: Any, radius: float
) -> None:
    rng = np.random.default_rng(seed)
    made = AveragedLogistic(penalty, records=way, radius=radius)
    one, other = some(rng, 5, way), some(rng, 70, way)
    contrary = Encoded(other.X, 1 - np.array(other.y), None)
    first, second = made.train(one, SCHEMA), made.train(contrary, SCHEMA)
    bound = float(made.bound(1, Unit.HOLDER).value)
    assert np.linalg.norm(first - second) <= bound
    assert max(np.linalg.norm(first), np.linalg.norm(second)) <= bound / 2


@pytest.mark.parametrize(("penalty", "radius", "least"), [(20.0, 1e9, 0.9), (0.01, 0.5, 0.999)])
def test_the_holders_bound_is_nearly_reached(penalty: float, radius: float, least: float) -> None:
    """One record there, and the same with the other label here."""
    made = AveragedLogistic(penalty, records="rooted", radius=radius)
    X = np.array([[1.0, 0, 0, 0, 0]])
    yes, no = (made.train(Encoded(X, np.array([label]), None), SCHEMA) for label in (1, 0))
    bound = float(made.bound(1, Unit.HOLDER).value)
    assert least * bound < np.linalg.norm(yes - no) <= bound


def test_half_the_holders_bound_would_not_do() -> None:
    """What the test above would find if the bound forgot that a vector is exchanged."""
    made = AveragedLogistic(0.01, records="rooted", radius=0.5)
    X = np.array([[1.0, 0, 0, 0, 0]])
    yes, no = (made.train(Encoded(X, np.array([label]), None), SCHEMA) for label in (1, 0))
    assert np.linalg.norm(yes - no) > float(made.bound(1, Unit.HOLDER).value) / 2 * 1.9


# ── a holder's promise in a consortium ──


def terms_of(promise: Promise, radius: float = 1e9, colluding: int = 1) -> JointTerms:
    made = AveragedLogistic(0.05, records="rooted", radius=radius)
    agreed = Consortium(colluding=colluding, smallest=20)
    study = consortium_study(made, KEYS[:4], KEYS[4], SCHEMA, promise, agreed)
    return JointTerms(study, tuple(key.public_key for key in KEYS[:4]))


@pytest.mark.parametrize("radius", [1e9, 1.0])
def test_the_noise_is_for_the_holders_bound(radius: float) -> None:
    terms = terms_of(HOLDER, radius)
    assert terms.mechanism is not None
    length = min(radius, math.sqrt(2 * math.log(2) / 0.05), 1 / (2 * 0.05))
    wanted = 2 * length * float(gaussian_scale(1.0, 1e-5))
    assert float(terms.mechanism.scale) == pytest.approx(wanted, rel=1e-3)
    assert terms.mechanism.parts == 3
    nothing = np.zeros((4, 4_000, terms.length), dtype=np.int64)
    drawn = terms.mechanism.perturb(nothing, SeededRandomness("a holder's noise")).sum(axis=0)
    deviation = float(terms.grid.decode(drawn).std())
    assert deviation == pytest.approx(wanted * math.sqrt(4 / 3), rel=0.03)


def test_a_holder_costs_more_than_a_record() -> None:
    record, holder = terms_of(Promise(1.0, 1e-5)), terms_of(HOLDER)
    assert record.mechanism is not None
    assert holder.mechanism is not None
    assert holder.mechanism.scale > 5 * record.mechanism.scale


def test_a_consortium_promises_a_whole_holder() -> None:
    rng = np.random.default_rng(3)
    parties = [ArrayRecords(*_arrays(some(rng, 30, "rooted"))) for _ in range(4)]
    made = AveragedLogistic(0.05, records="rooted", radius=1.0)
    outcome = averaged(made, parties, SCHEMA, HOLDER, smallest=20, colluding=1)
    certificate = outcome.certificate
    assert certificate.promise.unit is Unit.HOLDER
    (release,) = certificate.releases
    assert float(release.bound.value) == pytest.approx(2.0, rel=1e-3)
    assert isinstance(outcome.model, RootedLogisticModel)


def _arrays(records: Encoded) -> tuple[NDArray[np.float64], NDArray[Any]]:
    assert records.y is not None
    return records.X, records.y


@pytest.mark.parametrize(
    ("unit", "protocol", "words"),
    [
        (Unit.PERSON, "joint", '"record" or "holder"'),
        (Unit.HOLDER, "as-published", "records alone"),
    ],
)
def test_units_that_cannot_be_promised(unit: Unit, protocol: Any, words: str) -> None:
    agreed = Consortium(protocol=protocol, colluding=0, smallest=20)
    promise = Promise(1.0, 0.0, unit)
    with pytest.raises(InputError, match=words):
        consortium_study(AveragedLogistic(), KEYS[:4], KEYS[4], SCHEMA, promise, agreed)
