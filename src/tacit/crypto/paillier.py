"""Paillier's cryptosystem: sums and multiples of numbers that stay encrypted.

c = (1 + m·n) · h^(n·a) mod n², with m in (−n/2, n/2), the fixed element h = −x² mod n, and a random
exponent a of half the length of n (Damgård, Jurik & Nielsen 2010, "A generalization of Paillier's
public-key system with applications to electronic voting"). What is assumed, what is claimed and
what is not: paillier.md. Many numbers in one plaintext: packing.py.
"""

from __future__ import annotations

import hashlib
import operator
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import gmpy2
from gmpy2 import mpz

from tacit.crypto.comb import Comb
from tacit.crypto.prg import SYSTEM, Keystream, Randomness
from tacit.errors import InputError, UsageError

__all__ = ["SIZES", "Ciphertexts", "PrivateKey", "PublicKey"]

SIZES = (2048, 3072, 4096)  # bits of n: 112, 128 and about 150 bits of security (NIST SP 800-57)
SMALL_PRIMES = gmpy2.primorial(1 << 12)  # the product of all primes up to 4096
# A fresh exponent this much longer than the group's order makes a power uniform but for 2^−128.
HIDING_BITS = 128
FINGERPRINT_BYTES = 32
# For GMP: Baillie–PSW, and a Miller–Rabin test for each round beyond 24, of which alone 40 pass a
# random composite with probability below 2^−80.
PRIME_ROUNDS = 64
APART_BITS = 100  # |p − q| > 2^(half − 100), against Fermat's factoring (FIPS 186-5, A.1.3)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Ciphertexts:
    """A vector of encrypted numbers under one key. From outside: `PublicKey.ciphertexts`."""

    key: PublicKey
    values: tuple[mpz, ...]

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"<{len(self)} ciphertexts under {self.key}>"

    def to_bytes(self) -> bytes:
        """The key's fingerprint, then each ciphertext, big-endian, in twice the bytes of n."""
        size = 2 * self.key.bits // 8
        return self.key.fingerprint + b"".join(int(c).to_bytes(size, "big") for c in self.values)


class PublicKey:
    """The modulus n, checked as far as anyone can who does not know its factors."""

    def __init__(self, n: int) -> None:
        n = mpz(n)
        _check_modulus(n)
        self.n = n
        self.n2 = n * n
        self.bits: int = n.bit_length()
        self.fingerprint = hashlib.sha256(self.to_bytes()).digest()
        self._combs: dict[int, Comb] = {}
        self._building = threading.Lock()

    @classmethod
    def from_bytes(cls, body: bytes) -> PublicKey:
        n = int.from_bytes(body, "big")
        if n.bit_length() != 8 * len(body):  # one spelling only, without zeros before it
            raise InputError(
                "a public key begins with its highest bit: this one was cut or padded."
            )
        return cls(n)

    def to_bytes(self) -> bytes:
        return int(self.n).to_bytes(self.bits // 8, "big")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PublicKey) and bool(self.n == other.n)

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"<Paillier key of {self.bits} bits, {self.fingerprint[:8].hex()}>"

    def ciphertexts(self, values: Sequence[int]) -> Ciphertexts:
        """Numbers from outside, if they can be ciphertexts under this key."""
        try:
            numbers = tuple(mpz(operator.index(value)) for value in values)
        except TypeError:
            raise InputError("a ciphertext is an integer: its sender speaks otherwise.") from None
        if not all(0 < number < self.n2 for number in numbers):
            raise InputError("a ciphertext is not in (0, n²): it was made under another key.")
        product = mpz(1)
        for number in numbers:
            product = product * number % self.n
        if gmpy2.gcd(product, self.n) != 1:  # true if and only if each is prime to n
            raise InputError("a ciphertext has a factor in common with n: nobody encrypts to that.")
        return Ciphertexts(self, numbers)

    def ciphertexts_from_bytes(self, body: bytes) -> Ciphertexts:
        """The inverse of `Ciphertexts.to_bytes`."""
        if body[:FINGERPRINT_BYTES] != self.fingerprint:
            raise InputError(f"the ciphertexts are not under {self}: their sender has another key.")
        size = 2 * self.bits // 8
        if (len(body) - FINGERPRINT_BYTES) % size:
            raise InputError(f"the ciphertexts are cut off: each under {self} has {size} bytes.")
        starts = range(FINGERPRINT_BYTES, len(body), size)
        return self.ciphertexts([int.from_bytes(body[at : at + size], "big") for at in starts])

    def encrypt(self, values: Sequence[int], randomness: Randomness = SYSTEM) -> Ciphertexts:
        """Fresh ciphertexts of integers in (−n/2, n/2)."""
        plain = self._integers(values)
        masks = self._masks(len(plain), self.bits // 2, randomness)
        return self._made(
            (1 + m * self.n) * mask % self.n2 for m, mask in zip(plain, masks, strict=True)
        )

    def add(self, *terms: Ciphertexts) -> Ciphertexts:
        """The sums, place by place. Like all arithmetic here: modulo n, and not rerandomised."""
        if not terms:
            raise UsageError("a sum has at least one term.")
        first, *others = (self._own(term) for term in terms)
        sums = list(first.values)
        for other in others:
            _same_length(len(sums), len(other))
            sums = [a * b % self.n2 for a, b in zip(sums, other.values, strict=True)]
        return self._made(sums)

    def add_plain(self, terms: Ciphertexts, values: Sequence[int]) -> Ciphertexts:
        """The sums with integers that need not be hidden from whoever sees both ciphertexts."""
        _same_length(len(self._own(terms)), len(values))
        pairs = zip(terms.values, self._integers(values), strict=True)
        return self._made(c * (1 + m * self.n) % self.n2 for c, m in pairs)

    def multiply(self, terms: Ciphertexts, factors: Sequence[int]) -> Ciphertexts:
        """The products with integers, place by place; a factor may be negative."""
        _same_length(len(self._own(terms)), len(factors))
        pairs = zip(terms.values, self._integers(factors), strict=True)
        return self._made(gmpy2.powmod(c, factor, self.n2) for c, factor in pairs)

    def rerandomise(self, terms: Ciphertexts, randomness: Randomness = SYSTEM) -> Ciphertexts:
        """Other ciphertexts of the same numbers, which do not show what they were made from.

        The exponents are longer than the group's order, so that this holds against everyone, the
        owner of the private key included (paillier.md, claim 3).
        """
        masks = self._masks(len(self._own(terms)), self.bits + HIDING_BITS, randomness)
        return self._made(c * mask % self.n2 for c, mask in zip(terms.values, masks, strict=True))

    def _made(self, values: Iterator[mpz] | list[mpz]) -> Ciphertexts:
        return Ciphertexts(self, tuple(values))

    def _own(self, terms: Ciphertexts) -> Ciphertexts:
        if terms.key != self:
            raise InputError(f"{terms!r} cannot be used with {self}: encrypt under one key.")
        return terms

    def _integers(self, values: Sequence[int]) -> list[mpz]:
        try:
            numbers = [mpz(operator.index(value)) for value in values]
        except TypeError:
            raise UsageError("only integers are encrypted: round to a grid first.") from None
        if any(2 * abs(number) >= self.n for number in numbers):
            raise UsageError(f"a number is outside (−n/2, n/2) of {self}: use a smaller grid.")
        return numbers

    def _masks(self, count: int, bits: int, randomness: Randomness) -> Iterator[mpz]:
        """h^(n·a) mod n² for `count` fresh exponents a of `bits` bits."""
        comb = self._comb(bits)
        stream = randomness.stream()
        return (comb.power(stream.bytes(comb.digits)) for _ in range(count))

    def _comb(self, bits: int) -> Comb:
        """The table for exponents of that length, built at the first use by any thread."""
        with self._building:
            if bits not in self._combs:
                self._combs[bits] = Comb(self._mask_base(), self.n2, bits)
            return self._combs[bits]

    def _mask_base(self) -> mpz:
        """h^n mod n², for h = −x² mod n.

        x is a hash of n: nobody had a choice of h, nobody need be trusted with it, and everyone
        who knows n has the same.
        """
        seed = b"tacit paillier base" + self.to_bytes()
        x = int.from_bytes(hashlib.shake_256(seed).digest((self.bits + HIDING_BITS) // 8), "big")
        return gmpy2.powmod(-mpz(x) * x % self.n, self.n, self.n2)


class PrivateKey:
    """p and q. Never printed; who has them reads everything under `public`."""

    def __init__(self, p: int, q: int) -> None:
        p, q = mpz(p), mpz(q)
        if not _fit(p, q) or not (_is_prime(p) and _is_prime(q)):
            raise UsageError(
                "a private key is two primes of equal length, far apart, each 3 modulo 4, with no "
                "small factor in (p − 1)/2: let PrivateKey.generate choose them."
            )
        self.public = PublicKey(p * q)
        self._p, self._q = p, q
        self._p2, self._q2 = p * p, q * q
        # L_p((1 + n)^(p−1) mod p²) = (p − 1)·q = −q modulo p, the same for q (Paillier 1999, § 7).
        self._by_p, self._by_q = gmpy2.invert(-q, p), gmpy2.invert(-p, q)
        self._q_inverse = gmpy2.invert(q, p)

    @classmethod
    def generate(cls, bits: int = 3072, randomness: Randomness = SYSTEM) -> PrivateKey:
        if bits not in SIZES:
            raise UsageError(
                f"keys have one of {', '.join(map(str, SIZES))} bits, not {bits}: shorter ones are "
                "broken, longer ones slow."
            )
        stream = randomness.stream()
        while True:
            p, q = _prime(bits // 2, stream), _prime(bits // 2, stream)
            if _fit(p, q):
                return cls(p, q)

    @property
    def primes(self) -> tuple[int, int]:
        """The secret itself, to keep it where only its owner can read."""
        return int(self._p), int(self._q)

    def __repr__(self) -> str:
        return f"<private half of {self.public}>"

    def decrypt(self, terms: Ciphertexts) -> list[int]:
        """The numbers, in (−n/2, n/2)."""
        if terms.key != self.public:
            raise InputError(f"{terms!r} cannot be read with {self}: ask for the right key's.")
        return [self._decrypted(c) for c in terms.values]

    def _decrypted(self, c: mpz) -> int:
        """Modulo p and modulo q, joined by Garner's formula: less than half the work of n²."""
        p, q, n = self._p, self._q, self.public.n
        at_p = _logarithm(c, p, self._p2) * self._by_p % p
        at_q = _logarithm(c, q, self._q2) * self._by_q % q
        number = at_q + q * ((at_p - at_q) * self._q_inverse % p)
        return int(number if 2 * number < n else number - n)


def _check_modulus(n: mpz) -> None:
    if n < 0 or n.bit_length() not in SIZES:
        raise InputError(
            f"a public key is a number of {', '.join(map(str, SIZES))} bits, not {n.bit_length()}."
        )
    if (
        n % 4 != 1  # what two primes that are 3 modulo 4 have for a product
        or gmpy2.gcd(n, SMALL_PRIMES) != 1
        or gmpy2.is_power(n)
        or gmpy2.is_prime(n)
    ):
        raise InputError(
            "this is not the product of two large primes, each 3 modulo 4: the key was damaged on "
            "its way, or made by other software. Ask its owner for it again."
        )


def _same_length(one: int, other: int) -> None:
    if one != other:
        raise UsageError(f"vectors of {one} and {other} numbers do not go together.")


def _logarithm(c: mpz, p: mpz, p2: mpz) -> mpz:
    """L_p(c^(p−1) mod p²) with L_p(u) = (u − 1)/p. The secret exponent calls for GMP's `sec`."""
    return (gmpy2.powmod_sec(c % p2, p - 1, p2) - 1) // p


def _prime(bits: int, stream: Keystream) -> mpz:
    """A uniform prime 3 modulo 4, its two top bits set, without a small factor in (p − 1)/2.

    Two such primes of b bits have a product of exactly 2·b bits. Each candidate is drawn afresh:
    stepping on from one would prefer primes after long gaps.
    """
    top = 3 << (bits - 2)
    while True:
        candidate = mpz(stream.integer(bits) | top | 3)
        half = candidate // 2
        if gmpy2.gcd(candidate * half, SMALL_PRIMES) == 1 and _is_prime(candidate):
            return candidate


def _is_prime(number: mpz) -> bool:
    return bool(gmpy2.is_prime(number, PRIME_ROUNDS))


def _fit(p: mpz, q: mpz) -> bool:
    """Whether p and q, if prime, make a key."""
    bits = p.bit_length()
    return bool(
        q.bit_length() == bits
        and p % 4 == q % 4 == 3
        and abs(p - q).bit_length() > bits - APART_BITS
        and gmpy2.gcd(p - 1, q - 1) == 2
        and gmpy2.gcd((p // 2) * (q // 2), SMALL_PRIMES) == 1
        and gmpy2.gcd(p * q, (p - 1) * (q - 1)) == 1
    )
