"""Curators, initiators and owners that deviate: what is stored, who notices, and what it costs."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from small_network import (
    GROUP,
    LOCAL,
    NotingPurse,
    aggregated,
    begun_group,
    descriptor_of,
    key_of,
    member_of,
    pact_of,
    peer_of,
)

from tacit.channels.consortium.letters import Answer
from tacit.channels.consortium.terms import JointTerms
from tacit.channels.peers.handing_out import HandingOut
from tacit.channels.peers.letters import Gossip, Models, Want
from tacit.channels.peers.library import AT_ONCE, content_of
from tacit.channels.peers.membership import Membership
from tacit.channels.peers.pact import Pact
from tacit.channels.peers.publication import Publication, checked
from tacit.channels.peers.seats import curator_of, reveal_signature, seated, seats_digest
from tacit.channels.peers.solo import publication_alone, sole_party
from tacit.channels.peers.status import ensemble_of, status_of
from tacit.channels.peers.vetting import set_aside_unsound
from tacit.channels.peers.view import Sighting
from tacit.channels.roles.letters import Finished, Letter, read, write
from tacit.crypto.signing import SigningKey, digest
from tacit.errors import CertificateInvalid, CheckFailed, Refused, TacitError, Unreachable
from tacit.privacy.certificate import Certificate
from tacit.programs.model_file import model_bytes, model_from_bytes

PACT = pact_of()
OWN = PACT.averaged.model(LOCAL.vector, PACT.schema)


@cache
def published(pact: Pact = PACT) -> Publication:
    return aggregated(begun_group(pact))


def curator_key(publication: Publication, pact: Pact = PACT) -> SigningKey:
    place = curator_of(pact, publication.group, publication.seats, publication.seeds)
    name = publication.seats[place].descriptor.key
    return next(key for key in map(key_of, range(8)) if key.public_key == name)


# ── results that are none ──


def changed(**fields: Any) -> Callable[[bytes], bytes]:
    """The group's model, with some of its fields made by functions of the old ones."""

    def make(model: bytes) -> bytes:
        old = model_from_bytes(model).model
        values = {name: value(getattr(old, name)) for name, value in fields.items()}
        return model_bytes(dataclasses.replace(old, **values), PACT.averaged, PACT.schema)

    return make


BAD: dict[str, Callable[[bytes], bytes]] = {
    "no model": lambda model: b"not a model",
    "nothing": lambda model: b"",
    "a byte more": lambda model: model + b"\0",
    "a byte less": lambda model: model[:-1],
    "other classes": changed(classes=lambda old: ("x", "y")),
    "classes exchanged": changed(classes=lambda old: old[::-1]),
    "a class more": changed(classes=lambda old: (*old, "z")),
    "a further row": changed(coef=lambda old: np.vstack([old, np.full_like(old, 1e9)])),
    "a column more": changed(coef=lambda old: np.hstack([old, [[0.0]]])),
    "an intercept more": changed(intercept=lambda old: np.append(old, 1e9)),
    "no rows": changed(coef=lambda old: old[:0]),
    "single precision": changed(coef=lambda old: old.astype(np.float32)),
    "integers": changed(coef=lambda old: np.zeros(old.shape, dtype=np.int64)),
    "infinite": changed(coef=lambda old: old * np.inf),
    "no number": changed(intercept=lambda old: old * np.nan),
    "too long": changed(coef=lambda old: old + 1e6),
}
WORDS: dict[str, dict[str, Any]] = {
    "trust": {"trust": "Nobody need be trusted."},
    "remarks": {"remarks": ("The best of models.",)},
    "conditions": {"conditions": ("All is well.",)},
    "accountant": {"accountant": "mine"},
    "program": {"program": "another 1"},
    "program's digest": {"program_digest": "00" * 32},
    "schema": {"schema_digest": "00" * 32},
    "ledger": {"ledger": "00" * 32},
    "library": {"library": "see https://example.org"},
    "broken promise": {"promise_holds": False},
}


def resigned(said: Finished, key: SigningKey, model: bytes, **words: Any) -> Finished:
    certificate = Certificate.from_json(said.certificate)
    made = dataclasses.replace(certificate, **words, subject=digest(model)).signed(key)
    return Finished(model, made.to_json())


def one_told(alter: Callable[[Finished, SigningKey], Finished]) -> Membership:
    """A member, not the curator, to whom the curator gives something else."""
    members = begun_group(PACT)
    (curating,) = (member for member in members if member.curator)
    victim = next(member for member in members if member is not curating)
    core = curating.curator
    assert core is not None
    for now in range(1, 60):
        for member in [*(m for m in members if m not in (curating, victim)), victim, curating]:
            if curating.over:
                break
            for letter in member.turns(float(now)):
                core.tick(now)
                reply = core.answer(member.seat.party, letter, now)
                if reply.kind == "model" and member is victim:
                    altered = alter(read(Finished, reply.body), curating._key)
                    reply = Letter("model", reply.round, write(altered))
                member.told(letter, reply, now)
    assert all(member.result for member in members if member is not victim)
    return victim


@pytest.mark.parametrize("kind", BAD)
def test_members_refuse_a_model_that_strangers_refuse(kind: str) -> None:
    victim = one_told(lambda said, key: resigned(said, key, BAD[kind](said.model)))
    assert victim.result is None
    assert victim.over
    purse: NotingPurse = victim._budget._purse  # type: ignore[attr-defined]
    assert purse.paid == {GROUP: None}  # revealed, and so paid, in vain


@pytest.mark.parametrize("kind", WORDS)
def test_members_refuse_words_that_do_not_follow(kind: str) -> None:
    victim = one_told(lambda said, key: resigned(said, key, said.model, **WORDS[kind]))
    assert victim.result is None
    assert victim.over


@pytest.mark.parametrize("kind", [*BAD, *WORDS])
def test_strangers_refuse_the_same(kind: str) -> None:
    publication = published()
    said = Finished(publication.model, publication.certificate)
    model = BAD[kind](said.model) if kind in BAD else said.model
    bad = resigned(said, curator_key(publication), model, **WORDS.get(kind, {}))
    forged = msgspec.structs.replace(publication, model=bad.model, certificate=bad.certificate)
    with pytest.raises(TacitError):
        checked(PACT, write(forged))


def test_what_is_no_publication_is_not_published_by_its_own_maker() -> None:
    peer = peer_of(PACT, 3)
    bad = msgspec.structs.replace(published(), model=b"not a model")
    with pytest.raises(CheckFailed):
        peer._publish(bad, 0.0)
    assert peer.library.ids() == {}
    assert peer.groups == 0


def test_a_publication_has_one_spelling() -> None:
    body = write(published())
    assert checked(PACT, body)
    plain = msgspec.msgpack.decode(body)
    other = msgspec.msgpack.encode(dict(reversed(plain.items())))
    assert read(Publication, other) == published()
    with pytest.raises(CheckFailed, match="canonical form"):
        checked(PACT, other)


# ── what lies on a disk ──


def test_nothing_in_a_library_raises() -> None:
    told: list[tuple[str, dict[str, Any]]] = []
    peer = peer_of(PACT, 3)
    good, library = published(), peer.library
    library.add(good.id, "", False, write(good), 0.0)
    garbage = [b"", b"\xff", b"\x80", write(good)[:-3], b"\x91" * 5000, write(["a"])]
    garbage += [
        write(msgspec.structs.replace(good, model=make(good.model))) for make in BAD.values()
    ]
    for number, body in enumerate(garbage):
        library.add(f"{number:064x}", "", bool(number % 2), body, 0.0)
    library.add("ee" * 32, "", False, write(good), 0.0)  # another's name

    def look() -> None:
        found = ensemble_of(PACT, library, OWN)
        assert found is not None
        assert len(found.models) == 1  # the good one, once
        assert status_of(peer, OWN, None)["models"] == len(library.ids())

    look()
    set_aside_unsound(PACT, library, lambda event, **more: told.append((event, more)))
    assert set(library.ids()) == {good.id}
    assert {event for event, _ in told} == {"publication set aside"}
    assert len(told) == len(library.aside()) == len(garbage) + 1
    look()
    set_aside_unsound(PACT, library, lambda event, **more: told.append((event, more)))
    assert len(told) == len(garbage) + 1  # said once


# ── names ──


def test_a_curator_cannot_have_the_same_words_vouch_for_others() -> None:
    """Keys of its own, which sign the members' party keys as theirs: as many seats, in the same
    order, under the same curator."""
    publication = published()
    curator = curator_key(publication)
    names = sorted(range(40, 80), key=lambda place: key_of(place).public_key)
    place = [s.descriptor.key for s in publication.seats].index(curator.public_key)
    below = [n for n in names if key_of(n).public_key < curator.public_key]
    above = [n for n in names if key_of(n).public_key > curator.public_key]
    owners = [*below[:place], None, *above[: len(publication.seats) - place - 1]]
    for attempt in range(64):  # until the lot falls on itself again
        seeds, seats = [], []
        for owner, seat in zip(owners, publication.seats, strict=True):
            key = curator if owner is None else key_of(owner)
            own = seat.descriptor if owner is None else descriptor_of(PACT, owner)
            seeds.append(digest(["seed", attempt, own.key]).encode()[:32])
            seats.append(seated(PACT, GROUP, "", key, own, seat.party, seeds[-1]))
        if curator_of(PACT, GROUP, seats, seeds) == place:
            break
    stolen = msgspec.structs.replace(publication, seats=seats, seeds=seeds)
    assert stolen.id != publication.id
    with pytest.raises(TacitError):
        checked(PACT, write(stolen))


def test_nobody_takes_the_name_of_anothers_own_model() -> None:
    pact = pact_of(group_size=1)
    made = {}
    for place in (0, 1):
        own = descriptor_of(pact, place)
        seat, model, text = publication_alone(pact, GROUP, "", key_of(place), own, LOCAL)
        made[place] = Publication(GROUP, "", [seat], [], model, text)
        assert checked(pact, write(made[place])).id == made[place].id
    assert made[0].id != made[1].id  # the same group, and another owner
    victim = made[0].seats[0]
    own = descriptor_of(pact, 1)
    seat = seated(pact, GROUP, "", key_of(1), own, victim.party, b"s" * 32)
    forged = msgspec.structs.replace(made[1], seats=[seat])
    with pytest.raises((CheckFailed, CertificateInvalid)):
        checked(pact, write(forged))
    assert sole_party(GROUP, own.key) != victim.party


# ── two results of one name ──


def gossip(pact: Pact, publication: Publication, place: int = 9) -> Letter:
    own = descriptor_of(pact, place)
    body = write(publication)
    said = Gossip([Sighting(own, 0)], {publication.id: ""}, {publication.id: content_of(body)})
    return Letter("gossip", 0, write(said))


def second_result() -> Publication:
    """Another model that its curator signs: as long as an honest one can be."""
    publication = published()
    half = changed(coef=lambda old: old / 2)(publication.model)
    said = Finished(publication.model, publication.certificate)
    bad = resigned(said, curator_key(publication), half)
    return msgspec.structs.replace(publication, model=bad.model, certificate=bad.certificate)


def test_two_results_of_one_name_are_noticed_and_the_first_stays() -> None:
    told: list[tuple[str, dict[str, Any]]] = []
    peer = peer_of(PACT, 5, tell=lambda event, **more: told.append((event, more)))
    first, second = published(), second_result()
    assert first.id == second.id
    peer.library.add(first.id, "", False, write(first), 0.0)
    to = descriptor_of(PACT, 9)
    assert peer.told(peer.greet(to, 0.0), gossip(PACT, first), 0.0) == []
    (errand,) = peer.told(peer.greet(to, 0.0), gossip(PACT, second), 0.0)
    assert read(Want, errand.letter.body).ids == [first.id]
    reply = Letter("models", 0, write(Models([write(second)])))
    assert peer.told(errand, reply, 0.0) == []
    signer = curator_key(first).public_key
    assert told == [("two results", {"group": GROUP[:16], "signer": signer})]
    assert peer.library.body(first.id) == write(first)
    assert peer.told(peer.greet(to, 0.0), gossip(PACT, second), 0.0) == []  # asked for once


def test_a_member_notices_that_others_have_another_result() -> None:
    told: list[str] = []
    peer = peer_of(PACT, 1, tell=lambda event, **more: told.append(event))
    peer.library.add(published().id, "", False, write(second_result()), 0.0)
    peer._publish(published(), 0.0)
    assert "two results" in told


def test_lies_about_contents_cost_one_question_each() -> None:
    peer = peer_of(PACT, 5)
    publication = published()
    peer.library.add(publication.id, "", False, write(publication), 0.0)
    own, to = descriptor_of(PACT, 9), descriptor_of(PACT, 9)
    for lie in ("", "x", "00" * 8):
        said = Gossip([Sighting(own, 0)], {}, {publication.id: lie, "unknown": lie})
        found = peer.told(peer.greet(to, 0.0), Letter("gossip", 0, write(said)), 0.0)
        assert len(found) == 1
        again = peer.told(peer.greet(to, 0.0), Letter("gossip", 0, write(said)), 0.0)
        assert again == []
    told: list[str] = []
    peer._fetching._tell = lambda event, **more: told.append(event)
    second = second_result()  # … and keep nobody from finding the truth
    (errand,) = peer.told(peer.greet(to, 0.0), gossip(PACT, second), 0.0)
    peer.told(errand, Letter("models", 0, write(Models([write(second)]))), 0.0)
    assert told == ["two results"]


def test_who_hides_a_second_result_keeps_nobody_from_finding_it() -> None:
    """A server names its content and does not give it, or the letter is lost, or there is more to
    fetch than fits one letter: another who has it is asked all the same."""
    told: list[str] = []
    peer = peer_of(PACT, 5, tell=lambda event, **more: told.append(event))
    first, second = published(), second_result()
    peer.library.add(first.id, "", False, write(first), 0.0)
    hides, honest = descriptor_of(PACT, 9), descriptor_of(PACT, 8)
    (errand,) = peer.told(peer.greet(hides, 0.0), gossip(PACT, second), 0.0)
    peer.told(errand, Letter("models", 0, write(Models([]))), 0.0)
    assert peer.told(peer.greet(hides, 0.0), gossip(PACT, second), 0.0) == []
    said = read(Gossip, gossip(PACT, second, 8).body)
    full = msgspec.structs.replace(said, has={f"{n:064x}": "" for n in range(AT_ONCE)})
    (errand,) = peer.told(peer.greet(honest, 0.0), Letter("gossip", 0, write(full)), 0.0)
    assert first.id not in read(Want, errand.letter.body).ids
    for reply in (Unreachable("lost"), Letter("models", 0, write(Models([write(second)])))):
        assert told == []
        (errand,) = peer.told(peer.greet(honest, 0.0), gossip(PACT, second, 8), 0.0)
        assert peer.told(errand, reply, 0.0) == []
    assert told == ["two results"]
    for place in (7, 8, 9):  # it was seen
        to = descriptor_of(PACT, place)
        assert peer.told(peer.greet(to, 0.0), gossip(PACT, second, place), 0.0) == []


# ── two views of one thing ──


def test_an_initiator_that_shows_two_lists_begins_with_neither() -> None:
    """Both lists hold both honest members; only the initiator's own seat differs."""
    honest = [member_of(PACT, place) for place in (1, 2, 3)]
    own = descriptor_of(PACT, 0)
    parties = [key_of(f"list {number}") for number in (0, 1)]
    lists = [
        sorted(
            [
                *(member.seat for member in honest),
                seated(PACT, GROUP, "", key_of(0), own, party.public_key, b"s" * 32),
            ],
            key=lambda seat: seat.descriptor.key,
        )
        for party in parties
    ]
    said = {}
    for member, shown in zip(honest, (lists[0], lists[0], lists[1]), strict=True):
        said[member.seat.descriptor.key] = member.form(shown, 0.0)
    for member, number in zip(honest, (0, 0, 1), strict=True):
        listed = seats_digest(PACT, GROUP, lists[number])
        mine = reveal_signature(parties[number], listed, b"s" * 32)
        seeds, signatures = [], []
        for seat in lists[number]:
            reveal = said.get(seat.descriptor.key)
            seeds.append(b"s" * 32 if reveal is None else reveal.seed)
            signatures.append(mine if reveal is None else reveal.signature)
        with pytest.raises(CheckFailed, match="has not revealed its part for this list"):
            member.begin(seeds, signatures, 0.0)
        assert member.study is None


def test_a_seat_cannot_be_shown_with_another_address_of_its_owner() -> None:
    members = sorted(
        (member_of(PACT, place) for place in range(4)), key=lambda m: m.seat.descriptor.key
    )
    seats = [member.seat for member in members]
    owner = next(p for p in range(4) if key_of(p).public_key == seats[1].descriptor.key)
    moved = type(seats[1].descriptor).signed(
        key_of(owner), PACT.digest, "https://203.0.113.9:443", 0, (), True
    )
    shown = [seats[0], msgspec.structs.replace(seats[1], descriptor=moved), *seats[2:]]
    with pytest.raises(CheckFailed, match="who did not say so"):
        members[0].form(shown, 0.0)


# ── what is left of a group ──


def test_secrets_of_a_group_are_dropped_with_it() -> None:
    members = begun_group(PACT)
    journals = [journal for member in members for journal in member._journals]
    assert len(journals) == 5  # of the curator too
    aggregated(members)
    for member in members:
        member.end()
        assert member.over
        assert member.party_key is None
        assert (member._seed, member._party, member.curator, member._journals) == (
            b"",
            None,
            None,
            [],
        )
        assert member.result is not None
    for journal in journals:
        with pytest.raises(Exception, match="closed"):
            journal.result()
    let_go = member_of(PACT, 1)
    let_go.let_go("nobody came")
    assert (let_go._seed, let_go.party_key) == (b"", None)


def test_of_a_finished_group_a_curator_keeps_the_result_alone() -> None:
    members = begun_group(PACT)
    (curating,) = (member for member in members if member.curator)
    core = curating.curator
    assert core is not None
    publication, kept = None, HandingOut()
    kept.keep(core, 0.0)  # not over yet
    publication = aggregated(members)
    kept.keep(core, 0.0)
    curating.end()
    study, party = core.study.digest, members[0].seat.party
    reply = kept.answer(study, party, Letter("turn", 3))
    assert read(Finished, reply.body).model == publication.model
    with pytest.raises(Refused):
        kept.answer(study, key_of(0).public_key, Letter("turn", 3))
    with pytest.raises(Unreachable):
        kept.answer("ab" * 32, party, Letter("turn", 3))


def test_what_comes_after_the_deadline_is_not_paid_for() -> None:
    members = begun_group(PACT)
    (curating,) = (member for member in members if member.curator)
    core = curating.curator
    assert core is not None
    last = JointTerms.reveals_at - 1  # its answer would have us reveal
    for now in range(1, 20):
        for member in members:
            for letter in member.turns(float(now)):
                core.tick(now)
                reply = core.answer(member.seat.party, letter, now)
                late = reply.kind == "answer" and read(Answer, reply.body).step == last
                member.told(letter, reply, member.deadline if late else float(now))
    for member in members:
        member.let_go("it took too long")
        purse: NotingPurse = member._budget._purse  # type: ignore[attr-defined]
        assert purse.paid == {}
        assert purse.given_back == [GROUP]
