"""docs/promises.md has every cell, every rule is proved, recomputed, enumerated and attacked."""

from __future__ import annotations

import ast
import importlib
import random
import re
import sys
from itertools import product
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import test_brute_force

import tacit.promises
from tacit.audits.attacks import ATTACKS
from tacit.audits.rule_attacks import RULE_ATTACKS
from tacit.errors import InternalFault
from tacit.privacy.audit_targets import TARGETS
from tacit.programs.registry import OWN
from tacit.promises.asking import Accepted, Refused, asked
from tacit.promises.cells import AXES, Cell, cells
from tacit.promises.page import answers, merged, page, read
from tacit.promises.rules import RULES, rules_of

ROOT = Path(__file__).parents[2]
FOLDER = Path(tacit.promises.__file__).parent
NOTE = FOLDER / "rules.md"


WRITTEN = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")


def test_the_page_is_as_the_code_says() -> None:
    """All in one test: putting every cell to the code takes a while."""
    found = answers()
    assert page() == WRITTEN, "write it again with: python -m tacit.promises > docs/promises.md"
    assert list(found) == list(cells())
    assert {cell.program for cell in found} == set(OWN)
    assert read(WRITTEN) == found
    for answer in found.values():
        assert answer  # rules, or words
        assert isinstance(answer, str) or set(answer) <= set(RULES)


def test_answers_do_not_depend_on_what_was_asked_before() -> None:
    """Single cells in another order are answered as on the page, refusals in the same words."""
    known = read(WRITTEN)
    for cell in random.Random(7).sample(list(cells()), 200):
        answer = asked(cell)
        if isinstance(answer, Refused):
            assert answer.reason.replace(repr(cell.program), "'…'") == known[cell]
        else:
            assert rules_of(cell, answer) == known[cell]


def test_every_rule_occurs() -> None:
    found = [answer for answer in read(WRITTEN).values() if isinstance(answer, tuple)]
    assert {name for answer in found for name in answer} == set(RULES)


@pytest.mark.parametrize("name", RULES)
def test_every_rule_is_proved(name: str) -> None:
    sections = re.split(r"^## ", NOTE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (section,) = [text for text in sections if text.splitlines()[0] == name]
    assert "**Claims.**" in section
    assert len(section.split("**Why.**")[1]) > 40
    for link in re.findall(r"\]\(([^)#]+)\)", section):
        assert (NOTE.parent / link).exists(), link


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("name", RULES)
def test_every_rule_is_recomputed_by_other_code(name: str) -> None:
    module = importlib.import_module(RULES[name].verifier)
    assert module.__file__ is not None
    folder = Path(module.__file__)
    files = folder.parent.glob("*.py") if folder.name == "__init__.py" else [folder]
    for file in files:
        for other in imports(file):
            if RULES[name].verifier == "tacit.privacy.ledger":
                continue  # adds ε up in fractions; test_purse.py has the refusals
            assert "accounting" not in other
            assert "amplification" not in other


def test_enumeration_imports_nothing_of_ours() -> None:
    assert not any(n.startswith("tacit") for n in imports(Path(__file__).parent / "brute_force.py"))


@pytest.mark.parametrize("name", RULES)
def test_every_rule_is_enumerated(name: str) -> None:
    """Every combination is a case of test_brute_force.py; each must begin with a rule it knows."""
    holding = [rules for rules, *_ in test_brute_force.combinations() if name in rules]
    assert holding
    assert all(rules[0] in test_brute_force.CHECKS for rules in holding)


@pytest.mark.parametrize("name", RULES)
def test_every_rule_is_attacked(name: str) -> None:
    games = {*TARGETS, *ATTACKS, *RULE_ATTACKS}
    attacks = RULES[name].attacks
    assert attacks or name in ("no-privacy", "broken-as-published")  # there is nothing to break
    assert set(attacks) <= games


def test_what_no_rule_covers_is_a_fault() -> None:
    cell = Cell("central", "histogram", *(AXES[a][0] for a in ("unit", "adjacency", "kind")))
    answer = asked(cell)
    assert isinstance(answer, Accepted)
    assert rules_of(cell, answer) == ("laplace-rounds",)
    with pytest.raises(InternalFault):
        rules_of(cell, Accepted(()))
    windowed = Cell("central", "histogram", cell.unit, cell.adjacency, "pure", windows=True)
    with pytest.raises(InternalFault):  # asked for windows, and none show in what is released
        rules_of(windowed, answer)


def test_rows_of_the_page_are_the_cells_themselves() -> None:
    generator = random.Random(3)
    everything = list(cells())
    for _ in range(20):
        some = generator.sample(everything, 50)
        boxes = merged(some)
        found = [Cell(*values) for box in boxes for values in product(*box)]
        assert sorted(map(repr, found)) == sorted(map(repr, some))
