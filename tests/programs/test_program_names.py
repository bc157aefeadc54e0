"""Names of programs: one pattern; former ones are read, and what has them keeps its bytes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tacit import Promise
from tacit.channels.central import Central
from tacit.channels.federation.local import Federation
from tacit.cli.main import main
from tacit.crypto.signing import digest
from tacit.data.records import ArrayRecords
from tacit.data.schema import Schema
from tacit.privacy.certificate import Certificate
from tacit.privacy.policy.rules import Asked, Rules
from tacit.program_names import FORMERLY, PATTERN, current_name, shown_program
from tacit.programs.model_file import load_model, model_bytes
from tacit.programs.registry import OWN, installed, learner_named, program_named

CENTRAL = Path(__file__).parent.parent / "fixtures" / "0.1" / "central"
OLD_FILES = ["itemsets-of-a-table", "mixture-full-own", "mixture-as-published"]
ITEMS = Schema.from_dict({"columns": {name: {"type": "boolean"} for name in "abc"}})
BASKETS = ArrayRecords(np.repeat(np.eye(3), 20, axis=0))
ONCE = {"max_length": 1, "minsup": 0.2}


def test_all_names_follow_one_pattern() -> None:
    assert all(PATTERN.fullmatch(name) for name in [*installed(), *FORMERLY.values()])
    assert not set(FORMERLY) & set(OWN)
    assert not any(PATTERN.fullmatch(bad) for bad in ("", "a b", "A", "a_b", "-a", "a-", "a--b"))


@pytest.mark.parametrize("name", [name for name in FORMERLY if current_name(name) in OWN])
def test_a_former_name_is_the_program_of_today(name: str) -> None:
    old, new = learner_named(name), learner_named(current_name(name))
    assert type(old) is type(new)
    assert (old.name, old.written_name, new.written_name) == (new.name, name, new.name)
    assert old.digest == digest({"name": name, "settings": _texts(old.settings())}) != new.digest
    assert old.settings() == new.settings()


def _texts(settings: dict[str, object]) -> dict[str, str]:
    return {name: repr(value) for name, value in settings.items()}


@pytest.mark.parametrize("name", ["frequent-itemsets", "itemsets"])
def test_a_run_writes_the_name_that_was_agreed(name: str) -> None:
    """Also in a federation, where every holder and server checks every byte of what comes back."""
    program, promise = program_named(name, None, ONCE), Promise(1.0, 1e-6)
    for outcome in (
        Central().run(program, BASKETS, ITEMS, promise),
        Federation().run(program, [BASKETS, BASKETS], ITEMS, promise),
    ):
        assert outcome.certificate.program == f"{name} {program.version}"
        assert "frequent-itemsets" in repr(outcome.certificate)
        data = model_bytes(outcome.model, program, ITEMS)
        assert f'\\"program\\": \\"{name}\\"'.encode() in data


@pytest.mark.parametrize("name", ["frequent-itemsets", "itemsets"])
def test_windows_and_found_ranges_keep_the_name(name: str) -> None:
    program = program_named(name, None, ONCE)
    assert program.windowed(3).written_name == name
    mixture = learner_named({"itemsets": "gaussian mixture"}.get(name, "gaussian-mixture"))
    schema = Schema.from_dict({"columns": {"a": {"type": "number", "bounds": "private"}}})
    from tacit.programs.ranged import ranged

    assert ranged(mixture, schema).digest == mixture.digest  # type: ignore[arg-type]


@pytest.mark.parametrize("name", OLD_FILES)
def test_an_old_model_is_written_again_as_it_was(name: str) -> None:
    path = CENTRAL / f"{name}.safetensors"
    saved = load_model(path)
    assert saved.program.name == current_name(saved.program.written_name)
    certificate = Certificate.from_json(path.with_name(f"{path.name}.certificate.json").read_text())
    certificate.verify(subject=digest(path.read_bytes()))
    assert saved.program.name in repr(certificate)
    assert certificate.program.startswith(saved.program.written_name)
    again = model_bytes(saved.model, saved.program, saved.schema)
    assert f'\\"program\\": \\"{saved.program.written_name}\\"'.encode() in again


def test_a_policy_permits_a_program_under_either_name() -> None:
    promise = Promise(1.0)
    for named in ("itemsets", "frequent-itemsets"):
        for asked in ("itemsets", "frequent-itemsets"):
            rules = Rules(programs=(named,))
            assert not list(rules._what(Asked(program=asked, columns=None, author=None), promise))
    other = Asked(program="gaussian mixture", columns=None, author=None)
    (broken,) = Rules(programs=("itemsets",))._what(other, promise)
    assert "gaussian-mixture" in str(broken)


def test_certificates_are_shown_with_the_name_of_today() -> None:
    assert shown_program("gaussian mixture as published 1") == "gaussian-mixture-as-published 1"
    assert shown_program("pca 1") == "pca 1"
    assert shown_program("") == ""


def test_commands_take_a_former_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["audit", "itemsets (pure)", "--trials", "20", "--json"])
    assert left.value.code in (0, 6)  # so few trials prove little
    (found,) = json.loads(capsys.readouterr().out)["audits"]
    assert found["target"] == "frequent-itemsets (pure)"
