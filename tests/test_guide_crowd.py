"""The guide to a crowd's study, command by command, everybody in a folder of their own."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.privacy import Ledger

PAGE = Path(__file__).parent.parent / "docs" / "guide" / "crowd.md"
COMMANDS = re.compile(r"^```console as (\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SCHEMA = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RELAYS, PEOPLE, TIMEOUT = 5, 8, 300


class Somebody:
    """A folder, a home, an address and processes."""

    def __init__(self, folder: Path, name: str, port: int = 0) -> None:
        self.name, self.folder = name, folder / name
        self.folder.mkdir()
        kept = {k: v for k, v in os.environ.items() if not k.startswith("TACIT_L")}
        home = str(self.folder / "home")
        self._variables = {**kept, "TACIT_HOME": home, "NAME": name, "PORT": str(port)}
        self.running: list[subprocess.Popen[str]] = []

    def start(self, line: str) -> None:
        words = line.replace("tacit ", f"{sys.executable} -m tacit.cli ", 1)
        process = subprocess.Popen(
            ["bash", "-c", f"exec {words.removesuffix(' &')}"],
            cwd=self.folder,
            env=self._variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.running.append(process)

    def finish(self) -> str:
        """Everything that is running; what the last one said."""
        said = ""
        while self.running:
            process = self.running.pop(0)
            said, _ = process.communicate(timeout=TIMEOUT)
            assert process.returncode == 0, f"{self.name}: {process.args}\n{said}"
        return said


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


@pytest.mark.timeout(900)
def test_asking_a_crowd(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    ports = free_ports(RELAYS + 1)
    leila = Somebody(tmp_path, "leila", ports[0])
    relays = [Somebody(tmp_path, f"relay-{i}", ports[i]) for i in range(1, RELAYS + 1)]
    persons = [Somebody(tmp_path, f"person-{i}") for i in range(PEOPLE)]
    cast = {"leila": [leila], "relay": relays, "person": persons}
    (schema,) = SCHEMA.findall(text)
    (leila.folder / "schema.toml").write_text(schema)
    rows = [f"{3 * i},{i % 2},{i % 3 == 0:d}" for i in range(PEOPLE)]
    (leila.folder / "students.csv").write_text("\n".join(["hours,forum,quit", *rows]) + "\n")
    for person, row in zip(persons, rows, strict=True):
        (person.folder / "me.csv").write_text(f"hours,forum,quit\n{row}\n")
    try:
        for name, block in COMMANDS.findall(text):
            for line in [line[2:] for line in block.splitlines()]:
                _given_on(leila, relays, persons)
                if "crowd collect" in line:
                    said = [person.finish() for person in persons]
                    leila.finish()
                for somebody in cast[name]:
                    somebody.start(line)
                if not line.endswith(" &"):
                    for somebody in cast[name]:
                        somebody.finish()
        for relay in relays:
            relay.finish()
    finally:
        for somebody in (leila, *relays, *persons):
            for process in somebody.running:
                process.kill()
                process.communicate()
    assert all("1 of 1 answers have arrived" in words for words in said)
    for person in persons:
        balance = Ledger(person.folder / "home" / "ledger.db").balance("me", "person")
        assert balance.spent.epsilon == 2
    assert (leila.folder / "tables.png").stat().st_size > 10_000
    assert len((leila.folder / "risks.csv").read_text().splitlines()) == PEOPLE + 1


def _given_on(leila: Somebody, relays: list[Somebody], persons: list[Somebody]) -> None:
    """Relays send their cards to Leila, and she sends the proposal to everybody."""
    for number, relay in enumerate(relays, start=1):
        card = relay.folder / "card.toml"
        if card.exists():
            (leila.folder / f"card-{number}.toml").write_bytes(card.read_bytes())
    proposal = leila.folder / "course.toml"
    for somebody in (*relays, *persons):
        if proposal.exists():
            (somebody.folder / "course.toml").write_bytes(proposal.read_bytes())
