"""`tacit` itself, in a process that stops or kills itself at one exact point.

    python federation_child.py POINT ROUND SIGNAL tacit's own words …

    event:NAME    the event of this round is written; whatever is being stored is not durable yet
    stored:NAME   … and now it is, but nobody has been told
    kept          the shares of this round are in the holder's outbox, and none has left
    counting      the aggregator is about to choose whose sum this round is
    chosen        … it has, in its journal, and told no server
    settling      the holder has kept the result, and its ledger is not settled yet

SIGNAL is KILL or STOP. Everything else is the command line as people run it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tacit.channels.federation.journal import Journal
from tacit.channels.federation.outbox import Outbox
from tacit.channels.roles.budget import LedgerBudget
from tacit.channels.roles.events import Events
from tacit.channels.roles.store import Store
from tacit.cli.main import main

Act = Callable[[], None]


def at_event(name: str, number: int, act: Act) -> None:
    tell = Events.__call__

    def telling(self: Events, event: str, **fields: Any) -> None:
        tell(self, event, **fields)
        if event == name and fields.get("round", 0) == number:
            act()

    Events.__call__ = telling  # type: ignore[method-assign]


def once_stored(name: str, number: int, act: Act) -> None:
    transaction, due = Store.transaction, []
    at_event(name, number, lambda: due.append(True))

    @contextmanager
    def transacting(self: Store) -> Iterator[None]:
        with transaction(self):
            yield
        if due:
            act()

    Store.transaction = transacting  # type: ignore[method-assign]


def once_kept(number: int, act: Act) -> None:
    keep = Outbox.keep

    def keeping(self: Outbox, found: int, *rest: Any) -> None:
        keep(self, found, *rest)
        if found == number:
            act()

    Outbox.keep = keeping  # type: ignore[method-assign, assignment]


def when_choosing(number: int, act: Act, done: bool) -> None:
    transaction, choose, due = Store.transaction, Journal.choose, []

    def choosing(self: Journal, found: int, holders: Sequence[str], marks: Sequence[bytes]) -> None:
        if found == number and not done:
            act()
        choose(self, found, holders, marks)
        due.append(found == number)

    @contextmanager
    def transacting(self: Store) -> Iterator[None]:
        with transaction(self):
            yield
        if any(due):
            act()

    Journal.choose = choosing  # type: ignore[method-assign, assignment]
    Store.transaction = transacting  # type: ignore[method-assign]


def when_settling(act: Act) -> None:
    settle = LedgerBudget.settle

    def settling(self: LedgerBudget, certificate: str | None) -> None:
        act()
        settle(self, certificate)

    LedgerBudget.settle = settling  # type: ignore[method-assign]


def arm(point: str, number: int, act: Act) -> None:
    kind, _, name = point.partition(":")
    match kind:
        case "event":
            at_event(name, number, act)
        case "stored":
            once_stored(name, number, act)
        case "kept":
            once_kept(number, act)
        case "counting" | "chosen":
            when_choosing(number, act, done=kind == "chosen")
        case "settling":
            when_settling(act)
        case _:
            raise SystemExit(f"there is no point {point!r}")


if __name__ == "__main__":
    where, round_number, how, *words = sys.argv[1:]
    sent = {"KILL": signal.SIGKILL, "STOP": signal.SIGSTOP}[how]
    armed = [True]

    def act() -> None:
        if armed:  # once: who goes on after a STOP is left alone
            armed.clear()
            os.kill(os.getpid(), sent)

    arm(where, int(round_number), act)
    main(words)
