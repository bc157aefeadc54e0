"""What others see of a peer follows from public facts, not from its records."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from small_network import (
    GROUP,
    NotingPurse,
    descriptor_of,
    member_of,
    pact_of,
    peer_of,
    repeatable,
)

from tacit.channels.consortium.local_model import Local
from tacit.channels.peers.letters import Accept, Begin, Form, Invite, Reveal
from tacit.channels.roles.letters import Letter, read, write

PACT = pact_of()


def seen_of(local: Local) -> list[object]:
    """All that a peer says of itself, and answers, until its group begins."""
    found: list[object] = []
    with repeatable("seen"):
        peer = peer_of(PACT, 1, NotingPurse(1), local, starts=False)
        others = [member_of(PACT, place, number=place) for place in (0, 2, 3)]
        own, group = descriptor_of(PACT, 0), GROUP
        for step in range(2):
            now = 100.0 * step
            found.append(peer.descriptor(now))
            letter = Letter("invite", 0, write(Invite(group, "", own)))
            reply = peer.answer(own.key, letter, now)
            found.append((reply.kind, reply.body))
            if step:
                break
            seats = [read(Accept, reply.body).seat, *(member.seat for member in others)]
            seats.sort(key=lambda seat: seat.descriptor.key)
            form = Letter("form", 0, write(Form(group, seats)))
            found.append(peer.answer(own.key, form, now))
            said = {m.seat.descriptor.key: m.form(seats, now) for m in others}
            said[peer.key] = read(Reveal, found[-1].body)  # type: ignore[attr-defined]
            reveals = [said[seat.descriptor.key] for seat in seats]
            begin = Begin(group, [r.seed for r in reveals], [r.signature for r in reveals])
            found.append(peer.answer(own.key, Letter("begin", 0, write(begin)), now))
            found.append([(e.letter.kind, e.letter.body) for e in peer.tick(now)])
            found.append(peer.deadline)
            assert peer.membership is not None
            peer.membership.let_go("enough")
            peer.tick(now + 1)
            group = "6b" * 32
    return found


def test_what_is_said_before_the_aggregation_is_the_same_for_all_records() -> None:
    few, many = Local(np.zeros(3), 50), Local(np.array([1.0, -2.0, 0.5]), 9_999_999)
    assert seen_of(few) == seen_of(many)
