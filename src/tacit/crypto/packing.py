"""Many signed integers in one large plaintext, which add without disturbing each other.

A plaintext is cut into slots of whole bytes. A value v in [−2^(b−1), 2^(b−1)) is stored as
v + 2^(b−1), which is never negative, so no borrow crosses into a neighbour; and a slot is wide
enough for the sum of `terms` such values, so no carry does either (paillier.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, UsageError

__all__ = ["Packing"]

WORD_BITS = 64
# Plaintexts are signed, in (−n/2, n/2), and n of `modulus_bits` bits is at least 2^(bits−1): what
# is below 2^(bits−2) is read back as it was.
SIGN_BITS = 2
NOT_A_SUM = (
    "what was decrypted is not a sum of that many packed vectors: a party added something else, "
    "or more often, or packed it in another way."
)


@dataclass(frozen=True, slots=True)
class Packing:
    """How values of `value_bits` bits (sign included) lie in plaintexts, to be added `terms` times.

    Whatever is added counts as a term: a party's vector, a noise share, a mask, each packed the
    same way. Multiplying by k counts k times.
    """

    modulus_bits: int
    value_bits: int
    terms: int

    def __post_init__(self) -> None:
        if self.value_bits < 1 or self.terms < 1:
            raise UsageError(
                f"packing needs values of at least 1 bit and at least 1 term, not "
                f"{self.value_bits} and {self.terms}."
            )
        if self.slots < 1:
            raise UsageError(
                f"{self.terms} terms of {self.value_bits} bits need a slot of {8 * self._width} "
                f"bits, more than a modulus of {self.modulus_bits} bits holds: ask for fewer terms "
                "or bits, or use a longer key."
            )

    @property
    def slot_bits(self) -> int:
        """What a slot must hold: Σ of `terms` numbers below 2^value_bits."""
        return self.value_bits + (self.terms - 1).bit_length()

    @property
    def slots(self) -> int:
        """Values in one plaintext."""
        return (self.modulus_bits - SIGN_BITS) // (8 * self._width)

    @property
    def _width(self) -> int:
        """Bytes of a slot: `slot_bits`, rounded up."""
        return -(-self.slot_bits // 8)

    @property
    def _offset(self) -> int:
        return 1 << (self.value_bits - 1)

    def plaintexts(self, length: int) -> int:
        """How many plaintexts a vector of `length` values takes."""
        return -(-length // self.slots)

    def pack(self, values: NDArray[Any] | Sequence[int]) -> list[int]:
        """The plaintexts of a vector of integers; unused slots at its end are 0."""
        array = np.asarray(values)
        if array.ndim != 1 or not len(array):
            raise UsageError(f"what is packed is a vector, not of shape {array.shape}.")
        body = self._narrow(array) if self.slot_bits <= WORD_BITS else self._wide(array)
        step = self.slots * self._width
        return [int.from_bytes(body[at : at + step], "little") for at in range(0, len(body), step)]

    def unpack(self, plaintexts: Sequence[int], length: int, terms_added: int) -> NDArray[Any]:
        """The sum of `terms_added` packed vectors of `length` values.

        As int64 if a slot has up to 64 bits, else as Python's integers (dtype object).
        """
        if not 1 <= terms_added <= self.terms:
            raise UsageError(f"this packing is for 1 to {self.terms} terms, not {terms_added}.")
        body = self._bytes(plaintexts, length)
        if self.slot_bits <= WORD_BITS:
            words = np.zeros((length, 8), dtype=np.uint8)
            words[:, : self._width] = np.frombuffer(body, dtype=np.uint8).reshape(length, -1)
            sums = words.view("<u8").reshape(length)
            self._check_sums(int(sums.max()), terms_added)
            # Modulo 2^64, and the difference fits an int64: nothing is lost.
            return (sums - np.uint64(terms_added * self._offset % 2**WORD_BITS)).view(np.int64)
        width, shift = self._width, terms_added * self._offset
        wide = [int.from_bytes(body[i : i + width], "little") for i in range(0, len(body), width)]
        self._check_sums(max(wide), terms_added)
        return np.array([total - shift for total in wide], dtype=object)

    def _narrow(self, array: NDArray[Any]) -> bytes:
        """Slots of up to 64 bits: one addition, then the bytes of the words that count."""
        self._check_values(array)
        words = array.astype(np.int64).view(np.uint64) + np.uint64(self._offset)
        return words.astype("<u8").view(np.uint8).reshape(-1, 8)[:, : self._width].tobytes()

    def _wide(self, array: NDArray[Any]) -> bytes:
        self._check_values(array)
        return b"".join(
            (int(value) + self._offset).to_bytes(self._width, "little") for value in array
        )

    def _check_values(self, array: NDArray[Any]) -> None:
        whole = array.dtype.kind in "iu" or (
            array.dtype.kind == "O" and all(type(value) is int for value in array)
        )
        if not whole:
            raise UsageError(f"only integers are packed, not {array.dtype}: round to a grid first.")
        if int(array.min()) < -self._offset or int(array.max()) >= self._offset:
            raise UsageError(
                f"a value is outside [−2^{self.value_bits - 1}, 2^{self.value_bits - 1}), the "
                f"{self.value_bits} bits of this packing: clip first, or ask for more bits."
            )

    def _bytes(self, plaintexts: Sequence[int], length: int) -> bytes:
        """The used slots of the plaintexts, one after another."""
        needed = self.plaintexts(length)
        if length < 1 or len(plaintexts) != needed:
            raise InputError(
                f"{length} values in slots of {8 * self._width} bits lie in {needed} plaintexts, "
                f"not {len(plaintexts)}: who packed them followed another study."
            )
        size = self.slots * self._width
        if any(not 0 <= plain < 1 << 8 * size for plain in plaintexts):
            raise InputError(NOT_A_SUM)
        body = b"".join(int(plain).to_bytes(size, "little") for plain in plaintexts)
        used = length * self._width
        if any(body[used:]):
            raise InputError(NOT_A_SUM)
        return body[:used]

    def _check_sums(self, largest: int, terms_added: int) -> None:
        if largest > terms_added * ((1 << self.value_bits) - 1):
            raise InputError(NOT_A_SUM)
