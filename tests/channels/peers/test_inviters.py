"""Initiators that let groups dissolve, or invite to none."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from small_network import (
    CYCLE,
    GROUP,
    PATIENCE,
    NotingPurse,
    begun_group,
    descriptor_of,
    key_of,
    pact_of,
    peer_of,
)

from tacit.channels.peers.inviters import DISSOLVED, LONGEST_PAUSE, PAUSE, Inviters
from tacit.channels.peers.letters import Accept, Decline, Form, Invite, Off
from tacit.channels.peers.peer import Peer
from tacit.channels.peers.seats import seated
from tacit.channels.roles.letters import Letter, read, write

PACT = pact_of()


def invite(peer: Peer, initiator: int, group: str, now: float) -> Letter:
    own = descriptor_of(PACT, initiator)
    return peer.answer(own.key, Letter("invite", 0, write(Invite(group, "", own))), now)


def dissolved(peer: Peer, number: int, now: float) -> None:
    """A group whose initiator lets it go after it has heard our seed."""
    group = f"{number:064x}"
    seat = read(Accept, invite(peer, 0, group, now).body).seat
    others = []
    for place in (0, 2, 3):
        own, key = descriptor_of(PACT, place), key_of(place)
        party = key_of(f"p {number} {place}").public_key
        others.append(seated(PACT, group, "", key, own, party, b"s" * 32))
    seats = sorted([seat, *others], key=lambda seat: seat.descriptor.key)
    reply = peer.answer(key_of(0).public_key, Letter("form", 0, write(Form(group, seats))), now)
    assert reply.kind == "reveal"
    peer.answer(key_of(0).public_key, Letter("off", 0, write(Off(group))), now)
    assert peer.membership is None


def test_who_dissolves_groups_after_our_reveal_is_not_heard_any_more() -> None:
    purse = NotingPurse()
    peer = peer_of(PACT, 1, purse, starts=False)
    for number in range(DISSOLVED):
        dissolved(peer, number, 0.0)
    assert read(Decline, invite(peer, 0, GROUP, 1e6).body).reason == "unable"
    assert invite(peer, 2, GROUP, 0.0).kind == "accept"  # another initiator
    assert purse.paid == {}
    assert len(purse.given_back) == DISSOLVED


def test_invitations_to_nothing_keep_a_peer_busy_less_and_less() -> None:
    peer = peer_of(PACT, 1, starts=False)
    now = busy = 0.0
    while now < 2000 * CYCLE:
        if invite(peer, 0, f"{int(now):064x}", now).kind == "accept":
            begun = now
            while peer.membership is not None:
                now += CYCLE
                peer.tick(now)
            busy += now - begun
        now += CYCLE
    assert busy < 0.1 * now
    assert invite(peer, 2, GROUP, now).kind == "accept"


def test_what_is_called_off_at_once_is_held_against_nobody() -> None:
    inviters = Inviters(CYCLE, PATIENCE)
    for _ in range(100):
        inviters.ended("a", 1.0, revealed=False, begun=False, now=0.0)
    assert inviters.welcome("a", 0.0)
    inviters.ended("a", PATIENCE, revealed=False, begun=False, now=0.0)
    assert not inviters.welcome("a", PAUSE * CYCLE - 1)
    assert inviters.welcome("a", PAUSE * CYCLE)
    for _ in range(40):
        inviters.ended("a", PATIENCE, revealed=False, begun=False, now=0.0)
    assert inviters.welcome("a", LONGEST_PAUSE * CYCLE)  # not for ever
    for number in range(5000):
        inviters.ended(f"{number}", PATIENCE, revealed=False, begun=False, now=0.0)
    assert len(inviters._records) == 4096


def test_who_begins_groups_and_lets_them_idle_as_their_curator_waits_too() -> None:
    first = key_of(0).public_key
    seen = set()
    for _ in range(100):
        members = begun_group(PACT)
        other = next(member for member in members if member.seat.descriptor.key != first)
        assert other.study is not None
        is_curator = other.study.aggregator.key == first
        other.let_go("it took too long")
        inviters = Inviters(CYCLE, PATIENCE)
        inviters.left(other, 6 * PATIENCE)
        assert inviters.welcome(first, 6 * PATIENCE) == (not is_curator)
        seen.add(is_curator)
        if len(seen) == 2:
            return
    raise AssertionError("the lot always falls alike")
