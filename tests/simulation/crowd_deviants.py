"""A crowd whose collector, and fewer relays than a circuit has hops, do what they like.

The collector shows different things to different people and relays, and to one person in different
lives; withholds bulletins, tokens and receipts; ends waves when it wants; and has people's devices
restarted. Relays of its swallow, repeat and delay packets, and lie about how many there were. All
of it follows from a seed. The world sees every payload before it is sealed, and follows every
packet through every honest relay, so that it knows what was really given, and really mixed.
"""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from crowd_cast import SCHEMA, UNCUT, proposed, rows
from crowd_world import World

from tacit.channels.crowd.collector import Collector
from tacit.channels.crowd.errands import Script
from tacit.channels.crowd.letters import (
    Bulletin,
    Drawn,
    Packets,
    Receipts,
    Roster,
    TokenAsked,
    TokenGiven,
    Wave,
)
from tacit.channels.crowd.payload import COVER
from tacit.channels.crowd.person import Person
from tacit.channels.crowd.plan import PlanTerms
from tacit.channels.crowd.relay import Relay, _Batch
from tacit.channels.crowd.relay_role import RelayRole
from tacit.channels.roles.letters import Letter, read, write
from tacit.errors import Refused, TacitError

COLLECTOR = (
    "other lots",
    "other lots in every life",
    "no tokens",
    "any token",
    "tokens for few",
    "no bulletin",
    "few are shown the first wave",
    "other opening",
    "other thresholds",
    "no statements",
    "other receipts",
    "short waves",
    "smaller roster",
    "restarts",
)
RELAYS = ("swallows", "swallows one", "repeats", "says more", "says less", "says nothing")


class Given(Person):
    """A device whose payloads the world sees."""

    def _payload(self, batch: str) -> bytes:
        payload = super()._payload(batch)
        WORLDS[self._proposal.digest].gave(self._key.public_key, batch, payload)
        return payload


WORLDS: dict[str, Deviants] = {}


class Dishonest(RelayRole):
    """What a relay may do with the batches that it has."""

    habits: frozenset[str] = frozenset()

    def _pass_on(self, relay: Relay, wave: Wave) -> Script[None]:
        habits, chance = self.habits, random.Random(f"{self._place} {wave.stage} {wave.number}")
        if habits and relay.hop >= 0:
            for batch in relay._batches.values():
                chance.shuffle(batch.peeled)
                if "swallows" in habits:
                    batch.peeled.clear()
                elif "swallows one" in habits and batch.peeled:
                    batch.peeled.pop()
                elif "repeats" in habits:
                    batch.peeled.extend(batch.peeled[:2])
        yield from super()._pass_on(relay, wave)

    def _account(self, relay: Relay, wave: Wave) -> Script[None]:
        if "says nothing" in self.habits:
            return
        more = {"says more": 7, "says less": -3}
        shift = sum(more[habit] for habit in self.habits & set(more))
        if shift:
            true = relay.attest

            def lied(stage: int, number: int) -> dict[str, tuple[int, int]]:
                return {
                    name: (max(0, a + shift), max(0, b + shift))
                    for name, (a, b) in true(stage, number).items()
                }

            relay.attest = lied  # type: ignore[method-assign]
        yield from super()._account(relay, wave)


class Deviants(World):
    """One schedule."""

    person_kind = Given
    relay_kind = Dishonest

    def __init__(self, seed: int) -> None:
        chance = self._plot = random.Random(f"deviants {seed}")
        people, relays = chance.randint(8, 14), chance.choice([3, 3, 4, 5])
        in_stages = chance.random() < 0.02
        people = 100 if in_stages else people
        self.schema = UNCUT if in_stages else SCHEMA
        plans = [None, None, PlanTerms(tables=(("smokes",), ("town",)))]
        cast = proposed(
            people,
            relays,
            seed=seed,
            schema=self.schema,
            plan=None if in_stages else chance.choice(plans),
            proof=chance.choice(["tokens", "tokens", "tokens", "ring"]),
            batch=2,
            waves=chance.choice([1, 2, 2]),
            release=20.0,
        )
        self.habits = frozenset(chance.sample(COLLECTOR, chance.randint(1, 3)))
        # Fewer than a circuit has hops, or nothing hides anybody.
        bad = chance.sample(range(relays), chance.choice([0, 0, 1, 2]))
        self.bad = {place: frozenset(chance.sample(RELAYS, 1)) for place in bad}
        self.marked = set(chance.sample(range(people), chance.randint(1, 3)))
        self.gifts: dict[str, dict[str, set[bytes]]] = defaultdict(lambda: defaultdict(set))
        self._last: dict[str, bool] = {}  # whether what a person seals now is an answer
        self._source: dict[bytes, tuple[str, bool]] = {}  # of every packet on its way
        # By honest relay, stage, wave and question: people whose answers it passed on together.
        self.hidden: dict[tuple[int, int, int, str], set[str]] = defaultdict(set)
        self.met: dict[tuple[int, int, int, str], set[str]] = defaultdict(set)  # cover included
        self._kept: dict[tuple[str, int, str], Any] = {}
        WORLDS[cast.proposal.digest] = self
        super().__init__(cast, rows(self.schema, people, seed), seed)
        self._victims = {self.people[number].key for number in self.marked}
        for place, habits in self.bad.items():
            self._corrupt(place, habits)
        if "restarts" in self.habits or "other lots in every life" in self.habits:
            self.on_wave = lambda wave: self._restart()

    def _corrupt(self, place: int, habits: frozenset[str]) -> None:
        carrier, born = self.carriers[place], self.carriers[place].born

        def reborn() -> Script[None]:
            script = born()
            self.relays[place].habits = habits  # type: ignore[attr-defined]
            return script

        carrier.born = reborn

    def _restart(self) -> None:
        for number in self.marked:
            actor = self.people[number]
            if actor.alive and not actor.done and actor.failure is None:
                self.crash(actor, back=1.0)

    # ── what is really given, and mixed ──

    def gave(self, person: str, batch: str, payload: bytes) -> None:
        is_answer = payload != COVER
        if is_answer:
            self.gifts[person][batch].add(payload)
        self._last[person] = is_answer

    def _see(self, sender: str, letter: Letter) -> None:
        super()._see(sender, letter)
        if letter.kind == "packets" and (sent := read(Packets, letter.body)).hop == 0:
            for packet in sent.packets:
                mark = hashlib.sha256(packet).digest()
                self._source.setdefault(mark, (sender, self._last[sender]))

    def peeled(self, packet: bytes, inner: bytes) -> None:
        found = self._source.get(hashlib.sha256(packet).digest())
        if found is not None:
            self._source[hashlib.sha256(inner).digest()] = found

    def released(self, place: int, wave: Wave, outgoing: list[Any]) -> None:
        if place in self.bad:
            return
        for batch in outgoing:
            here = (place, wave.stage, wave.number, batch.question)
            for packet in batch.packets:
                person, is_answer = self._source.get(hashlib.sha256(packet).digest(), ("", False))
                if person:
                    self.met[here].add(person)
                if is_answer:
                    self.hidden[here].add(person)

    # ── the collector's lies ──

    def _answered(self, sender: str, to: int | None, letter: Letter) -> Letter:
        if to is not None:
            return super()._answered(sender, to, letter)
        if letter.kind == "token":
            return self._token(sender, letter)
        reply = super()._answered(sender, to, letter)
        if reply.kind == "bulletin":
            return self._bulletin(sender, letter, reply)
        if reply.kind == "receipts" and "other receipts" in self.habits:
            return self._receipts(sender, reply)
        if reply.kind == "roster" and "smaller roster" in self.habits and sender in self._victims:
            said = read(Roster, reply.body)
            return Letter("roster", 0, write(msgspec.structs.replace(said, keys=said.keys[32:])))
        return reply

    def _token(self, sender: str, letter: Letter) -> Letter:
        restarts = self.habits & {"restarts", "other lots in every life"}
        if restarts and sender in self._victims and self._plot.random() < 0.5:
            actor = next(a for a in self.people if a.key == sender)
            self.at(self.now, lambda: self.crash(actor, back=1.0) if actor.alive else None)
        if "no tokens" in self.habits and sender in self._victims:
            raise Refused("busy")
        if "tokens for few" in self.habits and sender not in self._victims:
            raise Refused("busy")
        if "any token" in self.habits:
            asked = read(TokenAsked, letter.body)
            key = self.cast.secrets.tokens.get(asked.question)
            if key is not None:
                return Letter("token", 0, write(TokenGiven(key.sign_blinded(asked.blinded))))
        return super()._answered(sender, None, letter)

    def _receipts(self, sender: str, reply: Letter) -> Letter:
        said = read(Receipts, reply.body)
        if sender in self._victims:
            return Letter("receipts", reply.round, write(msgspec.structs.replace(said, digests={})))
        return reply

    def _bulletin(self, sender: str, letter: Letter, reply: Letter) -> Letter:
        news = read(Bulletin, reply.body)
        is_victim, wave = sender in self._victims, news.wave
        is_person = sender in {actor.key for actor in self.people}
        if wave is not None and is_person and self._withheld(sender, wave):
            return Letter("wait", letter.round)
        changed = news
        if news.drawn is not None and is_victim and self.habits & set(COLLECTOR[:2]):
            changed = msgspec.structs.replace(changed, drawn=self._lots(sender, news.drawn))
        if wave is not None and (is_victim or self._plot.random() < 0.1):
            shown = self._wave_shown(wave)
            changed = msgspec.structs.replace(changed, wave=shown, thresholds=shown.thresholds)
        return Letter("bulletin", reply.round, write(changed))

    def _withheld(self, sender: str, wave: Wave) -> bool:
        if wave.number == 0 and "few are shown the first wave" in self.habits:
            return sender not in self._victims
        return "no bulletin" in self.habits and wave.number == 0 and sender in self._victims

    def _lots(self, sender: str, drawn: Drawn) -> Drawn:
        """A subset of the relays' genuine parts: the same for one life, or for all."""
        life = next(a.life for a in self.people if a.key == sender)
        lasting = "other lots in every life" not in self.habits
        known = (sender, 0 if lasting else life, "lots")
        if known not in self._kept:
            places = sorted(drawn.reveals)
            some = self._plot.sample(places, self._plot.randint(2, len(places)))
            self._kept[known] = {place: drawn.reveals[place] for place in some}
        return Drawn(drawn.seed, self._kept[known])

    def _wave_shown(self, wave: Wave) -> Wave:
        if "other opening" in self.habits:
            wave = msgspec.structs.replace(wave, opens=wave.opens - self._plot.random() * 30)
        if "other thresholds" in self.habits:
            wave = msgspec.structs.replace(wave, thresholds={"age": [1.0, 2.0]})
        if "no statements" in self.habits and wave.statements:
            some = dict(list(wave.statements.items())[1:])
            wave = msgspec.structs.replace(wave, statements=some)
        return wave

    def run(self, *args: Any, **terms: Any) -> None:
        with followed(self), shortened("short waves" in self.habits):
            super().run(*args, **terms)

    @property
    def failures(self) -> list[TacitError]:
        return [a.failure for a in (*self.people, *self.carriers) if a.failure is not None]


@contextmanager
def followed(world: Deviants) -> Iterator[None]:
    """Every packet is known by its sender behind every relay."""
    peel, release = Relay._peeled, Relay._released

    def peeled(self: Relay, batch: _Batch, packet: bytes) -> bytes | None:
        inner = peel(self, batch, packet)
        if inner is not None:
            world.peeled(packet, inner)
        return inner

    def released(self: Relay, wave: Wave, absent: Collection[int]) -> Any:
        outgoing = release(self, wave, absent)
        world.released(self.place, wave, outgoing)
        return outgoing

    Relay._peeled, Relay._released = peeled, released  # type: ignore[method-assign]
    try:
        yield
    finally:
        Relay._peeled, Relay._released = peel, release  # type: ignore[method-assign]


@contextmanager
def shortened(habit: bool) -> Iterator[None]:
    """Waves that end long before relays have held them."""
    ends = Collector._wave_ends

    def early(self: Collector, wave: Wave) -> float:
        return (
            wave.opens + self._proposal.windows.send / 3 if wave.number == 0 else ends(self, wave)
        )

    if habit:
        Collector._wave_ends = early  # type: ignore[method-assign]
    try:
        yield
    finally:
        Collector._wave_ends = ends  # type: ignore[method-assign]


__all__ = ["Deviants"]
