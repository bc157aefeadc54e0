"""A table of questions over made-up lives, and the problems they must become."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from zoneinfo import ZoneInfo

import pytest

from tacit.personal.ask.understanding import Understanding, understand
from tacit.personal.events import EventType, Kind
from tacit.personal.features.language import parse
from tacit.personal.problems.problem import Problem

NOW = datetime.datetime(2026, 3, 11, 18, 0, tzinfo=ZoneInfo("Europe/Zurich"))  # a Wednesday


def kind(name: str, words: tuple[str, ...] = (), **fields: Kind) -> EventType:
    return EventType(name=name, fields=fields, words=words)


LIVES: dict[str, list[EventType]] = {
    "courses": [
        kind("exam", ("test",), passed="boolean", course="category", grade="number"),
        kind("study", ("studying", "learning"), subject="category", minutes="number"),
        kind("sleep", hours="number", quality="category"),
        kind("submission", ("homework",), result="category", late="boolean"),
    ],
    "rides": [
        kind(
            "ride",
            ("trip",),
            price="number",
            city="category",
            origin="category",
            destination="category",
            distance_km="number",
            duration_s="number",
            cancelled="boolean",
            delay="number",
        )
    ],
    "music": [
        kind("play", ("listen",), song="category", artist="category", minutes="number"),
        kind("concert", price="number", venue="category"),
    ],
    "body": [
        kind("sleep", ("night",), hours="number", end="time", nap="boolean"),
        kind("steps", count="number"),
        kind("run", ("jog",), distance_m="number", minutes="number", mood="category"),
        kind("weight", kg="number"),
        kind("heart_rate", ("pulse",), bpm="number"),
    ],
    "bank": [
        kind("payment", ("transaction",), amount="number", merchant="category", kind="category"),
        kind("salary", amount="number"),
    ],
    "pipes": [kind("flow", pipe="category", litres="number"), kind("burst", pipe="category")],
    "code": [
        kind("commit", repository="category", lines="number", reverted="boolean"),
        kind("review", repository="category", approved="boolean"),
    ],
    "calendar": [
        kind("meeting", person="category", place="category", minutes="number", online="boolean"),
        kind("mail", sender="category", important="boolean"),
    ],
}
VALUES: dict[tuple[str, str], list[str]] = {
    ("exam", "course"): ["algebra", "history", "driving"],
    ("study", "subject"): ["algebra", "chemistry"],
    ("sleep", "quality"): ["good", "bad"],
    ("submission", "result"): ["pass", "fail"],
    ("ride", "city"): ["Bern", "Zürich", "New York"],
    ("ride", "origin"): ["home", "office", "airport"],
    ("ride", "destination"): ["home", "office", "airport"],
    ("play", "artist"): ["The Beatles", "Anna"],
    ("play", "song"): ["Blue", 'He said "hi"'],
    ("concert", "venue"): ["Kaufleuten"],
    ("run", "mood"): ["great", "tired"],
    ("payment", "merchant"): ["Migros", "Coop City"],
    ("payment", "kind"): ["groceries", "rent", "restaurants"],
    ("flow", "pipe"): ["3", "north main"],
    ("burst", "pipe"): ["3", "north main"],
    ("commit", "repository"): ["tacit", "website"],
    ("review", "repository"): ["tacit", "website"],
    ("meeting", "person"): ["Anna", "Dr Weber"],
    ("meeting", "place"): ["office", "room 12"],
    ("mail", "sender"): ["Anna", "bank"],
}


def values(type_: str, field: str) -> Sequence[str]:
    return VALUES.get((type_, field), [])


def asked(life: str, question: str) -> Understanding:
    return understand(question, {k.name: k for k in LIVES[life]}, values, NOW)


def short(problem: Problem) -> str:
    """What matters of a problem, in one line."""
    terms, label = problem.instance, problem.label
    parts = [terms.event] if terms.per == "event" else [f"every {terms.every}"]
    parts += [f"where {terms.where}"] if terms.where else []
    parts += [f"by {', '.join(terms.by)}"] if terms.by else []
    if terms.per == "window":
        parts += [f"{label.horizon} from {terms.cutoff}"]
    if terms.lead != "0s":
        parts += [f"lead {terms.lead}"]
    return f"{'; '.join(parts)}: {label.value}"


DAY = "every 1d; 1d from start; lead 6h"  # tomorrow, asked at six in the evening
WEEK = "every 1w; 1w from start; lead 102h"  # next week, asked on Wednesday

SURE = [
    # ── courses and exams ──
    ("courses", "How likely am I to pass the test tomorrow?", "exam; lead 1d: own.passed"),
    ("courses", "What are my chances of passing the exam tomorrow?", "exam; lead 1d: own.passed"),
    ("courses", "will i pass tomorrow's exam", "exam; lead 1d: own.passed"),
    ("courses", "Am I going to pass my next exam?", "exam: own.passed"),
    ("courses", "Am I gonna pass the quiz on Friday?", "exam; lead 2d: own.passed"),
    ("courses", "What's the probability that I pass the test?", "exam: own.passed"),
    ("courses", "Will I fail the test tomorrow?", "exam; lead 1d: not own.passed"),
    ("courses", "Won't I pass the test tomorrow?", "exam; lead 1d: not own.passed"),
    (
        "courses",
        "How likely is it that I pass the algebra exam on Monday?",
        'exam; where course = "algebra"; lead 5d: own.passed',
    ),
    (
        "courses",
        "Will I pass the driving test today?",
        'exam; where course = "driving": own.passed',
    ),
    ("courses", "Whats the chance of passing my exma tomorow?", "exam; lead 1d: own.passed"),
    ("courses", "How likley am I to pas the test tommorow?", "exam; lead 1d: own.passed"),
    ("courses", "What grade will I get in my next exam?", "exam: own.grade"),
    (
        "courses",
        "Which grade will I get in the history exam tomorrow?",
        'exam; where course = "history"; lead 1d: own.grade',
    ),
    (
        "courses",
        "Will my next exam grade be at least 5?",
        "exam: own.grade >= 5",
    ),
    ("courses", "How long will I study tomorrow?", f"{DAY}: sum(study.minutes)"),
    (
        "courses",
        "Will I study more than two hours tomorrow?",
        f"{DAY}: sum(study.minutes) > 120",
    ),
    (
        "courses",
        "How much will I study algebra next week?",
        f'{WEEK}: sum(study.minutes where subject = "algebra")',
    ),
    (
        "courses",
        "How likely am I to pass the test tomorrow if I sleep less than six hours?",
        "exam: own.passed",
    ),
    (
        "courses",
        "If I sleep less than six hours, will I pass the test tomorrow?",
        "exam: own.passed",
    ),
    ("courses", "Will my homework be late tomorrow?", "submission; lead 1d: own.late"),
    # ── rides ──
    (
        "rides",
        "How much will a ride to the airport cost tomorrow?",
        'ride; where destination = "airport"; lead 1d: own.price',
    ),
    (
        "rides",
        "What will my trip from the office cost tomorrow?",
        'ride; where origin = "office"; lead 1d: own.price',
    ),
    ("rides", "How expensive will my next ride be?", "ride: own.price"),
    ("rides", "Will my next ride cost more than 20 francs?", "ride: own.price > 20"),
    ("rides", "will the next journey cost over $20?", "ride: own.price > 20"),
    ("rides", "How much will I spend on rides next week?", f"{WEEK}: sum(ride.price)"),
    ("rides", "How many rides will I take next week?", f"{WEEK}: count(ride)"),
    (
        "rides",
        "How often will I take a taxi in the next 3 days?",
        "every 1d; 3d from start; lead 6h: count(ride)",
    ),
    (
        "rides",
        "How many trips over 20 francs will I make next week?",
        f"{WEEK}: count(ride where price > 20)",
    ),
    (
        "rides",
        "How many cancelled rides will there be next week?",
        f"{WEEK}: count(ride where cancelled)",
    ),
    ("rides", "Will my ride be cancelled tomorrow?", "ride; lead 1d: own.cancelled"),
    (
        "rides",
        "Will I take a ride in Bern this weekend?",
        'every 1w; 2d from 5d; lead 54h: count(ride where city = "Bern") > 0',
    ),
    (
        "rides",
        "Will I go to New York by ride next month?",
        'every 1w; 30d from 2d; lead 486h: count(ride where city = "New York") > 0',
    ),
    ("rides", "Will my next ride be in Zürich?", 'ride: own.city = "Zürich"'),
    ("rides", "How long will my trip take tomorrow?", "ride; lead 1d: own.duration_s"),
    ("rides", "Will my next ride take longer than 30 minutes?", "ride: own.duration_s > 1800"),
    ("rides", "How far will I ride next week?", f"{WEEK}: sum(ride.distance_km)"),
    (
        "rides",
        "Will I ride more than 50 miles next week?",
        f"{WEEK}: sum(ride.distance_km) > 80.4672",
    ),
    ("rides", "Which city will my next ride be in?", "ride: own.city"),
    ("rides", "Will my first ride be before 8 tomorrow?", f"{DAY}: min(hour(ride.time)) < 8"),
    ("rides", "Will I take more than 3 rides next week?", f"{WEEK}: count(ride) > 3"),
    (
        "rides",
        "Will I take a ride when it is Monday?",
        "every 1d; 1d from start; lead 102h: count(ride) > 0",
    ),
    ("rides", "Will I not take a ride tomorrow?", f"{DAY}: count(ride) = 0"),
    (
        "rides",
        "Will I take a ride the day after tomorrow?",
        "every 1d; 1d from start; lead 30h: count(ride) > 0",
    ),
    # ── music ──
    ("music", "Which song will I play next?", "play: own.song"),
    ("music", "Which artist will I listen to tomorrow?", f"{DAY}: mode(play.artist)"),
    (
        "music",
        "Will I listen to The Beatles tonight?",
        'every 1d; 12h from 18h: count(play where artist = "The Beatles") > 0',
    ),
    (
        "music",
        "How many songs by Anna will I hear next week?",
        f'{WEEK}: count(play where artist = "Anna")',
    ),
    ("music", "How many minutes will I listen tomorrow?", f"{DAY}: sum(play.minutes)"),
    (
        "music",
        "Will I go to a concert within a month?",
        "every 1w; 30d from 3d; lead 6h: count(concert) > 0",
    ),
    ("music", "How likely is a concrt next week?", f"{WEEK}: count(concert) > 0"),
    # ── sleep, steps, runs ──
    ("body", "Will I walk more than 10,000 steps tomorrow?", f"{DAY}: sum(steps.count) > 10000"),
    (
        "body",
        "Will I take at least ten thousand steps tomorrow?",
        f"{DAY}: sum(steps.count) >= 10000",
    ),
    ("body", "How many steps will I take tomorrow?", f"{DAY}: sum(steps.count)"),
    ("body", "How many steps tomorrow", f"{DAY}: sum(steps.count)"),
    ("body", "How long will I sleep tonight?", "every 1d; 12h from 18h: sum(sleep.hours)"),
    (
        "body",
        "Will I sleep fewer than 6 hours tonight?",
        "every 1d; 12h from 18h: sum(sleep.hours) < 6",
    ),
    (
        "body",
        "Will I sleep less than 400 minutes tonight?",
        "every 1d; 12h from 18h: sum(sleep.hours) < 6.666666667",
    ),
    ("body", "Will I sleep tonight?", "every 1d; 12h from 18h: count(sleep) > 0"),
    ("body", "Will my next sleep be a nap?", "sleep: own.nap"),
    ("body", "Will I go running tomorrow?", f"{DAY}: count(run) > 0"),
    (
        "body",
        "am i likely to jog tomorrow morning?",
        "every 1d; 6h from 6h; lead 12h: count(run) > 0",
    ),
    (
        "body",
        "How likely is a workout on Saturday?",
        "every 1d; 1d from start; lead 54h: count(run) > 0",
    ),
    ("body", "How far will I run next week?", f"{WEEK}: sum(run.distance_m)"),
    (
        "body",
        "Will I run more than 10 km this weekend?",
        "every 1w; 2d from 5d; lead 54h: sum(run.distance_m) > 10000",
    ),
    ("body", "What will my pulse be tomorrow?", "heart_rate; lead 1d: own.bpm"),
    (
        "body",
        "Will I run if I sleep more than eight hours?",
        "every 1w; 1w from 3d: count(run) > 0",
    ),
    # ── bank ──
    ("bank", "How much will I spend next week?", f"{WEEK}: sum(payment.amount)"),
    (
        "bank",
        "How much will I spend on groceries next week?",
        f'{WEEK}: sum(payment.amount where kind = "groceries")',
    ),
    (
        "bank",
        "How much money will I spend at Coop City in the next two weeks?",
        'every 1w; 2w from 3d; lead 6h: sum(payment.amount where merchant = "Coop City")',
    ),
    ("bank", "Will I spend over 500 francs next week?", f"{WEEK}: sum(payment.amount) > 500"),
    (
        "bank",
        "Will I buy something at Migros tomorrow?",
        f'{DAY}: count(payment where merchant = "Migros") > 0',
    ),
    ("bank", "how many payments next week?", f"{WEEK}: count(payment)"),
    ("bank", "Which merchant will I pay next?", "payment: own.merchant"),
    # ── pipes ──
    (
        "pipes",
        "How likely is pipe 3 to burst next week?",
        "every 1w; by pipe; 1w from start; lead 102h: count(burst) > 0",
    ),
    (
        "pipes",
        "Will a pipe burst next week?",
        "every 1w; by pipe; 1w from start; lead 102h: count(burst) > 0",
    ),
    (
        "pipes",
        "Which pipe will burst next week?",
        "every 1w; by pipe; 1w from start; lead 102h: count(burst) > 0",
    ),
    ("pipes", "Will there be a leak tomorrow?", f"{DAY}: count(burst) > 0"),
    (
        "pipes",
        "How many bursts will there be next month?",
        "every 1w; 30d from 2d; lead 486h: count(burst)",
    ),
    ("pipes", "How many litres will flow tomorrow?", f"{DAY}: sum(flow.litres)"),
    # ── commits ──
    ("code", "How many commits will I make next week?", f"{WEEK}: count(commit)"),
    (
        "code",
        "How many commits to tacit will I write tomorrow?",
        f'{DAY}: count(commit where repository = "tacit")',
    ),
    ("code", "Will my next commit be reverted?", "commit: own.reverted"),
    ("code", "Will my review be approved tomorrow?", "review; lead 1d: own.approved"),
    ("code", "How many lines will I commit tomorrow?", f"{DAY}: sum(commit.lines)"),
    (
        "code",
        "Which repository will I commit to next?",
        "commit: own.repository",
    ),
    # ── calendar and mail ──
    (
        "calendar",
        "Will I meet Anna this week?",
        'every 1w; 4d from 3d; lead 6h: count(meeting where person = "Anna") > 0',
    ),
    (
        "calendar",
        "Will I have a meeting with Anna tomorrow?",
        f'{DAY}: count(meeting where person = "Anna") > 0',
    ),
    (
        "calendar",
        "How many meetings in the office will I have next week?",
        f'{WEEK}: count(meeting where place = "office")',
    ),
    ("calendar", "Will my next meeting be online?", "meeting: own.online"),
    (
        "calendar",
        "How long will my meeting with Dr Weber take tomorrow?",
        'meeting; where person = "Dr Weber"; lead 1d: own.minutes',
    ),
    (
        "calendar",
        "Will I get an important email today?",
        "every 1d; 6h from 18h: count(mail where important) > 0",
    ),
    (
        "calendar",
        "How many emails from the bank will I get next week?",
        f'{WEEK}: count(mail where sender = "bank")',
    ),
]


@pytest.mark.parametrize(("life", "question", "problem"), SURE, ids=[q for _, q, _ in SURE])
def test_question_becomes_the_problem(life: str, question: str, problem: str) -> None:
    found = asked(life, question)
    assert found.reading is not None
    assert short(found.reading.problem) == problem, found.in_words()
    assert found.is_sure, found.in_words()
    parse(found.reading.problem.label.value)
