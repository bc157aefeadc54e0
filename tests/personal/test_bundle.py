"""Bundles: whoever changes anything is found out, and nothing in one is ever run."""

from __future__ import annotations

import ast
import datetime
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.data.schema import Schema
from tacit.data.tables import read_batches
from tacit.errors import CheckFailed, InputError, SchemaError, TableError
from tacit.personal.dataset import Dataset
from tacit.personal.events import Event, EventType, moment
from tacit.personal.problems import bundle as bundle_module
from tacit.personal.problems.bundle import Bundle
from tacit.personal.problems.problem import Problem
from tacit.personal.problems.row import row_of, schema_of

COURSE = """
name = "pass-course"
question = "Will I pass the course?"
about = "For students."
static = ["person"]

[events.enrolled]
course = "category"

[events.click]
page = "category"

[events.result]
passed = "boolean"

[events.person]
born = "number"

[instance]
per = "user"
event = "enrolled"
where = 'course = "maths"'
cutoff = "7d"

[label]
value = "last(result.passed)"
name = "passed"
horizon = "300d"

[features]
list = ["count(click)"]
windows = ["7d"]

[columns]
clicks = "count(click, own)"
page = "mode(click.page, own)"
young = "static(person.born) > 2000"
"""
SCHEMA: dict[str, Any] = {
    "columns": {
        "page": {"type": "category", "categories": ["video", "forum"]},
        "clicks": {"type": "integer", "bounds": [0, 3]},
        "young": {"type": "boolean", "when_missing": "category"},
        "passed": {"type": "boolean", "role": "label", "categories": ["no", "yes"]},
    }
}


def key(number: int = 1) -> SigningKey:
    return SigningKey.generate(SeededRandomness(number))


def course() -> Problem:
    return Problem.from_dict(tomllib.loads(COURSE))


def signed() -> Bundle:
    return Bundle(course()).signed(key())


# ── signatures ──


def test_a_signed_bundle_reads_back_and_holds(tmp_path: Path) -> None:
    path = tmp_path / "course.toml"
    path.write_text(signed().to_toml(), encoding="utf-8")
    loaded = Bundle.load(path)
    assert loaded == signed()
    assert loaded.to_toml() == signed().to_toml()
    assert loaded.author == key().public_key
    assert loaded.digest == course().digest
    loaded.check_signature()


def test_an_unsigned_one_is_only_read(tmp_path: Path) -> None:
    path = tmp_path / "course.toml"
    path.write_text(COURSE, encoding="utf-8")
    loaded = Bundle.load(path)
    assert loaded == Bundle(course())
    with pytest.raises(CheckFailed, match="not signed"):
        loaded.check_signature()


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The place of every single value in the file."""
    if isinstance(value, dict):
        return [p for name, inner in value.items() for p in leaves(inner, (*path, name))]
    if isinstance(value, list):
        return [p for place, inner in enumerate(value) for p in leaves(inner, (*path, place))]
    return [path]


OTHER = {
    ("name",): "pass-courses",
    ("static", 0): None,
    ("instance", "per"): "group",
    ("instance", "event"): "click",
    ("instance", "where"): 'course = "music"',
    ("instance", "cutoff"): "8d",
    ("label", "value"): "first(result.passed)",
    ("label", "name"): "success",
    ("label", "horizon"): "301d",
    ("features", "list", 0): "count(result)",
    ("features", "windows", 0): "8d",
    ("columns", "clicks"): "count(click)",
    ("columns", "page"): "mode(click.page)",
    ("columns", "young"): "static(person.born) > 1990",
}


@pytest.mark.parametrize("place", leaves(tomllib.loads(signed().to_toml())), ids=str)
def test_whatever_is_changed_is_found_out(place: tuple[Any, ...]) -> None:
    """Another value at any place is either no problem at all, or does not fit the signature."""
    document = tomllib.loads(signed().to_toml())
    table = document
    for step in place[:-1]:
        table = table[step]
    old = table[place[-1]]
    last = "0" if str(old)[-1:] != "0" else "1"
    new = OTHER.get(place, str(old)[:-1] + last if place[0] == "signature" else f"{old}x")
    if place[0] == "events":
        new = {"category": "text", "boolean": "number", "number": "boolean"}[old]
    if new is None:
        table.pop(place[-1])
    else:
        table[place[-1]] = new
    assert document != tomllib.loads(signed().to_toml())
    with pytest.raises((CheckFailed, InputError)):
        Bundle.from_dict(document).check_signature()


def test_what_is_added_or_taken_away_is_found_out() -> None:
    for change in (
        lambda d: d["events"].update(other={"x": "number"}),
        lambda d: d["events"]["click"].update(x="number"),
        lambda d: d["instance"].update(lead="1h"),
        lambda d: d["features"].update(depth=2),
        lambda d: d["columns"].pop("young"),
        lambda d: d["columns"].update(clicks=d["columns"].pop("clicks")),  # moved to the end
        lambda d: d.pop("about"),
    ):
        document = tomllib.loads(signed().to_toml())
        change(document)  # type: ignore[no-untyped-call]
        with pytest.raises(CheckFailed, match="does not fit"):
            Bundle.from_dict(document).check_signature()


def test_nobody_can_put_another_name_to_it() -> None:
    mine = signed()
    with pytest.raises(CheckFailed, match="does not fit"):
        Bundle(mine.problem, key(2).public_key, mine.signature).check_signature()


@pytest.mark.parametrize(
    "signature",
    [
        {},
        {"author": "a" * 64},
        {"author": "a" * 64, "signature": "b" * 127},
        {"author": "A" * 64, "signature": "b" * 128},
        {"author": "a" * 64, "signature": "b" * 128, "name": "me"},
        "none",
        [1],
    ],
)
def test_malformed_signatures_are_refused(signature: Any) -> None:
    with pytest.raises(InputError, match="signature"):
        Bundle.from_dict({**tomllib.loads(COURSE), "signature": signature})


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 4000 + "]" * 4000,
        '[signature]\nauthor = "\\u001b[2J"\nsignature = "x"',
        COURSE + '[signature]\n"\\u001b[2J" = "x"',
        "[signature]\n" * 2,
        "# " + "x" * 100_000,
    ],
)
def test_hostile_files_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        Bundle.load(path)
    assert str(caught.value).isprintable()


def test_there_is_no_way_from_a_bundle_to_code() -> None:
    """The room never evaluates, compiles, imports by name or unpickles anything."""
    room = Path(bundle_module.__file__).parent.parent
    files = [*room.glob("*.py"), *room.glob("problems/*.py"), *room.glob("features/*.py")]
    assert len(files) > 20
    forbidden = {"eval", "exec", "compile", "__import__", "import_module", "pickle", "loads_pickle"}
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                function = node.func
                plain = function.id if isinstance(function, ast.Name) else ""
                assert plain not in forbidden, path.name
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", "") or ""}
                assert not names & {"pickle", "marshal", "importlib", "runpy", "subprocess"}


# ── in words ──


def test_a_bundle_is_explained() -> None:
    sections = {section.title: section.lines for section in signed().explained()}
    assert list(sections) == [
        "What it asks",
        "Which of your events it reads",
        "What one example is",
        "What it predicts",
        "What it predicts from",
        "What leaves your machine",
    ]
    assert sections["What it asks"] == ("Will I pass the course?", "For students.")
    assert "click, events: page (category)" in sections["Which of your events it reads"]
    assert "person, a property: born (number)" in sections["Which of your events it reads"]
    assert sections["What one example is"][:2] == (
        'You, once, where course = "maths".',
        "It begins with the first enrolled.",
    )
    assert sections["What one example is"][2].endswith("before 7d after its start is looked at.")
    assert sections["What it predicts"][0] == "passed: the last passed of result"
    assert sections["What it predicts from"] == (
        "the number of click events",
        "the number of click events since its start (column clicks)",
        "the most frequent page of click since its start (column page)",
        "born of person is more than 2000 (column young)",
    )
    assert sections["What leaves your machine"][0].startswith("Nothing")
    assert "clicks, page, young, passed" in sections["What leaves your machine"][1]


# ── the one row ──

START = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)


def events(clicks: int = 2, page: str = "video", passed: bool | None = True) -> list[Event]:
    day = datetime.timedelta(days=1)
    found = [
        Event("enrolled", START - 100 * day, {"course": "music"}),
        Event("enrolled", START, {"course": "maths"}),
        Event("person", None, {"born": 2003.0}),
        Event("click", START + 8 * day, {"page": "forum"}),  # after the cut-off
    ]
    found += [Event("click", START + day, {"page": page})] * clicks
    if passed is not None:
        found.append(Event("result", START + 200 * day, {"passed": passed}))
    return found


def data(*args: Any, **kwargs: Any) -> Dataset:
    return Dataset.of_events(course().types.values(), events(*args, **kwargs))


NOW = moment(START + datetime.timedelta(days=400))


def test_a_persons_events_become_the_row_of_a_study(tmp_path: Path) -> None:
    schema = Schema.from_dict(SCHEMA)
    batch = row_of(course(), data(), schema, NOW)
    table = tmp_path / "me.csv"
    table.write_text("clicks,page,young,passed\n2,video,true,yes\n")
    (expected,) = read_batches(table, schema)
    assert batch.rows == expected.rows == 1
    for name, values in expected.columns.items():
        assert batch.columns[name].dtype == values.dtype
        assert batch.columns[name].tolist() == values.tolist()


def test_values_are_clipped_to_public_bounds() -> None:
    batch = row_of(course(), data(clicks=50), Schema.from_dict(SCHEMA), NOW)
    assert batch.columns["clicks"].tolist() == [3.0]


def test_what_is_missing_is_as_the_schema_says() -> None:
    without = [event for event in events() if event.type != "person"]
    dataset = Dataset.of_events(course().types.values(), without)
    batch = row_of(course(), dataset, Schema.from_dict(SCHEMA), NOW)
    assert batch.columns["young"].tolist() == [2]
    with pytest.raises(TableError, match="page"):
        row_of(course(), data(clicks=0), Schema.from_dict(SCHEMA), NOW)


def test_a_value_outside_the_schema_is_refused_and_not_shown() -> None:
    with pytest.raises(TableError, match="column 'page'") as caught:
        row_of(course(), data(page="secretpage"), Schema.from_dict(SCHEMA), NOW)
    assert "secretpage" not in str(caught.value)


def changed(**columns: Any) -> Schema:
    merged = {**SCHEMA["columns"], **columns}
    return Schema.from_dict({"columns": {n: c for n, c in merged.items() if c is not None}})


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (changed(height={"type": "number", "bounds": [0, 3]}), "what fills the study's feature"),
        (changed(passed=None, success={"type": "boolean", "role": "label"}), "'success'"),
        (changed(me={"type": "text", "role": "person"}), "person"),
        (changed(page={"type": "number", "bounds": [0, 1]}), "is a category"),
        (changed(young={"type": "category", "categories": ["a"]}), "is a boolean"),
        (changed(passed={"type": "number", "role": "label", "bounds": [0, 1]}), ""),
    ],
)
def test_columns_must_be_those_that_the_problem_fills(schema: Schema, says: str) -> None:
    if not says:  # a truth is a number, too
        assert row_of(course(), data(), schema, NOW).columns["passed"].tolist() == [1.0]
        return
    with pytest.raises(InputError, match=says):
        row_of(course(), data(), schema, NOW)


def test_a_study_may_ask_for_fewer_columns_and_no_label() -> None:
    schema = Schema.from_dict({"columns": {"clicks": SCHEMA["columns"]["clicks"]}})
    batch = row_of(course(), data(passed=None), schema, NOW)
    assert {name: values.tolist() for name, values in batch.columns.items()} == {"clicks": [2.0]}


def test_whoever_has_no_result_yet_cannot_take_part() -> None:
    with pytest.raises(InputError, match="not known yet"):
        row_of(course(), data(passed=None), Schema.from_dict(SCHEMA), NOW)
    with pytest.raises(InputError, match="not known yet"):  # the horizon is not over
        row_of(course(), data(), Schema.from_dict(SCHEMA))


def test_a_person_has_one_row() -> None:
    nobody = Dataset.of_events(course().types.values(), events()[:1])
    with pytest.raises(InputError, match="makes 0 rows"):
        row_of(course(), nobody, Schema.from_dict(SCHEMA), NOW)
    document = tomllib.loads(COURSE)
    document["instance"] = {"per": "event", "event": "click"}
    document["label"] = {"value": "own.page", "name": "passed"}
    document["columns"] = {"clicks": "count(click, 1d)"}
    each = Problem.from_dict(document)
    schema = Schema.from_dict({"columns": {"clicks": SCHEMA["columns"]["clicks"]}})
    with pytest.raises(InputError, match="makes 3 rows"):
        row_of(each, data(), schema, NOW)
    assert row_of(each, data(clicks=0), schema, NOW).rows == 1


def test_a_row_that_the_study_leaves_out() -> None:
    schema = changed(page={**SCHEMA["columns"]["page"], "when_missing": "drop"})
    with pytest.raises(InputError, match="leaves such rows out"):
        row_of(course(), data(clicks=0), schema, NOW)


def test_a_draft_of_the_schema_wants_public_bounds() -> None:
    draft = schema_of(course())
    assert [(c.name, c.type, c.role) for c in draft.columns] == [
        ("clicks", "number", "feature"),
        ("page", "category", "feature"),
        ("young", "boolean", "feature"),
        ("passed", "boolean", "label"),
    ]
    assert draft.todo == {"clicks": "bounds", "page": "categories"}
    with pytest.raises(SchemaError, match="TODO"):
        row_of(course(), data(), draft, NOW)


def test_the_row_is_the_same_whatever_else_the_person_has() -> None:
    more = {**course().types, "diary": EventType(name="diary", fields={"text": "text"})}
    entry = Event("diary", START, {"text": "x"})
    dataset = Dataset.of_events(more.values(), [*events(), entry])
    one = row_of(course(), dataset, Schema.from_dict(SCHEMA), NOW)
    other = row_of(course(), data(), Schema.from_dict(SCHEMA), NOW)
    assert all(np.array_equal(one.columns[n], other.columns[n]) for n in other.columns)
