"""One peer in one group: accepts, reveals, runs its side of the aggregation, or lets go.

Every step is taken once: a seat is given to one initiator, a seed revealed for one list of seats,
and an aggregation begun with one set of seeds. The ledger is not touched before the whole list of
seats is here and checked: whoever sends invitations cannot have anything written into it. What was
secret about the group (seed, party key, journals) is dropped when it is over.
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
from tacit.channels.peers.letters import Reveal, Seat
from tacit.channels.peers.pact import Pact
from tacit.channels.peers.publication import Publication, checked
from tacit.channels.peers.seats import (
    check_reveals,
    checked_seats,
    curator_of,
    group_study,
    reveal_signature,
    seated,
    seats_digest,
)
from tacit.channels.roles.budget import Budget
from tacit.channels.roles.events import Tell
from tacit.channels.roles.letters import Finished, Letter, read, write
from tacit.channels.roles.store import MEMORY
from tacit.channels.studies.study import Study
from tacit.crypto.prg import SYSTEM, Randomness
from tacit.crypto.sharing import fresh_seed
from tacit.crypto.signing import SigningKey
from tacit.errors import CheckFailed, Refused, TacitError

__all__ = ["Membership"]

FORMING = 2  # of patience, from a seat to the list of all seats: others may have to be asked again
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
        self._draw = partial(fresh_seed, randomness)
        party_key = SigningKey.generate(randomness)
        self.party_key: SigningKey | None = party_key  # None once the group is over
        self._seed = fresh_seed(randomness)
        self.seat = seated(pact, group, tag, key, own, party_key.public_key, self._seed)
        self.since, self.deadline = now, now + FORMING * pact.patience
        self._next = now
        self._seats: list[Seat] = []
        self._seeds: list[bytes] = []
        self._listed = ""  # the digest of the list that we have revealed for
        self.study: Study | None = None
        self.curator: Curator | None = None
        self._party: Party | None = None
        self._journals: list[PartyJournal | CuratorJournal] = []
        self.result: Publication | None = None  # what the group has released, checked
        self.over = False

    # ── forming ──

    @property
    def has_revealed(self) -> bool:
        """Whether the initiator has our part of the drawing."""
        return bool(self._listed)

    def form(self, seats: Sequence[Seat], now: float) -> Reveal:
        """Our part of the drawing, for this list of seats and no other. Once all seats are known,
        and not before, the promise is reserved."""
        checked_seats(self.pact, self.group, self.tag, seats)
        if self.seat not in seats:
            raise CheckFailed("a group was formed in which our seat is not ours.")
        listed = seats_digest(self.pact, self.group, seats)
        if self._listed not in ("", listed):
            raise Refused("this group was formed with other members before.")
        if self.over or self.party_key is None:
            raise Refused("this group is over for us.")
        self._reserve()
        self._seats, self._listed = list(seats), listed
        self.deadline = max(self.deadline, now + 2 * self.pact.patience)
        return Reveal(self.group, self._seed, reveal_signature(self.party_key, listed, self._seed))

    def _reserve(self) -> None:
        try:
            self._budget.reserve(1)
        except Refused as error:  # spent meanwhile; how much is left is no business of others
            self.let_go(str(error))
            raise Refused("we cannot take part any more.") from None

    def begin(self, seeds: Sequence[bytes], signatures: Sequence[str], now: float) -> None:
        """Everybody has revealed, for the same list: see who the curator is, and start."""
        if self.study is not None:
            if list(seeds) != self._seeds:
                raise Refused("this group has begun with other seeds.")
            return
        if not self._seats:
            raise Refused("this group has not been formed yet.")
        if self.over or self.party_key is None:
            raise Refused("this group is over for us.")
        curator = curator_of(self.pact, self.group, self._seats, seeds)
        check_reveals(self._seats, self._listed, seeds, signatures)
        self._seeds = list(seeds)
        self.study = group_study(self.pact, self.group, self._seats, curator)
        if self._seats[curator].descriptor.key == self._key.public_key:
            self.curator = self._curator(self.study, now)
        self._party = self._side(self.study, self.party_key)
        self.deadline = now + STEPS * self.pact.patience
        self._tell("group begun", group=self.group[:16], holders=len(self._seats))

    def _curator(self, study: Study, now: float) -> Curator:
        journal = CuratorJournal(MEMORY, study.digest)
        self._journals.append(journal)
        return Curator(study, self._key, journal, now, self._tell, self._draw)

    def _side(self, study: Study, key: SigningKey) -> Party:
        journal = PartyJournal(MEMORY, study.digest)
        self._journals.append(journal)
        return Party(study, key, journal, self._local, self._budget, self._tell, self._draw)

    # ── aggregating ──

    @property
    def moment(self) -> float:
        """When there is something to do at the latest."""
        found = [self.deadline]
        if self._party is not None and not self.over:
            found.append(self._next)
        curator = self.curator
        if curator is not None and not curator.is_over and curator.failure is None:
            found.append(self.deadline if curator.deadline is None else curator.deadline)
        return min(found)

    def turns(self, now: float) -> list[Letter]:
        """What to send to the curator now."""
        if self._party is None or self.over or self.result is not None or now < self._next:
            return []
        self._next = math.inf  # until this one is answered
        return [letter for _, letter in self._party.tick()]

    def told(self, asked: Letter, reply: Letter | TacitError, now: float) -> None:
        """What the curator said. Whatever it refuses ends the group for us, and so does a result
        that others would refuse: it is checked as theirs are, before anything else."""
        if self._party is None or self.over or self.result is not None or self.study is None:
            return
        if now >= self.deadline or self._curator_has_failed(now):
            return  # too late: nothing is paid that could not be sent any more
        heard = isinstance(reply, Letter) and reply.kind != "wait"
        self._next = now if heard else now + self.pact.patience / PAUSE
        try:
            result = self._checked(reply)
            self._party.told(self.study.aggregator.key, asked, reply)
        except TacitError as error:
            self.let_go(str(error))
            return
        if self._party.result is not None:
            self.result = result

    def _curator_has_failed(self, now: float) -> bool:
        """Whether we are the curator ourselves, and have stopped."""
        if self.curator is None:
            return False
        self.curator.tick(now)
        return self.curator.failure is not None

    def _checked(self, reply: Letter | TacitError) -> Publication | None:
        """What we would publish, if the curator says that it has the model."""
        if not isinstance(reply, Letter) or reply.kind != "model":
            return None
        said = read(Finished, reply.body)
        found = (self.group, self.tag, self._seats, self._seeds, said.model, said.certificate)
        return checked(self.pact, write(Publication(*found)))

    def let_go(self, reason: str) -> None:
        """End without a model: what was begun is paid, the rest is given back."""
        if not self.over and self.result is None:
            self._budget.settle(None)
            self._tell("group let go", group=self.group[:16], reason=reason)
        self.end()

    def end(self) -> None:
        """Nothing of the group is needed any more: drop what was secret about it."""
        self.over = True
        self._seed, self.party_key, self._party = b"", None, None
        for journal in self._journals:
            journal.close()
        self._journals, self.curator = [], None
