"""`tacit bench peers-gossip`, with few peers: rows, tables and the picture come out."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tacit.cli import bench


def test_it_measures_and_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = bench._load(bench._benchmarks()["peers_gossip"])
    small = {"PEERS": 300, "SIZES": (50, 100, 200), "SEEDS": 1, "FLOODED": 200, "LIARS": 20}
    for name, value in {**small, "BLOCKS": (1,), "TURNS": 1, "FOLDER": tmp_path}.items():
        monkeypatch.setattr(module, name, value)
    rows = {row.what: row for row in module.rows(lambda words: None)}
    assert len(rows) == 10
    assert rows["in-degree, mean"].ratio == 1.0
    assert rows["parts, most after half vanished"].ok
    assert rows["share of a flood from one block"].ok
    assert rows["merge with signatures: s"].ours > rows["merge with signatures: s"].peer > 0
    with (tmp_path / "peers-gossip-in-degree.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert sum(int(line["peers"]) for line in table) == 300
    for name in ("vanished", "news", "flood"):
        assert (tmp_path / f"peers-gossip-{name}.csv").stat().st_size > 0
    assert (tmp_path / "peers-gossip.png").read_bytes().startswith(b"\x89PNG")
