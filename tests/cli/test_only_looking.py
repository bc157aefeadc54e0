"""A command that only looks makes nothing: in an empty home no folder, key or database appears."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tacit.cli.main import cli, main
from tacit.home import tacit_home

FIXTURES = Path(__file__).parent.parent / "fixtures" / "0.1"

# Calls of every command that only looks, in the folder that `looked_at` makes, with the exit code
# that an empty home gives.
LOOKS = (
    ("keys show", 3),
    ("keys show --json", 3),
    ("keys show nobody", 3),
    ("budget show", 0),
    ("budget show --ledger elsewhere.db", 3),
    ("policy show", 0),
    ("policy show --ledger elsewhere.db", 0),
    ("policy check study.toml --dataset patients", 0),
    ("policy left-out", 0),
    ("program list", 0),
    ("study show study.toml --quick", 0),
    ("study check study.toml", 0),
    ("study check study.toml --data table.csv", 3),
    ("study status study.toml", 3),
    ("study status study.toml --key hospital", 3),
    ("verify pca.safetensors", 0),
    ("show pca.safetensors", 0),
    ("predict pca.safetensors table.csv", 0),
    ("data list", 0),
    ("data check table.csv --schema schema.toml", 0),
    ("data describe table.csv", 0),
    ("me importers", 0),
    ("me sources", 3),
    ("me events", 3),
    ("me problems", 3),
    ("me show problem.toml", 3),
    ("me instances problem", 3),
    ("me features problem", 3),
    ("me predict problem", 3),
    ("me ask will-I-pass?", 3),
    ("peer status clinics", 3),
    ("peer show clinics", 3),
    ("peer predict clinics table.csv", 3),
    ("crowd show study.toml", 3),
    ("crowd check study.toml pca.safetensors", 3),
    ("audit nothing", 2),
    ("bench", 0),
)

# What writes what it was asked for, or takes part.
MAKES = (
    "demo",
    "join",
    "peer",
    "backup",
    "restore",
    "bench",
    "serve-server",
    "serve-aggregator",
    "serve-relay",
    "serve-collector",
    "keys-new",
    "program-allow",
    "study-new",
    "study-sign",
    "study-trust",
    "budget-allow",
    "budget-settle",
    "budget-distinct",
    "budget-recover",
    "policy-new",
    "policy-sign",
    "policy-use",
    "policy-approve",
    "policy-trust",
    "policy-revoke",
    "policy-leave-out",
    "crowd-offer",
    "crowd-propose",
    "crowd-join",
    "crowd-collect",
    "data-fetch",
    "peer-measure",
    "peer-simulate",
    "me-import",
    "me-example",
    "me-forget",
    "me-seal",
    "me-train",
    "me-share",
    "me-adopt",
)


@pytest.fixture
def looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with files to look at, and a home that is empty."""
    folder = tmp_path / "work"
    folder.mkdir()
    shutil.copy(FIXTURES / "commands" / "federation" / "study.toml", folder)
    for name in ("pca.safetensors", "pca.safetensors.certificate.json"):
        shutil.copy(FIXTURES / "central" / name, folder)
    (folder / "table.csv").write_text("age,pressure,group\n40,100,A\n50,120,B\n")
    (folder / "schema.toml").write_text(
        '[columns.age]\ntype = "integer"\nbounds = [0, 100]\n'
        '[columns.pressure]\ntype = "number"\nbounds = [0, 300]\n'
        '[columns.group]\ntype = "category"\ncategories = ["A", "B"]\n'
    )
    (folder / "problem.toml").write_text("[problem]\n")
    home = tmp_path / "empty"
    home.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.delenv("TACIT_HOME")
    assert tacit_home().is_relative_to(home)
    return tmp_path


def everything(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in [folder, *folder.rglob("*")]}


@pytest.mark.parametrize(("words", "code"), LOOKS)
def test_a_command_that_only_looks_makes_nothing(
    looked_at: Path, words: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    before = everything(looked_at)
    with pytest.raises(SystemExit) as left:
        main(words.split())
    assert left.value.code == code, capsys.readouterr().err
    assert everything(looked_at) == before


def leaves(command: click.Command, *names: str) -> Iterator[str]:
    """Every command that can be called, as its names with hyphens."""
    if not isinstance(command, click.Group):
        yield "-".join(names)
        return
    if names and command.invoke_without_command:
        yield "-".join(names)
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from leaves(found, *names, name)


def test_every_command_is_known_to_look_or_to_make() -> None:
    """Whoever adds a command says which of the two it does."""
    looking = {words for words, _ in LOOKS}
    for leaf in leaves(cli):
        if leaf not in MAKES:
            assert any(call.replace(" ", "-").startswith(leaf) for call in looking), leaf
