"""What each word may mean, from the person's own types of events.

A word may name a type, one of its fields, or a value that a category often has. How well it fits
is one number, by the way it fits:

    1     the name itself, a word the type says it is called by, or a value
    0.95  another form of it (rides, passed), or a value of a field of that name elsewhere
    0.9   one part of a name of several parts (distance of trip_distance)
    0.85  a synonym from the built-in list
    × 0.7 if its spelling had to be mended (words.SPELT)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from tacit.personal.ask.vocabulary import STOP, synonyms
from tacit.personal.ask.words import Token, base_forms, tokens_of
from tacit.personal.events import EventType

__all__ = ["Hit", "Lexicon", "Meaning", "Values"]

Values = Callable[[str, str], Sequence[str]]
"""type, field → the values that a category often has, most frequent first."""

NAMED, FORMED, PART, SYNONYM = 1.0, 0.95, 0.9, 0.85
_MOST_VALUES = 200
_MOST_WORDS = 8
_LONGEST_PHRASE = 120


@dataclass(frozen=True)
class Meaning:
    """A type (field empty), a field (value None), or a value of a category."""

    type: str
    field: str = ""
    value: str | None = None

    @property
    def what(self) -> Literal["type", "field", "value"]:
        return "type" if not self.field else "field" if self.value is None else "value"


@dataclass(frozen=True)
class Hit:
    """Words `places` of the question mean this, so well."""

    meaning: Meaning
    places: frozenset[int]
    fit: float


class Lexicon:
    """All words that the catalogue gives rise to."""

    def __init__(self, catalogue: Mapping[str, EventType], values: Values) -> None:
        self._single: dict[str, dict[Meaning, float]] = defaultdict(dict)
        self._phrases: dict[str, list[tuple[tuple[str, ...], Meaning]]] = defaultdict(list)
        self._values: dict[tuple[str, str], list[str]] = {}
        happening = [kind for kind in catalogue.values() if not kind.static]
        for kind in happening:
            self._take(kind, values)
        for kind in happening:
            self._borrow(kind)

    @cached_property
    def words(self) -> frozenset[str]:
        """Every word it knows: what a misspelt one may have been meant to be."""
        spoken = {word for words in self._phrases.values() for w, _ in words for word in w}
        return frozenset(self._single) | spoken

    def values(self, type_: str, field: str) -> list[str]:
        """The frequent values of a category."""
        return self._values.get((type_, field), [])

    def hits(self, tokens: Sequence[Token]) -> list[Hit]:
        """Everything that any words of the question may mean."""
        found: dict[tuple[Meaning, frozenset[int]], float] = {}
        for place, token in enumerate(tokens):
            for meaning, fit in self._of_word(token).items():
                key = meaning, frozenset([place])
                found[key] = max(found.get(key, 0), fit * token.sure)
            for words, meaning in self._phrases.get(token.norm, ()):
                span = tokens[place : place + len(words)]
                if tuple(t.norm for t in span) == words:
                    places = frozenset(range(place, place + len(words)))
                    found[meaning, places] = min(t.sure for t in span)
        return _unrivalled([Hit(meaning, at, fit) for (meaning, at), fit in found.items()])

    def _of_word(self, token: Token) -> dict[Meaning, float]:
        """By the word as it stands, and by its other forms."""
        found: dict[Meaning, float] = {}
        for form in sorted(token.forms):
            for meaning, fit in self._single.get(form, {}).items():
                if token.norm in STOP and (fit < NAMED or meaning.what != "type"):
                    continue
                at_most = fit if form == token.norm else FORMED
                found[meaning] = max(found.get(meaning, 0), min(fit, at_most))
        return found

    def _take(self, kind: EventType, values: Values) -> None:
        self._name(kind.name, Meaning(kind.name))
        for word in kind.words:
            self._phrase(word, Meaning(kind.name))
        for field, sort in kind.fields.items():
            self._name(field, Meaning(kind.name, field))
            if sort == "category":
                frequent = list(values(kind.name, field))[:_MOST_VALUES]
                self._values[kind.name, field] = frequent
                for value in frequent:
                    self._phrase(value, Meaning(kind.name, field, value))

    def _borrow(self, kind: EventType) -> None:
        """Fields of one name speak of the same things: a pipe that has never burst has flow."""
        for (other, field), frequent in self._values.items():
            if other != kind.name and kind.fields.get(field) == "category":
                for value in frequent:
                    self._phrase(value, Meaning(kind.name, field, value), FORMED)

    def _name(self, name: str, meaning: Meaning) -> None:
        """A name of the catalogue: whole, its parts, and synonyms of each."""
        parts = name.split("_")
        self._phrase(" ".join(parts), meaning)
        for part in parts if len(parts) > 1 else ():
            self._word(part, meaning, PART)
        for part in parts:
            for form in base_forms(part):
                for word in synonyms(form):
                    self._word(word, meaning, SYNONYM * (PART if len(parts) > 1 else 1))

    def _phrase(self, text: str, meaning: Meaning, fit: float = NAMED) -> None:
        if len(text) > _LONGEST_PHRASE:
            return
        words = tuple(token.norm for token in tokens_of(text))
        if len(words) == 1:
            self._word(words[0], meaning, fit)
        elif 1 < len(words) <= _MOST_WORDS:
            self._phrases[words[0]].append((words, meaning))

    def _word(self, word: str, meaning: Meaning, fit: float) -> None:
        for form in base_forms(word):
            at_most = fit if form == word else min(fit, FORMED)
            known = self._single[form].get(meaning, 0)
            self._single[form][meaning] = max(known, at_most)


def _unrivalled(hits: list[Hit]) -> list[Hit]:
    """A word that is the name of one type is no synonym for another."""
    named = {
        place
        for hit in hits
        if hit.meaning.what == "type" and hit.fit > SYNONYM
        for place in hit.places
    }
    return [h for h in hits if h.meaning.what != "type" or h.fit > SYNONYM or not h.places & named]
