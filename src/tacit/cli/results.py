"""A study's result on disk: the model, and its certificate beside it."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["write_result"]


def write_result(path: Path, model: bytes, certificate: str) -> dict[str, str]:
    """Both files, each in one step; returns their names."""
    beside = path.with_name(path.name + ".certificate.json")
    for file, data in ((path, model), (beside, certificate.encode())):
        draft = file.with_name(f".{file.name}.{os.getpid()}")
        draft.write_bytes(data)
        os.replace(draft, file)
    return {"model": str(path), "certificate": str(beside)}
