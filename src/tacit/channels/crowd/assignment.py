"""Everything public that follows from the drawing of lots: who is asked what, who sends how many
packets in which batch, which way they go, and how many a relay waits for.

The same for people, relays and the collector: whoever was shown another roster or other lots has
another `drawing`, and her packets cannot be opened by the rest.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_left
from collections.abc import Collection
from fractions import Fraction
from functools import cached_property

from tacit.channels.crowd.circuits import circuits, layers, unheard
from tacit.channels.crowd.drawing import checked_seed, drawing_digest, members_of
from tacit.channels.crowd.letters import IDLE, Drawn, Roster, Wave
from tacit.channels.crowd.proofs import Proofs, proofs_of
from tacit.channels.crowd.proposal import Proposal
from tacit.channels.crowd.questions import Question
from tacit.channels.roles.letters import write
from tacit.crypto.onion import Shape
from tacit.errors import CheckFailed

__all__ = ["Assignment", "context_of", "wave_digest"]

# Of the people who are asked a question: with fewer in a batch, an honest relay passes nothing on.
MIN_SHARE = Fraction(1, 2)


class Assignment:
    """One study's, after the roster was closed and every part of the lot is there.

    CheckFailed if a step of the drawing does not hold."""

    def __init__(self, proposal: Proposal, roster: Roster, drawn: Drawn) -> None:
        self.proposal, self.plan = proposal, proposal.drawn_up
        self.members = members_of(proposal, roster)
        self.seed = checked_seed(proposal, roster, drawn)
        self.drawing = drawing_digest(proposal, roster, drawn)
        self.relays = tuple(sorted(drawn.reveals))  # who is in play
        self._lots = self.plan.everyone(len(self.members), self.seed)
        self._expected = self.plan.expected(len(self.members))

    @cached_property
    def shape(self) -> Shape:
        return self.proposal.shape(len(self.members))

    @cached_property
    def proofs(self) -> Proofs:
        return proofs_of(self.proposal, self.members)

    # ── who is asked what ──

    def place_of(self, member: str) -> int | None:
        place = bisect_left(self.members, member)
        return place if self.members[place : place + 1] == (member,) else None

    def names(self, member: str) -> tuple[str, ...]:
        """The names of the questions that the lots have given to a member; none to strangers."""
        place = self.place_of(member)
        if place is None:
            return ()
        lots = zip(self.plan.draws, self._lots[:, place], strict=True)
        return tuple(name for draw, lot in lots for name in draw[lot].questions)

    def asked(self, member: str) -> tuple[Question, ...]:
        """The same, in the order of the stages."""
        mine = [self.proposal.questions[name] for name in self.names(member)]
        return tuple(sorted(mine, key=lambda question: question.stage))

    def expected(self, question: str) -> int:
        """How many people are asked it."""
        return self._expected[question]

    # ── who sends what ──

    def slots(self, member: str, stage: int) -> tuple[str, ...]:
        """The batch of each packet that a member sends in every wave of a stage. Everybody sends as
        many: who is asked less sends the rest among the idle."""
        mine = [q.name for q in self.asked(member) if q.stage == stage]
        return (*mine, *[IDLE] * (self.plan.packets(stage) - len(mine)))

    def batches(self, stage: int) -> tuple[str, ...]:
        """The names of all batches of a stage."""
        return (*(question.name for question in self.plan.in_stage(stage)), IDLE)

    def required(self, name: str) -> int:
        """How many people at the first hop, packets at the others, a relay waits for: a fixed share
        of all who are asked. The idle hide nobody."""
        if name == IDLE:
            return 1
        whole = self._expected[name]
        return min(whole, max(self.proposal.route.batch, math.ceil(MIN_SHARE * whole)))

    # ── which way ──

    def ways(self, stage: int, left_out: Collection[int] = ()) -> dict[str, tuple[int, ...]]:
        """The circuit of each batch of a stage."""
        hops = self.proposal.route.hops
        left = tuple(sorted(set(left_out)))
        return dict(circuits(self.batches(stage), self.seed, self.relays, hops, left))

    def hop_of(self, place: int, left_out: Collection[int]) -> int:
        """Where a relay stands in a wave; −1 if it is left out."""
        dealt = layers(self.relays, self.proposal.route.hops, left_out)
        return next((hop for hop, layer in enumerate(dealt) if place in layer), -1)

    def left_out(self, wave: Wave) -> tuple[int, ...]:
        """The relays that a wave goes without: that were not heard in the wave before. In the first
        wave of a stage nobody is. CheckFailed for statements that relays have not made."""
        if wave.number == 0:
            return ()
        self.check_statements(wave)
        hops = self.proposal.route.hops
        found = unheard(self.relays, hops, wave.statements, wave.delivered)
        return found if len(self.relays) - len(found) >= hops else ()

    def open_batches(self, wave: Wave) -> dict[str, tuple[int, ...]]:
        """The batches of a wave, and their circuits: every question in the first wave of a stage,
        and in the second those of which nothing has left any relay."""
        ways = self.ways(wave.stage, self.left_out(wave))
        if wave.number == 0:
            return ways
        again = self.repeated(wave)
        return {name: way for name, way in ways.items() if name == IDLE or name in again}

    def repeated(self, wave: Wave) -> set[str]:
        """The questions whose first wave has failed for everybody: no relay says that it has passed
        on anything of them. One that is silent and had, objects (relay.md)."""
        if wave.number != 1:
            return set()
        passed = {
            name
            for said in wave.statements.values()
            for name in said.batches
            if said.passed_on(name)
        }
        return {question.name for question in self.plan.in_stage(wave.stage)} - passed

    def check_statements(self, wave: Wave) -> None:
        for place, said in wave.statements.items():
            about = (said.drawing, said.stage, said.wave)
            if (
                place not in self.relays
                or said.relay != self.proposal.relays[place].key
                or about != (self.drawing, wave.stage, wave.number - 1)
                or not said.holds
            ):
                raise CheckFailed(
                    f"relay {place} has not said what the collector says of the last wave."
                )


def wave_digest(drawing: str, wave: Wave) -> str:
    """Of everything that people and relays go by in a wave."""
    return hashlib.sha256(b"tacit crowd wave" + bytes.fromhex(drawing) + write(wave)).hexdigest()


def context_of(drawing: str, wave: Wave, batch: str) -> bytes:
    """What a packet is made for: one batch of one window of sending, as everybody sees it who was
    shown the same study, roster, lots, relays, thresholds and wave.

    A layer can be opened in its own wave and batch only, so a packet cannot come back in a later
    one. And a collector that shows different people different things makes packets that honest
    relays cannot open: they are mixed with nobody, and the next wave tells their owners.
    """
    about = bytes.fromhex(wave_digest(drawing, wave)) + batch.encode()
    return hashlib.sha256(b"tacit crowd context" + about).digest()
