"""Anonymous tokens: RSA blind signatures, RSABSSA-SHA384-PSS-Randomized of RFC 9474.

An issuer signs one token for each person it knows, without seeing what it signs; who is shown the
token later verifies an ordinary RSA-PSS signature and cannot tell whose it is. One key serves one
question of one study: since the issuer signs blindly, the key is all it says. What this rests on:
blind_signatures.md.

    blinded = key.blind(message)                  the person; keeps `blinded`, sends blinded.blinded
    answer = secret.sign_blinded(blinded.blinded) the issuer, once for each person
    token = blinded.finalize(answer)              the person; checks it
    key.verify(message, token)                    anyone
"""

from __future__ import annotations

from dataclasses import dataclass, field

import gmpy2
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.hashes import SHA384
from gmpy2 import mpz

from tacit.crypto.prg import SYSTEM, Randomness
from tacit.crypto.pss import HASH_BYTES, encode_pss
from tacit.crypto.raw_rsa import EXPONENT, RawRsa
from tacit.errors import CheckFailed, InputError, UsageError

__all__ = ["PREFIX_BYTES", "SIZES", "Blinded", "Token", "TokenKey", "TokenPublicKey"]

SIZES = (2048, 3072, 4096)  # bits of n: 112, 128 and about 150 bits of security (NIST SP 800-57)
PREFIX_BYTES = 32
SALT_BYTES = HASH_BYTES
SMALL_PRIMES = gmpy2.primorial(1 << 12)  # the product of all primes up to 4096
PADDING = PSS(MGF1(SHA384()), SALT_BYTES)


@dataclass(frozen=True, slots=True)
class Token:
    """A random prefix, and the signature of the prefix and the message. Good for one use."""

    prefix: bytes
    signature: bytes

    def to_bytes(self) -> bytes:
        """As many bytes for every token of a key: `TokenPublicKey.token_bytes`."""
        return self.prefix + self.signature

    @classmethod
    def from_bytes(cls, body: bytes) -> Token:
        if len(body) not in {PREFIX_BYTES + bits // 8 for bits in SIZES}:
            raise InputError(f"a token is not {len(body)} bytes long: it was cut or padded.")
        return cls(body[:PREFIX_BYTES], body[PREFIX_BYTES:])


class TokenPublicKey:
    """The modulus n, checked as far as anyone can who does not know its factors; e = 65537."""

    def __init__(self, n: int) -> None:
        _check_modulus(mpz(n))
        self._n = mpz(n)
        self._key = rsa.RSAPublicNumbers(EXPONENT, int(n)).public_key()

    @classmethod
    def from_hex(cls, text: str) -> TokenPublicKey:
        """The inverse of `to_hex`: one spelling only, so that every letter of a proposal counts."""
        n = int(text, 16) if _is_hex(text) else 0
        if not n or n.bit_length() != 4 * len(text):
            raise InputError(
                "a token key is its modulus in lower-case hex, without zeros before it: this one "
                "was cut, padded or retyped. Ask its issuer for it again."
            )
        return cls(n)

    def to_hex(self) -> str:
        return format(int(self._n), "x")

    @property
    def bits(self) -> int:
        return int(self._n.bit_length())

    @property
    def size(self) -> int:
        """Bytes of a blinded message, of its signature, and of a signature."""
        return self.bits // 8

    @property
    def token_bytes(self) -> int:
        return PREFIX_BYTES + self.size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TokenPublicKey) and self._n == other._n

    def __hash__(self) -> int:
        return hash(self._n)

    def __repr__(self) -> str:
        return f"<token key of {self.bits} bits, {self.to_hex()[:16]}…>"

    def blind(self, message: bytes, randomness: Randomness = SYSTEM) -> Blinded:
        """What the issuer may see of a message, and what makes a token of its answer.

        A message is never blinded again after `finalize` has failed: the issuer that failed it may
        have chosen to (blind_signatures.md).
        """
        n, stream = self._n, randomness.stream()
        prefix, salt = stream.bytes(PREFIX_BYTES), stream.bytes(SALT_BYTES)
        encoded = mpz(encode_pss(prefix + message, salt, self.size))
        r = mpz(stream.below(int(n)))
        if gmpy2.gcd(encoded * r, n) != 1:
            raise CheckFailed(
                "the issuer's key has a factor that can be found: tokens under it can be forged "
                "and followed. Do not take part."
            )
        blinded = encoded * gmpy2.powmod(r, EXPONENT, n) % n
        return Blinded(self, message, prefix, self._bytes(gmpy2.invert(r, n)), self._bytes(blinded))

    def verify(self, message: bytes, token: Token) -> bool:
        """Whether the issuer has signed `message`; False for anything malformed.

        `cryptography` does it all: whatever it holds for an RSA-PSS signature is one.
        """
        if len(token.prefix) != PREFIX_BYTES:
            return False
        try:
            self._key.verify(token.signature, token.prefix + message, PADDING, SHA384())
        except InvalidSignature:
            return False
        return True

    def _number(self, body: bytes) -> mpz:
        """A number below n and prime to it, as it is sent."""
        number = mpz(int.from_bytes(body, "big"))
        if len(body) != self.size or number >= self._n or gmpy2.gcd(number, self._n) != 1:
            raise InputError(
                f"this was not blinded, or signed, under {self}: that has {self.size} bytes and is "
                "a number below the modulus and prime to it."
            )
        return number

    def _bytes(self, number: mpz) -> bytes:
        return int(number).to_bytes(self.size, "big")

    def _unblinded(self, blind_signature: bytes, inverse: bytes) -> bytes:
        product = self._number(blind_signature) * self._number(inverse)
        return self._bytes(product % self._n)


@dataclass(frozen=True, slots=True)
class Blinded:
    """A person's half of one issue. All but `blinded` is hers alone: it would link her token."""

    key: TokenPublicKey
    message: bytes = field(repr=False)
    prefix: bytes = field(repr=False)
    inverse: bytes = field(repr=False)  # 1/r
    blinded: bytes = field(repr=False)

    def finalize(self, blind_signature: bytes) -> Token:
        """The token, if the issuer has signed what it was sent."""
        signature = self.key._unblinded(blind_signature, self.inverse)
        token = Token(self.prefix, signature)
        if not self.key.verify(self.message, token):
            raise CheckFailed(
                "the issuer's answer is not the signature that was asked for: throw it away, ask "
                "for the answer to the same request once more, and tell the others if it stays so."
            )
        return token

    def to_bytes(self) -> bytes:
        """For a file that only its owner can read: written before anything is sent, so that a
        crash does not cost her the one token she is given."""
        return self.prefix + self.inverse + self.blinded + self.message

    @classmethod
    def from_bytes(cls, key: TokenPublicKey, body: bytes) -> Blinded:
        ends = [PREFIX_BYTES, PREFIX_BYTES + key.size, PREFIX_BYTES + 2 * key.size]
        if len(body) < ends[-1]:
            raise InputError(f"a request for a token under {key} was cut off: it cannot be used.")
        inverse, blinded = body[ends[0] : ends[1]], body[ends[1] : ends[2]]
        for part in (inverse, blinded):
            key._number(part)
        return cls(key, body[ends[2] :], body[: ends[0]], inverse, blinded)


class TokenKey:
    """The issuer's secret for one question of one study. Never printed."""

    def __init__(self, secret: rsa.RSAPrivateKey) -> None:
        numbers = secret.public_key().public_numbers()
        if numbers.e != EXPONENT:
            raise InputError(f"a token key has the exponent {EXPONENT}: let TokenKey.generate it.")
        self.public = TokenPublicKey(numbers.n)
        self._secret = secret
        self._raw = RawRsa(secret)

    @classmethod
    def generate(cls, bits: int = 2048) -> TokenKey:
        if bits not in SIZES:
            raise UsageError(
                f"token keys have one of {', '.join(map(str, SIZES))} bits, not {bits}: shorter "
                "ones are broken, longer ones slow."
            )
        return cls(rsa.generate_private_key(EXPONENT, bits))

    def sign_blinded(self, blinded: bytes, randomness: Randomness = SYSTEM) -> bytes:
        """The answer to one person's request; the same whenever the same request is repeated.

        The randomness protects the computation and does not show in the answer.
        """
        root = self._raw.root(self.public._number(blinded), randomness)
        return int(root).to_bytes(self.public.size, "big")

    def to_bytes(self) -> bytes:
        """The secret itself (PKCS #8), for a file that only its owner can read."""
        return self._secret.private_bytes(
            serialization.Encoding.DER,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )

    @classmethod
    def from_bytes(cls, body: bytes) -> TokenKey:
        try:
            secret = serialization.load_der_private_key(body, password=None)
        except ValueError:
            secret = None
        if not isinstance(secret, rsa.RSAPrivateKey):
            raise InputError("this is not an RSA key in PKCS #8 form: look for the issuer's file.")
        return cls(secret)

    def __repr__(self) -> str:
        return f"<secret half of {self.public}>"


def _check_modulus(n: mpz) -> None:
    if n < 0 or n.bit_length() not in SIZES:
        raise InputError(
            f"a token key has {', '.join(map(str, SIZES))} bits, not {n.bit_length()}: shorter "
            "ones are broken."
        )
    if gmpy2.gcd(n, SMALL_PRIMES) != 1 or gmpy2.is_power(n) or gmpy2.is_prime(n):
        raise InputError(
            "this is not the product of two large primes: the key was damaged on its way, or is "
            "a trap. Ask its issuer for it again."
        )


def _is_hex(text: str) -> bool:
    return bool(text) and set(text) <= set("0123456789abcdef")
