"""Private peers of benchmarks: what they are told, what they answer, and when there are none."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.cli import bench
from tacit.errors import CheckFailed

# A model that only has the manners of the peer's: the probability is its first column.
STUB = """
import numpy as np
class Model:
    def __init__(self, **told): self.told = told
    def fit(self, X, y):
        assert self.told["privacy_bounds"] == {"x0": (-1.0, 1.0)}, self.told
        assert self.told["feature_types"] == ["continuous", "nominal"]
        assert (self.told["epsilon"], self.told["delta"]) == (1.0, 1e-6)
        assert X["x1"].tolist() == ["a", "b"] and y.tolist() == [0, 1]
        return self
    def predict_proba(self, X):
        return np.column_stack([1 - X["x0"], X["x0"]]) + self.told["random_state"]
DPExplainableBoostingClassifier = Model
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    bench._load(bench._benchmarks()["utility_features"])  # whose folder is on the path now
    (tmp_path / "interpret").mkdir()
    (tmp_path / "interpret" / "privacy.py").write_text(STUB)
    (tmp_path / "pandas.py").write_text("DataFrame = dict")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return importlib.import_module("shared_parts.private_peers")


SPLIT = {
    "train_0": np.array([0.1, 0.2]),
    "train_1": np.array(["a", "b"]),
    "test_0": np.array([0.3, 0.4]),
    "test_1": np.array(["b", "none"]),
    "y": np.array([0, 1]),
}
TOLD = {"bounds": [[-1, 1], None], "epsilon": 1.0, "delta": 1e-6}


def test_every_split_has_an_answer_of_its_own(module: Any) -> None:
    found = module.answers(module.EBM, Path(sys.executable), "ebm", [SPLIT, SPLIT], TOLD)
    assert np.allclose(found, [[0.3, 0.4], [1.3, 1.4]])  # the place is the seed


def test_a_peer_that_fails_is_named(module: Any) -> None:
    wrong = {**TOLD, "bounds": [[-2, 1], None]}
    with pytest.raises(CheckFailed, match=r"interpret 0\.7\.8 did not finish: AssertionError"):
        module.answers(module.EBM, Path(sys.executable), "ebm", [SPLIT], wrong)


def test_a_peer_that_cannot_be_installed_is_left_out(
    module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*command: object, **options: object) -> None:
        raise subprocess.CalledProcessError(1, "pip")

    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module.venv, "create", lambda *where, **how: None)
    monkeypatch.setattr(module.children, "run", fails)
    said: list[str] = []
    assert module.environment(module.EBM, said.append) is None
    assert said[-1].startswith("left out: DP-EBM")
