"""Becomes a command that does not outlive whoever started it: see `children.py`.

    python children_launch.py DESCRIPTOR COMMAND …

Run as a file, with nothing of tacit's imported: it must be ready in a moment.
"""

from __future__ import annotations

import os
import select
import signal
import sys

__all__ = ["become"]

ENOUGH = 65_536  # descriptors; closing more than a process has costs nothing where it matters


def become(pipe: int, command: list[str]) -> None:
    """Leave a guard behind that waits for the end of `pipe`, and turn into the command.

    The command has this very process: its number, its signals and its exit code are the command's.
    """
    target = os.getpid()
    # A descriptor of ourselves outlasts our number, which may be another's by then (pidfd_open(2)).
    known = os.pidfd_open(target) if hasattr(os, "pidfd_open") else None
    if os.fork() == 0:
        _guard(pipe, target, known)
    for one in (pipe, known):
        if one is not None:
            os.close(one)
    try:
        os.execvp(command[0], command)  # noqa: S606 - what we were asked for
    except OSError as error:
        os.write(2, f"{command[0]} cannot be run: {error.strerror}\n".encode())
        os._exit(127)


def _guard(pipe: int, target: int, known: int | None) -> None:
    """Until the pipe ends, because whoever held its other end did; or until the command has ended.

    In a session of its own, so that neither Ctrl-C nor a signal to the group ends it first. With
    nothing else open: whoever reads what the command says must not wait for us.
    """
    try:
        os.setsid()
        _close_all_but(pipe, known)
        waiting = select.poll()
        for one in (pipe, known):
            if one is not None:
                waiting.register(one, select.POLLIN)
        ended = {one for one, _ in waiting.poll()}
        # A child of the command that ended has another parent.
        if known not in ended and os.getppid() == target:
            _kill(target, known)
    finally:
        os._exit(0)


def _kill(target: int, known: int | None) -> None:
    """The command, and what it has forked if it leads a group of its own."""
    if os.getpgid(target) == target:
        os.killpg(target, signal.SIGKILL)
    elif known is not None:
        signal.pidfd_send_signal(known, signal.SIGKILL)
    else:
        os.kill(target, signal.SIGKILL)


def _close_all_but(*kept: int | None) -> None:
    start = 0
    for one in sorted(one for one in kept if one is not None):
        os.closerange(start, one)
        start = one + 1
    os.closerange(start, max(start, ENOUGH))


if __name__ == "__main__":
    become(int(sys.argv[1]), sys.argv[2:])
