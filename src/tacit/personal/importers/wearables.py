"""What watches and bands measure: the same types of events, whatever their make.

What lasts stands at its end, and says in `seconds` how long it lasted.
"""

from __future__ import annotations

from tacit.personal.events import EventType, Kind

__all__ = [
    "ACTIVE_TIME",
    "DISTANCE",
    "ENERGY",
    "HEART_RATE",
    "RESTING_HEART_RATE",
    "SLEEP_SESSION",
    "STEPS",
    "WORKOUT",
]


def _type(name: str, about: str, words: tuple[str, ...], **fields: Kind) -> EventType:
    return EventType(name=name, fields=dict(fields), about=about, words=words)


def _minute(name: str, about: str, words: tuple[str, ...], field: str) -> EventType:
    fields: dict[str, Kind] = {field: "number", "seconds": "number"}
    return _type(name, about, words, **fields)


HEART_RATE = _type(
    "heart_rate", "The pulse, in beats a minute.", ("pulse", "heart", "bpm"), bpm="number"
)
STEPS = _minute("steps", "Steps within a minute, at its end.", ("walk", "step"), "count")
ENERGY = _minute("energy", "Energy burned in a minute, at its end, in kcal.", ("calories",), "kcal")
DISTANCE = _minute("distance", "The way gone within a minute, at its end.", ("way",), "metres")
RESTING_HEART_RATE = _type(
    "resting_heart_rate",
    "The pulse at rest, of a day, at its end.",
    ("resting pulse",),
    bpm="number",
)
ACTIVE_TIME = _type(
    "active_time",
    "How long a day was spent at a level of activity, at its end.",
    ("active minutes", "sedentary"),
    level="category",
    seconds="number",
)

SLEEP_SESSION = EventType(
    name="sleep_session",
    fields={
        "seconds": "number",
        "asleep_seconds": "number",
        "awake_seconds": "number",
        "deep_seconds": "number",
        "light_seconds": "number",
        "rem_seconds": "number",
        "score": "number",
        "nap": "boolean",
    },
    about="A time in bed, at the moment it ended; its phases where the device tells them apart.",
    words=("sleep", "night", "slept", "nap"),
)
WORKOUT = EventType(
    name="workout",
    fields={
        "sport": "category",
        "title": "text",
        "seconds": "number",
        "active_seconds": "number",
        "metres": "number",
        "climb": "number",
        "energy": "number",
        "steps": "number",
        "heart_rate": "number",
        "max_heart_rate": "number",
        "lat": "number",
        "lon": "number",
    },
    about="A run, ride or other exercise, at the moment it ended; active without its pauses, climb "
    "in metres, energy in kcal.",
    words=("exercise", "training", "run", "ride", "activity"),
)
