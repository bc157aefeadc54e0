"""The curator's side of the protocol as published; the steps stand in published_party.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from tacit.channels.consortium.pairs import answered_by
from tacit.channels.consortium.published_letters import (
    SHARE_BITS,
    Boxes,
    Dealt,
    Element,
    Indicator,
    Opening,
    Placed,
    Published,
    Question,
    Reply,
    Shared,
    Shares,
    carried,
)
from tacit.channels.consortium.published_terms import PublishedTerms
from tacit.channels.consortium.run import Key, KeyList, Run, Word, check_new_key
from tacit.channels.roles.letters import read, write
from tacit.crypto import dgk, paillier
from tacit.crypto.blind_permute import blinds, inverse, permuted, random_permutation
from tacit.crypto.comparison import begin_signs, finish_signs
from tacit.crypto.minimum import Pair, smallest_place
from tacit.crypto.prg import Randomness
from tacit.crypto.ring import RingSum, from_ring
from tacit.crypto.sharing import split
from tacit.errors import InputError

__all__ = ["PublishedCurator"]

MODULUS = 1 << SHARE_BITS

Bodies = Mapping[str, bytes]
Answers = dict[str, bytes]


class PublishedCurator:
    """It carries boxes that it cannot open, blinds, compares, and decrypts masked noise."""

    def __init__(self, run: Run[PublishedTerms], randomness: Randomness) -> None:
        self._run, self._randomness = run, randomness
        self._roster, self._bits = run.terms.roster, run.study.agreed_consortium.key_bits

    def check(self, step: int, party: str, body: bytes, others: Bodies) -> None:
        """Keys and the last word are the sender's own; what lies between is carried as it is."""
        if step == 1:
            check_new_key(self._run, party, body, others)
        elif step == self._run.terms.steps:
            published, length = read(Published, body), self._run.terms.length
            if len(published.share) != 8 * length:
                raise InputError(f"a share has not the {length} numbers that it must have.")
            word = Word(published.statement, published.secure)
            self._run.check_word(party, word, self._keys.secure)

    def answer(self, step: int, bodies: Bodies) -> Answers:
        steps: tuple[Callable[[Bodies], Answers], ...] = (
            self._open,
            self._pass_secret,
            self._pass_boxes,
            self._blind,
            self._ask,
            self._indicate,
            self._pass_boxes,
            self._share,
        )
        return steps[step - 1](bodies)

    # ── set-up, and letters between parties ──

    def _open(self, bodies: Bodies) -> Answers:
        keys = {party: read(Key, body) for party, body in bodies.items()}
        self._keys = KeyList(keys)
        self._secret = paillier.PrivateKey.generate(self._bits, self._randomness)
        self._comparison = dgk.PrivateKey.generate(self._bits, self._randomness)
        publics = self._secret.public.to_bytes(), self._comparison.public.to_bytes()
        return dict.fromkeys(self._roster, write(Opening(keys, *publics)))

    def _pass_secret(self, bodies: Bodies) -> Answers:
        dealt = {party: read(Dealt, body) for party, body in bodies.items()}
        self._parties = paillier.PublicKey.from_bytes(dealt[self._roster[0]].public)
        if self._parties.bits != self._bits:
            raise InputError(
                f"the study asks for keys of {self._bits} bits, not {self._parties.bits}."
            )
        boxes = carried({party: letter.boxes for party, letter in dealt.items()})
        return {party: write(Boxes(found)) for party, found in boxes.items()}

    def _pass_boxes(self, bodies: Bodies) -> Answers:
        return {party: write(Boxes(found)) for party, found in _carried_boxes(bodies).items()}

    # ── stage 1 ──

    def _blind(self, bodies: Bodies) -> Answers:
        """π₂(π₁(a) + r), under the parties' key; π₂(π₁(b) − r) stays here."""
        letters = [read(Placed, bodies[party]) for party in self._roster]
        theirs = [self._one(self._parties, letter.ours) for letter in letters]
        ours = [self._one(self._secret.public, letter.curators) for letter in letters]
        shares = self._secret.decrypt(self._secret.public.ciphertexts(ours))
        if not all(0 <= share < MODULUS for share in shares):
            raise InputError(f"a share of a number of records is not in [0, 2^{SHARE_BITS}).")
        count = len(self._roster)
        blind = blinds(count, SHARE_BITS, self._randomness)
        self._order = random_permutation(count, self._randomness)
        # Rerandomised: the parties, who can decrypt, would recognise their own ciphertexts else.
        shifted = self._parties.add_plain(self._parties.ciphertexts(theirs), blind)
        hidden = self._parties.rerandomise(shifted, self._randomness)
        pairs = zip(shares, blind, strict=True)
        self._shares = permuted([(b - r) % MODULUS for b, r in pairs], self._order)
        elements = zip(self._roster, permuted(hidden.values, self._order), strict=True)
        return {
            party: write(Element(self._parties.ciphertexts([int(element)]).to_bytes()))
            for party, element in elements
        }

    def _one(self, key: paillier.PublicKey, body: bytes) -> int:
        """The only ciphertext in a letter."""
        found = key.ciphertexts_from_bytes(body)
        if len(found) != 1:
            raise InputError(f"a party sent {len(found)} encrypted shares instead of one.")
        return int(found.values[0])

    def _ask(self, bodies: Bodies) -> Answers:
        boxes = _carried_boxes(bodies)
        answers = {}
        for place, party in enumerate(self._roster):
            question = begin_signs(self._comparison, self._differences(place), self._randomness)
            answers[party] = write(Question(boxes[party], question))
        return answers

    def _differences(self, place: int) -> list[int]:
        """ñ_i < ñ_j if and only if ã_i − ã_j < b̃_j − b̃_i."""
        pairs = answered_by(place, len(self._roster))
        return [(self._shares[j] - self._shares[i]) % MODULUS for i, j in pairs]

    def _indicate(self, bodies: Bodies) -> Answers:
        count = len(self._roster)
        found: dict[Pair, bool] = {}
        for place, party in enumerate(self._roster):
            reply = read(Reply, bodies[party]).reply
            less = finish_signs(self._comparison, reply, self._differences(place))
            found.update(zip(answered_by(place, count), less, strict=True))
        # Where it was before π₂, which the parties do not know. They take π₁ back, we cannot.
        before = inverse(self._order)[smallest_place(count, found)]
        indicator = [int(place == before) for place in range(count)]
        elements = self._secret.public.encrypt(indicator, self._randomness).to_bytes()
        return dict.fromkeys(self._roster, write(Indicator(elements)))

    # ── stage 3 ──

    def _share(self, bodies: Bodies) -> Answers:
        letters = {party: read(Shared, bodies[party]) for party in self._roster}
        boxes = carried({party: letter.boxes for party, letter in letters.items()})
        own = self._masked_noise(letters[self._roster[0]].masked)
        shares = split(own, len(self._roster) + 1, self._run.context, self._randomness)
        self._sum = RingSum(self._run.terms.length)
        self._sum.add([shares.full.astype("<u8").tobytes()])
        self._sum.add_seeds([letter.seed for letter in letters.values()], self._run.context)
        pairs = zip(self._roster, shares.seeds, strict=True)
        return {party: write(Shares(seed, boxes[party])) for party, seed in pairs}

    def _masked_noise(self, body: bytes) -> NDArray[np.uint64]:
        """K·(η + s) modulo 2^64. The first party's vector has −K·s in it."""
        terms = self._run.terms
        plain = self._secret.decrypt(self._secret.public.ciphertexts_from_bytes(body))
        masked = terms.packing.unpack(plain, terms.length, terms_added=2)
        words = [len(self._roster) * int(value) % (1 << 64) for value in masked]
        return np.array(words, dtype=np.uint64)

    def result(self, bodies: Bodies) -> bytes:
        self._sum.add([read(Published, bodies[party]).share for party in self._roster])
        return self._run.terms.model_file(from_ring(self._sum.total))

    def evidence(self, bodies: Bodies) -> bytes:
        """None: that everybody follows the protocol is assumed here (published.md)."""
        return b""


def _carried_boxes(bodies: Bodies) -> dict[str, dict[str, bytes]]:
    return carried({party: read(Boxes, body).boxes for party, body in bodies.items()})
