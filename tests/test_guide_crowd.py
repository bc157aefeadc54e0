"""The guide to a crowd's study, command by command, everybody in a folder of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "guide"))

from actors import COMMANDS, SCHEMA, Company, Somebody

from tacit.privacy import Ledger

PAGE = Path(__file__).parent.parent / "docs" / "guide" / "crowd.md"
RELAYS, PEOPLE = 5, 8


@pytest.mark.timeout(900)
def test_asking_a_crowd(tmp_path: Path, ports: Callable[[int], list[int]]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (schema,) = SCHEMA.findall(text)
    rows = [f"{3 * i},{i % 2},{i % 3 == 0:d}" for i in range(PEOPLE)]
    with Company(tmp_path) as company:
        own, *others = map(str, ports(RELAYS + 1))
        leila = company.somebody("leila", PORT=own)
        relays = [
            company.somebody(f"relay-{i}", NAME=f"relay-{i}", PORT=port)
            for i, port in enumerate(others, start=1)
        ]
        persons = [company.somebody(f"person-{i}") for i in range(PEOPLE)]
        cast = {"leila": [leila], "relay": relays, "person": persons}
        (leila.folder / "schema.toml").write_text(schema)
        (leila.folder / "students.csv").write_text("\n".join(["hours,forum,quit", *rows]) + "\n")
        for person, row in zip(persons, rows, strict=True):
            (person.folder / "me.csv").write_text(f"hours,forum,quit\n{row}\n")
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
    assert all("1 of 1 answers have arrived" in words for words in said)
    for person in persons:
        balance = Ledger(person.folder / "home" / "ledger.db").balance("me", "person")
        assert balance.spent.epsilon == 2
    assert (leila.folder / "tables.png").stat().st_size > 10_000
    assert len((leila.folder / "risks.csv").read_text().splitlines()) == PEOPLE + 1


def _given_on(leila: Somebody, relays: list[Somebody], persons: list[Somebody]) -> None:
    """Relays send their cards to Leila, and she sends the proposal to everybody."""
    for number, relay in enumerate(relays, start=1):
        leila.receive(relay.folder / "card.toml", f"card-{number}.toml")
    for somebody in (*relays, *persons):
        somebody.receive(leila.folder / "course.toml")
