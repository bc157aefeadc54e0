"""Random powers of one base: the comb of Lim and Lee (CRYPTO 1994, section 3).

An exponent of e bits is written as a matrix of 8 rows: its columns are bytes, and a byte picks one
of 256 precomputed products. Columns lie in 8 blocks with a table each, which share the squarings:
e/64 squarings and e/8 multiplications for a power, instead of about 1.2·e. Tables of all bytes in
all places (no squarings left) are no faster, being larger than the cache, and take 15 times as long
to build.
"""

from __future__ import annotations

from collections.abc import Iterator

from gmpy2 import mpz

from tacit.errors import UsageError

__all__ = ["Comb"]

TEETH = 8  # rows: a column is one byte, so a random exponent is a string of random bytes
BLOCKS = 8


class Comb:
    """Powers of `base` modulo `modulus` with exponents below 2^`bits`, a multiple of 64."""

    def __init__(self, base: mpz, modulus: mpz, bits: int) -> None:
        if bits < 1 or bits % (TEETH * BLOCKS):
            raise UsageError(f"exponents have a multiple of {TEETH * BLOCKS} bits, not {bits}.")
        self._modulus = modulus
        self.digits = bits // TEETH  # bytes that stand for one exponent
        self._tables = list(_tables(base, modulus, self.digits))

    def power(self, digits: bytes) -> mpz:
        """base^a, where bit i of byte k has the weight 2^(i·len(digits) + k) in a.

        Bits and exponents correspond one to one: uniform bytes are a uniform exponent.
        """
        if len(digits) != self.digits:
            raise UsageError(f"an exponent has {self.digits} bytes, not {len(digits)}.")
        modulus, tables = self._modulus, self._tables
        width = self.digits // BLOCKS
        product = mpz(1)
        for column in range(width - 1, -1, -1):
            product = product * product % modulus
            for table, digit in zip(tables, digits[column::width], strict=True):
                product = product * table[digit] % modulus
        return product


def _tables(base: mpz, modulus: mpz, columns: int) -> Iterator[list[mpz]]:
    """For every block, the products of all subsets of its teeth, in binary order."""
    width = columns // BLOCKS
    corners = _corners(base, modulus, width)
    for block in range(BLOCKS):
        table = [mpz(1)]
        for tooth in range(TEETH):
            corner = corners[tooth * BLOCKS + block]
            table += [product * corner % modulus for product in table]
        yield table


def _corners(base: mpz, modulus: mpz, width: int) -> list[mpz]:
    """base^(2^(width·i)): the lowest exponent of every tooth in every block."""
    corners = [base]
    for _ in range(TEETH * BLOCKS - 1):
        power = corners[-1]
        for _ in range(width):
            power = power * power % modulus
        corners.append(power)
    return corners
