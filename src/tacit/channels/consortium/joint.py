"""tacit's protocol: masked sums, with noise that all parties draw together (joint.md).

    step 1   every party signs a fresh key                     → all keys
    step 2   its vector + its part of the noise + masks        → who has signed that theirs is here
    step 3   once *all* have: the seed of its own mask         → sum, average, model

Masks between two parties cancel in the sum. A party's own mask is taken off in step 3 only, so a
run that ends before it has released nothing, whoever works together with the curator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from tacit.channels.consortium.terms import JointTerms
from tacit.channels.federation.letters import read, write
from tacit.channels.federation.study import Study
from tacit.crypto.boxes import BoxKey
from tacit.crypto.prg import Randomness
from tacit.crypto.ring import from_ring, to_ring
from tacit.crypto.sharing import add_expansions, expand, fresh_seed
from tacit.crypto.signing import SigningKey, canonical, digest, signed_by
from tacit.errors import CheckFailed, InputError
from tacit.privacy.certificate import statement
from tacit.programs.model_file import model_bytes

__all__ = ["JointCurator", "JointParty", "Revealed", "Run"]

Words = NDArray[np.uint64]


class Key(msgspec.Struct, frozen=True):
    """A party's key for this attempt, signed by its identity."""

    public: str
    signature: str


class Keys(msgspec.Struct, frozen=True):
    by_party: dict[str, Key]


class Masked(msgspec.Struct, frozen=True):
    """A masked vector, and a signature that says: mine is here, in this attempt."""

    vector: bytes
    signature: str


class Posted(msgspec.Struct, frozen=True):
    """Everybody's word that their vector is with the curator."""

    signatures: dict[str, str]


class Revealed(msgspec.Struct, frozen=True):
    """What takes off a party's own mask, and its word on the noise that it added."""

    seed: bytes
    statement: str
    secure: bool


@dataclass(frozen=True)
class Run:
    """One attempt, as both sides know it."""

    study: Study
    terms: JointTerms
    attempt: int

    @cached_property
    def context(self) -> bytes:
        """Public bytes that no other attempt of any study has."""
        return bytes.fromhex(digest([self.study.digest, self.attempt, list(self.terms.roster)]))

    def said(self, what: str, content: str = "") -> bytes:
        """What is signed: for this study, this attempt, this roster."""
        return canonical(["tacit consortium", what, self.context.hex(), content])

    def check_all(self, what: str, signed: Mapping[str, tuple[str, str]]) -> None:
        """Everybody of the roster, and nobody else, has signed (signature, content)."""
        if set(signed) != set(self.terms.roster):
            raise CheckFailed(f"not every party of the roster has signed its {what}.")
        for party, (signature, content) in signed.items():
            if not signed_by(party, signature, self.said(what, content)):
                raise CheckFailed(f"a party's {what} is not signed by it for this attempt.")

    def statement(self, secure: bool) -> bytes:
        """What each party signs of the noise that it added."""
        terms = self.terms
        return statement(
            self.study.digest, self.study.promise, terms.releases, terms.participation, secure
        )


class JointParty:
    """One party's side."""

    def __init__(
        self, run: Run, key: SigningKey, vector: NDArray[np.float64], randomness: Randomness
    ) -> None:
        terms = run.terms
        if len(vector) != terms.length or not np.abs(vector).max() <= terms.averaged.largest(
            run.study.schema
        ):
            raise InputError("the trained vector is not as long, or not as short, as it must be.")
        self._run, self._key, self._secure = run, key, randomness.secure
        self._box, self._own_mask = BoxKey(randomness), fresh_seed(randomness)
        integers = terms.grid.encode(vector)
        if terms.mechanism is not None:
            # One part of the noise. The others draw theirs, and nobody knows the sum of all.
            integers = terms.mechanism.perturb(integers, randomness)
        self._noisy = to_ring(integers)

    def send(self, step: int, received: bytes) -> bytes:
        match step:
            case 1:
                public = self._box.public
                return write(Key(public, self._key.sign(self._run.said("key", public))))
            case 2:
                return write(self._masked(read(Keys, received)))
            case _:
                return write(self._revealed(read(Posted, received)))

    def _masked(self, keys: Keys) -> Masked:
        signed = {party: (key.signature, key.public) for party, key in keys.by_party.items()}
        self._run.check_all("key", signed)
        total = self._noisy + expand(self._own_mask, len(self._noisy), self._run.context)
        own = self._key.public_key
        for party, key in keys.by_party.items():
            if party != own:
                mask = self._pairwise(key.public, len(total))
                total = total + mask if party > own else total - mask  # each pair cancels
        return Masked(total.astype("<u8").tobytes(), self._key.sign(self._run.said("vector")))

    def _pairwise(self, other: str, length: int) -> Words:
        seed = self._box.shared(other, self._run.context, "mask")
        return expand(seed, length, self._run.context)

    def _revealed(self, posted: Posted) -> Revealed:
        """Only when everybody has signed that their vector is there."""
        signed = {party: (signature, "") for party, signature in posted.signatures.items()}
        self._run.check_all("vector", signed)
        word = self._key.sign(self._run.statement(self._secure))
        return Revealed(self._own_mask, word, self._secure)


class JointCurator:
    """The curator's side: it carries keys and words, and adds up."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._sum = np.zeros(run.terms.length, dtype=np.uint64)

    def answer(self, step: int, bodies: Mapping[str, bytes]) -> dict[str, bytes]:
        if step == 1:
            keys = {party: read(Key, body) for party, body in bodies.items()}
            told = write(Keys(keys))
        else:
            letters = {party: read(Masked, body) for party, body in bodies.items()}
            self._sum = self._added([letter.vector for letter in letters.values()])
            told = write(Posted({party: letter.signature for party, letter in letters.items()}))
        return dict.fromkeys(bodies, told)

    def _added(self, vectors: list[bytes]) -> Words:
        length = self._run.terms.length
        if any(len(vector) != 8 * length for vector in vectors):
            raise CheckFailed(f"a masked vector has not the {length} numbers that it must have.")
        rows = np.frombuffer(b"".join(vectors), dtype="<u8").reshape(-1, length)
        return np.asarray(rows.sum(axis=0, dtype=np.uint64))

    def result(self, bodies: Mapping[str, bytes]) -> bytes:
        terms, study = self._run.terms, self._run.study
        masks = np.zeros(terms.length, dtype=np.uint64)
        add_expansions(
            masks, [read(Revealed, body).seed for body in bodies.values()], self._run.context
        )
        total = from_ring(self._sum - masks)
        if np.abs(total).max() > terms.largest:
            raise CheckFailed(
                "the sum lies outside what its parties could have sent, noise included: a party "
                "does not follow the protocol. There is no model."
            )
        model = terms.averaged.model(terms.average(total), study.schema)
        return model_bytes(model, terms.averaged, study.schema)
