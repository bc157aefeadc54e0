"""A crowd's study on virtual time, from a seed: the same state machines as in the services, over a
network that loses, doubles, delays and repeats, with people, relays and a collector that crash and
come back over what they have on their disks.

The world sees what passes, and objects at once if a packet has another length than all others, if
a person changes an answer, or if the collector signs twice.
"""

from __future__ import annotations

import hashlib
import heapq
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count

from crowd_cast import Cast, identity

from tacit.channels.crowd.assignment import Assignment, context_of
from tacit.channels.crowd.collector import Collector
from tacit.channels.crowd.collector_store import CollectorStore
from tacit.channels.crowd.errands import Came, Errand, Script
from tacit.channels.crowd.letters import Packets, TokenAsked, Wave
from tacit.channels.crowd.person import Person
from tacit.channels.crowd.person_journal import Given, PersonJournal
from tacit.channels.crowd.relay_role import AT_ONCE, RelayRole
from tacit.channels.crowd.relay_store import RelayStore
from tacit.channels.roles.budget import Budget, NoBudget
from tacit.channels.roles.letters import Letter, read, write
from tacit.channels.roles.store import MEMORY
from tacit.crypto.onion import peel, wrap
from tacit.crypto.prg import SeededRandomness
from tacit.data.batch import Batch
from tacit.errors import TacitError, Unreachable

Mixed = dict[tuple[int, int, str], dict[int, int]]

LATER = 60.0  # seconds after which the network may repeat a letter


@dataclass
class Chances:
    """How often something fails, for each errand; after the storm nothing does."""

    lose: float = 0.0
    double: float = 0.0
    delay: float = 0.2  # seconds at most
    people: float = 0.0  # crash
    relays: float = 0.0  # vanish, and come back
    collector: float = 0.0  # crashes, and comes back
    storm: float = float("inf")


class Watched(PersonJournal):
    """A journal on a disk that survives its owner's crashes, and objects to a second answer."""

    def __init__(self, study: str) -> None:
        super().__init__(MEMORY, study)
        self.first: dict[str, bytes] = {}

    def put(self, given: Given) -> None:
        assert self.first.setdefault(given.question, given.report) == given.report
        super().put(given)


class _Passing(RelayStore):
    """A relay's store on a disk that survives its crashes, and shows what was passed on."""

    def __init__(self, study: str, place: int, mixed: Mixed) -> None:
        super().__init__(MEMORY, study)
        self._place, self._mixed = place, mixed

    def put(self, stage: int, wave: int, batches: Mapping[str, tuple[int, int]]) -> None:
        for name, (_, passed) in batches.items():
            assert self._place not in self._mixed[stage, wave, name], "released twice"
            self._mixed[stage, wave, name][self._place] = passed
        super().put(stage, wave, batches)


@dataclass
class Actor:
    """Somebody with a script, over and over again in every life."""

    name: str
    key: str  # the public half
    born: Callable[[], Script[None]]
    script: Script[None] | None = None
    life: int = 0
    alive: bool = False
    done: bool = False
    failure: TacitError | None = None


@dataclass
class Seen:
    """What an observer of the whole network counts."""

    lengths: set[int] = field(default_factory=set)  # of packets, on every hop
    packets: dict[tuple[str, int, int], set[bytes]] = field(
        default_factory=lambda: defaultdict(set)
    )  # digests of those that a person has handed in, or tried to, in one wave
    signed: dict[tuple[str, str], set[bytes]] = field(default_factory=lambda: defaultdict(set))
    crashes: Counter[str] = field(default_factory=Counter)
    full: int = 0  # letters with as many packets as one may have


class World:
    """Virtual time, and everybody in it."""

    person_kind: type[Person] = Person
    relay_kind: type[RelayRole] = RelayRole

    def __init__(
        self,
        cast: Cast,
        batches: list[Batch],
        seed: int = 0,
        chances: Chances | None = None,
        budgets: Callable[[int], Budget] = lambda number: NoBudget(),
        late: int = 0,
    ) -> None:
        """`late`: so many of the people come when registration is over."""
        self.cast, self.now, self.chance, self.seed = cast, 0.0, random.Random(seed), seed
        self.chances, self.seen = chances or Chances(), Seen()
        self.on_wave: Callable[[Wave], None] = lambda wave: None
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._number = count()
        self._waiting: list[tuple[Actor, int, Errand]] = []
        self._wave: Wave | None = None
        self._randomness = SeededRandomness(f"crowd {seed}")
        self.store = CollectorStore(MEMORY, cast.proposal.digest)
        self.collector = Collector(cast.proposal, cast.secrets, self.store, self.now)
        self.collector_is_up = True
        self.relays: dict[int, RelayRole] = {}
        # By stage, wave and question: what each relay really passed on together.
        self.mixed: dict[tuple[int, int, str], dict[int, int]] = defaultdict(dict)
        self.carriers = [self._carrier(place) for place in range(len(cast.relays))]
        self.persons: list[Person | None] = [None] * len(batches)
        self.journals = [Watched(cast.proposal.digest) for _ in batches]
        self.people = [self._human(i, batch, budgets) for i, batch in enumerate(batches)]
        self._mark = self.collector.mark
        shut_out = {actor.name for actor in self.people[len(batches) - late :]}
        for actor in (*self.carriers, *self.people):
            tardy = 100.0 * (actor.name in shut_out)
            self.at(self.chance.random() + tardy, lambda actor=actor: self.begin(actor))
        self._alarm()

    @property
    def is_calm(self) -> bool:
        """Whether nothing went wrong that may cost somebody her answer: who is away while tokens
        are issued, or in the main wave, has none that is sent."""
        struck = self.seen.crashes["person"] + self.seen.crashes["collector"]
        return not struck and not self.seen.crashes["relay"] and not self.chances.lose

    def _carrier(self, place: int) -> Actor:
        proposal, (key, onion) = self.cast.proposal, self.cast.relays[place]
        store = _Passing(proposal.digest, place, self.mixed)

        def born() -> Script[None]:
            role = self.relays[place] = self.relay_kind(
                proposal, key, onion, store, self._randomness
            )
            return role.serve()

        return Actor(f"relay {place}", key.public_key, born)

    def _human(self, number: int, batch: Batch, budgets: Callable[[int], Budget]) -> Actor:
        key = identity(self.seed, "person", number)
        journal, budget = self.journals[number], budgets(number)

        def born() -> Script[None]:
            person = self.person_kind(
                self.cast.proposal, key, journal, batch, budget, self._randomness
            )
            self.persons[number] = person
            return person.take_part()

        return Actor(f"person {number}", key.public_key, born)

    # ── time ──

    def at(self, moment: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (moment, next(self._number), do))

    def run(self, until: Callable[[], bool] | None = None, most: float = 1e5) -> None:
        """Until nothing is left to do, or something holds."""
        while self._queue and self.now < most and not (until is not None and until()):
            self.now, _, do = heapq.heappop(self._queue)
            do()
            if self.collector_is_up:
                self.collector.tick(self.now)
                self._news()

    def _news(self) -> None:
        if self.collector.mark == self._mark:
            return
        self._mark = self.collector.mark
        waiting, self._waiting = self._waiting, []
        for actor, life, errand in waiting:
            self._carry(actor, life, errand)
        self._alarm()
        wave = self.collector.bulletin(self.now).wave
        if wave is not None and wave != self._wave:
            self._wave = wave
            self.on_wave(wave)

    def _alarm(self) -> None:
        deadline = self.collector.deadline
        if deadline is not None:
            self.at(deadline, lambda: None)

    # ── lives ──

    def begin(self, actor: Actor) -> None:
        actor.alive, actor.script = True, actor.born()
        script = actor.script
        self._step(actor, actor.life, lambda: next(script))

    def crash(self, actor: Actor, back: float | None) -> None:
        """Everything in memory is gone; after so many seconds, if any, a new life begins."""
        self.seen.crashes[actor.name.split()[0]] += 1
        actor.alive, actor.life = False, actor.life + 1
        if actor.script is not None:
            actor.script.close()
        if back is not None:
            self.at(self.now + back, lambda: self.begin(actor))

    def vanish(self, place: int, back: float | None = None) -> None:
        """The relay is gone, with all that it held."""
        if self.carriers[place].alive:
            self.crash(self.carriers[place], back)

    def break_down(self, back: float) -> None:
        """The collector is gone, and started again over its store."""
        self.seen.crashes["collector"] += 1
        self.collector_is_up = False
        waiting, self._waiting = self._waiting, []
        for actor, life, errand in waiting:
            self._lost(actor, life, errand)
        self.at(self.now + back, self._repaired)

    def _repaired(self) -> None:
        self.collector_is_up = True
        self.collector = Collector(self.cast.proposal, self.cast.secrets, self.store, self.now)
        self._alarm()

    # ── errands ──

    def _step(self, actor: Actor, life: int, move: Callable[[], Errand]) -> None:
        if actor.life != life:
            return
        try:
            errand = move()
        except StopIteration:
            actor.done = True
        except TacitError as error:
            actor.failure = error
        else:
            self.at(max(self.now, errand.at), lambda: self._carry(actor, life, errand))

    def _back(self, actor: Actor, life: int, reply: Letter | TacitError | None) -> None:
        script = actor.script
        assert script is not None  # since it sent something
        self._step(actor, life, lambda: script.send(Came(reply, self.now)))

    def _carry(self, actor: Actor, life: int, errand: Errand) -> None:
        """Deliver once, twice or never; exactly one answer or failure comes back."""
        letter = errand.letter
        if actor.life != life or self._struck(actor):
            return
        if letter is None:
            self._back(actor, life, None)
            return
        self._see(actor.key, letter)
        nobody = errand.to is None and not self.collector_is_up
        if nobody or self.happens(self.chances.lose):
            self._lost(actor, life, errand)
            return
        key, to = actor.key, errand.to
        reply = self.answer(key, to, letter)
        if self.happens(self.chances.double):
            assert type(self.answer(key, to, letter)) is type(reply)
            later = self.now + self.chance.random() * LATER
            self.at(later, lambda: void(self.answer(key, to, letter)))
        if self._struck(actor):
            return
        if isinstance(reply, Letter) and reply.kind == "wait":
            self._waiting.append((actor, life, errand))
        elif self.happens(self.chances.lose):
            self._lost(actor, life, errand)
        else:
            delay = self.chance.random() * self.chances.delay
            self.at(self.now + delay, lambda: self._back(actor, life, reply))
        if errand.to is None and self.collector_is_up and self.happens(self.chances.collector):
            self.break_down(self.chance.random() * 30.0)

    def _struck(self, actor: Actor) -> bool:
        """Whether the actor crashes here and now."""
        is_relay = actor.name.startswith("relay")
        if not self.happens(self.chances.relays if is_relay else self.chances.people):
            return False
        self.crash(actor, back=self.chance.random() * (60.0 if is_relay else 10.0))
        return True

    def _lost(self, actor: Actor, life: int, errand: Errand) -> None:
        """Nobody answers. To the collector the carrier goes again by itself."""
        if errand.to is None:
            self.at(self.now + 1.0, lambda: self._carry(actor, life, errand))
        else:
            nobody = Unreachable("no answer.")
            self.at(self.now + 1.0, lambda: self._back(actor, life, nobody))

    def answer(self, sender: str, to: int | None, letter: Letter) -> Letter | TacitError:
        """Of the relay at this place, or of the collector."""
        if letter.kind == "packets":
            packets = read(Packets, letter.body).packets
            self.seen.full += len(packets) == AT_ONCE
            self.seen.lengths.update(map(len, packets))
            assert len(self.seen.lengths) == 1, "packets can be told apart by their lengths"
        try:
            reply = self._answered(sender, to, letter)
        except TacitError as error:
            return error
        if letter.kind == "token":
            asked = read(TokenAsked, letter.body)
            self.seen.signed[sender, asked.question].add(asked.blinded)
            assert len(self.seen.signed[sender, asked.question]) == 1
        return reply

    def _answered(self, sender: str, to: int | None, letter: Letter) -> Letter:
        if to is None:
            if not self.collector_is_up:
                raise Unreachable("the collector is not there.")
            return self.collector.answer(sender, letter, self.now)
        if not self.carriers[to].alive:
            raise Unreachable("nobody is there.")
        return self.relays[to].answer(sender, letter)

    def _see(self, sender: str, letter: Letter) -> None:
        """A person sends no more packets than everybody, even after a crash."""
        if letter.kind == "packets" and (sent := read(Packets, letter.body)).hop == 0:
            here = self.seen.packets[sender, sent.stage, sent.wave]
            here.update(hashlib.sha256(packet).digest() for packet in sent.packets)
            assert len(here) <= self.cast.proposal.drawn_up.packets(sent.stage)

    def happens(self, chance: float) -> bool:
        return chance > 0 and self.now < self.chances.storm and self.chance.random() < chance

    # ── hostile relays ──

    @property
    def drawn(self) -> Assignment:
        """What everybody goes by; once the lots are drawn."""
        asking = self.collector._asking
        assert asking is not None
        return asking.drawn

    def wrapped(self, wave: Wave, batch: str, payload: bytes, hop: int) -> tuple[bytes, list[int]]:
        """A packet as it comes to a hop of its batch's circuit; and the circuit."""
        proposal, drawn = self.cast.proposal, self.drawn
        context = context_of(drawn.drawing, wave, batch)
        places = list(drawn.open_batches(wave)[batch])
        route = [proposal.stops[place] for place in places]
        packet = wrap(drawn.shape, context, route, proposal.collector.onion, payload)
        for place in places[:hop]:
            packet = peel(drawn.shape, context, self.cast.relays[place][1], packet).packet
        return packet, places

    def inject(self, wave: Wave, batch: str, payload: bytes) -> Letter | TacitError:
        """What the owner of a first relay can do: pass on a packet of her own."""
        packet, places = self.wrapped(wave, batch, payload, hop=1)
        body = write(Packets(wave.stage, wave.number, 1, batch, [packet]))
        return self.answer(self.carriers[places[0]].key, places[1], Letter("packets", 0, body))

    def deliver(self, wave: Wave, batch: str, payload: bytes) -> Letter | TacitError:
        """The same, straight to the collector, which the last relay may do."""
        hops = self.cast.proposal.route.hops
        packet, places = self.wrapped(wave, batch, payload, hops)
        body = write(Packets(wave.stage, wave.number, hops, batch, [packet]))
        return self.answer(self.carriers[places[-1]].key, None, Letter("packets", 0, body))


def void(_: object) -> None:
    """An answer that nobody waits for."""
