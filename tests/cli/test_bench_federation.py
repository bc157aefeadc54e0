"""`tacit bench federation`: its parts compute what they claim to time, at small sizes."""

from __future__ import annotations

import csv
import math
import subprocess
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tacit.cli import bench
from tacit.privacy import Promise


def part(name: str) -> ModuleType:
    return bench._load(bench._benchmarks()[name])


def test_a_timed_round_ends_with_the_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    part("federation_scaling")
    from federation_parts import one_round, vectors

    noisy = one_round.one_round(20, 5)
    assert noisy.error > 0.1
    monkeypatch.setattr(vectors, "PROMISE", Promise(math.inf))
    exact = one_round.one_round(20, 5)
    assert exact.error < 1e-3
    assert min(exact.holders, exact.server, exact.counting, exact.combining) > 0
    parts = exact.holders + 2 * exact.server + exact.counting + exact.combining
    assert exact.whole == pytest.approx(parts)


def test_the_sum_beside_flower_counts_every_holder_once() -> None:
    flower = part("federation_flower")
    from federation_parts.vectors import study_of

    given = np.array([2.0, 0.0, 0.0])  # clipped to 1
    total = flower.secure_sum(study_of(2000, 3), [given] * 2000)
    assert np.abs(total - [2000, 0, 0]).max() < 100  # noise of two servers, ten times over


def test_flower_is_left_out_where_it_cannot_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    flower = part("federation_flower")

    def fails(say: object) -> Path:
        raise subprocess.CalledProcessError(1, "pip")

    monkeypatch.setattr(flower, "_environment", fails)
    said: list[str] = []
    assert list(flower.rows(said.append)) == []
    assert "left out" in said[0]


@pytest.mark.parametrize(("kind", "mode"), [("ours", "fresh"), ("nothing", "kept")])
def test_uploads_arrive_and_are_summed(kind: str, mode: str) -> None:
    """`_once` itself checks that every share is stored and that the sum is that of the shares."""
    took = part("federation_uploads")._once(kind, 40, 7, mode)
    assert took.seconds > 0
    assert took.processor > 0


def test_a_refused_share_fails_the_benchmark() -> None:
    """A receiver that knows fewer holders than come."""
    uploads = part("federation_uploads")
    started = uploads._process

    def smaller(module: str, *words: object) -> subprocess.Popen[str]:
        if module == "receive":
            words = (words[0], 3, *words[2:])
        found: subprocess.Popen[str] = started(module, *words)
        return found

    uploads._process = smaller
    with pytest.raises(AssertionError, match="refused shares"):
        uploads._once("ours", 4, 7, "fresh")


def test_curves_are_fitted_written_and_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    scaling = part("federation_scaling")
    from federation_parts.one_round import Times

    curve = {n: Times(n * 1e-3, n * 1e-4, n * 1e-5, 1e-3) for n in (10, 100, 1000, 10_000)}
    assert scaling.exponent(curve, "server") == pytest.approx(1)
    assert scaling.exponent(curve, "combining") == pytest.approx(0)
    scaling.write_csv(tmp_path, curve, curve)
    with (tmp_path / "federation-scaling.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["holders"]) for row in rows] == [10, 100, 1000, 10_000, 10, 10, 10, 10]
    assert float(rows[2]["server_seconds"]) == pytest.approx(0.1)
    scaling.draw(tmp_path, curve, curve, (1.0, 1.0))
    assert (tmp_path / "federation-scaling.png").stat().st_size > 10_000


def test_the_whole_is_its_parts() -> None:
    found = bench._benchmarks()
    names = [f"federation_{name}" for name in part("federation").PARTS]
    assert set(names) < set(found)
    assert all(hasattr(part(name), "rows") for name in names)
