"""A study's result on disk: the model, and its certificate beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tacit.channels.roles.events import Tell
from tacit.whole_file import write_whole

__all__ = ["WindowFiles", "write_result"]

WINDOW = ("window published", "window received")


class WindowFiles:
    """Writes the newest model of a study in windows, over the one before it, as it comes."""

    def __init__(self, path: Path, tell: Tell) -> None:
        self._path, self._tell = path, tell
        self.newest: Callable[[], tuple[bytes, str] | None] = lambda: None

    def tell(self, event: str, **fields: object) -> None:
        self._tell(event, **fields)
        if event in WINDOW:
            self.write()

    def write(self) -> None:
        found = self.newest()
        if found is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_result(self._path, *found)


def write_result(path: Path, model: bytes, certificate: str) -> dict[str, str]:
    """Both files, each in one step; returns their names."""
    beside = path.with_name(path.name + ".certificate.json")
    for file, data in ((path, model), (beside, certificate.encode())):
        write_whole(file, data)
    return {"model": str(path), "certificate": str(beside)}
