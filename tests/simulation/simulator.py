"""The real state machines of a federation in one process, under every accident a seed can think of.

Time is virtual; the network loses, delays, doubles and reorders; roles crash at any write, before
or after it is durable, and start again from their stores. After a while the accidents stop, so a
study must end. A seed repeats its run exactly.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit.channels.federation.aggregator import Aggregator
from tacit.channels.federation.contribution import from_records
from tacit.channels.federation.holder import Holder
from tacit.channels.federation.journal import Journal
from tacit.channels.federation.letters import context_of
from tacit.channels.federation.local import local_study
from tacit.channels.federation.outbox import Outbox
from tacit.channels.federation.seals import Question
from tacit.channels.federation.server import Server
from tacit.channels.federation.server_store import Round, ServerStore
from tacit.channels.roles.letters import Letter
from tacit.channels.roles.store import MEMORY, PENDING, Store
from tacit.channels.studies.study import Deadlines, Study, TakePart
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.ring import RingSum
from tacit.crypto.signing import SigningKey
from tacit.data.records import ArrayRecords
from tacit.errors import TacitError, Unreachable
from tacit.privacy.promise import Promise

KEYS = [SigningKey.generate() for _ in range(6)]  # of servers and the aggregator


class Crash(BaseException):
    """The process is gone. Not an Exception: nothing may catch it but the simulator."""


@dataclass
class Chances:
    """How often things go wrong; all zero once the storm is over."""

    lose: float = 0.0
    double: float = 0.0
    crash: float = 0.0
    silence: float = 0.0
    leave: float = 0.0
    delay: float = 1.0
    keep: float = 0.0  # a copy of a store at a write
    put_back: float = 0.0  # a copy instead of the store, after a crash
    fresh: bool = False  # noise that is drawn anew in each life, also after a copy was put back


@dataclass
class World:
    """Virtual time, the network, and one source of chance."""

    seed: int
    chances: Chances
    storm: float  # when the accidents stop
    now: float = 0.0
    _events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _count: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    def later(self, seconds: float, event: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (self.now + seconds, self._count, event))

    def happens(self, probability: float) -> bool:
        return self.now < self.storm and self.chance.random() < probability

    def run(self, over: Callable[[], bool], limit: int = 2_000_000) -> None:
        for _ in range(limit):
            if over() or not self._events:
                return
            self.now, _, event = heapq.heappop(self._events)
            event()
        raise AssertionError("the simulation does not come to an end")

    def travel(self) -> float:
        return self.chance.expovariate(1.0) * 0.05 * self.chances.delay


def crashing(kind: type[Store], world: World) -> Callable[[str], Any]:
    """The same store, in which any write may be the last of its process."""

    class Crashing(kind):  # type: ignore[misc, valid-type]
        made = False

        def __init__(self, study: str) -> None:
            super().__init__(MEMORY, study)
            self.made = True
            self.copies = [self.database.serialize()]
            self.put_back = 0

        @contextmanager
        def transaction(self) -> Iterator[None]:
            with super().transaction():
                yield
                if self.made and world.happens(world.chances.crash):
                    raise Crash  # before it is durable: rolled back
            if self.made and world.happens(world.chances.keep):
                self.copies.append(self.database.serialize())
            if self.made and world.happens(world.chances.crash):
                raise Crash  # after it is durable, before anybody hears of it

        def start(self) -> None:
            """What a start finds: the store as it was left or, by chance, an older copy of it."""
            if self.copies and world.happens(world.chances.put_back):
                self.made = False
                self.database.deserialize(world.chance.choice(self.copies))
                self._come_back(f"{PENDING}now", None)  # its machine has seen nothing of it
                self.restored, self.made = "now", True
                self.put_back += 1

    return Crashing


class Node:
    """A process: a core that is lost in a crash and made again from what is durable."""

    def __init__(self, world: World, make: Callable[[], Any]) -> None:
        self.world, self._make = world, make
        self.core: Any = None
        self.life = 0  # replies to an earlier life reach nobody
        self.crashes = 0
        self.start()

    def start(self) -> None:
        try:
            self.core = self._make()
            self.life += 1
            self.begun()
        except Crash:
            self.crash()

    def begun(self) -> None: ...

    def crash(self) -> None:
        self.core = None
        self.crashes += 1
        self.world.later(self.world.chance.uniform(0.1, 20.0), self.start)

    def alive(self, action: Callable[[Any], Any]) -> Any:
        """Run an action of the core; None if the process is or goes down."""
        if self.core is None:
            return None
        try:
            return action(self.core)
        except Crash:
            self.crash()
            return None


class Network:
    def __init__(self, world: World) -> None:
        self.world = world
        self.nodes: dict[str, Node] = {}
        self.partials: dict[tuple[str, int], set[bytes]] = {}

    def send(
        self, sender: str, to: str, letter: Letter, back: Callable[[Letter | TacitError], None]
    ) -> None:
        """Deliver once, twice or never; exactly one answer or failure comes back."""
        world, patience = self.world, self.world.chance.uniform(2.0, 5.0)
        waiting = [True]

        def answered(reply: Letter | TacitError) -> None:
            if waiting:
                waiting.clear()
                back(reply)

        def deliver() -> None:
            reply = self._answer(sender, to, letter)
            if reply is not None and not world.happens(world.chances.lose):
                world.later(world.travel(), lambda: answered(reply))

        if not world.happens(world.chances.lose):
            world.later(world.travel(), deliver)
        if world.happens(world.chances.double):
            world.later(world.travel() * 40, deliver)
        world.later(patience, lambda: answered(Unreachable("no answer in time")))

    def _answer(self, sender: str, to: str, letter: Letter) -> Letter | TacitError | None:
        node = self.nodes[to]
        reply = node.alive(lambda core: _asked(core, sender, letter, self.world.now))
        if isinstance(reply, Letter) and reply.kind == "partial":
            self.partials.setdefault((to, letter.round), set()).add(reply.body)
        if isinstance(reply, Letter):  # as on the wire, under the round of the request
            return Letter(reply.kind, letter.round, reply.body)
        return reply


def _asked(core: Any, sender: str, letter: Letter, now: float) -> Letter | TacitError:
    if isinstance(core, Server):
        (reply,) = core.answer_all([(sender, letter)])
        return reply
    try:
        return core.answer(sender, letter, now)
    except TacitError as error:
        return error


class WatchedServer(Server):
    """The real server; the simulator also learns which noise it drew."""

    drawn: dict[tuple[str, int], list[tuple[bytes, np.ndarray]]]

    def _noisy_sum(self, known: Round, question: Question) -> bytes:
        answer = super()._noisy_sum(known, question)
        number, holders = known.number, set(question.keys)
        exact = RingSum(known.query.length)
        for bodies in self._store.bodies(number, "full", holders):
            exact.add(bodies)
        for seeds in self._store.bodies(number, "seed", holders):
            exact.add_seeds(seeds, context_of(self.study.digest, number))
        noise = np.frombuffer(answer, dtype="<i8") - exact.total.view(np.int64)
        self.drawn.setdefault((self._key.public_key, number), []).append((answer, noise))
        return answer


class AggregatorNode(Node):
    network: Network

    def begun(self) -> None:
        self._step(self.life)

    def _step(self, life: int) -> None:
        if self.core is None or life != self.life or self.core.is_over:
            return
        self.move()
        self.world.later(1.0, lambda: self._step(life))

    def move(self) -> None:
        now, life = self.world.now, self.life
        for server, letter in self.alive(lambda core: core.tick(now)) or []:
            self._ask(server, letter, life)

    def _ask(self, server: str, letter: Letter, life: int) -> None:
        def back(reply: Letter | TacitError) -> None:
            if life == self.life and self.core is not None:
                now = self.world.now
                self.alive(lambda core: core.told(server, letter, reply, now))
                if not isinstance(reply, TacitError):
                    self.move()

        own = self.core.study.aggregator.key
        self.network.send(own, server, letter, back)


class HolderNode(Node):
    network: Network
    key: str
    outbox: Any
    silent_until: float = 0.0
    left = False
    ended: TacitError | None = None  # what it was told that the study has stopped with

    def begun(self) -> None:
        self.move(self.life)

    def move(self, life: int) -> None:
        if self.core is None or life != self.life or self.core.is_over or self.left:
            return
        world = self.world
        if world.happens(world.chances.silence):
            self.silent_until = world.now + world.chance.uniform(1.0, 60.0)
        if world.now < self.silent_until:
            world.later(self.silent_until - world.now, lambda: self.move(life))
            return
        if world.happens(world.chances.leave):
            self.left = True
            to = self.core.study.aggregator.key
            self.network.send(self.key, to, Letter("leave", 0), lambda reply: None)
            return
        for to, letter in self.alive(lambda core: core.tick()) or []:
            self._send(to, letter, life)

    def _send(self, to: str, letter: Letter, life: int) -> None:
        def back(reply: Letter | TacitError) -> None:
            if life != self.life or self.core is None:
                return
            try:
                self.alive(lambda core: core.told(to, letter, reply))
            except TacitError as error:
                if not (isinstance(reply, Letter) and reply.kind == "stopped"):
                    raise  # nothing but the end of the study may end an honest holder
                self.ended = error
                return
            idle = isinstance(reply, TacitError) or reply.kind == "wait"
            self.world.later(0.5 if idle else 0.0, lambda: self.move(life))

        self.network.send(self.key, to, letter, back)


@dataclass
class Purse:
    """A holder's ledger, as far as the simulator looks: it survives crashes."""

    reserved: bool = False
    spent: bool = False
    charged: list[str] = field(default_factory=list)

    def of_a_new_life(self) -> Purse:
        return self

    def belongs_to(self, identity: str) -> None: ...

    def reserve(self, number: int) -> None:
        self.reserved = True

    def spend(self, number: int) -> None:
        assert self.reserved
        self.spent = True

    def settle(self, certificate: str | None) -> None:
        assert self.reserved
        if self.spent and not self.charged:
            self.charged.append(certificate or "")


@dataclass
class Run:
    study: Study
    world: World
    network: Network
    aggregator: AggregatorNode
    servers: list[Node]
    holders: list[HolderNode]
    stores: list[ServerStore]
    purses: list[Any]
    drawn: dict[tuple[str, int], list[tuple[bytes, np.ndarray]]]
    journal: Journal


def simulate(
    seed: int,
    holders: int,
    servers: int,
    rounds: int,
    chances: Chances,
    promise: Promise,
    honest: int | None = None,
    minimum: int = 1,
    storm: float = 300.0,
    purse: Callable[[Study, int], Any] = lambda study, place: Purse(),
) -> Run:
    from unit_vectors import SCHEMA, UnitVectors

    world = World(seed, chances, storm)
    program = UnitVectors(holders, rounds)
    keys = [*KEYS[:servers], KEYS[-1]]
    study = _with_deadlines(
        local_study(program, holders, SCHEMA, promise, keys, honest), minimum
    ).running(program)
    network = Network(world)
    drawn: dict[tuple[str, int], list[tuple[bytes, np.ndarray]]] = {}
    stores = [crashing(ServerStore, world)(study.digest) for _ in range(servers)]
    nodes = [
        Node(world, _server(study, key, store, drawn, world))
        for key, store in zip(keys, stores, strict=False)
    ]
    journal = crashing(Journal, world)(study.digest)
    AggregatorNode.network = HolderNode.network = network

    def aggregating() -> Aggregator:
        journal.start()
        return Aggregator(study, keys[-1], journal, world.now)

    aggregator = AggregatorNode(world, aggregating)
    network.nodes = {key.public_key: node for key, node in zip(keys, nodes, strict=False)}
    network.nodes[study.aggregator.key] = aggregator
    purses = [purse(study, place) for place in range(holders)]
    members = [_holder(study, world, place, purses[place]) for place in range(holders)]
    run = Run(study, world, network, aggregator, nodes, members, stores, purses, drawn, journal)
    world.run(lambda: _over(run))
    return run


def _over(run: Run) -> bool:
    core = run.aggregator.core
    if core is None or not (core.is_over or core.failure):
        return False
    if core.failure:
        return True
    return all(node.left or (node.core and node.core.is_over) for node in run.holders)


def _with_deadlines(study: Study, minimum: int) -> Study:
    import msgspec

    part = TakePart(minimum=minimum, maximum=len(study.holders), records=1)
    return msgspec.structs.replace(
        study, take_part=part, deadlines=Deadlines(gather=60.0, round=30.0)
    )


def _server(
    study: Study, key: SigningKey, store: Any, drawn: Any, world: World
) -> Callable[[], Server]:
    def make() -> Server:
        WatchedServer.drawn = drawn
        store.start()
        # Another life draws other noise: had it drawn twice for one round, it would show. After a
        # restore that is as it must be, and the noise is derived as in earnest.
        life = world.chance.getrandbits(64)
        derived = world.chances.put_back > 0 and not world.chances.fresh
        seeded = None if derived else lambda n: SeededRandomness(f"{life} {n}")
        return WatchedServer(study, key, store, seeded)

    return make


def _holder(study: Study, world: World, place: int, purse: Any) -> HolderNode:
    key = study.holders[place].key
    outbox = crashing(Outbox, world)(study.digest)
    contribute = from_records(study, ArrayRecords(np.array([[float(place)]])))
    node = HolderNode.__new__(HolderNode)
    node.key = key
    source = SeededRandomness(f"{world.seed} {place}")

    def holding() -> Holder:
        outbox.start()
        return Holder(study, key, outbox, contribute, purse.of_a_new_life(), source)

    Node.__init__(node, world, holding)
    node.outbox = outbox
    return node
