"""A study's result on disk: the model, and its certificate beside it."""

from __future__ import annotations

from pathlib import Path

from tacit.whole_file import write_whole

__all__ = ["write_result"]


def write_result(path: Path, model: bytes, certificate: str) -> dict[str, str]:
    """Both files, each in one step; returns their names."""
    beside = path.with_name(path.name + ".certificate.json")
    for file, data in ((path, model), (beside, certificate.encode())):
        write_whole(file, data)
    return {"model": str(path), "certificate": str(beside)}
