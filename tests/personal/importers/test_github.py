from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from tacit.personal.importers.contract import ImporterContract
from tacit.personal.importers.export import Export
from tacit.personal.importers.github import GitHub
from tacit.personal.importers.importer import Reading, Record

PUSH: dict[str, Any] = {
    "id": "20000000001",
    "type": "PushEvent",
    "actor": {"id": 1, "login": "Some-One", "url": "https://api.github.com/users/some-one"},
    "repo": {"id": 2, "name": "some-one/bread", "url": "https://api.github.com/repos/x/y"},
    "payload": {
        "push_id": 3,
        "size": 4,
        "distinct_size": 4,
        "ref": "refs/heads/main",
        "commits": [{"sha": "0", "message": "secret plans"}],
    },
    "public": True,
    "created_at": "2024-01-31T07:59:00Z",
}
REVIEW: dict[str, Any] = {
    **PUSH,
    "type": "PullRequestReviewEvent",
    "actor": {"login": "other"},
    "payload": {"action": "created"},
    "public": False,
}
SHORT = {**PUSH, "payload": {"commits": [{"sha": "0"}, {"sha": "1"}]}}
EVENTS = [PUSH, REVIEW, SHORT]
LINES = b"".join(json.dumps(event).encode() + b"\n" for event in EVENTS)


def read(folder: Path, name: str, content: bytes, **options: str) -> tuple[list[Record], Reading]:
    (folder / name).write_bytes(content)
    reading = Reading(ZoneInfo("UTC"), options, skip_damaged=True)
    return list(GitHub().read(Export(folder), reading)), reading


class TestAnswers(ImporterContract):
    importer = GitHub()
    good: Mapping[str, bytes] = {"events.json": json.dumps(EVENTS, indent=2).encode()}
    events = 3


class TestArchive(ImporterContract):
    importer = GitHub()
    good: Mapping[str, bytes] = {"2024-01-31-7.json": LINES}
    events = 2
    options: Mapping[str, str] = {"login": "some-one"}
    huge_name = "2024-01-31-8.json"

    def huge(self, n: int) -> Iterator[bytes]:
        yield from (LINES for _ in range(n // 3))


def test_events(tmp_path: Path) -> None:
    records, _ = read(tmp_path, "events.json", json.dumps(EVENTS).encode())
    moment = datetime(2024, 1, 31, 7, 59, tzinfo=UTC)
    pushed = {
        "what": "push",
        "action": None,
        "repository": "some-one/bread",
        "login": "Some-One",
        "commits": 4.0,
        "public": True,
    }
    reviewed = {
        **pushed,
        "what": "pull_request_review",
        "action": "created",
        "login": "other",
        "commits": None,
        "public": False,
    }
    assert [(record.time, dict(record.values)) for record in records] == [
        (moment, pushed),
        (moment, reviewed),
        (moment, {**pushed, "commits": 2.0}),
    ]
    assert records[1].place == "events.json, item 2"


def test_lines_and_lists_tell_the_same(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    listed, _ = read(tmp_path / "a", "events.json", json.dumps(EVENTS).encode())
    lines, _ = read(tmp_path / "b", "2024-01-31-7.json", LINES)
    assert [r[:3] for r in listed] == [r[:3] for r in lines]
    assert lines[1].place == "2024-01-31-7.json, line 2"


def test_one_account_alone(tmp_path: Path) -> None:
    records, _ = read(tmp_path, "2024-01-31-7.json", LINES, login="OTHER")
    assert [record.values["what"] for record in records] == ["pull_request_review"]


def test_a_long_payload_before_the_moment_does_not_hide_it(tmp_path: Path) -> None:
    long = {**PUSH, "payload": {"commits": [{"message": "x" * 9000}]}}
    (tmp_path / "events.json").write_text(json.dumps([long]))
    assert GitHub().recognises(Export(tmp_path))


def test_damaged_lines_say_where_and_why_and_the_rest_is_read(tmp_path: Path) -> None:
    bad = [{**PUSH, "created_at": "noon"}, {**PUSH, "type": None}, {**PUSH, "actor": "x"}]
    content = LINES + b"{oops\n" + b"\n".join(json.dumps(one).encode() for one in [*bad, PUSH])
    records, reading = read(tmp_path, "x.json", content)
    assert len(records) == 4
    assert reading.places == [
        "x.json, line 4: is no JSON object, or breaks off.",
        "x.json, line 5: `created_at` is no time.",
        "x.json, line 6: `type` is missing.",
        "x.json, line 7: `actor` is no object.",
    ]
