"""Problems and features in plain words."""

from __future__ import annotations

from typing import Any

import pytest

from tacit.personal.features.language import parse
from tacit.personal.features.vocabulary import AGGREGATES, FUNCTIONS
from tacit.personal.problems.explained import explained
from tacit.personal.problems.feature_words import feature_words, length_words
from tacit.personal.problems.problem import FeatureTerms, InstanceTerms, LabelTerms, Problem


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("count(ride, 7d)", "the number of ride events, in the week before"),
        ("sum(flow.litres, 28d)", "the sum of litres of flow, in the 4 weeks before"),
        ("count(click, own)", "the number of click events since its start"),
        (
            'count(ride where city = "Bern" and price > 10, 36h)',
            "the number of ride events where (city of ride is “Bern”) and (price of ride is more "
            "than 10), in the 36 hours before",
        ),
        ("count(burst) > 0", "the number of burst events is more than 0"),
        ("since(ride) / 86400", "the seconds since the last ride event divided by 86400"),
        (
            "max(sum(flow.litres per 1d), 28d)",
            "the greatest the sum of litres of flow in each day, in the 4 weeks before",
        ),
        ("own.pickup_lat", "its own pickup lat"),
        ("hour(moment)", "the hour of the moment it is about"),
        ("not weekend(moment)", "not (whether on a weekend: the moment it is about)"),
        ('own.city in ("Bern", "Thun")', "its own city is one of “Bern”, “Thun”"),
        ("static(person.born)", "born of person"),
        (
            'distance(own.pickup, "47,8.5")',
            "the metres from its own pickup to 47, 8.5",
        ),
        (
            'distance(last(stay where city = "Bern", 7d), own)',
            "the metres from the last place of stay where city of stay is “Bern”, in the week "
            "before to its own place",
        ),
        ("is_missing(last(ride.price))", "whether nothing is known of the last price of ride"),
        (
            "share(ride where shared = true)",
            "the share of those with ride events where shared of ride is true",
        ),
    ],
)
def test_features_in_words(text: str, words: str) -> None:
    assert feature_words(parse(text)) == words


def test_there_are_words_for_every_function() -> None:
    for name in AGGREGATES:
        assert not feature_words(parse(_aggregate(name))).startswith(f"{name} ")
    for name in FUNCTIONS:
        assert not feature_words(parse(f"{name}(last(ride.x))")).startswith(f"{name} ")


def _aggregate(name: str) -> str:
    return f"{name}(ride where x)" if AGGREGATES[name].events else f"{name}(ride.x)"


def test_lengths_in_words() -> None:
    minute = 60_000_000
    assert [length_words(n * minute) for n in (1, 90, 60, 24 * 60, 7 * 24 * 60)] == [
        "minute",
        "90 minutes",
        "hour",
        "day",
        "week",
    ]


def lines(instance: dict[str, Any], label: dict[str, Any]) -> tuple[str, ...]:
    problem = Problem(
        name="pipes",
        question="Will it burst?",
        events={"flow": {"pipe": "category", "planned": "number"}, "burst": {"pipe": "category"}},
        instance=InstanceTerms(**instance),
        label=LabelTerms(**label),
        features=FeatureTerms(depth=2),
    )
    by_title = {section.title: section.lines for section in explained(problem)}
    assert by_title["What it predicts from"][-1].endswith("2 deep, 100 features at most")
    return (*by_title["What one example is"], *by_title["What it predicts"])


@pytest.mark.parametrize(
    ("instance", "label", "said"),
    [
        (
            {"per": "event", "event": "flow", "known": ("planned",), "lead": "1h"},
            {"value": "own.pipe"},
            (
                "Each flow.",
                "Only what happened before 1h before it is looked at.",
                "Known beforehand: planned.",
                "label: its own pipe",
                "Where this is not over yet, it is predicted.",
            ),
        ),
        (
            {"per": "window", "every": "2w", "by": ("pipe",)},
            {"value": "count(burst)", "horizon": "3d"},
            (
                "Each 2 weeks, for each pipe.",
                "Only what happened before its end is looked at.",
                "label: the number of burst events",
                "Counted over the 3 days after that.",
                "Where this is not over yet, it is predicted.",
            ),
        ),
        (
            {"per": "session", "event": "flow", "gap": "30m", "cutoff": "10m"},
            {"value": "count(flow)"},
            (
                "Each row of flow events with less than 30m between them.",
                "Only what happened before 10m after its start is looked at.",
                "label: the number of flow events",
                "Counted over the rest of the example.",
                "Where this is not over yet, it is predicted.",
            ),
        ),
        (
            {"per": "group", "by": ("pipe",), "event": "flow", "cutoff": "2026-03-01"},
            {"value": "count(burst)", "horizon": "ever"},
            (
                "Each pipe.",
                "It begins with the first flow.",
                "Only what happened before 2026-03-01 is looked at.",
                "label: the number of burst events",
                "Counted from then on, without an end.",
                "Where this is not over yet, it is predicted.",
            ),
        ),
    ],
)
def test_each_kind_of_instance_in_words(
    instance: dict[str, Any], label: dict[str, Any], said: tuple[str, ...]
) -> None:
    assert lines(instance, label) == said
