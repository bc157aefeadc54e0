"""Lots: commitments open by their own seeds only, orders are uniform, and nothing is left out of
the hash."""

from __future__ import annotations

import hashlib
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tacit.crypto.lots import commitment, joint_seed, opens, order
from tacit.errors import InputError, UsageError

FALSE_ALARM = 1e-6  # draws come from seeds: the tests cannot flake


def seed_of(number: int) -> bytes:
    return hashlib.sha256(number.to_bytes(8, "big")).digest()


A, B, C = (seed_of(n) for n in range(3))


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@given(st.integers(0, 255))
def test_a_commitment_opens_by_its_own_seed_alone(bit: int) -> None:
    committed = commitment(A)
    assert opens(committed, A)
    assert not opens(committed, flipped(A, bit))
    assert A.hex() not in committed


@pytest.mark.parametrize("broken", ["", "00", "é" * 64, commitment(A).upper(), commitment(A)[:-1]])
def test_a_malformed_commitment_opens_to_nothing(broken: str) -> None:
    assert not opens(broken, A)
    assert not opens(commitment(A), A[:-1])


def test_a_commitment_is_not_the_hash_of_anything_else() -> None:
    assert commitment(A) != hashlib.sha256(A).hexdigest()
    assert bytes.fromhex(commitment(A)) != joint_seed([A], b"")


@given(st.integers(0, 255), st.integers(0, 2))
def test_every_bit_of_every_seed_counts(bit: int, whose: int) -> None:
    seeds = [A, B, C]
    changed = [flipped(s, bit) if i == whose else s for i, s in enumerate(seeds)]
    assert joint_seed(changed, b"roster") != joint_seed(seeds, b"roster")


def test_order_number_and_context_count() -> None:
    outcomes = [
        joint_seed([A, B], b"roster"),
        joint_seed([B, A], b"roster"),
        joint_seed([A], b"roster"),
        joint_seed([A], B + b"roster"),  # a seed cannot be passed off as context
        joint_seed([A, B, C], b"roster"),
        joint_seed([A, B], b"another"),
    ]
    assert len(set(outcomes)) == len(outcomes)
    assert all(len(outcome) == 32 for outcome in outcomes)
    assert joint_seed([A, A], b"") != bytes(32)  # who copies a commitment cancels nothing


def test_lots_need_whole_seeds() -> None:
    with pytest.raises(UsageError, match="at least one seed"):
        joint_seed([], b"roster")
    for wrong in (b"", A[:31], A + b"\0"):
        with pytest.raises(InputError, match="32 bytes"):
            joint_seed([A, wrong], b"roster")
        with pytest.raises(InputError, match="32 bytes"):
            order(wrong, "draw", 3)
        with pytest.raises(InputError, match="32 bytes"):
            commitment(wrong)
    with pytest.raises(UsageError, match="0 or more"):
        order(A, "draw", -1)


@given(st.integers(0, 300), st.text(max_size=20))
def test_an_order_is_a_permutation_and_repeats(size: int, label: str) -> None:
    places = order(A, label, size)
    assert sorted(places.tolist()) == list(range(size))
    assert places.tolist() == order(A, label, size).tolist()


def test_everyone_draws_the_same_everywhere() -> None:
    """Fixed for good: a version of tacit that draws otherwise could not check a running study."""
    assert order(bytes(32), "draw 0", 10).tolist() == ORDER_OF_ZEROS
    assert joint_seed([bytes(32)], b"").hex() == JOINT_OF_ZEROS
    assert commitment(bytes(32)) == COMMITMENT_OF_ZEROS


ORDER_OF_ZEROS = [8, 5, 4, 9, 1, 3, 0, 2, 6, 7]
JOINT_OF_ZEROS = "152eb9774c2e0bf91d11e2a34435d185b950100a957c8caca326c60636cfebfc"
COMMITMENT_OF_ZEROS = "d9412e771e958084e5908a1a00856f31ba5c65f4580344d48234a64945cb249e"


@pytest.mark.statistical
def test_all_orders_are_equally_likely() -> None:
    runs = 24_000
    seen = Counter(tuple(order(seed_of(n), "draw", 4).tolist()) for n in range(runs))
    assert len(seen) == 24
    assert stats.chisquare(list(seen.values())).pvalue > FALSE_ALARM
    # The same test catches keys of two bits whose ties are left to a stable sort.
    keys = np.random.default_rng(1).integers(0, 4, (runs, 4))
    tied = Counter(tuple(np.argsort(row, kind="stable").tolist()) for row in keys)
    assert stats.chisquare([tied[places] for places in seen]).pvalue < FALSE_ALARM


@pytest.mark.statistical
def test_labels_sizes_and_seeds_are_unrelated() -> None:
    size = 20_000
    one = np.argsort(order(A, "draw 0", size))
    for other in (order(A, "draw 1", size), order(B, "draw 0", size)):
        assert stats.spearmanr(one, np.argsort(other)).pvalue > FALSE_ALARM
    longer = order(A, "draw 0", size + 1)
    assert stats.spearmanr(one, np.argsort(longer[longer < size])).pvalue > FALSE_ALARM
    again = np.argsort(order(A, "draw 0", size))
    assert stats.spearmanr(one, again).pvalue < FALSE_ALARM
