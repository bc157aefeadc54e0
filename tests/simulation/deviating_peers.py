"""Somebody with several keys who deviates: as initiator, member, curator and library server."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
from small_network import LOCAL, address_of, key_of

from tacit.channels.consortium.curator import Curator
from tacit.channels.consortium.journals import CuratorJournal, PartyJournal
from tacit.channels.consortium.letters import Answer, Roster
from tacit.channels.consortium.party import Party
from tacit.channels.peers.descriptors import Descriptor
from tacit.channels.peers.letters import (
    Accept,
    Begin,
    Form,
    Gossip,
    Invite,
    Models,
    Off,
    Reveal,
    Seat,
    Want,
)
from tacit.channels.peers.pact import Pact
from tacit.channels.peers.publication import Publication
from tacit.channels.peers.seats import (
    curator_of,
    group_study,
    reveal_signature,
    seated,
    seats_digest,
)
from tacit.channels.peers.view import Sighting
from tacit.channels.roles.budget import NoBudget
from tacit.channels.roles.letters import Finished, Letter, read, write
from tacit.channels.roles.store import MEMORY
from tacit.channels.studies.study import Study
from tacit.crypto.signing import SigningKey, digest
from tacit.errors import TacitError, Unreachable
from tacit.privacy.certificate import Certificate
from tacit.programs.model_file import model_bytes, model_from_bytes

Ask = Callable[[str, str, Letter], Letter | TacitError]  # sender, an honest peer, what
FIRST = 20  # the place of its first key
NOBODY = Unreachable("nobody answers there.")


class Chair:
    """One of its seats: with keys and seed as an honest member has them, or copied from others."""

    def __init__(self, pact: Pact, key: SigningKey, own: Descriptor, group: str, name: str) -> None:
        self.key, self.party = key, key_of(f"party {name}")
        self.seed = key_of(f"seed {name}").private_digest(b"seed")[:32]
        self.seat = seated(pact, group, "", key, own, self.party.public_key, self.seed)
        self.side: Party | None = None

    def reveal(self, group: str, listed: str) -> Reveal:
        return Reveal(group, self.seed, reveal_signature(self.party, listed, self.seed))


class Deviator:
    """`ask` carries its letters to honest peers. All its choices follow from `chance`."""

    def __init__(self, pact: Pact, chance: random.Random, ask: Ask, name: str) -> None:
        self.pact, self.chance, self._ask, self._name = pact, chance, ask, name
        keys = [key_of(FIRST + place) for place in range(pact.group_size)]
        self.keys = {key.public_key: key for key in keys}
        self.now = 0.0
        self.chairs: dict[str, list[Chair]] = {}  # by group
        self.curators: dict[str, Curator] = {}  # by study
        self.sides: list[tuple[str, Chair]] = []  # study, and who is to take turns in it
        self.collected: list[bytes] = []  # publications that it has seen
        self.did: list[str] = []

    def descriptor(self, key: SigningKey) -> Descriptor:
        place = FIRST + list(self.keys).index(key.public_key)
        moment = round(1000 * self.now)
        return Descriptor.signed(key, self.pact.digest, address_of(place), moment, (), True)

    def _often(self, likely: float) -> bool:
        return self.chance.random() < likely

    def _pick(self, name: str, *choices: Any) -> Any:
        """One of these; what it chose is noted, to read when a run fails."""
        found = self.chance.randrange(len(choices))
        self.did.append(f"{name} {found}")
        return choices[found]

    def _chair(self, group: str, key: SigningKey) -> Chair:
        name = f"{self._name} {group} {len(self.did)} {len(self.chairs.get(group, []))}"
        made = Chair(self.pact, key, self.descriptor(key), group, name)
        self.chairs.setdefault(group, []).append(made)
        return made

    # ── as initiator ──

    def initiate(self, honest: Sequence[str], group: str) -> None:
        """A group with `honest` and keys of its own, which it may form, begin or leave."""
        own = list(self.keys.values())[: self.pact.group_size - len(honest)]
        first = own[0]
        invite = Letter("invite", 0, write(Invite(group, "", self.descriptor(first))))
        seats = []
        for peer in honest:
            reply = self._ask(first.public_key, peer, invite)
            if isinstance(reply, Letter) and reply.kind == "accept":
                seats.append(read(Accept, reply.body).seat)
        if self._often(0.1):
            return self._off(first, honest, group)
        chairs = [self._chair(group, key) for key in own]
        lists = self._lists(group, _in_order([*seats, *(chair.seat for chair in chairs)]), chairs)
        shown = {peer: lists[number % len(lists)] for number, peer in enumerate(honest)}
        said = self._formed(first, group, shown, lists)
        if self._often(0.1):
            return self._off(first, honest, group)
        return self._begun(first, group, shown, said)

    def _off(self, first: SigningKey, honest: Sequence[str], group: str) -> None:
        for peer in honest:
            self._ask(first.public_key, peer, Letter("off", 0, write(Off(group))))

    def _lists(self, group: str, seats: list[Seat], chairs: list[Chair]) -> list[list[Seat]]:
        """What it shows: mostly the same to all; different lists; or something that is none."""
        first, own = chairs[0].key, chairs[0].seat.descriptor
        others = [seat for seat in seats if seat != chairs[0].seat]
        other = self._chair(group, first).seat
        swapped = _in_order([*others, other])
        stale = [msgspec.structs.replace(s, descriptor=self.descriptor(first)) for s in seats]
        copied = seated(self.pact, group, "", first, own, seats[0].party, b"c" * 32)
        forged = [msgspec.structs.replace(s, commitment="00" * 32) for s in seats]
        none = [
            seats[1:],
            seats[::-1],
            stale,
            _in_order([*others, copied]),
            forged,
            [*seats, other],
        ]
        found: list[list[Seat]] = self._pick(
            "list", [seats], [seats], [seats], [seats], [seats, swapped], [seats, swapped],
            [swapped, seats], *([one] for one in [*none, [*seats, other], []]),
        )  # fmt: skip
        return found

    def _formed(
        self, first: SigningKey, group: str, shown: dict[str, list[Seat]], lists: list[list[Seat]]
    ) -> dict[str, Reveal]:
        found = {}
        for peer, seats in shown.items():
            for _ in range(self._pick("again", 1, 1, 2)):
                letter = Letter("form", 0, write(Form(group, seats)))
                reply = self._ask(first.public_key, peer, letter)
                if isinstance(reply, Letter) and reply.kind == "reveal":
                    found[peer] = read(Reveal, reply.body)
            if self._often(0.2):  # a second list after the first
                letter = Letter("form", 0, write(Form(group, self.chance.choice(lists))))
                self._ask(first.public_key, peer, letter)
        return found

    def _begun(
        self,
        first: SigningKey,
        group: str,
        shown: dict[str, list[Seat]],
        said: dict[str, Reveal],
    ) -> None:
        own = {chair.seat.party: chair for chair in self.chairs[group]}
        kind = self._pick("begin", *[0] * 6, 1, 2, 3, 4, 5)
        for peer, seats in shown.items():
            listed = seats_digest(self.pact, group, seats)
            reveals = [
                own[seat.party].reveal(group, listed)
                if seat.party in own
                else said.get(seat.descriptor.key, Reveal(group, b"x" * 32))
                for seat in seats
            ]
            seeds, signed = [r.seed for r in reveals], [r.signature for r in reveals]
            variants = [
                (seeds, signed), (seeds[::-1], signed[::-1]), (seeds, signed[::-1]), (seeds, []),
                ([], []), ([b"y" * 32, *seeds[1:]], signed),
            ]  # fmt: skip
            if self._often(0.95):
                begin = Begin(group, *variants[kind])
                self._ask(first.public_key, peer, Letter("begin", 0, write(begin)))
            self._take_sides(group, seats, seeds, [c for c in own.values() if c.seat in seats])

    def _take_sides(
        self, group: str, seats: list[Seat], seeds: Sequence[bytes], chairs: list[Chair]
    ) -> None:
        try:
            place = curator_of(self.pact, group, seats, seeds)
            study = group_study(self.pact, group, seats, place)
        except (TacitError, IndexError):
            return
        drawn = seats[place].descriptor.key
        if drawn in self.keys:
            self._curate(study, self.keys[drawn])
        for chair in chairs:
            self._sit(study, chair)

    def _curate(self, study: Study, key: SigningKey) -> None:
        if study.digest in self.curators:
            return
        journal = CuratorJournal(MEMORY, study.digest)
        self.curators[study.digest] = Curator(study, key, journal, self.now)

    def _sit(self, study: Study, chair: Chair) -> None:
        if self._often(0.8) and chair.side is None:
            journal = PartyJournal(MEMORY, study.digest)
            chair.side = Party(study, chair.party, journal, LOCAL, NoBudget())
            self.sides.append((study.digest, chair))

    # ── as member of others' groups ──

    def answer(self, to: str, letter: Letter) -> Letter | TacitError:
        """What it says to honest initiators and neighbours."""
        if self._often(0.1):
            return self._pick(
                "silent", NOBODY, Letter(letter.kind, 0, b"\xff"), Letter("accept", 0)
            )
        key = self.keys[to]
        match letter.kind:
            case "invite":
                chair = self._chair(read(Invite, letter.body).group, key)
                return Letter("accept", 0, write(Accept(chair.seat)))
            case "form":
                form = read(Form, letter.body)
                listed = seats_digest(self.pact, form.group, form.seats)
                chair = self._own(form.group, to)
                reveal = chair.reveal(form.group, listed)
                bad = msgspec.structs.replace(reveal, seed=b"z" * 32)
                shown = self._pick("reveal", reveal, reveal, reveal, reveal, bad)
                self._forms[form.group] = form.seats
                return Letter("reveal", 0, write(shown))
            case "begin":
                begin = read(Begin, letter.body)
                seats = self._forms.get(begin.group, [])
                self._take_sides(begin.group, seats, begin.seeds, [self._own(begin.group, to)])
                return Letter("begun", 0)
            case "gossip":
                return Letter("gossip", 0, write(self._offer(key)))
            case "models":
                return self._models(read(Want, letter.body).ids)
            case _:
                return Letter("noted", 0)

    @property
    def _forms(self) -> dict[str, list[Seat]]:
        return self.__dict__.setdefault("_shown", {})

    def _own(self, group: str, key: str) -> Chair:
        return next(c for c in reversed(self.chairs[group]) if c.seat.descriptor.key == key)

    # ── as curator, and as party ──

    def curated(self, study: str, sender: str, letter: Letter) -> Letter | TacitError:
        """Its answer to an honest party's turn."""
        core = self.curators.get(study)
        if core is None or self._often(0.05):
            return NOBODY
        try:
            core.tick(self.now)
            reply = core.answer(sender, letter, self.now)
            core.tick(self.now)
        except TacitError as error:
            return error
        if reply.kind == "roster" and self._often(0.3):
            return self._other_roster(core.study, reply)
        if reply.kind == "answer" and self._often(0.08):
            said = read(Answer, reply.body)
            body = self._pick("answer", b"", b"\xff", said.body[:-1], said.body + b"x")
            return Letter("answer", reply.round, write(Answer(said.step, body)))
        if reply.kind == "model":
            return self._result(core, reply)
        return reply

    def _other_roster(self, study: Study, reply: Letter) -> Letter:
        said = read(Roster, reply.body)
        cut = sorted(self.chance.sample(said.parties, self.pact.colluding + 2))
        few, strange = said.parties[:2], sorted([*said.parties[1:], key_of("x").public_key])
        parties = self._pick("roster", cut, cut, few, strange, said.parties[::-1], [])
        number = self._pick("attempt", said.attempt, said.attempt + 1, 0)
        return Letter("roster", reply.round, write(Roster(number, parties)))

    def _result(self, core: Curator, reply: Letter) -> Letter:
        said = read(Finished, reply.body)
        signer = self.keys[core.study.aggregator.key]
        if self._often(0.3):
            return reply
        if self._often(0.2):
            again = self._pick("again", Letter("roster", reply.round, write(Roster(9, []))), NOBODY)
            return again if isinstance(again, Letter) else reply
        model, text = self.altered(said.model, said.certificate, signer)
        return Letter("model", reply.round, write(Finished(model, text)))

    def altered(self, model: bytes, text: str, signer: SigningKey) -> tuple[bytes, str]:
        """A model or a certificate that the group has not made, properly signed."""
        saved = model_from_bytes(model)
        coef, schema = saved.model.coef, saved.schema
        change = dataclasses.replace
        models = [
            b"not a model", b"", model + b"\0", model[:-1],
            self._bytes(change(saved.model, classes=("a", "b")), schema),
            self._bytes(change(saved.model, classes=saved.model.classes[::-1]), schema),
            self._bytes(change(saved.model, coef=np.vstack([coef, coef + 1e9])), schema),
            self._bytes(change(saved.model, coef=coef / 2), schema),  # as short as honest ones
            self._bytes(change(saved.model, coef=coef * 1e9), schema),
            self._bytes(change(saved.model, coef=coef * np.nan), schema),
            self._bytes(change(saved.model, intercept=np.zeros(2)), schema),
            self._bytes(change(saved.model, coef=coef.astype(np.float32)), schema),
        ]  # fmt: skip
        certificate = Certificate.from_json(text)
        part = certificate.participation
        assert part is not None
        words: list[dict[str, Any]] = [
            {"trust": "Nobody."}, {"remarks": ("Best of all.",)}, {"secure_randomness": True},
            {"promise": dataclasses.replace(certificate.promise, epsilon=0.5)},
            {"participation": dataclasses.replace(part, holders=part.holders + 1)},
            {"witnesses": certificate.witnesses[1:]}, {"witnesses": certificate.witnesses[::-1]},
            {"accountant": "me"}, {"program": "x"}, {"library": "<b>"}, {"study": "ab" * 32},
            {"conditions": ("none",)}, {"releases": certificate.releases * 2},
        ]  # fmt: skip
        kind = self._pick("result", "model", "model", "words", "both")
        changed = self._pick("model", *models) if kind != "words" else model
        said = self._pick("words", *words) if kind != "model" else {}
        try:
            made = change(certificate, **{**said, "subject": digest(changed)}).signed(signer)
            return changed, made.to_json()
        except TacitError:
            return changed, text

    def _bytes(self, model: Any, schema: Any) -> bytes:
        return model_bytes(model, self.pact.averaged, schema)

    def turns(self, curators: Callable[[str, str, Letter], Letter | TacitError]) -> None:
        """Its own parties' steps, in groups that honest peers, or itself, are curators of."""
        for study, chair in self.sides:
            side = chair.side
            if side is None or side.is_over:
                continue
            for to, letter in side.tick():
                if self._often(0.04):
                    letter = Letter("turn", letter.round, b"\xff" * self.chance.randrange(40))
                party = chair.party.public_key
                own = to in self.keys
                reply = (
                    self._honestly(study, party, letter) if own else curators(study, party, letter)
                )
                try:
                    side.told(to, letter, reply)
                except TacitError:
                    chair.side = None

    def _honestly(self, study: str, party: str, letter: Letter) -> Letter | TacitError:
        core = self.curators[study]
        try:
            core.tick(self.now)
            return core.answer(party, letter, self.now)
        except TacitError as error:
            return error

    # ── as a server of its library ──

    def _offer(self, key: SigningKey) -> Gossip:
        own = self.descriptor(key)
        names = [digest(["name", i]) for i in range(3)] + [""]
        for body in self.collected[:3]:
            names.append(read(Publication, body).id)
        has = dict.fromkeys(names, "")
        view = self._pick("view", [Sighting(own, 0)], [Sighting(own, 5)], [])
        return Gossip(view, has, dict.fromkeys(names, "other"))

    def _models(self, wanted: list[str]) -> Letter:
        bodies = [b"", b"\xff", b"\x80", *self.collected]
        for body in self.collected[:2]:
            found = read(Publication, body)
            signer = next(iter(self.keys.values()))
            model, text = self.altered(found.model, found.certificate, signer)
            change = msgspec.structs.replace
            bodies += [
                write(change(found, model=model, certificate=text)),
                write(change(found, group="cd" * 32)),
                write(change(found, seats=found.seats[::-1])),
                write(change(found, seats=self._renamed(found))),
                write(change(found, seeds=found.seeds[1:])),
                body + b"\xc0",
            ]
        self.chance.shuffle(bodies)
        return Letter("models", 0, write(Models(bodies[:16])))

    def _renamed(self, found: Publication) -> list[Seat]:
        """The same party keys, said to be its own."""
        seats = []
        for key, seat in zip(self.keys.values(), found.seats, strict=False):
            own = self.descriptor(key)
            seats.append(seated(self.pact, found.group, "", key, own, seat.party, b"r" * 32))
        return _in_order(seats)

    def noise(self) -> tuple[str, Letter]:
        """A letter that means nothing."""
        kind = self.chance.choice(["gossip", "models", "invite", "form", "begin", "off", "what"])
        body = self.chance.randbytes(self.chance.randrange(60))
        good = [write(Want(["x"])), write(Off("5a" * 32)), write(Form("5a" * 32, [])), body]
        return self.chance.choice(list(self.keys)), Letter(kind, 0, self.chance.choice(good))


def _in_order(seats: Sequence[Seat]) -> list[Seat]:
    return sorted(seats, key=lambda seat: seat.descriptor.key)
