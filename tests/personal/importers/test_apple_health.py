"""Apple Health: the contract, each value against what the file says, and Apple's own faults."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tacit.errors import InputError
from tacit.personal.events import Value
from tacit.personal.importers.apple_health import AppleHealth
from tacit.personal.importers.apple_health_types import QUANTITIES, TYPES, converted, plain
from tacit.personal.importers.contract import ImporterContract
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Reading, Record

# The shape of Apple's DTD, with the fault of iOS 16: VisionPrescription lacks its `>`.
DTD = b"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE HealthData [
<!-- HealthKit Export Version: 12 -->
<!ELEMENT HealthData (ExportDate,Me,(Record|Correlation|Workout|ActivitySummary)*)>
<!ATTLIST HealthData
  locale CDATA #REQUIRED
>
<!ELEMENT VisionPrescription ((RightEye|LeftEye|MetadataEntry)*)>
<!ATTLIST VisionPrescription
  type CDATA #REQUIRED
<!-- Note: Records in a Correlation also appear as top-level records. -->
]>
"""
WATCH = 'sourceName="Ann’s Watch" sourceVersion="10.1" device="&lt;HKDevice&gt;"'.encode()
TIMES = (
    b'creationDate="2024-01-31 07:11:00 +0100" startDate="2024-01-31 07:00:00 +0100" '
    b'endDate="2024-01-31 07:10:00 +0100"'
)


def record(kind: bytes, rest: bytes, inside: bytes = b"") -> bytes:
    start = b'<Record type="' + kind + b'" ' + WATCH + b" " + TIMES + b" " + rest
    return start + (b">" + inside + b"</Record>\n" if inside else b"/>\n")


Q, C = b"HKQuantityTypeIdentifier", b"HKCategoryTypeIdentifier"
BODY = (
    b' <ExportDate value="2024-02-01 09:00:00 +0100"/>\n'
    b' <Me HKCharacteristicTypeIdentifierDateOfBirth="1990-05-01" '
    b'HKCharacteristicTypeIdentifierBiologicalSex="HKBiologicalSexFemale" '
    b'HKCharacteristicTypeIdentifierBloodType="HKBloodTypeNotSet" '
    b'HKCharacteristicTypeIdentifierFitzpatrickSkinType="HKFitzpatrickSkinTypeNotSet"/>\n'
    + record(Q + b"StepCount", b'unit="count" value="120"')
    + record(
        Q + b"HeartRate",
        b'unit="count/min" value="61.5"',
        b'\n  <MetadataEntry key="HKMetadataKeyHeartRateMotionContext" value="0"/>\n ',
    )
    + record(Q + b"DistanceCycling", b'unit="mi" value="2"')
    + record(Q + b"BodyMass", b'unit="lb" value="150"')
    + record(Q + b"ActiveEnergyBurned", b'unit="kJ" value="41.84"')
    + record(C + b"SleepAnalysis", b'value="HKCategoryValueSleepAnalysisAsleepREM"')
    + record(C + b"AppleStandHour", b'value="HKCategoryValueAppleStandHourStood"')
    + record(Q + b"OxygenSaturation", b'unit="%" value="0.97"')
    + record(Q + b"AppleExerciseTime", b'unit="min" value="3"')
    + b' <Correlation type="HKCorrelationTypeIdentifierBloodPressure" '
    + WATCH
    + b">\n  "
    + record(Q + b"BloodPressureSystolic", b'unit="mmHg" value="120"')
    + b" </Correlation>\n"
    + b' <Workout workoutActivityType="HKWorkoutActivityTypeStairClimbing" duration="9.5" '
    b'durationUnit="min" totalDistance="1.5" totalDistanceUnit="km" totalEnergyBurned="80" '
    b'totalEnergyBurnedUnit="Cal" ' + WATCH + b" " + TIMES + b">\n"
    b'  <WorkoutEvent type="HKWorkoutEventTypePause" date="2024-01-31 07:05:00 +0100"/>\n'
    b" </Workout>\n"
    b' <Workout workoutActivityType="HKWorkoutActivityTypeRunning" duration="600" durationUnit="s" '
    + WATCH
    + b" "
    + TIMES
    + b">\n"
    b'  <WorkoutStatistics type="HKQuantityTypeIdentifierHeartRate" startDate="2024-01-31 07:00:00 '
    b'+0100" startDate="2024-01-31 07:10:00 +0100" average="140.5" minimum="90" maximum="171" '
    b'unit="count/min"/>\n'
    b'  <WorkoutStatistics type="HKQuantityTypeIdentifierDistanceWalkingRunning" '
    b'startDate="2024-01-31 07:00:00 +0100" endDate="2024-01-31 07:10:00 +0100" sum="2.25" '
    b'unit="km"/>\n'
    b'  <WorkoutStatistics type="HKQuantityTypeIdentifierActiveEnergyBurned" '
    b'startDate="2024-01-31 07:00:00 +0100" endDate="2024-01-31 07:10:00 +0100" sum="150" '
    b'unit="kcal"/>\n'
    b" </Workout>\n"
    b' <ActivitySummary dateComponents="1969-12-30" activeEnergyBurned="0"/>\n'
    b' <ActivitySummary dateComponents="2024-01-31" activeEnergyBurned="412.5" '
    b'activeEnergyBurnedGoal="500" activeEnergyBurnedUnit="Cal" appleMoveTime="0" '
    b'appleExerciseTime="33" appleExerciseTimeGoal="30" appleStandHours="11" '
    b'appleStandHoursGoal="12"/>\n'
)
GOOD = DTD + b'<HealthData locale="en_GB">\n' + BODY + b"</HealthData>\n"


class TestAppleHealth(ImporterContract):
    importer = AppleHealth()
    good: Mapping[str, bytes] = {"apple_health_export/export.xml": GOOD}
    events = 13
    huge_name = "export.xml"

    def huge(self, n: int) -> Iterator[bytes]:
        yield DTD + b'<HealthData locale="en_GB">\n'
        for i in range(n):
            yield record(Q + b"StepCount", b'unit="count" value="%d"' % i, b" " * 500)
        yield b"</HealthData>\n"


def read(tmp_path: Path, content: bytes, skip: bool = False) -> tuple[list[Record], Reading]:
    path = tmp_path / "export.xml"
    path.write_bytes(content)
    reading = Reading(ZoneInfo("Europe/Berlin"), skip_damaged=skip)
    return list(AppleHealth().read(Export(path), reading)), reading


def one(tmp_path: Path, line: bytes) -> Record:
    (found,) = read(tmp_path, b'<HealthData locale="x">' + line + b"</HealthData>")[0]
    return found


END = datetime.datetime(2024, 1, 31, 6, 10, tzinfo=datetime.UTC)
MEASURED: dict[str, Value] = {"device": "Ann’s Watch", "seconds": 600.0}


def test_each_value_is_what_the_file_says(tmp_path: Path) -> None:
    records, reading = read(tmp_path, GOOD)
    assert reading.damages == 0
    person, *measured = records[:10]
    assert (person.kind.name, person.time) == ("person", None)
    assert person.values == {
        "birth": datetime.datetime(1990, 4, 30, 22, tzinfo=datetime.UTC),
        "sex": "female",
        "blood": None,
    }
    assert all(one.time == END for one in measured)
    assert [(one.kind.name, one.values) for one in measured] == [
        ("steps", {**MEASURED, "count": 120.0}),
        ("heart_rate", {**MEASURED, "bpm": 61.5}),
        ("distance", {**MEASURED, "metres": 3218.688, "sport": "cycling"}),
        ("weight", {**MEASURED, "kg": 150 * 0.45359237}),
        ("energy", {**MEASURED, "kcal": pytest.approx(10.0), "burned": "active"}),
        ("sleep", {**MEASURED, "stage": "asleep_rem"}),
        (
            "health_record",
            {
                **MEASURED,
                "kind": "apple_stand_hour",
                "unit": None,
                "state": "apple_stand_hour_stood",
            },
        ),
        ("health_record", {**MEASURED, "kind": "oxygen_saturation", "unit": "%", "value": 0.97}),
        ("exercise", {**MEASURED, "active_seconds": 180.0}),
    ]
    stairs, run, day = records[10:]
    assert stairs.time == run.time == END
    assert stairs.values == {
        "sport": "stair_climbing",
        "seconds": 600.0,
        "active_seconds": 570.0,
        "metres": 1500.0,
        "energy": 80.0,
        "device": "Ann’s Watch",
    }
    assert run.values == {
        "sport": "running",
        "seconds": 600.0,
        "active_seconds": 600.0,
        "metres": 2250.0,
        "energy": 150.0,
        "heart_rate": 140.5,
        "device": "Ann’s Watch",
    }
    assert day.time == datetime.datetime(2024, 1, 31, 22, 59, 59, tzinfo=datetime.UTC)
    assert day.values == {
        "energy": 412.5,
        "energy_goal": 500.0,
        "exercise_seconds": 1980.0,
        "stand_hours": 11.0,
    }


def test_places_are_the_lines_of_the_file(tmp_path: Path) -> None:
    for found in read(tmp_path, GOOD)[0]:
        number = int(found.place.rpartition(" ")[2])
        assert found.place == f"export.xml, line {number}"
        assert GOOD.split(b"\n")[number - 1].lstrip()[:3] in (b"<Me", b"<Re", b"<Wo", b"<Ac")


def test_the_name_of_the_file_is_translated(tmp_path: Path) -> None:
    (tmp_path / "apple_health_export").mkdir()
    (tmp_path / "apple_health_export" / "Экспорт.xml").write_bytes(GOOD)
    (tmp_path / "apple_health_export" / "export_cda.xml").write_bytes(b"<ClinicalDocument/>")
    export = Export(tmp_path)
    assert AppleHealth().recognises(export)
    assert len(list(AppleHealth().read(export, Reading(ZoneInfo("UTC"))))) == 13


def test_vertical_tabs_in_texts_are_borne_with(tmp_path: Path) -> None:
    line = record(Q + b"StepCount", b'unit="count" value="1"').replace(b"Ann", b"An\x0bn")
    assert one(tmp_path, line).values["device"] == "An n’s Watch"


@pytest.mark.parametrize(
    "broken",
    [
        record(Q + b"StepCount", b'unit="count" value="many"'),
        record(Q + b"StepCount", b'unit="count"'),
        record(Q + b"BodyMass", b'unit="stones" value="9"'),
        record(Q + b"StepCount", b'unit="count" value="1"').replace(b"2024-01-31 07:00", b"31.1."),
        record(Q + b"StepCount", b'unit="count" value="1"').replace(b"07:00:00 +0100", b"07:00:00"),
        record(Q + b"StepCount", b'unit="count" value="1"').replace(b"2024-01-31", b"0000-01-31"),
        record(Q + b"StepCount", b'unit="count" value="1"').replace(b"startDate=", b"start="),
        record(Q + b"Novel", b'unit="x" value="much"'),
        b'<ActivitySummary dateComponents="today"/>\n',
        b'<Workout workoutActivityType="HKWorkoutActivityTypeYoga" duration="long" %s/>\n' % TIMES,
        b'<Workout workoutActivityType="HKWorkoutActivityTypeYoga"/>\n',
        b'<Record type="x" Health Mate App Version="2.6.0" value="1"/>\n',
    ],
)
def test_damage_is_told_with_its_place_and_left_out(tmp_path: Path, broken: bytes) -> None:
    sound = record(Q + b"StepCount", b'unit="count" value="1"')
    content = b"<HealthData>\n" + sound + broken + sound + b"</HealthData>"
    with pytest.raises(InputError, match=r"export\.xml, line 3: "):
        read(tmp_path, content)
    records, reading = read(tmp_path, content, skip=True)
    assert (len(records), reading.damages) == (2, 1)


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    bomb = DTD.replace(b"]>", b'<!ENTITY a "aaaa">]>') + b"<HealthData>&a;</HealthData>"
    with pytest.raises(InputError, match="declares entities"):
        read(tmp_path, bomb, skip=True)


@pytest.mark.parametrize(
    ("value", "unit", "measure", "result"),
    [
        (1, "km", "distance", 1000),
        (1, "ft", "distance", 0.3048),
        (2, "hr", "time", 7200),
        (500, "cal", "energy", 0.5),
        (0.045, "s", "milliseconds", 45),
        (1.5, "Hz", "rate", 90),
    ],
)
def test_units(value: float, unit: str, measure: str, result: float) -> None:
    assert converted(value, unit, measure) == pytest.approx(result)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("HKWorkoutActivityTypeHighIntensityIntervalTraining", "high_intensity_interval_training"),
        ("HKQuantityTypeIdentifierVO2Max", "vo_2_max"),
        ("HKDataTypeSleepDurationGoal", "sleep_duration_goal"),
        ("AsleepREM", "asleep_rem"),
        ("HKCategoryValueNotApplicable", "not_applicable"),
        ("", None),
    ],
)
def test_names_become_plain(name: str, word: str | None) -> None:
    assert plain(name) == word


def test_the_tables_fit_the_types() -> None:
    for quantity in QUANTITIES.values():
        assert quantity.type in TYPES
        assert {quantity.field, *quantity.fixed} <= set(quantity.type.fields)
