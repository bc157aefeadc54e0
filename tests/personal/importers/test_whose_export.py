"""Every export is taken by one importer, so that nobody has to say whose it is."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from all_contracts import contracts

from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Importer
from tacit.personal.importers.plugins import GENERIC, GROUP

CONTRACTS = contracts()
IMPORTERS: dict[str, Importer] = {one.importer.name: one.importer for one in CONTRACTS.values()}
HEALTH = b'<?xml version="1.0"?>\n<HealthData locale="en_GB">\n</HealthData>\n'
ROUTE = b'<gpx version="1.1"><trk><trkseg/></trk></gpx>'


def whose(path: Path) -> list[str]:
    """Those that take it; the generic ones only if no other does."""
    fitting = [name for name, one in IMPORTERS.items() if one.recognises(Export(path))]
    return [name for name in fitting if name not in GENERIC] or fitting


def test_every_importer_has_a_contract() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text("utf-8"))
    assert set(IMPORTERS) == set(project["project"]["entry-points"][GROUP])


@pytest.mark.parametrize("name", CONTRACTS)
def test_a_good_export_is_taken_by_its_importer_alone(name: str) -> None:
    contract = CONTRACTS[name]()
    for wrapping, path in contract._wrapped(contract.good):
        assert whose(path) == [contract.importer.name], wrapping


def test_the_routes_of_apple_health_are_no_export_of_their_own(tmp_path: Path) -> None:
    routes = tmp_path / "apple_health_export" / "workout-routes"
    routes.mkdir(parents=True)
    (routes / "route_2024-03-01.gpx").write_bytes(ROUTE)
    (routes.parent / "Экспорт.xml").write_bytes(HEALTH)
    assert whose(tmp_path) == ["apple_health"]
    assert whose(routes) == ["gpx"]


@pytest.mark.parametrize(
    "content",
    [
        '{"when": "2024-01-01", "subject": "a"}\n{"when": "2024-01-02", "subject": "b"}\n',
        '\ufeff\n {"when": "2024-01-01", "subject": "a"}\n{"when": "2024-01-02", "subject": "b"}\n',
        '["2024-01-01", "a", 1]\n["2024-01-02", "b", 2]\n',
    ],
)
def test_lines_of_json_are_no_table(tmp_path: Path, content: str) -> None:
    path = tmp_path / "mails.log"
    path.write_text(content)
    assert not IMPORTERS["csv"].recognises(Export(path))
