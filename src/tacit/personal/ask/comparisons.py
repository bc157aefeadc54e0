"""Comparisons with a number: more than 10,000 steps, over 20 francs, before 8."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tacit.personal.ask.patterns import found_at
from tacit.personal.ask.vocabulary import UNITS
from tacit.personal.ask.words import Token

__all__ = ["COMPARISONS", "Comparison", "comparisons_in"]

# pattern → comparison; `clock` where the number is an hour of the day
COMPARISONS: tuple[tuple[str, str], ...] = (
    ("no|not more|higher|longer|greater than {number}", "<="),
    ("no|not less|fewer|lower|shorter than {number}", ">="),
    ("more|greater|higher|longer|farther|further|better|larger|bigger|faster than {number}", ">"),
    ("less|fewer|lower|shorter|cheaper|worse|smaller|slower than {number}", "<"),
    ("at|the least {number}", ">="),
    ("at|the most {number}", "<="),
    ("up to {number}", "<="),
    ("{number} or more", ">="),
    ("{number} or less|fewer", "<="),
    ("exceed|above {number}", ">"),
    ("over {number}", ">"),
    ("below|under {number}", "<"),
    ("exactly|precisely {number}", "="),
    ("before|by {number}", "clock <"),
    ("earlier than {number}", "clock <"),
    ("after|past {number}", "clock >="),
    ("later than {number}", "clock >="),
)
_SCALES = {"hundred": 100.0, "thousand": 1000.0, "k": 1000.0, "million": 1e6}


@dataclass(frozen=True)
class Comparison:
    """`unit` is the word after the number if it is a unit; `noun` whatever word stands there."""

    operator: str
    number: float
    places: frozenset[int]
    unit: str = ""
    noun: int | None = None

    @property
    def is_clock(self) -> bool:
        return self.operator.startswith("clock")


def comparisons_in(tokens: Sequence[Token]) -> list[Comparison]:
    """All of them; places are of words in the list given."""
    made: list[Comparison] = []
    taken: set[int] = set()
    for pattern, operator in COMPARISONS:
        for first in range(len(tokens)):
            found = found_at(_signs(pattern, tokens, first), tokens, first)
            if found is None or taken & set(range(found.first, found.end)):
                continue
            comparison = _completed(operator, found.first, found.end, tokens)
            taken |= comparison.places
            made.append(comparison)
    return sorted(made, key=lambda c: min(c.places))


def _signs(pattern: str, tokens: Sequence[Token], first: int) -> str:
    """Money may be written before its number: over $20, over CHF 20."""
    return pattern.replace("{number}", "$|€|£|chf|usd|eur? a? {number}")


def _completed(operator: str, first: int, end: int, tokens: Sequence[Token]) -> Comparison:
    """With its scale (ten thousand, 10k), unit and noun, and half of the day for a clock."""
    places = set(range(first, end))
    number = next(t.number for t in tokens[first:end] if t.number is not None)
    before = [t.norm for t in tokens[first:end] if t.norm in UNITS]
    if end < len(tokens) and tokens[end].norm in _SCALES:
        number *= _SCALES[tokens[end].norm]
        places.add(end)
        end += 1
    if operator.startswith("clock"):
        half, wide = _half(tokens, end)
        return Comparison(operator, number + half, frozenset(places | wide))
    unit = before[0] if before else _unit(tokens, end)
    if unit and not before:
        places.add(end)
    noun = end if not unit and end < len(tokens) else None
    return Comparison(operator, number, frozenset(places), unit, noun)


def _half(tokens: Sequence[Token], place: int) -> tuple[float, set[int]]:
    """12 for the afternoon; and the words that say so."""
    if place < len(tokens) and tokens[place].norm in ("am", "pm", "o", "oclock"):
        return (12.0 if tokens[place].norm == "pm" else 0.0), {place}
    return 0.0, set()


def _unit(tokens: Sequence[Token], place: int) -> str:
    if place >= len(tokens):
        return ""
    return next((form for form in sorted(tokens[place].forms) if form in UNITS), "")
