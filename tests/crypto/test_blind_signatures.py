"""Tokens: RFC 9474's vectors, `cryptography` as the judge, and nothing malformed gets through."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import gmpy2
import numpy as np
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.hashes import SHA384
from gmpy2 import mpz
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tacit.crypto import raw_rsa
from tacit.crypto.blind_signatures import Blinded, Token, TokenKey, TokenPublicKey
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.pss import encode_pss
from tacit.errors import CheckFailed, InputError, InternalFault, UsageError

E = 65537
VECTORS = tomllib.loads((Path(__file__).parent / "rfc9474.toml").read_text())
VARIANTS = [name for name, value in VECTORS.items() if isinstance(value, dict)]
FALSE_ALARM = 1e-6  # draws are seeded: this is how often another seed would fail
FEW = settings(max_examples=20)


def seeded_prime(rng: random.Random, bits: int) -> int:
    while True:
        prime = int(gmpy2.next_prime(rng.getrandbits(bits) | 3 << (bits - 2)))
        if prime % E != 1:
            return prime


def seeded_secret(seed: str, bits: int = 2048) -> rsa.RSAPrivateKey:
    rng = random.Random(seed)
    return secret_of(seeded_prime(rng, bits // 2), seeded_prime(rng, bits // 2))


def secret_of(p: int, q: int, e: int = E) -> rsa.RSAPrivateKey:
    d = pow(e, -1, (p - 1) * (q - 1))
    numbers = rsa.RSAPrivateNumbers(
        p,
        q,
        d,
        rsa.rsa_crt_dmp1(d, p),
        rsa.rsa_crt_dmq1(d, q),
        rsa.rsa_crt_iqmp(p, q),
        rsa.RSAPublicNumbers(e, p * q),
    )
    return numbers.private_key()


KEY = TokenKey(seeded_secret("a key"))
OTHER = TokenKey(seeded_secret("another key"))
PUBLIC = KEY.public
N = int(PUBLIC.to_hex(), 16)
MESSAGE = b"study, question, report"


def token_for(message: bytes, seed: str = "a person", key: TokenKey = KEY) -> Token:
    blinded = key.public.blind(message, SeededRandomness(seed))
    return blinded.finalize(key.sign_blinded(blinded.blinded))


def judged(n: int, message: bytes, signature: bytes, salt: int = 48) -> bool:
    """By `cryptography`, from the numbers alone."""
    try:
        rsa.RSAPublicNumbers(E, n).public_key().verify(
            signature, message, PSS(MGF1(SHA384()), salt), SHA384()
        )
    except InvalidSignature:
        return False
    return True


# ── RFC 9474, appendix A ────────────────────────────────────────────────────────────────────────


def of(text: str) -> bytes:
    return bytes.fromhex("".join(text.split()))


class Dictated:
    """A Randomness that gives the prefix, the salt and r of a vector, which may be empty."""

    secure = False

    def __init__(self, prefix: bytes, salt: bytes, r: int) -> None:
        self._pieces = iter((prefix, salt))
        self._r = r

    def stream(self) -> Any:
        return self

    def bytes(self, size: int) -> bytes:
        piece = next(self._pieces)
        assert len(piece) in (0, size)
        return piece

    def below(self, limit: int) -> int:
        assert self._r < limit
        return self._r


@pytest.fixture(scope="module")
def rfc_key() -> TokenKey:
    p, q = (int.from_bytes(of(VECTORS[name]), "big") for name in "pq")
    return TokenKey(secret_of(p, q))


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_vectors_of_the_rfc(variant: str, rfc_key: TokenKey) -> None:
    vector = VECTORS[variant]
    n = int(rfc_key.public.to_hex(), 16)
    message, prefix, inverse = of(VECTORS["msg"]), of(vector["prefix"]), of(VECTORS["inv"])
    salt = b"" if "PSSZERO" in variant else of(VECTORS["salt"])
    r = pow(int.from_bytes(inverse, "big"), -1, n)
    blinded = rfc_key.public.blind(message, Dictated(prefix, salt, r))
    assert blinded.blinded == of(vector["blinded_msg"])
    assert blinded.inverse == inverse
    answer = rfc_key.sign_blinded(blinded.blinded)
    assert answer == of(vector["blind_sig"])
    assert judged(n, prefix + message, of(vector["sig"]), len(salt))
    if variant == "RSABSSA-SHA384-PSS-Randomized":  # the one that tacit's tokens are
        token = blinded.finalize(answer)
        assert token == Token(prefix, of(vector["sig"]))
        assert rfc_key.public.verify(message, token)
    else:
        with pytest.raises(CheckFailed):
            blinded.finalize(answer)


def test_all_four_variants_are_there() -> None:
    assert len(VARIANTS) == 4


# ── Issue and redeem ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("bits", [2048, 3072])
def test_a_token_is_an_ordinary_signature(bits: int) -> None:
    key = KEY if bits == 2048 else TokenKey(seeded_secret("a long key", bits))
    token = token_for(MESSAGE, key=key)
    n = int(key.public.to_hex(), 16)
    assert key.public.bits == bits
    assert key.public.verify(MESSAGE, token)
    assert judged(n, token.prefix + MESSAGE, token.signature)
    assert len(token.to_bytes()) == key.public.token_bytes == 32 + bits // 8
    assert Token.from_bytes(token.to_bytes()) == token


@FEW
@given(st.binary(max_size=300), st.integers())
def test_any_message_can_be_signed(message: bytes, seed: int) -> None:
    token = token_for(message, str(seed))
    assert judged(N, token.prefix + message, token.signature)


def test_the_default_key_is_made_by_openssl() -> None:
    key = TokenKey.generate()
    assert key.public.bits == 2048
    assert key.public.verify(MESSAGE, token_for(MESSAGE, key=key))


def test_a_token_commits_to_its_message_and_key() -> None:
    token = token_for(MESSAGE)
    assert not PUBLIC.verify(MESSAGE + b"!", token)
    assert not PUBLIC.verify(b"", token)
    assert not OTHER.public.verify(MESSAGE, token)
    other = token_for(MESSAGE, "another person")
    assert not PUBLIC.verify(MESSAGE, Token(other.prefix, token.signature))


def test_the_border_between_prefix_and_message_is_fixed() -> None:
    """One byte of the message taken for the prefix: the same bytes signed, and yet no token."""
    token = token_for(MESSAGE)
    shifted = Token(token.prefix + MESSAGE[:1], token.signature)
    assert judged(N, shifted.prefix + MESSAGE[1:], token.signature)
    assert not PUBLIC.verify(MESSAGE[1:], shifted)


@settings(max_examples=60)
@given(st.integers(0, 8 * PUBLIC.token_bytes - 1))
def test_every_bit_of_a_token_counts(bit: int) -> None:
    body = bytearray(token_for(MESSAGE).to_bytes())
    body[bit // 8] ^= 1 << (bit % 8)
    assert not PUBLIC.verify(MESSAGE, Token.from_bytes(bytes(body)))


def test_malformed_signatures_are_no_tokens() -> None:
    token = token_for(MESSAGE)
    size = PUBLIC.size
    beyond = (int.from_bytes(token.signature, "big") + N).to_bytes(size + 1, "big")
    for signature in (b"", bytes(size), token.signature[:-1], b"\0" + token.signature, beyond):
        assert not PUBLIC.verify(MESSAGE, Token(token.prefix, signature))


@pytest.mark.parametrize("size", [0, 32, 287, 289])
def test_tokens_of_another_length_are_refused(size: int) -> None:
    with pytest.raises(InputError, match=f"{size} bytes"):
        Token.from_bytes(bytes(size))


def test_the_same_request_has_the_same_answer() -> None:
    """A person whose answer was lost asks again, and nothing can be learned from the second."""
    blinded = PUBLIC.blind(MESSAGE).blinded
    assert KEY.sign_blinded(blinded) == KEY.sign_blinded(blinded, SeededRandomness("other"))


def test_a_request_survives_a_crash() -> None:
    blinded = PUBLIC.blind(MESSAGE)
    again = Blinded.from_bytes(PUBLIC, blinded.to_bytes())
    assert again == blinded
    assert PUBLIC.verify(MESSAGE, again.finalize(KEY.sign_blinded(blinded.blinded)))
    with pytest.raises(InputError, match="cut off"):
        Blinded.from_bytes(PUBLIC, blinded.to_bytes()[: 32 + 2 * 256 - 1])
    with pytest.raises(InputError, match="below the modulus"):
        Blinded.from_bytes(PUBLIC, b"\xff" * 1000)


def test_a_false_answer_is_not_a_token() -> None:
    blinded = PUBLIC.blind(MESSAGE)
    answer = KEY.sign_blinded(blinded.blinded)
    right = int.from_bytes(answer, "big")
    for wrong in (N - right, right * 2 % N, 1):
        with pytest.raises(CheckFailed, match="not the signature"):
            blinded.finalize(wrong.to_bytes(256, "big"))
    other = PUBLIC.blind(MESSAGE)
    with pytest.raises(CheckFailed):
        other.finalize(answer)
    for malformed in (b"", answer[:-1], answer + b"\0", bytes(256), N.to_bytes(256, "big")):
        with pytest.raises(InputError, match="256 bytes"):
            blinded.finalize(malformed)


# ── What the issuer sees, and computes ──────────────────────────────────────────────────────────


def test_requests_for_one_message_have_nothing_in_common() -> None:
    made = [PUBLIC.blind(MESSAGE, SeededRandomness(f"person {i}")) for i in range(20)]
    for name in ("blinded", "prefix", "inverse"):
        assert len({getattr(request, name) for request in made}) == len(made)


class ShortFactors:
    """A Randomness whose r has half the length of n, which `blind` would not notice."""

    secure = False

    def __init__(self, seed: str) -> None:
        self._stream = SeededRandomness(seed).stream()

    def stream(self) -> Any:
        return self

    def bytes(self, size: int) -> bytes:
        return self._stream.bytes(size)

    def below(self, limit: int) -> int:
        return self._stream.integer(limit.bit_length() // 2)


@pytest.mark.statistical
def test_the_factor_that_hides_is_uniform() -> None:
    """r in 16 equal parts of [0, n), 2,000 times; a shorter r is all in the first."""

    def p_value(randomness: Any) -> float:
        counts = np.zeros(16, dtype=int)
        for inverse in inverses(randomness):
            counts[16 * pow(inverse, -1, N) // N] += 1
        return float(stats.chisquare(counts).pvalue)

    def inverses(randomness: Any) -> Iterator[int]:
        for _ in range(2000):
            yield int.from_bytes(PUBLIC.blind(b"", randomness).inverse, "big")

    assert p_value(SeededRandomness("uniform")) > FALSE_ALARM
    assert p_value(ShortFactors("short")) < FALSE_ALARM


@pytest.mark.statistical
def test_what_the_issuer_sees_does_not_depend_on_the_message() -> None:
    """With prefix, salt and encoding held fixed, z = M·r^e fills Z_n evenly, whatever M is."""
    for message in (b"", MESSAGE):
        counts = np.zeros(16, dtype=int)
        for i in range(1000):
            r = SeededRandomness(f"r {i}").stream().below(N)
            seen = PUBLIC.blind(message, Dictated(bytes(32), bytes(48), r)).blinded
            counts[16 * int.from_bytes(seen, "big") // N] += 1
        assert stats.chisquare(counts).pvalue > FALSE_ALARM


def test_any_request_may_belong_to_any_token() -> None:
    """For every request and every token there is one r that joins them."""
    requests = [PUBLIC.blind(MESSAGE, SeededRandomness(f"request {i}")) for i in range(3)]
    tokens = [request.finalize(KEY.sign_blinded(request.blinded)) for request in requests]
    for request in requests:
        answer = int.from_bytes(KEY.sign_blinded(request.blinded), "big")
        for token in tokens:
            signature = int.from_bytes(token.signature, "big")
            r = answer * pow(signature, -1, N) % N
            encoded = pow(signature, E, N)
            assert encoded * pow(r, E, N) % N == int.from_bytes(request.blinded, "big")


@FEW
@given(st.integers(1, N - 1) | st.sampled_from([1, 2, N - 1, N - 2, N // 2]))
def test_roots_agree_with_textbook_arithmetic(number: int) -> None:
    numbers = serialization.load_der_private_key(KEY.to_bytes(), None)
    assert isinstance(numbers, rsa.RSAPrivateKey)
    d = numbers.private_numbers().d
    answer = KEY.sign_blinded(number.to_bytes(256, "big"))
    assert len(answer) == 256
    assert int.from_bytes(answer, "big") == pow(number, d, N)


def test_no_number_is_asked_of_openssl_as_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same request twice: what is signed inside has nothing in common."""
    seen: list[mpz] = []
    signature = raw_rsa.RawRsa._signature

    def watched(self: raw_rsa.RawRsa, padded: mpz) -> mpz:
        seen.append(padded)
        return signature(self, padded)

    monkeypatch.setattr(raw_rsa.RawRsa, "_signature", watched)
    blinded = PUBLIC.blind(MESSAGE).blinded
    KEY.sign_blinded(blinded)
    KEY.sign_blinded(blinded)
    assert len(set(seen)) == len(seen) == 4
    assert all(f"{int(padded):0512x}".startswith("0001ffffffffffffffff00") for padded in seen)


def test_a_wrong_root_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    """One bit of one half flipped, as by a fault in the processor."""
    signature = raw_rsa.RawRsa._signature
    monkeypatch.setattr(
        raw_rsa.RawRsa, "_signature", lambda self, padded: signature(self, padded) ^ 1
    )
    with pytest.raises(InternalFault, match="withheld"):
        KEY.sign_blinded(PUBLIC.blind(MESSAGE).blinded)


def test_draws_that_do_not_fit_are_drawn_again() -> None:
    """r = 0 leaves nothing to divide, and r = 1 keeps the number 1, for which no padding fits."""

    class Stubborn:
        secure = False

        def __init__(self) -> None:
            self.draws = iter([0, 1])
            self.stream_ = SeededRandomness("after").stream()

        def stream(self) -> Any:
            return self

        def below(self, limit: int) -> int:
            return next(self.draws, None) or self.stream_.below(limit)

    one = (1).to_bytes(256, "big")
    assert KEY.sign_blinded(one, Stubborn()) == one


@pytest.mark.parametrize(
    "body",
    [b"", bytes(256), bytes(255) + b"\1\0", b"\0" + bytes(255) + b"\1", N.to_bytes(256, "big")],
    ids=["empty", "zero", "long", "padded", "n"],
)
def test_what_cannot_be_a_request_is_refused(body: bytes) -> None:
    with pytest.raises(InputError, match="256 bytes"):
        KEY.sign_blinded(body)


def test_a_multiple_of_a_factor_is_refused() -> None:
    secret = serialization.load_der_private_key(KEY.to_bytes(), None)
    assert isinstance(secret, rsa.RSAPrivateKey)
    with pytest.raises(InputError, match="prime to it"):
        KEY.sign_blinded((3 * secret.private_numbers().p).to_bytes(256, "big"))


# ── Keys ────────────────────────────────────────────────────────────────────────────────────────


def test_keys_survive_their_files() -> None:
    again = TokenKey.from_bytes(KEY.to_bytes())
    assert again.public == PUBLIC != OTHER.public
    assert len({again.public, PUBLIC, OTHER.public}) == 2
    assert TokenPublicKey.from_hex(PUBLIC.to_hex()) == PUBLIC
    blinded = PUBLIC.blind(MESSAGE).blinded
    assert again.sign_blinded(blinded) == KEY.sign_blinded(blinded)


def test_a_public_key_has_one_spelling() -> None:
    text = PUBLIC.to_hex()
    for other in (text.upper(), "0" + text, "00" + text, "0x" + text, text + "\n", "", "zz", "+1"):
        with pytest.raises(InputError, match="hex"):
            TokenPublicKey.from_hex(other)


def test_malformed_moduli_are_refused() -> None:
    rng = random.Random("moduli")
    prime = seeded_prime(rng, 2048)
    small = 4093 * seeded_prime(rng, 2036)
    square = seeded_prime(rng, 1024) ** 2
    assert prime.bit_length() == small.bit_length() == square.bit_length() == 2048
    for n in (prime, small, square, N - 1):
        with pytest.raises(InputError, match="two large primes"):
            TokenPublicKey(n)
    for n in (-N, 0, 15, N >> 1024, N << 1):
        with pytest.raises(InputError, match="bits"):
            TokenPublicKey(n)


def test_a_modulus_with_a_factor_is_found_out_when_it_would_matter() -> None:
    """A factor of 13 bits passes the key's check; the encoding that is a multiple of it does not.

    The issuer would see 0 modulo the factor in the request, and again in the token.
    """
    factor, salt = 4099, bytes(48)
    key = TokenPublicKey(factor * seeded_prime(random.Random("trap"), 2036))
    prefixes = (number.to_bytes(32, "big") for number in count())
    multiple = next(x for x in prefixes if encode_pss(x + MESSAGE, salt, 256) % factor == 0)
    key.blind(MESSAGE, Dictated(bytes(32), salt, 1))
    with pytest.raises(CheckFailed, match="Do not take part"):
        key.blind(MESSAGE, Dictated(multiple, salt, 1))


def test_keys_of_another_kind_are_refused() -> None:
    rng = random.Random("exponent")
    three = secret_of(*(suited(rng) for _ in range(2)), e=3)
    with pytest.raises(InputError, match="65537"):
        TokenKey(three)
    curve = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.DER,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    for body in (curve, b"", KEY.to_bytes()[:-1]):
        with pytest.raises(InputError, match="PKCS #8"):
            TokenKey.from_bytes(body)
    with pytest.raises(UsageError, match="2048"):
        TokenKey.generate(1024)


def suited(rng: random.Random) -> int:
    """A prime for the exponent 3."""
    while (prime := seeded_prime(rng, 1024)) % 3 == 1:
        pass
    return prime


def test_secrets_are_not_printed() -> None:
    blinded = PUBLIC.blind(MESSAGE)
    printed = repr(KEY) + repr(blinded) + repr(PUBLIC)
    for secret in (blinded.inverse, blinded.prefix, blinded.message, KEY.to_bytes()):
        assert secret.hex() not in printed
        assert repr(secret)[2:-1] not in printed
    assert "2048 bits" in printed


def test_a_seed_repeats_a_request() -> None:
    assert PUBLIC.blind(MESSAGE, SeededRandomness(1)) == PUBLIC.blind(MESSAGE, SeededRandomness(1))
