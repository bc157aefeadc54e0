"""Kinds and names are checked before anything is computed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from drawn_features import CATALOGUE, KNOWN

from tacit.errors import InputError, Leakage
from tacit.personal.features.language import parse
from tacit.personal.features.signature import kind_of

KINDS = {
    "count(ride)": "number",
    "last(ride.city)": "category",
    "mode(ride.note)": "category",
    "last(ride.time)": "number",
    "last(ride.paid)": "boolean",
    "range(ride.time)": "number",
    "share(ride.paid)": "number",
    "moment - last(ride.end)": "number",
    "moment": "number",
    "weekend(moment)": "boolean",
    "hour(moment + 3600)": "number",
    "own.city": "category",
    "own.city = mode(ride.city)": "boolean",
    "distance(own.pickup, last(stay))": "number",
    "static(person.town)": "category",
    "mean(count(click per 1d), 7d) > 1": "boolean",
    "max(last(click.time per 1d), 7d)": "number",
}


@pytest.mark.parametrize("text", KINDS)
def test_kinds(text: str) -> None:
    assert kind_of(parse(text), CATALOGUE, "ride", KNOWN) == KINDS[text]


WRONG = {
    "count(rides)": "no events of type rides. Did you mean ride?",
    "sum(ride.prize)": "ride has no field prize. Did you mean price?",
    "count(ride where prize > 3)": "Did you mean price?",
    "sum(ride.city)": "ride.city is a category; sum takes a number",
    "mean(ride.time)": "ride.time is a time; mean takes a number",
    "share(ride.price)": "share takes a boolean",
    "count(ride where price)": "a condition is true or false",
    "hour(own.price)": "hour takes a time",
    "log(own.city)": "log takes a number",
    "own.city + 1": "a category + a number means nothing",
    "own.city > own.city": "neither less nor more",
    "own.price = own.city": "a number cannot be compared with a category",
    "own.city in (1, 2)": "the list must be of its kind",
    "not own.price": "a condition is true or false",
    "own.time": "write `moment`",
    "own.prize": "Did you mean price?",
    "distance(own.dropoff, own.pickup)": "ride has no field dropoff_lat",
    "count(person)": "static(person.field)",
    "static(ride.price)": "last(ride.price)",
    "static(person.yaer)": "Did you mean year?",
}


@pytest.mark.parametrize("text", WRONG)
def test_errors_name_the_part_and_a_remedy(text: str) -> None:
    with pytest.raises(InputError) as raised:
        kind_of(parse(text), CATALOGUE, "ride", KNOWN)
    assert WRONG[text] in str(raised.value)
    assert not isinstance(raised.value, Leakage)


@pytest.mark.parametrize(
    "text", ["own.paid", "own.price + count(ride where paid) + own.end - own.end"]
)
def test_what_is_not_known_beforehand_leaks(text: str) -> None:
    with pytest.raises(Leakage, match="look at what is to be predicted"):
        kind_of(parse(text), CATALOGUE, "ride", KNOWN)


def test_a_place_leaks_like_its_fields() -> None:
    feature = parse('distance(own.pickup, "47,8")')
    with pytest.raises(Leakage, match="pickup_lon"):
        kind_of(feature, CATALOGUE, "ride", KNOWN - {"pickup_lon"})


def test_instances_without_an_own_event() -> None:
    with pytest.raises(InputError, match="Only instances per event"):
        kind_of(parse("own.price"), CATALOGUE)
