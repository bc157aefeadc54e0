"""How places are written inside `distance`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.personal.features.nodes import (
    KEYWORDS,
    Events,
    FixedPlace,
    OwnPlace,
    PickedPlace,
    Place,
    RowPlace,
)

if TYPE_CHECKING:
    from tacit.personal.features.parser import Parser
    from tacit.personal.features.tokens import Token

__all__ = ["parse_place"]

EXAMPLE = 'such as own.pickup, last(stay) or "47.37,8.54"'


def parse_place(parser: Parser) -> Place:
    token = parser.next
    if token.sort == "text":
        parser.at += 1
        return _fixed(parser, token)
    if token.sort != "name":
        raise parser.fault(f"a place is expected here, {EXAMPLE}.")
    if isinstance(parser.stand, tuple):
        return _in_condition(parser, parser.stand[0])
    if parser.stand == "rows":
        return _of_rows(parser)
    if parser.take("own"):
        return OwnPlace(_after_dot(parser))
    return _picked(parser)


def _fixed(parser: Parser, token: Token) -> FixedPlace:
    parts = parser.quoted(token).split(",")
    try:
        latitude, longitude = (float(part) + 0.0 for part in parts)
    except ValueError:
        latitude = longitude = float("nan")
    if not (-90 <= latitude <= 90 and -180 <= longitude <= 180):
        raise parser.fault(
            'a place is its latitude and longitude in degrees: "47.37,8.54".', token.place
        )
    return FixedPlace(latitude, longitude)


def _after_dot(parser: Parser) -> str:
    return parser.name("the name of a place") if parser.take(".") else ""


def _of_rows(parser: Parser) -> RowPlace:
    if parser.next.text in KEYWORDS:
        raise parser.fault("a place of the events is expected here, such as ride.pickup.")
    type_ = parser.name("a type of events")
    return RowPlace(type_, _after_dot(parser))


def _in_condition(parser: Parser, type_: str) -> RowPlace:
    place, name = parser.next.place, parser.name("a place")
    if name == type_:
        return RowPlace(type_, _after_dot(parser))
    if name in KEYWORDS or parser.take("."):
        raise parser.fault(f"a condition on {type_} can ask only of places of {type_}.", place)
    return RowPlace(type_, name)


def _picked(parser: Parser) -> PickedPlace:
    which = "first" if parser.take("first") else "last" if parser.take("last") else None
    if which is None:
        raise parser.fault(f"a place is expected here, {EXAMPLE}.")
    parser.need("(")
    with parser.deeper():
        row = _of_rows(parser)
        where = parser.where(Events(row.type))
        window = parser.window() if parser.take(",") else None
    parser.need(")")
    return PickedPlace("first" if which == "first" else "last", row, where, window)
