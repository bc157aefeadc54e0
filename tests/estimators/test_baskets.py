"""Frequent itemsets of baskets: lists of items by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from tacit.errors import InputError, UsageError
from tacit.estimators import FrequentItemsets
from tacit.estimators.baskets import are_baskets

BASKETS = [["bread", "milk"], ["milk"], [], ["bread", "milk", "eggs", "eggs"]] * 200
WAYS: list[Any] = [
    BASKETS,
    [set(b) for b in BASKETS],
    [tuple(b) for b in BASKETS],
    pd.Series(BASKETS),
    pl.Series(BASKETS),
    pa.array(BASKETS),
    np.array(BASKETS, dtype=object),
]


def model(**more: Any) -> FrequentItemsets:
    return FrequentItemsets(5.0, min_support=0.4, max_length=2, **more)


@pytest.mark.parametrize("baskets", WAYS)
def test_every_kind_of_list(baskets: Any) -> None:
    found = model().fit(baskets)
    assert found.itemsets_ == [("bread",), ("milk",), ("bread", "milk")]
    assert found.support_ == pytest.approx([0.5, 0.75, 0.5], abs=0.05)
    assert found.feature_names_in_.tolist() == ["bread", "eggs", "milk"]
    assert any("read off the baskets" in text for text in found.certificate_.conditions)
    found.verify()


def test_stated_items_are_the_same_whatever_occurs() -> None:
    items = ["tea", "milk", "bread", "eggs"]
    for baskets in (BASKETS, [["milk"]] * 50, [[]] * 50):
        found = clone(model(items=items)).fit(baskets)
        assert found.feature_names_in_.tolist() == items
        assert not any("read off the baskets" in text for text in found.certificate_.conditions)
        assert any("stated items" in text for text in found.certificate_.conditions)


def test_numbers_name_items_too() -> None:
    found = model(items=[1, 2, 30]).fit([[1, 30], [1], [2, 1]] * 200)
    assert found.itemsets_[0] == ("1",)


def test_an_unknown_item_is_refused_and_not_named() -> None:
    with pytest.raises(InputError, match=r"row 4 .* none of the 2 stated items") as refused:
        model(items=["bread", "milk"]).fit(BASKETS)
    assert "eggs" not in str(refused.value)


@pytest.mark.parametrize("items", ["bread", [], ["a", "a"], 3])
def test_impossible_items(items: Any) -> None:
    with pytest.raises(UsageError, match="items must"):
        model(items=items).fit(BASKETS)


@pytest.mark.parametrize("baskets", [[["a", None]] * 5, [["a", 1.5]] * 5, [{"a", True}] * 5])
def test_what_is_no_item(baskets: Any) -> None:
    with pytest.raises(InputError, match="named by a text"):
        model().fit(baskets)


def test_a_table_of_zeros_and_ones_is_no_basket() -> None:
    assert not are_baskets([[0, 1], [1, 0]])
    assert not are_baskets(np.eye(3))
    assert not are_baskets(pd.DataFrame({"a": [0, 1]}))
    assert not are_baskets("abc")


def test_numbered_items_and_streams() -> None:
    numbered = [[17, 2], [2], [], [17, 2, 30, 30]] * 200
    assert model().fit(numbered).itemsets_ == [("17",), ("2",), ("17", "2")]
    stream = model().fit(basket for basket in BASKETS)
    assert stream.itemsets_ == [("bread",), ("milk",), ("bread", "milk")]


@pytest.mark.parametrize(
    "baskets",
    [["ab", "cd"] * 50, [[17, 2], [2, 30]] * 50, [None, ["a"]] * 50, [[None], ["a"]] * 50],
)
def test_what_may_be_meant_in_two_ways_is_asked_for(baskets: Any) -> None:
    """A text is no list of letters, and rows of numbers may be a table or baskets."""
    with pytest.raises(InputError, match=r"basket|item"):
        model().fit(baskets)
