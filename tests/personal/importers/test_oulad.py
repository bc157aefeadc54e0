"""OULAD: the original files, days made into dates, and one student's events alone."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tacit.errors import InputError, UsageError
from tacit.personal.importers.contract import ImporterContract
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.oulad import Oulad

FILES = {
    "courses.csv": '"code_module","code_presentation","module_presentation_length"\n'
    '"AAA","2013J","268"\n"BBB","2014B","234"\n',
    "studentInfo.csv": '"code_module","code_presentation","id_student","gender","region",'
    '"highest_education","imd_band","age_band","num_of_prev_attempts","studied_credits",'
    '"disability","final_result"\n'
    '"AAA","2013J","101","F","Scotland","HE Qualification","20-30%","35-55","0","60","N","Pass"\n'
    '"BBB","2014B","102","M","Wales","A Level","","0-35","1","120","Y","Withdrawn"\n',
    "studentRegistration.csv": '"code_module","code_presentation","id_student",'
    '"date_registration","date_unregistration"\n'
    '"AAA","2013J","101","-53",""\n"BBB","2014B","102","-10","12"\n',
    "assessments.csv": '"code_module","code_presentation","id_assessment","assessment_type",'
    '"date","weight"\n'
    '"AAA","2013J","1752","TMA","19","10"\n"AAA","2013J","1757","Exam","","100"\n'
    '"BBB","2014B","1800","CMA","30","5"\n',
    "studentAssessment.csv": '"id_assessment","id_student","date_submitted","is_banked","score"\n'
    '"1752","101","18","0","78"\n"1800","102","31","1",""\n',
    "vle.csv": '"id_site","code_module","code_presentation","activity_type","week_from",'
    '"week_to"\n"546614","AAA","2013J","homepage","",""\n',
    "studentVle.csv": '"code_module","code_presentation","id_student","id_site","date",'
    '"sum_click"\n'
    '"AAA","2013J","101","546614","-10","4"\n"AAA","2013J","101","999","0","1"\n',
    "pre_course_clicks.csv": "code_module,code_presentation,id_student,pre_course_clicks,"
    "pre_course_interaction_rows\nAAA,2013J,101,98,11\n",
}
GOOD = {name: content.encode() for name, content in FILES.items()}


class TestContract(ImporterContract):
    importer = Oulad()
    good: Mapping[str, bytes] = GOOD
    events = 15
    torn = 5  # half a length of a course moves the ends of both students' courses
    huge_name = "studentVle.csv"

    def huge(self, n: int) -> Iterator[bytes]:
        yield FILES["studentVle.csv"].splitlines(keepends=True)[0].encode()
        for i in range(n):
            yield b'"AAA","2013J","%d","546614","%d","4"\n' % (i, i % 200)


def read(
    folder: Path, files: Mapping[str, str] = FILES, skip: bool = False, **options: str
) -> tuple[list[Record], Reading]:
    where = folder / "oulad"
    where.mkdir(exist_ok=True)
    for name, content in files.items():
        (where / name).write_text(content)
    reading = Reading(ZoneInfo("Europe/London"), options, skip_damaged=skip)
    return list(Oulad().read(Export(where), reading)), reading


def test_every_field_is_what_the_files_say(tmp_path: Path) -> None:
    found, _ = read(tmp_path, student="101")
    course = {"student": "101", "module": "AAA", "presentation": "2013J"}
    test = {"assessment": "1752", "form": "TMA", "weight": 10.0}
    assert [(r.kind.name, r.time, dict(r.values)) for r in found] == [
        (
            "enrolment",
            datetime(2013, 9, 30, 23, tzinfo=UTC),
            course
            | {
                "gender": "F",
                "region": "Scotland",
                "education": "HE Qualification",
                "deprivation": "20-30%",
                "age": "35-55",
                "previous_attempts": 0.0,
                "credits": 60.0,
                "disability": False,
            },
        ),
        (
            "course_result",
            datetime(2014, 6, 26, 22, 59, 59, tzinfo=UTC),
            course | {"result": "Pass", "passed": True},
        ),
        (
            "registration",
            datetime(2013, 8, 9, 22, 59, 59, tzinfo=UTC),
            course | {"days_before": 53.0},
        ),
        (
            "deadline",
            datetime(2013, 10, 20, 22, 59, 59, tzinfo=UTC),
            {"module": "AAA", "presentation": "2013J", **test},
        ),
        (
            "deadline",
            datetime(2014, 6, 26, 22, 59, 59, tzinfo=UTC),
            {
                "module": "AAA",
                "presentation": "2013J",
                "assessment": "1757",
                "form": "Exam",
                "weight": 100.0,
            },
        ),
        (
            "submission",
            datetime(2013, 10, 19, 22, 59, 59, tzinfo=UTC),
            course | test | {"score": 78.0, "banked": False, "days_early": 1.0},
        ),
        (
            "early_clicks",
            datetime(2013, 9, 30, 22, 59, 59, tzinfo=UTC),
            course | {"clicks": 98.0, "visits": 11.0},
        ),
        (
            "course_clicks",
            datetime(2013, 9, 21, 22, 59, 59, tzinfo=UTC),
            course | {"site": "546614", "activity": "homepage", "clicks": 4.0},
        ),
        (
            "course_clicks",
            datetime(2013, 10, 1, 22, 59, 59, tzinfo=UTC),
            course | {"site": "999", "activity": None, "clicks": 1.0},
        ),
    ]


def test_who_left_has_an_event_of_its_own_type(tmp_path: Path) -> None:
    found, _ = read(tmp_path, student="102")
    left = [r for r in found if r.kind.name == "unregistration"]
    assert [r.time for r in left] == [datetime(2014, 2, 13, 23, 59, 59, tzinfo=UTC)]
    for record in found:
        if record.kind.name not in ("unregistration", "course_result"):
            assert "Withdrawn" not in str(dict(record.values))
    (result,) = [r for r in found if r.kind.name == "course_result"]
    assert (result.values["result"], result.values["passed"]) == ("Withdrawn", False)
    (info,) = [r for r in found if r.kind.name == "enrolment"]
    assert info.values["deprivation"] is None
    (handed_in,) = [r for r in found if r.kind.name == "submission"]
    assert (handed_in.values["score"], handed_in.values["days_early"]) == (None, -1.0)


def test_without_a_student_all_are_read(tmp_path: Path) -> None:
    found, _ = read(tmp_path)
    assert {r.values["student"] for r in found if "student" in r.values} == {"101", "102"}


def test_day_0_may_be_said(tmp_path: Path) -> None:
    found, _ = read(tmp_path, student="101", start="2013-10-05")
    assert found[0].time == datetime(2013, 10, 4, 23, tzinfo=UTC)
    with pytest.raises(UsageError, match=r"start: is a date as 2013-10-05"):
        read(tmp_path, start="October")


def test_files_by_other_names_packed_and_with_question_marks(tmp_path: Path) -> None:
    where = tmp_path / "packed"
    where.mkdir()
    for name, content in FILES.items():
        data = content.replace('""', '"?"').encode()
        (where / f"oulad_{name}.gz").write_bytes(gzip.compress(data))
    assert Oulad().recognises(Export(where))
    options = {"student": "102"}
    found = list(Oulad().read(Export(where), Reading(ZoneInfo("Europe/London"), options)))
    expected, _ = read(tmp_path, student="102")
    assert [(r.kind, r.time, r.values) for r in found] == [
        (r.kind, r.time, r.values) for r in expected
    ]


def test_without_courses_a_result_is_known_at_the_latest_end(tmp_path: Path) -> None:
    files = {name: FILES[name] for name in ("studentInfo.csv",)}
    found, _ = read(tmp_path, files, student="101")
    assert found[1].time == datetime(2014, 6, 27, 22, 59, 59, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "old", "new", "place", "reason"),
    [
        ("studentInfo.csv", '"2013J","101"', '"2013X","101"', "line 2", "its presentation is no"),
        ("studentRegistration.csv", '"-53"', '"early"', "line 2", "`date_registration` is no"),
        ("studentRegistration.csv", '"-53"', '"-99999"', "line 2", "`date_registration` is no"),
        ("studentAssessment.csv", '"1752"', '"1"', "line 2", "its assessment is not in"),
        ("studentAssessment.csv", '"78"', '"good"', "line 2", "`score` is no number"),
        ("studentAssessment.csv", '"18"', '""', "line 2", "`date_submitted` is missing"),
        ("studentVle.csv", '"-10"', '"1.5"', "line 2", "`date` is no number of days"),
        ("courses.csv", '"AAA","2013J","268"\n', "", "studentInfo", "its course is not in"),
    ],
)
def test_damaged_rows_are_named(
    tmp_path: Path, name: str, old: str, new: str, place: str, reason: str
) -> None:
    files = {**FILES, name: FILES[name].replace(old, new, 1)}
    with pytest.raises(InputError, match=reason):
        read(tmp_path, files)
    _, reading = read(tmp_path, files, skip=True)
    assert place in reading.places[0]
    assert reason in reading.places[0]
