"""The words of a question: cut apart, brought to base forms, and spelt right.

Everything here is rules a person can read. English has few endings; what they do not cover stands
in a short list.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import lru_cache

from tacit.errors import UsageError
from tacit.personal.ask.vocabulary import CONTRACTIONS, IRREGULAR, NUMBERS, PLAIN

__all__ = ["LONGEST", "SPELT", "Token", "base_forms", "respelt", "tokens_of", "typo"]

LONGEST = 300  # characters, as of a problem's question; every step below is bounded by it
LONGEST_WORD = 30
SPELT = 0.7  # how sure a word is whose spelling was mended

_WORD = re.compile(
    r"\d+(?:['’,]\d{3})+(?:\.\d+)?|\d+:\d\d|\d+(?:\.\d+)?|[^\W\d_]+(?:['’][^\W\d_]+)*|[$€£%]|,"
)


@dataclass(frozen=True)
class Token:
    """A word of the question. `norm` is what the grammar compares, `place` where it was typed."""

    text: str
    norm: str
    place: int
    number: float | None = None
    sure: float = 1.0

    @property
    def forms(self) -> frozenset[str]:
        return base_forms(self.norm)

    @property
    def is_plural(self) -> bool:
        return self.norm.endswith("s") and len(self.forms) > 1


def tokens_of(question: str) -> list[Token]:
    """Words, numbers, currency signs and commas, in order; everything else separates them."""
    if len(question) > LONGEST:
        raise UsageError(
            f"the question has {len(question)} characters, and {LONGEST} are the most. Ask one "
            "thing in one sentence."
        )
    text = unicodedata.normalize("NFC", question)
    made: list[Token] = []
    for place, found in enumerate(_WORD.finditer(text)):
        made += _tokens(found[0], place)
    return made


def _tokens(text: str, place: int) -> list[Token]:
    if text[0].isdecimal():
        return [Token(text, text, place, _number(text))]
    norm = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    for part in CONTRACTIONS.get(norm, ()):
        return [Token(text, p, place) for p in (part, *CONTRACTIONS[norm][1:])]
    word = norm.split("'")[0]  # tomorrow's exam: the exam of tomorrow
    return [Token(text, word, place, NUMBERS.get(word))]


def _number(text: str) -> float:
    if ":" in text:
        hours, minutes = text.split(":")
        return int(hours) + int(minutes) / 60
    return float(re.sub(r"['’,]", "", text))


@lru_cache(maxsize=100_000)
def base_forms(word: str) -> frozenset[str]:
    """The word and what it may be a form of: rides → ride; running → run; passed → pass."""
    found = {word, *IRREGULAR.get(word, ())}
    for ending, stems in (("s", _singular), ("ing", _verb), ("ed", _verb)):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            found |= stems(word, word[: -len(ending)])
    return frozenset(found)


def _singular(word: str, stem: str) -> set[str]:
    if word.endswith(("ss", "us", "is")):
        return set()
    if word.endswith("ies"):
        return {stem[:-2] + "y"}
    return {stem, stem[:-1]} if word.endswith(("ses", "xes", "zes", "ches", "shes")) else {stem}


def _verb(word: str, stem: str) -> set[str]:
    doubled = len(stem) > 2 and stem[-1] == stem[-2] and stem[-1] not in "aeiou"
    if word.endswith("ied"):
        return {stem[:-1] + "y"}
    return {stem, stem + "e"} | ({stem[:-1]} if doubled else set())


def typo(word: str, known: str) -> bool:
    """Whether the one may be the other misspelt: same first letter, few slips for its length.

    A slip is a letter too many, too few, another, or two swapped (Damerau 1964). Words of four
    letters are too near to one another for anything but a swap.
    """
    if len(word) < 4 or word[0] != known[0] or abs(len(word) - len(known)) > 2:
        return False
    if len(word) == 4:
        return sorted(word) == sorted(known)
    return _slips(word, known) <= (2 if min(len(word), len(known)) >= 8 else 1)


def _slips(a: str, b: str) -> int:
    """Optimal string alignment."""
    before: list[int] = []
    last: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, last, row = last, row, [i]
        for j, y in enumerate(b, 1):
            least = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                least = min(least, before[j - 2] + 1)
            row.append(least)
    return row[-1]


def respelt(tokens: list[Token], known: Collection[str]) -> list[Token]:
    """Words that nobody knows become the nearest known one, and less sure; the rest stay."""
    unheard = {token.norm for token in tokens if not _is_heard(token, known)}
    meant = {word: _nearest(word, {*known, *PLAIN}) for word in unheard}
    return [
        replace(token, norm=meant[token.norm], sure=SPELT) if meant.get(token.norm) else token
        for token in tokens
    ]


def _is_heard(token: Token, known: Collection[str]) -> bool:
    if token.number is not None or len(token.norm) > LONGEST_WORD:
        return True
    return any(form in known or form in PLAIN for form in token.forms)


def _nearest(word: str, known: Collection[str]) -> str:
    """The known word with the fewest slips, or nothing. Each slip changes two letters at most."""
    letters = set(word)
    alike = [k for k in known if k[0] == word[0] and len(letters ^ set(k)) <= 4 and typo(word, k)]
    return min(alike, key=lambda k: (_slips(word, k), k), default="")
