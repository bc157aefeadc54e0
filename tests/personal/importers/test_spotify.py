from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from tacit.personal.importers.contract import ImporterContract
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.spotify import Spotify

BASIC = [
    {
        "endTime": "2023-01-31 07:59",
        "artistName": "An Invented Band",
        "trackName": "Song",
        "msPlayed": 181500,
    },
    {"endTime": "2023-01-31 08:00", "artistName": "Other", "trackName": "Skipped", "msPlayed": 0},
]
PODCASTS = [
    {
        "endTime": "2023-02-01 07:59",
        "podcastName": "A Show",
        "episodeName": "Episode 1",
        "msPlayed": 1000,
    }
]
STREAM: dict[str, Any] = {
    "ts": "2022-12-31T23:59:58Z",
    "username": "someone",
    "platform": "ios",
    "ms_played": 181500,
    "conn_country": "AT",
    "ip_addr": "192.0.2.7",
    "master_metadata_track_name": "Song",
    "master_metadata_album_artist_name": "An Invented Band",
    "master_metadata_album_album_name": "First Album",
    "spotify_track_uri": "spotify:track:0000000000000000000000",
    "episode_name": None,
    "episode_show_name": None,
    "spotify_episode_uri": None,
    "reason_start": "clickrow",
    "reason_end": "trackdone",
    "shuffle": True,
    "skipped": None,
    "offline": False,
    "offline_timestamp": 1672531000,
    "incognito_mode": False,
}
UNNAMED = {"master_metadata_track_name": None, "master_metadata_album_artist_name": None}
EPISODE = {
    **STREAM,
    **UNNAMED,
    "episode_name": "Episode 1",
    "episode_show_name": "A Show",
    "spotify_episode_uri": "spotify:episode:0",
    "skipped": True,
}
CHAPTER = {
    **STREAM,
    **UNNAMED,
    "audiobook_title": "A Book",
    "audiobook_uri": "spotify:show:0",
    "audiobook_chapter_title": "Chapter 2",
}


def read(folder: Path, members: Mapping[str, object]) -> tuple[list[Record], Reading]:
    for name, content in members.items():
        (folder / name).write_text(json.dumps(content))
    reading = Reading(ZoneInfo("Europe/Vienna"), skip_damaged=True)
    return list(Spotify().read(Export(folder), reading)), reading


class TestBasic(ImporterContract):
    importer = Spotify()
    good: Mapping[str, bytes] = {
        "MyData/StreamingHistory_music_0.json": json.dumps(BASIC, indent=2).encode(),
        "MyData/StreamingHistory_podcast_0.json": json.dumps(PODCASTS).encode(),
    }
    events = 3


class TestExtended(ImporterContract):
    importer = Spotify()
    good: Mapping[str, bytes] = {
        "Streaming_History_Audio_2021-2022_0.json": json.dumps([STREAM, EPISODE, CHAPTER]).encode()
    }
    events = 3
    huge_name = "endsong_0.json"

    def huge(self, n: int) -> Iterator[bytes]:
        yield b"["
        for i in range(n):
            yield json.dumps({**STREAM, "ms_played": i}).encode() + b","
        yield json.dumps(STREAM).encode() + b"]"


def test_the_last_year_is_in_universal_time(tmp_path: Path) -> None:
    members = {"StreamingHistory0.json": BASIC, "StreamingHistory_podcast_0.json": PODCASTS}
    records, reading = read(tmp_path, members)
    assert not reading.damages
    assert [(r.kind.name, r.time, dict(r.values)) for r in records] == [
        (
            "song",
            datetime(2023, 1, 31, 7, 59, tzinfo=UTC),
            {"title": "Song", "artist": "An Invented Band", "seconds": 181.5},
        ),
        (
            "song",
            datetime(2023, 1, 31, 8, 0, tzinfo=UTC),
            {"title": "Skipped", "artist": "Other", "seconds": 0.0},
        ),
        (
            "podcast",
            datetime(2023, 2, 1, 7, 59, tzinfo=UTC),
            {"title": "Episode 1", "show": "A Show", "seconds": 1.0},
        ),
    ]


def test_the_extended_history(tmp_path: Path) -> None:
    records, _ = read(tmp_path, {"endsong_0.json": [STREAM, EPISODE, CHAPTER]})
    played = {
        "seconds": 181.5,
        "platform": "ios",
        "country": "AT",
        "began_by": "clickrow",
        "ended_by": "trackdone",
        "shuffle": True,
        "skipped": None,
        "offline": False,
        "private": False,
    }
    assert {record.time for record in records} == {datetime(2022, 12, 31, 23, 59, 58, tzinfo=UTC)}
    assert [(record.kind.name, dict(record.values)) for record in records] == [
        ("song", {"title": "Song", "artist": "An Invented Band", "album": "First Album", **played}),
        ("podcast", {"title": "Episode 1", "show": "A Show", **played, "skipped": True}),
        ("audiobook", {"title": "Chapter 2", "book": "A Book", **played}),
    ]
    assert "192.0.2.7" not in str(records)


def test_where_both_are_there_the_extended_one_is_read(tmp_path: Path) -> None:
    members = {"StreamingHistory0.json": BASIC, "Streaming_History_Audio_2022_1.json": [STREAM]}
    records, _ = read(tmp_path, members)
    assert [record.place for record in records] == ["Streaming_History_Audio_2022_1.json, item 1"]


def test_damaged_streams_say_where_and_why(tmp_path: Path) -> None:
    streams = [
        {**STREAM, "ts": "2022"},
        {**STREAM, "ms_played": None},
        {**STREAM, "shuffle": "yes"},
        {"ts": STREAM["ts"], "ms_played": 1},
        STREAM,
    ]
    records, reading = read(tmp_path, {"endsong_1.json": streams})
    assert len(records) == 1
    assert reading.places == [
        "endsong_1.json, item 1: `ts` is no time.",
        "endsong_1.json, item 2: `ms_played` is missing.",
        "endsong_1.json, item 3: `shuffle` is neither true nor false.",
        "endsong_1.json, item 4: `master_metadata_track_name` is missing.",
    ]
