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
from tacit.cli.main import main
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


LABEL_SCHEMAS = {
    "number": 'type = "number"\nbounds = [0, 9]',
    "boolean": 'type = "boolean"',
    "three": 'type = "category"\ncategories = ["0", "1", "2"]',
    "one": 'type = "category"\ncategories = ["1"]',
    "none": None,
}
FITS = {
    "logistic": {"boolean", "three"},
    "linear-regression": {"number", "boolean"},
    "averaged-logistic": {"boolean"},
    "pca": set(LABEL_SCHEMAS),
}


@pytest.mark.parametrize("kind", LABEL_SCHEMAS)
@pytest.mark.parametrize("program", FITS)
def test_check_says_what_a_program_wants_of_a_label(
    program: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    label, table, schema = LABEL_SCHEMAS[kind], tmp_path / "t.csv", tmp_path / "s.toml"
    text = '[columns.x]\ntype = "number"\nbounds = [0, 1]\n'
    if label is not None:
        text += f'\n[columns.y]\n{label}\nrole = "label"\n'
    schema.write_text(text)
    table.write_text("x,y\n0.5,1\n" if label is not None else "x\n0.5\n")
    words = ["data", "check", str(table), "--schema", str(schema), "--program", program]
    with pytest.raises(SystemExit) as left:
        main([*words, "--json"])
    document = json.loads(capsys.readouterr().out)
    assert document["valid"] == (kind in FITS[program]), document
    assert left.value.code == (0 if kind in FITS[program] else 3)


BROKEN = {
    "semicolons": b"x;y\n0.5;1\n",
    "tabs": b"x\ty\n0.5\t1\n",
    "utf-16": "x,y\n0.5,1\n".encode("utf-16"),
    "empty": b"",
    "header alone": b"x,y\n",
    "latin-1": "x,y\n0.5,é\n".encode("latin-1"),
    "twice": b"x,y,x\n0.5,1,2\n",
    "zeros": b"\x00" * 50,
    "no column of ours": b"a,b\n1,2\n",
    "open quote": b'x,y\n0.5,"1\n0.6,2\n',
    "random": bytes(range(256)),
}


@pytest.mark.parametrize("what", BROKEN)
def test_check_of_what_is_hardly_a_table(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is said what is wrong, of this file, and never an internal fault."""
    table, schema = tmp_path / "t.csv", tmp_path / "s.toml"
    schema.write_text(
        '[columns.x]\ntype = "number"\nbounds = [0, 1]\n\n[columns.y]\ntype = "integer"\n'
        "bounds = [0, 9]\n"
    )
    table.write_bytes(BROKEN[what])
    with pytest.raises(SystemExit) as left:
        main(["data", "check", str(table), "--schema", str(schema)])
    assert left.value.code == 3
    assert str(table) in "".join(capsys.readouterr().err.split())
