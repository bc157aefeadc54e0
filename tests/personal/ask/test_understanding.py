"""When it is sure and when it is not; what it says then; and whatever strings strangers send."""

from __future__ import annotations

import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import UsageError
from tacit.personal.ask.understanding import AHEAD, SURE, Understanding, understand
from tacit.personal.ask.words import LONGEST
from tacit.personal.events import EventType, Kind
from tacit.personal.features.language import parse, parse_condition
from tacit.personal.features.nodes import Aggregate, Binary, Text

NOW = datetime.datetime(2026, 3, 11, 18, 0, tzinfo=ZoneInfo("Europe/Zurich"))


def kind(name: str, words: tuple[str, ...] = (), **fields: Kind) -> EventType:
    return EventType(name=name, fields=fields, words=words)


LIFE = [
    kind("exam", ("test",), passed="boolean", course="category"),
    kind("quiz", grade="number", course="category"),
    kind("sleep", hours="number"),
    kind("ride", price="number", origin="category", destination="category", delay="number"),
    kind("journey", metres="number", mode="category"),
    kind("play", ("listen",), song="category", artist="category"),
    kind("payment", amount="number", merchant="category"),
    kind("salary", amount="number"),
    EventType(name="person", fields={"birth": "time"}, static=True, words=("me",)),
]
HOSTILE = ['say "hi"', "back\\slash", 'x" or price > 0', "O'Hare", "line\nbreak", "naïve café", "☃"]
VALUES = {
    ("exam", "course"): ["algebra", "history"],
    ("ride", "origin"): ["airport", "home"],
    ("ride", "destination"): ["airport", "home"],
    ("journey", "mode"): ["train", "car"],
    ("play", "artist"): ["Anna"],
    ("play", "song"): HOSTILE,
    ("payment", "merchant"): ["Migros"],
}


def asked(question: str, life: list[EventType] = LIFE) -> Understanding:
    return understand(question, {k.name: k for k in life}, lambda t, f: VALUES.get((t, f), []), NOW)


# ── sure, and what it was understood from ──


def test_every_part_keeps_the_words_it_came_from() -> None:
    found = asked("How likely am I to pass the algebra exam tomorrow if I sleep less than 6 hours?")
    assert found.reading is not None
    assert [(p.role, p.words, p.means) for p in found.reading.parts] == [
        ("form", "How likely", "yes-no"),
        ("entity", "exam", "exam"),
        ("label", "pass", "own.passed"),
        ("condition", "algebra", "course = algebra"),
        ("horizon", "tomorrow", "1d from 2026-03-12 00:00"),
        ("supposition", "I sleep less than 6 hours", "a *sleep* whose `hours` is less than 6"),
    ]
    assert found.reading.problem.features.list[2:] == (
        "last(sleep.hours) < 6",
        "last(sleep.hours)",
    )
    assert found.is_sure


def test_says_in_words_what_it_understood() -> None:
    assert asked("Will I pass the exam tomorrow?").in_words() == (
        "For each *exam*: will `passed` be true? Looking one day ahead, from what happened before."
    )
    assert asked("How many rides from home next week?").in_words() == (
        "For each week: how many *ride* events where `origin` is “home” will there be? Asked about "
        "“next week”: one week from Monday 16 March, 00:00; from what happened until 102 hours "
        "before."
    )


def test_a_mended_spelling_lowers_the_confidence() -> None:
    right, wrong = asked("Will I pass the exam tomorrow?"), asked("Will I pass the exma tomorrow?")
    assert right.reading is not None
    assert wrong.reading is not None
    assert wrong.reading.problem.label == right.reading.problem.label
    assert wrong.confidence < right.confidence == 1.0


def test_asking_again_gives_the_same() -> None:
    question = "How much will I spend on rides to the airport next week?"
    assert asked(question) == asked(question)


# ── unsure: alternatives instead of an answer ──

UNSURE = [
    ("Will my ride be late tonight?", "guessed", ["own.delay > 0"]),
    ("Will I pass the quiz tomorrow?", "guessed", ["own.grade >= 4"]),
    ("What will I listen to tonight?", "in part", ["mode(play.artist)", "mode(play.song)"]),
    ("Will I take a hovercraft ride tomorrow?", "hovercraft", ["count(ride) > 0"]),
    ("How many airport rides will I take next week?", "more than one", ['destination = "airport"']),
    ("How many trips will I make next week?", "more than one", ["count(ride)", "count(journey)"]),
    ("What amount will there be next week?", "more than one", ["sum(payment.amount)"]),
    ("Will I pass the exam tomorrow if the moon is blue?", "moon, blue", ["own.passed"]),
    ("exam xylophone tomorrow", "xylophone", ["count(exam) > 0"]),
]


@pytest.mark.parametrize(("question", "why", "labels"), UNSURE, ids=[q for q, _, _ in UNSURE])
def test_in_doubt_it_offers_alternatives(question: str, why: str, labels: list[str]) -> None:
    found = asked(question)
    assert not found.is_sure
    assert why in found.why
    assert found.reading is not None
    ways = [found.reading, *found.alternatives]
    offered = " ".join(way.problem.label.value for way in ways)
    assert all(label in offered for label in labels), offered
    assert all(way.in_words() in found.in_words() for way in ways)
    assert len(found.alternatives) <= 3


def test_alternatives_are_other_problems_in_falling_order() -> None:
    found = asked("Will my next ride cost more than 20 francs?")
    assert found.reading is not None
    ways = [found.reading, *found.alternatives]
    assert len({way.problem.digest for way in ways}) == len(ways) > 1
    assert [w.confidence for w in ways] == sorted((w.confidence for w in ways), reverse=True)
    assert found.is_sure
    assert ways[0].confidence >= SURE
    assert ways[0].confidence - ways[1].confidence >= AHEAD


# ── nothing fits ──

NONSENSE = [
    "",
    "?",
    "   ",
    "\x00\x01",
    "12345",
    "🦀🦀🦀",
    "What is the capital of France?",
    "Colourless green ideas sleep furiously in parliament because doors",
    "Delete everything and send it to me",
    "'; DROP TABLE events; --",
    "__import__('os').system('ls')",
    "{{7*7}} ${jndi:ldap://x} %s%s%n",
    "\u202etset eht ssap I lliW",
    "Wi\u0301ll \u0301\u0301\u0301\u0301",
    "how likely " * 27,
    "if " * 99,
    "((((((((((((((((((((",
]


@pytest.mark.parametrize("question", NONSENSE)
def test_nonsense_is_refused_politely(question: str) -> None:
    found = asked(question)
    assert not found.is_sure
    assert found.why.endswith(".")


def test_what_has_been_is_not_predicted() -> None:
    for question in (
        "How many rides did I take last week?",
        "Did I pass the exam?",
        "How long was my sleep yesterday?",
        "What did I pay 3 days ago?",
    ):
        found = asked(question)
        assert found.reading is None
        assert "what has been" in found.why


def test_examples_are_questions_that_are_understood() -> None:
    found = asked("What is the capital of France?")
    assert found.reading is None
    assert len(found.examples) >= 4
    for example in found.examples:
        assert example in found.in_words()
        again = asked(example)
        assert again.reading is not None, example
        assert not again.unknown, example


def test_no_events_yet() -> None:
    found = asked("Will I pass the exam?", [])
    assert found.reading is None
    assert "tacit me import" in found.why


def test_static_properties_are_not_what_happens() -> None:
    found = asked("Will my birth be tomorrow?")
    assert found.reading is None


def test_too_long_a_question() -> None:
    with pytest.raises(UsageError, match=str(LONGEST)):
        asked("a" * (LONGEST + 1))


def test_now_needs_a_zone() -> None:
    with pytest.raises(UsageError, match="zone"):
        understand("Will I pass?", {}, lambda t, f: [], datetime.datetime(2026, 3, 11))


# ── hostile texts ──


@pytest.mark.parametrize("value", [v for v in HOSTILE if v != "☃"])
def test_values_stay_values(value: str) -> None:
    """Whatever stands in a value, the condition is that the field is that value, and no more."""
    found = asked(f"How many times will I play {value} tomorrow?")
    assert found.reading is not None
    label = parse(found.reading.problem.label.value)
    assert isinstance(label, Aggregate)
    assert isinstance(label.where, Binary)
    assert label.where.op == "="
    assert label.where.right == Text(value)


@pytest.mark.parametrize("value", [v for v in HOSTILE if v != "☃"])
def test_values_stay_values_of_own_events(value: str) -> None:
    found = asked(f"Which artist will the next play of {value} have?")
    assert found.reading is not None
    condition = parse_condition(found.reading.problem.instance.where, "play")
    assert isinstance(condition, Binary)
    assert condition.right == Text(value)


_WORDS = (
    "how likely many much will i what which next ride rides exam pass fail airport tomorrow week "
    "tonight monday if when sleep less than more over before 8 20 six hours francs not late , \" ' "
    "( ) the my a to from with in on and cost price"
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(_WORDS.split()), max_size=40).map(" ".join))
def test_any_words_in_any_order(question: str) -> None:
    _holds_together(question[:LONGEST])


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=LONGEST))
def test_any_text(question: str) -> None:
    _holds_together(question)


def _holds_together(question: str) -> None:
    found = asked(question)
    assert (found.reading is None) == (found.confidence == 0)
    assert 0 <= found.confidence <= 1
    assert found.in_words()
    for way in [found.reading, *found.alternatives] if found.reading else []:
        parse(way.problem.label.value)
        assert way.problem.question == " ".join(question.split())
        assert way.problem.from_dict(_plain(way.problem)) == way.problem


def _plain(problem: object) -> dict[str, object]:
    import tomllib

    from tacit.personal.problems.problem import Problem

    assert isinstance(problem, Problem)
    return tomllib.loads(problem.to_toml())
