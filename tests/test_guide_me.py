"""The guide from one's own exports to a model, and on to a study, command by command."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "guide"))

from actors import COMMANDS, SCHEMA, Company, Somebody

from tacit.personal.store.store import Store
from tacit.privacy import Ledger

PAGE = Path(__file__).parent.parent / "docs" / "guide" / "me.md"
RELAYS, PEOPLE = 3, 4
EXPECTED = {
    "import exports/Fitbit": r"fitbit: 560 events added",
    "import exports/study.csv": r"diary: 330 events added \(330 study\)",
    "import exports/tests.jsonl": r"school: (319 events added|0 events added; 319 were here)",
    "me events test": r"the latest 5 of 319",
    "me ask": r"(?s)For each \*test\*.*the chance is \d+%.*How far to trust it: (fairly|well)",
    "me instances": r"319 examples, of which 319 have an answer",
    "me train": r"(?s)Better than always saying yes.*sum\(study\.minutes, 1w\)",
    "me predict": r"2024-07-01 12:00: no \d+%, yes \d+%",
    "crowd show": r"Your row is made on your machine from your own events",
}
ALONE = ("me ask", "me show pass", "me instances", "me features", "me train", "me predict")


@pytest.mark.timeout(900)
def test_what_can_i_learn_from_my_own_data(
    tmp_path: Path, ports: Callable[[int], list[int]]
) -> None:
    text = PAGE.read_text(encoding="utf-8")
    passing, habits, schema = SCHEMA.findall(text)
    with Company(tmp_path) as company:
        own, *others = map(str, ports(RELAYS + 1))
        leila = company.somebody("leila", PORT=own)
        relays = [
            company.somebody(f"relay-{i}", NAME=f"relay-{i}", PORT=port)
            for i, port in enumerate(others, start=1)
        ]
        students = [company.somebody(f"student-{i}", PERSON=str(i)) for i in range(PEOPLE)]
        cast = {"leila": [leila], "relay": relays, "student": students}
        (students[0].folder / "pass.toml").write_text(passing)
        (leila.folder / "habits.toml").write_text(habits)
        (leila.folder / "schema.toml").write_text(schema)
        for name, block in COMMANDS.findall(text):
            for line in [line[2:] for line in block.splitlines()]:
                _given_on(leila, relays, students)
                if "crowd collect" in line:
                    said = [student.finish() for student in students]
                    leila.finish()
                who = cast[name][:1] if any(word in line for word in ALONE) else cast[name]
                _run(line, who)
        for relay in relays:
            relay.finish()
    assert all("1 of 1 answers have arrived" in words for words in said)
    for student in students:
        balance = Ledger(student.folder / "home" / "ledger.db").balance("me", "person")
        assert balance.spent.epsilon == 2
    assert (students[0].folder / "pass.png").stat().st_size > 10_000
    with Store.open(students[0].folder / "home" / "me.db") as store:
        assert (list(store.kept("problem")), list(store.kept("model"))) == (["pass"], ["pass"])


def _run(line: str, who: list[Somebody]) -> None:
    """All at once, as people do; what the first one is told must be what the guide says."""
    for somebody in who:
        somebody.start(line)
    if line.endswith(" &"):
        return
    words, *_ = [somebody.finish() for somebody in who]
    for part, pattern in EXPECTED.items():
        assert part not in line or re.search(pattern, words), f"{line}\n{words}"


def _given_on(leila: Somebody, relays: list[Somebody], students: list[Somebody]) -> None:
    """Relays send their cards to Leila, and she sends the bundle and the study to everybody."""
    for number, relay in enumerate(relays, start=1):
        leila.receive(relay.folder / "card.toml", f"card-{number}.toml")
    for somebody in (*relays, *students):
        somebody.receive(leila.folder / "habits-study.toml")
        somebody.receive(leila.folder / "habits-bundle.toml")
