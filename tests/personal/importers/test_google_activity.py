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
from tacit.personal.importers.google_activity import GoogleActivity
from tacit.personal.importers.importer import Reading

SEARCH = [
    {
        "header": "Search",
        "title": "Searched for rye bread",
        "titleUrl": "https://www.google.com/search?q\u003drye+bread",
        "time": "2024-01-31T07:59:01.123Z",
        "products": ["Search"],
        "activityControls": ["Web & App Activity"],
        "locationInfos": [
            {
                "name": "At this general area",
                "url": "https://www.google.com/maps/@?api\u003d1\u0026map_action\u003dmap"
                "\u0026center\u003d48.20,-16.37\u0026zoom\u003d12",
                "source": "From your device",
            }
        ],
    },
    {
        "header": "example.org",
        "title": "Visited Bakery",
        "time": "2024-01-31T08:00:00Z",
        "products": ["Search", "Ads"],
        "details": [{"name": "From Google Ads"}],
    },
]
MAPS = [{"header": "Maps", "title": "Used Maps", "time": "2024-01-30T08:00:00Z"}]


class TestGoogleActivity(ImporterContract):
    importer = GoogleActivity()
    good: Mapping[str, bytes] = {
        "Takeout/My Activity/Maps/MyActivity.json": json.dumps(MAPS).encode(),
        "Takeout/My Activity/Search/MyActivity.json": json.dumps(SEARCH, indent=2).encode(),
    }
    events = 3
    huge_name = "MyActivity.json"

    def huge(self, n: int) -> Iterator[bytes]:
        yield b'[{"header": "Maps", "time": "2024-01-31T00:00:00Z"}'
        for i in range(n):
            yield b',{"header": "Maps", "title": "x", "time": "2024-01-31T07:59:%02dZ"}' % (i % 60)
        yield b"]"


def test_activities(tmp_path: Path) -> None:
    (tmp_path / "MyActivity.json").write_text(json.dumps(SEARCH))
    records = list(GoogleActivity().read(Export(tmp_path), Reading(ZoneInfo("UTC"))))
    assert [(record.time, dict(record.values)) for record in records] == [
        (
            datetime(2024, 1, 31, 7, 59, 1, 123_000, UTC),
            {
                "app": "Search",
                "product": "Search",
                "title": "Searched for rye bread",
                "detail": None,
                "lat": 48.2,
                "lon": -16.37,
            },
        ),
        (
            datetime(2024, 1, 31, 8, tzinfo=UTC),
            {
                "app": "example.org",
                "product": "Search",
                "title": "Visited Bakery",
                "detail": "From Google Ads",
                "lat": None,
                "lon": None,
            },
        ),
    ]


def test_damaged_entries_say_where_and_why(tmp_path: Path) -> None:
    (tmp_path / "MyActivity.json").write_text(
        json.dumps([{**MAPS[0], "products": "Maps"}, {"header": "Maps"}, MAPS[0]])
    )
    reading = Reading(ZoneInfo("UTC"), skip_damaged=True)
    assert len(list(GoogleActivity().read(Export(tmp_path), reading))) == 1
    assert reading.places == [
        "MyActivity.json, item 1: `products` is no list.",
        "MyActivity.json, item 2: `time` is missing.",
    ]


def test_web_pages_are_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "MyActivity.html").write_text("<html></html>")
    export = Export(tmp_path)
    assert GoogleActivity().recognises(export)
    with pytest.raises(InputError, match="choose JSON"):
        list(GoogleActivity().read(export, Reading(ZoneInfo("UTC"), skip_damaged=True)))
