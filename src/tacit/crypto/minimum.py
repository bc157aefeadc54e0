"""Which of K shared numbers is the smallest: every pair is compared (Pathak, Rane and Raj 2010).

n_i = a_i + b_i modulo 2^32, each below 2^31, the a_i with the parties and the b_i with the curator,
in an order that neither side knows (blind_permute.py). For every pair the curator learns which
number is smaller, so the whole order of numbers whose owners it does not know, and from it the
place of the smallest. What that says and what it does not: comparison.md.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from itertools import combinations

from tacit.crypto.comparison import (
    SIGN_BIT,
    Cost,
    answer_signs,
    begin_signs,
    cost,
    finish_signs,
)
from tacit.crypto.dgk import PrivateKey, PublicKey
from tacit.crypto.prg import SYSTEM, Randomness
from tacit.errors import InputError, UsageError

__all__ = [
    "Pair",
    "answer_minimum",
    "begin_minimum",
    "finish_minimum",
    "minimum_cost",
    "smallest_place",
]

Pair = tuple[int, int]  # places, the lower one first

MODULUS = 1 << (SIGN_BIT + 1)


def minimum_cost(count: int, bits: int) -> Cost:
    """Of finding the smallest of `count` numbers under a key of `bits` bits."""
    return cost(len(_pairs(count)), bits, SIGN_BIT)


def begin_minimum(key: PrivateKey, shares: Sequence[int], randomness: Randomness = SYSTEM) -> bytes:
    """The curator's question, from its shares b."""
    return begin_signs(key, _curators(shares), randomness)


def answer_minimum(
    key: PublicKey, question: bytes, shares: Sequence[int], randomness: Randomness = SYSTEM
) -> bytes:
    """The parties' reply, from their shares a, in the same order."""
    return answer_signs(key, question, _differences(shares), randomness)


def finish_minimum(key: PrivateKey, reply: bytes, shares: Sequence[int]) -> int:
    """The place of the smallest number, for the shares that `begin_minimum` was given.

    Of equal numbers, the one in the later place counts as smaller, and nobody sees that they are
    equal.
    """
    pairs, less = _pairs(len(shares)), finish_signs(key, reply, _curators(shares))
    return smallest_place(len(shares), dict(zip(pairs, less, strict=True)))


def smallest_place(count: int, first_is_less: Mapping[Pair, bool]) -> int:
    """The place of the smallest number, from the answers for all pairs of places."""
    larger_than = [0] * count
    for (first, second), less in first_is_less.items():
        larger_than[second if less else first] += 1
    if sorted(larger_than) != list(range(count)):  # true of orders, and of nothing else
        raise InputError(
            "the answers contradict each other: some number is 2^31 or more, or a side did not "
            "use the shares it holds. Share the numbers again."
        )
    return larger_than.index(0)


def _curators(shares: Sequence[int]) -> list[int]:
    """y of every pair: n_i − n_j = (a_i − a_j) − (b_j − b_i)."""
    return [-difference % MODULUS for difference in _differences(shares)]


def _differences(shares: Sequence[int]) -> list[int]:
    numbers = [operator.index(share) for share in shares]
    return [(numbers[i] - numbers[j]) % MODULUS for i, j in _pairs(len(numbers))]


def _pairs(count: int) -> list[Pair]:
    if count < 2:
        raise UsageError(f"a minimum is found among at least 2 numbers, not {count}.")
    return list(combinations(range(count), 2))
