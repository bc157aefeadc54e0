"""Records as codes, from batches and back from encoded vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.batch import Batch
from tacit.data.discrete import Discrete, codes_of_vectors, with_edges
from tacit.data.encode import Encoder
from tacit.data.schema import Column, Schema
from tacit.data.tables import read_batches
from tacit.errors import SchemaError, UsageError

LABEL = Column(name="label", type="category", role="label", categories=("no", "yes"))
COLUMNS = (
    Column(name="colour", type="category", categories=("red", "green", "blue")),
    Column(name="size", type="category", categories=("S", "L"), when_missing="category"),
    Column(name="old", type="boolean"),
    Column(name="ill", type="boolean", when_missing="category"),
    Column(name="age", type="integer", bounds=(0, 100), edges=(25, 40, 60)),
    Column(name="dose", type="number", edges=(0.5,), when_missing="category"),
)
SCHEMA = Schema(columns=(*COLUMNS, LABEL))
SIZES = (3, 3, 2, 3, 4, 3)


def batch(rows: list[dict[str, Any]]) -> Batch:
    names = [column.name for column in SCHEMA.columns]
    table = {name: [row[name] for row in rows] for name in names}
    return Batch.concat(list(read_batches(table, SCHEMA)))


def record(**values: Any) -> dict[str, Any]:
    plain = {"colour": "red", "size": "S", "old": False, "ill": False, "age": 0, "dose": 0.0}
    return {**plain, "label": "no", **values}


class TestCodes:
    def test_every_kind_of_column(self) -> None:
        rows = [
            record(),
            record(colour="blue", size="L", old=True, ill=True, age=25, dose=0.5, label="yes"),
            record(size=None, ill=None, age=59, dose=None),
            record(age=100),
        ]
        found = Discrete(SCHEMA)
        assert found.sizes == SIZES
        expected = [[0] * 6, [2, 1, 1, 1, 1, 1], [0, 2, 0, 2, 2, 2], [0, 0, 0, 0, 3, 0]]
        assert found.codes(batch(rows)).tolist() == expected
        assert found.labels(batch(rows)).tolist() == [0, 1, 0, 0]

    @given(st.lists(st.tuples(*(st.integers(0, size - 1) for size in SIZES)), min_size=1))
    def test_vectors_lead_back_to_codes(self, rows: list[tuple[int, ...]]) -> None:
        discrete = Discrete(SCHEMA)
        codes = np.array(rows)
        columns: dict[str, Any] = {
            column.name: codes[:, place].astype(np.int32) for place, column in enumerate(COLUMNS)
        }
        columns["age"] = np.array([0.0, 25.0, 40.0, 60.0])[codes[:, 4]]
        columns["dose"] = np.array([0.0, 0.5, np.nan])[codes[:, 5]]
        columns["label"] = np.zeros(len(rows), dtype=np.int32)
        made = Batch(SCHEMA, columns, len(rows))
        assert np.array_equal(discrete.codes(made), codes)
        X = Encoder(SCHEMA, interval="symmetric").encode(made).X
        assert np.array_equal(codes_of_vectors(X, discrete.sizes, discrete.open), codes)

    def test_vectors_of_another_width_are_refused(self) -> None:
        discrete = Discrete(SCHEMA)
        with pytest.raises(UsageError, match="16 coordinates"):
            codes_of_vectors(np.zeros((2, 5)), discrete.sizes, discrete.open)

    def test_another_schema_is_refused(self) -> None:
        other = Schema(columns=(COLUMNS[0], LABEL))
        with pytest.raises(UsageError, match="another schema"):
            Discrete(other).codes(batch([record()]))


class TestRefusals:
    def test_a_number_without_edges(self) -> None:
        height = Column(name="height", type="number", bounds=(0.0, 3.0))
        with pytest.raises(SchemaError, match=r"'height'.*edges"):
            Discrete(Schema(columns=(height, LABEL)))

    @pytest.mark.parametrize(
        "label",
        [
            Column(name="y", type="category", role="label", categories=("a", "b", "c")),
            Column(name="y", type="number", role="label", bounds=(0.0, 1.0)),
            Column(name="y", type="boolean"),
        ],
    )
    def test_a_label_that_is_not_binary(self, label: Column) -> None:
        with pytest.raises(SchemaError, match="two values"):
            Discrete(Schema(columns=(COLUMNS[0], label)))

    @pytest.mark.parametrize(
        "label",
        [
            Column(name="y", type="boolean", role="label"),
            Column(name="y", type="integer", role="label", edges=(50,)),
        ],
    )
    def test_labels_that_are(self, label: Column) -> None:
        assert Discrete(Schema(columns=(COLUMNS[0], label))).sizes == (3,)

    def test_no_feature(self) -> None:
        with pytest.raises(SchemaError, match="no feature"):
            Discrete(Schema(columns=(LABEL,)))


class TestEdges:
    def test_bounds_and_all_else_stay(self) -> None:
        age = Column(name="age", type="integer", bounds=(0, 100), note="years")
        cut = with_edges(Schema(columns=(age, LABEL), title="t"), {"age": [25, 40]})
        assert cut.column("age").edges == (25.0, 40.0)
        assert cut.column("age").bounds == (0, 100)
        assert (cut.title, cut.column("age").note, cut.label) == ("t", "years", LABEL)
        assert Discrete(cut).sizes == (3,)

    def test_only_numbers_are_cut(self) -> None:
        with pytest.raises(SchemaError, match="'colour'"):
            with_edges(SCHEMA, {"colour": [1.0]})
        with pytest.raises(SchemaError, match="no column 'missing'"):
            with_edges(SCHEMA, {"missing": [1.0]})

    def test_edges_outside_the_bounds_are_refused(self) -> None:
        with pytest.raises(SchemaError, match="inside the bounds"):
            with_edges(SCHEMA, {"age": [200]})
