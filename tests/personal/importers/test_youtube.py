from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tacit.errors import InputError
from tacit.personal.importers.contract import ImporterContract
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.youtube import YouTube

WATCHED = [
    {
        "header": "YouTube",
        "title": "Watched Baking bread – part 1",
        "titleUrl": "https://www.youtube.com/watch?v\u003dabcDEF12345",
        "subtitles": [
            {"name": "Invented Baker", "url": "https://www.youtube.com/channel/UCinvented"}
        ],
        "time": "2024-01-31T07:59:01.123Z",
        "products": ["YouTube"],
        "activityControls": ["YouTube watch history"],
    },
    {
        "header": "YouTube Music",
        "title": "Watched A Song",
        "titleUrl": "https://music.youtube.com/watch?v\u003dabcDEF67890",
        "subtitles": [{"name": "A Band - Topic"}],
        "time": "2024-01-30T22:00:00Z",
        "products": ["YouTube"],
    },
    {
        "header": "YouTube",
        "title": "Watched Buy this",
        "titleUrl": "https://www.youtube.com/watch?v\u003dadadadadada",
        "time": "2024-01-30T21:00:00.5Z",
        "products": ["YouTube"],
        "details": [{"name": "From Google Ads"}],
    },
    {
        "header": "YouTube",
        "title": "Watched a video that has been removed",
        "time": "2024-01-29T21:00:00Z",
        "products": ["YouTube"],
    },
    {
        "header": "YouTube",
        "title": "Viewed a post by somebody",
        "titleUrl": "https://www.youtube.com/post/Ugkxinvented",
        "time": "2024-01-28T21:00:00Z",
    },
    {
        "header": "YouTube",
        "title": "Watched https://www.youtube.com/watch?v\u003dunnamed0000",
        "titleUrl": "https://www.youtube.com/watch?v\u003dunnamed0000",
        "time": "2024-01-27T21:00:00Z",
    },
]
SEARCHED = [
    {
        "header": "YouTube",
        "title": "Searched for sour dough & rye",
        "titleUrl": "https://www.youtube.com/results?search_query\u003dsour+dough+%26+rye",
        "time": "2024-01-31T07:58:00.000Z",
        "products": ["YouTube"],
        "activityControls": ["YouTube search history"],
    }
]
FOLDER = "Takeout/YouTube and YouTube Music/history"


def read(folder: Path, members: Mapping[str, object]) -> tuple[list[Record], Reading]:
    for name, content in members.items():
        (folder / name).write_text(json.dumps(content))
    reading = Reading(ZoneInfo("UTC"), skip_damaged=True)
    return list(YouTube().read(Export(folder), reading)), reading


class TestYouTube(ImporterContract):
    importer = YouTube()
    good: Mapping[str, bytes] = {
        f"{FOLDER}/search-history.json": json.dumps(SEARCHED).encode(),
        f"{FOLDER}/watch-history.json": json.dumps(WATCHED, indent=2).encode(),
    }
    events = 6
    huge_name = "watch-history.json"

    def huge(self, n: int) -> Iterator[bytes]:
        yield b"[" + json.dumps(WATCHED[0]).encode()
        for i in range(n):
            yield b',{"time": "2024-01-31T07:59:%02dZ", "title": "Watched x"}' % (i % 60)
        yield b"]"


def test_videos(tmp_path: Path) -> None:
    records, reading = read(tmp_path, {"watch-history.json": WATCHED})
    assert not reading.damages
    assert [(record.time, dict(record.values)) for record in records] == [
        (
            datetime(2024, 1, 31, 7, 59, 1, 123_000, UTC),
            {
                "title": "Baking bread – part 1",
                "channel": "Invented Baker",
                "video": "abcDEF12345",
                "music": False,
                "advertisement": False,
            },
        ),
        (
            datetime(2024, 1, 30, 22, tzinfo=UTC),
            {
                "title": "A Song",
                "channel": "A Band - Topic",
                "video": "abcDEF67890",
                "music": True,
                "advertisement": False,
            },
        ),
        (
            datetime(2024, 1, 30, 21, 0, 0, 500_000, UTC),
            {
                "title": "Buy this",
                "channel": None,
                "video": "adadadadada",
                "music": False,
                "advertisement": True,
            },
        ),
        (
            datetime(2024, 1, 29, 21, tzinfo=UTC),
            {
                "title": None,
                "channel": None,
                "video": None,
                "music": False,
                "advertisement": False,
            },
        ),
        (
            datetime(2024, 1, 27, 21, tzinfo=UTC),
            {
                "title": None,
                "channel": None,
                "video": "unnamed0000",
                "music": False,
                "advertisement": False,
            },
        ),
    ]
    assert {record.kind.name for record in records} == {"video"}


def test_searches(tmp_path: Path) -> None:
    (record,), _ = read(tmp_path, {"search-history.json": SEARCHED})
    assert record.kind.name == "video_search"
    assert record.time == datetime(2024, 1, 31, 7, 58, tzinfo=UTC)
    assert dict(record.values) == {"query": "sour dough & rye"}
    assert record.place == "search-history.json, item 1"


def test_other_languages_are_told_by_their_content(tmp_path: Path) -> None:
    german = [{**WATCHED[0], "title": "Brot backen angesehen"}]
    other = [{**WATCHED[0], "title": "in My Activity, for another importer"}]
    members = {"Wiedergabeverlauf.json": german, "MeineAktivitäten.json": other}
    records, _ = read(tmp_path, members)
    assert YouTube().recognises(Export(tmp_path))
    assert [record.values["title"] for record in records] == ["Brot backen"]


def test_web_pages_are_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "watch-history.html").write_text("<html><body>Watched</body></html>")
    export = Export(tmp_path)
    assert YouTube().recognises(export)
    with pytest.raises(InputError, match="choose JSON"):
        list(YouTube().read(export, Reading(ZoneInfo("UTC"), skip_damaged=True)))


def test_damaged_entries_say_where_and_why(tmp_path: Path) -> None:
    entries: list[object] = [
        WATCHED[0],
        {"title": "Watched x"},
        {"time": "noon"},
        {"time": "2024-01-31T07:58:00Z", "titleUrl": "http://[broken"},
        {"time": "2024-01-31T07:58:00Z", "subtitles": "x"},
        WATCHED[1],
    ]
    records, reading = read(tmp_path, {"watch-history.json": entries})
    assert len(records) == 2
    assert reading.places == [
        "watch-history.json, item 2: `time` is missing.",
        "watch-history.json, item 3: `time` is no time.",
        "watch-history.json, item 4: `titleUrl` is no address.",
        "watch-history.json, item 5: `subtitles` is no list of objects.",
    ]
