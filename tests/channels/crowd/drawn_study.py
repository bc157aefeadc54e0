"""A study whose lots are drawn, with everybody's keys in the test's hands: for what comes after."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "simulation"))

from crowd_cast import UNCUT, identity, proposed, secret

from tacit.channels.crowd.assignment import Assignment, context_of
from tacit.channels.crowd.drawing import committed, reveal, roster_digest, roster_of
from tacit.channels.crowd.letters import Drawn, Wave
from tacit.channels.crowd.plan import PlanTerms
from tacit.channels.crowd.relay import Relay
from tacit.channels.crowd.relay_store import RelayStore
from tacit.channels.roles.store import MEMORY
from tacit.crypto.onion import Hop, OnionKey, wrap
from tacit.crypto.prg import Randomness, SeededRandomness
from tacit.privacy.attested import BatchStatement

__all__ = ["ONE", "PEOPLE", "SEARCHED", "TWO", "UNCUT", "DrawnStudy"]

PEOPLE = 12
ONE = PlanTerms(tables=(("smokes",),))  # asked of everybody
TWO = PlanTerms(tables=(("age",), ("smokes",)))  # each is asked of every second person
SEARCHED = PlanTerms(search=0.8, bins=2, tables=(("age",),))  # of UNCUT: some are idle at first


class DrawnStudy:
    """Who was asked what, by which way it goes, and packets and relays for it."""

    def __init__(
        self,
        people: int = PEOPLE,
        lots: object = "",
        here: Collection[int] | None = None,
        plan: PlanTerms = TWO,
        **terms: Any,
    ) -> None:
        """`lots`: others are drawn for another; `here`: the relays that have revealed."""
        self.cast = proposed(people, plan=plan, **terms)
        self.proposal = self.cast.proposal
        self.people = [identity("drawn", number).public_key for number in range(people)]
        study, relays = self.proposal.digest, self.cast.relays
        seeds = [secret("lots", lots, place) for place in range(len(relays))]
        said = {n: committed(key, study, seeds[n]) for n, (key, _) in enumerate(relays)}
        self.roster = roster_of(self.people, said)
        found = roster_digest(study, self.roster)
        parts = range(len(relays)) if here is None else here
        self.reveals = {n: reveal(relays[n][0], study, found, seeds[n]) for n in parts}
        self.lots = Drawn(self.cast.secrets.seed, self.reveals)
        self.drawn = Assignment(self.proposal, self.roster, self.lots)

    def key(self, place: int) -> str:
        """The public half of a relay's."""
        return self.cast.relays[place][0].public_key

    def asked(self, batch: str, stage: int = 0) -> list[str]:
        """Who has a packet in this batch."""
        return [key for key in self.people if batch in self.drawn.slots(key, stage)]

    def way(self, batch: str, wave: Wave) -> tuple[int, ...]:
        return self.drawn.ways(wave.stage, self.drawn.left_out(wave))[batch]

    def packet(
        self,
        wave: Wave,
        batch: str,
        payload: bytes = b"",
        way: Sequence[int | Hop] = (),
        drawing: str = "",
    ) -> bytes:
        """As a person makes it; by another way, or for another drawing, if these are given."""
        stops = [
            self.proposal.stops[stop] if isinstance(stop, int) else stop
            for stop in way or self.way(batch, wave)
        ]
        context = context_of(drawing or self.drawn.drawing, wave, batch)
        return wrap(self.drawn.shape, context, stops, self.proposal.collector.onion, payload)

    def relay(
        self,
        place: int,
        store: RelayStore | None = None,
        kind: type[Relay] = Relay,
        key: OnionKey | None = None,
        randomness: Randomness | None = None,
    ) -> Relay:
        return kind(
            self.drawn,
            key or self.cast.relays[place][1],
            place,
            store or RelayStore(MEMORY, self.proposal.digest),
            randomness or SeededRandomness(f"relay {place}"),
        )

    def statement(
        self,
        place: int,
        hop: int,
        batches: dict[str, tuple[int, int]],
        stage: int = 0,
        wave: int = 0,
    ) -> BatchStatement:
        """Signed by the relay at this place."""
        key, _ = self.cast.relays[place]
        unsigned = BatchStatement(key.public_key, self.drawn.drawing, stage, wave, hop, batches)
        return unsigned.signed(key)
