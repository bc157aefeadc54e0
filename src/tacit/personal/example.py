"""Exports of an invented student, in the true formats of their services, to try things out with.

Four tests a week. Whoever sleeps well and has studied that week passes more often, and good nights
come in rows; music and the calendar say nothing. Number 0 is the student of the guide; others have
other habits. Everything follows from the number.
"""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tacit.crypto.prg import SeededRandomness
from tacit.errors import UsageError
from tacit.privacy.noise import uniform_below

__all__ = ["DAYS", "LAST", "write_example"]

DAYS = 560
LAST = datetime.date(2024, 7, 1)  # she has just woken up: of this day there is only the night
SUBJECTS = ("algebra", "history", "physics")
ARTISTS = ("The Hollow Pines", "Nadja Brun", "Kvartet 9", "Salt & Signal")
TEST_DAYS = (0, 1, 2, 3)  # Mondays to Thursdays
CALENDAR = ("BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//example//calendar//EN")


def write_example(folder: Path, person: int = 0) -> list[Path]:
    """Five exports: what was written where."""
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty: choose another folder.")
    student = _Student(person)
    files = {
        "study.csv": student.study(),
        "tests.jsonl": student.tests(),
        "Fitbit/sleep-2024-01-01.json": student.sleep(),
        "StreamingHistory_music_0.json": student.music(),
        "calendar.ics": student.calendar(),
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    return [folder / name for name in files]


class _Student:
    """Days in order; everything is drawn once, from the person's number."""

    def __init__(self, person: int) -> None:
        first = LAST - datetime.timedelta(days=DAYS - 1)
        self._days = [first + datetime.timedelta(days=i) for i in range(DAYS)]
        self._randomness = SeededRandomness(1000 + person)
        rest, zeal = self._uniform(2) - 0.5  # habits: up to an hour of sleep, half as much study
        self._asleep = 7.0 + rest + self._nights()
        busy = self._uniform(DAYS) < 0.6
        self._minutes = np.where(busy, 20 + (100 + 100 * zeal) * self._uniform(DAYS), 0).round()

    def study(self) -> str:
        """A table, as an app for timing oneself writes it."""
        rows = [
            (f"{day.isoformat()} 17:{int(start * 60):02d}", self._subject(place), int(minutes))
            for place, (day, minutes, start) in enumerate(
                zip(self._days, self._minutes, self._uniform(DAYS), strict=True)
            )
            if minutes and day < LAST
        ]
        text = io.StringIO()
        csv.writer(text).writerows([("when", "subject", "minutes"), *rows])
        return text.getvalue()

    def tests(self) -> str:
        """JSON lines, as a school's page gives them."""
        lines = []
        luck = self._uniform(DAYS)
        for place, day in self._test_days():
            week = float(self._minutes[max(0, place - 7) : place].sum())
            rested = float(self._asleep[max(0, place - 6) : place + 1].mean())
            chance = _logistic(9.0 * (rested - 6.9) + 0.025 * (week - 290))
            passed = bool(luck[place] < chance)
            score = round(60 + 38 * luck[place] / chance if passed else 20 + 39 * luck[place])
            line = {
                "when": f"{day.isoformat()}T10:00:00+00:00",
                "subject": self._subject(place),
                "score": score,
                "passed": passed,
            }
            lines.append(json.dumps(line))
        return "\n".join(lines) + "\n"

    def sleep(self) -> str:
        """Fitbit's: a night belongs to the day on which one wakes."""
        nights = []
        for number, (day, hours) in enumerate(zip(self._days, self._asleep, strict=True)):
            wakes = datetime.datetime.combine(day, datetime.time(7))
            asleep = round(hours * 60)
            start = wakes - datetime.timedelta(minutes=asleep + 25)
            nights.append(
                {
                    "logId": 40_000_000 + number,
                    "dateOfSleep": day.isoformat(),
                    "startTime": f"{start.isoformat()}.000",
                    "endTime": f"{wakes.isoformat()}.000",
                    "duration": (asleep + 25) * 60_000,
                    "minutesToFallAsleep": 0,
                    "minutesAsleep": asleep,
                    "minutesAwake": 25,
                    "minutesAfterWakeup": 0,
                    "timeInBed": asleep + 25,
                    "efficiency": round(100 * asleep / (asleep + 25)),
                    "type": "stages",
                    "mainSleep": True,
                }
            )
        return json.dumps(nights, indent=1)

    def music(self) -> str:
        """Spotify's: three songs a day, to no effect."""
        chance = self._uniform(3 * DAYS)
        songs = [
            {
                "endTime": f"{self._days[i // 3].isoformat()} {18 + i % 3}:{int(59 * u):02d}",
                "artistName": ARTISTS[int(4 * u)],
                "trackName": f"Song {int(40 * u)}",
                "msPlayed": int(60_000 + 180_000 * u),
            }
            for i, u in enumerate(chance[:-3])
        ]
        return json.dumps(songs, indent=1)

    def calendar(self) -> str:
        """A training every Monday, and one appointment now and then."""
        lines = [*CALENDAR]
        for place, day in enumerate(self._days[:-1]):
            if day.weekday() == 0 or place % 17 == 5:
                what = "Swimming" if day.weekday() == 0 else "Dentist"
                lines += [
                    "BEGIN:VEVENT",
                    f"UID:{place}@example.org",
                    f"DTSTAMP:{day:%Y%m%d}T060000Z",
                    f"DTSTART:{day:%Y%m%d}T150000Z",
                    f"DTEND:{day:%Y%m%d}T160000Z",
                    f"SUMMARY:{what}",
                    "END:VEVENT",
                ]
        return "\r\n".join([*lines, "END:VCALENDAR", ""])

    def _test_days(self) -> Iterator[tuple[int, datetime.date]]:
        return ((i, day) for i, day in enumerate(self._days[:-1]) if day.weekday() in TEST_DAYS)

    def _nights(self) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        """Hours above the usual; four fifths of a night's carry over to the next."""
        fresh = 2.8 * (self._triangular(DAYS) - 0.5)
        for night in range(1, DAYS):
            fresh[night] += 0.8 * fresh[night - 1]
        return fresh.clip(-3.5, 3.0)

    def _subject(self, place: int) -> str:
        return SUBJECTS[(place // 3) % len(SUBJECTS)]

    def _uniform(self, size: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return uniform_below(2**32, size, self._randomness) / 2.0**32

    def _triangular(self, size: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return (self._uniform(size) + self._uniform(size)) / 2


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))
