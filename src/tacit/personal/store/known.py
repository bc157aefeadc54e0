"""Which events of an export are in the store already, in bounded memory.

Equal events have equal moments, so an event is compared only with segments that touch its batch in
time: of an export in order of time, that is one or two. Where three equal events come in and two
are here, one is new: of each mark, so many as came in are taken, first those that are here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tacit.personal.store.marks import Marks, numbered, ranks
from tacit.personal.store.segments import Segment

__all__ = ["Known"]

AT_HAND = 4_000_000  # marks that are kept in memory, 32 MB

Flags = NDArray[np.bool_]


class Known:
    """The segments of one source during one import. `fetch` gives a segment's marks."""

    def __init__(self, segments: list[Segment], fetch: Callable[[int], Marks]) -> None:
        self._fetch = fetch
        self._segments = {segment.number: segment for segment in segments}
        # Of segments from before, which of their marks (in order) came in again; None: none yet.
        self._taken: dict[int, Flags | None] = dict.fromkeys(self._segments)
        self._fresh: set[int] = set()  # segments of this import: all of their marks came in
        self._at_hand: dict[int, Marks] = {}

    def added(self, segment: Segment) -> None:
        """A segment of this import."""
        self._segments[segment.number] = segment
        self._fresh.add(segment.number)

    def sorted_out(
        self, marks: Marks, type_: str, since: int | None, until: int | None
    ) -> tuple[Marks, Flags]:
        """The marks with equal ones told apart, and which of them are new. `until` is inclusive."""
        near = [
            number
            for number, segment in self._segments.items()
            if segment.type == type_ and segment.meets(since, until)
        ]
        if not near:
            return numbered(marks, ranks(marks)), np.ones(len(marks), bool)
        before = self._came_before(marks, near)
        told = numbered(marks, before + ranks(marks))
        new = np.ones(len(marks), bool)
        for number in near:
            if number not in self._fresh:
                new &= ~self._take(number, told)
        return told, new

    def _came_before(self, marks: Marks, near: list[int]) -> NDArray[np.int64]:
        """How many equal ones came in with earlier batches: numbers are given out in order, so it
        is the first that is not taken."""
        count = np.zeros(len(marks), np.int64)
        open_ = np.arange(len(marks))
        while len(open_):
            asked = numbered(marks[open_], count[open_])
            taken = np.zeros(len(open_), bool)
            for number in near:
                taken |= self._is_taken(number, asked)
            open_ = open_[taken]
            count[open_] += 1
        return count

    def _is_taken(self, number: int, asked: Marks) -> Flags:
        flags = self._taken.get(number)
        if number not in self._fresh and flags is None:
            return np.zeros(len(asked), bool)
        places, found = self._places(number, asked)
        return found if number in self._fresh or flags is None else found & flags[places]

    def _take(self, number: int, told: Marks) -> Flags:
        """Which of them are in this segment; they are taken from now on."""
        places, found = self._places(number, told)
        if found.any():
            flags = self._taken[number]
            if flags is None:
                flags = self._taken[number] = np.zeros(self._segments[number].rows, bool)
            flags[places[found]] = True
        return found

    def _places(self, number: int, asked: Marks) -> tuple[NDArray[np.int64], Flags]:
        here = self._ordered(number)
        places = np.minimum(np.searchsorted(here, asked), len(here) - 1)
        return places, here[places] == asked

    def _ordered(self, number: int) -> Marks:
        """A segment's marks, ascending; those last used are at hand."""
        if number in self._at_hand:
            self._at_hand[number] = self._at_hand.pop(number)
            return self._at_hand[number]
        found = self._at_hand[number] = np.sort(self._fetch(number))
        while len(self._at_hand) > 1 and sum(map(len, self._at_hand.values())) > AT_HAND:
            self._at_hand.pop(next(iter(self._at_hand)))
        return found
