"""TCX: the contract, and each value against what the file says."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tacit.errors import InputError
from tacit.personal.importers.contract import ImporterContract
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.tcx import Tcx

HEAD = b"""<?xml version="1.0" encoding="UTF-8"?>
<TrainingCenterDatabase
  xmlns:ns3="http://www.garmin.com/xmlschemas/ActivityExtension/v2"
  xmlns="http://www.garmin.com/xmlschemas/TrainingCenterDatabase/v2">
"""
TAIL = b"</TrainingCenterDatabase>\n"
RIDE = (
    HEAD
    + b""" <Activities>
  <Activity Sport="Biking">
   <Id>2024-03-01T06:00:00.000Z</Id>
   <Lap StartTime="2024-03-01T06:00:00.000Z">
    <TotalTimeSeconds>60.0</TotalTimeSeconds>
    <DistanceMeters>400.5</DistanceMeters>
    <MaximumSpeed>8.1</MaximumSpeed>
    <Calories>12</Calories>
    <AverageHeartRateBpm><Value>111</Value></AverageHeartRateBpm>
    <Intensity>Active</Intensity>
    <TriggerMethod>Manual</TriggerMethod>
    <Track>
     <Trackpoint>
      <Time>2024-03-01T06:00:00.000Z</Time>
      <Position><LatitudeDegrees>52.5</LatitudeDegrees><LongitudeDegrees>13.4</LongitudeDegrees></Position>
      <AltitudeMeters>34.2</AltitudeMeters>
      <DistanceMeters>0.0</DistanceMeters>
      <HeartRateBpm xsi:type="HeartRateInBeatsPerMinute_t"><Value>110</Value></HeartRateBpm>
      <Cadence>85</Cadence>
      <Extensions><ns3:TPX><ns3:Speed>6.5</ns3:Speed><ns3:Watts>180</ns3:Watts></ns3:TPX></Extensions>
     </Trackpoint>
     <Trackpoint><Time>2024-03-01T06:01:00.000Z</Time><HeartRateBpm><Value>120</Value></HeartRateBpm>
      <Extensions><ns3:TPX><ns3:RunCadence>70</ns3:RunCadence></ns3:TPX></Extensions></Trackpoint>
    </Track>
    <Notes>of the lap</Notes>
   </Lap>
   <Lap StartTime="2024-03-01T06:01:00.000Z">
    <DistanceMeters>99.5</DistanceMeters>
    <Calories>3</Calories>
    <Track><Trackpoint><Time>2024-03-01T06:02:00.000Z</Time></Trackpoint></Track>
   </Lap>
   <Notes>To work</Notes>
  </Activity>
 </Activities>
 <Courses><Course><Name>Plan</Name><Track><Trackpoint><Time>2024-03-05T06:02:00Z</Time></Trackpoint>
 </Track></Course></Courses>
"""
    + TAIL
)


class TestTcx(ImporterContract):
    importer = Tcx()
    good: Mapping[str, bytes] = {"ride.tcx": RIDE}
    events = 4
    huge_name = "huge.tcx"

    def huge(self, n: int) -> Iterator[bytes]:
        yield HEAD + b'<Activities><Activity Sport="Running"><Lap><Track>'
        for i in range(n):
            yield b"<Trackpoint><Time>2024-03-01T%02d:%02d:00Z</Time>" % (i % 24, i % 60)
            yield b"<HeartRateBpm><Value>100</Value></HeartRateBpm>%s</Trackpoint>\n" % (b" " * 700)
        yield b"</Track></Lap></Activity></Activities>" + TAIL


def read(tmp_path: Path, content: bytes, skip: bool = False) -> tuple[list[Record], Reading]:
    path = tmp_path / "ride.tcx"
    path.write_bytes(content)
    reading = Reading(ZoneInfo("Europe/Berlin"), skip_damaged=skip)
    return list(Tcx().read(Export(path), reading)), reading


def test_each_value_is_what_the_file_says(tmp_path: Path) -> None:
    records, _ = read(tmp_path, RIDE)
    start = datetime.datetime(2024, 3, 1, 6, tzinfo=datetime.UTC)
    first, second, third, whole = records
    assert (first.time, first.place) == (start, "ride.tcx, line 17")
    assert first.values == {
        "lat": 52.5,
        "lon": 13.4,
        "elevation": 34.2,
        "heart_rate": 110.0,
        "cadence": 85.0,
        "speed": 6.5,
        "power": 180.0,
    }
    assert (second.values["lat"], second.values["heart_rate"]) == (None, 120.0)
    assert second.values["cadence"] == 70.0
    assert third.time == start + datetime.timedelta(minutes=2)
    assert (whole.time, whole.place) == (third.time, "ride.tcx, line 6")
    assert whole.values == {
        "title": "To work",
        "sport": "biking",
        "seconds": 120.0,
        "metres": 500.0,
        "climb": 0.0,
        "energy": 15.0,
        "heart_rate": 115.0,
        "points": 3.0,
        "start_lat": 52.5,
        "start_lon": 13.4,
        "end_lat": 52.5,
        "end_lon": 13.4,
    }


def test_without_the_device_s_sum_the_distance_is_that_of_the_points(tmp_path: Path) -> None:
    content = RIDE.replace(b"<DistanceMeters>400.5</DistanceMeters>", b"").replace(
        b"<DistanceMeters>99.5</DistanceMeters>", b""
    )
    assert read(tmp_path, content)[0][-1].values["metres"] == 0.0


def test_strava_writes_spaces_first(tmp_path: Path) -> None:
    path = tmp_path / "ride.tcx"
    path.write_bytes(b"          " + RIDE)
    assert Tcx().recognises(Export(path))
    assert len(read(tmp_path, b"          " + RIDE)[0]) == 4


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        (b"06:01:00.000Z</Time><H", b"06h01</Time><H", "line 26: the point"),
        (b"<Value>120", b"<Value>fast", "line 26: the point"),
        (b"<LongitudeDegrees>13.4</LongitudeDegrees>", b"", "line 17: the point"),
        (b"<Calories>12", b"<Calories>many", "line 12: a sum"),
        (b"<Time>2024-03-01T06:02:00.000Z</Time>", b"", "line 34: the point"),
    ],
)
def test_damage_is_told_with_its_place(tmp_path: Path, old: bytes, new: bytes, place: str) -> None:
    content = RIDE.replace(old, new)
    assert content != RIDE
    with pytest.raises(InputError, match=place):
        read(tmp_path, content)
    assert read(tmp_path, content, skip=True)[1].damages == 1
