"""Partitions: disjoint, covering, repeatable."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data import Schema, partition
from tacit.errors import UsageError


@given(st.integers(1, 200), st.integers(1, 20), st.integers(0, 9))
def test_even_parts_cover(rows: int, holders: int, seed: int) -> None:
    data = np.arange(rows)
    if holders > rows:
        with pytest.raises(UsageError, match="holders"):
            partition(data, holders)
        return
    parts = partition(data, holders, seed=seed)
    assert len(parts) == holders
    assert sorted(np.concatenate(parts)) == data.tolist()
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_parts_are_random_but_repeatable() -> None:
    data = np.arange(1000)
    first, again, other = (partition(data, 4, seed=s)[0].tolist() for s in (1, 1, 2))
    assert first == again
    assert first != other
    assert first != list(range(250))


def test_sizes() -> None:
    X, y = np.arange(20).reshape(10, 2), np.arange(10)
    parts = partition((X, y), how=[7, 1, 2])
    assert [len(part[1]) for part in parts] == [7, 1, 2]
    for part_X, part_y in parts:
        np.testing.assert_array_equal(part_X[:, 0], 2 * part_y)
    for wrong in ([5, 4], [10, 0], [11, -1], [5.5, 4.5]):
        with pytest.raises(UsageError, match="sizes"):
            partition(y, how=wrong)
    with pytest.raises(UsageError, match="2 sizes were given for 3"):
        partition(y, 3, [5, 5])


TABLE = pa.table({"site": ["b", "a", "c", "a", "a", None], "n": [0, 1, 2, 3, 4, 5]})


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars"])
def test_by_column(kind: str) -> None:
    data: Any = {"arrow": TABLE, "pandas": TABLE.to_pandas(), "polars": pl.from_arrow(TABLE)}[kind]
    parts = partition(data, how="column:site")
    assert all(type(part) is type(data) for part in parts)
    assert sorted([list(np.asarray(part["n"])) for part in parts]) == [[0], [1, 3, 4], [2], [5]]
    two = partition(data, 2, "column:site")
    assert sorted(list(np.asarray(part["n"])) for part in two) == [[0, 2, 5], [1, 3, 4]]
    with pytest.raises(UsageError, match="cannot serve 5"):
        partition(data, 5, "column:site")
    with pytest.raises(UsageError, match="no column 'town'"):
        partition(data, how="column:town")


def test_dirichlet_makes_holders_unlike() -> None:
    y = np.repeat(np.arange(4), 500)
    data = (np.arange(2000), y)

    def skew(alpha: float) -> float:
        parts = partition(data, 5, "dirichlet", alpha=alpha, seed=3)
        assert sorted(np.concatenate([p[0] for p in parts])) == list(range(2000))
        shares = [np.bincount(p[1], minlength=4) / len(p[1]) for p in parts]
        return float(np.std(shares, axis=0).mean())

    assert skew(0.1) > 3 * skew(10) > 3 * skew(1000)
    least = partition(data, 5, "dirichlet", alpha=0.5, least=50)
    assert min(len(p[1]) for p in least) >= 50


def test_dirichlet_by_column_and_by_dataset() -> None:
    frame = pd.DataFrame({"y": [0, 1] * 50, "n": range(100)})
    parts = partition(frame, 3, "dirichlet", label="y")
    assert sorted(pd.concat(parts)["n"]) == list(range(100))
    label = {"y": {"type": "boolean", "role": "label"}, "n": {"type": "boolean"}}
    dataset = SimpleNamespace(
        train=pa.Table.from_pandas(frame), schema=Schema.from_dict({"columns": label})
    )
    again = partition(dataset, 3, "dirichlet")
    assert [p.num_rows for p in again] == [len(p) for p in parts]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"how": "odd", "holders": 2}, "how must be"),
        ({"how": "even"}, "how many"),
        ({"holders": 0}, "holders"),
        ({"holders": 2.5}, "holders"),
        ({"holders": 2, "how": "dirichlet"}, "needs label"),
        ({"holders": 2, "how": "dirichlet", "label": [1]}, "one value for each"),
        ({"holders": 2, "how": "dirichlet", "label": [1] * 10, "alpha": 0.0}, "alpha"),
        ({"holders": 2, "how": "dirichlet", "label": [1] * 10, "least": 6}, "cannot give"),
        ({"how": "column:x"}, "only a table"),
    ],
)
def test_wrong_calls(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        partition(np.arange(10), **options)


def test_wrong_data() -> None:
    with pytest.raises(UsageError, match="differ in length"):
        partition((np.arange(3), np.arange(4)), 2)
    with pytest.raises(UsageError, match="no records"):
        partition(np.arange(0), 1)
    with pytest.raises(UsageError, match="must be a table"):
        partition(5, 1)
