"""The schema: what it accepts, what it refuses and why, and that it survives a file."""

from __future__ import annotations

import hashlib
import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit import children
from tacit.data import Column, Layout, Schema
from tacit.errors import SchemaError

TOML = """
title = "Patients"

[file]
header = false
missing = ["?"]

[columns.age]
type = "integer"
bounds = [0, 120]

[columns."blood group"]
type = "category"
categories = ["0", "A", "B", "AB"]
when_missing = "category"

[columns.outcome]
type = "boolean"
role = "label"
"""


def one(**column: Any) -> dict[str, Any]:
    return {"columns": {"x": column}}


def test_toml_and_json_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(TOML)
    (tmp_path / "s.json").write_text(json.dumps(tomllib.loads(TOML)))
    schema = Schema.load(tmp_path / "s.toml")
    assert schema == Schema.load(tmp_path / "s.json")
    assert [c.name for c in schema.columns] == ["age", "blood group", "outcome"]
    assert schema.column("age").bounds == (0.0, 120.0)
    assert schema.label is not None
    assert schema.label.name == "outcome"
    assert schema.file == Layout(header=False, missing=("?",))


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({}, ["no columns"]),
        ({"columns": {}}, ["no columns"]),
        ({"columns": {"x": 3}}, ["'x'", "table"]),
        (one(type="float"), ["'x'", "float"]),
        (one(type="number"), ["'x'", "bounds", "not from the data"]),
        (one(type="number", bounds=[1, 1]), ["'x'", "below"]),
        (one(type="number", bounds=[5, 1]), ["'x'", "below"]),
        (one(type="number", bounds=[0, float("inf")]), ["'x'", "finite"]),
        (one(type="number", bounds=[0, float("nan")]), ["'x'", "finite"]),
        (one(type="number", bounds=[0, 1, 2]), ["'x'", "bounds"]),
        (one(type="number", bounds="unknown"), ["'x'", "bounds"]),
        (one(type="integer", bounds=[0, 1.5]), ["'x'", "whole"]),
        (one(type="number", bounds=[0, 9], edges=[3, 3]), ["'x'", "rising"]),
        (one(type="number", bounds=[0, 9], edges=[0, 3]), ["'x'", "inside"]),
        (one(type="number", bounds=[0, 9], edges=[3, 10]), ["'x'", "inside"]),
        (one(type="number", edges=[]), ["'x'", "rising"]),
        (one(type="category"), ["'x'", "categories"]),
        (one(type="category", categories=[]), ["'x'", "categories"]),
        (one(type="category", categories=["a", "a"]), ["'x'", "different"]),
        (one(type="category", categories=["a", ""]), ["'x'", "missing"]),
        (one(type="category", categories=["a"], bounds=[0, 1]), ["'x'", "bounds"]),
        (one(type="number", bounds=[0, 1], categories=["a"]), ["'x'", "categories"]),
        (one(type="category", categories=["a"], aliases={"b": "c"}), ["'x'", "alias"]),
        (one(type="category", categories=["a"], aliases={"a": "a"}), ["'x'", "alias"]),
        (one(type="boolean", categories=["a", "b", "c"]), ["'x'", "two"]),
        (one(type="text"), ["'x'", "free text", "ignore"]),
        (one(type="number", bounds=[0, 1], role="person"), ["'x'", "person id"]),
        (one(type="text", role="person", when_missing="category"), ["'x'", "person id"]),
        (one(type="number", bounds=[0, 1], when_missing="fill"), ["'x'", "fill"]),
        (one(type="number", bounds=[0, 1], fill=0.5), ["'x'", "fill"]),
        (one(type="number", bounds=[0, 1], when_missing="fill", fill=2), ["'x'", "inside"]),
        (one(type="number", bounds=[0, 1], when_missing="fill", fill="a"), ["'x'", "number"]),
        (one(type="integer", bounds=[0, 9], when_missing="fill", fill=0.5), ["'x'", "whole"]),
        (one(type="boolean", when_missing="fill", fill="yes"), ["'x'", "true or false"]),
        (one(type="category", categories=["a"], when_missing="fill", fill="b"), ["'x'", "one of"]),
        (one(type="boolean", role="label", when_missing="category"), ["'x'", "label"]),
        (one(type="boolean", bound=[0, 1]), ["'x'", "bound", "bounds"]),
        (one(type="boolean", name="y"), ["'x'", "name"]),
        ({**one(type="boolean"), "colour": 1}, ["colour"]),
        ({**one(type="boolean"), "file": {"delimiter": ", "}}, ["delimiter"]),
        ({**one(type="boolean"), "file": {"quote": ","}}, ["quote"]),
        ({**one(type="boolean"), "file": {"skip_rows": -1}}, ["skip_rows"]),
        ({**one(type="boolean"), "extra_columns": "maybe"}, ["maybe"]),
    ],
)
def test_wrong_schemas_are_refused_by_place(document: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.from_dict(document, where="study/schema.toml")
    text = str(caught.value)
    assert text.startswith("study/schema.toml")
    for word in words:
        assert word in text
    assert caught.value.exit_code == 3


def test_only_one_label_and_one_person() -> None:
    label = {"type": "boolean", "role": "label"}
    with pytest.raises(SchemaError, match="2 columns are the label"):
        Schema.from_dict({"columns": {"a": label, "b": label}})
    column = Column(name="a", type="boolean")
    with pytest.raises(SchemaError, match="twice"):
        Schema(columns=(column, column))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("none.toml", None, "no such file"),
        ("s.toml", b"columns = [", "not valid TOML"),
        ("s.json", b"{", "not valid JSON"),
        ("s.json", b"[]", "object"),
        ("s.json", b'{"columns": {"a": {"type": "boolean"}, "a": {}}}', "twice"),
        ("s.toml", b"[columns.a]\n[columns.a]\n", "not valid TOML"),
        ("s.toml", b"\xff\xfe", "UTF-8"),
    ],
)
def test_unreadable_files_are_named(
    tmp_path: Path, name: str, content: bytes | None, words: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(SchemaError, match=words) as caught:
        Schema.load(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)


def test_a_draft_can_be_shown_but_not_used() -> None:
    draft = Schema.from_dict(
        {
            "columns": {
                "age": {"type": "integer", "bounds": "TODO"},
                "town": {"type": "category", "categories": "TODO"},
                "note": {"type": "number", "bounds": "TODO", "role": "ignore"},
            }
        }
    )
    assert draft.todo == {"age": "bounds", "town": "categories"}
    assert draft.to_toml().count("# TODO") == 3
    with pytest.raises(SchemaError, match=r"age \(bounds\), town \(categories\).*public"):
        draft.require_complete()


def test_digest_is_of_the_meaning() -> None:
    document = tomllib.loads(TOML)
    digest = Schema.from_dict(document).digest
    canonical = (
        '[{"bounds":["0.0","120.0"],"name":"age","type":"integer"},'
        '{"categories":["0","A","B","AB"],"name":"blood group","type":"category",'
        '"when_missing":"category"},{"name":"outcome","role":"label","type":"boolean"}]'
    )
    assert digest == hashlib.sha256(canonical.encode()).hexdigest()
    assert Schema.from_dict({**document, "title": "x", "file": {}}).digest == digest
    whole = {**document["columns"]["age"], "bounds": [0.0, 120.0]}
    same = {**document["columns"], "age": whole}
    assert Schema.from_dict({**document, "columns": same}).digest == digest
    for change in ({"bounds": [0, 121]}, {"bounds": [-1, 120]}, {"when_missing": "drop"}):
        other = {**document["columns"], "age": {**whole, **change}}
        assert Schema.from_dict({**document, "columns": other}).digest != digest
    backwards = dict(reversed(document["columns"].items()))
    assert Schema.from_dict({**document, "columns": backwards}).digest != digest


words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
numbers = st.floats(-1e12, 1e12)


@st.composite
def columns(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["number", "category", "boolean", "ignore"]))
    body: dict[str, Any] = {"type": "text", "role": "ignore", "note": draw(words)}
    if kind == "number":
        low, high = sorted(draw(st.lists(numbers, min_size=2, max_size=2, unique=True)))
        body = {"type": "number", "bounds": [low, high], "when_missing": "fill", "fill": low}
    elif kind == "category":
        named = draw(st.lists(words, min_size=1, max_size=5, unique=True))
        body = {"type": "category", "categories": named, "missing": []}
    elif kind == "boolean":
        body = {"type": "boolean", "when_missing": "fill", "fill": draw(st.booleans())}
    return body


@given(st.dictionaries(words, columns(), min_size=1, max_size=4), words)
def test_toml_round_trip(table: dict[str, Any], title: str) -> None:
    schema = Schema.from_dict({"title": title, "columns": table, "file": {"missing": [title]}})
    again = Schema.from_dict(tomllib.loads(schema.to_toml()))
    assert again == schema
    assert again.digest == schema.digest


def test_a_schema_needs_no_pyarrow_and_a_table_says_how_to_get_it() -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from tacit.data import Encoder, Schema, partition\n"
        "Encoder(Schema.from_dict({'columns': {'x': {'type': 'boolean'}}}))\n"
        "try:\n    from tacit.data import read_batches\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    done = children.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("UsageError")
    assert "pip install 'tacit[tables]'" in done.stdout
