"""Tables in: every source gives the same records, every fault has a place and keeps its secret."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from tacit.data import Batch, Schema, check_table, read_batches
from tacit.errors import SchemaError, TableError, UsageError

Write = Callable[..., str]

GOOD = "age,sex,income,married\n30,F,10.5,true\n150,M,-3,0\n7,,1e3,1\n"


def read(source: Any, schema: Schema, **options: Any) -> Batch:
    return Batch.concat(list(read_batches(source, schema, **options)))


def same(a: Batch, b: Batch) -> None:
    assert a.rows == b.rows
    assert a.columns.keys() == b.columns.keys()
    for name in a.columns:
        np.testing.assert_array_equal(a.columns[name], b.columns[name])


def test_records_are_typed_and_clipped(people: Schema, write: Write) -> None:
    batch = read(write(GOOD), people)
    assert batch.columns["age"].tolist() == [30, 100, 7]
    assert batch.columns["sex"].tolist() == [0, 1, 2]
    assert batch.columns["income"].tolist() == [10.5, 0, 1000]
    assert batch.columns["married"].tolist() == [1, 0, 1]


def table() -> Any:
    return pa.table(
        {
            "age": pa.array([30, 150, 7], pa.int64()),
            "sex": pa.array(["F", "M", None]),
            "income": pa.array([10.5, -3.0, 1e3]),
            "married": pa.array([True, False, True]),
        }
    )


def test_every_source_gives_the_same(people: Schema, write: Write, tmp_path: Any) -> None:
    expected = read(write(GOOD), people)
    arrow = table()
    pa.parquet.write_table(arrow, tmp_path / "t.parquet", row_group_size=2)
    pa.feather.write_feather(arrow, str(tmp_path / "t.arrow"), chunksize=2)
    with pa.ipc.new_stream(str(tmp_path / "t.stream"), arrow.schema) as stream:
        stream.write_table(arrow, max_chunksize=1)
    frame = arrow.to_pandas()
    frame.index = pd.Index([7, 8, 9])
    arrays = {
        "age": np.array([30, 150, 7]),
        "sex": ["F", "M", None],
        "income": np.array([10.5, -3, 1e3], dtype=np.float32),
        "married": np.array([True, False, True]),
    }
    sources: list[Any] = [
        tmp_path / "t.parquet",
        str(tmp_path / "t.arrow"),
        tmp_path / "t.stream",
        arrow,
        arrow.to_reader(max_chunksize=2),
        arrow.to_batches()[0],
        arrow.set_column(1, "sex", arrow["sex"].dictionary_encode()),
        frame,
        frame.astype({"sex": "category"}),
        pl.from_arrow(arrow),
        pl.from_arrow(arrow).lazy(),  # type: ignore[union-attr]
        arrays,
        arrow.select(["married", "income", "sex", "age"]),
    ]
    for source in sources:
        same(read(source, people), expected)


@pytest.mark.parametrize(
    ("name", "compress"),
    [
        ("t.csv.gz", gzip.compress),
        ("t.csv.bz2", bz2.compress),
        ("t.csv.xz", lzma.compress),
        ("t.csv.zst", lambda b: pa.compress(b, "zstd", asbytes=True)),
        ("misnamed.csv", gzip.compress),
        ("two-members.gz", lambda b: gzip.compress(b[:30]) + gzip.compress(b[30:])),
    ],
)
def test_compressed_text(
    people: Schema, write: Write, name: str, compress: Callable[[bytes], bytes]
) -> None:
    same(read(write(compress(GOOD.encode()), name), people), read(write(GOOD), people))


@pytest.mark.parametrize(
    "text",
    [
        GOOD.replace("\n", "\r\n"),
        "\ufeff" + GOOD,
        GOOD + "\n\n",
        GOOD.rstrip("\n"),
        GOOD.replace(",", " , "),
        GOOD.replace("F", '"F"').replace("age", '"age"'),
        "married,age,income,sex\ntrue,30,10.5,F\n0,150,-3,M\n1,7,+1000.,\n",
    ],
)
def test_spellings_of_the_same_text(people: Schema, write: Write, text: str) -> None:
    same(read(write(text, "a.csv"), people), read(write(GOOD, "b.csv"), people))


SECRET = "s3cr3t"
BAD = [
    (GOOD + f"1,F,{SECRET},1\n", 4, "income", "not a number"),
    (GOOD + f"1,{SECRET},1,1\n", 4, "sex", "not one of the 2"),
    (GOOD + f"1,F,1,{SECRET}\n", 4, "married", "not one of the 2"),
    (GOOD + "1,F,nan,1\n", 4, "income", "NaN"),
    (GOOD + "1,F,-inf,1\n", 4, "income", "infinite"),
    (GOOD + "1,F,1e999,1\n", 4, "income", "infinite"),
    (GOOD + "1.5,F,1,1\n", 4, "age", "whole"),
    (GOOD + ",F,1,1\n", 4, "age", "missing"),
    (GOOD + "1,F,1\n", 4, None, "3 cells, not 4"),
    (GOOD + f"1,F,1,1,{SECRET}\n", 4, None, "5 cells, not 4"),
    (GOOD.encode() + b"1,\xff\xfe,1,1\n", 4, "sex", "UTF-8"),
    (f"{SECRET},F,7,1\n", None, "age", "no column"),
    (GOOD.replace("income", "wage"), None, "income", "no column 'income'"),
    (GOOD.replace("married\n", f"married,{SECRET}\n"), None, None, "not in the schema: 5"),
    (GOOD.replace("income", "age"), None, None, "column 3 has the name"),
    ("", None, None, "empty"),
    ("\n\n", None, None, "empty"),
    ("age,sex,income,married\n", None, None, "no rows"),
    (b"PK\x03\x04....", None, None, "ZIP"),
    (b"PAR1....", None, None, "damaged"),
    (b"ARROW1....", None, None, "damaged"),
    (b"FEA1....", None, None, "version 1"),
    (GOOD + '1,"' + "1,F,1,1\n" * 700_000, None, None, "quote"),
]


@pytest.mark.parametrize(("content", "row", "column", "words"), BAD)
def test_bad_text_is_placed_without_its_value(
    people: Schema,
    write: Write,
    content: str | bytes,
    row: int | None,
    column: str | None,
    words: str,
) -> None:
    path = write(content)
    with pytest.raises(TableError) as caught:
        read(path, people)
    error = caught.value
    assert words in str(error)
    assert (error.row, error.column, error.file) == (row, column, path)
    assert SECRET not in str(error)
    assert error.remedy
    assert error.exit_code == 3


def test_a_missing_file_and_a_folder(people: Schema, tmp_path: Any) -> None:
    with pytest.raises(TableError, match=r"none\.csv: there is no such file"):
        read_batches(tmp_path / "none.csv", people)
    with pytest.raises(TableError, match="folder"):
        read_batches(tmp_path, people)


@pytest.mark.parametrize("cut", [5, 30, -1])
def test_truncated_gzip(people: Schema, write: Write, cut: int) -> None:
    path = write(gzip.compress(GOOD.encode() * 1)[:cut], "t.csv.gz")
    with pytest.raises(TableError, match=r"t\.csv\.gz.*compressed"):
        read(path, people)


def test_truncated_gzip_far_in_says_how_far(people: Schema, write: Write) -> None:
    rng = np.random.default_rng(1)
    body = "".join(f"{a},F,1,1\n" for a in rng.integers(0, 99, 1_500_000))
    whole = gzip.compress(("age,sex,income,married\n" + body).encode(), 1)
    path = write(whole[: len(whole) * 9 // 10], "t.csv.gz")
    with pytest.raises(TableError) as caught:
        read(path, people)
    assert caught.value.row is not None
    assert 0.88 < caught.value.row / 1_500_000 < 0.92


@pytest.mark.parametrize(
    ("change", "column", "words"),
    [
        ({"income": pa.array([1.0, float("nan"), 2.0])}, "income", "NaN"),
        ({"income": pa.array([1.0, float("inf"), 2.0])}, "income", "infinite"),
        ({"income": pa.array([1.0, None, 2.0])}, "income", "missing"),
        ({"income": pa.array(["1", SECRET, "2"])}, "income", "not a number"),
        ({"age": pa.array([1.0, 1.5, 2.0])}, "age", "whole"),
        ({"sex": pa.array(["F", SECRET, "M"])}, "sex", "not one of"),
        ({"sex": pa.array([1, 2, 3])}, "sex", "not one of"),
        ({"married": pa.array([0, 2, 1])}, "married", "not one of"),
        ({"income": pa.array([[1], [2], [3]])}, "income", "not a number"),
        ({"income": pa.array([0, 1, 2], pa.timestamp("s"))}, "income", "not a number"),
        ({"sex": pa.array([0, 1, 2], pa.timestamp("s"))}, "sex", "not a category"),
    ],
)
def test_bad_typed_tables(people: Schema, change: dict[str, Any], column: str, words: str) -> None:
    source = table()
    for name, values in change.items():
        source = source.set_column(source.schema.get_field_index(name), name, values)
    with pytest.raises(TableError) as caught:
        read(source, people)
    assert words in str(caught.value)
    assert caught.value.column == column
    assert SECRET not in str(caught.value)


def test_pandas_nan_is_a_missing_value(people: Schema) -> None:
    frame = table().to_pandas()
    frame.loc[1, "income"] = np.nan
    with pytest.raises(TableError, match=r"row 2, column 'income': is missing"):
        read(frame, people)


def test_other_bad_sources(people: Schema) -> None:
    frame = table().to_pandas()
    frame.columns = ["age", "sex", "age", "married"]
    with pytest.raises(TableError, match="column 3 has the name of an earlier one"):
        read(frame, people)
    with pytest.raises(TableError, match="'extra'"):
        read(table().append_column("extra", pa.array([1, 2, 3])), people)
    with pytest.raises(TableError, match="no rows"):
        read(table().slice(0, 0), people)
    with pytest.raises(TableError, match="differ in length"):
        read({"age": [1], "sex": ["F", "M"], "income": [1], "married": [True]}, people)
    with pytest.raises(TableError, match="mixed") as caught:
        read({"age": [1], "sex": ["F"], "income": [object()], "married": [True]}, people)
    assert caught.value.column == "income"
    with pytest.raises(UsageError, match="int"):
        read_batches(3, people)
    with pytest.raises(UsageError, match="batch_rows"):
        read_batches(table(), people, batch_rows=0)


def test_a_damaged_parquet_file(people: Schema, tmp_path: Any) -> None:
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(table(), path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(TableError, match=r"t\.parquet.*damaged"):
        read(path, people)


@pytest.mark.parametrize("rows", [1, 2, 3, 7, None])
def test_the_first_bad_row_is_named_for_every_size_of_batch(
    people: Schema, write: Write, rows: int | None
) -> None:
    path = write(GOOD + "1,F,1,1\n1,F,x,1\nx,F,1,1\n")
    with pytest.raises(TableError) as caught:
        read(path, people, batch_rows=rows)
    assert (caught.value.row, caught.value.column) == (5, "income")


def test_batches_cover_the_table(people: Schema, write: Write) -> None:
    path = write("age,sex,income,married\n" + "".join(f"{i},F,{i},1\n" for i in range(100)))
    batches = list(read_batches(path, people, batch_rows=7))
    assert max(b.rows for b in batches) == 7
    assert [b.first_row for b in batches] == list(range(1, 101, 7))
    assert Batch.concat(batches).columns["income"].tolist() == list(range(100))
    assert check_table(path, people) == 100


def test_missing_values_do_what_the_schema_says(write: Write) -> None:
    def column(**body: Any) -> Batch:
        schema = Schema.from_dict({"columns": {"x": body}, "file": {"missing": ["?", "NaN"]}})
        return read(write("x\n3\n?\nNaN\n5\n"), schema)

    number = {"type": "number", "bounds": [0, 10]}
    assert column(**number, when_missing="drop").columns["x"].tolist() == [3, 5]
    assert column(**number, when_missing="fill", fill=7).columns["x"].tolist() == [3, 7, 7, 5]
    kept = column(**number, when_missing="category").columns["x"]
    np.testing.assert_array_equal(kept, [3, np.nan, np.nan, 5])
    category = {"type": "category", "categories": ["3", "4", "5"]}
    assert column(**category, when_missing="fill", fill="4").columns["x"].tolist() == [0, 1, 1, 2]
    assert column(**category, when_missing="category").columns["x"].tolist() == [0, 3, 3, 2]
    person = column(type="integer", role="person", when_missing="drop")
    assert person.columns["x"].tolist() == [3, 5]


def test_booleans(write: Write) -> None:
    def values(text: str, **body: Any) -> list[int]:
        schema = Schema.from_dict({"columns": {"x": {"type": "boolean", **body}}})
        return read(write(f"x\n{text}"), schema).columns["x"].tolist()  # type: ignore[no-any-return]

    assert values("true\nFALSE\n1\n0\n") == [1, 0, 1, 0]
    assert values("J\nN\n", categories=["N", "J"]) == [1, 0]
    assert values('J\n""\n', categories=["N", "J"], when_missing="fill", fill=True) == [1, 1]
    spelt = Schema.from_dict({"columns": {"x": {"type": "boolean", "categories": ["N", "J"]}}})
    assert read({"x": np.array([True, False])}, spelt).columns["x"].tolist() == [1, 0]


def test_layouts_without_header(write: Write) -> None:
    document = {
        "columns": {
            "a": {"type": "integer", "bounds": [0, 9]},
            "b": {"type": "text", "role": "ignore"},
            "c": {"type": "category", "categories": ["<=50K"], "aliases": {"<=50K.": "<=50K"}},
        },
        "file": {"header": False, "comment": "|", "skip_rows": 1, "delimiter": ";"},
    }
    schema = Schema.from_dict(document)
    batch = read(write("garbage;;;;\n|x\n1; x; <=50K\n|y;z\n2;y;<=50K.\n"), schema)
    assert batch.columns["a"].tolist() == [1, 2]
    assert batch.columns["c"].tolist() == [0, 0]
    assert "b" not in batch.columns
    with pytest.raises(TableError) as caught:
        read(write("garbage\n1;x;<=50K\n2;y;z\n"), schema)
    assert caught.value.row == 2
    with pytest.raises(TableError, match="2 cells, but the schema has 3"):
        read(write("garbage\n1;x\n"), schema)


def test_quotes(write: Write) -> None:
    document = {"columns": {"a": {"type": "category", "categories": ['say "x"\ny', "b", '"b']}}}
    batch = read(write('a\n"say ""x""\ny"\nb\n'), Schema.from_dict(document))
    assert batch.columns["a"].tolist() == [0, 1]
    plain = Schema.from_dict({**document, "file": {"quote": ""}})
    assert read(write('a\n"b\nb\n'), plain).columns["a"].tolist() == [2, 1]


def test_extra_columns_may_be_ignored(write: Write) -> None:
    document = {"columns": {"a": {"type": "boolean"}}, "extra_columns": "ignore"}
    assert read(write("z,a\nx,1\n"), Schema.from_dict(document)).columns["a"].tolist() == [1]


def test_pandas_integers_with_gaps_are_categories(people: Schema) -> None:
    body = {"type": "category", "categories": [1, 2], "when_missing": "category"}
    schema = Schema.from_dict({"columns": {"x": body}})
    frame = pd.DataFrame({"x": [1, None, 2]})
    assert frame["x"].dtype == np.float64
    assert read(frame, schema).columns["x"].tolist() == [0, 2, 1]


def test_person_ids_keep_all_their_digits(write: Write) -> None:
    number = Schema.from_dict({"columns": {"x": {"type": "integer", "role": "person"}}})
    ids = [2**53 + 1, -(2**60) - 1]
    text = "x\n" + "".join(f"{i}\n" for i in ids)
    assert read(write(text), number).columns["x"].tolist() == ids
    assert read({"x": np.array(ids)}, number).columns["x"].tolist() == ids
    with pytest.raises(TableError, match="row 1"):
        read(write("x\n0x10\n"), number)
    with pytest.raises(TableError, match=r"row 2.*64 bits"):
        read(write(f"x\n1\n{2**63}\n"), number)
    words = Schema.from_dict({"columns": {"x": {"type": "text", "role": "person"}}})
    assert read(write("x\nann\n007\n"), words).columns["x"].tolist() == ["ann", "007"]


def test_a_draft_reads_nothing(write: Write) -> None:
    schema = Schema.from_dict({"columns": {"x": {"type": "number", "bounds": "TODO"}}})
    with pytest.raises(SchemaError, match="TODO"):
        read_batches(write("x\n1\n"), schema)
