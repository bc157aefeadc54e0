"""Paillier: textbook arithmetic agrees, what is malformed is refused, secrets are not shown."""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Callable

import gmpy2
import numpy as np
import pytest
from gmpy2 import mpz
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.crypto import paillier
from tacit.crypto.comb import Comb
from tacit.crypto.packing import Packing
from tacit.crypto.paillier import Ciphertexts, PrivateKey, PublicKey
from tacit.crypto.prg import Keystream, SeededRandomness
from tacit.errors import InputError, UsageError

KEY = PrivateKey.generate(2048, SeededRandomness("a key"))
OTHER = PrivateKey.generate(2048, SeededRandomness("another key"))
PUBLIC = KEY.public
N = int(PUBLIC.n)
N2 = N * N
HALF = N // 2  # N is odd: plaintexts are −HALF … HALF
EDGES = [0, 1, -1, 2**64, -(2**64), HALF, -HALF]
PLAIN = st.integers(-HALF, HALF)
FEW = settings(max_examples=25)
SLOW = settings(max_examples=6)  # Python's own powers take a quarter of a second


def textbook(m: int, r: int) -> int:
    """Paillier 1999 with g = n + 1, by Python's own powers: what other software makes."""
    return pow(N + 1, m % N, N2) * pow(r, N, N2) % N2


def textbook_decrypted(c: int) -> int:
    p, q = KEY.primes
    order = math.lcm(p - 1, q - 1)
    number = (pow(c, order, N2) - 1) // N * pow(order, -1, N) % N
    return number if number <= HALF else number - N


def centred(number: int) -> int:
    return (number + HALF) % N - HALF


class Recorded:
    """A Randomness that gives the same stream to whoever recomputes."""

    secure = False

    def stream(self) -> Keystream:
        return Keystream(bytes(range(32)))


def test_numbers_survive() -> None:
    assert KEY.decrypt(PUBLIC.encrypt(EDGES)) == EDGES
    assert KEY.decrypt(PUBLIC.encrypt([])) == []
    assert KEY.decrypt(PUBLIC.encrypt(np.array([3, -4]))) == [3, -4]  # type: ignore[arg-type]


@SLOW
@given(PLAIN, st.integers(2, 2**2000))
def test_textbook_ciphertexts_are_read(m: int, r: int) -> None:
    assert KEY.decrypt(PUBLIC.ciphertexts([textbook(m, r)])) == [m]


@SLOW
@given(PLAIN)
def test_our_ciphertexts_are_read_by_the_textbook(m: int) -> None:
    c = PUBLIC.encrypt([m], SeededRandomness(m)).values[0]
    assert textbook_decrypted(int(c)) == m


@SLOW
@given(st.integers(1, N2 - 1))
def test_remainders_agree_with_the_textbook_for_any_ciphertext(c: int) -> None:
    assert KEY.decrypt(PUBLIC.ciphertexts([c])) == [textbook_decrypted(c)]


def test_a_ciphertext_is_what_the_note_says() -> None:
    """c = (1 + m·n)·(h^n)^a, with h from a hash and a from the stream, all by Python's integers."""
    values = [7, -(2**100)]
    made = PUBLIC.encrypt(values, Recorded()).values
    seed = b"tacit paillier base" + N.to_bytes(256, "big")
    x = int.from_bytes(hashlib.shake_256(seed).digest(272), "big")
    h_n = pow(-x * x % N, N, N2)
    stream = Recorded().stream()
    for m, c in zip(values, made, strict=True):
        digits = stream.bytes(128)
        a = sum(
            1 << (tooth * 128 + place)
            for place, digit in enumerate(digits)
            for tooth in range(8)
            if digit >> tooth & 1
        )
        assert a.bit_length() > 1000  # half of n's bits, nearly always
        assert c == (1 + m * N) * pow(h_n, a, N2) % N2


@FEW
@given(PLAIN, PLAIN, PLAIN)
def test_sums(a: int, b: int, c: int) -> None:
    total = PUBLIC.add(*(PUBLIC.encrypt([x, -x]) for x in (a, b, c)))
    assert KEY.decrypt(total) == [centred(a + b + c), centred(-a - b - c)]
    assert KEY.decrypt(PUBLIC.add_plain(PUBLIC.encrypt([a]), [b])) == [centred(a + b)]


@FEW
@given(PLAIN, st.one_of(st.integers(-(2**64), 2**64), PLAIN))
def test_multiples(a: int, factor: int) -> None:
    product = PUBLIC.multiply(PUBLIC.encrypt([a, a]), [factor, -factor])
    assert KEY.decrypt(product) == [centred(a * factor), centred(-a * factor)]


def test_rerandomised_ciphertexts_are_equal_inside_and_different_outside() -> None:
    first = PUBLIC.encrypt(EDGES)
    second, third = PUBLIC.rerandomise(first), PUBLIC.rerandomise(first)
    assert KEY.decrypt(second) == KEY.decrypt(third) == EDGES
    assert len({*first.values, *second.values, *third.values}) == 3 * len(EDGES)


def test_rerandomising_uses_exponents_beyond_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that even the owner of the key, who knows the order, cannot link old and new."""
    lengths = []

    class Watched(Comb):
        def __init__(self, base: mpz, modulus: mpz, bits: int) -> None:
            lengths.append(bits)
            super().__init__(base, modulus, bits)

    monkeypatch.setattr(paillier, "Comb", Watched)
    key = PublicKey(N)
    key.rerandomise(key.encrypt([1]))
    assert lengths == [1024, 2048 + 128]


def test_the_same_number_never_looks_the_same() -> None:
    made = PUBLIC.encrypt([5] * 40).values + PUBLIC.encrypt([5] * 40).values
    assert len(set(made)) == 80


def test_masks_are_residues_with_jacobi_symbol_one() -> None:
    """They lie in the group that −x² generates; a Jacobi symbol of −1 would tell them apart."""
    made = PUBLIC.encrypt([0] * 20, SeededRandomness(1)).values
    assert {gmpy2.jacobi(c, N) for c in made} == {1}
    p, _ = KEY.primes
    assert {gmpy2.jacobi(c, p) for c in made} == {1, -1}  # not squares only


def chi_square(values: list[int], cells: int) -> float:
    counts = np.bincount(values, minlength=cells)
    expected = len(values) / cells
    return float(((counts - expected) ** 2).sum() / expected)


def test_ciphertexts_of_one_number_are_spread_evenly() -> None:
    """16 cells: χ² with 15 degrees of freedom is above 56.5 once in a million."""
    made = [int(c) for c in PUBLIC.encrypt([1] * 800, SeededRandomness(2)).values]
    assert chi_square([c % 16 for c in made], 16) < 56.5
    assert chi_square([16 * c // N2 for c in made], 16) < 56.5
    assert chi_square([c % N % 16 for c in made], 16) < 56.5
    assert chi_square([(1 + m * N) % N2 % N % 16 for m in range(800)], 16) > 56.5  # without masks


def test_packed_vectors_add_under_encryption() -> None:
    packing = Packing(PUBLIC.bits, 56, 256)
    vectors = np.random.default_rng(3).integers(-(2**55), 2**55, (5, 124))
    total = PUBLIC.add(*(PUBLIC.encrypt(packing.pack(vector)) for vector in vectors))
    noisy = PUBLIC.add_plain(total, packing.pack(np.arange(124)))
    assert len(noisy) == 4
    opened = packing.unpack(KEY.decrypt(noisy), 124, 6)
    assert opened.tolist() == (vectors.sum(axis=0) + np.arange(124)).tolist()


def test_malformed_ciphertexts_are_refused() -> None:
    p, q = KEY.primes
    good = int(PUBLIC.encrypt([1]).values[0])
    for bad in (0, -1, -good, N2, N2 + good):
        with pytest.raises(InputError, match="n²"):
            PUBLIC.ciphertexts([good, bad])
    for bad in (N, 5 * N, p, q, 3 * p, p * p, q * (N - 1)):
        with pytest.raises(InputError, match="factor"):
            PUBLIC.ciphertexts([good, bad, good])
    for other in (1.5, "1", None):
        with pytest.raises(InputError, match="integer"):
            PUBLIC.ciphertexts([good, other])  # type: ignore[list-item]
    assert PUBLIC.ciphertexts([good]).values == (good,)


def test_ciphertexts_of_another_key_are_refused() -> None:
    ours, theirs = PUBLIC.encrypt([1]), OTHER.public.encrypt([1])
    for use in (
        lambda: KEY.decrypt(theirs),
        lambda: PUBLIC.add(ours, theirs),
        lambda: PUBLIC.add_plain(theirs, [1]),
        lambda: PUBLIC.multiply(theirs, [1]),
        lambda: PUBLIC.rerandomise(theirs),
        lambda: PUBLIC.ciphertexts_from_bytes(theirs.to_bytes()),
    ):
        with pytest.raises(InputError, match=PUBLIC.fingerprint[:8].hex()):
            use()


def test_wrong_calls_are_refused() -> None:
    pair, one = PUBLIC.encrypt([1, 2]), PUBLIC.encrypt([3])
    for use in (
        lambda: PUBLIC.add(pair, one),
        lambda: PUBLIC.add_plain(pair, [1]),
        lambda: PUBLIC.multiply(pair, [1, 2, 3]),
    ):
        with pytest.raises(UsageError, match="do not go together"):
            use()
    for value in (HALF + 1, -HALF - 1, N):
        with pytest.raises(UsageError, match="outside") as refused:
            PUBLIC.encrypt([1, value])
        assert str(value) not in str(refused.value)
    with pytest.raises(UsageError, match="only integers"):
        PUBLIC.encrypt([1.5])  # type: ignore[list-item]
    with pytest.raises(UsageError, match="at least one"):
        PUBLIC.add()


def test_public_keys_survive_their_bytes() -> None:
    again = PublicKey.from_bytes(PUBLIC.to_bytes())
    assert again == PUBLIC
    assert hash(again) == hash(PUBLIC)
    assert again != OTHER.public
    assert again.fingerprint == hashlib.sha256(N.to_bytes(256, "big")).digest()
    assert KEY.decrypt(again.encrypt([-9])) == [-9]


def test_damaged_public_keys_are_refused() -> None:
    body = PUBLIC.to_bytes()
    p = KEY.primes[0]
    wrong = {
        "cut": body[:-1],
        "longer": body + b"\0",
        "padded": b"\0" * 128 + body,
        "short of its length": b"\0" + body[1:],
        "even": (N - 1).to_bytes(256, "big"),
        "three modulo four": (N + 2).to_bytes(256, "big"),
        "a square": (p * p).to_bytes(256, "big"),
        "with a small factor": (N - N % 84 + 84 * 5 + 21).to_bytes(256, "big"),
        "prime": int(_prime_of_1_mod_4()).to_bytes(256, "big"),
        "nothing": b"",
        "too long to be checked in time": b"\xff" * 8192,
    }
    for what, bad in wrong.items():
        with pytest.raises(InputError):
            pytest.fail(f"accepted: {what} {PublicKey.from_bytes(bad)}")
    with pytest.raises(InputError):
        PublicKey(-(N + 2))


def _prime_of_1_mod_4() -> mpz:
    prime = gmpy2.next_prime(mpz(3) << 2046)
    while prime % 4 != 1:
        prime = gmpy2.next_prime(prime)
    return prime


def test_ciphertexts_survive_their_bytes() -> None:
    made = PUBLIC.encrypt(EDGES)
    body = made.to_bytes()
    assert len(body) == 32 + 512 * len(EDGES)
    again = PUBLIC.ciphertexts_from_bytes(body)
    assert again.values == made.values
    assert KEY.decrypt(again) == EDGES
    assert len(PUBLIC.ciphertexts_from_bytes(body[:32])) == 0


def test_damaged_ciphertext_bytes_are_refused() -> None:
    body = PUBLIC.encrypt([1, 2]).to_bytes()
    flipped = bytes([body[0] ^ 1]) + body[1:]
    for bad in (b"", body[:31], flipped, body[:-1], body + b"\0", body[:-512] + bytes(512)):
        with pytest.raises(InputError):
            PUBLIC.ciphertexts_from_bytes(bad)
    with pytest.raises(InputError, match="n²"):
        PUBLIC.ciphertexts_from_bytes(body[:32] + b"\xff" * 512)


@pytest.mark.parametrize("key", [KEY, OTHER])
def test_keys_are_made_as_the_note_says(key: PrivateKey) -> None:
    p, q = key.primes
    assert key.public.bits == 2048
    assert int(key.public.n) == p * q
    assert p.bit_length() == q.bit_length() == 1024
    assert p % 4 == q % 4 == 3
    assert math.gcd(p - 1, q - 1) == 2
    assert math.gcd(p * q, (p - 1) * (q - 1)) == 1
    assert abs(p - q).bit_length() > 1024 - 100
    for prime in (p, q):
        assert gmpy2.is_strong_bpsw_prp(prime)
        assert not [small for small in range(3, 4096, 2) if (prime - 1) // 2 % small == 0]


def test_the_default_is_3072_bits_and_keys_differ() -> None:
    one = PrivateKey.generate(randomness=SeededRandomness("long"))
    assert one.public.bits == 3072
    assert one.decrypt(one.public.encrypt([-5, 2**3000])) == [-5, 2**3000]
    assert KEY.public != OTHER.public


def test_primes_that_make_a_bad_key_are_refused() -> None:
    p, q = KEY.primes
    close = _next(p, lambda c: bool(gmpy2.is_prime(c)))
    composite = _next(q, lambda c: not gmpy2.is_prime(c))
    one_modulo_four = next(c for c in range(q + 2, q + 2**20, 4) if gmpy2.is_prime(c))
    smooth = next(c for c in range(q + 4, q + 2**20, 4) if c % 3 == 1 and gmpy2.is_prime(c))
    for bad in (p, close, one_modulo_four, composite, smooth, q >> 1, 7, -q):
        with pytest.raises(UsageError, match=r"PrivateKey\.generate") as refused:
            PrivateKey(p, bad)
        assert str(p) not in str(refused.value)
    assert PrivateKey(p, q).decrypt(PUBLIC.encrypt([11])) == [11]


def _next(number: int, good: Callable[[int], bool]) -> int:
    """The next number that is wrong for a key in no way but the one asked for."""
    while True:
        number += 4
        if gmpy2.gcd(number // 2, paillier.SMALL_PRIMES) == 1 and good(number):
            return number


@pytest.mark.parametrize("bits", [0, 512, 1024, 2047, 3000, 16384])
def test_other_lengths_are_refused(bits: int) -> None:
    with pytest.raises(UsageError, match="2048, 3072, 4096"):
        PrivateKey.generate(bits)


def test_short_primes_are_refused() -> None:
    stream = SeededRandomness(4).stream()
    short = [paillier._prime(512, stream) for _ in range(2)]
    with pytest.raises(InputError, match="2048"):
        PrivateKey(*short)


def test_nothing_secret_is_shown() -> None:
    made = PUBLIC.encrypt([123456789])
    shown = f"{KEY!r} {KEY} {PUBLIC!r} {made!r} {made}"
    for secret in (*KEY.primes, 123456789, int(made.values[0])):
        assert str(secret) not in shown
        assert f"{secret:x}" not in shown
    assert PUBLIC.fingerprint[:8].hex() in shown


def test_the_table_is_built_once_whoever_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    built = []

    class Counted(Comb):
        def __init__(self, base: mpz, modulus: mpz, bits: int) -> None:
            built.append(bits)
            super().__init__(base, modulus, bits)

    monkeypatch.setattr(paillier, "Comb", Counted)
    key = PublicKey(N)
    assert built == []  # not before it is needed
    start = threading.Barrier(4)
    made: list[Ciphertexts] = []

    def run() -> None:
        start.wait()
        made.append(key.encrypt([1]))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert built == [1024]
    assert [KEY.decrypt(each) for each in made] == [[1]] * 4
