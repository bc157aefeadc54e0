"""Processes that spend, and are killed. Run by test_ledger_processes.py; prints one JSON document.

Children are forked from here, since this process has no threads and has imported everything.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from tacit.errors import BudgetExceeded
from tacit.privacy.ledger import Ledger, chain
from tacit.privacy.promise import Promise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROMISE = Promise(0.1)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def in_child(work: Callable[[], None]) -> int:
    """Run `work` in a forked child; its exit status as `os.waitpid` gives it."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0 if sys.exception() is None else 1)
    return os.waitpid(pid, 0)[1]


# ── many at once ──


def spend(path: str, times: str) -> dict[str, int]:
    """Wait for the word, then try to spend."""
    ledger = Ledger(path)
    print("ready", flush=True)
    sys.stdin.readline()
    granted = refused = 0
    for _ in range(int(times)):
        try:
            with ledger.reserve(PROMISE, "adult", "count"):
                granted += 1
        except BudgetExceeded:
            refused += 1
    return {"granted": granted, "refused": refused}


def fork_while_spending(path: str, times: str) -> dict[str, Any]:
    """Fork whenever a thread of this process is in the middle of writing the same ledger."""
    ledger = Ledger(path)
    inside, forking, forked = (threading.Semaphore(0) for _ in range(3))
    original = chain.Transaction.append

    def append(self: chain.Transaction, entry: chain.Entry) -> None:
        original(self, entry)
        if threading.current_thread() is thread:
            inside.release()
            forking.acquire()  # then go on to the commit, while the fork is under way

    def spend_in_thread() -> None:
        for _ in range(int(times)):
            reservation = ledger.reserve(PROMISE, "adult", "thread")
            forked.acquire()
            reservation.commit()
            forked.acquire()

    thread = threading.Thread(target=spend_in_thread)
    chain.Transaction.append = append  # type: ignore[method-assign]
    os.register_at_fork(before=forking.release)  # runs before those registered earlier
    thread.start()
    statuses = []
    for _ in range(2 * int(times)):
        inside.acquire()
        statuses.append(in_child(lambda: ledger.reserve(PROMISE, "adult", "child").commit()))
        forked.release()
    thread.join()
    return {"statuses": statuses}


# ── kill -9 from outside, at any point ──


def keep_spending(path: str, output: int) -> NoReturn:
    def say(step: str, number: int) -> None:
        os.write(output, f"{step} {number}\n".encode())

    ledger = Ledger(path)
    while True:
        reservation = ledger.reserve(PROMISE, "adult", "count")
        say("reserved", reservation.id)
        reservation.mark_drawn()
        say("drawn", reservation.id)
        reservation.commit()
        say("committed", reservation.id)


def kill_one(path: str, lines: int) -> list[str]:
    """Kill a spending child once it has acknowledged `lines` steps; all it acknowledged."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        keep_spending(path, writing)
    os.close(writing)
    with os.fdopen(reading) as acknowledged:
        seen = [acknowledged.readline() for _ in range(lines)]
        os.kill(pid, signal.SIGKILL)
        seen += acknowledged.readlines()
    os.waitpid(pid, 0)
    return [line.strip() for line in seen]


def kill_many(path: str, kills: str, seed: str) -> list[dict[str, Any]]:
    chosen = random.Random(int(seed))
    report = []
    for _ in range(int(kills)):
        acknowledged = kill_one(path, chosen.randrange(12))
        interrupted = [s.id for s in Ledger(path).interrupted()]
        report.append({"acknowledged": acknowledged, "interrupted": interrupted})
    return report


# ── kill -9 from inside, at one exact point ──


def die_before_commit() -> None:
    original = chain.Transaction.append

    def append(self: chain.Transaction, entry: chain.Entry) -> None:
        original(self, entry)
        die()

    chain.Transaction.append = append  # type: ignore[method-assign]


def die_with_a_hot_journal() -> None:
    """As if killed halfway through writing the pages: the file itself has changed already."""
    original = chain.Transaction.append

    def append(self: chain.Transaction, entry: chain.Entry) -> None:
        original(self, entry)
        self._connection.execute("PRAGMA cache_size = 1")
        for number in range(2, 40):
            self._connection.execute(
                "INSERT INTO entries VALUES (?, '', 'junk', ?, '', '')",
                (entry.seq + number, "x" * 4000),
            )
        die()

    chain.Transaction.append = append  # type: ignore[method-assign]


def die_after_commit() -> None:
    """A new ledger is there once it has its name, any other entry once its transaction ends."""
    original, name = chain.LedgerFile.writing, chain._give_name

    @contextmanager
    def writing(self: chain.LedgerFile) -> Iterator[chain.Transaction]:
        with original(self) as transaction:
            yield transaction
        if not self.path.name.startswith("."):
            die()

    def named(*paths: Any) -> None:
        name(*paths)
        die()

    chain.LedgerFile.writing = writing  # type: ignore[method-assign]
    chain._give_name = named


def killed_at(path: str, when: str, step: str) -> dict[str, Any]:
    """A child does one step of a spend and is killed at one point of it."""
    arm: Callable[[], None] = globals()[f"die_{when}"]

    def work() -> None:
        if step == "create":
            arm()
            Ledger(path)
        ledger = Ledger(path)
        if step == "allow":
            arm()
            ledger.allow("adult", "record", 7)
        if step == "reserve":
            arm()
        reservation = ledger.reserve(PROMISE, "adult", "count")
        arm()
        getattr(reservation, step)()

    if step != "create":
        Ledger(path).allow("adult", "record", 10)
    before = os.path.getsize(path) if os.path.exists(path) else 0
    status = in_child(work)
    return {
        "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
        "journal": os.path.exists(f"{path}-journal"),
        "grown": (os.path.getsize(path) if os.path.exists(path) else 0) - before,
    }


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
