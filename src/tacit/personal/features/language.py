"""How features are written: from text to the tree in `nodes.py`, and nothing is ever evaluated.

feature    = conjunct { "or" conjunct }
conjunct   = negation { "and" negation }
negation   = "not" negation | comparison
comparison = sum [ ("=" | "!=" | "<" | "<=" | ">" | ">=") sum | "in" "(" literal, … ")" ]
sum        = product { ("+" | "-") product }
product    = factor { ("*" | "/") factor }
factor     = "-" factor | literal | "(" feature ")" | call | leaf
call       = function "(" feature ")"                                   abs, hour, …
           | aggregate "(" feature [ "where" feature ] [ "per" length ] [ "," window ] ")"
           | "distance" "(" place "," place ")" | "static" "(" type "." field ")"
leaf       = "moment" | "own" "." field                                 of the instance
           | type | type "." field                                      inside an aggregate
           | field                                                      after `where`
window     = length | "own"
place      = "latitude,longitude" in quotation marks | "own" [ "." name ] | type [ "." name ]
           | ("first" | "last") "(" type [ "." name ] [ "where" feature ] [ "," window ] ")"
"""

from __future__ import annotations

from tacit.personal.features.nodes import Feature
from tacit.personal.features.parser import Parser
from tacit.personal.features.tokens import LONGEST, fault

__all__ = ["parse", "parse_condition"]


def parse(text: str) -> Feature:
    """The feature that this text means. `str(parse(text))` is its one canonical way to say it."""
    return _bounded(text, Parser(text).feature())


def parse_condition(text: str, event: str) -> Feature:
    """A condition on each event of a type, as it stands after `where`."""
    return _bounded(text, Parser(text).condition(event))


def _bounded(text: str, feature: Feature) -> Feature:
    if len(str(feature)) > LONGEST:  # written out, it could not be read back
        raise fault(text, 0, f"is longer than {LONGEST} characters when written out.")
    return feature
