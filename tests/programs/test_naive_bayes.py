"""Naive Bayes: the textbook's without noise, on mixed tables with gaps; useful with noise."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.naive_bayes import BernoulliNB, GaussianNB

sys.path.insert(0, str(Path(__file__).parent))

from rounds import asked, ready

from tacit.channels.central import Central
from tacit.crypto.prg import SeededRandomness
from tacit.data import Batch, Column, Encoded, Schema, load_dataset
from tacit.data.records import ArrayRecords
from tacit.errors import DatasetError, SchemaError
from tacit.privacy import Promise
from tacit.programs.contribute import decoded, record_sum
from tacit.programs.naive_bayes import NaiveBayes, NaiveBayesModel

FREE = Promise(math.inf)


def learned(schema: Schema, data: Encoded, promise: Promise) -> NaiveBayesModel:
    records = ArrayRecords(data.X, data.y)
    return Central(randomness=SeededRandomness(6)).run(NaiveBayes(), records, schema, promise).model


def gaps() -> tuple[Schema, Encoded, dict[str, Any]]:
    """A number that is sometimes missing, a boolean, and a boolean that is sometimes missing."""
    generator = np.random.default_rng(7)
    schema = Schema(
        columns=(
            Column(name="size", type="number", bounds=(-1, 1), when_missing="category"),
            Column(name="old", type="boolean"),
            Column(name="sure", type="boolean", when_missing="category"),
            Column(name="kind", type="category", categories=("a", "b", "c"), role="label"),
        )
    )
    kind = generator.integers(0, 3, 500)
    size = np.clip(generator.normal(kind / 3 - 0.3, 0.3), -1, 1)
    values = {
        "size": np.where(generator.random(500) < 0.2, math.nan, size),
        "old": (generator.random(500) < 0.2 + kind / 4).astype(np.int32),
        "sure": generator.choice(3, 500, p=[0.5, 0.3, 0.2]).astype(np.int32),
        "kind": kind.astype(np.int32),
    }
    batch = Batch(schema, values, 500)
    return schema, NaiveBayes().encoder(schema).encode(batch), values


def test_columns_with_gaps() -> None:
    schema, data, values = gaps()
    model = learned(schema, data, FREE)
    kind, seen = values["kind"], ~np.isnan(values["size"])
    gaussian = GaussianNB().fit(values["size"][seen, None], kind[seen])
    old = BernoulliNB().fit(values["old"][:, None], kind)
    gone = BernoulliNB().fit(~seen[:, None], kind)
    counts = np.array(
        [[np.sum(values["sure"][kind == k] == v) for v in range(3)] for k in range(3)]
    )
    sure = np.log((counts + 1) / (counts.sum(axis=1, keepdims=True) + 3))
    joint = np.log(np.bincount(kind) / 500) + sure.T[values["sure"]]
    joint += old.predict_joint_log_proba(values["old"][:, None]) - old.class_log_prior_
    joint += gone.predict_joint_log_proba(~seen[:, None]) - gone.class_log_prior_
    shown = np.nan_to_num(values["size"])[:, None]
    density = gaussian.predict_joint_log_proba(shown) - np.log(gaussian.class_prior_)
    joint += np.where(seen[:, None], density, 0)
    assert np.allclose(model.joint_log_likelihood(data.X), joint, atol=1e-3)
    proba = np.exp(model.predict_log_proba(data.X))
    assert np.allclose(proba.sum(axis=1), 1)
    assert np.array_equal(model.predict(data.X), joint.argmax(axis=1))


@pytest.mark.parametrize("promise", [Promise(0.01), Promise(0.01, 1e-6)])
def test_where_noise_drowns_everything_the_model_is_still_one(promise: Promise) -> None:
    schema, data, _ = gaps()
    model = learned(schema, data, promise)
    assert np.isfinite(model.joint_log_likelihood(data.X)).all()
    assert (model.variance > 0).all()
    assert np.abs(model.mean).max() <= 1


@pytest.mark.parametrize(
    ("promise", "least"), [(Promise(1.0, 1e-6), 0.825), (Promise(1.0), 0.82), (Promise(0.1), 0.75)]
)
def test_adult(promise: Promise, least: float) -> None:
    try:
        adult = load_dataset("adult")
    except DatasetError as error:
        pytest.skip(str(error))
    X, y = adult.arrays("train", interval="symmetric")
    model = learned(adult.schema, Encoded(X, y, None), promise)  # without noise: 0.831
    X, y = adult.arrays("test", interval="symmetric")
    assert np.mean(model.predict(X) == y) > least


def test_numbers_with_edges_can_be_classes() -> None:
    label = Column(name="y", type="number", edges=(0.0, 1.0), role="label")
    schema = Schema(columns=(Column(name="x", type="number", bounds=(-1, 1)), label))
    X = np.array([[-0.5], [-0.4], [0.0], [0.1], [0.6], [0.5]])
    model = learned(schema, Encoded(X, np.array([0, 0, 1, 1, 2, 2]), None), FREE)
    assert np.array_equal(model.predict(X), [0, 0, 1, 1, 2, 2])


def test_a_label_without_classes_is_refused() -> None:
    label = Column(name="y", type="number", bounds=(0, 1), role="label")
    schema = Schema(columns=(Column(name="x", type="number", bounds=(-1, 1)), label))
    with pytest.raises(SchemaError, match="needs classes"):
        NaiveBayes().init(schema, FREE)


def test_without_privacy_sums_are_exact_too() -> None:
    columns: dict[str, Any] = {f"x{i}": {"type": "number", "bounds": [-1, 1]} for i in range(4)}
    columns["y"] = {"type": "category", "categories": ["a", "b"], "role": "label"}
    program, generator = NaiveBayes(), np.random.default_rng(0)
    state = program.init(Schema.from_dict({"columns": columns}), Promise(math.inf))
    query = asked(program, state, state)
    X, y = generator.uniform(-1, 1, (500, 4)), generator.integers(0, 2, 500)
    batch = ready(program, X, y, state)
    total = decoded(record_sum(program, batch, state, query, clip=False), query)
    statistics = np.column_stack([np.ones(500), X, 1 - X**2])
    expected = np.concatenate([statistics[y == k].sum(axis=0) for k in range(2)])
    assert np.allclose(total, expected, rtol=0, atol=500 * 2.0**-30)
