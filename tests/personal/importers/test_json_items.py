from __future__ import annotations

import io
import json
import tracemalloc
from typing import Any
from zoneinfo import ZoneInfo

import ijson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.personal.importers.export import Member
from tacit.personal.importers.importer import Reading
from tacit.personal.importers.json_items import DEEPEST, LARGEST, items, lines, records
from tacit.personal.importers.json_values import Unreadable, needed


def member(content: bytes) -> Member:
    return Member("a.json", len(content), lambda: io.BytesIO(content))


def found(content: bytes, *prefixes: str) -> tuple[list[tuple[str, Any]], list[str]]:
    reading = Reading(ZoneInfo("UTC"), skip_damaged=True)
    return list(items(member(content), reading, *prefixes)), reading.places


def found_lines(content: bytes) -> tuple[list[tuple[str, Any]], list[str]]:
    reading = Reading(ZoneInfo("UTC"), skip_damaged=True)
    return list(lines(member(content), reading)), reading.places


@pytest.fixture(params=["yajl2_c", "python"])
def _backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        backend = ijson.get_backend(request.param)
    except ImportError:
        pytest.skip("this machine has no fast backend")
    monkeypatch.setattr(ijson, "basic_parse", backend.basic_parse)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc."), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.text("abc", max_size=2), VALUES, max_size=3), max_size=4))
def test_items_are_what_the_standard_library_reads(objects: list[dict[str, object]]) -> None:
    given, places = found(json.dumps(objects).encode(), "item")
    assert [item for _, item in given] == objects
    assert [place for place, _ in given] == [f"a.json, item {i + 1}" for i in range(len(objects))]
    assert not places


@pytest.mark.usefixtures("_backend")
def test_lists_under_keys_in_order_of_the_file() -> None:
    content = b"""\xef\xbb\xbf{"other": [{"no": 0}], "deep": {"points": [{"no": 1}]},
        "points": [{"a": 1.5}, {"a": "\xc3\xa4"}], "more": [[{"no": 2}]], "paths": [{"b": {}}]}"""
    given, places = found(content, "paths.item", "points.item")
    assert given == [
        ("a.json, points item 1", {"a": 1.5}),
        ("a.json, points item 2", {"a": "ä"}),
        ("a.json, paths item 1", {"b": {}}),
    ]
    assert not places


@pytest.mark.usefixtures("_backend")
def test_lists_within_lists() -> None:
    content = b'[{"inner": [{"a": 1}]}, {"inner": [{"a": 2}, {"a": 3}]}]'
    given, _ = found(content, "item.inner.item")
    assert given == [(f"a.json, inner item {i}", {"a": i}) for i in (1, 2, 3)]


@pytest.mark.usefixtures("_backend")
@pytest.mark.parametrize(
    ("content", "good", "place"),
    [
        (b"", 0, "item 1"),
        (b"[", 0, "item 1"),
        (b'[{"a": 1}', 1, "item 2"),
        (b'[{"a": 1}, {"a"', 1, "item 2"),
        (b'[{"a": 1}, {"a": [1, ', 1, "item 2"),
        (b'[{"a": 1}, {"a": nope}, {"a": 3}]', 1, "item 2"),
        (b'[{"a": 1}, {"a": 1e999}]', 1, "item 2"),
        (b'[{"a": 1}] and more', 1, "item 2"),
        (b'[{"a": 1}, {"a": ' + b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1) + b"}]", 1, "item 2"),
    ],
)
def test_the_item_where_it_breaks_off_is_damaged(content: bytes, good: int, place: str) -> None:
    given, places = found(content, "item")
    assert len(given) == good
    assert [said.split(": ")[0] for said in places] == [f"a.json, {place}"]


@pytest.mark.usefixtures("_backend")
def test_broken_encoding_is_damage() -> None:
    given, places = found(b'[{"a": 1}, {"a": "\xff"}, {"a": 3}]', "item")
    assert given in ([], [("a.json, item 1", {"a": 1})])  # the pure backend decodes block by block
    assert len(places) == 1


@pytest.mark.usefixtures("_backend")
def test_what_is_no_object_is_damaged_and_the_rest_is_read() -> None:
    given, places = found(b'[1, {"a": 1}, null, [{"a": 2}], "x", {"a": 3}]', "item")
    assert given == [("a.json, item 2", {"a": 1}), ("a.json, item 6", {"a": 3})]
    assert places == [f"a.json, item {i}: is no object." for i in (1, 3, 4, 5)]


def test_damage_is_an_error_unless_skipping_was_asked_for() -> None:
    with pytest.raises(InputError, match="item 2"):
        list(items(member(b'[{"a": 1}, 2]'), Reading(ZoneInfo("UTC")), "item"))


@pytest.mark.parametrize(
    "content",
    [
        b'[{"a": 1}, {"a": "' + b"x" * (2 * LARGEST) + b'"}]',
        b'[{"a": 1}, {"a": [' + b"1," * LARGEST + b"1]}]",
        b'[{"a": 1}, ' + b" " * (2 * LARGEST) + b'{"a": 1}]',
    ],
)
def test_items_beyond_reason_are_damaged(content: bytes) -> None:
    given, places = found(content, "item")
    assert len(given) == 1
    assert places == ["a.json, item 2: is larger than 2 MB."]


def test_what_lies_between_may_be_of_any_size() -> None:
    content = b'{"skip": [' + b'{"b": 1},' * (LARGEST // 6) + b'{}], "a": [{"c": 1}]}'
    assert found(content, "a.item") == ([("a.json, a item 1", {"c": 1})], [])


@pytest.mark.usefixtures("_backend")
def test_memory_is_bounded() -> None:
    content = b"[" + b'{"a": "text", "b": [1, 2, 3]},' * 20_000 + b"{}]"
    tracemalloc.start()
    assert sum(1 for _ in items(member(content), Reading(ZoneInfo("UTC")), "item")) == 20_001
    assert tracemalloc.get_traced_memory()[1] < 3_000_000  # read at once, they take 9 MB
    tracemalloc.stop()


def test_lines_each_stand_alone() -> None:
    content = b'\xef\xbb\xbf{"a": 1}\n\n[2]\n{"a": "\xff"}\r\n{"a": "\\ud800"}\n{"a": 6}\n{"a": 7'
    given, places = found_lines(content)
    assert given == [("a.json, line 1", {"a": 1}), ("a.json, line 6", {"a": 6})]
    assert [said.split(":")[0] for said in places] == [f"a.json, line {i}" for i in (3, 4, 5, 7)]


def test_a_line_beyond_reason_is_damaged_and_the_next_is_read() -> None:
    content = b'{"a": "' + b"x" * (3 * LARGEST) + b'"}\n{"a": 2}\n' + b"[" * 100_000
    given, places = found_lines(content)
    assert given == [("a.json, line 2", {"a": 2})]
    assert [said.split(":")[0] for said in places] == ["a.json, line 1", "a.json, line 3"]


def test_what_a_converter_cannot_read_is_damaged() -> None:
    def convert(item: Any, place: str) -> list[Any]:
        return [(needed(item.get("a"), "a"), place)]

    reading = Reading(ZoneInfo("UTC"), skip_damaged=True)
    objects = iter([("one", {"a": 1}), ("two", {"b": 2}), ("three", {"a": 3})])
    made = list(records(objects, convert, reading))
    assert made == [(1, "one"), (3, "three")]
    assert reading.places == ["two: `a` is missing."]
    with pytest.raises(Unreadable):
        needed(None, "a")
