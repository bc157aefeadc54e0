"""The language: one canonical text for each feature, and errors that help."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from drawn_features import CATALOGUE, KNOWN, features

from tacit.errors import InputError
from tacit.personal.features.language import parse, parse_condition
from tacit.personal.features.nodes import Aggregate, Column, Events, Text
from tacit.personal.features.signature import kind_of
from tacit.personal.features.tokens import LONGEST

CANONICAL = {
    "count( ride ,7d )": "count(ride, 1w)",
    "sum(ride.price,28d)": "sum(ride.price, 4w)",
    'share(ride.city="Bern")': 'share(ride.city = "Bern")',
    "share(ride where ride.price>10,own)": "share(ride where price > 10, own)",
    'count(ride where (city = "Bern") and (price > 1 or not paid))': (
        'count(ride where city = "Bern" and (price > 1 or not paid))'
    ),
    "mean(count(click per 24h),28d)": "mean(count(click per 1d), 4w)",
    "max(mean(count(c per 60m) per 1d), 28d)": "max(mean(count(c per 1h) per 1d), 4w)",
    "own.a*(2+own.b)--3": "own.a * (2 + own.b) - -3",
    "-(own.x)": "0 - own.x",
    "1e3": "1000",
    ".5": "0.5",
    "(1-2)-3": "1 - 2 - 3",
    "1-(2-3)": "1 - (2 - 3)",
    'distance(own.pickup,"47.370, 8.540")': 'distance(own.pickup, "47.37,8.54")',
    "count(r where per = 1)": None,
    "count(r where r.per = 1)": "count(r where r.per = 1)",
    'count(stay where distance(stay, "1,2") < 9)': 'count(stay where distance(stay, "1,2") < 9)',
    'is_missing(last(r.x)) or own.c in ("\\u00e9", "\\"")': (
        'is_missing(last(r.x)) or own.c in ("é", "\\"")'
    ),
}


@pytest.mark.parametrize("text", [text for text, made in CANONICAL.items() if made])
def test_one_canonical_text(text: str) -> None:
    feature = parse(text)
    assert str(feature) == CANONICAL[text]
    assert parse(str(feature)) == feature


@settings(max_examples=300)
@given(features)
def test_a_feature_is_its_text_and_has_a_kind(feature: Any) -> None:
    assert parse(str(feature)) == feature
    assert kind_of(feature, CATALOGUE, "ride", KNOWN) in ("number", "boolean", "category")


@given(st.text())
def test_any_text_is_kept(text: str) -> None:
    assert parse(str(Text(text))) == Text(text)


WORDS = [
    "count",
    "(",
    ")",
    "ride",
    ".",
    "price",
    ",",
    "7d",
    "where",
    "per",
    "own",
    "not",
    "-",
    "in",
]
WORDS += ["and", "=", '"x"', "3", "mean", "distance", "first", "moment", "static", "hour", "/"]


@settings(max_examples=200)
@given(st.one_of(st.text(), st.lists(st.sampled_from(WORDS)).map(" ".join)))
def test_whatever_the_text_it_is_a_feature_or_an_error(text: str) -> None:
    try:
        feature = parse(text)
    except InputError:
        return
    assert parse(str(feature)) == feature


WRONG = {
    "": "character 1: there is nothing here",
    "cuont(ride)": "character 1: there is no function cuont. Did you mean count?",
    "count(ride": "character 11: ')' is expected",
    "count(ride) 3": "character 13: '3' is not expected here",
    "1 + ride.price": "character 5: ride.price has many values",
    "sum(ride)": "sum is of a field",
    "count(ride, 7)": "character 13: a length of time",
    "count(ride, 0d)": "longer than nothing",
    "sum(a.x + b.y)": "one type at a time",
    "sum(3)": "an aggregate is over events",
    "count(r per 1d)": "take an aggregate of them",
    "mean(count(r), 7d)": "say for how long each",
    "mean(count(r per 1d, 7d), 7d)": "the window belongs to the outer",
    "mean(count(r per 1d) / count(r per 1h), 7d)": "must all be of one length",
    "mean(count(r per 2d), 1d)": "buckets of 2d do not fit into 1d",
    "mean(count(r per 1s), 28d)": "2419200 buckets; 10000 are the most",
    "mean(max(count(r per 1s) per 1d), 28d)": "are the most",
    "mean(count(r per 1d) where x > 1, 7d)": "a condition belongs inside",
    "count(r where count(q) > 1)": "one event at a time",
    "count(r where own.x > 1)": "only of fields of r",
    "count(r where q.x > 1)": "only of fields of r",
    "count(r where price > moment)": "only of fields of r",
    "mean(own.x, 7d)": "belongs to the instance",
    "share(ride)": "share is of a condition",
    "since(ride.price)": "since is of events",
    "1e999": "too large",
    '"abc': "does not end",
    "own.city = 'Bern'": "double quotation marks",
    '"\\q"': "escape",
    '"\\ud800"': "escape",
    "own.x $ 3": 'character 7: "$" means nothing',
    "3x": "no number and no length",
    "7d + 1": "7d is a length of time",
    "1 < 2 < 3": "character 7: '<' is not expected",
    'distance(own, "100,2")': "latitude and longitude",
    'distance(own, "nan,2")': "latitude and longitude",
    "distance(own, 3)": "a place is expected",
    "mean(static(p.x), 7d)": "a static property belongs to the instance",
    "(" * 100: "24 brackets",
    "not " * 100 + "true": "24 brackets",
    "-" * 100 + "own.x": "24 brackets",
    "1" + "+1" * 300: "200 parts",
    "1" * (LONGEST + 1): f"{LONGEST} are the most",
}


@pytest.mark.parametrize("text", WRONG)
def test_errors_say_where_and_what_to_do(text: str) -> None:
    with pytest.raises(InputError) as raised:
        parse(text)
    assert WRONG[text] in str(raised.value)


def test_what_is_longer_when_written_out_is_refused() -> None:
    text = "own.x" + ("=1 or own.x" * 150)[: LONGEST - 10]
    with pytest.raises(InputError):
        parse(text)


def test_conditions_stand_alone() -> None:
    condition = parse_condition('city = "Bern" and hour(time) < 9', "ride")
    assert parse("count(ride where " + 'city = "Bern" and hour(time) < 9)') == Aggregate(
        "count", Events("ride"), condition
    )
    assert parse_condition("ride.paid", "ride") == Column("ride", "paid")
