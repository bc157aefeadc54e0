"""The command line as a whole: light to start, one JSON document, the exit codes of the tree."""

from __future__ import annotations

import errno
import json
import re
import sys
from pathlib import Path

import pytest

import tacit.errors as errors
from tacit import children
from tacit.cli.main import COMMANDS, main

HEAVY = {"numpy", "scipy", "sklearn", "pyarrow", "dp_accounting", "matplotlib", "rich", "pandas"}


def run(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(words)
    printed = capsys.readouterr()
    assert isinstance(left.value.code, int)
    return left.value.code, printed.out, printed.err


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["nonsense"]])
def test_help_loads_nothing_heavy(words: list[str]) -> None:
    code = (
        "import sys\n"
        "from tacit.cli.main import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print('LOADED', *sorted({m.split('.')[0] for m in sys.modules}))\n"
    )
    done = children.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = set(done.stdout.split("LOADED")[1].split())
    assert not loaded & HEAVY


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(["--help"], capsys)
    assert code == 0
    assert all(name in out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_json(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run([name, "--help"], capsys)
    assert code == 0
    if "COMMAND" not in out:
        assert "--json" in out


def test_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["nonsense"], ["verify"], ["audit", "nothing"], ["bench", "nothing"]):
        code, out, err = run(words, capsys)
        assert code == 2
        assert out == ""
        assert err.startswith("tacit: ")


def test_an_error_is_one_json_document(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(["verify", "no-such-file", "--json"], capsys)
    assert code == 3
    assert json.loads(out)["error"]["kind"] == "InputError"
    assert "no-such-file" in err


def test_an_internal_fault_shows_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.cli.verify._pair", lambda model: 1 / 0)
    monkeypatch.delenv("TACIT_DEBUG", raising=False)
    code, _, err = run(["verify", "x"], capsys)
    assert code == 1
    assert "TACIT_DEBUG=1" in err
    assert "Traceback" not in err
    monkeypatch.setenv("TACIT_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["verify", "x"])


def test_a_full_disk_has_a_code_of_its_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(model: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/studies/outbox.db")

    monkeypatch.setattr("tacit.cli.verify._pair", full)
    code, out, err = run(["verify", "x", "--json"], capsys)
    assert code == errors.StorageError.exit_code == 7
    assert json.loads(out)["error"]["kind"] == "StorageError"
    assert "No space left on device: /studies/outbox.db" in err


def test_the_drawn_tree_is_the_real_one() -> None:
    """errors.py: every class is drawn with its exit code, and nothing else is drawn."""
    drawn = dict(re.findall(r"[├└]── (\w+) +(\d)", errors.__doc__ or ""))
    real = {
        name: str(getattr(errors, name).exit_code)
        for name in errors.__all__
        if name != "TacitError" and issubclass(getattr(errors, name), errors.TacitError)
    }
    assert drawn == real
    warned = set(re.findall(r"[├└]── (\w+Warning)\b", errors.__doc__ or ""))
    assert warned | {"TacitWarning"} == {name for name in errors.__all__ if "Warning" in name}


def test_modules_run(tmp_path: Path) -> None:
    done = children.run(
        [sys.executable, "-m", "tacit.cli", "--version"],
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.startswith(b"tacit, version ")
