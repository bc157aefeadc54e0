"""An aggregator that nobody has to trust invents states; holders, servers and shares are real.

The rule: whatever it sends, either everyone refuses it for a reason that is in the bytes, or one
record moves the sum by at most what the plan says, under the noise that the plan says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.channels.federation.contribution import from_records
from tacit.channels.federation.holder import Holder
from tacit.channels.federation.letters import News, Sealed, Witnessed
from tacit.channels.federation.local import local_study
from tacit.channels.federation.noise_plan import asked_by
from tacit.channels.federation.outbox import Outbox
from tacit.channels.federation.seals import Question, marks_of
from tacit.channels.federation.server import Server
from tacit.channels.federation.server_store import ServerStore
from tacit.channels.roles.budget import NoBudget
from tacit.channels.roles.letters import Letter, read, write
from tacit.channels.roles.store import MEMORY
from tacit.channels.studies.study import Study
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.data.records import ArrayRecords
from tacit.data.schema import Column, Schema
from tacit.errors import Refused, TacitError
from tacit.privacy import Norm, Promise
from tacit.programs.files import to_bytes
from tacit.programs.kmeans import KMeans
from tacit.programs.logistic import Logistic
from tacit.programs.logistic_exact import Exact
from tacit.programs.mixture import Mixture
from tacit.programs.program import Program
from tacit.programs.states import state_bytes, state_from

PROMISE = Promise(0.1, 1e-6)
WIDTH, RECORDS = 3, 40
GENERATOR = np.random.default_rng(0)
X = GENERATOR.uniform(-0.5, 0.5, (RECORDS, WIDTH))
Y = GENERATOR.integers(0, 2, RECORDS)
X[0], Y[0] = 1.0, 1  # the one who is there, or is not

NUMBERS = tuple(Column(name=f"x{i}", type="number", bounds=(-1.0, 1.0)) for i in range(WIDTH))
LABEL = Column(name="y", type="category", role="label", categories=("0", "1"))
LABELLED, PLAIN = Schema(columns=(*NUMBERS, LABEL)), Schema(columns=NUMBERS)
PROGRAMS = [(Logistic(), LABELLED), (KMeans(2), PLAIN), (Mixture(2), PLAIN)]

Make = Callable[[Any], bytes]


class Attack:
    """Servers whose noise a seed repeats, and two holders; the aggregator is ours."""

    def __init__(self, program: Program[Any, Any], schema: Schema, present: bool) -> None:
        keys = [SigningKey.generate() for _ in range(3)]
        self.study: Study = local_study(program, 2, schema, PROMISE, keys)

        def noise(place: int) -> Callable[[int], SeededRandomness]:
            return lambda number: SeededRandomness(f"{place} {number}")

        self.servers = {
            key.public_key: Server(
                self.study, key, ServerStore(MEMORY, self.study.digest), noise(i)
            )
            for i, key in enumerate(keys[:-1])
        }
        self.before: Witnessed | None = None
        kept = slice(None) if present else slice(1, None)
        label = schema.label is not None
        tables = [(X[kept], Y[kept] if label else None), (X, Y if label else None)]
        self.holders = [
            Holder(
                self.study,
                party.key,
                Outbox(MEMORY, self.study.digest),
                from_records(self.study, ArrayRecords(*table)),
                NoBudget(),
            )
            for party, table in zip(self.study.holders, tables, strict=True)
        ]

    def tell(self, server: Server, letter: Letter) -> Letter:
        (reply,) = server.answer_all([(self.study.aggregator.key, letter)])
        if isinstance(reply, TacitError):
            raise reply
        return reply

    def round(self, number: int, state: bytes) -> NDArray[np.int64]:
        """The noisy sum of a round that has this state, in whole steps."""
        for server in self.servers.values():
            self.tell(server, Letter("open", number, state))
        for holder in self.holders:
            self.ask(holder, number, state)
        everyone = write(self.sealed(number))
        parts = [
            np.frombuffer(self.tell(s, Letter("close", number, everyone)).body, "<i8")
            for s in self.servers.values()
        ]
        return np.asarray(np.add.reduce(parts, dtype=np.int64))

    def sealed(self, number: int) -> Sealed:
        """All servers give their word for the sum of all holders."""
        keys = sorted(party.key for party in self.study.holders)
        servers = list(self.servers.values())
        marks = [marks_of(server._arrived[key] for key in keys) for server in servers]
        asked = Letter("seal", number, write(Sealed(keys, marks)))
        words = [read(Sealed, self.tell(server, asked).body).seals[0] for server in servers]
        state = servers[0]._rounds[number].state
        digest = Question(number, state, tuple(keys), tuple(marks)).digest(self.study.digest)
        self.before = Witnessed(digest, words)
        return Sealed(keys, marks, words)

    def ask(self, holder: Holder, number: int, state: bytes) -> None:
        news = write(News(number, 1e9, state, before=self.before))
        aggregator = self.study.aggregator.key
        holder.told(aggregator, Letter("ask", number - 1), Letter("round", number, news))
        for to, letter in holder.tick():
            (reply,) = self.servers[to].answer_all([(holder.key, letter)])
            assert isinstance(reply, Letter)
            holder.told(to, letter, reply)


def moved(program: Program[Any, Any], schema: Schema, states: Sequence[Make]) -> None:
    """With and without one record, under the same noise: each round moves by no more than planned,
    and the noise of every round is the planned one."""
    pair = [Attack(program, schema, present) for present in (True, False)]
    queries = []
    for number, make in enumerate(states, start=1):
        first = pair[0].study.first_state()
        with_her, without = (a.round(number, make(first)) for a in pair)
        whole = pair[0].study.plan().stage(number).query
        query = program.asked(state_from(make(first), first), whole)  # perhaps shorter vectors
        assert query is not None
        queries.append(query)
        for block, place in query.slices():
            steps = [int(v) for v in with_her[place] - without[place]]
            if block.norm is Norm.L1:
                assert sum(map(abs, steps)) <= block.limit
            else:
                assert sum(v * v for v in steps) <= block.limit**2
    planned = pair[0].study.levels()
    for number, query in enumerate(queries, start=1):
        planned.charge(number, query)
    for server in pair[0].servers.values():
        assert server._plan.releases == planned.releases


def changed(**values: Any) -> Make:
    return lambda first: state_bytes(replace(first, **values))


def test_a_state_of_the_run_without_privacy_is_none_of_this_study() -> None:
    """Its bound is one that nothing is clipped to: positives could be read off the sum."""
    weights = np.zeros((WIDTH + 1, 1))
    weights[-1] = -1e8
    state = replace(Exact.start(("0", "1"), (WIDTH + 1, 1), 1.0, 1e-5), weights=weights)
    attack = Attack(Logistic(), LABELLED, True)
    for body in (to_bytes(state), state_bytes(state)):
        for server in attack.servers.values():
            with pytest.raises(Refused, match="not one of logistic"):
                attack.tell(server, Letter("open", 1, body))
        with pytest.raises(Refused, match="not one of logistic"):
            attack.ask(attack.holders[0], 1, body)


def test_what_the_study_says_is_not_taken_from_a_state() -> None:
    """A tiny size, or a word that nothing is private, changed the noise once. Nobody reads them."""

    def whole(first: Any) -> bytes:
        return to_bytes(replace(first, size=Fraction(1, 2**24), private=False, norm="L1", rounds=1))

    moved(KMeans(2), PLAIN, [whole, whole])


def test_another_normalisation_after_the_first_round() -> None:
    """Records were prepared in round 1; what a later state says cannot be met by old bits."""
    tiny, huge = np.full((2, WIDTH), 1e-300), np.full((2, WIDTH), 1e300)
    moved(KMeans(2), PLAIN, [changed(), changed(centres=tiny), changed(centres=huge), changed()])


def admitted(study: Study, make: Make) -> bool:
    """What is refused, is so for its bytes: no record is looked at."""
    try:
        asked_by(study, 1, make(study.first_state()))
    except Refused:
        return False
    return True


HOSTILE = [0.0, -0.0, 5e-324, 1e-308, -1.0, 2.0**-60, 1e16, 1e300, 1.7e308]


@pytest.mark.parametrize(("program", "schema"), PROGRAMS, ids=lambda v: getattr(v, "name", ""))
def test_each_field_at_its_extremes_in_every_kind_of_round(
    program: Program[Any, Any], schema: Schema
) -> None:
    study = Attack(program, schema, True).study
    first = study.first_state()
    tried = 0
    for name in type(first).varies:
        value = getattr(first, name)
        if isinstance(value, (str, int)):
            continue
        for extreme in HOSTILE:
            one = np.full_like(value, extreme) if isinstance(value, np.ndarray) else extreme
            state = changed(**{name: one})
            if admitted(study, state):
                moved(program, schema, [state] * min(4, study.rounds))
                tried += 1
    assert tried >= 9


def test_states_without_any_sense_are_refused_by_their_bytes_alone() -> None:
    for program, schema in PROGRAMS:
        pair = [Attack(program, schema, present) for present in (True, False)]
        first = pair[0].study.first_state()
        array = next(f.name for f in fields(first) if f.name in type(first).varies)
        bodies = [
            b"",
            b"nonsense",
            state_bytes(first)[:-1],
            changed(**{array: np.full_like(getattr(first, array), np.nan)})(first),
            changed(**{array: np.zeros((1, 1, 1, 1))})(first),
            changed(**{array: getattr(first, array).astype(np.float32)})(first),
        ]
        for body in bodies:
            words = set()
            for attack in pair:
                with pytest.raises(Refused) as caught:
                    attack.ask(attack.holders[0], 1, body)
                words.add(str(caught.value))
            assert len(words) == 1  # whoever's records they are


def test_rounds_have_their_own_questions_whatever_a_state_calls_itself() -> None:
    """A state that says it is at the gradients, sent for the first round, and the reverse."""
    moved(
        Logistic(),
        LABELLED,
        [
            changed(stage="gradient", round=99),
            changed(stage="done"),
            changed(stage="no such stage"),
            changed(stage="size", scale=1e-300, bound=1e-300),
        ],
    )
