"""`tacit` itself, in a process that kills itself at a point of a group, unless another has before.

    python peers_child.py FOLDER tacit's own words …

    formed     it has agreed to a list of members, and its part of the drawing is not sent
    spent      its ledger says that the aggregation is paid, and nothing is revealed
    published  it is the curator and has the model, and told nobody

Each point kills one process of all that share the folder: the first that gets there.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tacit.channels.consortium.journals import CuratorJournal
from tacit.channels.peers import purse
from tacit.channels.peers.membership import Membership
from tacit.cli.main import main

Hooked = Callable[..., Any]


def deadly(method: Hooked, token: Path) -> Hooked:
    """The same method, and the end for the first process in which it returns."""

    def wrapped(*arguments: Any, **named: Any) -> Any:
        found = method(*arguments, **named)
        try:
            mark = os.open(token, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return found
        os.write(mark, Path.cwd().name.encode())
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("still alive")

    return wrapped


def arm(folder: Path) -> None:
    hooks: list[tuple[str, Any, str]] = [
        ("formed", Membership, "form"),
        ("spent", purse._GroupBudget, "spend"),
        ("published", CuratorJournal, "put_result"),
    ]
    for point, owner, name in hooks:
        setattr(owner, name, deadly(getattr(owner, name), folder / point))


if __name__ == "__main__":
    arm(Path(sys.argv[1]))
    main(sys.argv[2:])
