"""A crowd's study between real processes over TLS, with kill -9 of relays, collector and a person.

Whatever happens, everybody's one answer must be counted once, with the one token signed for it.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parent))

from crowd_processes import EPSILON, HARMLESS, PERSON, WINDOWS, Crowd, People, crowd, relay
from federation_processes import PATIENCE

from tacit.channels.crowd.assignment import Assignment, context_of
from tacit.channels.crowd.letters import (
    Batches,
    Bulletin,
    Commitment,
    LeftOut,
    Packets,
    Reveal,
    Roster,
    SeenBulletin,
    TokenAsked,
)
from tacit.channels.crowd.payload import Answer
from tacit.channels.roles.letters import read, write
from tacit.crypto.onion import peel, wrap
from tacit.crypto.signing import SigningKey
from tacit.errors import InputError, Refused
from tacit.privacy.attested import BatchStatement
from tacit.wire.client import Client, Peer
from tacit.wire.message import Message

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs kill -9 and /proc")


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Crowd]:
    with crowd(tmp_path) as found:
        yield found


def test_a_relay_is_killed_with_what_it_holds(study: Crowd) -> None:
    """It never comes back: of its questions nothing has left, and everybody sends once more."""
    study.start(relay(0), "taken", 3)
    study.start_all()
    people = People(study.proposal, study.people)
    study.until_dead(relay(0))
    given = people.finish()
    study.finish()
    study.check_collected(given)
    waves = [
        event["wave"] for event in study.events("collector") if event["event"] == "wave opened"
    ]
    assert waves == [0, 1]


def test_what_a_relay_has_passed_on_and_nobody_got_is_not_sent_again(study: Crowd) -> None:
    """The only one at the last hop is killed having noted that batches were passed on."""
    study.start(relay(2), "released", 1)
    study.start_all()
    people = People(study.proposal, study.people)
    study.until_dead(relay(2))
    study.start(relay(2))
    assert people.finish(arrives=False)
    study.finish()
    waves = [
        event["wave"] for event in study.events("collector") if event["event"] == "wave opened"
    ]
    assert waves == [0]


def test_the_collector_is_killed_at_every_turn(study: Crowd) -> None:
    """Tokens that nobody got are given again, and nobody gets two; reports that nobody heard of are
    sent again, and count once."""
    people = None
    for point, times in (("opened", 2), ("issued", 10), ("counted", 1)):
        study.start("collector", point, times)
        study.start_all()
        people = people or People(study.proposal, study.people)
        study.until_dead("collector")
    study.start("collector")
    assert people is not None
    given = people.finish()
    study.finish()
    study.check_collected(given)


def test_a_person_is_killed_at_every_turn(tmp_path: Path) -> None:
    """Her answer is randomised once, paid for once, and counts once."""
    with crowd(tmp_path, replace(WINDOWS, send=30.0)) as study:  # for her to come back in time
        study.start_all()
        people = People(study.proposal, study.people[1:])
        reports = set()
        for point in ("spent", "kept", "kept"):
            study.start(PERSON, point, 1)
            study.until_dead(PERSON)
            if point != "spent":
                reports.add(study.answer().report)
        study.start(PERSON)
        given = people.finish()
        study.finish()
        own = study.answer()
        assert own.arrived
        assert reports == {own.report}
        study.check_collected([own, *given])
        check_paid_once(study)


def test_a_person_is_killed_when_she_may_have_sent(tmp_path: Path) -> None:
    """She does not send twice in the wave in which all do; and not in a later one either, when few
    would. She has paid all the same."""
    with crowd(tmp_path, replace(WINDOWS, waves=2)) as study:
        study.start_all()
        people = People(study.proposal, study.people[1:])
        study.start(PERSON, "sending", 1)
        study.until_dead(PERSON)
        study.start(PERSON)
        given = people.finish()
        study.finish()
        own = study.answer()
        assert own.proof
        assert not own.arrived
        study.check_collected([own, *given])
        check_paid_once(study)


def check_paid_once(study: Crowd) -> None:
    ledger = study.ledger(PERSON)
    ledger.verify()
    balance = ledger.balance("row", "person")
    assert (balance.spent.epsilon, balance.left.epsilon) == (EPSILON, 0)
    kinds = [entry.kind for entry in ledger.entries()]
    assert (kinds.count("reserve"), kinds.count("commit")) == (1, 1)
    assert not ledger.open_spends()


# ── strangers ──


class Attacks:
    """Letters that nobody may write, while the study waits for somebody."""

    def __init__(self, study: Crowd) -> None:
        self._study, self._proposal = study, study.proposal
        self.stranger, self.member = SigningKey.generate(), study.people[1]
        self.relay = SigningKey.load_or_create(study.root / relay(1) / "keys" / "holder.pem")
        self.shape = self._proposal.shape(len(study.people))

    async def refused(self, by: SigningKey, to: int | None, kind: str, body: bytes = b"") -> None:
        with pytest.raises((Refused, InputError)):
            await self.asked(by, to, kind, body)

    async def asked(
        self,
        by: SigningKey,
        to: int | None,
        kind: str,
        body: bytes = b"",
        study: str | None = None,
    ) -> Message:
        """To the relay at this place, or to the collector."""
        found = self._proposal.collector if to is None else self._proposal.relays[to]
        client = Client(by, study or self._proposal.digest)
        try:
            return await client.ask(Peer(found.name, found.address, found.key), kind, 0, body)
        finally:
            await client.aclose()

    async def until_counted(self, reason: str, payload: bytes | None) -> None:
        """Hand something in as a relay until the collector says what it took it for: the wave may
        change meanwhile."""
        ends = time.monotonic() + PATIENCE
        while not any(reason in event for event in self._study.events("collector")):
            assert time.monotonic() < ends
            said = await self.asked(self.member, None, "bulletin", write(SeenBulletin(0)))
            news = read(Bulletin, said.body)
            if news.wave is not None:  # tokens are issued before the first
                await self._handed_in(news, payload)

    async def _handed_in(self, news: Bulletin, payload: bytes | None) -> None:
        wave = news.wave
        assert wave is not None
        batch = self._proposal.drawn_up.names[0]
        packet = self._garbage if payload is None else await self._last_hop(news, batch, payload)
        letter = write(Packets(wave.stage, wave.number, self.shape.hops, batch, [packet]))
        last = (await self._drawn(news)).open_batches(wave)[batch][-1]
        key = SigningKey.load_or_create(self._study.root / relay(last) / "keys" / "holder.pem")
        await self.asked(key, None, "packets", letter)

    @property
    def _garbage(self) -> bytes:
        return bytes([self.shape.hops]) + bytes(self.shape.packet_bytes - 1)

    async def _last_hop(self, news: Bulletin, batch: str, payload: bytes) -> bytes:
        """As it comes to the collector on the circuit of its batch."""
        assert news.wave is not None
        drawn = await self._drawn(news)
        context = context_of(drawn.drawing, news.wave, batch)
        way = drawn.open_batches(news.wave)[batch]
        stops = [self._proposal.stops[place] for place in way]
        packet = wrap(self.shape, context, stops, self._proposal.collector.onion, payload)
        for place in way:
            packet = peel(self.shape, context, self._study.onions[place], packet).packet
        return packet

    async def _drawn(self, news: Bulletin) -> Assignment:
        roster = read(Roster, (await self.asked(self.member, None, "roster")).body)
        assert news.drawn is not None
        return Assignment(self._proposal, roster, news.drawn)

    def forged(self) -> bytes:
        """An answer as good as any, with no token at all."""
        question = self._proposal.drawn_up.questions[0]
        report = question.randomiser.release(np.zeros(1, np.int64))[0].tobytes()
        proof = bytes(self._proposal.proof_bytes(len(self._study.people)))
        return Answer(self._proposal.digest, 0, report, proof).to_bytes()


async def attack(study: Crowd) -> None:
    attacks = Attacks(study)
    stranger, member, carrier = attacks.stranger, attacks.member, attacks.relay
    batch, packet = study.proposal.drawn_up.names[0], bytes(attacks.shape.packet_bytes)
    invented = BatchStatement(member.public_key, "0" * 64, 0, 0, 0, {batch: (9, 9)}).signed(member)
    await attacks.refused(stranger, None, "register")
    await attacks.refused(stranger, None, "token", write(TokenAsked("table-0", b"0" * 256)))
    await attacks.refused(stranger, None, "commit", write(Commitment("0" * 64, "")))
    await attacks.refused(stranger, None, "reveal", write(Reveal(bytes(32), "")))
    await attacks.refused(carrier, None, "commit", write(Commitment("0" * 64, "")))
    await attacks.refused(member, None, "packets", write(Packets(0, 0, 0, batch, [])))
    for liar in (member, carrier):
        await attacks.refused(liar, None, "batches", write(Batches(invented)))
    for place in range(len(study.onions)):
        for who, hop, sent in ((stranger, 0, packet), (member, 1, packet), (carrier, 1, b"short")):
            letter = write(Packets(0, 0, hop, batch, [sent]))
            await attacks.refused(who, place, "packets", letter)
        said = await attacks.asked(stranger, place, "left-out", write(LeftOut(7, 7)))
        assert said.kind == "agreed"
    with pytest.raises(Refused, match="another study"):
        await attacks.asked(attacks.member, None, "bulletin", study="0" * 64)
    await attacks.until_counted("unreadable", None)
    await attacks.until_counted("forged", attacks.forged())


def test_strangers_and_forgers_are_refused(tmp_path: Path) -> None:
    with crowd(tmp_path, replace(WINDOWS, send=15.0)) as study:
        study.start_all()
        people = People(study.proposal, study.people[1:])
        study.start(PERSON, "sending", 1)
        study.until_dead(PERSON)  # and the study is not over before the wave is
        asyncio.run(attack(study))
        study.start(PERSON)
        given = people.finish()
        study.finish()
        study.check_collected([study.answer(), *given], HARMLESS | {"unreadable", "forged"})
