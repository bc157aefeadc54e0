"""`tacit keys`: public halves are shown, secret ones never."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tacit.cli.main import main
from tacit.crypto.signing import SigningKey, fingerprint
from tacit.home import tacit_home


@pytest.fixture
def tacit(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main(["keys", *words])
        printed = capsys.readouterr()
        assert isinstance(left.value.code, int)
        return left.value.code, printed.out, printed.err

    return run


def secret_of(name: str) -> str:
    return (tacit_home() / "keys" / f"{name}.pem").read_text().splitlines()[1]


def test_new_makes_an_identity_once(tacit: Any) -> None:
    code, out, _ = tacit("new", "north")
    key = SigningKey.load_or_create(tacit_home() / "keys" / "north.pem")
    assert code == 0
    assert key.public_key in out
    assert fingerprint(key.public_key) in out
    assert secret_of("north") not in out
    mode = (tacit_home() / "keys" / "north.pem").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600
    code, out, err = tacit("new", "north")
    assert (code, out) == (2, "")
    assert "not overwritten" in err
    assert tacit("show", "north")[1].split()[3] == key.public_key


def test_show_of_the_holder_makes_nothing(tacit: Any) -> None:
    code, out, err = tacit("show")
    assert (code, out) == (3, "")
    assert "tacit keys new holder" in err
    assert not tacit_home().exists()
    public = SigningKey.of_holder().public_key
    code, out, _ = tacit("show", "--json")
    assert code == 0
    assert json.loads(out) == {
        "name": "holder",
        "public_key": public,
        "fingerprint": fingerprint(public),
    }
    assert secret_of("holder") not in out
    assert tacit("new")[0] == 2  # it is there now


def test_show_of_an_unknown_identity_names_the_known(tacit: Any) -> None:
    assert "none yet" in tacit("show", "north")[2]
    tacit("new", "south")
    code, _, err = tacit("show", "north")
    assert code == 3
    assert "there are: south" in err
    assert "tacit keys new north" in err
    assert not (tacit_home() / "keys" / "north.pem").exists()


@pytest.mark.parametrize("name", ["../x", "", "a/b", ".hidden", "a" * 65])
def test_a_name_is_not_a_path(tacit: Any, tmp_path: Path, name: str) -> None:
    assert tacit("new", name)[0] == 2
    assert tacit("show", name)[0] == 2
    assert not list(tmp_path.rglob("*.pem"))
