"""Progress of a fit: one line on stderr that is written over, or one line at the end."""

from __future__ import annotations

import sys
from typing import TextIO

__all__ = ["Progress"]

WIDTH = 30  # of the bar, in characters


class Progress:
    """Told after each round: (rounds done, rounds planned).

    A terminal or a notebook shows a bar that grows. Elsewhere (a log file, a pipe) a line appears
    when the fit has ended, and nothing before.
    """

    def __init__(self, name: str, stream: TextIO | None = None) -> None:
        self.name, self._stream = name, stream
        self._last: tuple[int, int] | None = None

    def __call__(self, done: int, planned: int) -> None:
        self._last = done, planned
        if self._grows():
            filled = WIDTH * done // max(1, planned)
            bar = "█" * filled + "·" * (WIDTH - filled)
            self._write(f"\r{self.name} {bar} {done} of {planned} rounds")

    def close(self) -> None:
        """The fit has ended, with or without a result."""
        if self._last is None:
            return
        done, planned = self._last
        start = "\n" if self._grows() else f"{self.name}: {done} of {planned} rounds\n"
        self._write(start)
        self._last = None

    def _grows(self) -> bool:
        """Whether a line can be written over: also a notebook's output can."""
        stream = self._target()
        return "ipykernel" in type(stream).__module__ or bool(stream.isatty())

    def _write(self, text: str) -> None:
        stream = self._target()
        try:
            stream.write(text)
        except UnicodeEncodeError:  # a terminal that knows no blocks
            stream.write(text.replace("█", "#").replace("·", "."))
        stream.flush()

    def _target(self) -> TextIO:
        return sys.stderr if self._stream is None else self._stream
