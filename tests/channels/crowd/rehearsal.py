"""A crowd's study that a test walks through step by step, with everybody's keys in its hands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).parents[2] / "simulation"))

from crowd_cast import SCHEMA, UNCUT, identity, proposed, rows, secret

from tacit.channels.crowd.assignment import Assignment, context_of
from tacit.channels.crowd.collector import Collector
from tacit.channels.crowd.collector_store import CollectorStore
from tacit.channels.crowd.drawing import committed, reveal, roster_digest
from tacit.channels.crowd.letters import (
    Batches,
    Packets,
    Reveal,
    Roster,
    TokenAsked,
    TokenGiven,
    Wave,
)
from tacit.channels.crowd.payload import Answer, signed_message
from tacit.channels.crowd.proofs import ring_event
from tacit.channels.crowd.questions import Question
from tacit.channels.roles.letters import Letter, read, write
from tacit.channels.roles.store import MEMORY
from tacit.crypto.blind_signatures import Blinded
from tacit.crypto.onion import peel, wrap
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.ring_signatures import ring_sign
from tacit.crypto.signing import SigningKey
from tacit.errors import Refused
from tacit.privacy.attested import BatchStatement

__all__ = [
    "PEOPLE",
    "SCHEMA",
    "UNCUT",
    "Rehearsal",
    "identity",
    "refused",
    "rows",
    "secret",
]

PEOPLE = 12


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
        self.answers: dict[str, Answer] = {}
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
        key, seed = self.relays[place], self.seeds[place]
        return self.ask(key, "commit", committed(key, self.proposal.digest, seed))

    def drawn(self) -> Rehearsal:
        """All registered, lots drawn; tokens are issued, or the first wave of a ring is open."""
        self.registered().committed()
        for place in range(len(self.relays)):
            self.reveal(place)
        return self

    def opened(self) -> Rehearsal:
        """The first wave is open, and everybody has her answers."""
        self.drawn()
        self.answers = {person.public_key: self.answer(person) for person in self.people}
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

    @property
    def assignment(self) -> Assignment:
        """What follows from the lots."""
        drawn = self.collector.bulletin(self.now).drawn
        assert drawn is not None
        return Assignment(self.proposal, self.roster, drawn)

    @property
    def wave(self) -> Wave:
        wave = self.collector.bulletin(self.now).wave
        assert wave is not None
        return wave

    def state(self, place: int, sizes: tuple[int, int] = (0, 0), but: str = "-") -> Letter:
        """What a relay says of the open wave: as much of every question that passes it, and nothing
        of one."""
        drawn, wave = self.assignment, self.wave
        left_out = drawn.left_out(wave)
        ways = drawn.open_batches(wave)
        said = BatchStatement(
            self.relays[place].public_key,
            drawn.drawing,
            wave.stage,
            wave.number,
            drawn.hop_of(place, left_out),
            {name: (0, 0) if name == but else sizes for name, way in ways.items() if place in way},
        )
        return self.ask(self.relays[place], "batches", Batches(said.signed(self.relays[place])))

    # ── answers ──

    def asked(self, person: SigningKey) -> tuple[Question, ...]:
        """What the lots have given to a person."""
        return self.assignment.asked(person.public_key)

    def batch(self, person: SigningKey) -> str:
        """The question that her first answer is to."""
        return self.asked(person)[0].name

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

    def packet(self, payload: bytes, batch: str, hop: int = 3, wave: Wave | None = None) -> bytes:
        """As it comes to a hop (3: the collector)."""
        drawn, wave = self.assignment, wave or self.wave
        context = context_of(drawn.drawing, wave, batch)
        route = drawn.open_batches(wave).get(batch) or drawn.ways(wave.stage)[batch]
        stops = [self.proposal.stops[place] for place in route]
        packet = wrap(drawn.shape, context, stops, self.proposal.collector.onion, payload)
        for place in route[:hop]:
            packet = peel(drawn.shape, context, self.cast.relays[place][1], packet).packet
        return packet

    def deliver(self, *payloads: bytes, batch: str, wave: Wave | None = None) -> Letter:
        """Of one batch, in the open wave or under the terms of another."""
        wave = wave or self.wave
        packets = [self.packet(payload, batch, wave=wave) for payload in payloads]
        drawn = self.assignment
        last = (drawn.open_batches(wave).get(batch) or drawn.ways(wave.stage)[batch])[2]
        body = Packets(wave.stage, wave.number, 3, batch, packets)
        return self.ask(self.relays[last], "packets", body)

    def deliver_all(self, *people: SigningKey) -> None:
        """The answers of some people, each in its batch."""
        for person in people:
            payload = self.answers[person.public_key].to_bytes()
            self.deliver(payload, batch=self.batch(person))


def refused(do: Callable[[], object]) -> str:
    """The message of the refusal that this must end in."""
    try:
        do()
    except Refused as error:
        return str(error)
    raise AssertionError("it was not refused")
