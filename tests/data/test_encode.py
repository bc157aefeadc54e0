"""Encoding: a pure function of schema and record, whose vectors keep the declared bound."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data import Batch, Encoder, Schema, read_batches
from tacit.errors import SchemaError, UsageError

DOCUMENT: dict[str, Any] = {
    "columns": {
        "age": {"type": "integer", "bounds": [10, 90], "when_missing": "category"},
        "height": {"type": "number", "bounds": [0, 2], "edges": [0.5, 1.5]},
        "weight": {"type": "number", "edges": [50], "when_missing": "category"},
        "sex": {"type": "category", "categories": ["F", "M"], "when_missing": "category"},
        "smokes": {"type": "boolean", "when_missing": "category"},
        "who": {"type": "integer", "role": "person"},
        "outcome": {"type": "category", "categories": ["bad", "good"], "role": "label"},
    }
}
SCHEMA = Schema.from_dict(DOCUMENT)


def batch(*rows: tuple[Any, ...]) -> Batch:
    columns = dict(zip(DOCUMENT["columns"], map(list, zip(*rows, strict=True)), strict=True))
    return Batch.concat(list(read_batches(columns, SCHEMA)))


def test_vectors_by_hand() -> None:
    encoder = Encoder(SCHEMA)
    assert encoder.feature_names == (
        "age",
        "age missing",
        "height in [0, 0.5)",
        "height in [0.5, 1.5)",
        "height in [1.5, 2)",
        "weight in [-inf, 50)",
        "weight in [50, inf)",
        "weight missing",
        "sex=F",
        "sex=M",
        "sex missing",
        "smokes",
        "smokes missing",
    )
    X, y, person = encoder.encode(
        batch(
            (30, 0.5, 49.9, "M", True, 7, "good"),
            (None, 1.5, None, None, None, 8, "bad"),
            (200, -1.0, 50.0, "F", False, 7, "bad"),
        )
    )
    assert X.tolist() == [
        [0.25, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0],
        [0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 1],
        [1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0],
    ]
    assert y is not None
    assert person is not None
    assert y.tolist() == [1, 0, 0]
    assert person.tolist() == [7, 8, 7]
    assert encoder.width == X.shape[1]


def test_symmetric_interval() -> None:
    rows = batch((10, 1, 1, "F", True, 1, "bad"), (50, 1, 1, "F", True, 1, "bad"))
    X = Encoder(SCHEMA, interval="symmetric").encode(rows).X
    assert X[:, 0].tolist() == [-1, 0]


def test_labels_may_be_numbers_or_bins() -> None:
    body = {"type": "integer", "bounds": [0, 4], "role": "label"}
    for extra, expected in (({}, [0, 3, 4]), ({"edges": [1]}, [0, 1, 1])):
        columns = {"x": {"type": "boolean"}, "y": {**body, **extra}}
        schema = Schema.from_dict({"columns": columns})
        (rows,) = read_batches({"x": [0, 1, 1], "y": [0, 3, 9]}, schema)
        assert Encoder(schema).encode(rows).y.tolist() == expected  # type: ignore[union-attr]


records = st.tuples(
    st.none() | st.integers(-1000, 1000),
    st.floats(-10, 10),
    st.none() | st.floats(-1e6, 1e6),
    st.sampled_from(["F", "M", None]),
    st.none() | st.booleans(),
    st.integers(0, 5),
    st.sampled_from(["bad", "good"]),
)


@given(st.lists(records, min_size=1, max_size=12), st.data())
def test_batch_boundaries_do_not_matter(rows: list[tuple[Any, ...]], data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(rows)))
    for options in ({}, {"ball": "L2"}, {"ball": "L1", "interval": "symmetric"}):
        encoder = Encoder(SCHEMA, **options)  # type: ignore[arg-type]
        whole = encoder.encode(batch(*rows))
        pieces = [encoder.encode(batch(*part)) for part in (rows[:cut], rows[cut:]) if part]
        for i in range(3):
            joined = np.concatenate([piece[i] for piece in pieces])  # type: ignore[arg-type]
            np.testing.assert_array_equal(whole[i], joined)  # type: ignore[arg-type]


@given(st.lists(records, min_size=1, max_size=5), st.sampled_from(["unit", "symmetric"]))
def test_declared_bounds_hold(rows: list[tuple[Any, ...]], interval: Any) -> None:
    for ball in (None, "L1", "L2", "Linf"):
        encoder = Encoder(SCHEMA, interval=interval, ball=ball)
        for row in encoder.encode(batch(*rows)).X:
            exact = [abs(Fraction(v)) for v in row]
            assert sum(exact) <= Fraction(encoder.bound("L1"))
            assert sum(v * v for v in exact) <= Fraction(encoder.bound("L2")) ** 2
            assert max(exact) <= Fraction(encoder.bound("Linf"))
    assert Encoder(SCHEMA, ball="L2").bound("L2") == 1
    assert Encoder(SCHEMA).bound("L1") == 5
    assert Encoder(SCHEMA).bound("L2") == pytest.approx(math.sqrt(5))


def test_wrong_calls() -> None:
    with pytest.raises(UsageError, match="interval"):
        Encoder(SCHEMA, interval="wide")  # type: ignore[arg-type]
    other = Encoder(Schema.from_dict({"columns": {"x": {"type": "boolean"}}}))
    rows = batch((1, 1, 1, "F", True, 1, "bad"))
    with pytest.raises(UsageError, match="another schema"):
        other.encode(rows)
    with pytest.raises(SchemaError, match="TODO"):
        Encoder(Schema.from_dict({"columns": {"x": {"type": "number", "bounds": "TODO"}}}))
    with pytest.raises(UsageError, match="no feature"):
        Encoder(Schema.from_dict({"columns": {"x": {"type": "boolean", "role": "label"}}}))
