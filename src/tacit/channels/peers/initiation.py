"""Bringing a group together: invite, list the seats, collect what everyone reveals.

The initiator chooses whom to invite, at random from its view, and nothing else: the curator follows
from everybody's seeds, to which all had committed before the first was revealed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Literal

from tacit.channels.peers.descriptors import Descriptor
from tacit.channels.peers.letters import Accept, Begin, Decline, Form, Invite, Off, Reveal, Seat
from tacit.channels.peers.membership import Membership
from tacit.channels.roles.letters import Letter, read, write
from tacit.errors import CheckFailed, TacitError, Unreachable

__all__ = ["Initiation", "called_off"]

CALLS = 3  # of one step's letter to one member, before it is given up
Sample = Callable[[int, set[str]], list[Descriptor]]  # so many others, none of these keys


class Initiation:
    """One attempt at a group, from the initiator's side. Its own seat is a membership like all."""

    def __init__(self, membership: Membership, own: Descriptor, sample: Sample) -> None:
        self._mine, self._own, self._sample = membership, own, sample
        self._pact, self.group = membership.pact, membership.group
        self._step: Literal["inviting", "forming", "beginning", "begun"] = "inviting"
        self._met: set[str] = {own.key}
        self._waiting: set[str] = set()
        self._seats: dict[str, Seat] = {own.key: membership.seat}
        self._reveals: dict[str, Reveal] = {}
        self.failed = ""
        self.busy = 0  # so many declined who may accept another time

    @property
    def is_over(self) -> bool:
        return bool(self.failed) or self._step == "begun"

    def start(self) -> list[tuple[Descriptor, Letter]]:
        """The first invitations."""
        return self._invite(self._pact.group_size - 1)

    def told(
        self, to: Descriptor, reply: Letter | TacitError, now: float
    ) -> list[tuple[Descriptor, Letter]]:
        """What somebody answered; what follows from it."""
        if self.is_over:
            return []
        self._waiting.discard(to.key)
        try:
            match self._step:
                case "inviting":
                    return self._invited(to, reply, now)
                case "forming":
                    return self._revealed(to, reply, now)
                case _:
                    return self._begun(to, reply)
        except TacitError as error:
            return self._fail(str(error))

    # ── inviting ──

    def _invite(self, count: int) -> list[tuple[Descriptor, Letter]]:
        some = self._sample(count, self._met)
        self._met.update(one.key for one in some)
        self._waiting.update(one.key for one in some)
        if len(self._seats) + len(self._waiting) < self._pact.group_size:
            return self._fail("not enough others are able")
        body = write(Invite(self.group, self._mine.tag, self._own))
        return [(one, Letter("invite", 0, body)) for one in some]

    def _invited(
        self, to: Descriptor, reply: Letter | TacitError, now: float
    ) -> list[tuple[Descriptor, Letter]]:
        if not isinstance(reply, Letter) or reply.kind != "accept":
            if isinstance(reply, Letter) and reply.kind == "decline":
                self.busy += read(Decline, reply.body).reason == "busy"
            return self._invite(1)  # busy, broke or gone: somebody else
        seat = read(Accept, reply.body).seat
        if seat.descriptor.key != to.key:
            raise CheckFailed("somebody accepted an invitation in another's name.")
        self._seats[to.key] = seat
        if len(self._seats) < self._pact.group_size:
            return []
        self._step = "forming"
        seats = self._list
        self._reveals[self._own.key] = self._mine.form(seats, now)
        return self._to_all(Letter("form", 0, write(Form(self.group, seats))))

    @property
    def _list(self) -> list[Seat]:
        return [self._seats[key] for key in sorted(self._seats)]

    # ── revealing ──

    def _revealed(
        self, to: Descriptor, reply: Letter | TacitError, now: float
    ) -> list[tuple[Descriptor, Letter]]:
        if self._said_again(to, reply):
            return [(to, self._letter)]
        if not isinstance(reply, Letter) or reply.kind != "reveal":
            return self._fail("a member did not reveal its part of the drawing")
        self._reveals[to.key] = read(Reveal, reply.body)
        if len(self._reveals) < len(self._seats):
            return []
        reveals = [self._reveals[key] for key in sorted(self._seats)]
        seeds, signatures = [r.seed for r in reveals], [r.signature for r in reveals]
        self._mine.begin(seeds, signatures, now)  # refuses what the others would refuse
        self._step = "beginning"
        return self._to_all(Letter("begin", 0, write(Begin(self.group, seeds, signatures))))

    def _begun(self, to: Descriptor, reply: Letter | TacitError) -> list[tuple[Descriptor, Letter]]:
        """Whoever does not begin is missed by the curator."""
        if self._said_again(to, reply):
            return [(to, self._letter)]
        if not self._waiting:
            self._step = "begun"
        return []

    def _to_all(self, letter: Letter) -> list[tuple[Descriptor, Letter]]:
        others = [s.descriptor for key, s in sorted(self._seats.items()) if key != self._own.key]
        self._waiting.update(other.key for other in others)
        self._letter, self._calls = letter, Counter(self._waiting)
        return [(other, letter) for other in others]

    def _said_again(self, to: Descriptor, reply: Letter | TacitError) -> bool:
        """Whether to repeat this step's letter to a member that is silent: one lost letter is not
        worth a group, and a member answers the same letter alike."""
        again = isinstance(reply, Unreachable) and self._calls[to.key] < CALLS
        if again:
            self._calls[to.key] += 1
            self._waiting.add(to.key)
        return again

    def _fail(self, reason: str) -> list[tuple[Descriptor, Letter]]:
        """Call it off: whoever has accepted shall not wait in vain."""
        self.failed = reason
        seated = [s.descriptor for key, s in sorted(self._seats.items()) if key != self._own.key]
        return [(one, called_off(self.group)) for one in seated]


def called_off(group: str) -> Letter:
    return Letter("off", 0, write(Off(group)))
