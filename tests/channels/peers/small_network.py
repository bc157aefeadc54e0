"""A network to try things on: its pact, keys that are the same in every run, peers, and a purse
that notes what a peer owes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any
from unittest.mock import patch

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tacit.channels.consortium.local_model import Local
from tacit.channels.peers.descriptors import Descriptor
from tacit.channels.peers.initiation import Initiation
from tacit.channels.peers.letters import Accept, Begin, Form, Reveal
from tacit.channels.peers.library import Library
from tacit.channels.peers.membership import Membership
from tacit.channels.peers.pact import Pact
from tacit.channels.peers.peer import Peer
from tacit.channels.peers.publication import Publication
from tacit.channels.roles.letters import Letter, read, write
from tacit.channels.roles.store import MEMORY
from tacit.channels.studies.tables import Chosen, Terms
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.data.schema import Column, Schema
from tacit.errors import Refused

GROUP = "5a" * 32
CYCLE, PATIENCE = 10.0, 60.0
SCHEMA = Schema(
    columns=(
        Column(name="age", type="number", bounds=(0.0, 1.0)),
        Column(name="height", type="number", bounds=(0.0, 1.0)),
        Column(name="ill", type="boolean", role="label"),
    )
)
LOCAL = Local(np.array([0.1, -0.2, 0.05]), 66)


def key_of(name: object) -> SigningKey:
    """The key of this name, the same in every run."""
    seed = hashlib.sha256(f"tacit test key {name}".encode()).digest()
    return SigningKey(Ed25519PrivateKey.from_private_bytes(seed))


@contextmanager
def repeatable(seed: object) -> Iterator[None]:
    """Keys that are made follow from a seed too: all of a simulation does then."""
    numbers = count()
    with patch.object(SigningKey, "generate", lambda *_: key_of(f"{seed} {next(numbers)}")):
        yield


def pact_of(**changes: Any) -> Pact:
    terms: dict[str, Any] = {
        "name": "clinics",
        "question": "Who is ill?",
        "chosen": Chosen(name="averaged-logistic", version=1, settings={"penalty": 0.1}),
        "terms": Terms(epsilon=1.0, delta=1e-5),
        "group_size": 4,
        "smallest": 50,
        "cycle": CYCLE,
        "patience": PATIENCE,
        "schema": SCHEMA,
    }
    return Pact(**terms | changes)


def address_of(place: int) -> str:
    return f"https://10.{place // 250}.{place % 250}.1:8443"


def descriptor_of(pact: Pact, place: int, tags: tuple[str, ...] = ()) -> Descriptor:
    return Descriptor.signed(key_of(place), pact.digest, address_of(place), 0, tags, True)


class NotingPurse:
    """So many aggregations; notes for each group whether it was paid, and that no two are held at
    the same time: whoever reserves is in a group."""

    def __init__(self, aggregations: int = 5) -> None:
        self.total = aggregations
        self.held: set[str] = set()
        self.paid: dict[str, str | None] = {}
        self.given_back: list[str] = []

    @property
    def able(self) -> bool:
        return len(self.paid) + len(self.held) < self.total

    def budget(self, group: str) -> _Noted:
        return _Noted(self, group)


class _Noted:
    def __init__(self, purse: NotingPurse, group: str) -> None:
        self._purse, self._group, self._spent = purse, group, False

    def belongs_to(self, identity: str) -> None: ...

    def reserve(self, number: int) -> None:
        if self._group in self._purse.held:
            return
        assert not self._purse.held, "in two groups at a time"
        if not self._purse.able:
            raise Refused("no budget is left.")
        self._purse.held.add(self._group)

    def spend(self, number: int) -> None:
        assert self._group in self._purse.held, "paid without having reserved"
        self._spent = True

    def settle(self, certificate: str | None) -> None:
        if self._group in self._purse.held:
            self._purse.held.remove(self._group)
            if self._spent:
                assert self._group not in self._purse.paid, "paid twice"
                self._purse.paid[self._group] = certificate
            else:
                self._purse.given_back.append(self._group)


def peer_of(
    pact: Pact, place: int, purse: Any = None, local: Local | None = LOCAL, **more: Any
) -> Peer:
    more.setdefault("randomness", SeededRandomness(f"peer {place}"))
    return Peer(
        pact,
        key_of(place),
        address_of(place),
        Library(MEMORY, pact.digest),
        NotingPurse() if purse is None else purse,
        local,
        more.pop("now", 0.0),
        **more,
    )


NUMBERS = count()  # no two members draw alike


def member_of(
    pact: Pact,
    place: int,
    initiator: int = 0,
    tag: str = "",
    purse: NotingPurse | None = None,
    number: int | None = None,
) -> Membership:
    """Somebody who has accepted an invitation to the group."""
    budget = (purse or NotingPurse()).budget(GROUP)
    own = descriptor_of(pact, place, (tag,) if tag else ())
    return Membership(
        pact,
        GROUP,
        tag,
        key_of(initiator).public_key,
        key_of(place),
        own,
        LOCAL,
        budget,
        0.0,
        lambda event, **fields: None,
        SeededRandomness(f"member {place} {next(NUMBERS) if number is None else -number}"),
    )


def begun_group(pact: Pact) -> list[Membership]:
    """Members 0 … g − 1, brought together by the first, about to run the aggregation."""
    members = {key_of(i).public_key: member_of(pact, i) for i in range(pact.group_size)}
    own = members[key_of(0).public_key]
    others = [m.seat.descriptor for m in members.values() if m is not own]
    initiation = Initiation(own, own.seat.descriptor, lambda number, without: others[:number])
    letters = initiation.start()
    while letters:
        to, letter = letters.pop(0)
        letters += initiation.told(to, reply_of(members[to.key], letter), 0.0)
    assert initiation.is_over
    assert not initiation.failed
    return list(members.values())


def reply_of(member: Membership, letter: Letter) -> Letter:
    """What an honest member answers its initiator."""
    match letter.kind:
        case "invite":
            return Letter("accept", 0, write(Accept(member.seat)))
        case "form":
            reveal: Reveal = member.form(read(Form, letter.body).seats, 0.0)
            return Letter("reveal", 0, write(reveal))
        case _:
            begin = read(Begin, letter.body)
            member.begin(begin.seeds, begin.signatures, 0.0)
            return Letter("begun", 0)


def aggregated(members: list[Membership]) -> Publication:
    """What the members of a group that has begun publish."""
    (curating,) = (m for m in members if m.curator is not None)
    core = curating.curator
    assert core is not None
    now = 0.0
    while not all(member.result for member in members):
        now += PATIENCE / 10
        assert now < 10 * PATIENCE
        for member in members:
            for letter in member.turns(now):
                core.tick(now)
                member.told(letter, core.answer(member.seat.party, letter, now), now)
    found = [member.result for member in members]
    assert all(one == found[0] for one in found)
    assert found[0] is not None
    return found[0]
