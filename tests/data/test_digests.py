"""What tells records apart: the same record in any file has the same digest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.data.digests import Digester, digests_of
from tacit.data.records import ArrayRecords, TableRecords
from tacit.data.schema import Schema
from tacit.data.tables import read_batches
from tacit.privacy.ledger import RecordDigests
from tacit.programs.histogram import Histogram

COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "bounds": [0, 120]},
    "weight": {"type": "number", "bounds": [0, 300], "when_missing": "category"},
    "sex": {"type": "category", "categories": ["f", "m"], "when_missing": "category"},
    "ill": {"type": "boolean", "role": "label"},
}
SCHEMA = Schema.from_dict({"columns": COLUMNS})


def rows(count: int, seed: int = 0) -> dict[str, list[Any]]:
    draw = np.random.default_rng(seed)
    return {
        "age": draw.integers(0, 120, count).tolist(),
        "weight": [None if w > 290 else w for w in (draw.random(count) * 300).tolist()],
        "sex": [(None, "f", "m")[i] for i in draw.integers(0, 3, count)],
        "ill": [bool(i) for i in draw.integers(0, 2, count)],
    }


def digests(source: Any, schema: Schema = SCHEMA, batch_rows: int = 64) -> RecordDigests:
    digester = Digester(schema)
    for batch in read_batches(source, schema, batch_rows=batch_rows):
        digester.add(batch)
    return digester.digests


def same(one: RecordDigests, other: RecordDigests) -> bool:
    told = (one.columns, one.key, one.rows, one.alone)
    equal = told == (other.columns, other.key, other.rows, other.alone)
    return equal and np.array_equal(one.digests, other.digests)


def test_format_order_and_types_make_no_difference(tmp_path: Path) -> None:
    table = pa.table(rows(300))
    before = digests(table)
    assert len(before.digests) == 300
    pa.csv.write_csv(table, tmp_path / "a.csv")
    pa.parquet.write_table(table, tmp_path / "a.parquet")
    shuffled = table.take(np.random.default_rng(1).permutation(300))
    turned = shuffled.select(["ill", "sex", "age", "weight"])
    typed = turned.set_column(2, "age", turned["age"].cast(pa.float64()))
    categories = turned.set_column(1, "sex", turned["sex"].dictionary_encode())
    for source in (tmp_path / "a.csv", tmp_path / "a.parquet", shuffled, turned, typed, categories):
        assert same(digests(source), before)
    assert same(digests(table, batch_rows=7), before)


def test_spellings_notes_and_order_in_the_schema_make_no_difference() -> None:
    columns = {
        "ill": {"type": "boolean", "role": "label", "categories": ["no", "yes"]},
        "sex": {
            "type": "category",
            "categories": ["m", "f"],
            "aliases": {"female": "f"},
            "when_missing": "category",
        },
        "weight": {"type": "number", "bounds": [-1, 500], "when_missing": "category"},
        "age": {"type": "integer", "bounds": [0, 150], "note": "in years"},
    }
    spelt = rows(300)
    spelt["ill"] = ["yes" if ill else "no" for ill in spelt["ill"]]
    spelt["sex"] = ["female" if sex == "f" else sex for sex in spelt["sex"]]
    other = digests(pa.table(spelt), Schema.from_dict({"columns": columns}))
    assert same(other, digests(pa.table(rows(300))))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_records_are_equal_if_and_only_if_their_digests_are(data: st.DataObject) -> None:
    value = {
        "age": st.integers(0, 3),
        "weight": st.sampled_from([None, 0.0, -0.0, 1.5]),
        "sex": st.sampled_from([None, "f", "m"]),
        "ill": st.booleans(),
    }
    found = data.draw(st.lists(st.fixed_dictionaries(value), min_size=1, max_size=60))
    table = pa.table({name: [row[name] for row in found] for name in value}, schema=ARROW)
    different = {tuple(row[name] for name in value) for row in found}
    assert len(digests(table).digests) == len(different)


ARROW = pa.schema(
    [("age", pa.int64()), ("weight", pa.float64()), ("sex", pa.string()), ("ill", pa.bool_())]
)


def with_person(kind: str) -> Schema:
    return Schema.from_dict({"columns": {**COLUMNS, "who": {"type": kind, "role": "person"}}})


def test_the_person_is_what_counts_where_there_is_one(tmp_path: Path) -> None:
    who = [i % 50 for i in range(200)]
    first = pa.table({**rows(200, seed=1), "who": who})
    second = pa.table({"who": [str(i) for i in reversed(who)], **rows(200, seed=2)})
    assert same(digests(first, with_person("integer")), digests(second, with_person("integer")))
    assert same(digests(first, with_person("text")), digests(second, with_person("text")))
    assert len(digests(first, with_person("integer")).digests) == 50


IDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Z"]), min_size=1)


@settings(max_examples=40, deadline=None)
@given(st.lists(IDS | IDS.map(lambda t: t * 80), min_size=1, max_size=20))
def test_texts_are_equal_if_and_only_if_their_digests_are(ids: list[str]) -> None:
    table = pa.table({**rows(len(ids)), "who": ids})
    known = len({name for name in ids if name})
    assert len(digests(table, with_person("text")).digests) == known


def test_an_id_is_the_same_however_its_column_is_called_and_typed() -> None:
    """Also in an array, in composed and decomposed form, and with blanks at its ends."""
    from tacit.data.digests import digests_of_arrays

    def of(ids: list[Any], kind: str, name: str = "who") -> RecordDigests:
        columns = {**COLUMNS, name: {"type": kind, "role": "person"}}
        return digests(
            pa.table({**rows(len(ids)), name: ids}), Schema.from_dict({"columns": columns})
        )

    first = of(["007", "-3", "12345678901234567"], "integer")
    for other in (
        of([7, -3, 12345678901234567], "integer", "patient"),
        of(["7", "-003", "+12345678901234567"], "text"),
        digests_of_arrays(np.zeros((3, 1)), person=np.array([-3, 7, 12345678901234567])),
        digests_of_arrays(np.zeros((3, 1)), person=np.array(["7", "-3 ", " 12345678901234567"])),
    ):
        assert same(first, other)
    composed, decomposed = "Zo\u00eb", "Zoe\u0308"
    assert same(of([composed], "text"), of([f" {decomposed} "], "text"))
    assert not same(of(["ann"], "text"), of(["Ann"], "text"))


def test_bounds_and_fillings_are_a_studys_and_not_the_records() -> None:
    table = pa.table(rows(300))
    tight = {
        **COLUMNS,
        "age": {"type": "number", "bounds": [40, 41]},
        "weight": {**COLUMNS["weight"], "bounds": [50, 60], "when_missing": "fill", "fill": 55.0},
        "sex": {**COLUMNS["sex"], "when_missing": "fill", "fill": "m"},
    }
    assert same(digests(table, Schema.from_dict({"columns": tight})), digests(table))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1e30, 1e30) | st.integers(-(2**24), 2**24), min_size=1, max_size=50))
def test_single_precision_is_the_same_record(values: list[float]) -> None:
    from tacit.data.digests import digests_of_arrays

    double = np.array(values, dtype=np.float64)[:, None]
    single = double.astype(np.float32)
    assert same(digests_of_arrays(double), digests_of_arrays(single.astype(np.float64)))


def test_six_digits_are_nearly_always_enough() -> None:
    from tacit.data.digests import digests_of_arrays

    draw = np.random.default_rng(0).normal(size=(5000, 1)) * 10.0 ** np.arange(-2, 3)
    for column in draw.T:
        printed = np.array([float(f"{value:.6g}") for value in column])
        one, other = (digests_of_arrays(c[:, None]).digests for c in (column, printed))
        assert len(np.intersect1d(one, other)) > 0.9 * len(one)


def test_whole_numbers_stay_apart() -> None:
    from tacit.data.digests import digests_of_arrays

    numbers = np.arange(2.0**24 - 5000, 2.0**24)[:, None]
    assert len(digests_of_arrays(numbers).digests) == 5000


@pytest.mark.parametrize("value", [1e300, -1e300, 1e-300, 5e-324, 3.5e38, 1e-45, 0.0])
def test_numbers_of_any_size_have_a_digest(value: float) -> None:
    from tacit.data.digests import digests_of_arrays

    with np.errstate(all="raise"):
        assert len(digests_of_arrays(np.array([[value], [1.5]])).digests) == 2


def test_a_program_about_to_be_run_on_a_table_or_an_array(tmp_path: Path) -> None:
    table = pa.table(rows(100))
    encoder = Histogram().encoder(SCHEMA)
    assert same(digests_of(TableRecords(table, encoder)), digests(table))
    array = np.random.default_rng(3).normal(size=(50, 3))
    first = digests_of(ArrayRecords(array, array[:, 0] > 0))
    assert same(digests_of(ArrayRecords(array[::-1], array[::-1, 0] > 0)), first)
    assert same(digests_of(Batches(ArrayRecords(array, array[:, 0] > 0))), first)


class Batches:
    """Records of another kind."""

    def __init__(self, records: ArrayRecords) -> None:
        self.batches = records.batches


def test_minus_zero_is_zero_and_a_class_is_its_name() -> None:
    from tacit.data.digests import digests_of_arrays

    first = digests_of_arrays(np.array([[0.0], [1.0]]), np.array([0, 1]), classes=["a", "b"])
    other = digests_of_arrays(np.array([[-0.0], [1.0]]), np.array([1, 2]), classes=["x", "a", "b"])
    assert same(first, other)


def test_an_empty_batch_adds_nothing() -> None:
    schema = Schema.from_dict(
        {"columns": {"x": {"type": "number", "bounds": [0, 1], "when_missing": "drop"}}}
    )
    table = pa.table({"x": [None, None, 0.5]})
    assert len(digests(table, schema, batch_rows=2).digests) == 1


@pytest.mark.parametrize("name", ["x" * 64, "x" * 65, "é" * 32, "é" * 33])
def test_long_ids_have_digests_of_their_own(name: str) -> None:
    table = pa.table({**rows(3), "who": [name, name + "y", name]})
    assert len(digests(table, with_person("text")).digests) == 2
