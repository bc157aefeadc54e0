"""Patterns of words, written as one would say them: `in|within the? next {number} {unit}`.

word        that word, in any of its forms
a|b         either
a?          or not at all
{number}    a number, in figures or words; {unit}, {weekday}, {part}: a word of that list
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tacit.personal.ask.words import Token

__all__ = ["PARTS", "SPANS", "WEEKDAYS", "Found", "first_of", "found_at"]

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
SPANS = ("hour", "day", "week", "fortnight", "month", "year")
PARTS = {"morning": (6, 12), "afternoon": (12, 18), "evening": (18, 24), "night": (18, 30)}
_LISTS: dict[str, Sequence[str]] = {
    "{weekday}": WEEKDAYS,
    "{unit}": SPANS,
    "{part}": tuple(PARTS),
}

Meant = TypeVar("Meant")


@dataclass(frozen=True)
class Found:
    """Words `first` to before `end` fit; `held` is what stood at the braces."""

    first: int
    end: int
    held: dict[str, Token]

    def word(self, brace: str) -> str:
        """The listed word that stood there, in its base form."""
        listed = _LISTS[brace]
        return next(word for word in listed if word in self.held[brace].forms)


def found_at(pattern: str, tokens: Sequence[Token], first: int) -> Found | None:
    """The longest fit of the pattern beginning at this word."""
    ends = sorted(_ends(pattern.split(), tokens, first, {}), key=lambda e: -e[0])
    return Found(first, ends[0][0], ends[0][1]) if ends else None


def first_of(
    table: Sequence[tuple[str, Meant]], tokens: Sequence[Token]
) -> tuple[Found, Meant] | None:
    """The first line of the table that fits anywhere: tables put the more special lines first."""
    for pattern, meant in table:
        for first in range(len(tokens)):
            found = found_at(pattern, tokens, first)
            if found is not None:
                return found, meant
    return None


def _ends(
    parts: Sequence[str], tokens: Sequence[Token], place: int, held: dict[str, Token]
) -> Iterator[tuple[int, dict[str, Token]]]:
    if not parts:
        yield place, held
        return
    part, rest = parts[0], parts[1:]
    if part.endswith("?"):
        yield from _ends(rest, tokens, place, held)
        part = part[:-1]
    if place < len(tokens) and _fits(part, tokens[place]):
        more = held | {part: tokens[place]} if part.startswith("{") else held
        yield from _ends(rest, tokens, place + 1, more)


def _fits(part: str, token: Token) -> bool:
    if part == "{number}":
        return token.number is not None
    if part in _LISTS:
        return any(word in token.forms for word in _LISTS[part])
    return any(option in token.forms for option in part.split("|"))
