"""`tacit data`, as a program sees it: documents, exit codes, and nothing private."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tacit import children
from tacit.data import Schema, derive

TEXT = "age,town\n31,Ulm\n77,Bonn\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("TACIT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "t.csv").write_text(TEXT)
    return tmp_path


def tacit(*words: str, code: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from tacit.cli.main import main; main()", "data", *words]
    options = {"stdin": subprocess.DEVNULL, **options}
    done = children.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == code, done.stderr
    return done


def test_list(home: Path) -> None:
    rows = json.loads(tacit("list", "--json").stdout)["datasets"]
    assert {"adult", "nursery"} <= {row["name"] for row in rows}
    assert {row["where"] for row in rows} == {None}
    shown = tacit("list").stdout
    assert "48,842" in shown
    assert "not here" in shown


def test_fetch_fills_the_cache(home: Path) -> None:
    (got,) = json.loads(tacit("fetch", "nursery", "--json").stdout)["datasets"]
    assert (got["rows"], got["where"]) == (12_960, "fetched")
    assert (home / "cache/tacit/data/nursery.data").read_bytes() == derive.nursery()
    rows = json.loads(tacit("list", "--json").stdout)["datasets"]
    assert [row["name"] for row in rows if row["where"] == "cache"] == ["nursery"]
    assert "12,960 rows, cache" in tacit("fetch", "nursery").stderr


def test_fetch_fails_with_the_reason(home: Path) -> None:
    done = tacit("fetch", "heart", "nursery", "--json", code=3)
    assert json.loads(done.stdout)["error"]["kind"] == "DatasetError"
    assert "TACIT_DATA" in done.stderr
    assert (home / "cache/tacit/data/nursery.data").exists()  # the others are still fetched
    assert "There are: adult" in tacit("fetch", "titanic", code=2).stderr


def test_describe_drafts_without_values(home: Path) -> None:
    done = tacit("describe", "t.csv", cwd=home)
    assert done.stdout.count('"TODO"') == 2
    assert "2 column(s) still TODO: age, town" in done.stderr
    for secret in ("31", "77", "Ulm", "Bonn"):
        assert secret not in done.stdout + done.stderr


def test_describe_writes_a_file_once(home: Path) -> None:
    words = ["describe", "t.csv", "--out", "s.toml", "--bounds", "age=-5:120"]
    words += ["--categories", "town=Bonn,Ulm", "--label", "town"]
    assert tacit(*words, cwd=home).stdout == ""
    schema = Schema.load(home / "s.toml")
    assert schema.column("age").bounds == (-5, 120)
    assert schema.column("town").role == "label"
    assert "--force" in tacit(*words, cwd=home, code=2).stderr
    tacit(*words, "--force", cwd=home)


def test_describe_as_json(home: Path) -> None:
    document = json.loads(tacit("describe", "t.csv", "--json", cwd=home).stdout)
    assert document["todo"] == {"age": "bounds", "town": "categories"}
    public = json.loads(tacit("describe", "t.csv", "--public-data", "--json", cwd=home).stdout)
    schema = Schema.from_dict(public["schema"])
    assert schema.column("age").bounds == (31, 77)
    assert "public data" in schema.bounds_from


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["none.csv"], 3, "no such file"),
        (["t.csv", "--bounds", "age"], 2, "NAME=LOW:HIGH"),
        (["t.csv", "--bounds", "age=low:high"], 2, "NAME=LOW:HIGH"),
        (["t.csv", "--bounds", "age=9:1"], 3, "below"),
        (["t.csv", "--categories", "town"], 2, "NAME=A,B"),
        (["t.csv", "--label", "x"], 2, "no column 'x'"),
        (["t.csv", "--ask"], 2, "terminal"),
        (["t.csv", "--out", "no/such/folder.toml"], 3, "cannot be written"),
    ],
)
def test_describe_refuses(home: Path, words: list[str], code: int, message: str) -> None:
    done = tacit("describe", *words, cwd=home, code=code)
    assert message in done.stderr
    assert done.stdout == ""


def test_describe_asks_at_a_terminal(home: Path) -> None:
    keyboard, terminal = pty.openpty()
    os.write(keyboard, b"zero\n0:120\n\n")
    done = tacit("describe", "t.csv", "--ask", "--json", cwd=home, stdin=terminal)
    os.close(keyboard)
    os.close(terminal)
    document = json.loads(done.stdout)
    assert document["todo"] == {"town": "categories"}
    assert document["schema"]["columns"]["age"]["bounds"] == [0, 120]
    assert "not understood" in done.stderr
