"""`tacit demo`, whole: thirteen processes, and what they leave behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tacit.channels.studies.study import Study
from tacit.cli.main import main
from tacit.crypto.signing import digest
from tacit.data import load_dataset
from tacit.errors import DatasetError
from tacit.estimators.plain import to_sklearn
from tacit.privacy import Certificate, Ledger
from tacit.programs.model_file import load_model

Finished = tuple[Path, dict[str, Any]]


@pytest.fixture(scope="module", autouse=True)
def adult() -> None:
    try:
        load_dataset("adult")
    except DatasetError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [sys.executable, "-m", "tacit.cli", "demo", "--out", str(folder / "out"), "--json"],
        env={**os.environ, "TACIT_HOME": str(folder / "home")},
        capture_output=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return folder / "out", json.loads(done.stdout)


def test_the_certificate_says_who_did_what(finished: Finished) -> None:
    out, document = finished
    study = Study.load(out / "study.toml")
    certificate = Certificate.from_json((out / "demo.safetensors.certificate.json").read_bytes())
    model = (out / "demo.safetensors").read_bytes()
    verdict = certificate.verify(study.aggregator.key, digest(model))
    assert 0.999 < verdict.epsilon <= 1.0 + 1e-6
    assert certificate.secure_randomness
    assert certificate.participation is not None
    assert certificate.participation.holders == 10
    assert {w.public_key for w in certificate.witnesses} == {s.key for s in study.servers}
    assert document["rounds"] == certificate.participation.rounds == study.rounds


def test_every_ledger_was_charged_once(finished: Finished) -> None:
    out, document = finished
    assert list(document["charged"].values()) == [1.0] * 10
    for number in range(1, 11):
        balance = Ledger(out / f"hospital-{number:02}" / "ledger.db").balance("patients", "record")
        assert balance.spent.epsilon == 1
        assert balance.left.epsilon == 0
    assert "left ε = 0" in document["once_more"]


def test_together_is_better_than_alone(finished: Finished) -> None:
    out, document = finished
    score = document["accuracy"]
    assert score["no_privacy"] > 0.845
    assert score["federation"] > score["no_privacy"] - 0.012
    assert score["federation"] > sum(score["alone"]) / 10
    assert document["curve"][-1]["epsilon_spent"] == pytest.approx(1.0, abs=1e-3)
    assert (out / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_the_model_is_a_plain_scikit_learn_object(finished: Finished) -> None:
    out, _ = finished
    saved = load_model(out / "demo.safetensors")
    plain = to_sklearn(saved)
    assert type(plain).__module__.startswith("sklearn.")
    assert plain.coef_.shape == saved.model.coef.shape


def test_no_server_saw_a_record_and_no_log_holds_a_secret(finished: Finished) -> None:
    out, _ = finished
    keys = [path.read_bytes() for path in out.glob("*/keys/holder.pem")]
    assert len(keys) == 13
    for log in [*out.glob("*/log.txt"), *out.glob("*/studies/*/events.jsonl")]:
        text = log.read_bytes()
        assert all(key.splitlines()[1] not in text for key in keys)
    for name in ("north", "south", "aggregator"):
        assert not list((out / name).glob("*.parquet"))


def test_a_folder_that_is_not_ours_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(SystemExit) as stop:
        main(["demo", "--out", str(tmp_path)])
    assert stop.value.code == 2
    assert (tmp_path / "thesis.txt").read_text() == "precious"
    assert "name another" in capsys.readouterr().err
