"""A model file says by itself what it is."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.channels.central import Central
from tacit.crypto.prg import SeededRandomness
from tacit.data import Batch, Column, Layout, Schema, read_batches
from tacit.data.records import TableRecords
from tacit.errors import InputError, Refused, UsageError
from tacit.privacy import Promise
from tacit.programs.files import about_of, load, to_bytes
from tacit.programs.linear import LinearModel, LinearRegression
from tacit.programs.logistic import Logistic
from tacit.programs.model_file import (
    SavedModel,
    load_model,
    model_bytes,
    model_from_bytes,
    save_model,
)

SCHEMA = Schema(
    title="a study",
    bounds_from="common sense",
    extra_columns="ignore",
    file=Layout(delimiter=";", missing=("", "?")),
    columns=(
        Column(name="z", type="number", bounds=(0, 10), when_missing="fill", fill=1.5, note="ü"),
        Column(name="who", type="text", role="person"),
        Column(name="group", type="category", categories=("b", "a"), aliases={"B": "b"}),
        Column(name="a", type="integer", edges=(1, 3), bounds=(0, 9), when_missing="category"),
        Column(name="y", type="number", bounds=(-5, 5), role="label"),
    ),
)
GENERATOR = np.random.default_rng(5)
TABLE = {
    "z": GENERATOR.uniform(0, 10, 200),
    "who": [f"p{i}" for i in range(200)],
    "group": GENERATOR.choice(["a", "b", "B"], 200),
    "a": GENERATOR.integers(0, 9, 200),
    "y": GENERATOR.normal(0, 2, 200),
}
PROGRAM = LinearRegression(fit_intercept=False)


def learned() -> LinearModel:
    records = TableRecords(TABLE, PROGRAM.encoder(SCHEMA))
    channel = Central(randomness=SeededRandomness(3))
    return channel.run(PROGRAM, records, SCHEMA, Promise(1.0, 1e-6)).model


MODEL = learned()
DATA = model_bytes(MODEL, PROGRAM, SCHEMA)


def test_everything_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_model(path, MODEL, PROGRAM, SCHEMA)
    assert path.read_bytes() == DATA
    saved = load_model(path)
    assert isinstance(saved, SavedModel)
    assert saved.schema == SCHEMA
    assert [c.name for c in saved.schema.columns] == ["z", "who", "group", "a", "y"]
    assert type(saved.program) is LinearRegression
    assert saved.program.settings() == {"fit_intercept": False}
    assert to_bytes(saved.model) == to_bytes(MODEL)
    assert model_bytes(saved.model, saved.program, saved.schema) == DATA


def test_it_is_still_the_file_of_a_model(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(DATA)
    assert load(LinearModel, tmp_path / "m").intercept == MODEL.intercept


def test_records_are_encoded_as_in_training() -> None:
    saved = model_from_bytes(DATA)
    batch = Batch.concat(list(read_batches(TABLE, saved.schema)))
    theirs = PROGRAM.encoder(SCHEMA).encode(Batch.concat(list(read_batches(TABLE, SCHEMA))))
    X = saved.encoder.encode(batch).X
    assert np.array_equal(X, theirs.X)
    said = saved.predict(X)
    assert said is not None
    assert np.array_equal(said.values, MODEL.predict(theirs.X))


def test_a_model_of_another_program_is_not_written() -> None:
    with pytest.raises(UsageError, match="LinearModel is not a model of program 'logistic'"):
        model_bytes(MODEL, Logistic(), SCHEMA)


def changed(**entries: Any) -> bytes:
    about = {**about_of(DATA), **entries}
    return to_bytes(MODEL, {k: v for k, v in about.items() if v is not ...})


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({"program": ...}, "does not say its program"),
        ({"program": ["os"]}, "damaged"),
        ({"version": "1"}, "damaged"),
        ({"version": True}, "damaged"),
        ({"settings": None}, "damaged"),
        ({"settings": {"x": 1}}, "no setting 'x'"),
        ({"settings": {"fit_intercept": "yes"}}, "true or false"),
        ({"schema": ...}, "does not say its schema"),
        ({"schema": []}, "damaged"),
        ({"schema": {}}, "no columns"),
        ({"schema": {"columns": {"x": {"type": "number"}}}}, "public bounds"),
        ({"program": "pca", "settings": {}}, "'LinearModel', not a PCAModel"),
    ],
)
def test_what_is_damaged(entries: dict[str, Any], says: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(changed(**entries))
    with pytest.raises(InputError, match=says) as refusal:
        load_model(path)
    assert str(path) in str(refusal.value)


def test_what_is_not_installed_or_not_there(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="'of-another' is not installed here"):
        model_from_bytes(changed(program="of-another"))
    with pytest.raises(Refused, match="version 9"):
        model_from_bytes(changed(version=9))
    with pytest.raises(InputError, match="without its program and schema"):
        model_from_bytes(to_bytes(MODEL))
    with pytest.raises(InputError, match="cannot be read"):
        load_model(tmp_path / "nothing")


@given(st.integers(0, len(DATA) - 1), st.integers(1, 255))
def test_flipped_bytes(place: int, mask: int) -> None:
    damaged = DATA[:place] + bytes([DATA[place] ^ mask]) + DATA[place + 1 :]
    with suppress(InputError, Refused):
        model_from_bytes(damaged)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "bounds", "categories", "aliases", "edges", "fill", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


@given(
    st.sampled_from(["title", "file", "extra_columns", "columns"]),
    st.sampled_from([c.name for c in SCHEMA.columns]),
    st.sampled_from(["type", "role", "bounds", "categories", "aliases", "edges", "fill"]),
    JSON,
)
def test_other_schemas(head: str, column: str, field: str, value: Any) -> None:
    for key in (head, None):
        schema = json.loads(json.dumps(about_of(DATA)["schema"]))
        if key is None:
            schema["columns"][column][field] = value
        else:
            schema[key] = value
        with suppress(InputError, Refused):
            model_from_bytes(changed(schema=schema))
