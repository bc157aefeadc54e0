"""`tacit demo`, whole: thirteen processes, and what they leave behind."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tacit import children
from tacit.channels.studies.study import Study
from tacit.cli.demo import Result
from tacit.cli.demo_compare import Comparison
from tacit.cli.main import main
from tacit.cli.output import people
from tacit.crypto.signing import digest
from tacit.data import load_dataset
from tacit.errors import DatasetError
from tacit.estimators.plain import to_sklearn
from tacit.privacy import Certificate, Ledger, Promise
from tacit.programs.model_file import load_model

PAGE = Path(__file__).parent.parent.parent / "docs" / "guide" / "first-steps.md"
BLOCK = re.compile(r"^```console run\n(\$ tacit demo .*?)^```$", re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.timeout(900)

Finished = tuple[Path, dict[str, Any]]


@pytest.fixture(scope="module", autouse=True)
def adult() -> None:
    try:
        load_dataset("adult")
    except DatasetError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """The first commands of the guide, in an empty folder: the demonstration, and a look at it."""
    folder = tmp_path_factory.mktemp("demo")
    (block,) = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    first, *others = (shlex.split(line)[2:] for line in block.splitlines())
    assert first == ["demo", "--out", "demo"]
    document = json.loads(_said(folder, [*first, "--json"]))
    assert others
    for words in others:
        assert _said(folder, words)
    return folder / "demo", document


def _said(folder: Path, words: list[str]) -> str:
    done = children.run(
        [sys.executable, "-m", "tacit.cli", *words],
        cwd=folder,
        env={**os.environ, "TACIT_HOME": str(folder / "home"), "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, f"{words}\n{done.stderr}"
    return done.stdout


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


def test_it_is_told_to_people(finished: Finished, capsys: pytest.CaptureFixture[str]) -> None:
    """The same figures as in the document, and what to look at next."""
    out, document = finished
    score, promise = document["accuracy"], Promise(**document["promise"])
    others = Comparison(
        score["majority"], score["no_privacy"], tuple(score["alone"]), score["noise_only"]
    )
    world = SimpleNamespace(hospitals=["hospital-01"], refusal=lambda: document["once_more"])
    result = Result(promise, score["federation"], others, cast(Any, None), cast(Any, world))
    result.show(people(), out)
    said = "".join(capsys.readouterr().out.split())
    assert f"{score['federation']:.2%}" in said
    assert f"{score['no_privacy']:.2%}" in said
    assert "".join(document["once_more"].split()) in said
    assert "tacitverify" in said


def test_a_folder_that_is_not_ours_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(SystemExit) as stop:
        main(["demo", "--out", str(tmp_path)])
    assert stop.value.code == 2
    assert (tmp_path / "thesis.txt").read_text() == "precious"
    assert "name another" in capsys.readouterr().err
