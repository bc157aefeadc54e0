"""A recursive-descent parser with bounds: whatever the text, it ends soon and in a plain error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, TypeVar

from tacit.errors import InputError
from tacit.personal.durations import duration
from tacit.personal.features.nodes import (
    KEYWORDS,
    Aggregate,
    Among,
    Binary,
    Column,
    Distance,
    Events,
    Feature,
    Function,
    Moment,
    Node,
    Not,
    Number,
    Own,
    Static,
    Text,
    Truth,
    Window,
    type_of,
)
from tacit.personal.features.place_parser import parse_place
from tacit.personal.features.sources import check_source
from tacit.personal.features.tokens import Token, fault, nearest, tokens
from tacit.personal.features.vocabulary import AGGREGATES, FUNCTIONS

__all__ = ["Parser", "Stand"]

DEEPEST = 24  # brackets within brackets
MOST = 200  # parts of one feature

Made = TypeVar("Made", bound=Node)
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
CALLS = {*AGGREGATES, *FUNCTIONS, "distance", "static"}

Stand = Literal["instance", "rows"] | tuple[str]
"""Where we stand: at the instance, among rows or buckets, or in a condition on a type's rows."""


class Parser:
    """Reads one text, once."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.at = text, tokens(text), 0
        self.stand: Stand = "instance"
        self._depth = self._parts = 0

    def feature(self) -> Feature:
        return self._whole()

    def condition(self, event: str) -> Feature:
        self.stand = (event,)
        return self._whole()

    def _whole(self) -> Feature:
        if len(self.tokens) == 1:
            raise self.fault("there is nothing here. A feature is, for example, count(ride, 7d).")
        made = self.any()
        if self.next.sort != "end":
            raise self.fault(f"{self.next.text!r} is not expected here.")
        return made

    # ── words ──

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    def take(self, *texts: str) -> str | None:
        """The next word, if it is one of these signs or keywords."""
        token = self.next
        if token.sort in ("sign", "name") and token.text in texts:
            self.at += 1
            return token.text
        return None

    def need(self, text: str) -> None:
        if self.take(text) is None:
            found = f", not {self.next.text!r}" if self.next.text else ""
            raise self.fault(f"{text!r} is expected here{found}.")

    def name(self, what: str) -> str:
        token = self.next
        if token.sort != "name":
            raise self.fault(f"{what} is expected here.")
        self.at += 1
        return token.text

    def fault(self, problem: str, place: int | None = None) -> InputError:
        return fault(self.text, self.next.place if place is None else place, problem)

    def length(self) -> int:
        token = self.next
        if token.sort != "length":
            raise self.fault("a length of time is expected here: 30m, 7d, 4w.")
        length = duration(token.text, f"character {token.place + 1}")
        if length == 0:
            raise self.fault("a length of time longer than nothing is expected here.")
        self.at += 1
        return length

    def window(self) -> Window:
        return "own" if self.take("own") else self.length()

    @contextmanager
    def standing(self, stand: Stand) -> Iterator[None]:
        before, self.stand = self.stand, stand
        yield
        self.stand = before

    @contextmanager
    def deeper(self) -> Iterator[None]:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self.fault(f"more than {DEEPEST} brackets within one another. Split the feature.")
        yield
        self._depth -= 1

    def made(self, node: Made) -> Made:
        self._parts += 1
        if self._parts > MOST:
            raise self.fault(f"a feature of more than {MOST} parts. Split it.")
        return node

    # ── operators ──

    def any(self) -> Feature:
        return self._chain(("or",), lambda: self._chain(("and",), self._negation))

    def _chain(self, signs: tuple[str, ...], part: Callable[[], Feature]) -> Feature:
        made = part()
        while sign := self.take(*signs):
            made = self.made(Binary(sign, made, part()))
        return made

    def _negation(self) -> Feature:
        if self.take("not"):
            with self.deeper():
                return self.made(Not(self._negation()))
        return self._comparison()

    def _comparison(self) -> Feature:
        left = self._sum()
        if self.take("in"):
            return self.made(Among(left, self._literals()))
        if sign := self.take(*COMPARISONS):
            return self.made(Binary(sign, left, self._sum()))
        return left

    def _sum(self) -> Feature:
        return self._chain(("+", "-"), lambda: self._chain(("*", "/"), self._factor))

    def _factor(self) -> Feature:
        if self.take("-") is None:
            return self._atom()
        with self.deeper():
            of = self._factor()
        if isinstance(of, Number):
            return Number(0.0 - of.value)  # never minus zero, which would not read back
        return self.made(Binary("-", self.made(Number(0.0)), of))

    # ── what stands between them ──

    def _atom(self) -> Feature:
        token = self.next
        if self.take("("):
            with self.deeper():
                made = self.any()
            self.need(")")
            return made
        if token.sort in ("number", "text"):
            return self._literal()
        if token.sort == "length":
            raise self.fault(f"{token.text} is a length of time; here a number is expected.")
        if token.sort != "name":
            raise self.fault("a value, a field or a function is expected here.")
        self.at += 1
        if token.text in ("true", "false"):
            return self.made(Truth(token.text == "true"))
        if self.next.text == "(" and self.next.sort == "sign":
            return self._call(token)
        return self._leaf(token)

    def _literal(self) -> Number | Text:
        token = self.next
        self.at += 1
        if token.sort == "text":
            return self.made(Text(self.quoted(token)))
        value = float(token.text)
        if value == float("inf"):
            raise self.fault("this number is too large.", token.place)
        return self.made(Number(value))

    def quoted(self, token: Token) -> str:
        try:
            text: str = json.loads(token.text)
            text.encode()
        except ValueError:
            raise self.fault("this text has an escape that means nothing.", token.place) from None
        return text

    def _literals(self) -> tuple[Number | Text, ...]:
        self.need("(")
        found: list[Number | Text] = []
        while not found or self.take(","):
            minus = self.take("-") is not None
            if self.next.sort not in (("number",) if minus else ("number", "text")):
                raise self.fault('a number or a text is expected here: in ("a", "b").')
            value = self._literal()
            found.append(
                Number(0.0 - value.value) if minus and isinstance(value, Number) else value
            )
        self.need(")")
        return tuple(found)

    def _leaf(self, token: Token) -> Feature:
        if token.text in KEYWORDS - {"own", "moment"}:
            raise self.fault(f"{token.text!r} is not expected here.", token.place)
        field = self.name("the name of a field") if self.take(".") else None
        if isinstance(self.stand, tuple):
            return self.made(self._field(token, field, self.stand[0]))
        if self.stand == "rows":
            if token.text in KEYWORDS:
                raise self.fault(
                    f"{token.text} belongs to the instance; aggregates are over events.",
                    token.place,
                )
            return self.made(Column(token.text, field) if field else Events(token.text))
        if token.text == "moment" and field is None:
            return self.made(Moment())
        if token.text == "own" and field is not None:
            return self.made(Own(field))
        what = f"{token.text}.{field}" if field else token.text
        raise self.fault(
            f"{what} has many values: take one of them, or count them, such as "
            + (f"last({what}) or mean({what}, 7d)." if field else f"count({what}, 7d)."),
            token.place,
        )

    def _field(self, token: Token, field: str | None, type_: str) -> Column:
        if field is None and token.text not in KEYWORDS:
            return Column(type_, token.text)
        if token.text == type_ and field is not None:
            return Column(type_, field)
        raise self.fault(f"a condition on {type_} can ask only of fields of {type_}.", token.place)

    # ── calls ──

    def _call(self, token: Token) -> Feature:
        if token.text not in CALLS:
            raise self.fault(
                f"there is no function {token.text}.{nearest(token.text, CALLS)}", token.place
            )
        self.need("(")
        with self.deeper():
            made = self._called(token)
        self.need(")")
        return made

    def _called(self, token: Token) -> Feature:
        name = token.text
        if name in AGGREGATES:
            return self._aggregate(token)
        if name in FUNCTIONS:
            return self.made(Function(name, self.any()))
        if name == "distance":
            here = parse_place(self)
            self.need(",")
            return self.made(Distance(here, parse_place(self)))
        if self.stand != "instance":
            raise self.fault("a static property belongs to the instance.", token.place)
        type_ = self.name("a type of events")
        self.need(".")
        return self.made(Static(type_, self.name("the name of a field")))

    def _aggregate(self, token: Token) -> Aggregate:
        if isinstance(self.stand, tuple):
            raise self.fault("a condition looks at one event at a time.", token.place)
        with self.standing("rows"):
            of = self.any()
        where = self.where(of)
        every = self.length() if self.take("per") else None
        window = self.window() if self.take(",") else None
        made = Aggregate(token.text, of, where, window, every)
        for problem in check_source(made, within=self.stand == "rows"):
            raise self.fault(problem, token.place)
        return self.made(made)

    def where(self, of: Feature) -> Feature | None:
        place = self.next.place
        if self.take("where") is None:
            return None
        type_ = type_of(of)
        if type_ is None:
            raise self.fault("a condition belongs inside, with the events it is on.", place)
        with self.standing((type_,)):
            return self.any()
