"""The guide's first study, command by command, each institution in a folder of its own."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tacit.crypto.signing import SigningKey
from tacit.privacy import Ledger

PAGE = Path(__file__).parent.parent / "docs" / "guide" / "federation.md"
WHO = ("aarau", "basel", "chur")
COMMANDS = re.compile(r"^```console as (\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SCHEMA = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TIMEOUT = 240


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


class Town:
    """One institution: its folder, its keys, its processes."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name, self.folder = name, folder / name
        self.folder.mkdir()
        (self.folder / "patients.csv").write_text(records(WHO.index(name)))
        self.running: list[subprocess.Popen[str]] = []

    def run(self, line: str, variables: dict[str, str]) -> None:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("TACIT_L")}
        words = line.replace("tacit ", f"{sys.executable} -m tacit.cli ", 1)
        process = subprocess.Popen(
            ["bash", "-c", f"exec {words.removesuffix(' &')}"],
            cwd=self.folder,
            env={**kept, **variables, "TACIT_HOME": str(self.folder / "home")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.running.append(process)
        if not line.endswith(" &"):
            self.finish(process)

    def finish(self, process: subprocess.Popen[str]) -> None:
        said, _ = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 0, f"{self.name}: {process.args}\n{said}"

    def public_key(self, name: str) -> str:
        path = self.folder / "home" / "keys" / f"{name}.pem"
        return SigningKey.load_or_create(path).public_key if path.exists() else ""


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


@pytest.mark.timeout(600)
def test_your_first_study_with_two_other_institutions(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    towns = {name: Town(tmp_path, name) for name in WHO}
    (schema,) = SCHEMA.findall(text)
    (towns["aarau"].folder / "schema.toml").write_text(schema)
    ports = dict(zip(WHO, free_ports(3), strict=True))
    try:
        for name, block in COMMANDS.findall(text):
            for line in [line[2:] for line in block.splitlines()]:
                _share_study(towns)
                for town, port in ports.items():
                    line = line.replace(f"{town}.example:8443", f"127.0.0.1:{port}")
                towns[name].run(line, _keys(towns))
        for town in towns.values():
            for process in town.running:
                if process.returncode is None:
                    town.finish(process)
    finally:
        for town in towns.values():
            for process in town.running:
                if process.poll() is None:
                    process.kill()
                    process.communicate()
    models = {(town.folder / "heart-2026.safetensors").read_bytes() for town in towns.values()}
    models.add((towns["aarau"].folder / "results" / "heart-2026.safetensors").read_bytes())
    assert len(models) == 1
    for town in towns.values():
        balance = Ledger(town.folder / "home" / "ledger.db").balance("patients", "record")
        assert balance.spent.epsilon == 1
    predicted = (towns["chur"].folder / "risks.csv").read_text().splitlines()
    assert len(predicted) == 401


def _keys(towns: dict[str, Town]) -> dict[str, str]:
    """The variables that the guide uses for keys which others have sent."""
    return {
        f"{name.upper()}_{role.upper()}": town.public_key(role)
        for name, town in towns.items()
        for role in ("server", "aggregator", "hospital")
    }


def _share_study(towns: dict[str, Town]) -> None:
    """Aarau sends its file to the others."""
    written = towns["aarau"].folder / "heart.toml"
    for name in ("basel", "chur"):
        if written.exists():
            (towns[name].folder / "heart.toml").write_bytes(written.read_bytes())
