"""A peer by itself: what it says to invitations, whom it believes, when it rests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from small_network import (
    CYCLE,
    GROUP,
    LOCAL,
    PATIENCE,
    NotingPurse,
    address_of,
    aggregated,
    begun_group,
    descriptor_of,
    key_of,
    member_of,
    pact_of,
    peer_of,
    reply_of,
)

from tacit.channels.peers.descriptors import Descriptor
from tacit.channels.peers.errands import Errand
from tacit.channels.peers.initiation import Initiation
from tacit.channels.peers.letters import (
    Accept,
    Begin,
    Decline,
    Form,
    Gossip,
    Invite,
    Models,
    Off,
    Reveal,
    Want,
)
from tacit.channels.peers.pact import Pact
from tacit.channels.peers.peer import Peer
from tacit.channels.peers.publication import Publication
from tacit.channels.peers.purse import LedgerPurse
from tacit.channels.peers.view import Sighting
from tacit.channels.roles.letters import Letter, read, write
from tacit.errors import InputError, Refused, TacitError, Unreachable
from tacit.privacy.ledger import Ledger

PACT = pact_of()
OTHER_GROUP = "6b" * 32
NOBODY = Unreachable("nobody answers there.")


def invitation(
    initiator: int = 0, group: str = GROUP, tag: str = "", pact: Pact = PACT
) -> tuple[str, Letter]:
    own = descriptor_of(pact, initiator)
    return own.key, Letter("invite", 0, write(Invite(group, tag, own)))


def answered(peer: Peer, sender: str, letter: Letter, now: float = 0.0) -> Letter | TacitError:
    try:
        return peer.answer(sender, letter, now)
    except TacitError as error:
        return error


def acquainted(peer: Peer, *places: int, now: float = 0.0, **changes: Any) -> Peer:
    """Somebody has told it of these."""
    said = [
        Descriptor.signed(
            key_of(place), peer.pact.digest, address_of(place), round(1000 * now), **changes
        )
        for place in places
    ]
    peer.view.merge([Sighting(one, 0) for one in said], said[0].key, round(1000 * now))
    return peer


def started(peer: Peer) -> list[Errand]:
    """Its first errands that invite, whenever it starts a group."""
    for now in range(int(20 * CYCLE)):
        found = [e for e in peer.tick(float(now)) if e.letter.kind == "invite"]
        if found:
            return found
    raise AssertionError("it starts no group")


# ── invitations ──


def test_it_accepts_and_repeats_itself() -> None:
    peer = peer_of(PACT, 1)
    first = answered(peer, *invitation())
    assert isinstance(first, Letter)
    seat = read(Accept, first.body).seat
    assert seat.descriptor.key == peer.key
    assert answered(peer, *invitation()) == first
    assert peer.membership is not None
    assert peer.membership.seat == seat


@pytest.mark.parametrize(
    "group", ["", "x", "5A" * 32, GROUP + "0", "\x1b[2J" + GROUP[4:], GROUP[:-1] + "\n"]
)
def test_a_group_is_named_by_a_number(group: str) -> None:
    peer = peer_of(PACT, 1)
    assert isinstance(answered(peer, *invitation(group=group)), InputError)
    assert peer.membership is None


def test_one_group_at_a_time() -> None:
    peer = peer_of(PACT, 1)
    answered(peer, *invitation())
    for other in (invitation(0, OTHER_GROUP), invitation(2, OTHER_GROUP), invitation(2, GROUP)):
        reply = answered(peer, *other)
        assert isinstance(reply, Letter)
        assert read(Decline, reply.body).reason == "busy"
    assert peer.membership is not None
    assert peer.membership.group == GROUP


def test_nobody_invites_in_anothers_name() -> None:
    peer = peer_of(PACT, 1)
    _, letter = invitation(0)
    assert isinstance(answered(peer, key_of(2).public_key, letter), Refused)
    elsewhere = invitation(0, pact=pact_of(name="elsewhere"))
    assert isinstance(answered(peer, *elsewhere), Refused)
    assert peer.membership is None


@pytest.mark.parametrize("lacks", ["budget", "model", "purse"])
def test_whoever_cannot_declines(lacks: str) -> None:
    purse = NotingPurse(0) if lacks == "budget" else NotingPurse()
    peer = peer_of(PACT, 1, purse, None if lacks == "model" else LOCAL)
    if lacks == "purse":
        peer.renew(LOCAL, None)
    reply = answered(peer, *invitation())
    assert isinstance(reply, Letter)
    assert read(Decline, reply.body).reason == "unable"
    assert not peer.descriptor(0.0).able
    assert peer.membership is None


def test_less_than_one_aggregation_in_the_ledger_is_too_little(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.allow("clinic", "record", epsilon=0.99, delta=1e-4)
    purse = LedgerPurse(PACT.promise, ledger, "clinic", PACT.digest, None)
    peer = peer_of(PACT, 1, purse)
    reply = answered(peer, *invitation())
    assert isinstance(reply, Letter)
    assert reply.kind == "decline"
    ledger.allow("clinic", "record", epsilon=1.0, delta=1e-4)
    reply = answered(peer, *invitation())
    assert isinstance(reply, Letter)
    assert reply.kind == "accept"
    assert (
        ledger.balance("clinic", "record").reserved.epsilon == 0
    )  # not before the others are known
    assert not ledger.open_spends()
    seats = [member_of(PACT, place).seat for place in (0, 2, 3)]
    seats.append(read(Accept, reply.body).seat)
    form = Form(GROUP, sorted(seats, key=lambda seat: seat.descriptor.key))
    peer.answer(key_of(0).public_key, Letter("form", 0, write(form)), 0.0)
    assert ledger.balance("clinic", "record").reserved.epsilon == 1


def test_tags() -> None:
    tags = pact_of(publish="tags")
    north, nowhere = peer_of(tags, 1, tags=("north",)), peer_of(tags, 2)
    assert north.able
    assert not nowhere.able
    for peer, tag, kind in (
        (north, "south", "decline"),
        (north, "", "decline"),
        (north, "north", "accept"),
        (nowhere, "", "decline"),
    ):
        reply = answered(peer, *invitation(tag=tag, pact=tags))
        assert isinstance(reply, Letter)
        assert reply.kind == kind
    reply = answered(peer_of(PACT, 1, tags=("north",)), *invitation(tag="north"))
    assert isinstance(reply, Letter)
    assert reply.kind == "decline"  # this network does not group by tags


def test_only_the_initiator_forms_and_begins() -> None:
    peers = [peer_of(PACT, place) for place in range(1, 4)]
    seats = [read(Accept, peer.answer(*invitation(), 0.0).body).seat for peer in peers]
    own = peer_of(PACT, 0)._member(GROUP, "", key_of(0).public_key, 0.0)
    seats = sorted([own.seat, *seats], key=lambda seat: seat.descriptor.key)
    form = Letter("form", 0, write(Form(GROUP, seats)))
    assert isinstance(answered(peers[0], key_of(2).public_key, form), Refused)
    said = {
        peer.key: read(Reveal, peer.answer(key_of(0).public_key, form, 0.0).body) for peer in peers
    }
    said[key_of(0).public_key] = own.form(seats, 0.0)
    seeds = [said[s.descriptor.key].seed for s in seats]
    signatures = [said[s.descriptor.key].signature for s in seats]
    begin = Letter("begin", 0, write(Begin(GROUP, seeds, signatures)))
    assert isinstance(answered(peers[0], key_of(2).public_key, begin), Refused)
    elsewhere = Letter("begin", 0, write(Begin(OTHER_GROUP, seeds, signatures)))
    assert isinstance(answered(peers[0], key_of(0).public_key, elsewhere), Refused)
    assert peers[0].answer(key_of(0).public_key, begin, 0.0).kind == "begun"


def test_strangers_and_unknown_words() -> None:
    closed = pact_of(members=tuple(key_of(place).public_key for place in range(4)))
    peer = peer_of(closed, 1)
    assert isinstance(answered(peer, *invitation(7, pact=closed)), Refused)
    assert isinstance(answered(peer, key_of(0).public_key, Letter("share", 0)), InputError)
    with pytest.raises(Refused, match="not among those that may take part"):
        peer_of(closed, 7)
    for kind in ("gossip", "models", "invite", "form", "begin"):
        bad = Letter(kind, 0, b"\xff")
        assert isinstance(answered(peer, key_of(0).public_key, bad), InputError)


# ── groups of its own ──


def test_it_invites_who_is_able_and_replaces_who_declines() -> None:
    peer = acquainted(peer_of(PACT, 0), 1, 2, 3, 4)
    acquainted(peer, 5, able=False)
    invited = started(peer)
    assert len(invited) == 3
    assert key_of(5).public_key not in {errand.to.key for errand in invited}
    reply = Letter("decline", 0, write(Decline("busy")))
    (onward,) = peer.told(invited[0], reply, 50.0)
    assert onward.to.key not in {errand.to.key for errand in invited}
    assert peer.told(onward, NOBODY, 50.0) == []
    assert peer.membership is None  # nobody is left, and nothing was spent


def test_answers_to_an_attempt_that_was_given_up_are_not_the_next_ones() -> None:
    purse = NotingPurse()
    peer = acquainted(peer_of(PACT, 0, purse), 1, 2, 3)
    old = started(peer)
    peer.tick(1000.0)  # it took too long
    assert not purse.held
    acquainted(peer, 1, 2, 3, now=1000.0)
    new: list[Errand] = []
    now = 1000.0
    while not new:
        now += 1.0
        new = [e for e in peer.tick(now) if e.letter.kind == "invite"]
    assert new[0].group != old[0].group
    for errand in old:
        late = peer_of(PACT, next(p for p in (1, 2, 3) if key_of(p).public_key == errand.to.key))
        reply = late.answer(peer.key, errand.letter, 0.0)
        told = peer.told(errand, reply, now)
        assert [(e.to.key, e.letter.kind) for e in told] == [(errand.to.key, "off")]
    onward = [
        e
        for errand in new
        for e in peer.told(
            errand,
            peer_of(
                PACT, next(p for p in (1, 2, 3) if key_of(p).public_key == errand.to.key)
            ).answer(peer.key, errand.letter, now),
            now,
        )
    ]
    assert [errand.letter.kind for errand in onward] == ["form"] * 3


def test_a_group_that_dissolves_costs_nobody_anything() -> None:
    purses = [NotingPurse() for _ in range(4)]
    peers = {key_of(p).public_key: peer_of(PACT, p, purses[p]) for p in range(4)}
    first = acquainted(peers[key_of(0).public_key], 1, 2, 3)
    forming: list[Errand] = []
    for errand in started(first):
        reply = peers[errand.to.key].answer(first.key, errand.letter, 100.0)
        forming += first.told(errand, reply, 100.0)
    assert [errand.letter.kind for errand in forming] == ["form"] * 3
    assert [bool(purse.held) for purse in purses] == [True, False, False, False]
    for errand in forming:
        peers[errand.to.key].answer(first.key, errand.letter, 100.0)
    assert all(purse.held for purse in purses)
    first.told(forming[0], Refused("no."), 100.0)  # it does not reveal
    assert first.membership is None
    for peer in peers.values():
        peer.tick(100.0 + 10 * PATIENCE)
        assert peer.membership is None or peer is first
    for purse in purses:
        assert purse.paid == {}
        assert len(purse.given_back) >= 1


# ── rest ──


def rested(peer: Peer, now: float, cycles: int) -> float:
    """Time passes; whatever it asks, nobody answers."""
    for _ in range(cycles):
        now += CYCLE
        waiting = peer.tick(now)
        while waiting:
            waiting += peer.told(waiting.pop(), NOBODY, now)
    return now


def test_without_budget_it_rests_and_says_so_once() -> None:
    told: list[tuple[str, dict[str, Any]]] = []
    peer = peer_of(PACT, 0, NotingPurse(0), tell=lambda event, **more: told.append((event, more)))
    now = rested(peer, 0.0, 5)
    assert peer.rests
    assert [event for event, _ in told] == ["at rest"]
    peer.renew(LOCAL, NotingPurse(1))  # new records
    assert not peer.rests
    rested(peer, now, 2)
    assert not peer.rests
    assert peer.able


def test_without_others_it_rests_until_enough_are_able() -> None:
    told: list[str] = []
    peer = peer_of(PACT, 0, tell=lambda event, **more: told.append(event))
    acquainted(peer, 1, 2)
    now = rested(peer, 0.0, 200)
    assert peer.rests
    assert told.count("at rest") == 1
    acquainted(peer, 1, 2, now=now)
    peer.tick(now + 2 * CYCLE)
    assert peer.rests  # a group needs three others
    acquainted(peer, 1, 2, 3, now=now + 2 * CYCLE)
    peer.tick(now + 4 * CYCLE)
    assert not peer.rests


def test_others_with_other_tags_are_no_company() -> None:
    tags = pact_of(publish="tags")
    peer = peer_of(tags, 0, tags=("north",))
    now = rested(peer, 0.0, 200)
    assert peer.rests
    acquainted(peer, 1, 2, 3, 4, now=now, tags=("south",))
    peer.tick(now + 2 * CYCLE)
    assert peer.rests
    acquainted(peer, 5, 6, 7, now=now + 2 * CYCLE, tags=("north", "south"))
    peer.tick(now + 4 * CYCLE)
    assert not peer.rests


def test_who_is_busy_is_no_reason_to_rest() -> None:
    peer = acquainted(peer_of(PACT, 0), 1, 2, 3)
    now = 0.0
    busy = Letter("decline", 0, write(Decline("busy")))
    for _ in range(400):
        now += CYCLE / 2
        acquainted(peer, 1, 2, 3, now=now)
        for errand in peer.tick(now):
            peer.told(errand, busy if errand.letter.kind == "invite" else NOBODY, now)
    assert not peer.rests


# ── publications ──


@pytest.fixture(scope="module")
def publication() -> Publication:
    return aggregated(begun_group(PACT))


def gossip(pact: Pact, has: dict[str, str], place: int = 9) -> Letter:
    own = descriptor_of(pact, place)
    return Letter("gossip", 0, write(Gossip([Sighting(own, 0)], has)))


def asked(peer: Peer, has: dict[str, str]) -> Errand | None:
    """What it asks somebody for who has these."""
    to = descriptor_of(peer.pact, 9)
    found = peer.told(peer.greet(to, 0.0), gossip(peer.pact, has), 0.0)
    assert len(found) <= 1
    return found[0] if found else None


def given(peer: Peer, errand: Errand, *bodies: bytes) -> None:
    assert peer.told(errand, Letter("models", 0, write(Models(list(bodies)))), 0.0) == []


def test_each_model_is_asked_for_once(publication: Publication) -> None:
    peer = peer_of(PACT, 5, None, None)
    errand = asked(peer, {publication.id: ""})
    assert errand is not None
    assert read(Want, errand.letter.body).ids == [publication.id]
    assert asked(peer, {publication.id: ""}) is None  # it is on its way
    given(peer, errand, write(publication), write(publication))
    assert peer.library.ids() == {publication.id: ""}
    assert asked(peer, {publication.id: ""}) is None
    reply = peer.answer(key_of(8).public_key, gossip(PACT, {}, 8), 0.0)
    assert read(Gossip, reply.body).has == {publication.id: ""}
    want = Letter("models", 0, write(Want([publication.id, "x"])))
    handed = read(Models, peer.answer(key_of(8).public_key, want, 0.0).body)
    assert handed.publications == [write(publication)]


def test_what_did_not_come_is_asked_for_again(publication: Publication) -> None:
    peer = peer_of(PACT, 5)
    for nothing in (NOBODY, Letter("models", 0, b"\xff"), Letter("models", 0, write(Models([])))):
        errand = asked(peer, {publication.id: ""})
        assert errand is not None
        assert peer.told(errand, nothing, 0.0) == []
    assert asked(peer, {publication.id: ""}) is not None


def test_garbage_is_dropped_and_never_passed_on(publication: Publication) -> None:
    told: list[str] = []
    peer = peer_of(PACT, 5, tell=lambda event, **more: told.append(event))
    forged = Publication(
        publication.group,
        "",
        publication.seats,
        publication.seeds,
        publication.model + b"\0",
        publication.certificate,
    )
    errand = asked(peer, {forged.id: "", "x": ""})
    assert errand is not None
    given(peer, errand, write(forged), b"garbage")
    assert told == ["model refused", "model refused"]
    assert peer.library.ids() == {}
    errand = asked(peer, {"x": ""})
    assert errand is not None
    given(peer, errand, write(publication))  # genuine, but not what was asked for
    assert peer.library.ids() == {}


def test_tags_say_who_wants_a_model() -> None:
    tags = pact_of(publish="tags")
    north = peer_of(tags, 5, tags=("north",))
    errand = asked(north, {"a": "north", "b": "south"})
    assert errand is not None
    assert read(Want, errand.letter.body).ids == ["a"]


def test_among_participants_nothing_is_handed_on(publication: Publication) -> None:
    participants = pact_of(publish="participants")
    peer = peer_of(participants, 5)
    peer.library.add("a", "", True, b"body", 0.0)
    reply = peer.answer(key_of(8).public_key, gossip(participants, {}, 8), 0.0)
    assert read(Gossip, reply.body).has == {}
    want = Letter("models", 0, write(Want(["a"])))
    assert isinstance(answered(peer, key_of(8).public_key, want), Refused)


# ── curators ──


def test_a_group_that_is_not_here_is_asked_for_again() -> None:
    peer = peer_of(PACT, 1)
    with pytest.raises(Unreachable):
        peer.answer_group("ab" * 32, key_of(0).public_key, Letter("turn", 0), 0.0)


def test_whoever_has_accepted_is_free_when_the_group_is_called_off() -> None:
    pact = pact_of()
    purse = NotingPurse()
    peer = peer_of(pact, 1, purse)
    invitation = Letter("invite", 0, write(Invite(GROUP, "", descriptor_of(pact, 0))))
    assert peer.answer(key_of(0).public_key, invitation, 0.0).kind == "accept"
    off = Letter("off", 0, write(Off(GROUP)))
    with pytest.raises(Refused):  # only whoever has invited may
        peer.answer(key_of(2).public_key, off, 1.0)
    assert peer.membership is not None
    assert peer.answer(key_of(0).public_key, off, 1.0).kind == "noted"
    assert peer.membership is None
    assert not purse.held
    assert not purse.given_back  # there was nothing to give back yet


def test_an_initiator_calls_off_what_does_not_come_together() -> None:
    pact = pact_of()
    own, other = member_of(pact, 0), member_of(pact, 1)
    others = [descriptor_of(pact, place) for place in (1, 2, 3)]
    left = list(others)

    def sample(number: int, without: set[str]) -> list[Descriptor]:
        taken, left[:] = left[:number], left[number:]
        return taken

    initiation = Initiation(own, own.seat.descriptor, sample)
    initiation.start()
    assert initiation.told(others[0], reply_of(other, Letter("invite", 0)), 0.0) == []
    declined = Letter("decline", 0, write(Decline("unable")))
    letters = initiation.told(others[1], declined, 0.0)
    assert initiation.failed
    assert [(to.key, letter.kind) for to, letter in letters] == [(others[0].key, "off")]
