"""diffprivlib's side of two benchmarks: run by the interpreter of .bench/diffprivlib.

    diffprivlib_models.py FOLDER

shared_parts/private_peers.py says what is in FOLDER: splits have train, y and test. Printed, for
each split: the probability of 1 ("logistic") or the label ("linear") of each held-out record.
Both are of pure ε, with public bounds or the norm that follows from them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from diffprivlib.models import LinearRegression, LogisticRegression


def main(folder: Path) -> None:
    job = json.loads((folder / "job.json").read_text())
    found = []
    for place in range(job["splits"]):
        with np.load(folder / f"{place}.npz") as arrays:
            fit = MODELS[job["model"]]
            found.append(fit(dict(arrays), random_state=place, **job["settings"]).tolist())
    print(json.dumps(found))


def _logistic(arrays: dict[str, Any], **settings: Any) -> Any:
    model = LogisticRegression(**settings).fit(arrays["train"], arrays["y"])
    return model.predict_proba(arrays["test"])[:, 1]


def _linear(arrays: dict[str, Any], **settings: Any) -> Any:
    """Cut to the label's bounds: the noisy objective may have no minimum."""
    settings["bounds_y"] = tuple(settings["bounds_y"])  # JSON has lists only
    model = LinearRegression(**settings, bounds_X=(arrays["low"], arrays["high"]))
    found = model.fit(arrays["train"], arrays["y"]).predict(arrays["test"])
    return np.clip(np.nan_to_num(found), *settings["bounds_y"])


MODELS = {"logistic": _logistic, "linear": _linear}
main(Path(sys.argv[1]))
