"""One relay's script, whose letters go to a real collector; people and other relays are played."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).parent))

from drawn_study import TWO
from rehearsed import Rehearsed

from tacit.channels.crowd.errands import Came, Errand, Script
from tacit.channels.crowd.letters import IDLE, Bulletin, LeftOut, Packets, Wave
from tacit.channels.crowd.payload import COVER
from tacit.channels.crowd.relay_role import RelayRole
from tacit.channels.crowd.relay_store import RelayStore
from tacit.channels.roles.letters import Letter, read, write
from tacit.channels.roles.store import MEMORY
from tacit.crypto.prg import SeededRandomness
from tacit.errors import TacitError

__all__ = ["Post", "bulletins", "is_a", "nth", "ready", "waits"]

Tamper = Callable[[Letter, Letter], Letter]
Until = Callable[[Errand], bool]


class Post:
    """The relay at one place, life after life over one store."""

    def __init__(self, study: Rehearsed, place: int = 0, tamper: Tamper | None = None) -> None:
        self.study, self.place, self.tamper = study, place, tamper
        self.store = RelayStore(MEMORY, study.proposal.digest)
        self.sent: list[tuple[int | None, Letter]] = []
        self.neighbours: Callable[[int, Letter], Letter | TacitError] = _friendly
        self.waited: Callable[[Errand], None] = lambda errand: None
        self.told: list[tuple[str, str]] = []
        self.role = self.born()

    def born(self) -> RelayRole:
        """A relay over the same store and keys."""
        key, onion = self.study.cast.relays[self.place]
        self.role = RelayRole(
            self.study.proposal,
            key,
            onion,
            self.store,
            SeededRandomness("relay"),
            lambda event, **fields: self.told.append((event, str(fields.get("reason", "")))),
        )
        return self.role

    def play(self, until: Until = lambda errand: False) -> None:
        script = self.role.serve()
        self.go_on(script, next(script), until)

    def go_on(
        self, script: Script[None], errand: Errand, until: Until = lambda errand: False
    ) -> None:
        while not until(errand):
            if errand.letter is None:
                self.waited(errand)
            self.study.now = max(self.study.now, errand.at)
            try:
                errand = script.send(Came(self.carried(errand), self.study.now))
            except StopIteration:
                return

    def carried(self, errand: Errand) -> Letter | TacitError | None:
        letter = errand.letter
        if letter is None:
            return None
        self.sent.append((errand.to, letter))
        if errand.to is not None:
            return self.neighbours(errand.to, letter)
        try:
            reply = self.study.answered(self.study.key(self.place), letter)
        except TacitError as error:
            return error
        return reply if self.tamper is None else self.tamper(letter, reply)

    # ── what it has done ──

    def letters(self, kind: str) -> list[Letter]:
        return [letter for _, letter in self.sent if letter.kind == kind]

    def asked_about(self) -> list[tuple[int | None, LeftOut]]:
        """Whom it has asked whether they were left out, and of what."""
        return [(to, read(LeftOut, said.body)) for to, said in self.sent if said.kind == "left-out"]

    @property
    def events(self) -> list[str]:
        return [event for event, _ in self.told]

    def objects_to(self, stage: int, wave: int) -> bool:
        said = Letter("left-out", 0, write(LeftOut(stage, wave)))
        return self.role.answer(self.study.key(1), said).kind == "objected"

    def hand_in(self, wave: Wave, people: int | None = None) -> int:
        """A packet of so many of those who are asked something for which the relay is the first of
        the circuit; how many these are."""
        count = 0
        for batch, way in self.study.ways(wave).items():
            if way[0] == self.place and batch != IDLE:
                for person in self.study.asked(batch)[:people]:
                    packet = self.study.packet(wave, batch, COVER)
                    sent = Packets(wave.stage, wave.number, 0, batch, [packet])
                    said = self.role.answer(person, Letter("packets", 0, write(sent)))
                    assert said.kind == "taken"
                    count += 1
        return count


def _friendly(place: int, letter: Letter) -> Letter:
    return Letter("taken" if letter.kind == "packets" else "agreed", 0)


def is_a(kind: str) -> Until:
    return lambda errand: errand.letter is not None and errand.letter.kind == kind


def waits(errand: Errand) -> bool:
    return errand.letter is None


def nth(kind: str, number: int) -> Until:
    seen: list[Errand] = []

    def until(errand: Errand) -> bool:
        seen.extend([errand] if is_a(kind)(errand) else [])
        return len(seen) == number

    return until


def bulletins(change: Callable[[Bulletin], Bulletin]) -> Tamper:
    """Every bulletin with a change."""

    def tamper(letter: Letter, reply: Letter) -> Letter:
        if reply.kind != "bulletin":
            return reply
        news = change(read(Bulletin, reply.body))
        return Letter("bulletin", 0, msgspec.msgpack.encode(news))

    return tamper


def ready(place: int = 0, reveal: bool = True, **terms: Any) -> Post:
    """The relay has committed, the roster is closed; all others have revealed, or nobody has."""
    study = Rehearsed(**{"waves": 2, "plan": TWO, **terms})
    post = Post(study, place)
    post.play(until=nth("bulletin", 2))
    study.registered()
    others = [other for other in range(len(study.cast.relays)) if other != place]
    for other in others:
        study.commit(other)
    assert study.news.phase == "drawing"
    for other in others if reveal else ():
        study.reveal(other)
    post.born()
    return post
