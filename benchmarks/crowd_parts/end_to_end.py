"""A whole study on this machine: 1,000 people, 5 relays, a collector, over a network that fails.

Relays and collector are processes as `tacit serve` runs them; all people are in this one, each with
a key and a journal of her own. Every hop over TLS loses a tenth of the letters with packets,
and of the answers to them, and one relay is killed while it holds packets of the first wave.
Nobody's answer may be lost or count twice.

The last row says what everything around it costs, beside the bare cryptography of as many tokens
and packets: HTTP, TLS, signatures of letters, bulletins and receipts, stores, what was lost.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crowd_parts.lean_client import Connections, LeanClient
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
from tacit.crypto.blind_signatures import TokenKey
from tacit.crypto.onion import Hop, OnionKey, Shape, open_payload, peel, wrap
from tacit.crypto.signing import SigningKey
from tacit.data.batch import Batch
from tacit.wire.client import Client, Peer
from tacit.wire.loop import run

PEOPLE, RELAYS, LOSS = 1000, 5, 0.1
KILLED = 0  # the place of a relay at the first hop
HOPS = 3
# A window of sending is as long as this process takes to let everybody have a token, and everybody
# send, with some to spare: who misses the first has nothing to send in later ones. In units of a
# packet's cryptography, since this machine may be busy with other things too.
SEND, RELEASE, WAVES = 14.0, 0.7, 2
AT_ONCE = 32  # letters under way: whoever waits for her turn here does not wait for an answer
REPEATS = 1000
PATIENCE = 1800.0  # seconds: only a defect or a dead machine takes so long
BAR = 10.0

Say = Callable[[str], None]


def rows(say: Say) -> Iterator[Row]:
    bare = _bare()
    pace = PEOPLE * bare.wait
    windows = Windows(register=PATIENCE, send=SEND * pace, release=RELEASE * pace, waves=WAVES)
    with (
        tempfile.TemporaryDirectory(prefix="tacit-bench-") as folder,
        roles(Path(folder), PEOPLE, RELAYS, windows) as made,
    ):
        say(
            f"{PEOPLE:,} people, {RELAYS} relays, {LOSS:.0%} of letters lost on every hop, and of "
            f"their answers; waves of {made.proposal.wave_seconds:.0f} s …"
        )
        crowd = Crowd(made)
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
    yield Row("tokens signed", tokens.total(), PEOPLE, "people", 1.0, at_most=True)


# ── people ──


class Crowd:
    """All people of a study, in one process; one relay does not survive them."""

    def __init__(self, made: Roles) -> None:
        self._made, self.proposal, self.loss, self._taken = made, made.proposal, Loss(LOSS), 0
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
        connections = Connections()
        turns = asyncio.Semaphore(AT_ONCE)
        try:
            async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
                watch = group.create_task(self._watch())
                people = []
                for key, person in zip(self._keys, self.people, strict=True):
                    client = LeanClient(key, self.proposal.digest, connections)
                    carrier = _ByTurns(self, client, turns)
                    people.append(group.create_task(carrier.run(person.take_part())))
                await asyncio.wait(people)
                watch.cancel()
        finally:
            connections.close()

    def packet_taken(self) -> None:
        """One relay of the first hop dies while a fourth of a wave's packets are there."""
        self._taken += 1
        if self._taken == PEOPLE // 4:
            self._made.kill(relay_name(KILLED))

    async def _watch(self) -> None:
        """A process that fails must not be waited for."""
        while True:
            self._made.check()
            await asyncio.sleep(1.0)


class _ByTurns(LossyCarrier):
    """One of many in this process, which is no reason to be late."""

    def __init__(self, crowd: Crowd, client: Client, turns: asyncio.Semaphore) -> None:
        super().__init__(crowd.proposal, client, crowd.loss)
        self._crowd, self._turns = crowd, turns

    async def _asked(self, peer: Peer, letter: Letter, timeout: float | None) -> Letter:
        if letter.kind == "bulletin":  # which is waited for
            return await super()._asked(peer, letter, timeout)
        async with self._turns:
            reply = await super()._asked(peer, letter, timeout)
        if reply.kind == "taken":
            self._crowd.packet_taken()
        return reply


def _row(source: np.random.Generator) -> Batch:
    smokes = source.integers(2)
    ill = int(source.random() < 0.2 + 0.5 * smokes)
    age = source.integers(101, size=1).astype(np.float64)
    codes = {"smokes": np.array([smokes], np.int32), "ill": np.array([ill], np.int32)}
    return Batch(SCHEMA, {"age": age, **codes}, 1)


# ── the peer ──


class _Bare(NamedTuple):
    """Processor seconds of one token, from blinding to verification, and of one packet, from its
    first layer to its last; and for how long one waits for the latter, as busy as this machine is.
    """

    token: float
    packet: float
    wait: float


def _bare() -> _Bare:
    key, report, context = TokenKey.generate(), bytes(64), bytes(40)
    onions = [OnionKey.generate() for _ in range(HOPS + 1)]
    route = [Hop(place, onion.public) for place, onion in enumerate(onions[:HOPS])]
    shape = Shape("x25519", HOPS, 400)  # about what an answer and its token have
    payload = bytes(shape.payload_bytes - 1) + b"."

    def token() -> None:
        blinded = key.public.blind(report)
        assert key.public.verify(report, blinded.finalize(key.sign_blinded(blinded.blinded)))

    def packet() -> None:
        sealed = wrap(shape, context, route, onions[HOPS].public, payload)
        for onion in onions[:HOPS]:
            sealed = peel(shape, context, onion, sealed).packet
        assert open_payload(shape, context, onions[HOPS], sealed) == payload

    start = time.perf_counter()
    packet_seconds = _seconds(packet)
    wait = (time.perf_counter() - start) / REPEATS
    return _Bare(_seconds(token), packet_seconds, wait)


def _seconds(once: Callable[[], None]) -> float:
    start = time.process_time()
    for _ in range(REPEATS):
        once()
    return (time.process_time() - start) / REPEATS
