"""Marks tell events apart, whatever the order of columns, batches and dictionaries."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tacit.personal.store.marks import marks_of, numbered, ranks

KEY = bytes(16)
values = st.lists(
    st.tuples(
        st.none() | st.floats(allow_nan=False),
        st.none() | st.text(max_size=20),
        st.none() | st.booleans(),
    ),
    max_size=20,
)


def table(rows: list[tuple[float | None, str | None, bool | None]]) -> pa.Table:
    return pa.table(
        {
            "number": pa.array([row[0] for row in rows], pa.float64()),
            "text": pa.array([row[1] for row in rows], pa.string()),
            "truth": pa.array([row[2] for row in rows], pa.bool_()),
        }
    )


@given(values)
def test_equal_rows_and_no_others_have_equal_marks(rows: list[tuple]) -> None:
    marks = marks_of(KEY, "ride", table(rows))
    by_row: dict[tuple, int] = {}
    for row, mark in zip(rows, marks, strict=True):
        number = None if row[0] is None else row[0] + 0.0
        assert by_row.setdefault((number, *row[1:]), int(mark)) == int(mark)
    assert len(set(by_row.values())) == len(by_row)


@given(values, st.integers(0, 20))
def test_chunks_dictionaries_and_order_do_not_matter(rows: list[tuple], cut: int) -> None:
    whole = table(rows)
    marks = marks_of(KEY, "ride", whole)
    pieces = pa.concat_tables([whole.slice(0, cut), whole.slice(cut)])
    assert np.array_equal(marks_of(KEY, "ride", pieces), marks)
    coded = whole.set_column(1, "text", whole["text"].combine_chunks().dictionary_encode())
    assert np.array_equal(marks_of(KEY, "ride", coded.select(["truth", "text", "number"])), marks)
    sliced = pa.concat_tables([whole, whole]).combine_chunks().slice(len(rows))
    assert np.array_equal(marks_of(KEY, "ride", sliced), marks)


def test_names_of_types_and_fields_and_the_key_matter() -> None:
    one = pa.table({"a": [1.0], "b": pa.array([None], pa.float64())})
    other = pa.table({"a": pa.array([None], pa.float64()), "b": [1.0]})
    marks = {
        int(marks_of(KEY, "ride", one)[0]),
        int(marks_of(KEY, "ride", other)[0]),
        int(marks_of(KEY, "rides", one)[0]),
        int(marks_of(b"1" * 16, "ride", one)[0]),
    }
    assert len(marks) == 4
    assert marks_of(KEY, "ride", one)[0] == marks_of(KEY, "ride", one.select(["a"]))[0]


def test_long_texts_differ_in_any_byte() -> None:
    text = "x" * 1000
    texts = [text, text + "x", text[:-1], *(text[:i] + "y" + text[i + 1 :] for i in range(1000))]
    marks = marks_of(KEY, "note", pa.table({"text": texts}))
    assert len(np.unique(marks)) == len(texts)


def test_marks_stay_what_they_are() -> None:
    """They are kept on disks: another hash would import everything a second time."""
    row = pa.table({"city": ["Zürich"], "price": [12.5], "ok": [True]})
    assert int(marks_of(KEY, "ride", row)[0]) == 13389053329511852924


@given(st.lists(st.integers(0, 4), max_size=20))
def test_equal_marks_are_ranked_in_order(numbers: list[int]) -> None:
    expected = [numbers[:place].count(number) for place, number in enumerate(numbers)]
    assert ranks(np.array(numbers, np.uint64)).tolist() == expected


def test_numbers_tell_equal_marks_apart_and_nought_changes_nothing() -> None:
    marks = np.full(1000, 7, np.uint64)
    told = numbered(marks, np.arange(1000))
    assert told[0] == 7
    assert len(np.unique(told)) == 1000
