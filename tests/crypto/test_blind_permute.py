"""Permutations and blinds: uniform, invertible, and the published walk comes out right."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tacit.crypto.blind_permute import blinds, inverse, permuted, random_permutation
from tacit.crypto.prg import SeededRandomness
from tacit.errors import UsageError

FALSE_ALARM = 1e-6


def test_an_element_goes_to_the_place_that_is_named() -> None:
    assert permuted(["a", "b", "c"], (2, 0, 1)) == ["b", "c", "a"]
    assert inverse((2, 0, 1)) == (1, 2, 0)


@given(st.integers(0, 40), st.integers(0, 1000))
def test_the_inverse_undoes(size: int, seed: int) -> None:
    there = random_permutation(size, SeededRandomness(seed))
    assert sorted(there) == list(range(size))
    assert permuted(permuted(range(size), there), inverse(there)) == list(range(size))
    assert inverse(inverse(there)) == there


@pytest.mark.statistical
def test_all_orders_are_equally_likely() -> None:
    randomness = SeededRandomness(1)
    seen = Counter(random_permutation(4, randomness) for _ in range(6000))
    assert len(seen) == 24
    assert stats.chisquare(list(seen.values())).pvalue > FALSE_ALARM


@given(st.lists(st.tuples(*[st.integers(0, 2**32 - 1)] * 2), max_size=9), st.integers(0, 99))
def test_blind_and_permute_keeps_the_numbers(shares: list[tuple[int, int]], seed: int) -> None:
    randomness = SeededRandomness(seed)
    size = len(shares)
    first, second = random_permutation(size, randomness), random_permutation(size, randomness)
    a, b = ([pair[i] for pair in shares] for i in (0, 1))
    r = blinds(size, 32, randomness)
    moved_a, moved_b = permuted(a, first), permuted(b, first)
    theirs = permuted([x + blind for x, blind in zip(moved_a, r, strict=True)], second)
    curators = permuted([x - blind for x, blind in zip(moved_b, r, strict=True)], second)
    sums = [(x + y) % 2**32 for x, y in zip(theirs, curators, strict=True)]
    assert permuted(permuted(sums, inverse(second)), inverse(first)) == [
        (x + y) % 2**32 for x, y in shares
    ]


@pytest.mark.statistical
def test_blinds_are_uniform_and_much_longer_than_what_they_hide() -> None:
    drawn = blinds(4000, 32, SeededRandomness(2))
    assert max(drawn).bit_length() == 160
    for cells in ([r >> 156 for r in drawn], [r % 16 for r in drawn]):
        assert stats.chisquare(np.bincount(cells, minlength=16)).pvalue > FALSE_ALARM


def test_lengths_must_agree() -> None:
    with pytest.raises(UsageError, match="3 places"):
        permuted([1, 2], (0, 1, 2))
