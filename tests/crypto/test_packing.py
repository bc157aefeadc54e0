"""Packed vectors: they come back, they add slot by slot, and nothing crosses into a neighbour."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.crypto.packing import Packing
from tacit.errors import InputError, UsageError

# (value_bits, terms): around whole bytes and around the 64 bits of a word, and far beyond.
SHAPES = [
    (56, 256),
    (56, 255),
    (56, 257),
    (64, 1),
    (63, 2),
    (33, 5),
    (1, 1),
    (1, 3),
    (8, 1),
    (64, 2),
    (65, 1),
    (100, 2**20),
    (128, 1),
    (120, 256),
]


def added(packing: Packing, *vectors: list[int]) -> list[int]:
    """The plaintexts of the sum, as encryption would add them: whole numbers, no slots in sight."""
    packed = [packing.pack(np.array(vector, dtype=object)) for vector in vectors]
    return [sum(column) for column in zip(*packed, strict=True)]


@st.composite
def packed_vectors(draw: st.DrawFn) -> tuple[Packing, list[list[int]]]:
    value_bits = draw(st.integers(1, 140))
    terms = draw(st.integers(1, 40))
    packing = Packing(draw(st.integers(200, 700)), value_bits, terms)
    value = st.integers(-(2 ** (value_bits - 1)), 2 ** (value_bits - 1) - 1)
    length = draw(st.integers(1, 2 * packing.slots + 1))
    vector = st.lists(value, min_size=length, max_size=length)
    return packing, draw(st.lists(vector, min_size=1, max_size=terms))


@given(packed_vectors())
def test_sums_of_packed_vectors_are_exact(case: tuple[Packing, list[list[int]]]) -> None:
    packing, vectors = case
    length = len(vectors[0])
    total = packing.unpack(added(packing, *vectors), length, len(vectors))
    assert total.tolist() == [sum(column) for column in zip(*vectors, strict=True)]


@pytest.mark.parametrize(("value_bits", "terms"), SHAPES)
def test_the_extremes_fit_as_often_as_promised(value_bits: int, terms: int) -> None:
    packing = Packing(2048, value_bits, terms)
    low, high = -(2 ** (value_bits - 1)), 2 ** (value_bits - 1) - 1
    # Neighbours at opposite ends: a carry or a borrow would show in one of them.
    vector = [low, high] * packing.slots + [high]
    plain = packing.pack(np.array(vector, dtype=object))
    assert len(plain) == packing.plaintexts(len(vector)) == 3
    total = packing.unpack([terms * each for each in plain], len(vector), terms)
    assert total.tolist() == [terms * value for value in vector]
    assert total.dtype == (np.int64 if packing.slot_bits <= 64 else object)


@pytest.mark.parametrize(("value_bits", "terms"), SHAPES)
def test_plaintexts_are_below_half_of_any_modulus(value_bits: int, terms: int) -> None:
    packing = Packing(2048, value_bits, terms)
    high = 2 ** (value_bits - 1) - 1
    largest = terms * packing.pack(np.array([high] * packing.slots, dtype=object))[0]
    assert 2 * largest < 2**2047  # the least modulus of 2048 bits


@pytest.mark.parametrize(("value_bits", "terms"), SHAPES)
def test_slots_hold_the_sum_and_are_not_wasteful(value_bits: int, terms: int) -> None:
    packing = Packing(3072, value_bits, terms)
    largest = terms * (2**value_bits - 1)
    assert largest < 2**packing.slot_bits
    assert packing.slots == 3070 // (8 * ((packing.slot_bits + 7) // 8))


def test_the_figures_for_a_model_of_124_numbers() -> None:
    assert Packing(2048, 56, 256).slots == 31
    assert Packing(2048, 56, 256).plaintexts(124) == 4
    assert Packing(3072, 56, 256).slots == 47
    assert Packing(3072, 56, 256).plaintexts(124) == 3


def test_words_and_python_integers_are_packed_alike() -> None:
    values = np.arange(-50, 50, dtype=np.int64) * 2**40
    packing = Packing(2048, 56, 256)
    assert packing.pack(values) == packing.pack(values.astype(object)) == packing.pack(list(values))
    assert packing.pack(values[::2]) == packing.pack(values[::2].copy())  # not contiguous


def test_a_slot_is_its_value_plus_the_offset() -> None:
    """The layout itself, computed with nothing but Python's integers."""
    packing = Packing(2048, 20, 16)
    values = [5, -7, 2**19 - 1, -(2**19)]
    expected = sum((value + 2**19) << (24 * place) for place, value in enumerate(values))
    assert packing.pack(np.array(values)) == [expected]


@pytest.mark.parametrize(("value_bits", "terms"), [(56, 256), (100, 2)])
def test_values_outside_are_refused(value_bits: int, terms: int) -> None:
    packing = Packing(2048, value_bits, terms)
    edge = 2 ** (value_bits - 1)
    for bad in (edge, -edge - 1):
        with pytest.raises(UsageError, match="outside") as refused:
            packing.pack(np.array([0, bad, 0], dtype=object))
        assert str(bad) not in str(refused.value)
    packing.pack(np.array([edge - 1, -edge], dtype=object))


def test_unsigned_words_are_not_taken_for_negative_ones() -> None:
    with pytest.raises(UsageError, match="outside"):
        Packing(2048, 64, 1).pack(np.array([2**64 - 1], dtype=np.uint64))


def test_only_vectors_of_integers_are_packed() -> None:
    packing = Packing(2048, 56, 256)
    for bad in (np.zeros(3), np.array([1, 2.0], dtype=object), np.array([True])):
        with pytest.raises(UsageError, match="integers"):
            packing.pack(bad)
    for shape in ((2, 2), (0,), ()):
        with pytest.raises(UsageError, match="vector"):
            packing.pack(np.zeros(shape, dtype=np.int64))


def test_impossible_packings_are_refused() -> None:
    with pytest.raises(UsageError, match="longer key"):
        Packing(2048, 2047, 1)
    with pytest.raises(UsageError, match="longer key"):
        Packing(2048, 2030, 2**20)
    for value_bits, terms in ((0, 1), (8, 0), (-1, 1)):
        with pytest.raises(UsageError, match="at least 1"):
            Packing(2048, value_bits, terms)


@pytest.mark.parametrize(("value_bits", "terms"), [(56, 4), (100, 4)])
def test_what_is_not_a_packed_sum_is_refused(value_bits: int, terms: int) -> None:
    packing = Packing(2048, value_bits, terms)
    length = packing.slots + 3
    vector = [2 ** (value_bits - 1) - 1] * length
    plain = added(packing, vector, vector)
    with pytest.raises(UsageError, match="1 to 4 terms"):
        packing.unpack(plain, length, 5)
    with pytest.raises(UsageError, match="1 to 4 terms"):
        packing.unpack(plain, length, 0)
    for bad in (
        [-1, plain[1]],  # a negative number has no slots
        [plain[0], 2**2046],  # beyond the last slot
        [plain[0], plain[1] + (1 << 3 * 8 * (-(-packing.slot_bits // 8)))],  # an unused slot
    ):
        with pytest.raises(InputError, match="not a sum"):
            packing.unpack(bad, length, 2)
    with pytest.raises(InputError, match="not a sum"):  # two were added, one was told
        packing.unpack(plain, length, 1)
    for count in (plain[:1], [*plain, 0]):
        with pytest.raises(InputError, match="2 plaintexts"):
            packing.unpack(count, length, 2)
    with pytest.raises(InputError, match="plaintexts"):
        packing.unpack([], 0, 2)
