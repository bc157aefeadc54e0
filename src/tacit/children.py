"""Processes that end with the process that started them, also if that one is killed.

A parent that is killed (`kill -9`, out of memory) tidies nothing up, and what it had started would
run on. Each child has a guard: a small process that holds one end of a pipe whose other end the
parent holds. The system closes that when the parent ends, however it ends; then the guard kills the
child. The alternatives are worse: PR_SET_PDEATHSIG fires when the *thread* that started the child
ends (prctl(2)), and a thread in the child that watches the pipe does nothing while the child is
stopped, and is only to be had where we wrote the program.

On Windows there is no guard, and children are like any others.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tacit import children_launch

__all__ = ["run", "start"]

LAUNCHER = Path(children_launch.__file__)


def start(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """`subprocess.Popen`, of a command that ends with us at the latest."""
    return subprocess.Popen(_guarded(command, options), **options)  # noqa: S603 - our own commands


def run(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[Any]:
    """`subprocess.run`, of a command that ends with us at the latest."""
    options.setdefault("check", False)
    return subprocess.run(_guarded(command, options), **options)  # noqa: S603


def _guarded(command: Sequence[str], options: dict[str, Any]) -> list[str]:
    if sys.platform == "win32":
        return list(command)
    pipe = _PIPE.descriptor()
    options["pass_fds"] = (*options.get("pass_fds", ()), pipe)
    # Isolated, without site-packages: only the standard library, whatever the environment says.
    return [sys.executable, "-I", "-S", str(LAUNCHER), str(pipe), *command]


class _Pipe:
    """The pipe of this process, from its first child on: never written to, and never closed."""

    def __init__(self) -> None:
        self._ends: tuple[int, int] | None = None
        self._lock = threading.Lock()

    def descriptor(self) -> int:
        """The end that guards wait at."""
        with self._lock:
            if self._ends is None:
                self._ends = os.pipe()  # neither end is inherited, unless it is passed on
            return self._ends[0]

    def forget(self) -> None:
        """In a fork of us: it has the same ends, and would keep our children alive after us."""
        self._lock = threading.Lock()
        if self._ends is not None:
            for end in self._ends:
                os.close(end)
            self._ends = None


_PIPE = _Pipe()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_PIPE.forget)
