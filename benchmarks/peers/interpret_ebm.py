"""interpret's side of `tacit bench utility-features`: run by the interpreter of .bench/interpret.

    interpret_ebm.py FOLDER

shared_parts/private_peers.py says what is in FOLDER. A split has columns train_0, test_0, …:
numbers or texts, and labels y of 0 and 1. Printed: the probability of 1 for each held-out record.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from interpret.privacy import DPExplainableBoostingClassifier


def main(folder: Path) -> None:
    job = json.loads((folder / "job.json").read_text())
    found = []
    for place in range(job["splits"]):
        with np.load(folder / f"{place}.npz") as arrays:
            found.append(_scores(dict(arrays), place, **job["settings"]))
    print(json.dumps(found))


def _scores(
    arrays: dict[str, Any],
    seed: int,
    bounds: list[list[float] | None],
    epsilon: float,
    delta: float,
) -> list[float]:
    """`bounds` has one entry for each column, None if it is of texts."""
    train, test = (
        pd.DataFrame({f"x{i}": arrays[f"{part}_{i}"] for i in range(len(bounds))})
        for part in ("train", "test")
    )
    model = DPExplainableBoostingClassifier(
        feature_types=["nominal" if pair is None else "continuous" for pair in bounds],
        privacy_bounds={f"x{i}": tuple(pair) for i, pair in enumerate(bounds) if pair is not None},
        epsilon=epsilon,
        delta=delta,
        random_state=seed,
        n_jobs=1,
    )
    return [float(p) for p in model.fit(train, arrays["y"]).predict_proba(test)[:, 1]]


main(Path(sys.argv[1]))
