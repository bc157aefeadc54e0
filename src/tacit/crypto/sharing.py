"""Additive sharing in Z_2^64: m shares that sum to a vector, of which any m − 1 say nothing.

m − 1 of the shares are 32-byte seeds, which their servers stretch themselves; one is as long as the
vector. So a holder sends 8·d + 32·(m − 1) bytes instead of 8·d·m. Why this hides the vector:
sharing.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR, ECB
from numpy.typing import NDArray

from tacit.crypto.prg import SYSTEM, Randomness
from tacit.errors import InputError, UsageError

__all__ = [
    "PIECE",
    "SEED_BYTES",
    "SHORT",
    "Shares",
    "add_expansions",
    "expand",
    "split",
    "split_pieces",
]

Words = NDArray[np.uint64]

SEED_BYTES = 32
CONTEXT_BYTES = 32
# Up to here a seed is stretched by a public permutation, many seeds in one call: a cipher for each
# costs as much as 8,000 words of keystream, and a server has thousands of seeds. Beyond, counter
# mode costs no more (measured: they meet at 4,500 words), and its assumption is the weaker one.
SHORT = 4096
PIECE = 1 << 15  # words (256 kB) in work at a time: they stay in the second-level cache
ZEROS = memoryview(bytes(8 * PIECE))  # encrypted to get the keystream
OPEN = 8  # ciphers in use at a time, each stretching one seed over the same piece
BLOCK_BYTES = 16


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """What the servers get: `seeds[j]` goes to server j, `full` to the last. Never printed."""

    seeds: tuple[bytes, ...] = field(repr=False)
    full: Words = field(repr=False)


def fresh_seed(randomness: Randomness = SYSTEM) -> bytes:
    """A seed that `expand` stretches: of a share, or of a mask."""
    return randomness.stream().bytes(SEED_BYTES)


def split(vector: Words, servers: int, context: bytes, randomness: Randomness = SYSTEM) -> Shares:
    """Shares of `vector` for `servers` servers, of which every single one is needed.

    `context` is public, 32 bytes that no other round of any study has (a digest of both).
    """
    return split_pieces([vector], len(vector), servers, context, randomness)


def split_pieces(
    pieces: Iterable[Words],
    length: int,
    servers: int,
    context: bytes,
    randomness: Randomness = SYSTEM,
) -> Shares:
    """`split`, of a vector of `length` words that comes in pieces.

    So a holder can clip, round and share a piece (best: `PIECE` words) while it is in the cache:
    the steps one after another, each on the whole of a long vector, take three times as long.
    """
    if servers < 2:
        raise UsageError(f"sharing needs at least 2 servers, not {servers}: one would see it all.")
    stream = randomness.stream()
    seeds = tuple(stream.bytes(SEED_BYTES) for _ in range(servers - 1))
    _check(seeds, length, context)
    full = np.empty(length, dtype=np.uint64)
    expansion = None if length <= SHORT else _Long(seeds, context)
    filled = 0
    for piece in pieces:
        if piece.dtype != np.uint64 or piece.ndim != 1 or filled + len(piece) > length:
            raise UsageError(f"what is shared is a vector of {length} uint64: see ring.to_ring.")
        out = full[filled : filled + len(piece)]
        if expansion is None:
            out[:] = piece
        else:
            expansion.fold(np.subtract, piece, out)
        filled += len(piece)
    if filled != length:
        raise UsageError(f"the pieces have {filled} words together, not {length}.")
    if expansion is None:
        full -= _sum_of_short(seeds, length, context)
    return Shares(seeds, full)


def expand(seed: bytes, length: int, context: bytes) -> Words:
    """The share of `length` words that a seed stands for."""
    share = np.zeros(max(length, 0), dtype=np.uint64)
    add_expansions(share, [seed], context)
    return share


def add_expansions(total: Words, seeds: Sequence[bytes], context: bytes) -> None:
    """Add to `total`, in place, the shares of its length that the seeds stand for."""
    _check(seeds, len(total), context)
    if len(total) <= SHORT:
        total += _sum_of_short(seeds, len(total), context)
        return
    for first in range(0, len(seeds), OPEN):
        _Long(seeds[first : first + OPEN], context).fold(np.add, total, total)


def _check(seeds: Sequence[bytes], length: int, context: bytes) -> None:
    if length < 1:
        raise UsageError(f"a share has at least one word, not {length}.")
    if len(context) != CONTEXT_BYTES:
        raise UsageError(f"a context has {CONTEXT_BYTES} bytes, not {len(context)}: use a digest.")
    if any(len(seed) != SEED_BYTES for seed in seeds):
        raise InputError(f"a seed share does not have {SEED_BYTES} bytes: ask its holder again.")


class _Long:
    """The expansions of a few seeds to long vectors: AES-128 in counter mode, from the left on."""

    def __init__(self, seeds: Sequence[bytes], context: bytes) -> None:
        self._streams = [_keystream(seed, context) for seed in seeds]
        self._words = np.empty(PIECE, dtype=np.uint64)

    def fold(self, operation: np.ufunc, source: Words, out: Words) -> None:
        """`out` = `source` plus or minus the next words of every seed."""
        room = self._words.data.cast("B")
        for place in range(0, len(out), PIECE):
            start, piece = source[place : place + PIECE], out[place : place + PIECE]
            for stream in self._streams:
                stream.update_into(ZEROS[: piece.nbytes], room[: piece.nbytes])
                operation(start, self._words[: len(piece)], out=piece)
                start = piece


def _keystream(seed: bytes, context: bytes) -> CipherContext:
    """Key and first counter block are a hash of seed and context."""
    secret = hashlib.sha256(b"tacit long share" + context + seed).digest()
    return Cipher(AES(secret[:BLOCK_BYTES]), CTR(secret[BLOCK_BYTES:])).encryptor()


def _sum_of_short(seeds: Sequence[bytes], length: int, context: bytes) -> Words:
    """The sum of the expansions of many seeds (s, t): block i of each is π(s ⊕ i) + t.

    π is AES-128 under a public key, so that all seeds share one cipher; s and t, 16 bytes each,
    make it a keyed function (Even & Mansour 1997). t is added, not xored, word by word: so the t of
    all seeds are summed first and added once.
    """
    key = hashlib.sha256(b"tacit short share" + context).digest()[:BLOCK_BYTES]
    permutation = Cipher(AES(key), ECB()).encryptor()  # noqa: S305  (a permutation, not a cipher)
    blocks = -(-length // 2)
    rows = max(1, min(len(seeds), PIECE // (2 * blocks)))
    # The cipher asks for room for a block more (less a byte) than it writes.
    permuted = np.empty(rows * 2 * blocks + 2, dtype=np.uint64)
    total = np.zeros((blocks, 2), dtype=np.uint64)
    for first in range(0, len(seeds), rows):
        batch = seeds[first : first + rows]
        halves = np.frombuffer(b"".join(batch), dtype="<u8").reshape(-1, 2, 2)
        inputs = _counters_under(halves[:, 0], blocks)
        written = permutation.update_into(inputs.data.cast("B"), permuted.data.cast("B"))
        total += permuted[: written // 8].reshape(len(batch), -1).sum(axis=0).reshape(blocks, 2)
        total += halves[:, 1].sum(axis=0)
    return total.reshape(-1)[:length]


def _counters_under(masks: Words, blocks: int) -> Words:
    """s ⊕ i for every mask s (two words) and block number i, which is in the first word."""
    inputs = np.empty((len(masks), blocks, 2), dtype=np.uint64)
    np.bitwise_xor(masks[:, :1], np.arange(blocks, dtype=np.uint64), out=inputs[:, :, 0])
    inputs[:, :, 1] = masks[:, 1:]
    return inputs
