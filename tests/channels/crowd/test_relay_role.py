"""A relay in the course of a study: its part of the lot, and what it does when somebody who was
there is left out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parent))

from drawn_study import identity
from rehearsed import Rehearsed
from relay_post import Post, bulletins, is_a, nth, ready, waits

from tacit.channels.crowd.drawing import commits, reveals, roster_digest
from tacit.channels.crowd.errands import Came
from tacit.channels.crowd.letters import (
    Bulletin,
    Commitment,
    Drawn,
    LeftOut,
    Packets,
    Reveal,
    Roster,
)
from tacit.channels.crowd.relay_role import RelayRole
from tacit.channels.crowd.relay_store import RelayStore
from tacit.channels.roles.letters import Letter, read, write
from tacit.channels.roles.store import MEMORY
from tacit.crypto.onion import OnionKey
from tacit.errors import CheckFailed, Refused, TacitError, Unreachable, UsageError

Tamper = Callable[[Letter, Letter], Letter]
DRAWING = (-1, -1)


def refuses_packets(post: Post) -> bool:
    """Whatever they are."""
    packets = write(Packets(0, 0, 0, post.study.proposal.drawn_up.names[0], []))
    try:
        post.role.answer(post.study.people[0], Letter("packets", 0, packets))
    except Refused as error:
        return "no wave is open here" in str(error)
    return False


# ── lots ──


def test_a_commitment_is_signed_and_the_same_after_a_restart() -> None:
    post = Post(Rehearsed())
    said = set()
    for _ in range(2):
        post.play(until=nth("bulletin", 2))
        said |= {letter.body for letter in post.letters("commit")}
        post.born()
    (body,) = said
    assert commits(post.study.proposal, 0, read(Commitment, body))
    assert not commits(post.study.proposal, 1, read(Commitment, body))


def test_what_is_revealed_was_committed_to_and_for_this_roster() -> None:
    post = ready()
    study = post.study
    post.play(until=waits)
    (letter,) = post.letters("reveal")
    said = read(Reveal, letter.body)
    assert reveals(study.proposal, study.roster, 0, said)
    assert 0 in study.store.lots()[1]
    other = replace(study.roster, keys=study.roster.keys[32:])
    assert not reveals(study.proposal, other, 0, said)


def test_seeds_differ_between_studies_of_one_key() -> None:
    said = set()
    for name in range(2):
        post = Post(Rehearsed(waves=1 + name))  # the same keys, another proposal
        post.play(until=nth("bulletin", 2))
        said |= {read(Commitment, letter.body).commitment for letter in post.letters("commit")}
    assert len(said) == 2


def shown(study: Rehearsed, roster: Roster, lots: Drawn | None = None) -> Tamper:
    """This roster instead of the real one, and announced; with these lots, if it has any."""
    found = roster_digest(study.proposal.digest, roster)

    def changed(news: Bulletin) -> Bulletin:
        return replace(news, roster=found, drawn=news.drawn and lots)

    def tamper(letter: Letter, reply: Letter) -> Letter:
        if reply.kind == "roster":
            return Letter("roster", 0, write(roster))
        return bulletins(changed)(letter, reply)

    return tamper


def another_roster(study: Rehearsed) -> Roster:
    """One that leaves somebody out for a friend of the collector's."""
    extra = bytes.fromhex(identity("a friend of the collector's").public_key)
    keys = [bytes.fromhex(key) for key in study.store.members()]
    return replace(study.roster, keys=b"".join(sorted([*keys[1:], extra])))


@pytest.mark.parametrize("again", [False, True], ids=["same life", "after a restart"])
def test_a_second_roster_gets_no_reveal(again: bool) -> None:
    """Among two rosters, and two seeds of lots, the collector could choose."""
    post = ready()
    post.play(until=is_a("reveal"))  # the reveal is under way: the roster was kept before it left
    assert not post.letters("reveal")
    if again:
        post.born()
    post.tamper = shown(post.study, another_roster(post.study))
    with pytest.raises(CheckFailed, match="that is a fraud"):
        post.play()
    assert not post.letters("reveal")


def test_a_roster_that_was_not_announced_gets_no_reveal() -> None:
    post = ready()

    def tamper(letter: Letter, reply: Letter) -> Letter:
        if reply.kind != "roster":
            return reply
        return Letter("roster", 0, write(replace(read(Roster, reply.body), commitments={})))

    post.tamper = tamper
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
    change: Callable[[bytes], bytes], message: str
) -> None:
    post = ready()
    roster = post.study.roster
    post.tamper = shown(post.study, replace(roster, keys=change(roster.keys)))
    with pytest.raises(CheckFailed, match=message):
        post.play()
    assert not post.letters("reveal")


@pytest.mark.parametrize("kind", ["commit", "reveal"])
def test_who_comes_too_late_for_the_lots_has_no_reason_to_object(kind: str) -> None:
    """The roster was closed, or the lots were drawn, while its letter was under way."""
    study = Rehearsed(waves=1)
    post = Post(study)
    script = post.role.serve()
    errand = next(script)
    late = False
    while True:
        if is_a(kind)(errand) and not late:
            late = True
            move_on(study, kind)
        reply = post.carried(errand)
        if is_a("commit")(errand) and kind == "reveal":
            study.registered()
            for place in range(1, 5):
                study.commit(place)
        try:
            errand = script.send(Came(reply, study.now))
        except StopIteration:
            break
        study.now = max(study.now, errand.at)
    assert "not in the lots" in post.events
    assert "objects" not in post.events
    assert not post.objects_to(*DRAWING)
    assert not post.letters("batches")
    assert refuses_packets(post)


def move_on(study: Rehearsed, kind: str) -> None:
    """Past the closing of the roster, or past the drawing."""
    if kind == "commit":
        study.registered()
        for place in range(1, 5):
            study.commit(place)
        study.pass_time(1000.0)
    for place in range(1, 5):
        study.reveal(place)
    study.pass_time(20.0)


@pytest.mark.parametrize("parts", [(), (0,), (1, 2)])
def test_lots_that_too_few_have_drawn_are_refused(parts: tuple[int, ...]) -> None:
    post = ready()

    def few(news: Bulletin) -> Bulletin:
        kept = news.drawn and {p: news.drawn.reveals[p] for p in parts}
        return replace(news, drawn=news.drawn and replace(news.drawn, reveals=kept))

    post.tamper = bulletins(few)
    with pytest.raises(CheckFailed, match=f"{len(parts)} relays took part"):
        post.play()


def test_keys_must_be_those_of_the_proposal() -> None:
    study = Rehearsed()
    key, onion = study.cast.relays[0]
    store = RelayStore(MEMORY, study.proposal.digest)
    with pytest.raises(Refused, match="onion key"):
        RelayRole(study.proposal, key, OnionKey.generate(), store)
    with pytest.raises(UsageError, match="none of its relays'"):
        RelayRole(study.proposal, identity("rehearsed", 0), onion, store)


# ── a drawing without us ──


def drawn_by(*places: int) -> Callable[[Bulletin], Bulletin]:
    """Lots that only these have drawn, though all were there."""

    def without(news: Bulletin) -> Bulletin:
        if news.drawn is None:
            return news
        return replace(
            news, drawn=Drawn(news.drawn.seed, {p: news.drawn.reveals[p] for p in places})
        )

    return without


@pytest.mark.parametrize("again", [False, True], ids=["same life", "after a restart"])
def test_lots_without_its_part_which_was_there_are_objected_to(again: bool) -> None:
    """A collector that may choose whose parts count can draw until it likes the lots."""
    post = ready()
    post.tamper = bulletins(drawn_by(1, 2, 3, 4))
    if again:
        post.play(until=nth("bulletin", 3))
        post.born()
    with pytest.raises(CheckFailed, match=r"without our part.*tell the others"):
        post.play()
    assert "objects" in post.events
    assert post.objects_to(*DRAWING)
    assert not post.objects_to(0, 0)
    assert not post.letters("batches")
    assert refuses_packets(post)


def test_it_stays_to_say_so_until_the_study_is_over() -> None:
    post = ready()
    post.tamper = bulletins(drawn_by(1, 2, 3, 4))
    with pytest.raises(CheckFailed):
        post.play()
    assert post.study.collector.is_over
    assert post.events.count("objects") == 1


def test_a_commitment_that_was_there_and_is_not_in_the_roster_is_objected_to() -> None:
    post = ready(reveal=False)
    study = post.study
    commitments = {place: said for place, said in study.roster.commitments.items() if place}
    roster = replace(study.roster, commitments=commitments)
    for place in range(1, 5):
        study.reveal(place)
    post.tamper = shown(study, roster, study.lots(roster, 1, 2, 3, 4))
    with pytest.raises(CheckFailed, match="without our part"):
        post.play()
    assert not post.letters("reveal")
    assert post.objects_to(*DRAWING)
    assert refuses_packets(post)


@pytest.mark.parametrize("again", [False, True], ids=["same life", "after a restart"])
def test_lots_are_drawn_once(again: bool) -> None:
    """Of two drawings, each of which is right, the collector could choose."""
    post = ready()
    script = post.role.serve()
    errand = next(script)
    while not waits(errand):  # for the packets of the first wave
        errand = script.send(Came(post.carried(errand), post.study.now))
    post.tamper = bulletins(drawn_by(0, 1, 2, 3))
    if again:
        post.born()
        with pytest.raises(CheckFailed, match="another drawing than before"):
            post.play()
    else:
        with pytest.raises(CheckFailed, match="other lots than before"):
            post.go_on(script, errand)


# ── others who were left out ──

Answer = Letter | TacitError
HARMLESS = [Letter("agreed", 0), Unreachable("nobody"), Refused("of another study")]


def answering(post: Post, answer: Answer) -> None:
    post.neighbours = lambda place, said: answer if said.kind == "left-out" else Letter("taken", 0)


def test_when_all_are_there_nobody_is_asked() -> None:
    post = ready()
    post.play(until=waits)
    assert post.asked_about() == []


@pytest.mark.parametrize("answer", HARMLESS)
def test_who_is_not_in_the_lots_is_asked_whether_it_was_there(answer: Answer) -> None:
    post = ready(reveal=False)
    for place in range(1, 4):
        post.study.reveal(place)
    answering(post, answer)
    post.play(until=waits)
    assert post.study.drawn.relays == (0, 1, 2, 3)
    assert post.asked_about() == [(4, LeftOut(*DRAWING))]
    assert "objects" not in post.events
    assert post.hand_in(post.study.wave)


def test_if_one_of_them_was_there_nothing_is_passed_on() -> None:
    post = ready(waves=1)
    post.tamper = bulletins(drawn_by(0, 1, 2, 3))
    answering(post, Letter("objected", 0))
    with pytest.raises(CheckFailed, match="relay-4 was heard, and the collector says"):
        post.play()
    assert "objects" in post.events
    assert not post.letters("batches")
    assert not post.letters("packets")
    assert refuses_packets(post)


def test_who_has_objected_does_so_after_a_restart() -> None:
    """Even if nobody is there any more to say what it was about."""
    post = ready(waves=1)
    post.tamper = bulletins(drawn_by(0, 1, 2, 3))
    answering(post, Letter("objected", 0))
    post.play(until=lambda errand: "objects" in post.events)
    post.born()
    answering(post, Unreachable("nobody"))
    with pytest.raises(CheckFailed, match="relay-4 was heard"):
        post.play()
    assert not post.letters("batches")
    assert refuses_packets(post)
