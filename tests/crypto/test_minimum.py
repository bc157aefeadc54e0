"""The smallest of K shared numbers, by all pairs."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.crypto import comparison, minimum
from tacit.crypto.dgk import PrivateKey
from tacit.crypto.minimum import answer_minimum, begin_minimum, finish_minimum, minimum_cost
from tacit.crypto.prg import SeededRandomness
from tacit.errors import InputError, UsageError

KEY = PrivateKey.generate(2048, SeededRandomness("a key"))
MODULUS = 2**32


def smallest(numbers: list[int], seed: int = 1, modulus: int = MODULUS) -> int:
    stream = SeededRandomness(seed).stream()
    b = [stream.below(modulus) for _ in numbers]
    a = [(n - share) % modulus for n, share in zip(numbers, b, strict=True)]
    reply = answer_minimum(KEY.public, begin_minimum(KEY, b), a)
    return finish_minimum(KEY, reply, b)


def expected(numbers: list[int]) -> int:
    """Of equal numbers the last."""
    return max(i for i, n in enumerate(numbers) if n == min(numbers))


@pytest.fixture
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares modulo 16, numbers below 8: the same protocol, small enough for all cases."""
    monkeypatch.setattr(comparison, "SIGN_BIT", 3)
    monkeypatch.setattr(minimum, "MODULUS", 16)


@pytest.mark.usefixtures("_narrow")
def test_all_orders_and_ties_of_three() -> None:
    for i, numbers in enumerate(product([0, 3, 7], repeat=3)):
        assert smallest(list(numbers), seed=i, modulus=16) == expected(list(numbers))


@pytest.mark.usefixtures("_narrow")
def test_all_orders_of_four() -> None:
    for i, numbers in enumerate(permutations([1, 2, 6, 7])):
        assert smallest(list(numbers), seed=i, modulus=16) == numbers.index(1)


@settings(max_examples=6)
@given(st.lists(st.sampled_from([0, 1, 5, 2**30, 2**31 - 2, 2**31 - 1]), min_size=2, max_size=4))
def test_numbers_of_full_width(numbers: list[int]) -> None:
    assert smallest(numbers) == expected(numbers)


def test_numpy_words() -> None:
    a, b = np.array([5, 0, 2**31], dtype=np.uint32), np.array([0, 4, 2**31 + 9], dtype=np.uint32)
    reply = answer_minimum(KEY.public, begin_minimum(KEY, b), a)  # type: ignore[arg-type]
    assert finish_minimum(KEY, reply, b) == 1  # type: ignore[arg-type]


def test_contradictions_are_refused() -> None:
    """Numbers a third of the circle apart: each is 'smaller' than the next."""
    third = MODULUS // 3
    with pytest.raises(InputError, match="contradict"):
        smallest([0, third, 2 * third])


def test_other_shares_are_refused() -> None:
    question = begin_minimum(KEY, [1, 2, 3])
    with pytest.raises(InputError, match="number of comparisons"):
        answer_minimum(KEY.public, question, [1, 2])
    for count in (0, 1):
        with pytest.raises(UsageError, match="at least 2"):
            begin_minimum(KEY, [7] * count)


def test_the_cost_is_what_is_paid() -> None:
    question = begin_minimum(KEY, [1, 2, 3])
    reply = answer_minimum(KEY.public, question, [0, 0, 0])
    cost = minimum_cost(3, 2048)
    assert (cost.comparisons, cost.question_bytes) == (3, len(question))
    assert cost.answer_bytes == len(reply)
    fifty = minimum_cost(50, 3072)
    assert fifty.comparisons == 1225
    assert (fifty.encryptions, fifty.masks, fifty.zero_tests) == (58_800, 20_825, 20_825)
    assert fifty.question_bytes + fifty.answer_bytes == 64 + 384 * (58_800 + 20_825)
