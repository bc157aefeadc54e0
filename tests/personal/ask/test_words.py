"""Words, patterns, stretches of time and comparisons, each by itself."""

from __future__ import annotations

import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.personal.ask.comparisons import comparisons_in
from tacit.personal.ask.horizons import horizon_in
from tacit.personal.ask.lexicon import Lexicon
from tacit.personal.ask.patterns import found_at
from tacit.personal.ask.vocabulary import PLAIN, synonyms
from tacit.personal.ask.words import SPELT, base_forms, respelt, tokens_of, typo
from tacit.personal.durations import duration
from tacit.personal.events import EventType

ZONE = ZoneInfo("Europe/Zurich")
NOW = datetime.datetime(2026, 3, 11, 18, 20, tzinfo=ZONE)  # a Wednesday


def words(text: str) -> list[str]:
    return [token.norm for token in tokens_of(text)]


def test_tokens() -> None:
    assert words("What's tomorrow's “exam”?") == ["what", "is", "tomorrow", "exam"]
    assert words("I won't") == ["i", "will", "not"]
    assert [t.number for t in tokens_of("10'000 10,000 8:30 2.5 six")] == [1e4, 1e4, 8.5, 2.5, 6.0]
    assert words("ZÜRICH Zu\u0308rich") == ["zürich", "zürich"]


@pytest.mark.parametrize(
    ("word", "base"),
    [
        ("rides", "ride"),
        ("passes", "pass"),
        ("passed", "pass"),
        ("passing", "pass"),
        ("running", "run"),
        ("cancelled", "cancel"),
        ("studies", "study"),
        ("studied", "study"),
        ("late", "late"),
        ("slept", "sleep"),
        ("hiking", "hike"),
        ("boxes", "box"),
    ],
)
def test_base_forms(word: str, base: str) -> None:
    assert base in base_forms(word)


@pytest.mark.parametrize("word", ["bus", "pass", "this", "less", "is"])
def test_not_every_s_is_a_plural(word: str) -> None:
    assert base_forms(word) == {word}


@pytest.mark.parametrize(
    ("wrong", "right", "is_typo"),
    [
        ("exma", "exam", True),
        ("tommorow", "tomorrow", True),
        ("likley", "likely", True),
        ("rude", "ride", False),  # four letters: only swaps
        ("side", "ride", False),
        ("payment", "garment", False),
        ("concrt", "concert", True),
        ("ab", "abc", False),
    ],
)
def test_typos(wrong: str, right: str, is_typo: bool) -> None:
    assert typo(wrong, right) == is_typo


@given(st.text(alphabet="abcdefgh", min_size=4, max_size=12), st.integers(0, 10))
def test_swapped_letters_are_one_slip(word: str, place: int) -> None:
    at = 1 + place % (len(word) - 2)
    swapped = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    assert typo(swapped, word)


def test_known_words_are_never_respelt() -> None:
    tokens = tokens_of("rides tomorrow 5 qqqqqq")
    assert respelt(tokens, {"ride"}) == tokens
    (token,) = respelt(tokens_of("tommorow"), set())
    assert (token.norm, token.sure, token.text) == ("tomorrow", SPELT, "tommorow")


def test_tables_are_sound() -> None:
    assert all(word == word.casefold() for word in PLAIN)
    assert "journey" in synonyms("ride")
    assert "ride" in synonyms("journey")
    assert "ride" not in synonyms("ride")


def test_patterns() -> None:
    tokens = tokens_of("within the next 3 days")
    found = found_at("in|within the? next {number}? {unit}", tokens, 0)
    assert found is not None
    assert (found.end, found.word("{unit}"), found.held["{number}"].number) == (5, "day", 3.0)
    assert found_at("in next {unit}", tokens, 0) is None
    assert found_at("next {number}", tokens, 2) is not None


@pytest.mark.parametrize(
    ("text", "start", "length"),
    [
        ("tomorrow", "2026-03-12 00:00", "1d"),
        ("the day after tomorrow", "2026-03-13 00:00", "1d"),
        ("tomorrow evening", "2026-03-12 18:00", "6h"),
        ("tonight", "2026-03-11 19:00", "11h"),
        ("today", "2026-03-11 19:00", "5h"),
        ("this weekend", "2026-03-14 00:00", "2d"),
        ("next weekend", "2026-03-21 00:00", "2d"),
        ("next week", "2026-03-16 00:00", "1w"),
        ("this week", "2026-03-12 00:00", "4d"),
        ("next month", "2026-04-01 00:00", "30d"),
        ("on Monday", "2026-03-16 00:00", "1d"),
        ("next Wednesday", "2026-03-18 00:00", "1d"),
        ("in the next 3 days", "2026-03-12 00:00", "3d"),
        ("within a month", "2026-03-12 00:00", "30d"),
        ("in 2 weeks", "2026-03-12 00:00", "2w"),
        ("in the next 4 hours", "2026-03-11 19:00", "4h"),
        ("over the coming week", "2026-03-12 00:00", "1w"),
    ],
)
def test_stretches_of_time(text: str, start: str, length: str) -> None:
    _, horizon = horizon_in(tokens_of(text), NOW)
    assert horizon is not None
    assert f"{horizon.start:%Y-%m-%d %H:%M}" == start
    assert horizon.length == length


STRETCHES = (
    "today|tonight|tomorrow|this evening|this weekend|next weekend|this week|next week|next month|"
    "on Sunday|in the next 999 years|within 0 days|in the next 5 hours"
)


@given(
    st.sampled_from(STRETCHES.split("|")),
    st.datetimes(datetime.datetime(2000, 1, 1), datetime.datetime(2050, 1, 1)),
)
def test_stretches_are_in_the_future(text: str, when: datetime.datetime) -> None:
    """And their terms fit a problem: whole lengths, a beginning inside its day or week."""
    now = when.replace(tzinfo=ZONE)
    _, horizon = horizon_in(tokens_of(text), now)
    assert horizon is not None
    assert horizon.start.replace(tzinfo=None) < horizon.end.replace(tzinfo=None)
    assert horizon.end.replace(tzinfo=None) > when
    assert duration(horizon.length) > 0
    assert horizon.cutoff == "start" or duration(horizon.cutoff) < duration(horizon.every)
    assert duration(horizon.lead(now)) >= 0


@pytest.mark.parametrize(
    ("text", "operator", "number", "unit"),
    [
        ("more than 10,000 steps", ">", 10_000, ""),
        ("at least ten thousand", ">=", 10_000, ""),
        ("over $20", ">", 20, "$"),
        ("under CHF 20", "<", 20, "chf"),
        ("less than six hours", "<", 6, "hour"),
        ("no more than 5 km", "<=", 5, "km"),
        ("3 or more", ">=", 3, ""),
        ("before 8", "clock <", 8, ""),
        ("after 10 pm", "clock >=", 22, ""),
        ("before 8:30", "clock <", 8.5, ""),
        ("exactly 4", "=", 4, ""),
        ("over 10k", ">", 10_000, ""),
    ],
)
def test_comparisons(text: str, operator: str, number: float, unit: str) -> None:
    (found,) = comparisons_in(tokens_of(text))
    assert (found.operator, found.number, found.unit) == (operator, number, unit)


def test_a_name_is_no_synonym_for_another() -> None:
    types = {n: EventType(name=n, fields={}) for n in ("exam", "quiz")}
    lexicon = Lexicon(types, lambda type_, field: [])
    assert {h.meaning.type for h in lexicon.hits(tokens_of("quiz"))} == {"quiz"}
    assert {h.meaning.type for h in lexicon.hits(tokens_of("test"))} == {"exam", "quiz"}
