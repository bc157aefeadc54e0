"""`tacit verify`, `tacit audit` and `tacit bench`, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tacit.cli import bench
from tacit.cli.main import main
from tacit.crypto.signing import SigningKey, digest
from tacit.privacy import Bound, Certificate, Promise
from tacit.privacy.mechanisms import Laplace

KEY = SigningKey.generate()
MODEL = b'{"mean": 3}'


def run(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(words)
    printed = capsys.readouterr()
    assert isinstance(left.value.code, int)
    return left.value.code, printed.out, printed.err


@pytest.fixture
def model(tmp_path: Path) -> Path:
    mechanism = Laplace.calibrated(Bound("L1", 1), Promise(1.0))  # type: ignore[arg-type]
    certificate = Certificate(
        promise=Promise(1.0),
        releases=mechanism.spend,
        trust="the holder",
        accountant="pure",
        program="mean 1",
        program_digest="00",
        schema_digest="00",
        subject=digest(MODEL),
        secure_randomness=True,
    ).signed(KEY)
    path = tmp_path / "model.json"
    path.write_bytes(MODEL)
    (tmp_path / "model.json.certificate.json").write_text(certificate.to_json())
    return path


class TestVerify:
    def test_a_model_and_its_certificate(
        self, model: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for path in (model, model.with_name("model.json.certificate.json")):
            code, out, _ = run(["verify", str(path), "--json"], capsys)
            assert code == 0
            document = json.loads(out)
            assert document["recomputed_epsilon"] == pytest.approx(1)
            assert document["model_checked"] is True
        code, out, _ = run(["verify", str(model)], capsys)
        assert code == 0
        assert "certificate holds" in out

    def test_any_change_exits_6(self, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
        beside = model.with_name("model.json.certificate.json")
        for path in (model, beside):
            data = path.read_bytes()
            for place in range(0, len(data), max(1, len(data) // 25)):
                path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
                code, out, err = run(["verify", str(model)], capsys)
                assert code == 6
                assert out == ""
                assert err.startswith("tacit: ")
            path.write_bytes(data)

    def test_pinned_signer(self, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["verify", str(model), "--signer", KEY.public_key], capsys)[0] == 0
        other = SigningKey.generate().public_key
        assert run(["verify", str(model), "--signer", other], capsys)[0] == 6

    def test_what_is_missing(self, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
        model.unlink()
        beside = model.with_name("model.json.certificate.json")
        code, out, _ = run(["verify", str(beside), "--json"], capsys)
        assert code == 0
        assert json.loads(out)["model_checked"] is False
        assert run(["verify", str(model)], capsys)[0] == 3
        model.write_bytes(MODEL)
        beside.unlink()
        assert run(["verify", str(model)], capsys)[0] == 6


class TestAudit:
    def test_laplace(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, out, _ = run(["audit", "laplace", "--json"], capsys)
        assert code == 0
        (entry,) = json.loads(out)["audits"]
        assert entry["passed"]
        assert entry["teeth"]
        assert entry["epsilon_at_least"] < 1 < entry["halved_noise_epsilon_at_least"]

    def test_a_program_states_its_power(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, out, _ = run(["audit", "PCA", "--json"], capsys)
        assert code == 0
        (entry,) = json.loads(out)["audits"]
        assert entry["game"] == "white box"
        assert entry["passed"]
        assert entry["teeth"]
        assert entry["power"] >= 0.99
        assert entry["false_alarm_rate"] <= 1e-6
        assert entry["mu_at_least"] < entry["claim"]["mu"] < entry["halved_noise_mu_at_least"]

    def test_a_game_of_many_names_is_played_once(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from tacit.cli import audit as module

        def played(name: str, game: object, trials: int | None) -> dict[str, object]:
            return {"target": name, "passed": True, "teeth": True}

        monkeypatch.setattr(module, "_white_box", played)
        monkeypatch.setattr(module, "_black_box", played)
        code, out, _ = run(["audit", "all", "--json"], capsys)
        assert code == 0
        entries = json.loads(out)["audits"]
        names = [name for e in entries for name in (e["target"], *e["also"])]
        assert len(names) == len(set(names))
        (pca,) = [e for e in entries if "PCA" in (e["target"], *e["also"])]
        assert {pca["target"], *pca["also"]} == {"pca", "PCA"}
        assert {"federation-hostile", "consortium", "laplace"} <= set(names)

    def test_a_leaking_mechanism_exits_6(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from tacit.privacy import audit_targets

        real = audit_targets.TARGETS["laplace"]
        monkeypatch.setitem(
            audit_targets.TARGETS, "laplace", lambda noise, source: real(noise / 2, source)
        )
        code, out, err = run(["audit", "laplace"], capsys)
        assert code == 6
        assert "BROKEN" in out
        assert "not as claimed" in err

    def test_too_few_trials_have_no_teeth(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, out, _ = run(["audit", "randomised-response", "--trials", "100"], capsys)
        assert code == 6
        assert "NOT caught" in out


class TestBench:
    def test_list(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, out, _ = run(["bench", "--json"], capsys)
        assert code == 0
        assert "noise" in json.loads(out)["benchmarks"]

    def test_rows_have_the_agreed_shape(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        source = (
            '"""A benchmark for the test."""\n'
            "from tacit.cli.bench import Row\n"
            "def rows(say):\n"
            "    say('working')\n"
            "    yield Row('speed', 30.0, 1.0, 'a peer', 20.0)\n"
            "    yield Row('size', 3.0, 2.0, 'a peer', 1.2, at_most=True)\n"
        )
        (tmp_path / "small.py").write_text(source)
        monkeypatch.setattr(bench, "_benchmarks", lambda: {"small": tmp_path / "small.py"})
        code, out, err = run(["bench", "small", "--json"], capsys)
        document = json.loads(out)
        assert document["bench"] == "small"
        keys = ["what", "ours", "peer", "peer_name", "ratio", "bar", "ok"]
        assert [list(row) for row in document["rows"]] == [keys, keys]
        assert [row["ok"] for row in document["rows"]] == [True, False]
        assert "working" in err
        assert code == 6
        code, out, _ = run(["bench", "small"], capsys)
        assert "30.00 ×" in out

    def test_noise_is_measured_for_real(self) -> None:
        """The benchmark's two sides draw the same law; how fast is for `tacit bench noise`."""
        pytest.importorskip("opendp", reason="OpenDP, the peer, is not installed")
        module = bench._load(bench._benchmarks()["noise"])
        for _, ours, theirs in module._laws(2000):
            mine, peer = ours(), theirs()
            assert len(mine) == len(peer) == 2000
            assert 0.7 < mine.std() / np.std(peer) < 1.4
