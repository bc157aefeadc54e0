"""The cryptosystem of Damgård, Geisler and Krøigaard: small numbers, and whether one is zero.

c = g^m · h^r mod n, with m modulo the small prime u and secret orders v_p, v_q of h modulo the two
primes of n ("Efficient and secure comparison for on-line auctions", ACISP 2007, with "A correction
to …", IJACT 2009). Decryption is not needed here: who knows p and v_p sees by one short power
whether m is zero. What is assumed, what is claimed, what it costs: dgk.md. Its use: comparison.py.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Iterator, Sequence

import gmpy2
import numpy as np
from gmpy2 import mpz

from tacit.crypto.comb import Comb
from tacit.crypto.prg import SYSTEM, Keystream, Randomness
from tacit.errors import InputError, UsageError

__all__ = ["PLAINTEXTS", "SIZES", "PrivateKey", "PublicKey"]

PLAINTEXTS = 37  # u, the least prime above 32, the largest number that is compared with zero
SIZES = (2048, 3072)  # bits of n: 112 and 128 bits of security (NIST SP 800-57)
ORDER_BITS = 256  # of v_p and v_q, which 2^(bits/2) steps would find: see dgk.md
# A random exponent this much longer than the order makes a power uniform but for 2^−128.
HIDING_BITS = 128
SMALL_PRIMES = gmpy2.primorial(1 << 12)
PRIME_ROUNDS = 64  # as for Paillier: an error of 2^−80 by Miller and Rabin's test alone


class PublicKey:
    """n, g and h, checked as far as anyone can who does not know the factors of n.

    Ciphertexts are numbers prime to n; `checked` and `read` are the only ways in from outside.
    """

    def __init__(self, n: int, g: int, h: int) -> None:
        self.n, self.g, self.h = mpz(n), mpz(g), mpz(h)
        _check_public(self.n, self.g, self.h)
        self.bits: int = self.n.bit_length()
        self.size = self.bits // 8  # bytes of a ciphertext
        self.fingerprint = hashlib.sha256(self.to_bytes()).digest()
        self._constants = _powers(self.g, self.n)
        # Nobody here knows the order of h, v_p·v_q, but only its length.
        self._masks = Comb(self.h, self.n, 2 * ORDER_BITS + HIDING_BITS)

    @classmethod
    def from_bytes(cls, body: bytes) -> PublicKey:
        if len(body) not in {3 * bits // 8 for bits in SIZES}:
            raise InputError(f"a public key is three numbers of {_sizes()} bits: ask for it again.")
        third = len(body) // 3
        n, g, h = (int.from_bytes(body[i * third : (i + 1) * third], "big") for i in range(3))
        return cls(n, g, h)

    def to_bytes(self) -> bytes:
        return b"".join(
            int(number).to_bytes(self.size, "big") for number in (self.n, self.g, self.h)
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PublicKey) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"<DGK key of {self.bits} bits, {self.fingerprint[:8].hex()}>"

    def checked(self, values: Sequence[int]) -> list[mpz]:
        """Numbers from outside, if they can be ciphertexts under this key."""
        numbers = [mpz(operator.index(value)) for value in values]
        if not all(0 < number < self.n for number in numbers):
            raise InputError(f"a ciphertext is not in (0, n) of {self}: it was made otherwise.")
        product = mpz(1)
        for number in numbers:
            product = product * number % self.n
        if gmpy2.gcd(product, self.n) != 1:  # true if and only if each is prime to n
            raise InputError("a ciphertext has a factor in common with n: nobody encrypts to that.")
        return numbers

    def read(self, body: bytes) -> list[mpz]:
        """The ciphertexts that `write` wrote down, checked."""
        if len(body) % self.size:
            raise InputError(f"ciphertexts are cut off: each under {self} has {self.size} bytes.")
        starts = range(0, len(body), self.size)
        return self.checked([int.from_bytes(body[i : i + self.size], "big") for i in starts])

    def write(self, ciphertexts: Sequence[mpz]) -> bytes:
        return b"".join(int(c).to_bytes(self.size, "big") for c in ciphertexts)

    def constant(self, m: int) -> mpz:
        """m as a ciphertext that hides nothing: for arithmetic, and to be rerandomised."""
        return self._constants[_plain(m)]

    def encrypt(self, values: Sequence[int], randomness: Randomness = SYSTEM) -> list[mpz]:
        """Fresh ciphertexts of numbers below PLAINTEXTS. The key's owner has a faster way."""
        return self.rerandomise([self.constant(m) for m in values], randomness)

    def add(self, *terms: mpz) -> mpz:
        """The sum modulo u. Like all arithmetic here, its result shows what it was made from."""
        total = mpz(1)
        for term in terms:
            total = total * term % self.n
        return total

    def multiply(self, c: mpz, factor: int) -> mpz:
        """The product with a number below PLAINTEXTS, modulo u."""
        return gmpy2.powmod(c, _plain(factor), self.n)

    def negative(self, c: mpz) -> mpz:
        return self.multiply(c, PLAINTEXTS - 1)

    def rerandomise(self, terms: Sequence[mpz], randomness: Randomness = SYSTEM) -> list[mpz]:
        """Other ciphertexts of the same numbers, unlinkable even for the key's owner."""
        stream, comb = randomness.stream(), self._masks
        return [c * comb.power(stream.bytes(comb.digits)) % self.n for c in terms]


class PrivateKey:
    """p, q and the orders v_p, v_q of h modulo them. Never printed."""

    def __init__(self, public: PublicKey, secrets: tuple[int, int, int, int]) -> None:
        p, q, v_p, v_q = (mpz(secret) for secret in secrets)
        if not (
            p * q == public.n
            and p.bit_length() == q.bit_length()
            and v_p.bit_length() == v_q.bit_length() == ORDER_BITS
            and all(_is_prime(number) for number in (p, q, v_p, v_q))
            and _apart(p, q, v_p, v_q)
            and all(_has_order(public.h % side, v, side) for side, v in ((p, v_p), (q, v_q)))
            and _has_order(public.g % p, PLAINTEXTS * v_p, p)
            and _has_order(public.g % q, PLAINTEXTS * v_q, q)
        ):
            raise UsageError(
                f"these secrets do not belong to {public}, or do not make a safe key: use those "
                "that PrivateKey.generate chose together with it."
            )
        self.public = public
        self._p, self._q = _Side(public, p, v_p), _Side(public, q, v_q)
        self._q_inverse = gmpy2.invert(q, p)

    @classmethod
    def generate(cls, bits: int = 3072, randomness: Randomness = SYSTEM) -> PrivateKey:
        if bits not in SIZES:
            raise UsageError(
                f"keys have {_sizes()} bits, not {bits}: shorter ones are broken, longer ones slow."
            )
        stream = randomness.stream()
        while True:
            v_p, v_q = _prime(ORDER_BITS, stream), _prime(ORDER_BITS, stream)
            p, q = _prime_above(v_p, bits // 2, stream), _prime_above(v_q, bits // 2, stream)
            if _apart(p, q, v_p, v_q):
                break
        q_inverse = gmpy2.invert(q, p)
        g, h = (
            _joined(
                _element(order * v_p, p, stream), _element(order * v_q, q, stream), p, q, q_inverse
            )
            for order in (PLAINTEXTS, 1)
        )
        return cls(PublicKey(p * q, g, h), (p, q, v_p, v_q))

    @property
    def secrets(self) -> tuple[int, int, int, int]:
        """p, q, v_p, v_q, to keep them where only their owner can read."""
        p, q = self._p, self._q
        return int(p.prime), int(q.prime), int(p.order), int(q.order)

    def __repr__(self) -> str:
        return f"<private half of {self.public}>"

    def encrypt(self, values: Sequence[int], randomness: Randomness = SYSTEM) -> list[mpz]:
        """As `PublicKey.encrypt`, from the remainders modulo p and q, whose powers are short."""
        plain = [_plain(m) for m in values]
        stream, p, q = randomness.stream(), self._p, self._q
        remainders = zip(p.encrypted(plain, stream), q.encrypted(plain, stream), strict=True)
        return [_joined(c_p, c_q, p.prime, q.prime, self._q_inverse) for c_p, c_q in remainders]

    def are_zero(self, ciphertexts: Sequence[mpz]) -> list[bool]:
        """Whether each holds zero. Numbers that nobody encrypts to are refused, modulo p."""
        return [self._p.holds_zero(c) for c in ciphertexts]


class _Side:
    """The key modulo one of its primes."""

    def __init__(self, public: PublicKey, prime: mpz, order: mpz) -> None:
        self.prime, self.order = prime, order
        self._constants = _powers(public.g % prime, prime)
        self._powers = Comb(public.h % prime, prime, ORDER_BITS)

    def encrypted(self, values: Sequence[int], stream: Keystream) -> Iterator[mpz]:
        """For each, uniform among the ciphertexts of that number: the order is known here."""
        exponents = _below(self.order, len(values), stream)
        for m, digits in zip(values, _digits(exponents), strict=True):
            yield self._constants[m] * self._powers.power(digits) % self.prime

    def holds_zero(self, c: mpz) -> bool:
        """c^v = (g^v)^m, as h^v = 1. The secret exponent calls for GMP's `sec`."""
        power = gmpy2.powmod_sec(c % self.prime, self.order, self.prime)
        if power == 1:
            return True
        if gmpy2.powmod(power, PLAINTEXTS, self.prime) != 1:
            raise InputError("a ciphertext is not of the form g^m·h^r: it was damaged, or made up.")
        return False


def _plain(m: int) -> int:
    m = operator.index(m)
    if not 0 <= m < PLAINTEXTS:
        raise UsageError(f"plaintexts and factors are integers from 0 to {PLAINTEXTS - 1}.")
    return m


def _powers(base: mpz, modulus: mpz) -> list[mpz]:
    powers = [mpz(1)]
    while len(powers) < PLAINTEXTS:
        powers.append(powers[-1] * base % modulus)
    return powers


def _below(order: mpz, count: int, stream: Keystream) -> list[bytes]:
    """Uniform exponents below the order, little-endian: those beyond are thrown away."""
    size = ORDER_BITS // 8
    kept: list[bytes] = []
    while len(kept) < count:
        drawn = stream.bytes((count - len(kept)) * size)
        each = (drawn[i : i + size] for i in range(0, len(drawn), size))
        kept += [exponent for exponent in each if int.from_bytes(exponent, "little") < order]
    return kept


def _digits(exponents: Sequence[bytes]) -> list[bytes]:
    """The comb's digits for these exponents: their bits as rows of a matrix, read by columns."""
    size = ORDER_BITS // 8
    bits = np.unpackbits(np.frombuffer(b"".join(exponents), dtype=np.uint8), bitorder="little")
    columns = bits.reshape(len(exponents), 8, size).transpose(0, 2, 1)
    return [row.tobytes() for row in np.packbits(columns, axis=2, bitorder="little")]


def _joined(at_p: mpz, at_q: mpz, p: mpz, q: mpz, q_inverse: mpz) -> mpz:
    """The number with these remainders (Garner)."""
    return at_q + q * ((at_p - at_q) * q_inverse % p)


def _is_prime(number: mpz) -> bool:
    return bool(gmpy2.is_prime(number, PRIME_ROUNDS))


def _prime(bits: int, stream: Keystream) -> mpz:
    """A uniform prime with the two top bits set: few exponents of as many bits are beyond it."""
    top = mpz(3) << (bits - 2)
    while True:
        candidate = mpz(stream.integer(bits)) | top | 1
        if _is_prime(candidate):
            return candidate


def _prime_above(order: mpz, bits: int, stream: Keystream) -> mpz:
    """A prime of `bits` bits, the two top ones set, that is 1 modulo 2·u·order, else uniform.

    Two such primes have a product of exactly twice the bits.
    """
    step = 2 * PLAINTEXTS * order
    low, high = (mpz(3) << (bits - 2)) // step + 1, (mpz(1) << bits) // step
    while True:
        candidate = (low + stream.below(int(high - low))) * step + 1
        if _is_prime(candidate):
            return candidate


def _element(order: mpz, prime: mpz, stream: Keystream) -> mpz:
    """A uniform element of that order modulo `prime`, as `_has_order` means it."""
    while True:
        element = gmpy2.powmod(stream.below(int(prime)), (prime - 1) // order, prime)
        if _has_order(element, order, prime):
            return element


def _has_order(element: mpz, order: mpz, prime: mpz) -> bool:
    """For an order that is prime, or u times a prime."""
    factors = (PLAINTEXTS, order // PLAINTEXTS) if order % PLAINTEXTS == 0 else (order,)
    return bool(
        gmpy2.powmod(element, order, prime) == 1
        and all(gmpy2.powmod(element, order // factor, prime) != 1 for factor in factors)
    )


def _apart(p: mpz, q: mpz, v_p: mpz, v_q: mpz) -> bool:
    """The correction of 2009: an order that both primes share would divide n − 1, and say so."""
    return bool(p != q and v_p != v_q and (p - 1) % v_q and (q - 1) % v_p)


def _check_public(n: mpz, g: mpz, h: mpz) -> None:
    if n.bit_length() not in SIZES:
        raise InputError(f"a public key has {_sizes()} bits, not {n.bit_length()}.")
    if (
        n % (2 * PLAINTEXTS) != 1  # as each of its primes
        or gmpy2.gcd(n, SMALL_PRIMES) != 1
        or gmpy2.is_power(n)
        or gmpy2.is_prime(n)
        or not all(1 < element < n for element in (g, h))
        or g == h
        # Elements of odd order are squares modulo both primes.
        or not all(gmpy2.jacobi(element, n) == 1 for element in (g, h))
    ):
        raise InputError(
            "this is not a public key of this cryptosystem: it was damaged on its way, or made by "
            "other software. Ask its owner for it again."
        )


def _sizes() -> str:
    return " or ".join(map(str, SIZES))
