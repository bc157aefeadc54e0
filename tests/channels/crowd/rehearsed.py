"""A real collector whose people and relays a test plays, as far as relays need them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).parents[2] / "simulation"))

from crowd_cast import identity, proposed

from tacit.channels.crowd.assignment import Assignment, context_of
from tacit.channels.crowd.collector import Collector
from tacit.channels.crowd.collector_store import CollectorStore
from tacit.channels.crowd.drawing import committed, reveal, roster_digest
from tacit.channels.crowd.letters import (
    IDLE,
    Batches,
    Bulletin,
    Drawn,
    Reveal,
    Roster,
    TokenAsked,
    Wave,
)
from tacit.channels.crowd.relay_role import RelayRole
from tacit.channels.crowd.relay_store import RelayStore
from tacit.channels.roles.letters import Letter, read, write
from tacit.channels.roles.store import MEMORY
from tacit.crypto.onion import wrap
from tacit.privacy.attested import BatchStatement

__all__ = ["PEOPLE", "Rehearsed"]

PEOPLE = 12


class Rehearsed:
    """The collector, and what others say to it."""

    def __init__(self, people: int = PEOPLE, **terms: Any) -> None:
        self.cast = proposed(people, **terms)
        self.proposal = self.cast.proposal
        self.people = [identity("rehearsed", number).public_key for number in range(people)]
        self.store = CollectorStore(MEMORY, self.proposal.digest)
        self.now = 0.0
        self.collector = Collector(self.proposal, self.cast.secrets, self.store, self.now)

    def key(self, place: int) -> str:
        return self.cast.relays[place][0].public_key

    def ask(self, sender: str, kind: str, body: msgspec.Struct | None = None) -> Letter:
        letter = Letter(kind, 0, b"" if body is None else write(body))
        return self.collector.answer(sender, letter, self.now)

    def answered(self, sender: str, letter: Letter) -> Letter:
        """What a relay is told; time passes while it waits for news."""
        reply = self.collector.answer(sender, letter, self.now)
        if reply.kind == "wait":
            if self.news.phase == "issuing":
                self.issue()
            self.pass_time((self.collector.deadline or 0.0) - self.now)
            reply = self.collector.answer(sender, letter, self.now)
        return reply

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.collector.tick(self.now)

    # ── what others do ──

    def registered(self) -> None:
        for person in self.people:
            self.ask(person, "register")

    def seed(self, place: int) -> bytes:
        """Of a relay's part of the lot, as its role has it."""
        key, onion = self.cast.relays[place]
        store = RelayStore(MEMORY, self.proposal.digest)
        return RelayRole(self.proposal, key, onion, store)._seed

    def commit(self, place: int) -> Letter:
        key, _ = self.cast.relays[place]
        said = committed(key, self.proposal.digest, self.seed(place))
        return self.ask(key.public_key, "commit", said)

    def reveal(self, place: int) -> Letter:
        return self.ask(self.key(place), "reveal", self.revealed(place, self.roster))

    def revealed(self, place: int, roster: Roster) -> Reveal:
        study = self.proposal.digest
        found = roster_digest(study, roster)
        return reveal(self.cast.relays[place][0], study, found, self.seed(place))

    def lots(self, roster: Roster, *places: int) -> Drawn:
        """Drawn by these relays, for any roster."""
        parts = {place: self.revealed(place, roster) for place in places}
        return Drawn(self.cast.secrets.seed, parts)

    def issue(self) -> None:
        """One token, so that the study waits for an answer."""
        person = self.people[0]
        for name in self.drawn.names(person):
            if self.proposal.questions[name].stage == self.news.stage:
                blinded = self.proposal.token_keys[name].blind(b"an answer").blinded
                self.ask(person, "token", TokenAsked(name, blinded))

    def account(self, place: int, received: int = 0, passed: int = 0, but: str = "-") -> None:
        """What another relay says of the open wave: of each of its batches the same, and that
        nothing of one has left it."""
        wave, drawn = self.wave, self.drawn
        ways = self.ways(wave)
        mine = [name for name, way in ways.items() if place in way and name != IDLE]
        key, _ = self.cast.relays[place]
        said = BatchStatement(
            key.public_key,
            drawn.drawing,
            wave.stage,
            wave.number,
            drawn.hop_of(place, drawn.left_out(wave)),
            {name: (received, 0 if name == but else passed) for name in mine},
        )
        assert self.ask(key.public_key, "batches", Batches(said.signed(key))).kind == "noted"

    # ── what everybody sees ──

    @property
    def news(self) -> Bulletin:
        return self.collector.bulletin(self.now)

    @property
    def wave(self) -> Wave:
        found = self.news.wave
        assert found is not None
        return found

    @property
    def roster(self) -> Roster:
        return read(Roster, self.ask(self.people[0], "roster").body)

    @property
    def drawn(self) -> Assignment:
        lots = self.news.drawn
        assert lots is not None
        return Assignment(self.proposal, self.roster, lots)

    def ways(self, wave: Wave) -> dict[str, tuple[int, ...]]:
        return self.drawn.open_batches(wave)

    def asked(self, batch: str) -> list[str]:
        drawn, stage = self.drawn, self.news.stage
        return [person for person in self.people if batch in drawn.slots(person, stage)]

    def packet(self, wave: Wave, batch: str, payload: bytes) -> bytes:
        drawn = self.drawn
        stops = [self.proposal.stops[place] for place in self.ways(wave)[batch]]
        context = context_of(drawn.drawing, wave, batch)
        return wrap(drawn.shape, context, stops, self.proposal.collector.onion, payload)
