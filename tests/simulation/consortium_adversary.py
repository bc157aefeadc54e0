"""A curator and members who do as a seed says, against honest parties: what the parties said is
written down, and with it which masks and seeds the adversary holds."""

from __future__ import annotations

import dataclasses
import random
import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "channels" / "consortium"))

from deviating import SEED, SIZE, same_secret, study_for
from protocol_runs import CURATOR, KEYS

from tacit.channels.consortium.joint import (
    AllPosted,
    Evidence,
    JointParty,
    Keys,
    Masked,
    Posted,
    Revealed,
    committed,
    mask_seed,
    released,
    transcript,
)
from tacit.channels.consortium.journals import PartyJournal
from tacit.channels.consortium.letters import Answer, Result, Roster, Turn
from tacit.channels.consortium.local_model import Local
from tacit.channels.consortium.party import Party
from tacit.channels.consortium.protocols import certified, terms_of
from tacit.channels.consortium.run import Key, KeyList, Run
from tacit.channels.roles.letters import Letter, read, write
from tacit.channels.roles.store import MEMORY
from tacit.crypto.boxes import BoxKey, is_public_key
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.sharing import expand
from tacit.crypto.signing import SigningKey, digest
from tacit.errors import Refused, TacitError
from tacit.privacy.certificate import Certificate
from tacit.programs.model_file import model_bytes

TURNS = 60
DATE = datetime(2026, 1, 2, tzinfo=UTC)


class Account:
    """What a ledger knows of one party: a reservation, by whom it was drawn, and what it cost."""

    def __init__(self) -> None:
        self.drawn_by: str | None = None
        self.charges = 0

    def budget(self) -> _Budget:
        return _Budget(self)


class _Budget:
    def __init__(self, account: Account) -> None:
        self._account, self._identity = account, ""

    def belongs_to(self, identity: str) -> None:
        self._identity = identity

    def reserve(self, number: int) -> bool:
        drawn = self._account.drawn_by
        if drawn not in (None, self._identity):
            raise Refused("another journal has drawn.")
        return drawn is not None

    def spend(self, number: int) -> None:
        if self._account.drawn_by is None:
            self._account.drawn_by = self._identity
            self._account.charges += 1

    def settle(self, certificate: str | None) -> None:
        self._account.drawn_by = None


@dataclass
class Row:
    """One masked vector that left: whose it is, and what hides it."""

    run: Run[Any]
    own: str
    keys: KeyList
    own_mask: bytes
    seeds: dict[str, bytes]


@dataclass
class Plan:
    """An attempt as the adversary would like it."""

    run: Run[Any]
    kind: str
    boxes: dict[str, BoxKey] = field(default_factory=dict)
    keys: dict[str, dict[str, Key]] = field(default_factory=dict)  # as shown to each party
    words: dict[str, dict[str, Posted]] = field(default_factory=dict)
    vectors: dict[str, bytes] = field(default_factory=dict)


class Honest:
    """A party that follows the protocol, through its lives."""

    def __init__(self, world: Adversary, key: SigningKey) -> None:
        self.world, self._key, self.key, self.account = world, key, key.public_key, Account()
        self.vector = np.full(SIZE, 0.1)
        self.results: list[tuple[bytes, Certificate, bool]] = []
        self.fresh()

    def fresh(self) -> None:
        """With an empty journal: the first start, or a folder that was lost."""
        self.journal = PartyJournal(MEMORY, self.world.study.digest)
        self.start()

    def start(self) -> None:
        local, self.party = Local(self.vector, 50), None
        world = self.world
        arguments = (world.study, self._key, self.journal, local, self.account.budget())
        try:
            self.party: Party | None = Party(*arguments, seed=lambda: world.chance.randbytes(32))
        except TacitError:
            world.seen["start refused"] += 1
            if self.account.drawn_by is not None:
                return  # nothing can be said any more by this one
            raise

    def turn(self) -> tuple[Letter, Turn] | None:
        """What it says now. All of it is heard."""
        if self.party is None or self.party.is_over:
            return None
        self.party._asked = False
        ((_, letter),) = self.party.tick()
        said = read(Turn, letter.body)
        if said.body:
            self.world.hear(self, said)
        return letter, said

    def told(self, kind: str, body: bytes) -> None:
        found = self.turn()
        if found is None or self.party is None:
            return
        revealed = self.party._journal.revealed() is not None
        try:
            self.party.told(self.world.study.aggregator.key, found[0], Letter(kind, 1, body))
        except TacitError:
            self.world.seen["refused"] += 1
        if self.party.result is not None:
            self.results.append((*self.party.result, revealed))
            self.world.seen["accepted"] += 1
        self.turn()


class Adversary:
    """The curator, and as many members as the study takes into account."""

    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        self.chance = chance = random.Random(f"deviating {seed}")
        self.parties = chance.choice([3, 4, 5])
        self.colluding = chance.randint(1, self.parties - 2)
        minimum = chance.randint(self.colluding + 2, self.parties)
        self.study = study_for(self.parties, self.colluding, minimum)
        self.corrupt = {
            k.public_key: k for k in chance.sample(KEYS[: self.parties], self.colluding)
        }
        self.seen = Counter[str]()
        self.rows: dict[str, Row] = {}  # by the digest of the masked vector
        self.sent: dict[str, Masked] = {}
        self.bodies: dict[tuple[str, bytes, int], list[bytes]] = {}
        self.reveals: dict[str, dict[bytes, Revealed]] = {}
        self.boxes: dict[str, BoxKey] = {}
        self._spy(patch)
        self.honest = [
            Honest(self, k) for k in KEYS[: self.parties] if k.public_key not in self.corrupt
        ]
        self.plans = [self._plan(1)]

    def _spy(self, patch: pytest.MonkeyPatch) -> None:
        """Note what hides each vector, as its owner has computed it."""
        world, original = self, JointParty._masked

        def spied(side: JointParty, received: Keys) -> Masked:
            masked, own, keys = original(side, received), side._key.public_key, side._keys
            assert keys is not None
            others = [party for party in keys.by_party if party != own]
            seeds = {o: mask_seed(side._run, side._box, keys, own, o) for o in others}
            world.rows[masked.posted.vector] = Row(side._run, own, keys, side._own_mask, seeds)
            return masked

        patch.setattr(JointParty, "_masked", spied)

    def hear(self, party: Honest, said: Turn) -> None:
        assert party.party is not None
        attempt = party.party._attempt
        assert attempt is not None
        context = Run(self.study, terms_of(self.study, attempt.roster), attempt.number).context
        bodies = self.bodies.setdefault((party.key, context, said.step), [])
        if said.body not in bodies:
            bodies.append(said.body)
        if said.step == 2:
            masked = read(Masked, said.body)
            self.sent[masked.posted.vector] = masked
        if said.step == 3:
            found = self.reveals.setdefault(party.key, {})
            found[said.body] = read(Revealed, said.body)
            assert len(found) <= party.account.charges, "a reveal that nobody has paid for"

    # ── what it does ──

    def play(self) -> None:
        for _ in range(TURNS):
            party = self.chance.choice(self.honest)
            action = self.chance.random()
            if action < 0.04:
                self._crash(party)
            elif action < 0.05 and self.reveals:
                self._all_lost()
            elif action < 0.08:
                self._garbage(party)
            elif action < 0.12 and len(self.plans) < 6:
                self.plans.append(self._plan(self.chance.randint(1, len(self.plans) + 1)))
            else:
                self._go_on(party, self.plans[-1] if self.chance.random() < 0.9 else self._any())

    def _any(self) -> Plan:
        return self.chance.choice(self.plans)

    def _plan(self, number: int) -> Plan:
        least = self.study.take_part.minimum
        names = [key.public_key for key in KEYS[: self.parties]]
        size = self.chance.randint(least, self.parties)
        roster = tuple(sorted(self.chance.sample(names, size)))
        kinds = ["fresh"] * 6 + ["copy", "twin", "split", "old", "weak", "unsigned"]
        return Plan(
            Run(self.study, terms_of(self.study, roster), number), self.chance.choice(kinds)
        )

    def _crash(self, party: Honest) -> None:
        """Killed and started again: with its journal, with other records, or without a journal."""
        kind = self.chance.choice(["again", "again", "changed", "lost"])
        self.seen[kind] += 1
        if kind == "changed":
            party.vector = np.full(SIZE, self.chance.uniform(-0.9, 0.9))
        if kind == "lost":
            party.fresh()
        else:
            party.start()

    def _all_lost(self) -> None:
        """Everybody's folder, after somebody has revealed: nobody would refuse to begin anew."""
        for party in self.honest:
            party.fresh()
        self.plans.append(self._plan(1))

    def _garbage(self, party: Honest) -> None:
        kind = self.chance.choice(["roster", "answer", "model", "wait"])
        body = self.chance.randbytes(self.chance.randint(0, 40))
        if self.chance.random() < 0.5:
            body = write(Answer(self.chance.randint(0, 4), body))
        if kind == "roster" and self.chance.random() < 0.5:
            names = [*self.chance.sample([k.public_key for k in KEYS], 3), "00" * 32]
            body = write(Roster(self.chance.randint(0, 9), self.chance.sample(names, 3)))
        party.told(kind, body)

    def _go_on(self, party: Honest, plan: Plan) -> None:
        found = party.turn()
        if found is None or party.party is None or party.key not in plan.run.terms.roster:
            return
        attempt = party.party._attempt
        here = attempt is not None and (attempt.number, attempt.roster) == (
            plan.run.attempt,
            plan.run.terms.roster,
        )
        step = found[1].step if here else 0
        if step == 0:
            roster = Roster(plan.run.attempt, list(plan.run.terms.roster))
            party.told("roster", write(roster))
        elif step == 1 and (keys := self._keys(party, plan)) is not None:
            party.told("answer", write(Answer(1, write(Keys(keys)))))
        elif step == 2 and (words := self._words(party, plan)) is not None:
            party.told("answer", write(Answer(2, write(AllPosted(words)))))
        elif step == 3:
            party.told("model", write(self._result(party, plan)))

    # ── step 1: keys ──

    def _keys(self, party: Honest, plan: Plan) -> dict[str, Key] | None:
        keys: dict[str, Key] = {}
        for name in plan.run.terms.roster:
            if name not in self.corrupt:
                bodies = self.bodies.get((name, plan.run.context, 1))
                if not bodies:
                    return None
                old = plan.kind == "old" and self.chance.random() < 0.5
                keys[name] = read(Key, self.chance.choice(bodies) if old else bodies[-1])
        for name in plan.run.terms.roster:
            if name in self.corrupt:
                keys[name] = self._own_key(plan, name, keys)
        plan.keys[party.key] = keys
        return keys

    def _own_key(self, plan: Plan, name: str, others: dict[str, Key]) -> Key:
        victim = self.chance.choice([k for n, k in others.items() if n not in self.corrupt]).public
        if plan.kind == "split" or name not in plan.boxes:
            plan.boxes[name] = box = BoxKey(SeededRandomness(self.chance.getrandbits(64)))
            self.boxes[box.public] = box
        public = {
            "copy": victim,
            "twin": same_secret(victim),
            "weak": (1).to_bytes(32, "little").hex(),
        }.get(plan.kind, plan.boxes[name].public)
        signer = CURATOR if plan.kind == "unsigned" else self.corrupt[name]
        return plan.run.signed_key(
            signer, public, self.chance.random() < 0.95 or plan.kind != "split"
        )

    # ── step 2: words ──

    def _words(self, party: Honest, plan: Plan) -> dict[str, Posted] | None:
        words: dict[str, Posted] = {}
        keys = KeyList(plan.keys.get(party.key, {}))
        for name in plan.run.terms.roster:
            if name in self.corrupt:
                words[name] = self._own_word(plan, name, keys)
                continue
            bodies = self.bodies.get((name, plan.run.context, 2))
            if not bodies:
                return None
            body = bodies[-1] if self.chance.random() < 0.9 else self.chance.choice(bodies)
            words[name] = read(Masked, body).posted
        if self.chance.random() < 0.05:
            words.pop(self.chance.choice(sorted(words)))
        plan.words[party.key] = words
        return words

    def _own_word(self, plan: Plan, name: str, keys: KeyList) -> Posted:
        vector = self._own_vector(plan, name, keys)
        if self.chance.random() < 0.05:
            vector = self.chance.randbytes(8 * SIZE)
        plan.vectors[name] = vector
        word = Posted(digest(vector), committed(plan.run.context, name, SEED), "")
        signed = self.corrupt[name].sign(plan.run.said("vector", word.content(keys)))
        return msgspec.structs.replace(word, signature=signed)

    def _own_vector(self, plan: Plan, name: str, keys: KeyList) -> bytes:
        """Zero, masked as it should be where it can be."""
        total, box = expand(SEED, SIZE, plan.run.context), plan.boxes.get(name)
        for other in plan.run.terms.roster if box is not None else ():
            key = keys.by_party.get(other)
            if other != name and key is not None and is_public_key(key.public):
                assert box is not None
                seed = mask_seed(plan.run, box, keys, name, other)
                mask = expand(seed, SIZE, plan.run.context)
                total = total + mask if other > name else total - mask
        return bytes(total.astype("<u8").tobytes())

    # ── step 3: the result ──

    def _result(self, party: Honest, plan: Plan) -> Result:
        run, roster = plan.run, plan.run.terms.roster
        keys, words = KeyList(plan.keys.get(party.key, {})), plan.words.get(party.key, {})
        revealed: dict[str, Revealed] = {}
        vectors: dict[str, bytes] = {}
        for name in roster:
            bodies = self.bodies.get((name, run.context, 3))
            if name in self.corrupt:
                said = self.corrupt[name].sign(run.said("reveal", transcript(keys, words)))
                statement = self.corrupt[name].sign(run.statement(keys.secure))
                revealed[name] = Revealed(SEED, said, statement, keys.secure)
                vectors[name] = plan.vectors.get(name, b"")
            elif bodies and name in words and words[name].vector in self.sent:
                revealed[name] = read(Revealed, bodies[-1])
                vectors[name] = self.sent[words[name].vector].vector
        evidence = Evidence(
            vectors,
            {name: word.seed for name, word in revealed.items()},
            {name: word.received for name, word in revealed.items()},
        )
        last = {name: write(word) for name, word in revealed.items()}
        try:
            model = released(run, evidence)
            certificate = certified(self.study, run.terms, model, last).signed(CURATOR, DATE)
        except (TacitError, KeyError, ValueError):
            return Result(b"", "{}", write(evidence))
        return self._perhaps_rewritten(Result(model, certificate.to_json(), write(evidence)))

    def _perhaps_rewritten(self, result: Result) -> Result:
        certificate, kind = Certificate.from_json(result.certificate), self.chance.random()
        if kind < 0.6:
            return result
        if kind < 0.8:
            changes: list[dict[str, Any]] = [
                {"trust": "Nobody."},
                {"program": "something 1"},
                {"schema_digest": "00" * 32},
                {"remarks": ("Good.",)},
                {"library": "mine"},
                {"witnesses": certificate.witnesses[:-1]},
            ]
            forged = dataclasses.replace(certificate, **self.chance.choice(changes))
            return msgspec.structs.replace(
                result, certificate=forged.signed(CURATOR, DATE).to_json()
            )
        program, schema = self.study.averaged(), self.study.schema
        values = np.array([self.chance.choice([0.1, 1e9, float("nan")]) for _ in range(SIZE)])
        model = model_bytes(program.model(values, schema), program, schema)
        forged = dataclasses.replace(certificate, subject=digest(model)).signed(CURATOR, DATE)
        return msgspec.structs.replace(result, model=model, certificate=forged.to_json())
