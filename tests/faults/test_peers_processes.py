"""Twelve peers over TLS: groups form, three members die by kill -9, two come, all is spent.

Who meets whom is chance, from the system's generator: what is checked holds for every run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from peers_processes import Event, Peers, network

from tacit.privacy.ledger import Ledger

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="needs kill -9"),
    pytest.mark.timeout(900),
]

EPSILON, ALLOWED, SIZE = 1.0, 2.0, 3
TERMS = [
    "--question", "Who is ill?", "--epsilon", str(EPSILON), "--delta", "1e-6",
    "--group-size", str(SIZE), "--smallest", "50", "--peers", "12",
    "--cycle", "0.4", "--patience", "4",
]  # fmt: skip
FIRST, *OTHERS = (f"p{number:02}" for number in range(1, 13))
LATE = ("p13", "p14")


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[Peers]:
    with network(tmp_path, TERMS, ALLOWED) as found:
        yield found


def test_twelve_peers_lose_three_gain_two_spend_and_rest(peers: Peers) -> None:
    for name in (FIRST, *OTHERS, *LATE):
        peers.settle(name)
    peers.start(FIRST)
    for name in OTHERS:
        peers.start(name, FIRST, armed=True)
    formed = peers.killed_at("formed")
    spent = peers.killed_at("spent")
    curator = peers.killed_at("published")
    for name in (*LATE, spent):
        peers.start(name, FIRST)
    peers.until(lambda: is_at_rest(peers), "rest")
    living = sorted(peers.running)
    assert len(living) == 12  # of 12 three are gone, one is back and two are new
    peers.interrupt()

    libraries = [peers.publications(name) for name in living]
    assert libraries[0]
    assert all(library.keys() == libraries[0].keys() for library in libraries)
    for name in living:
        check_paid(peers, name, set(paid_for(peers.ledger(name))))
        assert not peers.ledger(name).open_spends()
        check_one_group_at_a_time(peers.events(name))
    check_settled(peers.ledger(spent))
    # The two that never came back: what was begun is held until they do, and counts as spent.
    for name, drawn in ((formed, False), (curator, True)):
        ledger = peers.ledger(name)
        (held,) = ledger.open_spends()
        assert held.drawn == drawn
        check_paid(peers, name, {*paid_for(ledger), *([held.purpose] if drawn else [])})


def is_at_rest(peers: Peers) -> bool:
    """Everybody says so, fewer than a group are able, and all have the same models."""
    said = [peers.status(name) for name in peers.running]
    if not all(one.get("at_rest") and one["in_group"] is None for one in said):
        return False
    return sum(one["able"] for one in said) < SIZE and len({one["models"] for one in said}) == 1


def paid_for(ledger: Ledger) -> list[str]:
    """The purposes of what was charged."""
    ledger.verify()
    entries = ledger.entries()
    purposes = {entry.seq: entry.body["purpose"] for entry in entries if entry.kind == "reserve"}
    return [purposes[entry.body["reservation"]] for entry in entries if entry.kind == "commit"]


def check_paid(peers: Peers, name: str, paid: set[str]) -> None:
    """ε for each group in which it revealed its part, whether a model came of it or not."""
    ledger = peers.ledger(name)
    balance = ledger.balance("data", "record")
    charged = paid_for(ledger)
    assert len(charged) == len(set(charged))
    assert balance.added.epsilon == EPSILON * (len(charged) + len(ledger.open_spends()))
    assert balance.spent.epsilon <= ALLOWED
    key, pact = peers.status(name)["key"], peers.pact(name)
    with_us = [
        publication.group
        for publication in peers.publications(FIRST).values()
        if any(seat.descriptor.key == key for seat in publication.seats)
    ]
    assert {f"peers {pact.digest[:16]} group {group[:32]}" for group in with_us} <= paid
    begun = {e["group"] for e in peers.events(name) if e["event"] == "group begun"}
    assert {purpose.rpartition(" ")[2][:16] for purpose in paid} <= begun


def check_settled(ledger: Ledger) -> None:
    """What its death had left open was charged when it came back."""
    settled = [e for e in ledger.entries() if e.kind == "commit" and e.body["settled"]]
    assert len(settled) == 1


def check_one_group_at_a_time(events: list[Event]) -> None:
    inside: str | None = None
    for event in events:
        match event["event"]:
            case "listening":
                inside = None
            case "group begun":
                assert inside is None
                inside = event["group"]
            case "group let go" | "model published" if event.get("group") == inside:
                inside = None
