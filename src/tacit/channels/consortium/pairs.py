"""Which party answers which comparison.

Every pair of places is compared once. A party answers for the pairs of its own place and the next
half of the circle, so that all parties have the same work.
"""

from __future__ import annotations

from tacit.crypto.minimum import Pair

__all__ = ["answered_by"]


def answered_by(place: int, count: int) -> list[Pair]:
    """The pairs of this place that its own party answers for, not the other's."""
    found: list[Pair] = []
    for distance in range(1, count // 2 + 1):
        other = (place + distance) % count
        if 2 * distance == count and place > other:
            continue  # opposite each other on the circle: the lower place's party answers
        found.append((min(place, other), max(place, other)))
    return found
