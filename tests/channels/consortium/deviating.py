"""A curator and members in the hands of a test, who speak to honest parties as they please."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from protocol_runs import CURATOR, KEYS, VectorAverage, study_of

from tacit.channels.consortium.joint import (
    AllPosted,
    Evidence,
    Keys,
    Masked,
    Posted,
    Revealed,
    committed,
    released,
    transcript,
)
from tacit.channels.consortium.journals import PartyJournal
from tacit.channels.consortium.letters import Answer, Result, Roster, Turn
from tacit.channels.consortium.local_model import Local
from tacit.channels.consortium.party import Party
from tacit.channels.consortium.protocols import certified, check_consortium, terms_of
from tacit.channels.consortium.run import Key, KeyList, Run
from tacit.channels.roles.letters import Letter, read, write
from tacit.channels.roles.store import MEMORY
from tacit.channels.studies.study import Consortium, Study, TakePart
from tacit.crypto.boxes import BoxKey
from tacit.crypto.signing import SigningKey, digest
from tacit.privacy.certificate import Certificate
from tacit.privacy.promise import Promise
from tacit.programs.model_file import model_bytes

PRIME = 2**255 - 19
SIZE = 4
SEED = bytes(32)  # a corrupt member's own mask


def copied(key: str) -> str:
    return key


def same_secret(key: str) -> str:
    """The point plus the one of order two, (0, 0): u becomes 1/u, and since secret scalars are
    multiples of 8 (RFC 7748, 5), every shared secret stays what it was."""
    u = int.from_bytes(bytes.fromhex(key), "little")
    return pow(u, -1, PRIME).to_bytes(32, "little").hex()


class Purse:
    def __init__(self) -> None:
        self.spent, self.settled = 0, list[str | None]()

    def belongs_to(self, identity: str) -> None: ...

    def reserve(self, number: int) -> None: ...

    def spend(self, number: int) -> None:
        self.spent += 1

    def settle(self, certificate: str | None) -> None:
        self.settled.append(certificate)


def study_for(parties: int, colluding: int, minimum: int | None = None) -> Study:
    plain = study_of("joint", parties, SIZE, Promise(1.0, 1e-6))
    study = msgspec.structs.replace(
        plain,
        consortium=Consortium(colluding=colluding, smallest=1),
        take_part=TakePart(minimum=minimum or parties, maximum=parties, records=100),
    )
    study.__dict__["_averaged"] = VectorAverage(SIZE)
    return study


class Desk:
    """One attempt: honest parties, corrupt members, and the curator's desk, where the test sits."""

    def __init__(self, parties: int, colluding: int, attempt: int = 1) -> None:
        self.study = study_for(parties, colluding)
        self.roster = tuple(key.public_key for key in KEYS[:parties])
        self.corrupt: Sequence[SigningKey] = KEYS[parties - colluding : parties]
        self.run: Run[Any] = Run(self.study, terms_of(self.study, self.roster), attempt)
        self.honest = [
            self._party(key, 0.1 * i) for i, key in enumerate(KEYS[: parties - colluding])
        ]
        self.shown: list[Mapping[str, Key]] = []
        self.masked: dict[str, Masked] = {}
        self.revealed: dict[str, Revealed] = {}

    def _party(self, key: SigningKey, value: float) -> Party:
        journal = PartyJournal(MEMORY, self.study.digest)
        return Party(self.study, key, journal, Local(np.full(SIZE, value), 50), Purse())

    def restart(self, party: Party) -> Party:
        """With nothing of what it knew."""
        place = self.honest.index(party)
        self.honest[place] = self._party(KEYS[place], 0.1 * place)
        return self.honest[place]

    # ── letters ──

    def turn(self, party: Party) -> Turn:
        ((_, letter),) = party.tick()
        party._asked = False
        return read(Turn, letter.body)

    def tell(self, party: Party, kind: str, body: msgspec.Struct) -> None:
        ((to, letter),) = party.tick()
        try:
            party.told(to, letter, Letter(kind, self.run.attempt, write(body)))
        finally:
            party._asked = False

    def answer(self, party: Party, step: int, body: msgspec.Struct) -> None:
        if isinstance(body, Keys):
            self.shown.append(body.by_party)
        self.tell(party, "answer", Answer(step, write(body)))

    def give(self, party: Party, result: Result) -> None:
        self.tell(party, "model", result)

    # ── an attempt, as the test wants it ──

    def gather(self) -> list[Party]:
        for party in self.honest:
            if self.turn(party).step == 0:
                self.tell(party, "roster", Roster(self.run.attempt, list(self.roster)))
        return self.honest

    def keys(self, honest: Sequence[Party]) -> dict[str, Key]:
        """Everybody's, those of the corrupt members as they should be."""
        keys = {party.key: read(Key, self.turn(party).body) for party in honest}
        own = {k.public_key: self.run.signed_key(k, BoxKey().public) for k in self.corrupt}
        return keys | own

    def mask(self, keys: Mapping[str, Key]) -> dict[str, Posted]:
        """Everybody's word of step 2, the same keys shown to all."""
        for party in self.honest:
            self.answer(party, 1, Keys(dict(keys)))
            self.masked[party.key] = read(Masked, self.turn(party).body)
        words = {name: masked.posted for name, masked in self.masked.items()}
        return words | {k.public_key: self.word(k, KeyList(keys)) for k in self.corrupt}

    def word(self, member: SigningKey, keys: KeyList, vector: bytes = b"") -> Posted:
        seed = committed(self.run.context, member.public_key, SEED)
        word = Posted(digest(vector), seed, "")
        signature = member.sign(self.run.said("vector", word.content(keys)))
        return msgspec.structs.replace(word, signature=signature)

    def all_posted(self, words: Mapping[str, Posted]) -> AllPosted:
        return AllPosted(dict(words))

    def post(self, keys: Mapping[str, Key]) -> None:
        words = self.mask(keys)
        for party in self.honest:
            self.answer(party, 2, self.all_posted(words))

    def reveal(self, party: Party) -> Revealed:
        return read(Revealed, self.turn(party).body)

    def check_nothing_revealed(self) -> None:
        for party in self.honest:
            assert self.turn(party).step < 3
            assert party._journal.revealed() is None
            budget = party._budget
            assert isinstance(budget, Purse)
            assert budget.spent == 0

    # ── results ──

    def finish(self) -> tuple[bytes, str, bytes]:
        """A whole run in which the corrupt members do as they should, but bring a zero vector."""
        boxes = {key.public_key: BoxKey() for key in self.corrupt}
        keys = self.keys(self.gather())
        for key in self.corrupt:
            keys[key.public_key] = self.run.signed_key(key, boxes[key.public_key].public)
        words, everybody = self.mask(keys), KeyList(keys)
        vectors = {}
        for key in self.corrupt:
            vectors[key.public_key] = self._masks(key, boxes[key.public_key], everybody)
            words[key.public_key] = self.word(key, everybody, vectors[key.public_key])
        for party in self.honest:
            self.answer(party, 2, self.all_posted(words))
        result = self.assembled(vectors, words)
        return result.model, result.certificate, result.evidence

    def _masks(self, key: SigningKey, box: BoxKey, keys: KeyList) -> bytes:
        from tacit.channels.consortium.joint import mask_seed
        from tacit.crypto.sharing import expand

        own, total = key.public_key, expand(SEED, SIZE, self.run.context)
        for party in self.roster:
            if party != own:
                mask = expand(mask_seed(self.run, box, keys, own, party), SIZE, self.run.context)
                total = total + mask if party > own else total - mask
        return bytes(total.astype("<u8").tobytes())

    def assembled(self, vectors: Mapping[str, bytes], words: Mapping[str, Posted]) -> Result:
        """What the curator makes of what the honest reveal and the corrupt members have."""
        keys = KeyList(self.shown[-1])
        said = self.run.said("reveal", transcript(keys, words))
        statement = self.run.statement(keys.secure)
        revealed = {party.key: self.reveal(party) for party in self.honest}
        revealed |= {
            k.public_key: Revealed(SEED, k.sign(said), k.sign(statement), keys.secure)
            for k in self.corrupt
        }
        evidence = Evidence(
            {name: masked.vector for name, masked in self.masked.items()} | dict(vectors),
            {name: word.seed for name, word in revealed.items()},
            {name: word.received for name, word in revealed.items()},
        )
        evidence = msgspec.structs.replace(
            evidence, vectors={name: evidence.vectors[name] for name in self.roster}
        )
        try:
            model = released(self.run, evidence)
        except Exception:  # a sum of masks that do not cancel: anything may be claimed of it
            model = b"no model"
        last = {name: write(word) for name, word in revealed.items()}
        certificate = certified(self.study, self.run.terms, model, last).signed(CURATOR)
        return Result(model, certificate.to_json(), write(evidence))

    def other_model(self, text: str) -> tuple[bytes, str]:
        """A model that the curator would like better, properly certified."""
        program, schema = self.study.averaged(), self.study.schema
        model = model_bytes(program.model(np.full(SIZE, 0.25), schema), program, schema)
        genuine = Certificate.from_json(text)
        forged = dataclasses.replace(genuine, subject=digest(model)).signed(CURATOR)
        return model, forged.to_json()

    def check(self, model: bytes, text: str) -> Certificate:
        return check_consortium(self.study, model, text)
