"""`tacit` itself, in a process that kills itself at one exact point of a consortium's run.

    python consortium_child.py POINT STEP KILL tacit's own words …

    taken      the curator has a party's body of this step in its journal, and told nobody
    answered   the party has the answer to this step in its journal, and done nothing with it
    revealed   the party has noted that it reveals, and paid nothing
    spent      … and its ledger says that the promise is spent, which the party has not noted
    paid       … and now it has, and has sent nothing
    kept       the party has the result in its journal, and its ledger is not settled yet
    settled    … and now it is, but no file is written
    published  the curator has the result in its journal, and told nobody

STEP is read by the first two. Everything else is the command line as people run it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from tacit.channels.consortium.journals import CuratorJournal, PartyJournal
from tacit.channels.roles.budget import LedgerBudget
from tacit.cli.main import main

Hooked = Callable[..., Any]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def after(method: Hooked, when: Callable[[tuple[Any, ...]], bool]) -> Hooked:
    """The same method, deadly when its arguments are these."""

    def deadly(*arguments: Any, **named: Any) -> Any:
        found = method(*arguments, **named)
        if when(arguments):
            die()
        return found

    return deadly


def arm(point: str, step: int) -> None:
    def this_step(arguments: tuple[Any, ...]) -> bool:
        return bool(arguments[1] == step)

    def always(arguments: tuple[Any, ...]) -> bool:
        return True

    match point:
        case "taken":
            CuratorJournal.put = after(CuratorJournal.put, this_step)  # type: ignore[method-assign]
        case "published":
            CuratorJournal.put_result = after(CuratorJournal.put_result, always)  # type: ignore[method-assign]
        case "answered":
            PartyJournal.put = after(PartyJournal.put, this_step)  # type: ignore[method-assign]
        case "kept":
            PartyJournal.put_result = after(PartyJournal.put_result, always)  # type: ignore[method-assign]
        case "settled":
            LedgerBudget.settle = after(LedgerBudget.settle, always)  # type: ignore[method-assign]
        case "revealed":
            PartyJournal.reveal = after(PartyJournal.reveal, always)  # type: ignore[method-assign]
        case "paid":
            PartyJournal.pay = after(PartyJournal.pay, always)  # type: ignore[method-assign]
        case "spent":
            LedgerBudget.spend = after(LedgerBudget.spend, always)  # type: ignore[method-assign]
        case _:
            raise SystemExit(f"there is no point {point!r}")


if __name__ == "__main__":
    where, number, _, *words = sys.argv[1:]
    arm(where, int(number))
    main(words)
