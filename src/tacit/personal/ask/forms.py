"""What sort of answer a question wants: yes or no, how many, how much, which.

The table is the whole grammar of forms. The first line that fits is taken, and its words are used
up; whatever a line leaves over says what the question is about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tacit.personal.ask.patterns import Found, first_of
from tacit.personal.ask.words import Token

__all__ = ["FORMS", "UNSAID", "Form", "Wanted", "form_of", "is_past"]

Wanted = Literal["yes-no", "count", "number", "category"]


@dataclass(frozen=True)
class Form:
    """What is wanted, or else what `also`; of which sort of field (`measure`); and how sure."""

    wanted: Wanted
    measure: str = ""
    also: Wanted | None = None
    sure: float = 1.0


FORMS: tuple[tuple[str, Form], ...] = (
    ("how likely|probable", Form("yes-no")),
    ("how big|high|good|great|large is|are the|my? chance|odds|probability|risk", Form("yes-no")),
    ("what is|are? the|my? chance|odds|probability|risk|likelihood", Form("yes-no")),
    ("chance|probability|odds|likelihood|risk of|that", Form("yes-no")),
    ("is it likely|probable", Form("yes-no")),
    ("how many hour|minute|second", Form("number", "duration")),
    ("how many kilometre|kilometer|km|mile|metre|meter", Form("number", "distance")),
    ("how many", Form("count")),
    ("how often|frequently", Form("count")),
    ("how long", Form("number", "duration")),
    ("how far", Form("number", "distance")),
    ("how expensive", Form("number", "cost")),
    ("how fast", Form("number", "speed")),
    ("how heavy", Form("number", "weight")),
    ("how late", Form("number", "delay")),
    ("how much money", Form("number", "cost")),
    ("how much", Form("number")),
    ("how high|big|large|good", Form("number")),
    ("what number", Form("number")),
    ("what will|would|does|is", Form("number", also="category")),
    ("which|who|whom|where", Form("category", also="number")),
    ("what", Form("category", also="number")),
    ("will|shall|would|can", Form("yes-no")),
    ("am|is|are|do|does", Form("yes-no")),
    ("should", Form("yes-no", sure=0.7)),
)
UNSAID = Form("yes-no", sure=0.7)  # no question word at all: taken as yes or no, less sure

# What has been is not predicted.
_PAST: tuple[tuple[str, None], ...] = (
    ("yesterday", None),
    ("last|previous|past {unit}|{weekday}|{part}", None),
    ("last|previous|past week|month|year|night|time|summer|winter", None),
    ("{number} {unit} ago", None),
    ("did|had i|we|my|it", None),
    ("was|were", None),
    ("how|what|which|who|where|when many? much? did|was|were|has|have", None),
)


def form_of(tokens: Sequence[Token]) -> tuple[Found | None, Form]:
    found = first_of(FORMS, tokens)
    return found if found is not None else (None, UNSAID)


def is_past(tokens: Sequence[Token]) -> bool:
    """Whether it asks what has been."""
    return first_of(_PAST, tokens) is not None
