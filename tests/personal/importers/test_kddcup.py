"""KDD Cup 2015: daily counts, the cup's own files, and one enrolment's events alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tacit.errors import InputError
from tacit.personal.importers.contract import ImporterContract
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.kddcup import Kddcup

DAILY = {
    "enrollments.csv": "enrollment_id,course,start_date,label\n7,645,2014-05-28,0\n"
    "8,645,2014-05-28,1\n",
    "daily_events.csv": "enrollment_id,day,access,discussion,navigate,page_close,problem,video,"
    "wiki\n7,0,9,5,4,3,0,2,1\n7,29,1,0,0,0,0,0,0\n8,1,2,0,1,1,0,0,0\n",
}
CUP = {
    "date.csv": "course_id,from,to\nC1,2014-06-12,2014-07-11\n",
    "enrollment_train.csv": "enrollment_id,username,course_id\n1,ann,C1\n2,bo,C1\n",
    "log_train.csv": "enrollment_id,time,source,event,object\n"
    "1,2014-06-14T09:38:29,server,navigate,Oj6e\n1,2014-06-14T09:38:39,browser,video,x9\n"
    "2,2014-06-19T06:21:16,server,access,3T6X\n",
    "truth_train.csv": "1,0\n2,1\n",
}


class TestDaily(ImporterContract):
    importer = Kddcup()
    good: Mapping[str, bytes] = {name: text.encode() for name, text in DAILY.items()}
    events = 7
    torn = 3  # half a number of an enrolment is another's
    huge_name = "log_train.csv"

    def huge(self, n: int) -> Iterator[bytes]:
        yield b"enrollment_id,time,source,event,object\n"
        for i in range(n):
            yield b"1,2014-06-14T09:38:%02d,server,navigate,some_object_%d\n" % (i % 60, i)


class TestCup(ImporterContract):
    importer = Kddcup()
    good: Mapping[str, bytes] = {name: text.encode() for name, text in CUP.items()}
    events = 7
    torn = 7


def read(
    folder: Path, files: Mapping[str, str], skip: bool = False, **options: str
) -> tuple[list[Record], Reading]:
    where = folder / "cup"
    where.mkdir(exist_ok=True)
    for name, content in files.items():
        (where / name).write_text(content)
    reading = Reading(ZoneInfo("Asia/Shanghai"), options, skip_damaged=skip)
    return list(Kddcup().read(Export(where), reading)), reading


def test_daily_counts(tmp_path: Path) -> None:
    found, _ = read(tmp_path, DAILY, enrollment="7")
    taken = {"enrolment": "7", "course": "645"}
    none = dict.fromkeys(("discussion", "navigate", "page_close", "problem", "video", "wiki"), 0.0)
    counts = {
        "access": 9.0,
        "discussion": 5.0,
        "navigate": 4.0,
        "page_close": 3.0,
        "problem": 0.0,
        "video": 2.0,
        "wiki": 1.0,
    }
    assert [(r.kind.name, r.time, dict(r.values)) for r in found] == [
        ("mooc_start", datetime(2014, 5, 27, 16, tzinfo=UTC), taken),
        (
            "mooc_result",
            datetime(2014, 7, 7, 15, 59, 59, tzinfo=UTC),
            taken | {"dropped_out": False},
        ),
        ("mooc_day", datetime(2014, 5, 28, 15, 59, 59, tzinfo=UTC), taken | counts),
        ("mooc_day", datetime(2014, 6, 26, 15, 59, 59, tzinfo=UTC), taken | none | {"access": 1.0}),
    ]


def test_the_cup_s_own_files(tmp_path: Path) -> None:
    found, _ = read(tmp_path, CUP, enrollment="1")
    taken = {"enrolment": "1", "course": "C1"}
    assert [(r.kind.name, r.time, dict(r.values)) for r in found] == [
        ("mooc_start", datetime(2014, 6, 11, 16, tzinfo=UTC), taken),
        (
            "mooc_action",
            datetime(2014, 6, 14, 1, 38, 29, tzinfo=UTC),
            taken | {"action": "navigate", "origin": "server", "object": "Oj6e"},
        ),
        (
            "mooc_action",
            datetime(2014, 6, 14, 1, 38, 39, tzinfo=UTC),
            taken | {"action": "video", "origin": "browser", "object": "x9"},
        ),
        (
            "mooc_result",
            datetime(2014, 7, 22, 15, 59, 59, tzinfo=UTC),
            taken | {"dropped_out": False},
        ),
    ]
    assert len(read(tmp_path, CUP)[0]) == 7


def test_an_older_log_names_the_course_in_every_row(tmp_path: Path) -> None:
    log = "enrollment_id,username,course_id,time,source,event,object\n"
    log += "1,ann,C1,2014-06-14T09:38:29,server,navigate,Oj6e\n"
    found, _ = read(tmp_path, {"log_train.csv": log})
    assert [(r.kind.name, r.values["course"]) for r in found] == [("mooc_action", "C1")]


@pytest.mark.parametrize(
    ("files", "name", "old", "new", "reason"),
    [
        (DAILY, "enrollments.csv", "2014-05-28,0", "soon,0", "nothing says when its course began"),
        (DAILY, "enrollments.csv", "2014-05-28,0", "2014-05-28,2", "its label is neither 0 nor 1"),
        (DAILY, "daily_events.csv", "7,0,9", "7,x,9", "`day` is no number"),
        (DAILY, "daily_events.csv", "7,0,9", "7,1e9,9", "its day lies beyond the calendar"),
        (CUP, "log_train.csv", "2014-06-14T09:38:29", "once", "`time` is no time"),
        (CUP, "truth_train.csv", "1,0", "1,0,0", "it has 3 columns, and the header 2"),
        (CUP, "date.csv", "C1", "C2", "date.csv, are needed"),
    ],
)
def test_damaged_rows_are_named(
    tmp_path: Path, files: dict[str, str], name: str, old: str, new: str, reason: str
) -> None:
    damaged = {**files, name: files[name].replace(old, new, 1)}
    with pytest.raises(InputError, match=reason):
        read(tmp_path, damaged)
    _, reading = read(tmp_path, damaged, skip=True)
    assert reason in reading.places[0]
