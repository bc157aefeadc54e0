"""One round through the real state machines in one process, with each role's processor time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from federation_parts.vectors import Reals, giving, key_of, study_of, vector_of
from tacit.channels.federation.aggregator import Aggregator
from tacit.channels.federation.holder import Holder
from tacit.channels.federation.journal import Journal
from tacit.channels.federation.outbox import Outbox
from tacit.channels.federation.phases import Phase
from tacit.channels.federation.server import Server
from tacit.channels.federation.server_store import ServerStore
from tacit.channels.roles.budget import NoBudget
from tacit.channels.roles.letters import Letter
from tacit.channels.roles.store import MEMORY
from tacit.channels.studies.study import Study
from tacit.programs.files import from_bytes

ROUND = (Phase.COUNTING, Phase.SEALING, Phase.CLOSING)  # without opening and the certificate
DISTINCT = 16  # vectors that holders take turns with: what they hold does not change the cost


@dataclass
class Times:
    """Processor seconds of a round.

    holders      all of them: read the state, clip, round, split, keep
    server       one of them, the mean: check and store shares, add them up, add noise
    counting     the aggregator, as long as there are holders: answer each, choose whom to sum
    combining    the aggregator, once the servers have answered: add, check, decode, reduce
    """

    holders: float = 0.0
    server: float = 0.0
    counting: float = 0.0
    combining: float = 0.0
    error: float = field(default=0.0, repr=False)  # largest |noisy − true| of the sum

    @property
    def whole(self) -> float:
        return self.holders + 2 * self.server + self.counting + self.combining


def one_round(holders: int, length: int) -> Times:
    """Two servers, and the stores in memory: processor time, not the disk's."""
    study = study_of(holders, length)
    vectors = [vector_of(i, length) for i in range(min(holders, DISTINCT))]
    cores = {s.key: _server(study, s.name) for s in study.servers}
    aggregator = Aggregator(study, key_of("aggregator"), Journal(MEMORY, study.digest), 0.0)
    times = Times()
    for party in study.holders:  # all join
        aggregator.answer(party.key, Letter("ask", 0), 0.0)
    _ask_servers(aggregator, cores, times)
    for place, party in enumerate(study.holders):
        _take_part(study, party.key, vectors[place % DISTINCT], aggregator, cores, times)
    _ask_servers(aggregator, cores, times)
    times.server /= len(cores)
    times.error = _error(study, aggregator, vectors)
    return times


def _server(study: Study, name: str) -> Server:
    return Server(study, key_of(name), ServerStore(MEMORY, study.digest))


def _take_part(
    study: Study,
    key: str,
    vector: Reals,
    aggregator: Aggregator,
    servers: dict[str, Server],
    times: Times,
) -> None:
    """A holder asks, gets the round, sends its shares, and says that it is done."""
    outbox = Outbox(MEMORY, study.digest)
    holder = Holder(study, key, outbox, giving(vector), NoBudget())
    for _ in range(3):
        with _timed(times, "holders"):
            letters = holder.tick()
        for to, letter in letters:
            if to in servers:
                with _timed(times, "server"):
                    (reply,) = servers[to].answer_all([(key, letter)])
            else:
                with _timed(times, "counting"):
                    reply = aggregator.answer(key, letter, 0.0)
            with _timed(times, "holders"):
                holder.told(to, letter, reply)
    outbox.close()


def _ask_servers(aggregator: Aggregator, servers: dict[str, Server], times: Times) -> None:
    """All that follows without holders. Opening and the certificate are not a round's work."""
    while True:
        phase = aggregator.phase
        with _timed(times, "counting", phase in (Phase.COLLECTING, Phase.COUNTING)):
            letters = aggregator.tick(0.0)
        if not letters:
            return
        phase = aggregator.phase
        for key, letter in letters:
            with _timed(times, "server", phase in ROUND):
                (reply,) = servers[key].answer_all([(aggregator.study.aggregator.key, letter)])
            role = "combining" if phase is Phase.CLOSING else "counting"
            with _timed(times, role, phase in ROUND):
                aggregator.told(key, letter, reply, 0.0)
        if aggregator.failure is not None:
            raise aggregator.failure


@contextmanager
def _timed(times: Times, role: str, counts: bool = True) -> Iterator[None]:
    start = time.process_time()
    yield
    if counts:
        setattr(times, role, getattr(times, role) + time.process_time() - start)


def _error(study: Study, aggregator: Aggregator, vectors: list[Reals]) -> float:
    assert aggregator.result is not None  # it is over
    model: Any = from_bytes(study.program().models, aggregator.result[0])
    counts = [len(study.holders[place::DISTINCT]) for place in range(len(vectors))]
    true = sum(vector / 2 * n for vector, n in zip(vectors, counts, strict=True))  # clipped to 1
    return float(np.abs(model.total - true).max())
