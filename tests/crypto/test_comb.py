"""Powers by the comb are powers, for every exponent that its bytes can spell."""

from __future__ import annotations

import pytest
from gmpy2 import mpz
from hypothesis import given
from hypothesis import strategies as st

from tacit.crypto.comb import Comb
from tacit.errors import UsageError

MODULUS = 2**127 - 1
BASE = 3
COMBS = {bits: Comb(mpz(BASE), mpz(MODULUS), bits) for bits in (64, 192, 1024)}


def exponent(digits: bytes) -> int:
    """What the documentation of `Comb.power` says, bit by bit."""
    return sum(
        1 << (tooth * len(digits) + place)
        for place, digit in enumerate(digits)
        for tooth in range(8)
        if digit >> tooth & 1
    )


@pytest.mark.parametrize("bits", COMBS)
@given(data=st.data())
def test_a_power_is_what_python_says(bits: int, data: st.DataObject) -> None:
    digits = data.draw(st.binary(min_size=bits // 8, max_size=bits // 8))
    assert COMBS[bits].power(digits) == pow(BASE, exponent(digits), MODULUS)


@pytest.mark.parametrize("bits", COMBS)
def test_the_exponents_are_all_below_2_to_the_bits(bits: int) -> None:
    size = COMBS[bits].digits
    assert COMBS[bits].power(bytes(size)) == 1
    assert exponent(b"\xff" * size) == 2**bits - 1
    assert COMBS[bits].power(b"\xff" * size) == pow(BASE, 2**bits - 1, MODULUS)


def test_wrong_lengths_are_refused() -> None:
    for bits in (0, -64, 63, 100):
        with pytest.raises(UsageError, match="multiple of 64"):
            Comb(mpz(BASE), mpz(MODULUS), bits)
    for size in (7, 9, 0):
        with pytest.raises(UsageError, match="8 bytes"):
            COMBS[64].power(bytes(size))
