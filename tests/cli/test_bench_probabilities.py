"""What benchmarks measure of probabilities; every part of `bench defaults` can be called."""

from __future__ import annotations

import importlib
import inspect
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from tacit.cli import bench


@pytest.fixture(scope="module")
def module() -> Any:
    bench._load(bench._benchmarks()["defaults"])  # whose folder is on the path now
    return importlib.import_module("shared_parts.probabilities")


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("factor", [0.5, 1.0, 3.0])
def test_the_slope_is_found(module: Any, classes: int, factor: float) -> None:
    generator = np.random.default_rng(classes)
    true = generator.normal(0, 2, (20_000, classes))
    y = (true + generator.gumbel(size=true.shape)).argmax(axis=1)
    scores = true / factor + np.arange(classes)  # and shifted
    assert module.calibration_slope(scores, y) == pytest.approx(factor, rel=0.05)
    if classes == 2:
        single = module.quality(scores[:, 1] - scores[:, 0], y)
        assert np.allclose(single, module.quality(scores, y))


def test_log_loss(module: Any) -> None:
    scores = np.random.default_rng(0).normal(0, 30, (50, 3))
    y = scores.argmin(axis=1)
    expected = -log_softmax(scores, axis=1)[np.arange(50), y].mean()
    assert module.log_loss(scores, y) == pytest.approx(expected)
    both = scores[:, :2]
    assert np.allclose(module.log_odds(softmax(both / 10, axis=1)), (both[:, 1] - both[:, 0]) / 10)


def test_what_is_judged(module: Any) -> None:
    assert module.slope_limits(4_999, 2) is None
    assert module.slope_limits(9_000, 100) is None
    assert module.slope_limits(5_000, 50) == (0.8, 1.25)
    assert module.slope_limits(20_000, 50) == (0.9, 1.1)
    steep, even = (module.Quality(0.1, slope, 0.3) for slope in (0.5, 1.05))
    assert not any(row.ok for row in module.quality_rows("it", [steep], ("x", 0.2), (0.9, 1.1)))
    assert all(row.ok for row in module.quality_rows("it", [even], ("x", 0.295), (0.9, 1.1)))
    assert all(row.ok for row in module.quality_rows("it", [steep], ("x", 0.2)))


def test_every_part_of_the_defaults_can_be_quick(module: Any) -> None:
    assert module
    folder = Path(bench._benchmarks()["defaults"]).parent / "defaults_parts"
    for path in sorted(folder.glob("[a-z]*.py")):
        rows = runpy.run_path(str(path))["rows"]
        assert "quick" in inspect.signature(rows).parameters, path.name
