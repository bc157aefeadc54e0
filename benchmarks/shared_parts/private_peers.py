"""Other libraries' private models, each run by an interpreter of its own, `.bench/NAME`.

The environment is made at the first use and stamped when complete; what pip cannot install, or the
interpreter cannot import, is left out (`environment` is None). A peer's script in `peers/` gets a
folder: job.json says which model and its settings, 0.npz, 1.npz … are the splits. The last line
that it prints is a list in JSON, with what the model says of each split's held-out part. So all
models are judged by the same code, here.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit import children
from tacit.errors import CheckFailed

__all__ = ["DIFFPRIVLIB", "EBM", "Peer", "answers", "environment"]

ROOT = Path(__file__).resolve().parent.parent.parent
Say = Callable[[str], None]


class Peer(NamedTuple):
    name: str
    folder: str  # in .bench
    pins: tuple[str, ...]
    imported: str  # what must be there
    script: str  # in peers/


EBM = Peer(
    "DP-EBM of interpret 0.7.8",
    "interpret",
    ("interpret-core==0.7.8", "scikit-learn", "pandas"),
    "interpret.privacy",
    "interpret_ebm.py",
)
# diffprivlib 0.6.6, the last release, cannot be imported with scikit-learn 1.9.
DIFFPRIVLIB = Peer(
    "diffprivlib 0.6.6",
    "diffprivlib",
    ("diffprivlib==0.6.6", "scikit-learn==1.5.2"),
    "diffprivlib.models",
    "diffprivlib_models.py",
)


def environment(peer: Peer, say: Say) -> Path | None:
    """The peer's interpreter, or None, said aloud, if there can be none."""
    folder = ROOT / ".bench" / peer.folder
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    stamp = folder / ".ready"
    if stamp.exists() and stamp.read_text() == repr(peer.pins):
        return python
    say(f"making an environment for {peer.name} …")
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        venv.create(folder, with_pip=True, clear=True)
        for command in ([*install, *peer.pins], [str(python), "-c", f"import {peer.imported}"]):
            children.run(command, check=True, capture_output=True)
    except (subprocess.CalledProcessError, OSError) as problem:
        say(f"left out: {peer.name} cannot be installed into .bench/{peer.folder} ({problem}).")
        return None
    stamp.write_text(repr(peer.pins))
    return python


def answers(
    peer: Peer,
    python: Path,
    model: str,
    splits: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any],
) -> list[Any]:
    """What the model says of each split, after a fit of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for place, arrays in enumerate(splits):
            np.savez(folder / f"{place}.npz", **arrays)
        job = {"model": model, "splits": len(splits), "settings": dict(settings)}
        (folder / "job.json").write_text(json.dumps(job))
        script = ROOT / "benchmarks" / "peers" / peer.script
        command = [str(python), "-W", "ignore", str(script), str(folder)]
        done = children.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise CheckFailed(f"{peer.name} did not finish: {why}")
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return found
