"""Importers of any package are found; one that is faulty hides no other."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tacit.errors import UsageError
from tacit.personal.importers.export import Export
from tacit.personal.importers.plugins import broken, importer_named, importers, recognised

PLUGIN = """
from tacit.personal.importers.importer import Record

class Base:
    title, hint, types, options = "A title", "A hint", (), {}
    def read(self, export, reading):
        yield from ()

class Runs(Base):
    name = "acme_runs"
    def recognises(self, export):
        return bool(export.find("runs.*"))

class Zebra(Runs):
    name = "acme_zebra"

class Shadow(Runs):
    name = "csv"

class Misnamed(Runs):
    name = "acme_other"

class Half:
    name = "acme_half"

def fails():
    raise RuntimeError("needs a licence")
"""

ENTRIES = """\
[tacit.importers]
acme_zebra = acme_importers:Zebra
acme_runs = acme_importers:Runs
acme_misnamed = acme_importers:Misnamed
acme_half = acme_importers:Half
acme_fails = acme_importers:fails
acme_absent = acme_not_there:Runs
"""


def install(folder: Path, name: str, entries: str) -> None:
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entries)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages with a third party's plug-ins."""
    folder = tmp_path / "site"
    install(folder, "acme_importers", ENTRIES)
    (folder / "acme_importers.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "acme_importers", raising=False)
    return folder


def test_a_third_party_s_importer_is_found(site: Path) -> None:
    found = importers()
    assert found["acme_runs"].title == "A title"
    assert list(found) == sorted(found)
    assert importer_named("acme_runs").name == "acme_runs"


def test_a_faulty_plug_in_is_left_out_and_said_why(site: Path) -> None:
    assert not {"acme_misnamed", "acme_half", "acme_fails", "acme_absent"} & set(importers())
    faults = broken()
    assert "needs a licence" in faults["acme_fails"]
    assert "acme_not_there" in faults["acme_absent"]
    assert "calls itself 'acme_other'" in faults["acme_misnamed"]
    assert "lacks an attribute or method" in faults["acme_half"]


def test_no_other_package_takes_the_place_of_ours(site: Path) -> None:
    install(site, "aaa_evil", "[tacit.importers]\ncsv = acme_importers:Shadow\n")
    ours = "[tacit.importers]\ncsv = tacit.personal.importers.csv:Csv\n"
    install(site, "zzz_ours", ours)
    assert type(importers()["csv"]).__module__ == "tacit.personal.importers.csv"
    assert "another package" in broken()["csv (acme_importers:Shadow)"]


def test_a_name_that_is_not_known_is_answered_with_the_nearest(site: Path) -> None:
    with pytest.raises(UsageError, match=r"Did you mean acme_runs\?.* There are: .*acme_zebra"):
        importer_named("acme_run")
    with pytest.raises(UsageError, match="does not load: RuntimeError: needs a licence"):
        importer_named("acme_fails")


def test_those_that_recognise_an_export_are_named(site: Path, tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("day,km\n2024-01-01,5\n2024-01-02,6\n")
    (tmp_path / "other.csv").write_text("day,km\n2024-01-01,5\n2024-01-02,6\n")
    install(site, "zzz_ours", "[tacit.importers]\ncsv = tacit.personal.importers.csv:Csv\n")
    names = [one.name for one in recognised(Export(tmp_path / "runs.csv"))]
    assert names == ["acme_runs", "acme_zebra"]  # not csv, which takes any table
    assert [one.name for one in recognised(Export(tmp_path / "other.csv"))] == ["csv"]
