"""What Apple Health measures: its types and units, and tacit's events for them.

Each stands at the moment when the measurement ended, and says in `seconds` how long it took.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from tacit.personal.events import EventType, Kind, Value

__all__ = [
    "ACTIVITY_DAY",
    "PERSON",
    "QUANTITIES",
    "RECORD",
    "SLEEP",
    "TYPES",
    "WORKOUT",
    "Quantity",
    "converted",
    "plain",
]

# Each measure's units, in tacit's: metres, kilograms, kilocalories, seconds, per minute, pieces.
UNITS: dict[str, dict[str, float]] = {
    "distance": {
        "m": 1,
        "km": 1000,
        "cm": 0.01,
        "mm": 0.001,
        "mi": 1609.344,
        "yd": 0.9144,
        "ft": 0.3048,
        "in": 0.0254,
    },
    "mass": {"kg": 1, "g": 0.001, "lb": 0.45359237, "st": 6.35029318, "oz": 0.028349523125},
    "energy": {"kcal": 1, "Cal": 1, "cal": 0.001, "kJ": 1 / 4.184, "J": 0.001 / 4.184},
    "time": {"s": 1, "sec": 1, "min": 60, "hr": 3600, "d": 86400, "ms": 0.001},
    "rate": {"count/min": 1, "count/s": 60, "Hz": 60},
    "count": {"count": 1},
    "milliseconds": {"ms": 1, "s": 1000},
}


def _type(name: str, about: str, words: tuple[str, ...], **fields: Kind) -> EventType:
    own: dict[str, Kind] = {**fields, "seconds": "number", "device": "category"}
    return EventType(name=name, fields=own, about=about, words=words)


STEPS = _type(
    "steps", "Steps counted in a stretch of time, at its end.", ("step", "walking"), count="number"
)
FLIGHTS = _type("flights", "Flights of stairs climbed.", ("stairs", "floors"), count="number")
HEART_RATE = _type(
    "heart_rate", "The heart's beats in a minute.", ("pulse", "heartbeat", "bpm"), bpm="number"
)
RESTING = _type(
    "resting_heart_rate", "The heart's beats in a minute at rest.", ("resting pulse",), bpm="number"
)
VARIABILITY = _type(
    "heart_variability", "How much heartbeats vary: SDNN, in ms.", ("hrv",), ms="number"
)
WEIGHT = _type("weight", "The body's weight.", ("body mass",), kg="number")
DISTANCE = _type(
    "distance",
    "A distance walked, ridden, swum or wheeled.",
    ("walking distance", "metres", "kilometres"),
    metres="number",
    sport="category",
)
ENERGY = _type(
    "energy",
    "Energy burned, in kcal: by activity, or at rest.",
    ("calories", "burned"),
    kcal="number",
    burned="category",
)
EXERCISE = _type(
    "exercise",
    "How much of a stretch of time was exercise, at its end.",
    ("workout minutes",),
    active_seconds="number",
)
SLEEP = _type(
    "sleep",
    "A stretch in bed, awake or in a stage of sleep, at the moment it ended. Stretches in bed "
    "overlap the others.",
    ("night", "slept", "asleep"),
    stage="category",
)
RECORD = _type(
    "health_record",
    "Any other measurement, in the unit that the phone wrote.",
    ("health", "measurement"),
    kind="category",
    value="number",
    unit="category",
    state="category",
)
WORKOUT = _type(
    "workout",
    "A workout, at the moment it ended, with its distance, energy in kcal and mean heart rate; "
    "active without its pauses.",
    ("training", "exercise session", "run", "ride"),
    sport="category",
    active_seconds="number",
    metres="number",
    energy="number",
    heart_rate="number",
)
ACTIVITY_DAY = EventType(
    name="activity_day",
    fields={
        "energy": "number",
        "energy_goal": "number",
        "exercise_seconds": "number",
        "stand_hours": "number",
    },
    about="A day's activity rings, at its end: energy in kcal, exercise, hours with standing.",
    words=("rings", "daily activity"),
)
PERSON = EventType(
    name="person",
    fields={"birth": "time", "sex": "category", "blood": "category"},
    static=True,
    about="What the health profile says of the person.",
    words=("me", "birthday", "age"),
)
TYPES = (
    STEPS,
    FLIGHTS,
    HEART_RATE,
    RESTING,
    VARIABILITY,
    WEIGHT,
    DISTANCE,
    ENERGY,
    EXERCISE,
    SLEEP,
    RECORD,
    WORKOUT,
    ACTIVITY_DAY,
    PERSON,
)


class Quantity(NamedTuple):
    """How one of Apple's types becomes an event: its number goes to `field`, in tacit's unit."""

    type: EventType
    field: str
    measure: str
    fixed: Mapping[str, Value]


_PREFIX = "HKQuantityTypeIdentifier"
QUANTITIES: dict[str, Quantity] = {
    f"{_PREFIX}{name}": Quantity(kind, field, measure, fixed)
    for name, kind, field, measure, fixed in (
        ("StepCount", STEPS, "count", "count", {}),
        ("FlightsClimbed", FLIGHTS, "count", "count", {}),
        ("HeartRate", HEART_RATE, "bpm", "rate", {}),
        ("RestingHeartRate", RESTING, "bpm", "rate", {}),
        ("HeartRateVariabilitySDNN", VARIABILITY, "ms", "milliseconds", {}),
        ("BodyMass", WEIGHT, "kg", "mass", {}),
        ("DistanceWalkingRunning", DISTANCE, "metres", "distance", {"sport": "walking_running"}),
        ("DistanceCycling", DISTANCE, "metres", "distance", {"sport": "cycling"}),
        ("DistanceSwimming", DISTANCE, "metres", "distance", {"sport": "swimming"}),
        ("DistanceWheelchair", DISTANCE, "metres", "distance", {"sport": "wheelchair"}),
        ("ActiveEnergyBurned", ENERGY, "kcal", "energy", {"burned": "active"}),
        ("BasalEnergyBurned", ENERGY, "kcal", "energy", {"burned": "at_rest"}),
        ("AppleExerciseTime", EXERCISE, "active_seconds", "time", {}),
    )
}

_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")


def converted(value: float, unit: str, measure: str) -> float:
    """In tacit's unit of this measure; a KeyError if the unit is not one of them."""
    return value * UNITS[measure][unit]


def plain(name: str) -> str | None:
    """`HKWorkoutActivityTypeStairClimbing` → `stair_climbing`; nothing for `NotSet`."""
    for prefix in (
        "HKQuantityTypeIdentifier",
        "HKCategoryTypeIdentifier",
        "HKDataType",
        "HKWorkoutActivityType",
        "HKCategoryValue",
    ):
        name = name.removeprefix(prefix)
    if name in ("", "NotSet"):
        return None
    return "_".join(_WORDS.findall(name)).lower() or None
