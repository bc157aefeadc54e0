"""Purses: what is left, what is set aside, and what a crash leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tacit.channels.peers.purse import CountedPurse, LedgerPurse, Purse
from tacit.errors import Refused
from tacit.privacy.ledger import Ledger, Owner, Surroundings
from tacit.privacy.ledger.owner import Fate
from tacit.privacy.promise import Promise

PROMISE = Promise(0.25, 1e-6)
NETWORK = "ab" * 32
GROUPS = [f"{number:064x}" for number in range(1, 9)]


class Processes(Surroundings):
    """Process `pid` looks at the ledger; those in `gone` have crashed."""

    def __init__(self, pid: int, gone: set[int]) -> None:
        self.pid, self.gone = pid, gone

    def now(self) -> datetime:
        return datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    def owner(self) -> Owner:
        return Owner("here", self.pid, 7)

    def fate(self, owner: Owner) -> Fate:
        return Fate.GONE if owner.pid in self.gone else Fate.RUNNING


def ledger_at(path: Path, pid: int = 1, gone: set[int] | None = None) -> Ledger:
    return Ledger(path / "ledger.db", Processes(pid, gone or set()))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = ledger_at(tmp_path)
    made.allow("clinic", "record", epsilon=1.0, delta=1e-5)
    return made


def purse_on(ledger: Ledger, part: str | None = None, network: str = NETWORK) -> LedgerPurse:
    return LedgerPurse(PROMISE, ledger, "clinic", network, part, identity="its folder")


def amounts(ledger: Ledger) -> tuple[Fraction, Fraction]:
    """ε that is spent, and ε that is reserved."""
    balance = ledger.balance("clinic", "record")
    return balance.spent.epsilon, balance.reserved.epsilon


PURSES: dict[str, Callable[[Path], Purse]] = {
    "counted": lambda path: CountedPurse(4),
    "ledger": lambda path: _with_four(path),
}


def _with_four(path: Path) -> LedgerPurse:
    made = ledger_at(path)
    made.allow("clinic", "record", epsilon=1.0, delta=1e-5)
    return purse_on(made)


@pytest.mark.parametrize("kind", PURSES)
class TestEveryPurse:
    def test_enough_for_so_many(self, kind: str, tmp_path: Path) -> None:
        purse = PURSES[kind](tmp_path)
        for group in GROUPS[:4]:
            assert purse.able
            budget = purse.budget(group)
            budget.reserve(1)
            budget.reserve(1)  # the membership does, and its party again
            budget.spend(1)
            budget.settle("certificate")
            budget.settle(None)  # settled is settled
        assert not purse.able
        with pytest.raises(Refused):
            purse.budget(GROUPS[4]).reserve(1)

    def test_what_is_reserved_is_not_there_for_others(self, kind: str, tmp_path: Path) -> None:
        purse = PURSES[kind](tmp_path)
        budgets = [purse.budget(group) for group in GROUPS[:4]]
        assert purse.able
        for budget in budgets:
            budget.reserve(1)
        assert not purse.able
        budgets[0].settle(None)  # nothing was revealed
        assert purse.able
        budgets[1].spend(1)
        budgets[1].settle(None)  # revealed, but no model came of it
        again = purse.budget(GROUPS[5])
        again.reserve(1)
        assert not purse.able

    def test_who_never_reserved_owes_nothing(self, kind: str, tmp_path: Path) -> None:
        purse = PURSES[kind](tmp_path)
        purse.budget(GROUPS[0]).settle(None)
        assert purse.able


# ── in the ledger ──


def test_each_aggregation_is_charged_exactly(ledger: Ledger) -> None:
    purse = purse_on(ledger)
    for number, group in enumerate(GROUPS[:3], start=1):
        budget = purse.budget(group)
        budget.reserve(1)
        assert amounts(ledger) == (Fraction(number - 1, 4), Fraction(1, 4))
        budget.spend(1)
        budget.settle("certificate")
        assert amounts(ledger) == (Fraction(number, 4), 0)
    ledger.verify()


def test_less_than_one_aggregation_is_nothing(ledger: Ledger) -> None:
    ledger.allow("clinic", "record", epsilon=0.2, delta=1e-5)
    assert not purse_on(ledger).able
    ledger.allow("clinic", "record", epsilon=0.25, delta=1e-7)
    assert not purse_on(ledger).able
    ledger.allow("clinic", "record", epsilon=0.25, delta=1e-6)
    assert purse_on(ledger).able


def test_after_a_crash_what_had_begun_is_charged_and_the_rest_given_back(
    ledger: Ledger, tmp_path: Path
) -> None:
    purse = purse_on(ledger)
    begun, waiting = purse.budget(GROUPS[0]), purse.budget(GROUPS[1])
    begun.reserve(1)
    waiting.reserve(1)
    begun.spend(1)
    assert amounts(ledger) == (0, Fraction(1, 2))
    del purse  # the process is killed here
    after = ledger_at(tmp_path, pid=2, gone={1})
    assert purse_on(after).able
    assert amounts(after) == (Fraction(1, 4), 0)
    purse_on(after)  # and once only
    assert amounts(after) == (Fraction(1, 4), 0)
    after.verify()


def test_what_another_process_or_network_is_at_work_on_is_left_alone(
    ledger: Ledger, tmp_path: Path
) -> None:
    purse_on(ledger).budget(GROUPS[0]).reserve(1)
    purse_on(ledger_at(tmp_path, pid=2))  # process 1 still runs
    assert amounts(ledger) == (0, Fraction(1, 4))
    purse_on(ledger_at(tmp_path, pid=2, gone={1}), network="cd" * 32)
    assert amounts(ledger) == (0, Fraction(1, 4))
    LedgerPurse(PROMISE, ledger_at(tmp_path, pid=2, gone={1}), "other", NETWORK, None)
    assert amounts(ledger) == (0, Fraction(1, 4))


def test_new_records_have_a_budget_of_their_own(ledger: Ledger) -> None:
    """Parts hold different records: the worst of them counts, not the sum."""
    for part in ("january", "february"):
        purse = purse_on(ledger, part)
        for group in GROUPS[:4]:
            budget = purse.budget(part + group)
            budget.reserve(1)
            budget.spend(1)
            budget.settle("certificate")
        assert not purse.able
        assert amounts(ledger) == (1, 0)
    assert purse_on(ledger, "march").able
    assert not purse_on(ledger).able  # all records together have nothing left


# ── records that come later ──


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"unit": "holder"}, "not a holder"), ({"adjacency": "replace"}, "two windows cost more")],
)
def test_new_records_have_no_budget_of_their_own_where_a_unit_may_be_in_two_parts(
    ledger: Ledger, changes: dict[str, Any], words: str
) -> None:
    promise = replace(PROMISE, **changes)
    with pytest.raises(Refused, match=words):
        LedgerPurse(promise, ledger, "clinic", NETWORK, "rows 1 to 60")
    LedgerPurse(promise, ledger, "clinic", NETWORK, None)  # one budget for all


# ── what the holder decides beside its budget ──


def test_a_purse_is_empty_for_what_the_holder_has_revoked(ledger: Ledger) -> None:
    purse = LedgerPurse(PROMISE, ledger, "clinic", NETWORK, None)
    budget = purse.budget(GROUPS[0])
    budget.reserve(1)
    ledger.decisions.revoke("clinic")
    assert not purse.able
    with pytest.raises(Refused, match="has revoked the use"):
        budget.spend(1)  # in the middle of a group: nothing more leaves
    budget.settle(None)
    assert ledger.balance("clinic", "record").spent.epsilon == 0
