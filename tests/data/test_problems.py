"""Every fault of a table in one reading, where reading for a study stops at the first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tacit.data.problems import TableReport, table_problems
from tacit.data.schema import Schema
from tacit.data.tables import check_table
from tacit.errors import TableError

SCHEMA = Schema.from_dict(
    {
        "columns": {
            "age": {"type": "integer", "bounds": [0, 120]},
            "score": {"type": "number", "bounds": [0, 1], "when_missing": "drop"},
            "ward": {"type": "category", "categories": ["a", "b"]},
            "ill": {"type": "boolean", "role": "label"},
        }
    }
)
HEAD = "age,score,ward,ill\n"


def report(tmp_path: Path, text: str, schema: Schema = SCHEMA) -> TableReport:
    path = tmp_path / "table.csv"
    path.write_text(text)
    return table_problems(path, schema)


def found(report: TableReport) -> list[tuple[str | None, str, int | None, int]]:
    return [(p.column, p.problem, p.row, p.count) for p in report.problems]


def test_a_good_table_has_no_problems(tmp_path: Path) -> None:
    good = report(tmp_path, HEAD + "40,0.5,a,true\n41,,b,false\n")
    assert good.problems == []
    assert (good.rows, good.records) == (2, 1)  # one lacks what is dropped if missing


def test_all_kinds_of_all_columns_are_listed(tmp_path: Path) -> None:
    rows = [
        "40,0.5,a,true",
        "forty,0.5,c,true",
        "41.5,nan,a,perhaps",
        "inf,0.5,c,true",
        ",0.5,,true",
        "forty,x,a,true",
    ]
    listed = report(tmp_path, HEAD + "\n".join(rows) + "\n")
    assert sorted(found(listed), key=str) == sorted(
        [
            ("age", "is missing.", 5, 1),
            ("age", "is not a number.", 2, 3),  # beside words, "inf" is one
            ("age", "is not a whole number.", 3, 1),
            ("score", "is not a number.", 3, 2),
            ("ward", "is missing.", 5, 1),
            ("ward", "is not one of the 2 values in the schema.", 2, 2),
            ("ill", "is not one of the 2 values in the schema.", 3, 1),
        ],
        key=str,
    )
    assert listed.rows == 6


def test_rows_of_other_lengths_do_not_hide_the_rest(tmp_path: Path) -> None:
    rows = ["40,0.5,a,true", "1,2", "41,0.5,a,true", "1,2,3,4,5", "x,0.5,a,true"]
    listed = report(tmp_path, HEAD + "\n".join(rows) + "\n")
    assert found(listed) == [
        (None, "has 2 cells, not 4.", 2, 2),
        ("age", "is not a number.", 5, 1),
    ]
    assert listed.rows == 5


def test_absent_and_unknown_columns_do_not_hide_cells(tmp_path: Path) -> None:
    listed = report(tmp_path, "age,ward,extra\nx,a,1\n40,c,1\n")
    problems = [p for _, p, _, _ in found(listed)]
    assert problems[0] == "has no column 'score', 'ill'."
    assert "1 column(s) are not in the schema" in problems[1]
    assert found(listed)[2:] == [
        ("age", "is not a number.", 1, 1),
        ("ward", "is not one of the 2 values in the schema.", 2, 1),
    ]


def test_counts_go_on_over_batches(tmp_path: Path) -> None:
    rows = np.where(np.arange(200_000) % 50_000 == 7, "bad,0.5,a,true", "40,0.5,a,true")
    listed = report(tmp_path, HEAD + "\n".join(rows) + "\n")
    assert found(listed) == [("age", "is not a number.", 8, 4)]


@pytest.mark.parametrize("text", ["", HEAD])
def test_nothing_to_read_is_a_problem(tmp_path: Path, text: str) -> None:
    assert len(report(tmp_path, text).problems) == 1


def test_no_value_is_shown(tmp_path: Path) -> None:
    listed = report(tmp_path, HEAD + "secret1,secret2,secret3,secret4\n" * 3)
    assert len(listed.problems) == 4
    assert "secret" not in " ".join(map(str, listed.problems)) + str(listed.to_dict())


def test_a_missing_file_is_a_problem(tmp_path: Path) -> None:
    (problem,) = table_problems(tmp_path / "none.csv", SCHEMA).problems
    assert problem.problem == "there is no such file."


@pytest.mark.parametrize("seed", range(30))
def test_the_first_problem_is_what_reading_stops_at(tmp_path: Path, seed: int) -> None:
    """A table has problems if and only if it cannot be read, and that one is among them."""
    chance = np.random.default_rng(seed)
    cells = [["40", "41", "x", ""], ["0.5", "", "nan"], ["a", "b", "c"], ["true", "false", "?"]]
    weights = [[0.9, 0.08, 0.01, 0.01], [0.9, 0.09, 0.01], [0.5, 0.49, 0.01], [0.5, 0.49, 0.01]]
    rows = [
        ",".join(chance.choice(c, p=w) for c, w in zip(cells, weights, strict=True))
        for _ in range(30)
    ]
    listed = report(tmp_path, HEAD + "\n".join(rows) + "\n")
    places = {(p.row, p.column) for p in listed.problems}
    if not places:
        assert check_table(tmp_path / "table.csv", SCHEMA) == listed.records
        return
    with pytest.raises(TableError) as raised:
        check_table(tmp_path / "table.csv", SCHEMA)
    assert (raised.value.row, raised.value.column) in places
