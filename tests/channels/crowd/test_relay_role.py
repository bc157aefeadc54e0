"""A relay in the course of a study: reveals for one roster, and lets no dead neighbour stop it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from rehearsal import PEOPLE, Rehearsal, identity

from tacit.channels.crowd.drawing import roster_digest
from tacit.channels.crowd.errands import Came, Errand, Script
from tacit.channels.crowd.letters import Batches, Bulletin, Commitment, Packets, Reveal, Roster
from tacit.channels.crowd.payload import COVER
from tacit.channels.crowd.relay_role import AT_ONCE, TRIES, RelayRole
from tacit.channels.crowd.relay_store import RelayStore
from tacit.channels.roles.letters import Letter, read, write
from tacit.channels.roles.store import MEMORY
from tacit.crypto.lots import opens
from tacit.crypto.onion import OnionKey
from tacit.crypto.prg import SeededRandomness
from tacit.errors import CheckFailed, InputError, Refused, TacitError, Unreachable, UsageError

Tamper = Callable[[Letter, Letter], Letter]


class Post:
    """Relay 0's script, whose letters go to a real collector; other relays are played."""

    def __init__(self, study: Rehearsal, tamper: Tamper | None = None) -> None:
        self.study, self.tamper = study, tamper
        self.store = RelayStore(MEMORY, study.proposal.digest)
        self.sent: list[tuple[int | None, Letter]] = []
        self.neighbours: Callable[[int], Letter | TacitError] = lambda place: Letter("taken", 0)
        self.told: list[str] = []
        self.role = self.born()

    def born(self) -> RelayRole:
        """A relay over the same store and keys."""
        key, onion = self.study.cast.relays[0]
        self.role = RelayRole(
            self.study.proposal,
            key,
            onion,
            self.store,
            SeededRandomness("relay"),
            lambda event, **fields: self.told.append(event),
        )
        return self.role

    def play(self, until: Callable[[Errand], bool] = lambda errand: False) -> None:
        script = self.role.serve()
        self.go_on(script, next(script), until)

    def go_on(
        self,
        script: Script[None],
        errand: Errand,
        until: Callable[[Errand], bool] = lambda errand: False,
    ) -> None:
        while not until(errand):
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
            return self.neighbours(errand.to)
        key = self.study.relays[0].public_key
        try:
            reply = self.study.collector.answer(key, letter, self.study.now)
        except TacitError as error:
            return error
        if reply.kind == "wait":
            self.study.pass_time((self.study.collector.deadline or 0.0) - self.study.now)
            reply = self.study.collector.answer(key, letter, self.study.now)
        return reply if self.tamper is None else self.tamper(letter, reply)

    def letters(self, kind: str) -> list[Letter]:
        return [letter for _, letter in self.sent if letter.kind == kind]


def is_a(kind: str) -> Callable[[Errand], bool]:
    return lambda errand: errand.letter is not None and errand.letter.kind == kind


def waits(errand: Errand) -> bool:
    return errand.letter is None


def nth(kind: str, number: int) -> Callable[[Errand], bool]:
    seen: list[Errand] = []

    def until(errand: Errand) -> bool:
        seen.extend([errand] if is_a(kind)(errand) else [])
        return len(seen) == number

    return until


def ready(**terms: Any) -> Rehearsal:
    """The roster is closed, and nobody has revealed."""
    study = Rehearsal(**terms)
    Post(study).play(until=nth("bulletin", 2))
    study.registered()
    for place in range(1, 5):
        study.commit(place)
    assert study.collector.bulletin(0.0).phase == "drawing"
    return study


@pytest.fixture
def drawing() -> Rehearsal:
    return ready(waves=2)


# ── lots ──


def test_a_commitment_is_the_same_after_a_restart() -> None:
    study = Rehearsal()
    post = Post(study)
    said = set()
    for _ in range(2):
        post.play(until=nth("bulletin", 2))
        said |= {letter.body for letter in post.letters("commit")}
        post.born()
    assert len(said) == 1


def test_what_is_revealed_was_committed_to(drawing: Rehearsal) -> None:
    post = Post(drawing)
    post.play(until=waits)
    (said,) = post.letters("reveal")
    committed = drawing.roster.commitments[0]
    assert opens(committed, read(Reveal, said.body).seed)
    assert 0 in drawing.store.lots()[1]


def test_seeds_differ_between_studies_of_one_key() -> None:
    said = set()
    for name in range(2):
        post = Post(Rehearsal(waves=3 + name))  # the same keys, another proposal
        post.play(until=nth("bulletin", 2))
        said |= {read(Commitment, letter.body).commitment for letter in post.letters("commit")}
    assert len(said) == 2


def another_roster(study: Rehearsal) -> Tamper:
    """One that leaves somebody out for a friend of the collector's."""
    extra = bytes.fromhex(identity("a friend of the collector's").public_key)
    keys = [bytes.fromhex(key) for key in study.store.members()]
    other = msgspec.structs.replace(study.roster, keys=b"".join(sorted([*keys[1:], extra])))
    return shown(study, other)


def shown(study: Rehearsal, roster: Roster) -> Tamper:
    """This roster instead of the real one, and announced."""
    found = roster_digest(study.proposal.digest, roster)

    def tamper(letter: Letter, reply: Letter) -> Letter:
        if reply.kind == "roster":
            return Letter("roster", 0, write(roster))
        if reply.kind == "bulletin":
            news = msgspec.structs.replace(read(Bulletin, reply.body), roster=found)
            return Letter("bulletin", 0, write(news))
        return reply

    return tamper


@pytest.mark.parametrize("again", [False, True], ids=["same life", "after a restart"])
def test_a_second_roster_gets_no_reveal(drawing: Rehearsal, again: bool) -> None:
    """Among two rosters, and two seeds of lots, the collector could choose."""
    post = Post(drawing)
    post.play(until=is_a("reveal"))  # the reveal is under way: the roster was kept before it left
    assert not post.letters("reveal")
    if again:
        post.born()
    post.tamper = another_roster(drawing)
    with pytest.raises(Refused, match="that is a fraud"):
        post.play()
    assert not post.letters("reveal")


def test_a_roster_that_was_not_announced_gets_no_reveal(drawing: Rehearsal) -> None:
    def tamper(letter: Letter, reply: Letter) -> Letter:
        if reply.kind != "roster":
            return reply
        roster = msgspec.structs.replace(read(Roster, reply.body), commitments={})
        return Letter("roster", 0, write(roster))

    post = Post(drawing, tamper)
    with pytest.raises(CheckFailed, match="announced"):
        post.play()
    assert not post.letters("reveal")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda keys: keys[32:], "11 people are in the roster"),
        (lambda keys: keys + b"\xff" * 32, "13 people are in the roster"),
        (lambda keys: keys[32:] + keys[:32], "not in order"),
        (lambda keys: keys[:-3], "damaged"),
    ],
)
def test_a_roster_that_was_not_proposed_gets_no_reveal(
    drawing: Rehearsal, change: Callable[[bytes], bytes], message: str
) -> None:
    roster = msgspec.structs.replace(drawing.roster, keys=change(drawing.roster.keys))
    post = Post(drawing, shown(drawing, roster))
    with pytest.raises(CheckFailed, match=message):
        post.play()
    assert not post.letters("reveal")


def test_a_relay_that_comes_too_late_for_the_lots_still_carries() -> None:
    """The roster was closed between the bulletin and the commitment."""
    study = Rehearsal(waves=1)
    post = Post(study)
    script = post.role.serve()
    errand = next(script)
    news = post.carried(errand)
    assert isinstance(news, Letter)
    study.registered()
    for place in range(1, 5):
        study.commit(place)
    study.pass_time(1000.0)
    for place in range(1, 5):
        study.reveal(place)
    errand = script.send(Came(news, study.now))
    assert is_a("commit")(errand)
    post.go_on(script, errand)
    assert "not in the lots" in post.told
    assert not post.letters("reveal")
    assert post.letters("batches")


def test_lots_that_were_drawn_without_it_are_checked(drawing: Rehearsal) -> None:
    for place in range(1, 5):
        drawing.reveal(place)
    drawing.pass_time(20.0)

    def tamper(letter: Letter, reply: Letter) -> Letter:
        if reply.kind != "bulletin":
            return reply
        news = read(Bulletin, reply.body)
        lots = news.drawn and msgspec.structs.replace(news.drawn, reveals={})
        return Letter("bulletin", 0, write(msgspec.structs.replace(news, drawn=lots)))

    with pytest.raises(CheckFailed, match="drew alone"):
        Post(drawing, tamper).play()


def test_keys_must_be_those_of_the_proposal() -> None:
    study = Rehearsal()
    key, onion = study.cast.relays[0]
    store = RelayStore(MEMORY, study.proposal.digest)
    with pytest.raises(Refused, match="onion key"):
        RelayRole(study.proposal, key, OnionKey.generate(), store)
    with pytest.raises(UsageError, match="none of its relays'"):
        RelayRole(study.proposal, study.people[0], onion, store)


@pytest.mark.parametrize("silent", [[-1], [255], [2**40]])
def test_relays_that_cannot_be_are_not_left_out(drawing: Rehearsal, silent: list[int]) -> None:
    def tamper(letter: Letter, reply: Letter) -> Letter:
        if reply.kind != "bulletin":
            return reply
        news = msgspec.structs.replace(read(Bulletin, reply.body), silent=silent)
        return Letter("bulletin", 0, write(news))

    with pytest.raises(InputError):
        Post(drawing, tamper).play()


# ── waves ──


def hand_in(study: Rehearsal, role: RelayRole) -> None:
    """A packet of every person, by turns for relay 1 and relay 4 as its next stops."""
    for number, person in enumerate(study.people):
        packet = study.packet(COVER, hop=0, route=(0, (1, 4)[number % 2], 2))
        letter = Letter("packets", 0, write(Packets(0, 0, 0, [packet])))
        assert role.answer(person.public_key, letter).kind == "taken"


def test_it_takes_packets_and_nothing_else(drawing: Rehearsal) -> None:
    post = Post(drawing)
    body = write(Packets(0, 0, 0, [b"x"]))
    assert post.role.limit("packets") == 4096
    with pytest.raises(Refused, match="no wave is open"):
        post.role.answer(drawing.people[0].public_key, Letter("packets", 0, body))
    for place in range(1, 5):
        drawing.reveal(place)
    post.play(until=waits)
    hand_in(drawing, post.role)
    full = write(Packets(2**31 - 1, 2**31 - 1, 0, [drawing.packet(COVER, hop=0)] * AT_ONCE))
    assert len(full) <= post.role.limit("packets")
    member = drawing.people[0].public_key
    for kind in ("bulletin", "token", "register", ""):
        with pytest.raises(InputError, match="does not answer"):
            post.role.answer(member, Letter(kind, 0, body))
    for wrong in (b"", b"\xc1", write(Packets(-1, 0, 0, [])), write(Packets(0, 0, 2**40, []))):
        with pytest.raises(InputError):
            post.role.answer(member, Letter("packets", 0, wrong))
    stranger = identity("stranger").public_key
    with pytest.raises(Refused, match="only the people"):
        post.role.answer(stranger, Letter("packets", 0, body))


def played_wave(
    study: Rehearsal, neighbours: Callable[[int], Letter | TacitError]
) -> tuple[Post, list[tuple[int, int]]]:
    """One wave of relay 0: whom it has tried, with how many packets."""
    post = Post(study)
    for place in range(1, 5):
        study.reveal(place)
    post.neighbours = neighbours
    script = post.role.serve()
    errand = next(script)
    tried: list[tuple[int, int]] = []
    while not (errand.letter is not None and errand.letter.kind == "batches"):
        if errand.letter is None:  # it waits for its window: people hand in
            hand_in(study, post.role)
        study.now = max(study.now, errand.at)
        if errand.to is not None:
            assert errand.letter is not None
            tried.append((errand.to, len(read(Packets, errand.letter.body).packets)))
        errand = script.send(Came(post.carried(errand), study.now))
    post.carried(errand)
    return post, tried


def test_a_batch_is_passed_on_and_told_of(drawing: Rehearsal) -> None:
    post, tried = played_wave(drawing, lambda place: Letter("taken", 0))
    assert tried == [(1, PEOPLE // 2), (4, PEOPLE // 2)]
    (said,) = post.letters("batches")
    assert read(Batches, said.body) == Batches(0, 0, {0: PEOPLE})
    assert "batch passed on" in post.told
    assert "packets lost" not in post.told
    assert drawing.store.heard(0, 0) == {0}


@pytest.mark.parametrize(
    "error", [Unreachable("nobody"), Refused("not yet"), InputError("what is this")]
)
def test_a_neighbour_that_does_not_take_it_is_asked_again_and_then_given_up(
    drawing: Rehearsal, error: TacitError
) -> None:
    post, tried = played_wave(drawing, lambda place: error)
    assert tried == [(1, PEOPLE // 2), (4, PEOPLE // 2)] * TRIES
    assert "packets lost" in post.told
    assert post.letters("batches")


def test_a_dead_neighbour_does_not_hold_up_the_others(
    drawing: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many packets for it, waiting for each would take longer than the next one's window."""
    monkeypatch.setattr("tacit.channels.crowd.relay_role.AT_ONCE", 1)
    dead = Unreachable("nobody")
    _, tried = played_wave(drawing, lambda place: dead if place == 1 else Letter("taken", 0))
    first_round = tried[: 1 + PEOPLE // 2]
    assert first_round == [(1, 1)] + [(4, 1)] * (PEOPLE // 2)
    assert tried[len(first_round) :] == [(1, 1)] * (TRIES - 1)


def test_a_batch_below_the_minimum_is_held_and_told_of() -> None:
    study = ready(batch=PEOPLE, waves=1)
    for place in range(1, 5):
        study.reveal(place)
    post = Post(study)
    post.play()
    assert "batch held back" in post.told
    assert [read(Batches, letter.body).sizes for letter in post.letters("batches")] == [{}]


def test_a_relay_that_is_left_out_says_that_it_is_there(drawing: Rehearsal) -> None:
    for place in range(1, 5):
        drawing.reveal(place)

    def tamper(letter: Letter, reply: Letter) -> Letter:
        if reply.kind != "bulletin":
            return reply
        news = msgspec.structs.replace(read(Bulletin, reply.body), silent=[0])
        return Letter("bulletin", 0, write(news))

    post = Post(drawing, tamper)
    post.play(until=waits)
    assert drawing.store.heard(0, 0) == drawing.store.heard(0, 1) == {0}
    said = [read(Batches, letter.body) for letter in post.letters("batches")]
    assert said == [Batches(0, 0, {}), Batches(0, 1, {})]
