"""`tacit demo`, whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tacit.cli.main import main
from tacit.data import load_dataset
from tacit.errors import DatasetError
from tacit.privacy import Certificate, Ledger


@pytest.fixture(scope="module", autouse=True)
def adult() -> None:
    try:
        load_dataset("adult")
    except DatasetError as error:
        pytest.skip(str(error))


@pytest.fixture
def finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[Path, dict[str, object]]:
    monkeypatch.setenv("TACIT_HOME", str(tmp_path / "home"))
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as left:
        main(["demo", "--out", str(out), "--json"])
    assert left.value.code == 0
    return out, json.loads(capsys.readouterr().out)


def test_everything_is_there_and_true(finished: tuple[Path, dict[str, object]]) -> None:
    out, document = finished
    certificate = Certificate.from_json((out / "summary.json.certificate.json").read_bytes())
    assert certificate.verify().epsilon == pytest.approx(1.0, rel=1e-6)
    assert certificate.verify().epsilon <= 1.0
    assert certificate.secure_randomness
    ledger = Ledger(out / "ledger.db")
    balance = ledger.balance("adult", "record")
    assert (balance.spent.epsilon, balance.left.epsilon) == (1, 0)
    assert certificate.ledger in [entry.hash for entry in ledger.entries()]
    assert (out / "summary.png").read_bytes().startswith(b"\x89PNG")
    assert "left ε = 0" in str(document["second_summary"])


def test_answers_are_noisy_and_close(finished: tuple[Path, dict[str, object]]) -> None:
    out, document = finished
    exact_shown = changed = 0
    for answer in document["answers"]:  # type: ignore[attr-defined]
        for cell, exact in answer["exact"].items():
            private = answer["figures"][cell]
            exact_shown += 1
            changed += private != exact
            # 25 scales of the widest noise: beyond it once in 10^10 draws
            assert abs(private - exact) < (500 if answer["kind"] != "quantile" else 5)
    assert exact_shown == 45
    assert changed > 20
    released = (out / "summary.json").read_text()
    assert "exact" not in released


def test_a_second_run_needs_a_second_budget(
    finished: tuple[Path, dict[str, object]], capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = finished
    with pytest.raises(SystemExit):
        main(["demo", "--out", str(out), "--epsilon", "0.5"])
    assert "A private summary, ε = 0.5" in capsys.readouterr().out
    balance = Ledger(out / "ledger.db").balance("adult", "record")
    assert (balance.allowed.epsilon, balance.spent.epsilon) == (1.5, 1.5)
