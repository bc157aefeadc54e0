"""DGK: textbook arithmetic agrees, malformed keys and ciphertexts are refused, secrets stay."""

from __future__ import annotations

import gmpy2
import numpy as np
import pytest
from gmpy2 import mpz
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tacit.crypto import dgk
from tacit.crypto.dgk import PLAINTEXTS, PrivateKey, PublicKey
from tacit.crypto.prg import Keystream, SeededRandomness
from tacit.errors import InputError, UsageError

KEY = PrivateKey.generate(2048, SeededRandomness("a key"))
OTHER = PrivateKey.generate(2048, SeededRandomness("another key"))
PUBLIC = KEY.public
N, G, H = int(PUBLIC.n), int(PUBLIC.g), int(PUBLIC.h)
P, Q, V_P, V_Q = KEY.secrets
ALL = list(range(PLAINTEXTS))
PLAIN = st.integers(0, PLAINTEXTS - 1)
FEW = settings(max_examples=25)
TABLES = {
    (prime, order): {pow(G, order * m, prime): m for m in ALL}
    for prime, order in ((P, V_P), (Q, V_Q))
}
FALSE_ALARM = 1e-6  # draws are seeded: this is how often another seed would fail


def decrypted(c: int, prime: int = P, order: int = V_P) -> int:
    """By a table of all plaintexts, as the paper does it."""
    return TABLES[prime, order][pow(int(c), order, prime)]


class Recorded:
    """A Randomness that gives the same stream to whoever recomputes."""

    secure = False

    def stream(self) -> Keystream:
        return Keystream(bytes(range(32)))


@pytest.mark.parametrize("key", [KEY, PUBLIC])
def test_all_numbers_survive_modulo_both_primes(key: PrivateKey | PublicKey) -> None:
    made = key.encrypt(ALL)
    assert [decrypted(c) for c in made] == ALL
    assert [decrypted(c, Q, V_Q) for c in made] == ALL
    assert KEY.are_zero(made) == [m == 0 for m in ALL]
    assert key.encrypt([]) == []


def test_the_default_is_3072_bits() -> None:
    key = PrivateKey.generate(randomness=SeededRandomness("long"))
    assert key.public.bits == 3072
    assert key.are_zero(key.public.encrypt([0, 1])) == [True, False]
    assert key.are_zero(key.encrypt([0, 36])) == [True, False]


def test_a_ciphertext_is_what_the_note_says() -> None:
    """c = g^m·h^r with r from the stream, by Python's own integers."""
    stream = Recorded().stream()
    for m, c in zip([5, 0], PUBLIC.encrypt([5, 0], Recorded()), strict=True):
        digits = stream.bytes((2 * 256 + 128) // 8)
        r = sum(
            1 << (tooth * len(digits) + place)
            for place, digit in enumerate(digits)
            for tooth in range(8)
            if digit >> tooth & 1
        )
        assert c == pow(G, m, N) * pow(H, r, N) % N


def test_the_owners_ciphertext_is_what_the_note_says() -> None:
    """Exponents below v_p come first in the stream, then those below v_q: those beyond are lost."""
    stream = Recorded().stream()
    at_p, at_q = (
        [int.from_bytes(e, "little") for e in dgk._below(mpz(order), 2, stream)]
        for order in (V_P, V_Q)
    )
    for m, c, r_p, r_q in zip([7, 36], KEY.encrypt([7, 36], Recorded()), at_p, at_q, strict=True):
        assert c % P == pow(G, m, P) * pow(H, r_p, P) % P
        assert c % Q == pow(G, m, Q) * pow(H, r_q, Q) % Q


@pytest.mark.statistical
def test_the_owners_exponents_are_uniform_below_the_order() -> None:
    stream = SeededRandomness(1).stream()
    order = mpz(3) << 254  # 25 % of the exponents of as many bits are beyond

    def spread(exponents: list[int]) -> float:
        counts = np.bincount([int(16 * e // order) for e in exponents], minlength=16)
        return float(stats.chisquare(counts).pvalue)

    drawn = [int.from_bytes(e, "little") for e in dgk._below(order, 8000, stream)]
    assert len(drawn) == 8000
    assert max(drawn) < order
    assert spread(drawn) > FALSE_ALARM
    assert spread([stream.integer(256) % int(order) for _ in range(8000)]) < FALSE_ALARM


@FEW
@given(PLAIN, PLAIN, PLAIN)
def test_arithmetic_is_modulo_u(a: int, b: int, c: int) -> None:
    x, y = KEY.encrypt([a, b])
    assert decrypted(PUBLIC.add(x, y, PUBLIC.constant(c))) == (a + b + c) % PLAINTEXTS
    assert decrypted(PUBLIC.multiply(x, c)) == a * c % PLAINTEXTS
    assert decrypted(PUBLIC.negative(x)) == -a % PLAINTEXTS
    assert decrypted(PUBLIC.rerandomise([x])[0]) == a


def test_the_same_number_never_looks_the_same() -> None:
    one = PUBLIC.constant(1)
    made = [*KEY.encrypt([1] * 20), *PUBLIC.encrypt([1] * 20), *PUBLIC.rerandomise([one] * 20), one]
    assert len(set(made)) == 61


@pytest.mark.statistical
def test_ciphertexts_are_spread_evenly_whoever_makes_them() -> None:
    def spread(made: list[mpz]) -> float:
        return float(stats.chisquare(np.bincount([int(16 * c // N) for c in made])).pvalue)

    assert spread(KEY.encrypt([1] * 800, SeededRandomness(2))) > FALSE_ALARM
    assert spread(PUBLIC.encrypt([1] * 800, SeededRandomness(3))) > FALSE_ALARM
    assert spread([PUBLIC.constant(m % 3) for m in range(800)]) < FALSE_ALARM


def test_masks_are_longer_than_the_order_of_h(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that even the owner of the key cannot link what was rerandomised."""
    lengths = []

    class Watched(dgk.Comb):
        def __init__(self, base: mpz, modulus: mpz, bits: int) -> None:
            lengths.append((bits, int(modulus).bit_length()))
            super().__init__(base, modulus, bits)

    monkeypatch.setattr(dgk, "Comb", Watched)
    PrivateKey(PublicKey(N, G, H), KEY.secrets)
    assert (V_P * V_Q).bit_length() + 128 <= 640
    assert lengths == [(640, 2048), (256, 1024), (256, 1024)]


@pytest.mark.parametrize("key", [KEY, OTHER])
def test_keys_are_made_as_the_note_says(key: PrivateKey) -> None:
    p, q, v_p, v_q = key.secrets
    public = key.public
    assert int(public.n) == p * q
    assert public.n.bit_length() == 2048
    assert p.bit_length() == q.bit_length() == 1024
    assert all(gmpy2.is_strong_bpsw_prp(prime) for prime in key.secrets)
    for prime, order in ((p, v_p), (q, v_q)):
        g, h = int(public.g) % prime, int(public.h) % prime
        assert order.bit_length() == 256
        assert (prime - 1) % (2 * PLAINTEXTS * order) == 0
        assert pow(h, order, prime) == 1 != h
        assert pow(g, PLAINTEXTS * order, prime) == 1
        assert pow(g, order, prime) != 1
        assert pow(g, PLAINTEXTS, prime) != 1
    # The correction of 2009: nothing that everyone knows is a multiple of the orders.
    assert pow(int(public.h), int(public.n) - 1, int(public.n)) != 1


def test_one_order_for_both_primes_would_be_read_by_everyone_and_is_refused() -> None:
    """The system as first published: v divides p − 1 and q − 1, hence n − 1."""
    stream = SeededRandomness("shared order").stream()
    v = mpz(V_P)
    while True:
        p, q = (dgk._prime_above(v, 1024, stream) for _ in range(2))
        exponent = (p * q - 1) // PLAINTEXTS
        if exponent % PLAINTEXTS:
            break
    inverse = gmpy2.invert(q, p)
    g, h = (
        dgk._joined(dgk._element(o * v, p, stream), dgk._element(o * v, q, stream), p, q, inverse)
        for o in (PLAINTEXTS, 1)
    )
    public = PublicKey(p * q, g, h)
    read = [pow(int(c), int(exponent), int(public.n)) == 1 for c in public.encrypt([0, 1, 0, 9])]
    assert read == [True, False, True, False]  # without any secret
    with pytest.raises(UsageError, match="safe key"):
        PrivateKey(public, (p, q, v, v))


def test_other_secrets_are_refused() -> None:
    assert PrivateKey(PUBLIC, KEY.secrets).are_zero(KEY.encrypt([0, 3])) == [True, False]
    bad = [
        OTHER.secrets,
        (Q, P, V_P, V_Q),
        (P, Q, V_Q, V_P),
        (P, Q, V_P, 2 * V_Q),
        (1, N, V_P, V_Q),
        (P, Q, V_P, int(gmpy2.next_prime(V_Q))),
    ]
    for secrets in bad:
        with pytest.raises(UsageError, match=r"PrivateKey\.generate") as refused:
            PrivateKey(PUBLIC, secrets)
        assert not [s for s in secrets if s > 1 and str(s) in str(refused.value)]
    for g, h in ((H, G), (pow(G, PLAINTEXTS, N), H), (G, 4)):
        with pytest.raises(UsageError, match="do not belong"):
            PrivateKey(PublicKey(N, g, h), KEY.secrets)


@pytest.mark.parametrize("bits", [0, 1024, 2047, 2056, 4096])
def test_other_lengths_are_refused(bits: int) -> None:
    with pytest.raises(UsageError, match="2048 or 3072"):
        PrivateKey.generate(bits)


def test_malformed_ciphertexts_are_refused() -> None:
    good = int(KEY.encrypt([1])[0])
    for bad in (0, -1, -good, N, N + good):
        with pytest.raises(InputError, match=r"\(0, n\)"):
            PUBLIC.checked([good, bad])
    for bad in (P, Q, 3 * P, N - Q):
        with pytest.raises(InputError, match="factor"):
            PUBLIC.checked([good, bad, good])
    assert PUBLIC.checked([good]) == [good]


def test_made_up_ciphertexts_are_refused_by_the_owner() -> None:
    stream = SeededRandomness("made up").stream()
    for made_up in (2, N - 1, stream.below(N), int(OTHER.encrypt([0])[0]) % N):
        assert PUBLIC.checked([made_up]) == [made_up]  # nobody else can tell
        with pytest.raises(InputError, match="g\\^m·h\\^r"):
            KEY.are_zero([mpz(made_up)])


def test_ciphertexts_survive_their_bytes() -> None:
    made = KEY.encrypt(ALL)
    body = PUBLIC.write(made)
    assert len(body) == 256 * len(made)
    assert PUBLIC.read(body) == made
    assert PUBLIC.read(b"") == []
    for bad in (body[:-1], body + b"\0", body + bytes(256), b"\xff" * 256):
        with pytest.raises(InputError):
            PUBLIC.read(bad)


def test_public_keys_survive_their_bytes() -> None:
    again = PublicKey.from_bytes(PUBLIC.to_bytes())
    assert again == PUBLIC
    assert hash(again) == hash(PUBLIC)
    assert again != OTHER.public
    assert decrypted(again.encrypt([9])[0]) == 9


def test_damaged_public_keys_are_refused() -> None:
    body = PUBLIC.to_bytes()
    prime = dgk._prime_above(mpz(V_P), 2048, SeededRandomness("prime").stream())
    not_square = next(x for x in range(2, 99) if gmpy2.jacobi(x, N) == -1)
    wrong = {
        "cut": body[:-1],
        "short": body[: 3 * 128],
        "longer": body + bytes(3),
        "nothing": b"",
        "top bit lost": bytes([body[0] & 0x7F]) + body[1:],
        "another n": (N + 2).to_bytes(256, "big") + body[256:],
        "with a small factor": _with_small_factor().to_bytes(256, "big") + body[256:],
        "a square": (P * P).to_bytes(256, "big") + body[256:],
        "prime": int(prime).to_bytes(256, "big") + body[256:],
        "g is 1": body[:256] + (1).to_bytes(256, "big") + body[512:],
        "g is n": body[:256] + body[:256] + body[512:],
        "h is 0": body[:512] + bytes(256),
        "h is g": body[:512] + body[256:512],
        "h is p": body[:512] + P.to_bytes(256, "big"),
        "h is no square": body[:512] + not_square.to_bytes(256, "big"),
    }
    for what, bad in wrong.items():
        with pytest.raises(InputError):
            pytest.fail(f"accepted: {what} {PublicKey.from_bytes(bad)}")


def _with_small_factor() -> int:
    return next(n for n in range(N, N + 2**20, 2 * PLAINTEXTS) if n % 101 == 0)


def test_wrong_calls_are_refused() -> None:
    for use in (
        lambda: KEY.encrypt([1, PLAINTEXTS]),
        lambda: PUBLIC.encrypt([-1]),
        lambda: PUBLIC.constant(PLAINTEXTS),
        lambda: PUBLIC.multiply(PUBLIC.constant(1), PLAINTEXTS),
    ):
        with pytest.raises(UsageError, match="from 0 to 36"):
            use()


def test_nothing_secret_is_shown() -> None:
    shown = f"{KEY!r} {KEY} {PUBLIC!r} {KEY._p!r}"
    for secret in KEY.secrets:
        assert str(secret) not in shown
        assert f"{secret:x}" not in shown
    assert PUBLIC.fingerprint[:8].hex() in shown
