"""`tacit` itself, in a process that kills itself at one exact point of a crowd's study.

    python crowd_child.py POINT TIMES KILL tacit's own words …

    issued     the collector has a token in its store, and nobody has got it
    counted    the collector has a delivery's reports in its store, and told nobody
    opened     the collector has its next step in its store, and told nobody
    taken      the relay has taken packets in, and not said so
    released   the relay has noted that a batch is passed on, and passed nothing on
    spent      the person's ledger says that she pays; nothing is randomised yet
    kept       the person has her answer in her journal: randomised, proven, noted as sent
    sending    the person has noted that she sends in this wave, and sent nothing

The process dies the how manieth time it comes there: TIMES. All else is the command line as people
run it.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from tacit.channels.crowd.collector_store import CollectorStore
from tacit.channels.crowd.person_journal import PersonJournal
from tacit.channels.crowd.relay import Relay
from tacit.channels.crowd.relay_store import RelayStore
from tacit.channels.roles.budget import LedgerBudget
from tacit.cli.main import main

POINTS: dict[str, tuple[type, str]] = {
    "issued": (CollectorStore, "put_issued"),
    "counted": (CollectorStore, "put_reports"),
    "opened": (CollectorStore, "put_progress"),
    "taken": (Relay, "take"),
    "released": (RelayStore, "put"),
    "spent": (LedgerBudget, "spend"),
    "kept": (PersonJournal, "put"),
    "sending": (PersonJournal, "put_wave"),
}


def arm(point: str, times: int) -> None:
    owner, name = POINTS[point]
    method, calls = getattr(owner, name), []

    def deadly(*arguments: Any, **named: Any) -> Any:
        found = method(*arguments, **named)
        calls.append(name)
        if len(calls) == times:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    setattr(owner, name, deadly)


if __name__ == "__main__":
    where, number, _, *words = sys.argv[1:]
    arm(where, int(number))
    main(words)
