"""The guide to policies, command by command: what it prints is what is printed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "guide"))

from actors import COMMANDS, SCHEMA, Company, Somebody

from tacit.crypto.signing import SigningKey
from tacit.privacy.ledger import Ledger

PAGE = Path(__file__).parent.parent / "docs" / "guide" / "policy.md"
COLUMNS = """
[columns.patient]
type = "integer"
role = "person"

[columns.age]
type = "number"
bounds = [0, 110]

[columns.pressure]
type = "number"
bounds = [60, 260]
{}
[columns.disease]
type = "boolean"
role = "label"
"""
SMOKER = """
[columns.smoker]
type = "boolean"
"""
REFUSED = 4


def steps(block: str) -> Iterator[tuple[str, list[str]]]:
    """Each command with the lines that it is said to print."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, *printed = part.splitlines()
        yield command, printed


def matches(line: str, said: str) -> bool:
    """… stands for anything."""
    pattern = ".*".join(re.escape(piece) for piece in line.split("…"))
    return re.search(f"^{pattern}$", said, re.MULTILINE) is not None


def test_a_policy_from_draft_to_leaving(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (rules,) = SCHEMA.findall(text)
    printed = 0
    with Company(tmp_path) as company:
        aarau, basel = company.somebody("aarau"), company.somebody("basel")
        prepare(aarau, basel)
        for name, block in COMMANDS.findall(text):
            for command, lines in steps(block):
                share(aarau, basel)
                somebody = {"aarau": aarau, "basel": basel}[name]
                refused = any(line.startswith("tacit: ") for line in lines)
                process = somebody.start(command)
                said = company.finished(somebody, process, REFUSED if refused else 0)
                for line in lines:
                    assert matches(line, said), f"{command}\n{line}\nis not in\n{said}"
                printed += len(lines)
                fill_in(basel.folder / "policy.toml", rules)
    assert printed > 20
    ledger = Ledger(basel.folder / "home" / "ledger.db")
    ledger.verify()
    assert not [e for e in ledger.entries() if e.kind == "reserve"]


def prepare(aarau: Somebody, basel: Somebody) -> None:
    (aarau.folder / "schema.toml").write_text(COLUMNS.format(SMOKER))
    (aarau.folder / "fewer.toml").write_text(COLUMNS.format(""))
    rows = "4711,50,120,true,false\n4712,60,150,false,true\n"
    (basel.folder / "patients.csv").write_text("patient,age,pressure,smoker,disease\n" + rows)
    known = {name.upper(): public_key(one) for name, one in (("aarau", aarau), ("basel", basel))}
    for number, name in enumerate(("NORTH", "SOUTH", "WEST", "AARAU_AGGREGATOR")):
        known[name] = str(number + 1) * 64  # a key of small order is none
    for one in (aarau, basel):
        one.variables.update({**known, "COLUMNS": "300"})


def public_key(somebody: Somebody) -> str:
    path = somebody.folder / "home" / "keys" / "holder.pem"
    return SigningKey.load_or_create(path).public_key


def share(aarau: Somebody, basel: Somebody) -> None:
    """Each sends the other what it has written."""
    basel.receive(aarau.folder / "heart.toml")
    aarau.receive(basel.folder / "basel.trust.toml")


def fill_in(path: Path, rules: str) -> None:
    """Somebody has an editor open: the guide's table instead of the draft's."""
    draft = path.read_text(encoding="utf-8") if path.exists() else ""
    if "programs = []" in draft:
        head, _, _ = draft.partition("[datasets")
        path.write_text(head + rules, encoding="utf-8")


def test_a_line_that_is_not_printed_is_noticed() -> None:
    assert matches("a … c", "x\na b c\n")
    assert not matches("a … c", "x\na b d\n")
    assert not matches("a", "ab")
