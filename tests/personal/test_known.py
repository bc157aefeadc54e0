"""Whatever order and batches events come in, exactly the missing ones are new."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.personal.store import known as known_module
from tacit.personal.store.known import Known
from tacit.personal.store.marks import Marks
from tacit.personal.store.segments import Segment

# An event is its moment here: equal ones are equal events.
events = st.lists(st.integers(0, 6), max_size=12)


class Kept:
    """What a store would keep."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self.marks: dict[int, Marks] = {}
        self.counts: Counter[int] = Counter()

    def imported(self, batches: list[list[int]], static: bool = False) -> int:
        known, added = Known(list(self.segments), self.marks.__getitem__), 0
        for batch in filter(None, batches):
            raw = np.array(batch, np.uint64) + np.uint64(1 << 40)
            ends = (None, None) if static else (min(batch), max(batch))
            marks, new = known.sorted_out(raw, "ride", *ends)
            if new.any():
                kept = [event for event, fresh in zip(batch, new, strict=True) if fresh]
                span = (None, None) if static else (min(kept), max(kept))
                segment = Segment("ride", len(kept), *span, number=1 + len(self.segments))
                self.segments.append(segment)
                self.marks[segment.number] = marks[new]
                self.counts.update(kept)
                known.added(segment)
                added += len(kept)
        return added


@pytest.mark.parametrize("static", [False, True])
@given(st.lists(st.lists(events, max_size=4), max_size=4))
def test_the_store_has_as_many_of_each_as_the_fullest_export(
    static: bool, exports: list[list[list[int]]]
) -> None:
    kept, expected = Kept(), Counter[int]()
    for batches in exports:
        expected |= Counter(event for batch in batches for event in batch)
        kept.imported(batches, static)
        assert kept.counts == expected
    every = np.concatenate([*kept.marks.values(), np.empty(0, np.uint64)])
    assert len(np.unique(every)) == len(every)


def test_other_types_are_not_looked_at() -> None:
    known = Known([Segment("step", 1, 0, 9, number=1)], {}.__getitem__)
    _, new = known.sorted_out(np.array([5], np.uint64), "ride", 5, 5)
    assert new.all()


def test_little_is_kept_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_module, "AT_HAND", 2)
    kept = Kept()
    batches = [[1, 5], [2, 5], [3, 5], [4, 5]]
    assert kept.imported(batches) == 8
    assert kept.imported(batches) == 0
    assert kept.imported([[5, 5, 5], [5, 5]]) == 1
