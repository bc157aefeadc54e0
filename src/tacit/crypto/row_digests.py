"""Digests of many rows at once, under a key: CBC-MAC over AES, a column of blocks at a time.

Whoever lacks the key can neither recognise a row by its digest nor test a guess. Why this is a
pseudorandom function, and what that means for a set of digests, stands in
`privacy/ledger/known.md`.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB
from numpy.typing import NDArray

__all__ = ["DIGEST_BITS", "RowDigests"]

Words = NDArray[np.uint64]

DIGEST_BITS = 48
_BLOCK = 16  # bytes


class RowDigests:
    """A function from rows of so many 64-bit words to 48 bits.

    The key is derived from `secret` and `domain`, the number of words included: CBC-MAC is a
    pseudorandom function on messages of one length only.
    """

    def __init__(self, secret: bytes, domain: str, words: int) -> None:
        key = hmac.new(secret, f"{words} {domain}".encode(), hashlib.sha256).digest()[:16]
        # ECB on independent blocks is the bare permutation, which CBC-MAC iterates.
        self._permute = Cipher(AES(key), ECB()).encryptor()  # noqa: S305
        self._words = words

    def __call__(self, columns: Sequence[Words]) -> Words:
        """The digest of each row, its words given column by column."""
        assert len(columns) == self._words
        size = len(columns[0]) * _BLOCK
        before, after = (bytearray(size + _BLOCK - 1) for _ in range(2))  # what update_into needs
        for first in range(0, self._words, 2):
            state = np.frombuffer(before, "<u8", size // 8).reshape(-1, 2)
            for half, column in enumerate(columns[first : first + 2]):
                state[:, half] ^= column
            self._permute.update_into(memoryview(before)[:size], after)
            before, after = after, before
        state = np.frombuffer(before, "<u8", size // 8).reshape(-1, 2)
        return np.asarray(state[:, 0] >> np.uint64(64 - DIGEST_BITS), dtype=np.uint64)
