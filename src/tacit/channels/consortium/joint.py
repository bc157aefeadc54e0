"""tacit's protocol: masked sums, with noise that all parties draw together (joint.md).

    step 1   every party signs a fresh key                     → all keys
    step 2   its vector + its part of the noise + masks        → who has signed that theirs is here,
                                                                 made with the same keys
    step 3   once *all* have: the seed of its own mask         → sum, average, model

Masks between two parties cancel in the sum. A party's own mask is taken off in step 3 only, so a
run that ends before it has released nothing, whoever works together with the curator. All that is
said in step 3 was fixed in steps 1 and 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from tacit.channels.consortium.local_model import Local
from tacit.channels.consortium.run import Key, KeyList, Run, Word, check_new_key
from tacit.channels.consortium.terms import JointTerms
from tacit.channels.roles.letters import read, write
from tacit.crypto.boxes import BoxKey
from tacit.crypto.prg import Randomness
from tacit.crypto.ring import from_ring, to_ring
from tacit.crypto.sharing import SEED_BYTES, add_expansions, expand, fresh_seed
from tacit.crypto.signing import SigningKey, digest
from tacit.errors import CheckFailed

__all__ = ["JointCurator", "JointParty", "check_released"]


class Keys(msgspec.Struct, frozen=True):
    by_party: dict[str, Key]


class Posted(msgspec.Struct, frozen=True):
    """A party's signed word that its vector is with the curator: which one, made with whose keys,
    and a commitment to the seed that will take its own mask off."""

    vector: str  # digest
    commitment: str
    signature: str

    def content(self, keys: KeyList) -> str:
        return digest([keys.digest, self.vector, self.commitment])


class Masked(msgspec.Struct, frozen=True):
    """A masked vector, and the word that goes with it."""

    vector: bytes
    posted: Posted


class AllPosted(msgspec.Struct, frozen=True):
    """Everybody's word."""

    by_party: dict[str, Posted]


class Revealed(msgspec.Struct, frozen=True):
    """What takes off a party's own mask, and its word on the noise that it added. `received` is its
    signature of all words that it was shown."""

    seed: bytes
    received: str
    statement: str
    secure: bool


class Evidence(msgspec.Struct, frozen=True):
    """What the sum was made of. It shows no party more than the sum does: masks between the others
    are still in it."""

    vectors: dict[str, bytes]
    seeds: dict[str, bytes]
    received: dict[str, str]


class JointParty:
    """One party's side."""

    def __init__(
        self, run: Run[JointTerms], key: SigningKey, local: Local, randomness: Randomness
    ) -> None:
        terms = run.terms
        integers = terms.encoded(local.vector)
        self._run, self._key = run, key
        self._box, self._own_mask = BoxKey(randomness), fresh_seed(randomness)
        self._signed_key = run.signed_key(key, self._box.public, randomness.secure)
        self._keys: KeyList | None = None
        if terms.mechanism is not None:
            # One part of the noise. The others draw theirs, and nobody knows the sum of all.
            integers = terms.mechanism.perturb(integers, randomness)
        self._noisy = to_ring(integers)

    def send(self, step: int, received: bytes) -> bytes:
        match step:
            case 1:
                return write(self._signed_key)
            case 2:
                return write(self._masked(read(Keys, received)))
            case _:
                return write(self._revealed(read(AllPosted, received)))

    def _masked(self, received: Keys) -> Masked:
        keys = self._keys = self._run.checked_keys(received.by_party, self._signed_key)
        total = self._noisy + expand(self._own_mask, len(self._noisy), self._run.context)
        own = self._key.public_key
        for party in keys.by_party:
            if party != own:
                seed = mask_seed(self._run, self._box, keys, own, party)
                mask = expand(seed, len(total), self._run.context)
                total = total + mask if party > own else total - mask  # each pair cancels
        vector = total.astype("<u8").tobytes()
        commitment = committed(self._run.context, own, self._own_mask)
        posted = Posted(digest(vector), commitment, "")
        signature = self._key.sign(self._run.said("vector", posted.content(keys)))
        return Masked(vector, msgspec.structs.replace(posted, signature=signature))

    def _revealed(self, received: AllPosted) -> Revealed:
        """Only when everybody has signed that their vector is there, made with the same keys."""
        assert self._keys is not None  # step 2 comes before
        self._run.check_everybody("vector", received.by_party)
        for party, posted in received.by_party.items():
            content = posted.content(self._keys)
            self._run.check_signed(party, "vector", posted.signature, content)
        secure, words = self._keys.secure, transcript(self._keys, received.by_party)
        return Revealed(
            self._own_mask,
            self._key.sign(self._run.said("reveal", words)),
            self._key.sign(self._run.statement(secure)),
            secure,
        )


class JointCurator:
    """The curator's side: it carries keys and words, and adds up."""

    def __init__(self, run: Run[JointTerms]) -> None:
        self._run = run
        self._keys = KeyList({})
        self._masked: dict[str, Masked] = {}

    def check(self, step: int, party: str, body: bytes, others: Mapping[str, bytes]) -> None:
        match step:
            case 1:
                check_new_key(self._run, party, body, others)
            case 2:
                self._check_masked(party, read(Masked, body))
            case _:
                self._check_revealed(party, read(Revealed, body))

    def _check_masked(self, party: str, masked: Masked) -> None:
        posted, length = masked.posted, self._run.terms.length
        if len(masked.vector) != 8 * length:
            raise CheckFailed(f"a masked vector has not the {length} numbers that it must have.")
        if posted.vector != digest(masked.vector):
            raise CheckFailed("what was signed is another vector than the one that came with it.")
        self._run.check_signed(party, "vector", posted.signature, posted.content(self._keys))

    def _check_revealed(self, party: str, revealed: Revealed) -> None:
        """What is revealed was fixed in steps 1 and 2: all of it can be told from anything else."""
        expected = self._masked[party].posted.commitment
        if len(revealed.seed) != SEED_BYTES:
            raise CheckFailed(f"a seed has {SEED_BYTES} bytes, not {len(revealed.seed)}.")
        if expected != committed(self._run.context, party, revealed.seed):
            raise CheckFailed("this is not the seed that was committed to in step 2.")
        words = transcript(self._keys, self._posted)
        self._run.check_signed(party, "reveal", revealed.received, words)
        word = Word(revealed.statement, revealed.secure)
        self._run.check_word(party, word, self._keys.secure)

    def answer(self, step: int, bodies: Mapping[str, bytes]) -> dict[str, bytes]:
        if step == 1:
            self._keys = KeyList({party: read(Key, body) for party, body in bodies.items()})
            told = write(Keys(dict(self._keys.by_party)))
        else:
            self._masked = {party: read(Masked, body) for party, body in bodies.items()}
            told = write(AllPosted(self._posted))
        return dict.fromkeys(bodies, told)

    @property
    def _posted(self) -> dict[str, Posted]:
        return {party: masked.posted for party, masked in self._masked.items()}

    def result(self, bodies: Mapping[str, bytes]) -> bytes:
        return released(self._run, self._evidence(bodies))

    def evidence(self, bodies: Mapping[str, bytes]) -> bytes:
        return write(self._evidence(bodies))

    def _evidence(self, bodies: Mapping[str, bytes]) -> Evidence:
        revealed = {party: read(Revealed, body) for party, body in bodies.items()}
        return Evidence(
            {party: masked.vector for party, masked in self._masked.items()},
            {party: word.seed for party, word in revealed.items()},
            {party: word.received for party, word in revealed.items()},
        )


def released(run: Run[JointTerms], evidence: Evidence) -> bytes:
    """The model file: the average of all vectors, own masks taken off, the others cancelled."""
    length = run.terms.length
    if any(len(vector) != 8 * length for vector in evidence.vectors.values()):
        raise CheckFailed(f"a masked vector has not the {length} numbers that it must have.")
    rows = np.frombuffer(b"".join(evidence.vectors.values()), dtype="<u8").reshape(-1, length)
    masks = np.zeros(length, dtype=np.uint64)
    add_expansions(masks, list(evidence.seeds.values()), run.context)
    return run.terms.model_file(from_ring(rows.sum(axis=0, dtype=np.uint64) - masks))


def check_released(
    run: Run[JointTerms], answers: Sequence[bytes], model: bytes, body: bytes
) -> None:
    """CheckFailed unless the model is what everybody's vectors give, and everybody who follows the
    protocol was shown the same ones: then all of them accept this model and no other.

    `answers` are what we were told in the run: all keys, and all words.
    """
    evidence = read(Evidence, body)
    keys, posted = KeyList(read(Keys, answers[0]).by_party), read(AllPosted, answers[1]).by_party
    for part in (evidence.vectors, evidence.seeds, evidence.received):
        run.check_everybody("vector", part)
    words = transcript(keys, posted)
    for party, word in posted.items():
        run.check_signed(party, "reveal", evidence.received[party], words)
        seed = committed(run.context, party, evidence.seeds[party])
        if (digest(evidence.vectors[party]), seed) != (word.vector, word.commitment):
            raise CheckFailed(f"this is not the vector that {run.name(party)} has signed.")
    if released(run, evidence) != model:
        raise CheckFailed("the curator's model is not the average of what the parties have sent.")


def transcript(keys: KeyList, posted: Mapping[str, Posted]) -> str:
    """A digest of all that was said before anybody reveals."""
    return digest([[party, posted[party].content(keys)] for party in sorted(posted)])


def mask_seed(run: Run[JointTerms], box: BoxKey, keys: KeyList, own: str, other: str) -> bytes:
    """What two parties share, and nobody else, in this attempt and under these keys.

    Both identities go in: whoever signs a copy of another's key, or one that differs from it only
    by a point of small order, has another seed with a third party than the other one has.
    """
    pair = " and ".join(sorted((own, other)))
    context = run.context + keys.context
    return box.shared(keys.by_party[other].public, context, f"mask of {pair}")


def committed(context: bytes, party: str, seed: bytes) -> str:
    """What a party says of its own mask's seed before it reveals it."""
    return digest(b"tacit consortium mask" + context + bytes.fromhex(party) + seed)
