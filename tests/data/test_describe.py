"""Drafts of schemas: names and types, and nothing else of the data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from tacit.data import check_table
from tacit.data.describe import Decisions, describe
from tacit.errors import TableError, UsageError

Write = Callable[..., str]

TEXT = "age;town;wage;note;smokes\n" + "".join(
    f"{20 + i};{'Ulm' if i % 2 else 'Bonn'};{i}.5;private words {i};{i % 2}\n" for i in range(60)
)


def test_a_draft_holds_no_value_of_the_data(write: Write) -> None:
    draft = describe(write(TEXT))
    assert {c.name: c.type for c in draft.columns} == {
        "age": "integer",
        "town": "category",
        "wage": "number",
        "note": "text",
        "smokes": "boolean",
    }
    assert draft.todo == {"age": "bounds", "town": "categories", "wage": "bounds"}
    assert draft.file.delimiter == ";"
    text = draft.to_toml()
    for secret in ("79", "20", "Ulm", "Bonn", "59.5", "private"):
        assert secret not in text.replace("120", "")
    assert draft.column("note").role == "ignore"


def test_decisions_complete_it(write: Write) -> None:
    path = write(TEXT)
    decisions = Decisions(
        bounds={"age": (0, 120), "wage": (0, 50)},
        categories={"town": ["Bonn", "Ulm"]},
        label="smokes",
        person="note",
    )
    schema = describe(path, decisions=decisions)
    assert not schema.todo
    assert schema.label is not None
    assert schema.label.name == "smokes"
    assert schema.person is not None
    assert schema.person.type == "text"
    assert check_table(path, schema) == 60
    with pytest.raises(UsageError, match="no column 'agee'"):
        describe(path, decisions=Decisions(bounds={"agee": (0, 1)}))


def test_public_data_may_be_read_off(write: Write, tmp_path: Path) -> None:
    path = write(TEXT.replace("23;", "?;"))
    schema = describe(path, public_data=True)
    assert schema.bounds_from.startswith("public data")
    assert schema.column("age").bounds == (20, 79)
    assert schema.column("wage").bounds == (0.5, 59.5)
    assert schema.column("town").categories == ("Bonn", "Ulm")
    assert schema.file.missing == ("", "?")
    table = pa.table({"a": [1, 5, None], "b": ["x", "y", "x"], "c": [True, False, True]})
    for name in ("t.parquet", "t.arrow"):
        target = tmp_path / name
        if name.endswith("parquet"):
            pa.parquet.write_table(table, target)
        else:
            with pa.ipc.new_file(str(target), table.schema) as file:
                file.write_table(table)
        read = describe(str(target), public_data=True)
        assert read.column("a").bounds == (1, 5)
        assert read.column("b").categories == ("x", "y")
        assert read.column("c").type == "boolean"


@pytest.mark.parametrize(
    "text",
    ["31,Ulm\n32,Bonn\n", "Ulm,red\nBonn,red\nUlm,blue\n", "a,a\n1,2\n", "a,\n1,2\n"],
)
def test_a_record_is_not_taken_for_a_header(write: Write, text: str) -> None:
    with pytest.raises(TableError, match="looks like a record") as caught:
        describe(write(text))
    assert "Ulm" not in str(caught.value)
    draft = describe(write(text), header=False)
    assert [c.name for c in draft.columns] == ["column1", "column2"]
    assert not draft.file.header


def test_files_without_rows(write: Write) -> None:
    with pytest.raises(TableError, match="no rows"):
        describe(write("a,b\n"))
    with pytest.raises(TableError, match="empty"):
        describe(write(""))
