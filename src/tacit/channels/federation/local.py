"""A whole federation in one process: the real state machines, spoken to directly.

For tests, comparisons and figures. Between institutions the same state machines run behind
`services.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tacit.channels.federation.aggregator import Aggregator
from tacit.channels.federation.contribution import from_records
from tacit.channels.federation.holder import Contribute, Holder
from tacit.channels.federation.journal import Journal
from tacit.channels.federation.outbox import Outbox
from tacit.channels.federation.server import Server
from tacit.channels.federation.server_store import ServerStore
from tacit.channels.roles.budget import NoBudget
from tacit.channels.roles.store import MEMORY
from tacit.channels.studies.study import (
    Chosen,
    Deadlines,
    Noise,
    Online,
    Party,
    Sampling,
    Service,
    Study,
    TakePart,
    planned_rounds,
)
from tacit.crypto.prg import Randomness
from tacit.crypto.signing import SigningKey
from tacit.data.records import Records
from tacit.data.schema import Schema
from tacit.privacy.certificate import Certificate
from tacit.privacy.promise import Promise
from tacit.programs.files import from_bytes
from tacit.programs.model_file import schema_of
from tacit.programs.program import Program
from tacit.programs.settings import plain_settings

__all__ = ["Federation", "LocalOutcome", "local_study"]

M = TypeVar("M")
LARGEST_HOLDING = 10**7  # records of one holder, as far as sizes of integers go
FAR = 10.0**9  # seconds: nobody is late in one process


@dataclass(frozen=True, slots=True)
class LocalOutcome(Generic[M]):
    """`schema` is what the model is read with: where bounds were to be found, it has them."""

    model: M
    certificate: Certificate
    rounds: int
    schema: Schema


@dataclass(frozen=True, slots=True)
class Federation:
    """m servers and an aggregator in this process; `run` adds the holders.

    honest       of the servers at least so many are honest: less noise; by default every server
                 adds all of it
    randomness   of the servers' noise, asked with (server, round), for tests; shares are always
                 secure
    holders_per_person   with unit = "person": with so many of the holders one person may be
    sampling     each unit takes part in each round with this probability, secretly
    """

    servers: int = 2
    honest: int | None = None
    randomness: Callable[[int, int], Randomness] | None = None
    progress: Callable[[int, int], None] | None = None
    holders_per_person: int | None = None
    sampling: float | None = None

    def run(
        self,
        program: Program[Any, M],
        holders: Sequence[Records],
        schema: Schema,
        promise: Promise,
    ) -> LocalOutcome[M]:
        keys = [SigningKey.generate() for _ in range(self.servers + 1)]
        study = local_study(
            program,
            len(holders),
            schema,
            promise,
            keys,
            self.honest,
            self.holders_per_person,
            sampling=self.sampling,
        )
        own = [from_records(study, records) for records in holders]
        *_, last = self._outcomes(study, keys, own)
        return last

    def follow(
        self,
        program: Program[Any, M],
        windows: Sequence[Sequence[Records]],
        schema: Schema,
        promise: Promise,
    ) -> Iterator[LocalOutcome[M]]:
        """Online learning: for each window the new records of every holder. Yields the model of
        all records so far after each."""
        keys = [SigningKey.generate() for _ in range(self.servers + 1)]
        study = local_study(
            program,
            len(windows[0]),
            schema,
            promise,
            keys,
            self.honest,
            windows=len(windows),
            sampling=self.sampling,
        )
        own = [_of_windows(study, [each[i] for each in windows]) for i in range(len(windows[0]))]
        yield from self._outcomes(study, keys, own)

    def _outcomes(
        self, study: Study, keys: Sequence[SigningKey], holders: Sequence[Contribute]
    ) -> Iterator[LocalOutcome[Any]]:
        """What is published after each window, if there are any, and at the end."""
        servers = [
            Server(study, key, ServerStore(MEMORY, study.digest), self._of(place))
            for place, key in enumerate(keys[:-1])
        ]
        aggregator = Aggregator(study, keys[-1], Journal(MEMORY, study.digest), 0.0)
        members = [
            Holder(
                study,
                party.key,
                Outbox(MEMORY, study.digest),
                contribute,
                NoBudget(),
            )
            for party, contribute in zip(study.holders, holders, strict=True)
        ]
        answering = {server.key: core for server, core in zip(study.servers, servers, strict=True)}
        newest = aggregator.newest
        while not (aggregator.is_over and all(member.is_over for member in members)):
            _to_servers(aggregator, answering)
            if aggregator.newest != newest:
                newest = aggregator.newest
                assert newest is not None  # it was published just now
                yield _outcome(study, *newest)
            for member in members:
                _from_holder(member, aggregator, answering)
            if self.progress is not None:
                self.progress(aggregator.round, study.last_round)
        assert aggregator.result is not None  # it is over
        yield _outcome(study, *aggregator.result)

    def _of(self, place: int) -> Callable[[int], Randomness] | None:
        given = self.randomness
        return None if given is None else lambda number: given(place, number)


def _to_servers(aggregator: Aggregator, servers: Mapping[str, Server]) -> None:
    """Everything between two moments at which holders have something to do."""
    while asked := aggregator.tick(0.0):
        for key, letter in asked:
            (reply,) = servers[key].answer_all([(aggregator.study.aggregator.key, letter)])
            aggregator.told(key, letter, reply, 0.0)
    if aggregator.failure is not None:
        raise aggregator.failure


def _from_holder(member: Holder, aggregator: Aggregator, servers: Mapping[str, Server]) -> None:
    """One question to the aggregator, and what follows from it."""
    for _ in range(2):
        for key, letter in member.tick():
            if key in servers:
                (reply,) = servers[key].answer_all([(member.key, letter)])
            else:
                reply = aggregator.answer(member.key, letter, 0.0)
            member.told(key, letter, reply)


def _of_windows(study: Study, windows: Sequence[Records]) -> Contribute:
    """Answers the rounds of each window with the sum over that window's records."""
    own = [from_records(study, records) for records in windows]
    return lambda number, state, query: own[study.window_of(number) - 1](number, state, query)


def _outcome(study: Study, model: bytes, certificate: str) -> LocalOutcome[Any]:
    read = Certificate.from_json(certificate)
    assert read.participation is not None  # a study's certificate
    models = study.program().models
    return LocalOutcome(
        from_bytes(models, model), read, read.participation.rounds, schema_of(model)
    )


def local_study(
    program: Program[Any, Any],
    holders: int,
    schema: Schema,
    promise: Promise,
    keys: Sequence[SigningKey],
    honest: int | None = None,
    holders_per_person: int | None = None,
    windows: int | None = None,
    sampling: float | None = None,
) -> Study:
    """A study among made-up parties; `keys` are those of the servers and, last, the aggregator."""
    place = "http://127.0.0.1:1"
    study = Study(
        name="local",
        question="-",
        rounds=planned_rounds(program, schema, promise, windows),
        online=None if windows is None else Online(windows=windows),
        chosen=Chosen(
            name=program.written_name, version=program.version, settings=_stated(program)
        ),
        promise=promise,
        take_part=TakePart(minimum=1, maximum=holders, records=LARGEST_HOLDING),
        deadlines=Deadlines(gather=FAR, round=FAR),
        servers=tuple(
            Service(name=f"server-{i}", address=place, key=key.public_key)
            for i, key in enumerate(keys[:-1])
        ),
        aggregator=Service(name="aggregator", address=place, key=keys[-1].public_key),
        holders=tuple(
            Party(name=f"holder-{i}", key=SigningKey.generate().public_key) for i in range(holders)
        ),
        schema=schema,
        noise=Noise() if honest is None else Noise(policy="honest", honest=honest),
        holders_per_person=holders_per_person,
        sampling=None if sampling is None else Sampling(rate=sampling),
    )
    return study.running(program)


def _stated(program: Program[Any, Any]) -> dict[str, Any]:
    """TOML has no word for None: what is None is left to its default."""
    return {name: v for name, v in plain_settings(program).items() if v is not None}
