"""What one party can show differently to different others, shown in two versions.

The state machines of servers, holders and (where it is honest) the aggregator are the real ones.
The rule (docs/explain/equivocation.md): whoever was shown something binds its messages to a digest
of it, and somebody honest compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.channels.federation.contribution import from_records
from tacit.channels.federation.holder import Holder
from tacit.channels.federation.letters import (
    Holders,
    News,
    Sealed,
    Share,
    Subject,
    Witnessed,
    digest_of,
)
from tacit.channels.federation.local import local_study
from tacit.channels.federation.noise_plan import asked_by
from tacit.channels.federation.outbox import Outbox
from tacit.channels.federation.seals import Question, is_seal, marks_of, seal
from tacit.channels.federation.server import Server
from tacit.channels.federation.server_store import ServerStore
from tacit.channels.roles.budget import NoBudget
from tacit.channels.roles.envelopes import letter_of
from tacit.channels.roles.letters import Letter, read, write
from tacit.channels.roles.store import MEMORY
from tacit.channels.studies.agreement import agreed
from tacit.channels.studies.study import Deadlines, Study, TakePart
from tacit.crypto.signing import SigningKey
from tacit.data.records import ArrayRecords
from tacit.data.schema import Column, Schema
from tacit.errors import Refused, TacitError
from tacit.privacy.promise import Promise
from tacit.programs.kmeans import KMeans
from tacit.programs.states import state_bytes
from tacit.wire.message import Message

KEYS = [SigningKey.generate() for _ in range(4)]  # three servers and the aggregator
AGGREGATOR = KEYS[3].public_key
PROGRAM = KMeans(clusters=2, rounds=3)
SCHEMA = Schema(columns=(Column(name="x", type="number", bounds=(0, 1)),))
STUDY: Study = msgspec.structs.replace(
    local_study(PROGRAM, 4, SCHEMA, Promise(1.0, 1e-6), KEYS),
    take_part=TakePart(minimum=2, maximum=4, records=100),
).running(PROGRAM)
PARTIES = [party.key for party in STUDY.holders]
FIRST = state_bytes(STUDY.first_state())
# Another state that would be fine by itself.
OTHER = state_bytes(replace(STUDY.first_state(), centres=np.array([[0.25], [-0.25]])))


class Paid(NoBudget):
    """Counts what a holder is charged for."""

    def __init__(self) -> None:
        self.rounds: list[int] = []

    def spend(self, number: int) -> None:
        self.rounds.append(number)


class Scene:
    """Three honest servers, four honest holders; the aggregator is ours, and may say anything."""

    def __init__(self) -> None:
        self.stores = [ServerStore(MEMORY, STUDY.digest) for _ in range(3)]
        self.servers = [
            Server(STUDY, key, store) for key, store in zip(KEYS, self.stores, strict=False)
        ]
        self.budgets = [Paid() for _ in PARTIES]
        self.events: list[str] = []
        rows = np.random.default_rng(0).uniform(0, 1, (4, 20, 1))
        self.holders = [
            Holder(
                STUDY,
                key,
                Outbox(MEMORY, STUDY.digest),
                from_records(STUDY, ArrayRecords(rows[i], None)),
                self.budgets[i],
                tell=lambda event, **fields: self.events.append(event),
            )
            for i, key in enumerate(PARTIES)
        ]

    def ask(self, place: int, kind: str, number: int, body: bytes = b"") -> Any:
        (reply,) = self.servers[place].answer_all([(AGGREGATOR, Letter(kind, number, body))])
        return reply

    def open(self, number: int, states: Sequence[bytes]) -> None:
        for place, state in enumerate(states):
            assert self.ask(place, "open", number, state).kind == "opened"

    def tell(self, place: int, number: int, state: bytes, before: Witnessed | None = None) -> None:
        """A holder hears of a round, and sends its shares."""
        holder, news = self.holders[place], write(News(number, 1e9, state, before=before))
        holder.tick()
        holder.told(AGGREGATOR, Letter("ask", number - 1), Letter("round", number, news))
        for to, letter in holder.tick():
            if to == AGGREGATOR:  # it has nothing to send, and asks for news
                continue
            server = next(s for s in self.servers if s._key.public_key == to)
            (reply,) = server.answer_all([(holder.key, letter)])
            holder.told(to, letter, reply)

    def question(self, places: Sequence[int], server: int | None = None) -> Sealed:
        """The sum of these holders; `server` alone is asked for shares, if it is given."""
        keys = sorted(PARTIES[place] for place in places)
        marks = [
            marks_of(core._arrived.get(key, b"") for key in keys)
            if server in (None, place)
            else bytes(32)
            for place, core in enumerate(self.servers)
        ]
        return Sealed(keys, marks)

    def seals(self, number: int, asked: Sealed) -> list[str]:
        said = [self.ask(place, "seal", number, write(asked)) for place in range(3)]
        return [read(Sealed, reply.body).seals[0] for reply in said]

    def whole_round(
        self, number: int, state: bytes = FIRST, before: Witnessed | None = None
    ) -> Witnessed:
        self.open(number, [state] * 3)
        for place in range(4):
            self.tell(place, number, state, before)
        asked = self.question([0, 1, 2, 3])
        seals = self.seals(number, asked)
        whole = write(Sealed(asked.keys, asked.marks, seals))
        assert all(self.ask(place, "close", number, whole).kind == "partial" for place in range(3))
        return Witnessed(digest_at(number, state, asked), seals)


def digest_at(number: int, state: bytes, asked: Sealed) -> bytes:
    return Question.of(number, digest_of(state), asked, STUDY).digest(STUDY.digest)


# ── the study ──


def versions() -> list[Study]:
    """The study with one thing changed: what an author or a messenger could show somebody else."""
    change, first, last = msgspec.structs.replace, STUDY.servers[0], STUDY.holders[-1]
    mallory = SigningKey.generate().public_key
    wider = Schema(columns=(Column(name="x", type="number", bounds=(0, 2)),))
    return [
        change(STUDY, question="another question"),
        change(STUDY, promise=Promise(1.5, 1e-6)),
        change(STUDY, promise=Promise(1.0, 1e-6, adjacency="replace")),
        change(STUDY, take_part=TakePart(minimum=1, maximum=4, records=100)),
        change(STUDY, deadlines=Deadlines(gather=1.0, round=1.0)),
        change(STUDY, servers=(change(first, key=mallory), *STUDY.servers[1:])),
        change(STUDY, servers=(change(first, address="http://127.0.0.1:2"), *STUDY.servers[1:])),
        change(STUDY, aggregator=change(STUDY.aggregator, key=mallory)),
        change(STUDY, holders=(*STUDY.holders[:-1], change(last, key=mallory))),
        change(STUDY, holders=STUDY.holders[::-1]),
        change(STUDY, schema=wider),
        change(STUDY, chosen=change(STUDY.chosen, settings={"clusters": 3, "rounds": 3})),
    ]


def test_two_versions_of_a_study_are_two_studies(tmp_path: Path) -> None:
    """Every message and seal carries the digest of what its sender has read."""
    others = versions()
    assert len({other.digest for other in others} | {STUDY.digest}) == len(others) + 1
    agreed(STUDY, tmp_path)
    for other in others:
        said = Message(other.digest, 1, "", KEYS[0].public_key, "share", b"").signed(KEYS[1])
        assert said.is_authentic()
        with pytest.raises(Refused, match="another study"):
            letter_of(said, STUDY)
        moved = replace(said, study=STUDY.digest)  # by whoever passes it on
        assert not moved.is_authentic()
        word = seal(KEYS[0], other.digest, 1, bytes(32))
        assert not is_seal(KEYS[0].public_key, word, STUDY.digest, 1, bytes(32))
        with pytest.raises(Refused, match="you agreed to the one with digest"):
            agreed(other, tmp_path)


# ── who is summed ──


def test_two_rosters_of_a_round_are_not_summed() -> None:
    """Each server seals the roster that it was shown, and no sum leaves without the seals of all:
    the difference of two sums would show a single holder."""
    scene = Scene()
    scene.open(1, [FIRST] * 3)
    for place in range(4):
        scene.tell(place, 1, FIRST)
    one, two = scene.question([0, 1, 2]), scene.question([0, 1, 2, 3])
    words: dict[int, list[str]] = {}
    for place, asked in enumerate((one, two, two)):
        reply = scene.ask(place, "seal", 1, write(asked))
        words[place] = read(Sealed, reply.body).seals
    everyone = [word for place in range(3) for word in words[place]]
    for asked in (one, two):
        for place in range(3):
            reply = scene.ask(place, "close", 1, write(Sealed(asked.keys, asked.marks, everyone)))
            assert isinstance(reply, Refused)  # has not sealed this sum, or has sealed another
    for place, asked in ((0, two), (1, one), (2, one)):
        assert "difference" in str(scene.ask(place, "seal", 1, write(asked)))
    assert all(round_.answer is None for s in scene.servers for round_ in s._rounds.values())


def test_two_sets_of_shares_under_the_same_names_are_not_summed() -> None:
    scene = Scene()
    scene.open(1, [FIRST] * 3)
    for place in range(3):
        scene.tell(place, 1, FIRST)
    asked = scene.question([0, 1, 2])
    lie = Sealed(asked.keys, [asked.marks[0], asked.marks[2], asked.marks[1]])
    assert scene.ask(0, "seal", 1, write(asked)).kind == "sealed"
    assert "are others" in str(scene.ask(1, "seal", 1, write(lie)))
    assert "difference" in str(scene.ask(0, "seal", 1, write(lie)))


def test_servers_that_acknowledge_different_holders() -> None:
    """One says `stored` to a holder, and leaves it out towards the aggregator: an honest aggregator
    sums those whom all have, and all servers seal that one set. It costs the holder a round."""
    scene = Scene()
    scene.open(1, [FIRST] * 3)
    for place in range(4):
        scene.tell(place, 1, FIRST)
    said = [read(Holders, scene.ask(place, "present", 1).body) for place in range(3)]
    kept = [(k, m) for k, m in zip(said[1].keys, said[1].marks, strict=True) if k != PARTIES[3]]
    said[1] = Holders([k for k, _ in kept], [m for _, m in kept])
    common = sorted(set.intersection(*(set(here.keys) for here in said)))
    assert common == sorted(PARTIES[:3])
    asked = scene.question([0, 1, 2])
    seals = scene.seals(1, asked)
    whole = write(Sealed(asked.keys, asked.marks, seals))
    assert all(scene.ask(place, "close", 1, whole).kind == "partial" for place in range(3))
    # A set with a holder of whom a server has nothing is sealed by nobody who is honest.
    other = Scene()
    other.open(1, [FIRST] * 3)
    for place in range(2):
        other.tell(place, 1, FIRST)
    invented = other.question([0, 1, 2])
    assert all("not here" in str(other.ask(p, "seal", 1, write(invented))) for p in range(3))


# ── what is asked ──


def test_two_states_shown_to_two_servers() -> None:
    """A share is signed for one state, and a seal names it: neither fits the other server's."""
    scene = Scene()
    scene.open(1, [FIRST, OTHER, OTHER])
    for place, state in enumerate((FIRST, FIRST, OTHER, OTHER)):
        scene.tell(place, 1, state)
    assert scene.events.count("share refused") == 4
    here = [set(read(Holders, scene.ask(place, "present", 1).body).keys) for place in range(3)]
    assert here[0] == set(PARTIES[:2])
    assert not here[0] & here[1]
    one, two = scene.question([0, 1], server=0), scene.question([2, 3])
    first = read(Sealed, scene.ask(0, "seal", 1, write(one)).body).seals
    rest = [read(Sealed, scene.ask(p, "seal", 1, write(two)).body).seals[0] for p in (1, 2)]
    for asked, place in ((one, 0), (two, 1), (two, 2)):
        whole = write(Sealed(asked.keys, asked.marks, [*first, *rest]))
        assert "has not sealed" in str(scene.ask(place, "close", 1, whole))
    assert "another state" in str(scene.ask(0, "open", 1, OTHER))


def test_two_states_shown_to_two_holders() -> None:
    """An honest server takes shares of its own state alone, so no sum is over two of them. The
    other holder has paid for one answer, gives no second, and goes on with the next round."""
    scene = Scene()
    scene.open(1, [FIRST] * 3)
    for place, state in enumerate((FIRST, FIRST, FIRST, OTHER)):
        scene.tell(place, 1, state)
    assert all(PARTIES[3] not in server._arrived for server in scene.servers)
    asked = scene.question([0, 1, 2])
    seals = scene.seals(1, asked)
    whole = write(Sealed(asked.keys, asked.marks, seals))
    assert all(scene.ask(place, "close", 1, whole).kind == "partial" for place in range(3))
    scene.tell(3, 1, FIRST)  # the true story, after the other one: round 1 is done for it
    assert all(PARTIES[3] not in server._arrived for server in scene.servers)
    before = Witnessed(digest_at(1, FIRST, asked), seals)
    scene.open(2, [FIRST] * 3)
    scene.tell(3, 2, FIRST, before)
    assert all(PARTIES[3] in server._arrived for server in scene.servers)
    assert scene.budgets[3].rounds == [1, 2]  # once for each round, whatever it was told


def test_a_second_state_of_a_round_is_refused_after_a_restart() -> None:
    outbox = Outbox(MEMORY, STUDY.digest)
    records = ArrayRecords(np.full((5, 1), 0.5), None)
    for state, told in ((FIRST, True), (OTHER, False)):
        holder = Holder(STUDY, PARTIES[0], outbox, from_records(STUDY, records), NoBudget())
        ((to, asked),) = holder.tick()
        reply = Letter("round", 0, write(News(1, 1e9, state)))
        if told:
            holder.told(to, asked, reply)
        else:
            with pytest.raises(Refused, match="two stories"):
                holder.told(to, asked, reply)


def test_two_states_cost_what_one_costs() -> None:
    """Also if every server were dishonest about states: whatever each holder is told, one record
    moves its own sum by no more than the plan's bound, which is what the noise is for."""
    rows = np.random.default_rng(1).uniform(-1, 1, (30, 1))
    for state in (FIRST, OTHER):
        known, query = asked_by(STUDY, 1, state)
        assert query == STUDY.plan().stage(1).query  # blocks, bounds and grid are the plan's
        with_her = from_records(STUDY, ArrayRecords(rows, None))(1, known, query).total
        without = from_records(STUDY, ArrayRecords(rows[1:], None))(1, known, query).total
        for block, place in query.slices():
            moved = [int(v) for v in with_her[place] - without[place]]
            assert sum(v * v for v in moved) <= block.limit**2


# ── when ──


def test_two_numbers_of_a_round() -> None:
    """A holder asks for the seals of the round before, and a server keeps its own count."""
    scene = Scene()
    scene.open(1, [FIRST] * 3)
    scene.tell(0, 1, FIRST)
    digest = bytes(32)
    forged = [[], [seal(KEYS[3], STUDY.digest, 1, digest)] * 3]
    forged += [[seal(key, STUDY.digest, 1, digest) for key in (*KEYS[:2], KEYS[3])]]
    for before in (None, *(Witnessed(digest, seals) for seals in forged)):
        with pytest.raises(Refused, match="othing is sent"):
            scene.tell(1, 2, FIRST, before)
    assert scene.budgets[1].rounds == []
    assert "not closed yet" in str(scene.ask(0, "open", 2, FIRST))
    assert "comes next" in str(scene.ask(0, "open", 3, FIRST))
    # Two dishonest servers do not make a round that the third has not sealed.
    share = Share(digest_of(FIRST), "seed", bytes(32))
    (reply,) = scene.servers[0].answer_all([(PARTIES[1], Letter("share", 2, write(share)))])
    assert "is not open" in str(reply)


def test_two_stories_of_the_round_before() -> None:
    """Both would need the seal of every server, and one that is honest seals one of them."""
    scene = Scene()
    true = scene.whole_round(1)
    scene.open(2, [FIRST] * 3)
    scene.tell(0, 2, FIRST, true)
    other = bytes([7]) * 32
    forged = [*(seal(key, STUDY.digest, 1, other) for key in KEYS[:2]), true.seals[2]]
    with pytest.raises(Refused, match="has not sealed"):
        scene.tell(1, 2, FIRST, Witnessed(other, forged))
    # If all servers lied, holders would still see it who have seen the first story.
    again = [seal(key, STUDY.digest, 1, other) for key in KEYS[:3]]
    with pytest.raises(Refused, match="sealed two sums of round 1"):
        scene.holders[0]._witness(1, Witnessed(other, again))


# ── how it ends ──


def attest(scene: Scene, place: int, number: int, result: str) -> Any:
    return scene.ask(place, "attest", number, write(Subject(result)))


def test_a_server_signs_one_result() -> None:
    scene = Scene()
    scene.whole_round(1)
    first = attest(scene, 0, 2, "ab" * 32)
    assert first.kind == "attestation"
    assert attest(scene, 0, 2, "ab" * 32) == first  # asked again, the same bytes
    assert "signed another result" in str(attest(scene, 0, 2, "cd" * 32))
    scene.servers[0] = Server(STUDY, KEYS[0], scene.stores[0])  # started again
    assert "signed another result" in str(attest(scene, 0, 2, "cd" * 32))
    assert attest(scene, 0, 2, "ab" * 32) == first
    for name in ("", "AB" * 32, "ab" * 31, "x" * 64):
        assert isinstance(attest(scene, 1, 2, name), TacitError)


def test_a_server_that_has_signed_a_result_opens_no_round_after_it() -> None:
    """Else one certificate would tell of the rounds so far, and another of those to come."""
    scene = Scene()
    scene.whole_round(1)
    assert attest(scene, 0, 2, "ab" * 32).kind == "attestation"
    assert "has signed a result" in str(scene.ask(0, "open", 2, FIRST))
    assert scene.ask(1, "open", 2, FIRST).kind == "opened"  # the others were not asked yet
    assert "not closed yet" in str(attest(scene, 1, 3, "ab" * 32))
