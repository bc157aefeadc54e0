"""Which party answers which comparison, and which number the answers say is the smallest.

Every pair of places is compared once. A party answers for the pairs of its own place and the next
half of the circle, so that all parties have the same work.
"""

from __future__ import annotations

from collections.abc import Mapping

from tacit.errors import InputError

__all__ = ["Pair", "answered_by", "smallest"]

Pair = tuple[int, int]  # places, the lower one first


def answered_by(place: int, count: int) -> list[Pair]:
    """The pairs of this place that its own party answers for, not the other's."""
    found: list[Pair] = []
    for distance in range(1, count // 2 + 1):
        other = (place + distance) % count
        if 2 * distance == count and place > other:
            continue  # opposite each other on the circle: the lower place's party answers
        found.append((min(place, other), max(place, other)))
    return found


def smallest(count: int, first_is_less: Mapping[Pair, bool]) -> int:
    """The place of the smallest number, from the answers for all pairs.

    Of equal numbers, the one in the later place counts as smaller (crypto/comparison.md).
    """
    larger_than = [0] * count
    for (first, second), less in first_is_less.items():
        larger_than[second if less else first] += 1
    if sorted(larger_than) != list(range(count)):  # true of orders, and of nothing else
        raise InputError(
            "the answers contradict each other: a party did not use the shares it holds, or has "
            "2^31 records or more. There is no model."
        )
    return larger_than.index(0)
