"""Shares: they recombine, each block is what sharing.md says, and alone they say nothing."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.crypto import sharing
from tacit.crypto.prg import SYSTEM, SeededRandomness
from tacit.crypto.ring import from_ring, to_ring
from tacit.crypto.sharing import (
    PIECE,
    SHORT,
    Shares,
    add_expansions,
    expand,
    split,
    split_pieces,
)
from tacit.errors import InputError, UsageError

CONTEXT = hashlib.sha256(b"study and round").digest()
OTHER = hashlib.sha256(b"study and another round").digest()
SEED = hashlib.sha256(b"a seed").digest()
EXTREMES = [-(2**63), 2**63 - 1, -1, 0, 1]
LENGTHS = [1, 2, 3, 124, SHORT - 1, SHORT, SHORT + 1, PIECE, PIECE + 1, 2 * PIECE + 5]


def recombined(shares: Shares, context: bytes) -> NDArray[np.int64]:
    total = shares.full.copy()
    for seed in shares.seeds:
        total += expand(seed, len(total), context)
    return from_ring(total)


def aes(key: bytes, block: bytes) -> bytes:
    return Cipher(AES(key), ECB()).encryptor().update(block)


def short_word(seed: bytes, place: int, context: bytes) -> int:
    """Word `place` of a short expansion, from AES of one block and Python's integers."""
    key = hashlib.sha256(b"tacit short share" + context).digest()[:16]
    counter = (place // 2).to_bytes(8, "little") + bytes(8)
    block = aes(key, bytes(a ^ b for a, b in zip(seed[:16], counter, strict=True)))
    half = slice(8, 16) if place % 2 else slice(0, 8)
    added = int.from_bytes(block[half], "little") + int.from_bytes(seed[16:][half], "little")
    return added % 2**64


def long_word(seed: bytes, place: int, context: bytes) -> int:
    """Word `place` of a long expansion: AES of the counter block it lies in (NIST SP 800-38A)."""
    secret = hashlib.sha256(b"tacit long share" + context + seed).digest()
    counter = (int.from_bytes(secret[16:], "big") + place // 2) % 2**128
    block = aes(secret[:16], counter.to_bytes(16, "big"))
    return int.from_bytes(block[8:] if place % 2 else block[:8], "little")


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=50),
    st.integers(2, 5),
)
def test_all_shares_recombine(values: list[int], servers: int) -> None:
    vector = np.array(values, dtype=np.int64)
    shares = split(to_ring(vector), servers, CONTEXT, SeededRandomness(1))
    assert len(shares.seeds) == servers - 1
    assert recombined(shares, CONTEXT).tolist() == values


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("servers", [2, 3, 5, 11])
def test_every_length_recombines(length: int, servers: int) -> None:
    vector = np.resize(np.array(EXTREMES, dtype=np.int64), length)
    shares = split(to_ring(vector), servers, CONTEXT, SeededRandomness(2))
    assert np.array_equal(recombined(shares, CONTEXT), vector)
    assert np.array_equal(vector, np.resize(np.array(EXTREMES, dtype=np.int64), length))


@settings(max_examples=20)
@given(st.lists(st.integers(0, 2 * PIECE), min_size=1, max_size=5), st.integers(2, 4))
def test_pieces_make_the_same_shares(sizes: list[int], servers: int) -> None:
    length = sum(sizes) + 1
    vector = np.arange(length, dtype=np.uint64)
    pieces = np.split(vector, np.cumsum(sizes))
    whole = split(vector, servers, CONTEXT, SeededRandomness(3))
    parts = split_pieces(iter(pieces), length, servers, CONTEXT, SeededRandomness(3))
    assert parts.seeds == whole.seeds
    assert np.array_equal(parts.full, whole.full)


def test_strided_vectors_can_be_shared() -> None:
    vector = np.arange(4 * PIECE, dtype=np.uint64)[::2]
    shares = split(vector, 2, CONTEXT, SeededRandomness(4))
    assert np.array_equal(recombined(shares, CONTEXT), vector)


@pytest.mark.parametrize("length", [1, 2, 7, 124, SHORT])
def test_short_expansion_known_answers(length: int) -> None:
    words = expand(SEED, length, CONTEXT)
    for place in {0, length // 2, length - 1}:
        assert int(words[place]) == short_word(SEED, place, CONTEXT)


@pytest.mark.parametrize("length", [SHORT + 1, PIECE + 2])
def test_long_expansion_known_answers(length: int) -> None:
    words = expand(SEED, length, CONTEXT)
    for place in {0, 1, length // 2, length - 2, length - 1}:
        assert int(words[place]) == long_word(SEED, place, CONTEXT)


@pytest.mark.parametrize("length", [1, 5, 124, SHORT, SHORT + 1])
def test_many_seeds_expand_as_each_alone(length: int) -> None:
    """More seeds than one batch holds, in both forms, and a last batch that is not full."""
    count = min(600, PIECE // length + 3) + sharing.OPEN
    seeds = [hashlib.sha256(number.to_bytes(4)).digest() for number in range(count)]
    together, alone = np.ones(length, dtype=np.uint64), np.ones(length, dtype=np.uint64)
    add_expansions(together, seeds, CONTEXT)
    for seed in seeds:
        alone += expand(seed, length, CONTEXT)
    assert np.array_equal(together, alone)


@pytest.mark.parametrize("length", [SHORT, SHORT + 1])
def test_other_seeds_and_contexts_are_unrelated(length: int) -> None:
    """No word in common, and half of all bits differ (within 6 standard deviations)."""
    words = expand(SEED, length, CONTEXT)
    for seed, context in ((SEED, OTHER), (OTHER, CONTEXT), (CONTEXT, CONTEXT)):
        other = expand(seed, length, context)
        assert not set(words.tolist()) & set(other.tolist())
        differing = int(np.bitwise_count(words ^ other).sum())
        assert abs(differing - 32 * length) < 6 * math.sqrt(16 * length)


def chi_square(words: NDArray[np.uint64]) -> float:
    """Of the bytes of all words, against uniform: 255 degrees of freedom."""
    found = np.bincount(words.view(np.uint8), minlength=256)
    expected = 8 * len(words) / 256
    return float(((found - expected) ** 2 / expected).sum())


# Exceeded by uniform bytes with probability 1e-9 (chi-square, 255 degrees of freedom): some 60
# statistics below, so a false alarm in 6e-8 of all runs, were the seeds drawn anew (they are not).
LIMIT = 414.5


@pytest.mark.statistical
@pytest.mark.parametrize("length", [SHORT, 4 * PIECE])
@pytest.mark.parametrize("value", EXTREMES)
def test_each_share_looks_uniform(length: int, value: int) -> None:
    vector = to_ring(np.full(length, value, dtype=np.int64))
    assert chi_square(vector) > LIMIT
    shares = split(vector, 3, CONTEXT, SeededRandomness(5))
    for share in (shares.full, *(expand(seed, length, CONTEXT) for seed in shares.seeds)):
        assert chi_square(share) < LIMIT
        assert chi_square(np.diff(share)) < LIMIT


@pytest.mark.statistical
def test_full_shares_of_many_holders_look_uniform() -> None:
    """One word of each of 5,000 short shares: here the seeds differ, and the counter does not."""
    randomness = SeededRandomness(6)
    vector = np.zeros(1, dtype=np.uint64)
    drawn = [split(vector, 2, CONTEXT, randomness).full[0] for _ in range(5_000)]
    assert chi_square(np.array(drawn, dtype=np.uint64)) < LIMIT


@pytest.mark.parametrize("length", [124, SHORT + 1])
def test_without_one_share_every_vector_is_possible(length: int) -> None:
    """Seeds do not depend on the vector; without one seed, another would explain any vector."""
    vectors = [np.full(length, value, dtype=np.uint64) for value in (0, 2**64 - 1)]
    one, two = (split(vector, 3, CONTEXT, SeededRandomness(7)) for vector in vectors)
    assert one.seeds == two.seeds
    moved = two.full - one.full
    assert np.array_equal(moved, vectors[1] - vectors[0])


def test_seeds_are_fresh() -> None:
    vector = np.zeros(3, dtype=np.uint64)
    drawn = [seed for _ in range(3) for seed in split(vector, 3, CONTEXT, SYSTEM).seeds]
    assert len(set(drawn)) == 6
    assert {len(seed) for seed in drawn} == {sharing.SEED_BYTES}


def test_shares_are_not_printed() -> None:
    shares = split(np.arange(3, dtype=np.uint64), 2, CONTEXT)
    assert repr(shares) == "Shares()"


def test_wrong_calls_are_refused() -> None:
    vector = np.zeros(3, dtype=np.uint64)
    with pytest.raises(UsageError, match="at least 2 servers, not 1"):
        split(vector, 1, CONTEXT)
    with pytest.raises(UsageError, match="32 bytes, not 5"):
        split(vector, 2, b"short")
    for wrong in (np.zeros(3), np.zeros((3, 3), np.uint64), np.zeros(3, np.int64)):
        with pytest.raises(UsageError, match="to_ring"):
            split(wrong, 2, CONTEXT)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="at least one word"):
        split(vector[:0], 2, CONTEXT)
    with pytest.raises(UsageError, match="at least one word"):
        expand(SEED, 0, CONTEXT)


@pytest.mark.parametrize("length", [10, SHORT + 10])
def test_pieces_must_make_up_the_length(length: int) -> None:
    piece = np.zeros(length - 1, dtype=np.uint64)
    with pytest.raises(UsageError, match=f"{length - 1} words together, not {length}"):
        split_pieces([piece], length, 2, CONTEXT)
    with pytest.raises(UsageError, match=f"vector of {length}"):
        split_pieces([piece, piece], length, 2, CONTEXT)


@pytest.mark.parametrize("length", [10, SHORT + 10])
def test_wrong_seeds_are_refused_and_not_shown(length: int) -> None:
    total = np.zeros(length, dtype=np.uint64)
    for bad in (SEED[:-1], SEED + b"x", b""):
        with pytest.raises(InputError, match="32 bytes") as caught:
            add_expansions(total, [SEED, bad], CONTEXT)
        assert SEED.hex()[:8] not in str(caught.value)
    assert not total.any()
