"""One peer in one group: accepts, reveals, runs its side of the aggregation, or lets go.

Every step is taken once: a seat is given to one initiator, a seed revealed for one list of seats,
and an aggregation begun with one set of seeds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from tacit.channels.consortium.curator import Curator
from tacit.channels.consortium.journals import CuratorJournal, PartyJournal
from tacit.channels.consortium.local_model import Local
from tacit.channels.consortium.party import Party
from tacit.channels.peers.descriptors import Descriptor
from tacit.channels.peers.letters import Seat
from tacit.channels.peers.pact import Pact
from tacit.channels.peers.publication import Publication
from tacit.channels.peers.seats import checked_seats, curator_of, group_study, seated, seats_digest
from tacit.channels.roles.budget import Budget
from tacit.channels.roles.events import Tell
from tacit.channels.roles.letters import Letter
from tacit.channels.roles.store import MEMORY
from tacit.channels.studies.study import Study
from tacit.crypto.prg import SYSTEM, Randomness
from tacit.crypto.sharing import fresh_seed
from tacit.crypto.signing import SigningKey
from tacit.errors import CheckFailed, Refused, TacitError

__all__ = ["Membership"]

STEPS = 6  # of patience, from the beginning of an aggregation to its end
PAUSE = 50  # parts of the patience between two questions whether there is news


class Membership:
    """From accepting an invitation to the model, or to letting go."""

    def __init__(
        self,
        pact: Pact,
        group: str,
        tag: str,
        initiator: str,
        key: SigningKey,
        own: Descriptor,
        local: Local,
        budget: Budget,
        now: float,
        tell: Tell,
        randomness: Randomness = SYSTEM,
    ) -> None:
        self.pact, self.group, self.tag, self.initiator = pact, group, tag, initiator
        self._key, self._local, self._budget, self._tell = key, local, budget, tell
        budget.reserve(1)  # what cannot be paid is not promised
        self.party_key, self._draw = (
            SigningKey.generate(randomness),
            partial(fresh_seed, randomness),
        )
        self._seed = fresh_seed(randomness)
        self.seat = seated(pact, group, tag, key, own, self.party_key.public_key, self._seed)
        self.deadline = now + 3 * pact.patience
        self._next = now
        self._seats: list[Seat] = []
        self._seeds: list[bytes] = []
        self.study: Study | None = None
        self.curator: Curator | None = None
        self._party: Party | None = None
        self.over = False

    # ── forming ──

    def form(self, seats: Sequence[Seat], now: float) -> bytes:
        """Our part of the drawing, for this list of seats and no other."""
        checked_seats(self.pact, self.group, self.tag, seats)
        if self.seat not in seats:
            raise CheckFailed("a group was formed in which our seat is not ours.")
        if self._seats and seats_digest(self.pact, self.group, seats) != seats_digest(
            self.pact, self.group, self._seats
        ):
            raise Refused("this group was formed with other members before.")
        self._seats = list(seats)
        self.deadline = max(self.deadline, now + 2 * self.pact.patience)
        return self._seed

    def begin(self, seeds: Sequence[bytes], now: float) -> None:
        """Everybody has revealed: see who the curator is, and start."""
        if self._party is not None:
            if list(seeds) != self._seeds:
                raise Refused("this group has begun with other seeds.")
            return
        if not self._seats:
            raise Refused("this group has not been formed yet.")
        curator = curator_of(self.pact, self.group, self._seats, seeds)
        self._seeds = list(seeds)
        study = self.study = group_study(self.pact, self.group, self._seats, curator)
        if self._seats[curator].descriptor.key == self._key.public_key:
            journal = CuratorJournal(MEMORY, study.digest)
            self.curator = Curator(study, self._key, journal, now, self._tell, self._draw)
        self._party = Party(
            study,
            self.party_key,
            PartyJournal(MEMORY, study.digest),
            self._local,
            self._budget,
            self._tell,
            self._draw,
        )
        self.deadline = now + STEPS * self.pact.patience
        self._tell("group begun", group=self.group[:16], holders=len(self._seats))

    # ── aggregating ──

    @property
    def result(self) -> Publication | None:
        """What the group has released, once it has."""
        if self._party is None or self._party.result is None:
            return None
        model, certificate = self._party.result
        return Publication(
            self.group, self.tag, self._seats, self._seeds, model, certificate.to_json()
        )

    @property
    def moment(self) -> float:
        """When there is something to do at the latest."""
        running = self._party is not None and not self.over
        return min(self.deadline, self._next) if running else self.deadline

    def turns(self, now: float) -> list[Letter]:
        """What to send to the curator now."""
        if self._party is None or self.over or now < self._next:
            return []
        self._next = math.inf  # until this one is answered
        return [letter for _, letter in self._party.tick()]

    def told(self, asked: Letter, reply: Letter | TacitError, now: float) -> None:
        """What the curator said. Whatever it refuses ends the group for us."""
        if self._party is None or self.over or self.study is None:
            return
        heard = isinstance(reply, Letter) and reply.kind != "wait"
        self._next = now if heard else now + self.pact.patience / PAUSE
        try:
            self._party.told(self.study.aggregator.key, asked, reply)
        except TacitError as error:
            self.let_go(str(error))

    def let_go(self, reason: str) -> None:
        """End without a model: what was begun is paid, the rest is given back."""
        if not self.over:
            self.over = True
            if self._party is None or self._party.result is None:
                self._budget.settle(None)
                self._tell("group let go", group=self.group[:16], reason=reason)
