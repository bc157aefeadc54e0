"""A file larger than memory is read in little of it: growth is measured, not time."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from tacit import children

LIMIT_MB = 150  # measured: about 100, for a file a tenth of the size too
PROBE = """
import resource, sys
import numpy, pyarrow, pyarrow.csv, pyarrow.parquet
from tacit.data import Encoder, Schema, read_batches
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
columns = {f"x{i}": {"type": "number", "bounds": [0, 1]} for i in range(4)}
columns["kind"] = {"type": "category", "categories": ["a", "b"]}
schema = Schema.from_dict({"columns": columns})
encoder = Encoder(schema)
before, rows, total = peak(), 0, 0.0
for batch in read_batches(sys.argv[1], schema):
    rows += batch.rows
    total += encoder.encode(batch).X.sum()
print(rows, peak() - before)
"""
LINES = [f"0.{i:06d},0.5,{1 / (i + 1):.9f},0.25,{'ab'[i % 2]}\n" for i in range(20_000)]


def growth(path: Path) -> tuple[int, int]:
    done = children.run(
        [sys.executable, "-c", PROBE, str(path)], capture_output=True, text=True, check=True
    )
    rows, grown = map(int, done.stdout.split())
    return rows, grown


@pytest.fixture
def big_csv(tmp_path: Path) -> Path:
    chunk = "".join(LINES).encode()
    path = tmp_path / "big.csv"
    with path.open("wb") as file:
        file.write(b"x0,x1,x2,x3,kind\n")
        for _ in range(300 * 2**20 // len(chunk)):
            file.write(chunk)
    return path


def test_a_large_text_file(big_csv: Path) -> None:
    rows, grown = growth(big_csv)
    assert big_csv.stat().st_size > 290 * 2**20
    assert rows % len(LINES) == 0
    assert grown < LIMIT_MB


def test_a_large_parquet_file_in_one_row_group(tmp_path: Path) -> None:
    count = 8_000_000
    numbers = pa.array([i / 997 for i in range(997)] * (count // 997 + 1))[:count]
    kinds = pa.array(["a", "b"] * (count // 2))
    names = [f"x{i}" for i in range(4)]
    table = pa.table([numbers] * 4 + [kinds], names=[*names, "kind"])
    assert table.nbytes > 250 * 2**20
    path = tmp_path / "big.parquet"
    pa.parquet.write_table(table, path, row_group_size=count, use_dictionary=["kind"])
    rows, grown = growth(path)
    assert rows == count
    assert grown < LIMIT_MB
