"""A party's side of the protocol as published (Pathak, Rane and Raj 2010, section 3.2).

    step 1   sign a fresh key                              → all keys, the curator's too
    step 2   the first party deals (pk, sk) and π₁         → the box for us
    step 3   a of n = a + b, and b under the curator's key
             to whoever has the place π₁ of ours           → boxes for us
    step 4   the a of our place under pk, and its b        → ã, blinded and permuted
    step 5   ã, to those who compare theirs with it        → theirs, and the curator's question
    step 6   our side of the comparisons                   → the encrypted indicator of the smallest
    step 7   (our element of it)^noise, to the first       → the first: everybody's
    step 8   shares of our vector; the first also sends the
             product, masked                               → shares of everybody's vectors
    step 9   their sum, which is published                 → the model

Where this had to say more than the paper, and what is wrong with it: published.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from tacit.channels.consortium.local_model import Local
from tacit.channels.consortium.pairs import answered_by
from tacit.channels.consortium.published_letters import (
    SHARE_BITS,
    SHARE_BYTES,
    Boxes,
    Dealt,
    Element,
    Indicator,
    Opening,
    Placed,
    Published,
    Question,
    Reply,
    Secret,
    Shared,
    Shares,
    box_label,
    shown,
)
from tacit.channels.consortium.published_terms import NOISE_BITS, PublishedTerms
from tacit.channels.consortium.run import Run
from tacit.channels.roles.letters import read, write
from tacit.crypto import dgk, paillier
from tacit.crypto.blind_permute import blinds, inverse, random_permutation
from tacit.crypto.boxes import BoxKey
from tacit.crypto.comparison import answer_signs
from tacit.crypto.prg import Randomness
from tacit.crypto.ring import to_ring
from tacit.crypto.sharing import add_expansions, split
from tacit.crypto.signing import SigningKey
from tacit.errors import CheckFailed, InputError, UsageError

__all__ = ["PublishedParty"]

MODULUS = 1 << SHARE_BITS


class PublishedParty:
    """One party's side. Draws follow one another as the steps do."""

    def __init__(
        self, run: Run[PublishedTerms], key: SigningKey, local: Local, randomness: Randomness
    ) -> None:
        self._run, self._key, self._randomness = run, key, randomness
        self._roster, self._bits = run.terms.roster, run.study.agreed_consortium.key_bits
        self._place = self._roster.index(key.public_key)
        self._others = [party for party in self._roster if party != key.public_key]
        self._first = self._roster[0]
        self._records = local.records
        self._vector = to_ring(run.terms.encoded(local.vector))
        self._box = BoxKey(randomness)
        self._signed_key = run.signed_key(key, self._box.public, randomness.secure)

    def send(self, step: int, received: bytes) -> bytes:
        steps: tuple[Callable[[bytes], bytes], ...] = (
            lambda _: write(self._signed_key),
            lambda body: write(self._dealt(read(Opening, body))),
            lambda body: write(self._split_records(read(Boxes, body))),
            lambda body: write(self._placed(read(Boxes, body))),
            lambda body: write(self._told_others(read(Element, body))),
            lambda body: write(self._compared(read(Question, body))),
            lambda body: write(self._own_noise(read(Indicator, body))),
            lambda body: write(self._split_vector(read(Boxes, body))),
            lambda body: write(self._published(read(Shares, body))),
        )
        return steps[step - 1](received)

    # ── set-up ──

    def _dealt(self, opening: Opening) -> Dealt:
        """All keys are checked. The first party draws what the parties alone may know."""
        self._keys = self._run.checked_keys(opening.keys, self._signed_key)
        self._context = self._run.context + shown(opening)
        self._curator = paillier.PublicKey.from_bytes(opening.paillier)
        self._comparison = dgk.PublicKey.from_bytes(opening.comparison)
        self._check_length(self._curator.bits, self._comparison.bits)
        if not self._is_first:
            return Dealt()
        self._secret = paillier.PrivateKey.generate(self._bits, self._randomness)
        self._order = random_permutation(len(self._roster), self._randomness)
        p, q = (prime.to_bytes(self._bits // 16, "big") for prime in self._secret.primes)
        content = write(Secret((p, q), list(self._order)))
        boxes = {party: self._sealed(party, "secret", content) for party in self._others}
        return Dealt(self._secret.public.to_bytes(), boxes)

    def _take_secret(self, boxes: Mapping[str, bytes]) -> None:
        secret = read(Secret, self._opened(self._first, "secret", boxes))
        if sorted(secret.order) != list(range(len(self._roster))):
            raise InputError("the first party has dealt something that is not a permutation.")
        self._order = tuple(secret.order)
        try:
            p, q = (int.from_bytes(prime, "big") for prime in secret.primes)
            self._secret = paillier.PrivateKey(p, q)
        except UsageError:  # its advice is for who makes a key
            raise InputError("the first party has dealt two numbers that make no key.") from None
        self._check_length(self._secret.public.bits)

    # ── stage 1: which place has the smallest number ──

    def _split_records(self, received: Boxes) -> Boxes:
        """n = a + b. Everybody gets a box of one length, so that the curator, who carries them,
        does not see which of them is not empty: it would know π₁."""
        if not self._is_first:
            self._take_secret(received.boxes)
        if not 0 < self._records < MODULUS // 2:
            raise UsageError(f"a party has 1 to 2^{SHARE_BITS - 1} − 1 records in this protocol.")
        a = blinds(1, SHARE_BITS, self._randomness)[0] % MODULUS
        b = (self._records - a) % MODULUS
        # Fresh exponents of full length: the same table serves the noise in step 7.
        plain = self._curator.add_plain(self._curator.ciphertexts([1]), [b])
        sealed = self._curator.rerandomise(plain, self._randomness)
        self._own_content = a.to_bytes(SHARE_BYTES, "little") + sealed.to_bytes()
        target = self._roster[self._order[self._place]]
        empty = bytes(len(self._own_content))
        return Boxes(
            {
                party: self._sealed(party, "share", self._own_content if party == target else empty)
                for party in self._others
            }
        )

    def _placed(self, received: Boxes) -> Placed:
        """What the number in our place was split into: one share encrypted by us, one that we
        cannot read passed on. So the curator does not see whose it is."""
        source = inverse(self._order)[self._place]
        content = self._own_content
        if source != self._place:
            content = self._opened(self._roster[source], "share", received.boxes)
        if len(content) != len(self._own_content):
            raise InputError("a share of a number of records is too long or too short.")
        a = int.from_bytes(content[:SHARE_BYTES], "little")
        ours = self._secret.public.encrypt([a], self._randomness)
        return Placed(ours.to_bytes(), content[SHARE_BYTES:])

    def _told_others(self, received: Element) -> Boxes:
        """ã of our place, to the parties that answer for the pairs of it which we do not."""
        blinded = self._secret.public.ciphertexts_from_bytes(received.element)
        if len(blinded) != 1:
            raise InputError(f"the curator sent {len(blinded)} blinded shares instead of one.")
        self._blinded = self._secret.decrypt(blinded)[0] % MODULUS
        content = self._blinded.to_bytes(SHARE_BYTES, "little")
        count = len(self._roster)
        return Boxes(
            {
                party: self._sealed(party, "blinded", content)
                for place, party in enumerate(self._roster)
                if any(self._place in pair for pair in answered_by(place, count))
                and place != self._place
            }
        )

    def _compared(self, received: Question) -> Reply:
        differences = []
        for pair in answered_by(self._place, len(self._roster)):
            first, second = (self._blinded_of(place, received.boxes) for place in pair)
            differences.append((first - second) % MODULUS)
        reply = answer_signs(self._comparison, received.question, differences, self._randomness)
        return Reply(reply)

    def _blinded_of(self, place: int, boxes: Mapping[str, bytes]) -> int:
        if place == self._place:
            return self._blinded
        content = self._opened(self._roster[place], "blinded", boxes)
        return int.from_bytes(content[:SHARE_BYTES], "little")

    # ── stage 2: its noise, without knowing whose ──

    def _own_noise(self, received: Indicator) -> Boxes:
        """E(v)^noise: the noise if ours is the smallest number, zero if not; nobody here knows."""
        elements = self._curator.ciphertexts_from_bytes(received.elements)
        if len(elements) != len(self._roster):
            raise InputError(f"the indicator has {len(elements)} places, not {len(self._roster)}.")
        mine = int(elements.values[self._order[self._place]])
        terms = self._run.terms
        exponents = terms.packing.pack(terms.noise(self._records, self._randomness))
        powers = self._curator.multiply(
            self._curator.ciphertexts([mine] * len(exponents)), exponents
        )
        self._powers = self._curator.rerandomise(powers, self._randomness)
        if self._is_first:
            return Boxes()
        return Boxes({self._first: self._sealed(self._first, "noise", self._powers.to_bytes())})

    # ── stage 3: shares of K times the model ──

    def _split_vector(self, received: Boxes) -> Shared:
        masked = self._mask(received.boxes) if self._is_first else b""
        shares = split(self._vector, len(self._roster) + 1, self._run.context, self._randomness)
        self._sum = shares.full
        ours, *theirs = shares.seeds
        pairs = zip(self._others, theirs, strict=True)
        boxes = {party: self._sealed(party, "vector", seed) for party, seed in pairs}
        return Shared(ours, boxes, masked)

    def _mask(self, boxes: Mapping[str, bytes]) -> bytes:
        """The product of everybody's powers encrypts the smallest party's noise; a mask hides it
        from the curator, who can decrypt, and comes off the first party's vector K times."""
        terms, key = self._run.terms, self._curator
        received = [
            key.ciphertexts_from_bytes(self._opened(party, "noise", boxes))
            for party in self._others
        ]
        if any(len(powers) != len(self._powers) for powers in received):
            raise InputError("a party's encrypted noise is too long or too short.")
        mask = blinds(terms.length, NOISE_BITS, self._randomness)
        product = key.add(self._powers, *received)
        masked = key.add_plain(product, terms.packing.pack(np.array(mask, dtype=object)))
        self._vector = self._vector - _times(mask, len(self._roster))
        return key.rerandomise(masked, self._randomness).to_bytes()

    def _published(self, received: Shares) -> Published:
        """Our share of the sum. It says nothing unless all K + 1 are put together."""
        seeds = [self._opened(party, "vector", received.boxes) for party in self._others]
        add_expansions(self._sum, [received.seed, *seeds], self._run.context)
        secure = self._keys.secure
        word = self._key.sign(self._run.statement(secure))
        return Published(self._sum.astype("<u8").tobytes(), word, secure)

    # ── boxes and keys ──

    @property
    def _is_first(self) -> bool:
        return self._place == 0

    def _sealed(self, party: str, label: str, content: bytes) -> bytes:
        named = box_label(label, self._key.public_key, party)
        return self._box.seal(self._keys.by_party[party].public, self._context, named, content)

    def _opened(self, party: str, label: str, boxes: Mapping[str, bytes]) -> bytes:
        if party not in boxes:
            raise CheckFailed("the curator did not bring the box of a party for us.")
        named = box_label(label, party, self._key.public_key)
        return self._box.open(self._keys.by_party[party].public, self._context, named, boxes[party])

    def _check_length(self, *found: int) -> None:
        for bits in found:
            if bits != self._bits:
                raise InputError(f"the study asks for keys of {self._bits} bits, not {bits}.")


def _times(values: list[int], factor: int) -> NDArray[np.uint64]:
    """factor·values modulo 2^64."""
    return np.array([factor * value % (1 << 64) for value in values], dtype=np.uint64)
