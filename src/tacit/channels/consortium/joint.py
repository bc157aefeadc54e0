"""tacit's protocol: masked sums, with noise that all parties draw together (joint.md).

    step 1   every party signs a fresh key                     → all keys
    step 2   its vector + its part of the noise + masks        → who has signed that theirs is here
    step 3   once *all* have: the seed of its own mask         → sum, average, model

Masks between two parties cancel in the sum. A party's own mask is taken off in step 3 only, so a
run that ends before it has released nothing, whoever works together with the curator.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from tacit.channels.consortium.local_model import Local
from tacit.channels.consortium.run import Key, Run
from tacit.channels.consortium.terms import JointTerms
from tacit.channels.roles.letters import read, write
from tacit.crypto.boxes import BoxKey
from tacit.crypto.prg import Randomness
from tacit.crypto.ring import from_ring, to_ring
from tacit.crypto.sharing import add_expansions, expand, fresh_seed
from tacit.crypto.signing import SigningKey
from tacit.errors import CheckFailed

__all__ = ["JointCurator", "JointParty"]

Words = NDArray[np.uint64]


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


class JointParty:
    """One party's side."""

    def __init__(
        self, run: Run[JointTerms], key: SigningKey, local: Local, randomness: Randomness
    ) -> None:
        terms = run.terms
        integers = terms.encoded(local.vector)
        self._run, self._key, self._secure = run, key, randomness.secure
        self._box, self._own_mask = BoxKey(randomness), fresh_seed(randomness)
        if terms.mechanism is not None:
            # One part of the noise. The others draw theirs, and nobody knows the sum of all.
            integers = terms.mechanism.perturb(integers, randomness)
        self._noisy = to_ring(integers)

    def send(self, step: int, received: bytes) -> bytes:
        match step:
            case 1:
                return write(self._run.signed_key(self._key, self._box.public))
            case 2:
                return write(self._masked(read(Keys, received)))
            case _:
                return write(self._revealed(read(Posted, received)))

    def _masked(self, keys: Keys) -> Masked:
        self._run.check_keys(keys.by_party)
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

    def __init__(self, run: Run[JointTerms]) -> None:
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
        masks = np.zeros(self._run.terms.length, dtype=np.uint64)
        add_expansions(
            masks, [read(Revealed, body).seed for body in bodies.values()], self._run.context
        )
        return self._run.terms.model_file(from_ring(self._sum - masks))
