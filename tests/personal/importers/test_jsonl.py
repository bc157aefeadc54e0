"""JSON lines: kinds from all lines, objects and lists flattened, damaged lines named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tacit.errors import InputError
from tacit.personal.events import EventType
from tacit.personal.importers import jsonl as jsonl_module
from tacit.personal.importers.contract import ImporterContract
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Reading
from tacit.personal.importers.jsonl import Jsonl

GOOD = b"""\
{"ts": "2024-05-01T10:00:00Z", "user": {"id": 7, "name": "Ann"}, "ok": true, "tags": ["a", "b"]}
{"ts": "2024-05-01T11:00:00Z", "user": {"id": 8}, "ok": false, "tags": [], "cost": 1.5}

{"ts": "2024-05-02T10:00:00Z", "user": {"id": 9, "name": "Bo"}, "ok": null, "cost": 2}
"""


class TestContract(ImporterContract):
    importer = Jsonl()
    good: Mapping[str, bytes] = {"log.jsonl": GOOD}
    events = 3
    huge_name = "log.jsonl"

    def huge(self, n: int) -> Iterator[bytes]:
        for i in range(n):
            yield (
                b'{"ts": "2024-05-01T10:00:%02dZ", "n": %d, "note": "number %d, with words"}\n'
                % (
                    i % 60,
                    i,
                    i,
                )
            )


def read(
    tmp_path: Path, content: bytes | str, skip: bool = False, **options: str
) -> tuple[EventType | None, list[dict[str, Any]], Reading]:
    (tmp_path / "log.jsonl").write_bytes(
        content if isinstance(content, bytes) else content.encode()
    )
    reading = Reading(ZoneInfo("Europe/Paris"), options, skip_damaged=skip)
    found = list(Jsonl().read(Export(tmp_path / "log.jsonl"), reading))
    return found[0].kind if found else None, [{"time": r.time, **r.values} for r in found], reading


def test_every_value_becomes_what_the_file_says(tmp_path: Path) -> None:
    kind, rows, _ = read(tmp_path, GOOD)
    assert kind is not None
    assert kind.name == "log"
    assert kind.fields == {
        "user_id": "number",
        "user_name": "category",
        "ok": "boolean",
        "tags_count": "number",
        "tags": "category",
        "cost": "number",
    }
    assert rows == [
        {
            "time": datetime(2024, 5, 1, 10, tzinfo=UTC),
            "user_id": 7.0,
            "user_name": "Ann",
            "ok": True,
            "tags_count": 2.0,
            "tags": '["a","b"]',
        },
        {
            "time": datetime(2024, 5, 1, 11, tzinfo=UTC),
            "user_id": 8.0,
            "ok": False,
            "tags_count": 0.0,
            "tags": "[]",
            "cost": 1.5,
        },
        {
            "time": datetime(2024, 5, 2, 10, tzinfo=UTC),
            "user_id": 9.0,
            "user_name": "Bo",
            "cost": 2.0,
        },
    ]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('"2024-05-01 10:00:00"', datetime(2024, 5, 1, 8, tzinfo=UTC)),
        ("1700000000", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        ("1700000000.5", datetime(2023, 11, 14, 22, 13, 20, 500_000, tzinfo=UTC)),
        ("1700000000500", datetime(2023, 11, 14, 22, 13, 20, 500_000, tzinfo=UTC)),
        ('"31.12.2023"', datetime(2023, 12, 30, 23, tzinfo=UTC)),
    ],
)
def test_times_in_many_forms(tmp_path: Path, written: str, expected: datetime) -> None:
    _, rows, _ = read(tmp_path, f'{{"at": {written}, "n": 1}}\n')
    assert rows == [{"time": expected, "n": 1.0}]


def test_of_two_times_one_is_named(tmp_path: Path) -> None:
    line = '{"begin": "2024-01-01", "end": "2024-01-02", "n": 1}\n'
    with pytest.raises(InputError, match=r"are: begin, end\. Name it with the option time"):
        read(tmp_path, line)
    kind, rows, _ = read(tmp_path, line, time="end", type="stay", zone="UTC")
    assert kind is not None
    assert (kind.name, kind.fields) == ("stay", {"begin": "time", "n": "number"})
    assert rows[0]["time"] == datetime(2024, 1, 2, tzinfo=UTC)
    with pytest.raises(InputError, match="no times under 'n'"):
        read(tmp_path, line, time="n")


def test_days_and_months_that_nobody_can_tell_apart(tmp_path: Path) -> None:
    line = '{"at": "03/04/2024"}\n'
    with pytest.raises(InputError, match="option order"):
        read(tmp_path, line)
    _, rows, _ = read(tmp_path, line, order="mdy", zone="UTC")
    assert rows[0]["time"] == datetime(2024, 3, 4, tzinfo=UTC)


def test_a_key_that_holds_several_kinds_is_text(tmp_path: Path) -> None:
    lines = '{"at": "2024-01-01", "x": 1}\n{"at": "2024-01-01", "x": "one"}\n'
    kind, rows, _ = read(tmp_path, lines + '{"at": "2024-01-01", "x": true}\n')
    assert kind is not None
    assert kind.fields == {"x": "category"}
    assert [row["x"] for row in rows] == ["1", "one", "true"]


def test_whole_numbers_beyond_floats_stay_exact(tmp_path: Path) -> None:
    _, rows, _ = read(tmp_path, '{"at": "2024-01-01", "id": 12345678901234567890}\n')
    assert rows[0]["id"] == "12345678901234567890"


def test_keys_that_collide_keep_their_values(tmp_path: Path) -> None:
    line = '{"at": "2024-01-01", "a": {"b": 1}, "a b": 2, "time": "x", "source": "y"}\n'
    kind, rows, _ = read(tmp_path, line)
    assert kind is not None
    assert list(kind.fields) == ["a_b", "a_b_2", "time_value", "source_value"]
    assert (rows[0]["a_b"], rows[0]["a_b_2"]) == (1.0, 2.0)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ('{"at": "2024-01-01"', "it is no JSON object."),
        ("[1, 2]", "it is no JSON object."),
        ("17", "it is no JSON object."),
        ('{"at": "2024-01-01", "x": "\xff"}', "it is no JSON object."),
        ('{"x": 3}', "it has no time."),
        ("{}", "it has no time."),
        ('{"a":' * 5000 + "1" + "}" * 5000, "it is no JSON object."),
        ('{"at": "2024-01-01", "x": NaN}', "it is no JSON object."),
    ],
)
def test_damaged_lines_are_named(tmp_path: Path, bad: str, reason: str) -> None:
    good = '{"at": "2024-01-01", "x": 1}'
    content = "\n".join([good, "", bad, good]).encode("latin-1") + b"\n"
    with pytest.raises(InputError, match=r"log\.jsonl, line 3: "):
        read(tmp_path, content)
    _, rows, reading = read(tmp_path, content, skip=True)
    assert [row["x"] for row in rows] == [1.0, 1.0]
    assert reading.places == [f"log.jsonl, line 3: {reason}"]


def test_a_line_without_end_is_one_damaged_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl_module, "LONGEST", 1000)
    good = '{"at": "2024-01-01", "x": 1}\n'
    long = '{"at": "2024-01-01", "x": "' + "y" * 5000 + '"}\n'
    _, rows, reading = read(tmp_path, good + long + good, skip=True)
    assert len(rows) == 2
    assert reading.places == ["log.jsonl, line 2: it is no JSON object."]


def test_endless_new_keys_are_refused(tmp_path: Path) -> None:
    lines = [f'{{"at": "2024-01-01", "key{i}": 1}}\n' for i in range(600)]
    with pytest.raises(InputError, match="more than 500 different keys"):
        read(tmp_path, "".join(lines))


def test_a_mark_at_the_start_is_no_part_of_it(tmp_path: Path) -> None:
    _, rows, _ = read(tmp_path, b'\xef\xbb\xbf{"at": "2024-01-01", "x": 1}\r\n')
    assert len(rows) == 1


def test_pretty_json_is_not_taken_for_lines(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{\n  "at": "2024-01-01"\n}\n')
    assert not Jsonl().recognises(Export(tmp_path / "a.json"))
