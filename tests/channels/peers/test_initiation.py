"""Bringing a group together: who is asked, who is replaced, and when it is given up."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from small_network import GROUP, key_of, member_of, pact_of, reply_of

from tacit.channels.peers.descriptors import Descriptor
from tacit.channels.peers.initiation import CALLS, Initiation
from tacit.channels.peers.letters import Accept, Begin, Decline, Form, Invite, Reveal
from tacit.channels.peers.seats import curator_of
from tacit.channels.roles.letters import Letter, read, write
from tacit.errors import CheckFailed, Refused, TacitError, Unreachable

PACT = pact_of()
NOBODY = Unreachable("nobody answers there.")
Sent = list[tuple[Descriptor, Letter]]


class Attempt:
    """An initiation of peer 0 among others, who accept and answer honestly if they are let."""

    def __init__(self, others: int = 6) -> None:
        made = [member_of(PACT, place) for place in range(others + 1)]
        self.members = {member.seat.descriptor.key: member for member in made}
        self.own = made[0]
        self.known = [member.seat.descriptor for member in made[1:]]
        self.core = Initiation(self.own, self.own.seat.descriptor, self.sample)

    def sample(self, number: int, without: set[str]) -> list[Descriptor]:
        return [one for one in self.known if one.key not in without][:number]

    def honest(self, sent: Sent) -> Sent:
        """All of these are answered as they should be; what follows."""
        return [s for to, letter in sent for s in self.told(to, self.reply(to, letter))]

    def reply(self, to: Descriptor, letter: Letter) -> Letter:
        return reply_of(self.members[to.key], letter)

    def told(self, to: Descriptor, reply: Letter | TacitError) -> Sent:
        return self.core.told(to, reply, 0.0)


@pytest.fixture
def attempt() -> Attempt:
    return Attempt()


def kinds(sent: Sent) -> list[str]:
    return [letter.kind for _, letter in sent]


def only_off(sent: Sent) -> bool:
    """Whoever has accepted is told that nothing comes of it, and nothing else is said."""
    return bool(sent) and set(kinds(sent)) == {"off"}


def decline(reason: str) -> Letter:
    return Letter("decline", 0, write(Decline(reason)))


def test_a_group_comes_together(attempt: Attempt) -> None:
    invited = attempt.core.start()
    assert kinds(invited) == ["invite"] * 3
    assert read(Invite, invited[0][1].body).group == GROUP
    forming = attempt.honest(invited)
    assert kinds(forming) == ["form"] * 3
    seats = read(Form, forming[0][1].body).seats
    assert len({letter.body for _, letter in forming}) == 1
    assert {seat.descriptor.key for seat in seats} == {
        attempt.own.seat.descriptor.key,
        *(to.key for to, _ in invited),
    }
    beginning = attempt.honest(forming)
    assert kinds(beginning) == ["begin"] * 3
    assert not attempt.core.is_over
    assert attempt.honest(beginning) == []
    assert attempt.core.is_over
    assert not attempt.core.failed
    begun = [m for m in attempt.members.values() if m.study is not None]
    assert len(begun) == 4
    assert len({m.study.digest for m in begun if m.study}) == 1
    seeds = read(Begin, beginning[0][1].body).seeds
    assert seats[curator_of(PACT, GROUP, seats, seeds)].descriptor.key == next(
        m.seat.descriptor.key for m in begun if m.curator
    )


@pytest.mark.parametrize("reply", [decline("busy"), decline("unable"), NOBODY, Refused("no.")])
def test_who_declines_is_replaced(attempt: Attempt, reply: Letter | TacitError) -> None:
    invited = attempt.core.start()
    (onward,) = attempt.told(invited[0][0], reply)
    assert onward[1].kind == "invite"
    assert onward[0].key not in {to.key for to, _ in invited}
    assert kinds(attempt.honest([*invited[1:], onward])) == ["form"] * 3
    assert attempt.core.busy == (isinstance(reply, Letter) and b"busy" in reply.body)


def test_it_is_given_up_when_nobody_is_left() -> None:
    attempt = Attempt(others=4)
    first, second, third = attempt.core.start()
    (fourth,) = attempt.told(first[0], decline("unable"))
    assert attempt.told(second[0], decline("busy")) == []
    assert attempt.core.failed == "not enough others are able"
    assert attempt.core.is_over
    assert attempt.core.busy == 1
    assert attempt.honest([third, fourth]) == []  # too late
    assert Attempt(others=2).core.start() == []


def test_nobody_accepts_for_another(attempt: Attempt) -> None:
    invited = attempt.core.start()
    seat = attempt.members[invited[1][0].key].seat
    assert attempt.told(invited[0][0], Letter("accept", 0, write(Accept(seat)))) == []
    assert "another's name" in attempt.core.failed


def test_a_forged_seat_ends_it_before_anything_is_revealed(attempt: Attempt) -> None:
    invited = attempt.core.start()
    seat = attempt.members[invited[0][0].key].seat
    forged = msgspec.structs.replace(seat, party=key_of("x").public_key)
    attempt.told(invited[0][0], Letter("accept", 0, write(Accept(forged))))
    assert only_off(attempt.honest(invited[1:]))
    assert "did not say so" in attempt.core.failed


def test_who_reveals_another_seed_ends_it(attempt: Attempt) -> None:
    forming = attempt.honest(attempt.core.start())
    assert attempt.honest(forming[1:]) == []
    bad = Letter("reveal", 0, write(Reveal(GROUP, b"s" * 32)))
    assert only_off(attempt.told(forming[0][0], bad))
    assert "not what it committed to" in attempt.core.failed
    assert all(member.study is None for member in attempt.members.values())


@pytest.mark.parametrize("reply", [Refused("no."), CheckFailed("no."), decline("busy")])
def test_who_does_not_reveal_ends_it(attempt: Attempt, reply: Letter | TacitError) -> None:
    forming = attempt.honest(attempt.core.start())
    assert only_off(attempt.told(forming[0][0], reply))
    assert "did not reveal" in attempt.core.failed


@pytest.mark.parametrize("step", ["form", "begin"])
def test_a_lost_letter_is_said_again_but_not_for_ever(attempt: Attempt, step: str) -> None:
    sent = attempt.honest(attempt.core.start())
    sent = attempt.honest(sent) if step == "begin" else sent
    (to, letter), rest = sent[0], sent[1:]
    for _ in range(CALLS - 1):
        assert attempt.told(to, NOBODY) == [(to, letter)]
    last = attempt.told(to, NOBODY)
    assert only_off(last) if step == "form" else last == []
    if step == "form":
        assert attempt.core.failed  # without it there is no drawing
    else:
        assert not attempt.core.is_over
        attempt.honest(rest)
        assert attempt.core.is_over
        assert not attempt.core.failed  # the curator misses it


def test_a_repeated_letter_makes_a_group_all_the_same(attempt: Attempt) -> None:
    sent: Sent = attempt.core.start()
    lost = False
    while sent:
        (to, letter), *sent = sent
        lost = letter.kind != "invite" and not lost
        reply = attempt.reply(to, letter)  # it arrives; every other answer does not
        sent += attempt.told(to, NOBODY if lost else reply)
    assert attempt.core.is_over
    assert not attempt.core.failed
    assert sum(m.study is not None for m in attempt.members.values()) == 4


def test_nonsense_ends_it(attempt: Attempt) -> None:
    (to, _), *_ = attempt.core.start()
    assert attempt.told(to, Letter("accept", 0, b"\xff")) == []
    assert attempt.core.failed
