"""A question taken apart: form, when, comparisons, what is supposed, and the words left over."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tacit.personal.ask.comparisons import Comparison, comparisons_in
from tacit.personal.ask.forms import Form, form_of, is_past
from tacit.personal.ask.horizons import Horizon, horizon_in, unstated
from tacit.personal.ask.lexicon import Hit, Lexicon
from tacit.personal.ask.patterns import first_of, found_at
from tacit.personal.ask.vocabulary import DETERMINERS, NEGATIONS, OUTCOMES, STOP
from tacit.personal.ask.words import Token, respelt, tokens_of

__all__ = ["Clause", "Sentence", "sentence_of"]

# What begins a supposition, and what ends one that came first: a comma or a question word.
_IF: tuple[tuple[str, None], ...] = (
    ("if|whenever|assuming|suppose|supposing", None),
    ("given|provided that?", None),
    ("when i|it|we|my|the", None),
)
_OWNER = re.compile(r"['’]s$")  # tomorrow's exam
_MAIN = ("how|what|which|will|am|is|do", "i will|am")


@dataclass(frozen=True)
class Clause:
    """Words with what was found in them; `left` are those that must still mean something."""

    tokens: tuple[Token, ...]
    comparisons: tuple[Comparison, ...]
    hits: tuple[Hit, ...]
    left: frozenset[int]

    @property
    def is_negated(self) -> bool:
        return any(token.norm in NEGATIONS for token in self.tokens)

    def is_single(self, hit: Hit, others: set[int]) -> bool:
        """Whether these words speak of one event: `my next ride`, neither `rides` nor `ride`.

        others  words that are things of their own: an article before one of them is theirs
        """
        first, last = min(hit.places), max(hit.places)
        since = max([first - 4, *(p for p in others if p < first)])
        before = self.tokens[max(0, since + 1) : first]
        owned = any(t.norm in DETERMINERS or _OWNER.search(t.text) for t in before)
        return owned and not self.tokens[last].is_plural

    def said(self, places: Sequence[int] | frozenset[int]) -> str:
        """These words as they were typed."""
        words = dict.fromkeys((self.tokens[p].place, self.tokens[p].text) for p in sorted(places))
        return " ".join(text for _, text in words)


@dataclass(frozen=True)
class Sentence:
    """The whole question."""

    form: Form
    form_said: str
    horizon: Horizon
    main: Clause
    supposed: Clause | None
    is_past: bool

    @property
    def by_person(self) -> bool:
        """Whether somebody does it: `which song will I play`, not `which pipe will burst`."""
        return any(token.norm in ("i", "we") for token in self.main.tokens)


def sentence_of(question: str, lexicon: Lexicon, now: datetime.datetime) -> Sentence:
    tokens = respelt(tokens_of(question), lexicon.words)
    main, supposed = _divided(tokens)
    fit, horizon = horizon_in(main, now)
    if fit is not None:
        main = _without(main, fit.first, fit.end)
    elif supposed:  # if it is Monday
        fit, horizon = horizon_in(supposed, now)
        supposed = _without(supposed, fit.first, fit.end) if fit else supposed
    form_fit, form = form_of(main)
    form_said = _typed(main, form_fit.first, form_fit.end) if form_fit else ""
    if form_fit is not None:
        main = _without(main, form_fit.first, form_fit.end)
    return Sentence(
        form,
        form_said,
        horizon or unstated(now),
        _clause(main, lexicon),
        _clause(supposed, lexicon) if supposed else None,
        is_past(tokens),
    )


def _divided(tokens: list[Token]) -> tuple[list[Token], list[Token]]:
    """The main clause, and what is supposed; the word `if` itself goes with neither."""
    found = first_of(_IF, tokens)
    if found is None or (found[0].first == 0 and found[0].end >= len(tokens)):
        return [t for t in tokens if t.norm != ","], []
    first, start = found[0].first, found[0].first + 1
    end = len(tokens)
    if first < 2:
        end = next((p for p in range(start + 1, end) if _main_begins(tokens, p)), end)
    rest = [*tokens[:first], *tokens[end:]]
    return [t for t in rest if t.norm != ","], [t for t in tokens[start:end] if t.norm != ","]


def _main_begins(tokens: list[Token], place: int) -> bool:
    if tokens[place].norm == ",":
        return True
    return any(found_at(pattern, tokens, place) is not None for pattern in _MAIN)


def _without(tokens: list[Token], first: int, end: int) -> list[Token]:
    """Used-up words leave a gap, so that words on either side do not become neighbours."""
    gap = [replace(token, norm="", number=None) for token in tokens[first:end]]
    return [*tokens[:first], *gap, *tokens[end:]]


def _clause(tokens: list[Token], lexicon: Lexicon) -> Clause:
    comparisons = comparisons_in(tokens)
    used = {place for c in comparisons for place in c.places}
    hits = [hit for hit in lexicon.hits(tokens) if not hit.places & used]
    named = {place for hit in hits for place in hit.places}
    left = {
        place
        for place, token in enumerate(tokens)
        if place not in used and token.norm and (place in named or _matters(token))
    }
    return Clause(tuple(tokens), tuple(comparisons), tuple(hits), frozenset(left))


def _matters(token: Token) -> bool:
    return token.norm in OUTCOMES or token.norm not in STOP


def _typed(tokens: list[Token], first: int, end: int) -> str:
    return " ".join(token.text for token in tokens[first:end])
