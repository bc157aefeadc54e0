"""Records in memory: what cannot be learned from is refused before anything is read or paid for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.records import ArrayRecords, whole
from tacit.errors import InputError, UsageError

BAD = st.sampled_from([math.nan, math.inf, -math.inf])
REFUSAL = "^a value is NaN or infinite: treat missing values in the schema.$"


@given(bad=BAD, row=st.integers(0, 9), column=st.integers(0, 2), kind=st.sampled_from("fd"))
def test_a_value_that_is_not_finite_is_refused(
    bad: float, row: int, column: int, kind: str
) -> None:
    X = np.zeros((10, 3), dtype=kind)
    ArrayRecords(X)
    X[row, column] = bad
    with pytest.raises(InputError, match=REFUSAL):
        ArrayRecords(X)


@given(bad=BAD, row=st.integers(0, 9))
def test_a_label_that_is_not_finite_is_refused(bad: float, row: int) -> None:
    y = np.zeros(10)
    ArrayRecords(np.zeros((10, 1)), y)
    y[row] = bad
    with pytest.raises(InputError, match=REFUSAL):
        ArrayRecords(np.zeros((10, 1)), y)


@pytest.mark.parametrize("y", [[0, 1], [True, False], ["a", "b"], [2**62, -(2**62)]])
def test_labels_that_are_no_floats_are_left_alone(y: list[Any]) -> None:
    records = ArrayRecords(np.eye(2), np.array(y), np.array(["p", "q"]), rows=1)
    found = whole(records)
    assert found.y is not None
    assert found.y.tolist() == y


def test_no_records_are_refused() -> None:
    with pytest.raises(UsageError, match="no records"):
        ArrayRecords(np.zeros((0, 3)))
