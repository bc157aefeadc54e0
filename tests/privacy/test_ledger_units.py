"""What a spend costs an account of another unit or adjacency."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from tacit.errors import BudgetExceeded, Refused, UsageError
from tacit.privacy.ledger import Amount, Ledger
from tacit.privacy.promise import Promise

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.db")


def spent(ledger: Ledger, unit: str) -> Amount:
    return ledger.balance("adult", unit).spent


def test_a_coarser_spend_charges_finer_accounts(ledger: Ledger) -> None:
    """A record changes by its person's leaving and coming back changed: two steps of hers."""
    for unit in ("record", "person", "holder"):
        ledger.allow("adult", unit, 10.0, 1e-5, composition="adding", **most(unit))
    ledger.reserve(Promise(0.5, 1e-7, "person"), "adult", "study").commit()
    assert spent(ledger, "person") == Amount.of(0.5, 1e-7)
    assert spent(ledger, "record").epsilon == 1
    assert float(spent(ledger, "record").delta) == pytest.approx(1e-7 * (1 + math.exp(0.5)))
    assert spent(ledger, "holder").epsilon == Fraction(7, 2)


def most(unit: str) -> dict[str, int]:
    return {"holder": {"most_records": 20, "most_persons": 7}, "person": {"most_records": 3}}.get(
        unit, {}
    )


def test_a_mechanism_that_needs_both_steps() -> None:
    """Why twofold: a person's records are summed and clipped to [−1, 1], so that adding or removing
    her moves a sum by 1, but one record of hers by 2."""
    records = [-1.0, 5.0]
    clipped = [max(-1.0, min(1.0, sum(some))) for some in (records[:1], records)]
    assert abs(clipped[1] - clipped[0]) == 2


def test_the_finer_account_can_refuse(ledger: Ledger) -> None:
    ledger.allow("adult", "record", 0.9)
    ledger.allow("adult", "person", 5.0, most_records=1)
    with pytest.raises(BudgetExceeded, match=r"per record: asked ε = 1 \(for a spend of ε = 0.5"):
        ledger.reserve(Promise(0.5, unit="person"), "adult", "study")


def test_a_record_spend_counts_for_all_records_of_a_person(ledger: Ledger) -> None:
    ledger.allow("adult", "record", 1.0, 1e-5, composition="adding")
    ledger.allow("adult", "person", 2.0, 1e-5, composition="adding", most_records=4)
    ledger.reserve(Promise(0.25, 1e-8), "adult", "study").commit()
    assert spent(ledger, "person").epsilon == 1
    expected = 1e-8 * sum(math.exp(0.25 * i) for i in range(4))
    assert float(spent(ledger, "person").delta) == pytest.approx(expected)
    ledger.reserve(Promise(0.25), "adult", "study").commit()
    with pytest.raises(BudgetExceeded, match="--epsilon 3 --delta 1e-05 --most-records 4"):
        ledger.reserve(Promise(0.25), "adult", "study")


def test_without_a_number_it_is_refused(ledger: Ledger) -> None:
    ledger.allow("adult", "record", 1.0)
    ledger.allow("adult", "person", 2.0)
    with pytest.raises(Refused, match="--most-records NUMBER"):
        ledger.reserve(Promise(0.25), "adult", "study")
    ledger.allow("adult", "person", 2.0, most_records=3)  # the remedy
    ledger.reserve(Promise(0.25), "adult", "study").commit()
    with pytest.raises(UsageError, match="--most-records"):
        ledger.allow("adult", "person", 2.0)
    with pytest.raises(UsageError, match="whole number"):
        ledger.allow("adult", "person", 2.0, most_records=0)


def test_add_remove_counts_twice_under_replace(ledger: Ledger) -> None:
    ledger.allow("adult", "record", 4.0, 1e-5, composition="adding", adjacency="replace")
    ledger.reserve(Promise(0.5, 1e-7), "adult", "study").commit()
    assert spent(ledger, "record").epsilon == 1
    assert float(spent(ledger, "record").delta) == pytest.approx(1e-7 * (1 + math.exp(0.5)))
    ledger.reserve(Promise(0.5, adjacency="replace"), "adult", "study").commit()
    assert spent(ledger, "record").epsilon == Fraction(3, 2)


def test_replace_is_refused_under_add_remove(ledger: Ledger) -> None:
    ledger.allow("adult", "record", 4.0)
    ledger.reserve(Promise(0.5), "adult", "study").commit()
    with pytest.raises(Refused, match="--adjacency replace"):
        ledger.reserve(Promise(0.5, adjacency="replace"), "adult", "study")
    ledger.allow("adult", "record", 4.0, adjacency="replace")  # the remedy
    ledger.reserve(Promise(0.5, adjacency="replace"), "adult", "study").commit()
    assert spent(ledger, "record").epsilon == Fraction(3, 2)
    with pytest.raises(UsageError, match="keep its budgets under replace"):
        ledger.allow("adult", "record", 4.0, adjacency="add-remove")


def spent_before_accounts_knew_of_one_another(ledger: Ledger) -> None:
    """As version 0.1 wrote it: a ceiling per person, and record spends that it does not count."""
    old = {"dataset": "adult", "delta": "0.0"}
    owner = {"host": "h", "pid": 1, "started": 1}
    spend = {"adjacency": "add-remove", "purpose": "p", "part": None, "owner": owner}
    for kind, body in (
        ("allow", {**old, "unit": "record", "epsilon": "100.0"}),
        ("allow", {**old, "unit": "person", "epsilon": "1.0"}),
        ("reserve", {**old, **spend, "unit": "record", "epsilon": "5.0"}),
    ):
        number = ledger._append(lambda state, kind=kind, body=body: (kind, body))
    end = {"reservation": number, "epsilon": "5.0", "delta": "0.0"}
    end |= {"certificate": None, "settled": False}
    ledger._append(lambda state: ("commit", end))


@pytest.mark.parametrize("ceiling", [0.5, 1.0, 100.0])
def test_a_ceiling_set_anew_counts_every_finer_spend(ledger: Ledger, ceiling: float) -> None:
    spent_before_accounts_knew_of_one_another(ledger)
    with pytest.raises(UsageError, match="--most-records"):
        ledger.allow("adult", "person", ceiling)
    ledger.allow("adult", "person", 0)  # may always be closed
    with pytest.raises(UsageError, match="--most-records"):
        ledger.allow("adult", "person", ceiling)
    ledger.allow("adult", "person", ceiling, most_records=2)
    assert spent(ledger, "person").epsilon == 10
    ledger.verify()


def test_nothing_is_spent_beside_what_could_not_be_charged(ledger: Ledger) -> None:
    spent_before_accounts_knew_of_one_another(ledger)
    head = ledger.head
    for unit in ("person", "record"):
        with pytest.raises(Refused, match="--most-records NUMBER"):
            ledger.reserve(Promise(0.5, unit=unit), "adult", "study")
        assert not ledger.affords(Promise(0.5, unit=unit), "adult")
    assert ledger.head == head
    ledger.allow("adult", "person", 20.0, most_records=2)
    ledger.reserve(Promise(0.5, unit="person"), "adult", "study").commit()
    assert spent(ledger, "person").epsilon == Fraction(21, 2)
