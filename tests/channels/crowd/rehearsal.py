"""A crowd's study that a test walks through step by step, with everybody's keys in its hands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).parents[2] / "simulation"))

from crowd_cast import SCHEMA, UNCUT, identity, proposed, rows, secret

from tacit.channels.crowd.collector import Collector
from tacit.channels.crowd.collector_store import CollectorStore
from tacit.channels.crowd.drawing import checked_seed, place_of, reveal, roster_digest
from tacit.channels.crowd.letters import (
    Commitment,
    Packets,
    Reveal,
    Roster,
    TokenAsked,
    TokenGiven,
)
from tacit.channels.crowd.payload import Answer, signed_message
from tacit.channels.crowd.proofs import ring_event
from tacit.channels.crowd.questions import Question
from tacit.channels.crowd.relay import context_of
from tacit.channels.roles.letters import Letter, read, write
from tacit.channels.roles.store import MEMORY
from tacit.crypto.blind_signatures import Blinded
from tacit.crypto.lots import commitment
from tacit.crypto.onion import peel, wrap
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.ring_signatures import ring_sign
from tacit.crypto.signing import SigningKey
from tacit.errors import Refused

__all__ = [
    "PEOPLE",
    "ROUTE",
    "SCHEMA",
    "UNCUT",
    "Rehearsal",
    "identity",
    "refused",
    "rows",
    "secret",
]

PEOPLE = 12
ROUTE = (0, 1, 2)


class Rehearsal:
    """The collector under test; people and relays are played by the test."""

    def __init__(self, people: int = PEOPLE, **terms: Any) -> None:
        self.people = [identity("rehearsal", number) for number in range(people)]
        self.cast = proposed(people, **terms)
        self.proposal = self.cast.proposal
        self.relays = [key for key, _ in self.cast.relays]
        self.seeds = [secret("relay seed", place) for place in range(len(self.relays))]
        self.store = CollectorStore(MEMORY, self.proposal.digest)
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.now = 0.0
        self.randomness = SeededRandomness("rehearsal")
        self.collector = self.restarted()

    def restarted(self) -> Collector:
        """A new collector over the same store."""
        self.collector = Collector(
            self.proposal,
            self.cast.secrets,
            self.store,
            self.now,
            lambda event, **fields: self.told.append((event, fields)),
        )
        return self.collector

    def ask(
        self,
        sender: SigningKey,
        kind: str,
        body: msgspec.Struct | None = None,
        number: int = 0,
    ) -> Letter:
        letter = Letter(kind, number, b"" if body is None else write(body))
        return self.collector.answer(sender.public_key, letter, self.now)

    # ── up to the first wave ──

    def registered(self) -> Rehearsal:
        for person in self.people:
            self.ask(person, "register")
        return self

    def committed(self) -> Rehearsal:
        for place in range(len(self.relays)):
            self.commit(place)
        return self

    def commit(self, place: int) -> Letter:
        return self.ask(self.relays[place], "commit", Commitment(commitment(self.seeds[place])))

    def opened(self) -> Rehearsal:
        """All registered, lots drawn, the first wave open."""
        self.registered().committed()
        for place in range(len(self.relays)):
            self.reveal(place)
        return self

    def reveal(self, place: int) -> Letter:
        return self.ask(self.relays[place], "reveal", self.revealed(place))

    def revealed(self, place: int, roster: Roster | None = None) -> Reveal:
        found = roster_digest(self.proposal.digest, roster or self.roster)
        return reveal(self.relays[place], self.proposal.digest, found, self.seeds[place])

    @property
    def roster(self) -> Roster:
        return read(Roster, self.ask(self.people[0], "roster").body)

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.collector.tick(self.now)

    # ── answers ──

    def asked(self, person: SigningKey) -> tuple[Question, ...]:
        """What the lots have given to a person."""
        drawn = self.collector.bulletin(self.now).drawn
        assert drawn is not None
        roster = self.roster
        seed = checked_seed(self.proposal, roster, drawn)
        place = place_of(roster, person.public_key)
        return self.proposal.drawn_up.asked(place, len(self.people), seed)

    def report(self, question: Question, draw: str = "") -> bytes:
        """A report as an honest person could send it."""
        randomness = SeededRandomness(f"report {draw}")
        return question.randomiser.release([0], randomness)[0].tobytes()

    def blinded(self, question: Question, report: bytes) -> Blinded:
        message = signed_message(self.proposal.digest, question.name, report)
        return self.proposal.token_keys[question.name].blind(message, self.randomness)

    def answer(self, person: SigningKey, draw: str = "") -> Answer:
        """The person's answer to her first question, with a token or a ring's signature."""
        question = self.asked(person)[0]
        report = self.report(question, draw)
        number = self.proposal.drawn_up.names.index(question.name)
        if self.proposal.group.proof == "ring":
            event = ring_event(self.proposal.digest, question.name)
            message = signed_message(self.proposal.digest, question.name, report)
            ring = self.store.members()
            proof = ring_sign(person, ring, event, message, self.randomness).to_bytes()
        else:
            blinded = self.blinded(question, report)
            body = TokenAsked(question.name, blinded.blinded)
            given = read(TokenGiven, self.ask(person, "token", body).body)
            proof = blinded.finalize(given.signature).to_bytes()
        return Answer(self.proposal.digest, number, report, proof)

    def packet(
        self,
        payload: bytes,
        stage: int = 0,
        wave: int = 0,
        hop: int = 3,
        route: tuple[int, ...] = ROUTE,
    ) -> bytes:
        """As it comes to a hop (3: the collector)."""
        shape = self.proposal.shape(len(self.people))
        silent = self.collector.bulletin(self.now).silent
        context = context_of(self.proposal.digest, stage, wave, silent)
        stops = [self.proposal.stops[place] for place in route]
        packet = wrap(shape, context, stops, self.proposal.collector.onion, payload)
        for place in route[:hop]:
            packet = peel(shape, context, self.cast.relays[place][1], packet).packet
        return packet

    def deliver(self, *payloads: bytes, stage: int = 0, wave: int = 0) -> Letter:
        packets = [self.packet(payload, stage, wave) for payload in payloads]
        return self.ask(self.relays[2], "packets", Packets(stage, wave, 3, packets))


def refused(do: Callable[[], object]) -> str:
    """The message of the refusal that this must end in."""
    try:
        do()
    except Refused as error:
        return str(error)
    raise AssertionError("it was not refused")
