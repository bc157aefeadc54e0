"""Any interleaving of calls, crashes and restores, against a reference that asks by definition."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import LedgerTampered, Refused, UsageError
from tacit.privacy.accounting import GaussianLoss, SpendCost
from tacit.privacy.accounting.gaussian import largest_mu
from tacit.privacy.ledger import Ledger, Reservation
from tacit.privacy.promise import Promise

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from ledger_reference import Book, Ceiling, Entry

UNITS = st.sampled_from(["record", "record", "person", "holder"])
SPENDS = st.tuples(
    st.just("reserve"),
    st.sampled_from([(0.1, 0.0), (0.3, 0.0), (0.5, 1e-6), (0.25, 1e-7), (1.0, 1e-5)]),
    UNITS,
    st.sampled_from(["add-remove", "add-remove", "replace"]),
    st.sampled_from([None, None, ("by sex", "a"), ("by sex", "b"), ("by age", "a"), ("x", "c")]),
    st.booleans(),
)
STEPS = st.one_of(
    SPENDS,
    SPENDS,
    st.tuples(
        st.just("allow"),
        UNITS,
        st.sampled_from([(0.0, 0.0), (1.0, 0.0), (3.0, 1e-5), (5.0, 1e-5), (20.0, 1e-4)]),
        st.sampled_from([None, "adding", "filter"]),
        st.sampled_from([None, None, "replace", "add-remove"]),
        st.sampled_from([None, 1, 2, 3]),
    ),
    st.tuples(st.sampled_from(["draw", "commit", "release"]), st.integers(0, 30)),
    st.sampled_from([("crash",), ("keep a copy",), ("restore it",)]),
)


@settings(max_examples=120, deadline=None)
@given(st.lists(STEPS, max_size=25))
def test_any_interleaving_is_charged_as_the_definition_says(steps: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TACIT_HOME", os.path.join(folder, "home"))
        Walk(Path(folder)).through(steps)


class Walk:
    def __init__(self, folder: Path) -> None:
        self.path, self.copy = folder / "ledger.db", folder / "copy.db"
        self.ledger, self.book = Ledger(self.path), Book()
        self.handles: list[Reservation] = []
        self.copied_at = 0
        self.allow("record", (5.0, 1e-5), None, None, None)

    def through(self, steps: list[tuple[Any, ...]]) -> None:
        for step in steps:
            match step:
                case ("reserve", *wanted):
                    self.reserve(*wanted)
                case ("allow", *wanted):
                    self.allow(*wanted)
                case ("crash",):
                    self.ledger = Ledger(self.path)
                case ("keep a copy",):
                    shutil.copy(self.path, self.copy)
                    self.copied_at = len(self.ledger.entries())
                case ("restore it",):
                    self.restore()
                case (verb, number) if number < len(self.handles):
                    self.move(verb, number)
            self.compare()
        self.ledger.verify(self.ledger.head)
        assert Ledger(self.path)._state == self.ledger._state

    def reserve(self, amount: Any, unit: str, adjacency: str, place: Any, gaussian: bool) -> None:
        (epsilon, delta), (partition, part) = amount, place or (None, None)
        mu = largest_mu(epsilon, delta) if gaussian and delta else None
        cost = None if mu is None else SpendCost(((GaussianLoss(mu),),))
        promise = Promise(epsilon, delta, unit, adjacency)
        entry = Entry(epsilon, delta, unit, adjacency, partition, part, mu)
        expected = unit in self.book.ceilings and self.book.fits(entry)
        decided = {u: self.book.decided(u, entry) for u in self.book.ceilings}
        try:
            handle = self.ledger.reserve(
                promise, "adult", "count", part, partition=partition, cost=cost
            )
        except Refused:
            assert not expected
            return
        assert expected
        for name, composition in decided.items():
            self.book.ceilings[name].composition = composition
        self.book.entries.append(entry)
        self.handles.append(handle)

    def allow(self, unit: str, amount: Any, composition: Any, adjacency: Any, most: Any) -> None:
        asked = {} if unit == "record" else {"most_records": most}
        if unit == "holder":
            asked["most_persons"] = most
        counted = self.book.counted()
        try:
            self.ledger.allow(
                "adult", unit, *amount, composition=composition, adjacency=adjacency, **asked
            )
        except UsageError:
            assert any(e.adjacency == "replace" or e.unit != unit for e in counted)
            return
        can = amount[0] > 0 and amount[1] > 0
        undecided = composition is None and can and not counted
        if composition is None:
            known = all(e.mu is not None or not e.delta for e in counted)
            composition = "filter" if can and known else "adding"
        finer = {"record": asked.get("most_records"), "person": asked.get("most_persons")}
        self.book.ceilings[unit] = Ceiling(*amount, composition, undecided, adjacency, finer)

    def move(self, verb: str, number: int) -> None:
        entry, handle = self.book.entries[number], self.handles[number]
        try:
            {"draw": handle.mark_drawn, "commit": handle.commit, "release": handle.release}[verb]()
        except UsageError:
            closed = entry.state in {"committed", "released"}
            assert closed or (verb, entry.state) == ("release", "drawn")
            return
        assert entry.state in {"open", "drawn"}
        entry.state = {"draw": "drawn", "commit": "committed", "release": "released"}[verb]

    def restore(self) -> None:
        """An older copy is refused, and the newest is put back."""
        if not self.copy.exists() or self.copied_at == len(self.ledger.entries()):
            return
        newest = self.path.read_bytes()
        shutil.copy(self.copy, self.path)
        with pytest.raises(LedgerTampered, match="older than what this machine has seen"):
            Ledger(self.path)
        self.path.write_bytes(newest)

    def compare(self) -> None:
        counted = self.book.counted()
        for unit, ceiling in self.book.ceilings.items():
            balance = self.ledger.balance("adult", unit)
            found = self.book.losses(unit, counted, None)
            assert (float(balance.allowed.epsilon), float(balance.allowed.delta)) == (
                ceiling.epsilon,
                ceiling.delta,
            )
            if found is not None:  # else something was spent before this account was there
                assert float(balance.added.epsilon) == pytest.approx(found[0], rel=1e-9)
                assert float(balance.added.delta) == pytest.approx(found[1], rel=1e-9, abs=1e-300)
