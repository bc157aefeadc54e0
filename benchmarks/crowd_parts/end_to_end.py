"""A whole study on this machine: 1,000 people, 5 relays, a collector, over a network that fails.

Relays and collector are processes as `tacit serve` runs them; all people are in this one, each with
a key and a journal of her own. Every hop over TLS loses a tenth of the packets, and one relay is
killed while it holds packets of the first wave. Nobody's answer may be lost or count twice.

The last row says what everything around it costs, beside the bare cryptography of as many tokens
and packets: HTTP, TLS, signatures of letters, bulletins and receipts, stores, the losses themselves.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crowd_parts.lossy import Loss, LossyCarrier
from crowd_parts.roles import SCHEMA, Roles, processor_seconds, relay_name, roles
from tacit.channels.crowd.collector_store import CollectorStore
from tacit.channels.crowd.person import Person
from tacit.channels.crowd.person_journal import PersonJournal
from tacit.channels.crowd.terms import Windows
from tacit.channels.roles.budget import NoBudget
from tacit.channels.roles.letters import Letter
from tacit.channels.roles.store import MEMORY
from tacit.cli.bench import Row
from tacit.crypto.onion import open_payload, peel, wrap
from tacit.crypto.signing import SigningKey
from tacit.data.batch import Batch
from tacit.wire.client import Client
from tacit.wire.loop import run

PEOPLE, RELAYS, LOSS = 1000, 5, 0.1
KILLED = 0  # the place of a relay at the first hop
TOGETHER = 50  # people who share connections: each has one to a peer at the most
SEND, RELEASE, WAVES = 8.0, 1.5, 40
REPEATS = 100
PATIENCE = 1800.0  # seconds: only a defect or a dead machine takes so long
BAR = 10.0

Say = Callable[[str], None]


def rows(say: Say) -> Iterator[Row]:
    windows = Windows(register=PATIENCE, send=SEND, release=RELEASE, waves=WAVES)
    with (
        tempfile.TemporaryDirectory(prefix="tacit-bench-") as folder,
        roles(Path(folder), PEOPLE, RELAYS, windows) as made,
    ):
        say(f"{PEOPLE:,} people, {RELAYS} relays, {LOSS:.0%} of packets lost on every hop …")
        bare, crowd = _bare(made), Crowd(made)
        start, began = time.perf_counter(), processor_seconds()
        run(crowd.take_part())
        made.finish(PATIENCE)
        seconds, used = time.perf_counter() - start, processor_seconds() - began
        yield from _counted(made, crowd)
    packets = crowd.loss.sent
    say(
        f"{seconds:.0f} s; {packets:,} packets set out, {packets / PEOPLE:.1f} for each person; "
        f"{1e3 * used / packets:.1f} ms of processor time for each packet"
    )
    least = PEOPLE * bare.token + packets * bare.packet
    what = f"a study of {PEOPLE:,} people: processor s"
    yield Row(what, used, least, "its bare cryptography", BAR, at_most=True)


def _counted(made: Roles, crowd: Crowd) -> Iterator[Row]:
    """Each person's answer against what the collector has, which knows nobody's."""
    store = CollectorStore(made.collected, made.proposal.digest)
    found = {stored.mark: stored.report for stored in store.reports()}
    tokens = store.tokens()
    store.close()
    given = [answer for person in crowd.people for answer in person.answers]
    arrived = sum(found.get(answer.mark) == answer.report for answer in given)
    told = sum(answer.arrived for answer in given)
    yield Row("reports verified", arrived, PEOPLE, "people", 1.0)
    yield Row("reports lost", len(given) - arrived, PEOPLE, "people", 0.0, at_most=True)
    yield Row("reports doubled", len(found) - arrived, PEOPLE, "people", 0.0, at_most=True)
    yield Row("people who saw their receipt", told, PEOPLE, "people", 1.0)
    yield Row("tokens signed", tokens, PEOPLE, "people", 1.0, at_most=True)


# ── people ──


class Crowd:
    """All people of a study, in one process; one relay does not survive them."""

    def __init__(self, made: Roles) -> None:
        self._made, self.loss = made, _Deadly(made)
        self._keys = [SigningKey.generate() for _ in range(PEOPLE)]
        source = np.random.default_rng(6)
        self.people = [
            Person(
                made.proposal,
                key,
                PersonJournal(MEMORY, made.proposal.digest),
                _row(source),
                NoBudget(),
            )
            for key in self._keys
        ]

    async def take_part(self) -> None:
        self._made.start_collector()
        for place in range(RELAYS):
            self._made.start_relay(place, LOSS)
        proposal = self._made.proposal
        clients = [Client(key, proposal.digest) for key in self._keys[::TOGETHER]]
        try:
            async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
                watch = group.create_task(self._watch())
                people = []
                for place, (key, person) in enumerate(zip(self._keys, self.people, strict=True)):
                    client = clients[place // TOGETHER].speaking_as(key)
                    carrier = LossyCarrier(proposal, client, self.loss)
                    people.append(group.create_task(carrier.run(person.take_part())))
                await asyncio.wait(people)
                watch.cancel()
        finally:
            for client in clients:
                await client.aclose()

    async def _watch(self) -> None:
        """A process that fails must not be waited for."""
        while True:
            self._made.check()
            await asyncio.sleep(1.0)


class _Deadly(Loss):
    """When half of the first wave's packets are on their way, a relay is gone with its share."""

    def __init__(self, made: Roles) -> None:
        super().__init__(LOSS)
        self._made = made

    def thinned(self, letter: Letter) -> Letter:
        if self.sent == PEOPLE // 2:
            self._made.kill(relay_name(KILLED))
        return super().thinned(letter)


def _row(source: np.random.Generator) -> Batch:
    smokes = source.integers(2)
    ill = int(source.random() < 0.2 + 0.5 * smokes)
    age = source.integers(101, size=1).astype(np.float64)
    codes = {"smokes": np.array([smokes], np.int32), "ill": np.array([ill], np.int32)}
    return Batch(SCHEMA, {"age": age, **codes}, 1)


# ── the peer ──


class _Bare(NamedTuple):
    token: float
    packet: float


def _bare(made: Roles) -> _Bare:
    """Processor seconds of one token, from blinding to verification, and of one packet, from its
    first layer to its last."""
    proposal, report = made.proposal, bytes(64)
    name, key = next(iter(made.secrets.tokens.items()))
    assert name in proposal.questions
    shape, context, hops = proposal.shape(PEOPLE), bytes(40), proposal.route.hops
    payload = bytes(shape.payload_bytes)

    def token() -> None:
        blinded = key.public.blind(report)
        assert key.public.verify(report, blinded.finalize(key.sign_blinded(blinded.blinded)))

    def packet() -> None:
        sealed = wrap(shape, context, proposal.stops[:hops], proposal.collector.onion, payload)
        for place in range(hops):
            sealed = peel(shape, context, made.onions[place], sealed).packet
        assert open_payload(shape, context, made.secrets.onion, sealed) == payload

    return _Bare(_seconds(token), _seconds(packet))


def _seconds(once: Callable[[], None]) -> float:
    start = time.process_time()
    for _ in range(REPEATS):
        once()
    return (time.process_time() - start) / REPEATS
