"""Rows of packed bits: bit i of a row is bit i mod 8 of its byte i div 8."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["count_bits", "flip_bits", "ones_in", "set_bits", "spare_bits_are_zero"]

Rows = NDArray[np.uint8]

MASKS = np.left_shift(1, np.arange(8)).astype(np.uint8)
BLOCKS = 31  # rows added up bitwise before anything is unpacked: 31 ones fill five binary digits
PIECE = 1 << 20  # bytes at a time, so that they stay in the cache
FEW = 255  # rows whose sum fits a byte


def set_bits(rows: Rows, places: NDArray[np.int64], bits: NDArray[np.bool_]) -> None:
    """Make the bit at its place in each row what it is told to be."""
    octets, masks = _octets(rows, np.arange(len(rows)), places)
    flat = rows.reshape(-1)
    flat[octets] = (flat[octets] & ~masks) | masks * bits


def flip_bits(
    rows: Rows, some: NDArray[np.int64], places: NDArray[np.int64], found: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Flip the bit at its place in each of some rows, if it is what was `found`; tell where."""
    octets, masks = _octets(rows, some, places)
    flat = rows.reshape(-1)
    fits: NDArray[np.bool_] = ((flat[octets] & masks) != 0) == found
    flat[octets] ^= masks * fits
    return fits


def _octets(
    rows: Rows, some: NDArray[np.int64], places: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Rows]:
    """Where the bytes of these bits lie among all bytes, and the bits within them."""
    return some * rows.shape[1] + (places >> 3), MASKS[places & 7]


def spare_bits_are_zero(rows: Rows, width: int) -> NDArray[np.bool_]:
    """Whether each row has nothing beyond its `width` bits."""
    return np.asarray(rows[:, -1] >> (width - 1) % 8 < 2)


def ones_in(rows: Rows) -> NDArray[np.int64]:
    """How many bits of each row are 1."""
    return np.asarray(np.bitwise_count(rows).sum(axis=1, dtype=np.int64))


def count_bits(rows: Rows, width: int) -> NDArray[np.int64]:
    """In how many rows each of the `width` bits is 1.

    Blocks of rows are added bit by bit in binary, by full adders on whole bytes (carry-save, as in
    Harley's and Seal's population count), so that only the few rows of digits are unpacked.
    """
    total = np.zeros(rows.shape[1] * 8, dtype=np.int64)
    each = max(1, PIECE // (BLOCKS * rows.shape[1]))
    start = 0
    while (left := (len(rows) - start) // BLOCKS) > 0:
        size = min(each, left) * BLOCKS
        blocks = rows[start : start + size].reshape(BLOCKS, -1, rows.shape[1])
        for digit, summands in enumerate(_added(blocks)):
            for summand in summands:
                total += _unpacked_sum(summand) << digit
        start += size
    total += _unpacked_sum(rows[start:])
    return total[:width]


def _added(blocks: NDArray[np.uint8]) -> list[list[Rows]]:
    """Summands by binary digit: at most two for each, the same sum in every bit."""
    digits: list[list[Rows]] = []
    for block in blocks:
        carry, digit = block, 0
        while True:
            if digit == len(digits):
                digits.append([])
            digits[digit].append(carry)
            if len(digits[digit]) < 3:
                break
            a, b, c = digits[digit]
            either = a ^ b
            digits[digit] = [either ^ c]
            carry = (a & b) | (either & c)
            digit += 1
    return digits


def _unpacked_sum(rows: Rows) -> NDArray[np.int64]:
    total = np.zeros(rows.shape[1] * 8, dtype=np.int64)
    for start in range(0, len(rows), FEW):
        bits = np.unpackbits(rows[start : start + FEW], axis=1, bitorder="little")
        total += np.add.reduce(bits, axis=0, dtype=np.uint8)
    return total
