"""The root of any number under an RSA key, by a library that signs padded messages only.

`cryptography` has no raw RSA, and a private exponent does not belong in arithmetic of ours. It does
sign bytes of our choice under PKCS #1 v1.5, which is the root of P + a, where P is fixed and the
bytes, read as a number a, are free but for 88 bits. Every number z is a quotient of two such sums
modulo n, and roots are multiplicative:

    z·(P + b) = P + a  (mod n)    ⟹    z^d = (P + a)^d / (P + b)^d  (mod n)

(so such padding alone does not make signatures unforgeable: De Jonge & Chaum, Crypto '85; Girault &
Misarsky, Eurocrypt '97). Finding a and b is half a dozen lines of Euclid's algorithm. Two of
OpenSSL's signatures make one root: constant in time, blinded and checked by OpenSSL.
"""

from __future__ import annotations

import gmpy2
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import NoDigestInfo
from gmpy2 import mpz

from tacit.crypto.prg import SYSTEM, Randomness
from tacit.errors import InternalFault

__all__ = ["EXPONENT", "RawRsa"]

EXPONENT = 65537
PADDING = b"\x00\x01" + 8 * b"\xff" + b"\x00"  # the shortest that RFC 8017 (9.2) allows


class RawRsa:
    """z ↦ z^d mod n. The key stays inside OpenSSL."""

    def __init__(self, secret: RSAPrivateKey) -> None:
        self._secret = secret
        self._n = mpz(secret.public_key().public_numbers().n)
        self._free = secret.key_size // 8 - len(PADDING)
        self._room = mpz(256) ** self._free
        self._low = int.from_bytes(PADDING, "big") * self._room

    def root(self, number: mpz, randomness: Randomness = SYSTEM) -> mpz:
        """The root of a number that is prime to n.

        What is computed with is number·r^e for a random r, so that no time taken here has to do
        with the number; and the result is checked, since a wrong one can give the key away (Boneh,
        DeMillo & Lipton 1997).
        """
        n, stream = self._n, randomness.stream()
        while True:
            r = mpz(stream.below(int(n)))
            pair = self._quotient(number * gmpy2.powmod(r, EXPONENT, n) % n)
            if pair is not None:
                break
        above, below = (self._signature(term) for term in pair)
        root = above * gmpy2.invert(below * r, n) % n
        if gmpy2.powmod(root, EXPONENT, n) != number:
            raise InternalFault("an RSA signature came out wrong and was withheld: try again.")
        return root

    def _quotient(self, z: mpz) -> tuple[mpz, mpz] | None:
        """Two padded numbers whose quotient modulo n is z, or None (for next to no z).

        The pairs (x, y) with x = z·y modulo n are a plane lattice; one of them is wanted in a
        square. Euclid's algorithm makes a basis with x short enough; y is still far shorter. Then
        the lattice point below and left of the square's centre is in the square.
        """
        n, limit = self._n, self._room // 4
        x0, x1, y0, y1 = n, z, mpz(0), mpz(1)
        while x0 >= limit and x1:
            times, rest = gmpy2.f_divmod(x0, x1)
            x0, x1, y0, y1 = x1, rest, y1, y0 - times * y1
        centre = self._low + self._room // 2
        determinant = x0 * y1 - x1 * y0  # n or −n
        first = centre * (y1 - x1) // determinant
        second = centre * (x0 - y0) // determinant
        point = first * x0 + second * x1, first * y0 + second * y1
        if all(0 <= value - self._low < self._room for value in point):
            return point
        return None

    def _signature(self, padded: mpz) -> mpz:
        """padded^d mod n, for a number that begins with the padding."""
        free = int(padded - self._low).to_bytes(self._free, "big")
        return mpz(int.from_bytes(self._secret.sign(free, PKCS1v15(), NoDigestInfo()), "big"))
