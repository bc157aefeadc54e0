"""The guide's first study, command by command, each institution in a folder of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent / "guide"))

from actors import COMMANDS, SCHEMA, Company, Somebody

from tacit.crypto.signing import SigningKey
from tacit.privacy import Ledger

PAGE = Path(__file__).parent.parent / "docs" / "guide" / "federation.md"
WHO = ("aarau", "basel", "chur")


def records(seed: int, rows: int = 400) -> str:
    """Made-up patients: the older and the higher the pressure, the likelier the disease."""
    draw = np.random.default_rng(seed)
    age, pressure = draw.integers(20, 95, rows), draw.integers(90, 200, rows)
    smoker = draw.random(rows) < 0.3
    risk = 0.05 * (age - 60) + 0.03 * (pressure - 140) + 1.0 * smoker
    disease = draw.random(rows) < 1 / (1 + np.exp(-2 * risk))
    lines = [
        f"{a},{p},{str(bool(s)).lower()},{str(bool(d)).lower()}"
        for a, p, s, d in zip(age, pressure, smoker, disease, strict=True)
    ]
    return "age,pressure,smoker,disease\n" + "\n".join(lines) + "\n"


@pytest.mark.timeout(600)
def test_your_first_study_with_two_other_institutions(
    tmp_path: Path, ports: Callable[[int], list[int]]
) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (schema,) = SCHEMA.findall(text)
    listening = dict(zip(WHO, ports(3), strict=True))
    with Company(tmp_path) as company:
        towns = {name: company.somebody(name) for name in WHO}
        for number, town in enumerate(towns.values()):
            (town.folder / "patients.csv").write_text(records(number))
        (towns["aarau"].folder / "schema.toml").write_text(schema)
        for name, block in COMMANDS.findall(text):
            for line in [line[2:] for line in block.splitlines()]:
                _share_study(towns)
                for town, port in listening.items():
                    line = line.replace(f"{town}.example:8443", f"127.0.0.1:{port}")
                towns[name].variables.update(_keys(towns))
                process = towns[name].start(line)
                if not line.endswith(" &"):
                    company.finished(towns[name], process)
        for somebody in towns.values():
            somebody.finish()
    models = {(town.folder / "heart-2026.safetensors").read_bytes() for town in towns.values()}
    models.add((towns["aarau"].folder / "results" / "heart-2026.safetensors").read_bytes())
    assert len(models) == 1
    for town in towns.values():
        balance = Ledger(town.folder / "home" / "ledger.db").balance("patients", "record")
        assert balance.spent.epsilon == 1
    predicted = (towns["chur"].folder / "risks.csv").read_text().splitlines()
    assert len(predicted) == 401


def _keys(towns: dict[str, Somebody]) -> dict[str, str]:
    """The variables that the guide uses for keys which others have sent."""
    return {
        f"{name.upper()}_{role.upper()}": _public_key(town, role)
        for name, town in towns.items()
        for role in ("server", "aggregator", "hospital")
    }


def _public_key(town: Somebody, name: str) -> str:
    path = town.folder / "home" / "keys" / f"{name}.pem"
    return SigningKey.load_or_create(path).public_key if path.exists() else ""


def _share_study(towns: dict[str, Somebody]) -> None:
    """Aarau sends its file to the others."""
    for name in ("basel", "chur"):
        towns[name].receive(towns["aarau"].folder / "heart.toml")
