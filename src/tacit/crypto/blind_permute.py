"""Hiding whose number is which: permutations, and blinds for numbers that stay encrypted.

Two sides that hold additive shares of K numbers each apply a permutation that the other does not
know; blinds change the shares on the way, so that they cannot be recognised by their values (Du and
Atallah 2001; stage 1 of Pathak, Rane and Raj 2010).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from tacit.crypto.prg import SYSTEM, Randomness
from tacit.errors import UsageError

__all__ = ["blinds", "inverse", "permuted", "random_permutation"]

T = TypeVar("T")

Permutation = tuple[int, ...]  # π: what was in place j comes to place π[j]

HIDING_BITS = 128


def random_permutation(size: int, randomness: Randomness = SYSTEM) -> Permutation:
    """Uniform among all, by the shuffle of Fisher and Yates."""
    places = list(range(size))
    stream = randomness.stream()
    for last in range(size - 1, 0, -1):
        other = stream.below(last + 1)
        places[last], places[other] = places[other], places[last]
    return tuple(places)


def inverse(permutation: Permutation) -> Permutation:
    places = [0] * len(permutation)
    for j, place in enumerate(permutation):
        places[place] = j
    return tuple(places)


def permuted(values: Sequence[T], permutation: Permutation) -> list[T]:
    """The values, with that in place j moved to place permutation[j]."""
    if len(values) != len(permutation):
        raise UsageError(f"{len(permutation)} places do not go with {len(values)} values.")
    return [values[j] for j in inverse(permutation)]


def blinds(count: int, bits: int = 32, randomness: Randomness = SYSTEM) -> list[int]:
    """Integers to add, under encryption, to numbers of `bits` bits.

    They are 128 bits longer than the numbers: who sees the sums of integers, no modulus taken,
    could tell the numbers from others with advantage 2^−128. Both sides then reduce modulo 2^bits.
    """
    stream = randomness.stream()
    return [stream.integer(bits + HIDING_BITS) for _ in range(count)]
