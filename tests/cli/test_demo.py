"""`tacit demo`, whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tacit.cli.main import main
from tacit.crypto.signing import digest
from tacit.data import load_dataset
from tacit.errors import DatasetError
from tacit.privacy import Certificate, Ledger
from tacit.programs.files import load
from tacit.programs.logistic import LogisticModel


@pytest.fixture(scope="module", autouse=True)
def adult() -> None:
    try:
        load_dataset("adult")
    except DatasetError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [sys.executable, "-m", "tacit.cli", "demo", "--out", str(folder / "out"), "--json"],
        env={**os.environ, "TACIT_HOME": str(folder / "home")},
        capture_output=True,
        timeout=300,
        check=True,
    )
    return folder / "out", json.loads(done.stdout)


def test_everything_is_there_and_true(finished: tuple[Path, dict[str, Any]]) -> None:
    out, document = finished
    certificate = Certificate.from_json((out / "model.safetensors.certificate.json").read_bytes())
    model = (out / "model.safetensors").read_bytes()
    verdict = certificate.verify(subject=digest(model))
    assert 0.999 < verdict.epsilon <= 1.0 + 1e-6
    assert certificate.secure_randomness
    ledger = Ledger(out / "ledger.db")
    balance = ledger.balance("adult", "record")
    assert float(balance.spent.epsilon) == pytest.approx(1.4)
    assert balance.left.epsilon == 0
    assert certificate.ledger in [entry.hash for entry in ledger.entries()]
    assert (out / "learning.png").read_bytes().startswith(b"\x89PNG")
    assert "left ε = 0" in document["once_more"]


def test_learning_beats_the_commoner_answer(finished: tuple[Path, dict[str, Any]]) -> None:
    out, document = finished
    exact, *private = document["results"]
    assert exact["epsilon"] is None
    assert exact["test_accuracy"] > 0.84
    for result in private:
        assert document["majority"] + 0.03 < result["test_accuracy"] < exact["test_accuracy"] + 0.01
    model = load(LogisticModel, out / "model.safetensors")
    assert model.coef.shape == (1, 108)


def test_a_second_run_needs_a_second_budget(
    finished: tuple[Path, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = finished
    with pytest.raises(SystemExit):
        main(["demo", "--out", str(out), "--epsilon", "0.5"])
    assert "ε = 0.5, δ = 1e-06 per record" in capsys.readouterr().out
    balance = Ledger(out / "ledger.db").balance("adult", "record")
    assert float(balance.allowed.epsilon) == pytest.approx(1.4 * 1.5)
    assert balance.left.epsilon == 0
