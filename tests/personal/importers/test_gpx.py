"""GPX: the contract, and each value against what the file says."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tacit.errors import InputError
from tacit.personal.importers.contract import ImporterContract
from tacit.personal.importers.export import Export
from tacit.personal.importers.gpx import Gpx
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.tracks import Point, Track, instant, metres_between

HEAD = b"""<?xml version="1.0" encoding="UTF-8"?>
<gpx version="1.1" creator="Garmin Connect" xmlns="http://www.topografix.com/GPX/1/1"
 xmlns:gpxtpx="http://www.garmin.com/xmlschemas/TrackPointExtension/v1">
"""
RUN = (
    HEAD
    + b""" <metadata><name>Not the track</name><time>2024-03-01T06:00:00Z</time></metadata>
 <wpt lat="1" lon="2"><name>A place</name></wpt>
 <trk>
  <name>Morning Run</name>
  <type>Running</type>
  <trkseg>
   <trkpt lat="52.5000" lon="13.4000">
    <ele>34.0</ele>
    <time>2024-03-01T06:00:00.000Z</time>
    <extensions><gpxtpx:TrackPointExtension><gpxtpx:hr>98</gpxtpx:hr><gpxtpx:cad>80</gpxtpx:cad>
     </gpxtpx:TrackPointExtension></extensions>
   </trkpt>
   <trkpt lat="52.5010" lon="13.4000"><ele>37.5</ele><time>2024-03-01T07:01:00+01:00</time>
    <extensions><power>210</power><speed>2.5</speed>
     <gpxtpx:TrackPointExtension><gpxtpx:hr>102</gpxtpx:hr></gpxtpx:TrackPointExtension>
    </extensions>
   </trkpt>
  </trkseg>
  <trkseg>
   <trkpt lat="52.6000" lon="13.4000"><ele>30.0</ele><time>2024-03-01T06:10:00Z</time></trkpt>
   <trkpt lat="52.6010" lon="13.4000"><ele>31.0</ele><time>2024-03-01T06:11:00Z</time></trkpt>
  </trkseg>
 </trk>
 <trk><trkseg><trkpt lat="1" lon="1"><time>2024-03-02T06:00:00Z</time></trkpt></trkseg></trk>
</gpx>
"""
)
DEGREE = 111_195.08  # metres of a degree of latitude on a sphere of the mean radius


class TestGpx(ImporterContract):
    importer = Gpx()
    good: Mapping[str, bytes] = {"run.gpx": RUN}
    events = 7
    huge_name = "huge.gpx"

    def huge(self, n: int) -> Iterator[bytes]:
        yield HEAD + b"<trk><trkseg>"
        for i in range(n):
            yield b'<trkpt lat="52.%05d" lon="13"><ele>3</ele>' % (i % 10000)
            yield b"<time>2024-03-%02dT%02d:00:00Z</time>" % (1 + i % 28, i % 24)
            yield b" " * 700 + b"</trkpt>\n"
        yield b"</trkseg></trk></gpx>"


def read(tmp_path: Path, content: bytes, skip: bool = False) -> tuple[list[Record], Reading]:
    path = tmp_path / "run.gpx"
    path.write_bytes(content)
    reading = Reading(ZoneInfo("Europe/Berlin"), skip_damaged=skip)
    return list(Gpx().read(Export(path), reading)), reading


def at(hour: int, minute: int = 0) -> datetime.datetime:
    return datetime.datetime(2024, 3, 1, hour, minute, tzinfo=datetime.UTC)


def test_each_value_is_what_the_file_says(tmp_path: Path) -> None:
    records, _ = read(tmp_path, RUN)
    assert [record.kind.name for record in records] == [
        *["track_point"] * 4,
        "track",
        "track_point",
        "track",
    ]
    first, second = records[:2]
    assert (first.time, first.place) == (at(6), "run.gpx, line 10")
    assert first.values == {
        "lat": 52.5,
        "lon": 13.4,
        "elevation": 34.0,
        "heart_rate": 98.0,
        "cadence": 80.0,
        "speed": None,
        "power": None,
    }
    assert second.time == at(6, 1)
    assert (second.values["speed"], second.values["power"]) == (2.5, 210.0)
    whole = records[4]
    assert (whole.time, whole.place) == (at(6, 11), "run.gpx, line 6")
    metres = whole.values["metres"]
    assert isinstance(metres, float)
    assert metres == pytest.approx(2 * 0.001 * DEGREE, rel=1e-5)  # nothing for the gap between
    assert {**whole.values, "metres": None} == {
        "title": "Morning Run",
        "sport": "running",
        "seconds": 660.0,
        "metres": None,
        "climb": 3.5,
        "energy": None,
        "heart_rate": 100.0,
        "points": 4.0,
        "start_lat": 52.5,
        "start_lon": 13.4,
        "end_lat": 52.601,
        "end_lon": 13.4,
    }
    assert records[6].values["title"] is None
    assert records[6].values["climb"] is None


def test_points_without_a_time_are_plans(tmp_path: Path) -> None:
    plan = HEAD + b'<trk><trkseg><trkpt lat="1" lon="1"/></trkseg></trk><rte/></gpx>'
    assert read(tmp_path, plan)[0] == []


def test_gpx_1_0_without_namespaces_and_zone_is_universal_time(tmp_path: Path) -> None:
    old = (
        b'<gpx version="1.0"><trk><trkseg><trkpt lat="1" lon="1"><time>2024-03-01T06:00:00</time>'
        b"</trkpt></trkseg></trk></gpx>"
    )
    assert read(tmp_path, old)[0][0].time == at(6)


@pytest.mark.parametrize(
    "broken",
    [
        b'<trkpt lat="95" lon="1"><time>2024-03-01T06:00:00Z</time></trkpt>',
        b'<trkpt lat="1"><time>2024-03-01T06:00:00Z</time></trkpt>',
        b'<trkpt lat="1" lon="nan"><time>2024-03-01T06:00:00Z</time></trkpt>',
        b'<trkpt lat="1" lon="1"><time>yesterday</time></trkpt>',
        b'<trkpt lat="1" lon="1"><time>0001-01-01T00:00:00+10:00</time></trkpt>',
        b'<trkpt lat="1" lon="1"><ele>high</ele><time>2024-03-01T06:00:00Z</time></trkpt>',
    ],
)
def test_a_damaged_point_is_told_with_its_place(tmp_path: Path, broken: bytes) -> None:
    content = RUN.replace(b"  </trkseg>\n  <trkseg>", broken + b"\n  </trkseg>\n  <trkseg>")
    with pytest.raises(InputError, match=r"run\.gpx, line 21: the point"):
        read(tmp_path, content)
    records, reading = read(tmp_path, content, skip=True)
    assert (len(records), reading.damages) == (7, 1)


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    bomb = b'<!DOCTYPE gpx [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><gpx><trk>&b;</trk></gpx>'
    with pytest.raises(InputError, match="declares entities"):
        read(tmp_path, bomb, skip=True)


def test_distances_are_right_around_the_world() -> None:
    time = at(6)

    def between(a: tuple[float, float], b: tuple[float, float]) -> float:
        return metres_between(Point(time, *a), Point(time, *b))

    assert between((0, 0), (0, 0)) == 0
    assert between((0, 179.5), (0, -179.5)) == pytest.approx(DEGREE, rel=1e-6)
    assert between((90, 0), (-90, 0)) == pytest.approx(180 * DEGREE, rel=1e-6)
    # London to Paris, 343.5 km on a sphere.
    assert between((51.5074, -0.1278), (48.8566, 2.3522)) == pytest.approx(343_556, rel=1e-3)


def test_small_jitter_is_no_climb() -> None:
    track = Track("here")
    for minute, elevation in enumerate([10.0, 11.0, 10.0, 11.5, 10.0, 13.0, 12.5, 20.0, 5.0, 8.0]):
        track.add(Point(at(6, minute), None, None, elevation))
    record = track.record(None, None, None, None)
    assert record is not None
    assert record.values["climb"] == 3.0 + 7.5 + 3.0
    assert record.values["metres"] is None
    assert record.values["start_lat"] is None


def test_a_track_without_points_is_none() -> None:
    assert Track("here").record("x", None, 5.0, None) is None


def test_times_in_any_order_still_span_the_track() -> None:
    track = Track("here")
    for minute in (5, 1, 9):
        track.add(Point(at(6, minute), 1.0, 1.0))
    record = track.record(None, None, None, None)
    assert record is not None
    assert (record.time, record.values["seconds"]) == (at(6, 9), 480.0)


def test_instants() -> None:
    assert instant(" 2024-03-01T07:00:00+01:00 ") == at(6)
    assert instant("2024-03-01T06:00:00") == at(6)
