"""Who may go on with a reservation, and which parts are whose: holders' budgets over a ledger."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING

import msgspec
import pytest

from tacit.channels.federation.local import local_study
from tacit.channels.federation.outbox import Outbox
from tacit.channels.peers.purse import LedgerPurse
from tacit.channels.roles.budget import LedgerBudget
from tacit.channels.roles.store import BEFORE_IDENTITIES
from tacit.channels.studies.study import Online, Study
from tacit.crypto.signing import SigningKey
from tacit.data.schema import Column, Schema
from tacit.errors import BudgetExceeded, Refused
from tacit.privacy.accounting import SpendCost
from tacit.privacy.ledger import Ledger, Owner, Surroundings
from tacit.privacy.ledger.owner import Fate
from tacit.privacy.promise import Promise
from tacit.programs.kmeans import KMeans

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = Schema(columns=(Column(name="x", type="number", bounds=(-1.0, 1.0)),))
PROMISE = Promise(1.0, 1e-6)
STUDY = "study s 0123456789abcdef"


class Gone(Surroundings):
    """Whoever made a reservation before has been killed."""

    def now(self) -> datetime:
        return datetime(2026, 1, 2, tzinfo=UTC)

    def fate(self, owner: Owner) -> Fate:
        return Fate.GONE


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "ledger.db", Gone())
    made.allow("d", "record", 1.0, 1e-6)
    return made


def online(name: str) -> Study:
    keys = [SigningKey.generate() for _ in range(3)]
    study = local_study(KMeans(2, 3), 2, SCHEMA, PROMISE, keys)
    return msgspec.structs.replace(study, name=name, online=Online(windows=3))


def begun(ledger: Ledger, identity: str | None) -> LedgerBudget:
    budget = LedgerBudget(PROMISE, STUDY, ledger, "d")
    if identity is not None:
        budget.belongs_to(identity)
    budget.reserve(1)
    budget.spend(1)
    return budget


def test_the_same_outbox_goes_on_and_pays_once(ledger: Ledger) -> None:
    begun(ledger, "one")
    begun(ledger, "one").settle(None)
    assert ledger.balance("d", "record").spent.epsilon == 1
    assert ledger.open_spends() == []


@pytest.mark.parametrize("second", ["two", None, BEFORE_IDENTITIES])
def test_a_fresh_outbox_cannot_adopt_what_was_drawn(ledger: Ledger, second: str | None) -> None:
    begun(ledger, "one")
    with pytest.raises(BudgetExceeded, match="only the folder of that run can go on") as refused:
        begun(ledger, second)
    assert (refused.value.asked, refused.value.left) == (1.0, 0.0)
    ledger.allow("d", "record", 2.0, 2e-6, composition="adding")
    begun(ledger, second).settle(None)
    balance = ledger.balance("d", "record")
    assert (balance.spent.epsilon, balance.reserved.epsilon) == (1, 1)


def test_what_was_only_reserved_is_given_back(ledger: Ledger) -> None:
    LedgerBudget(PROMISE, STUDY, ledger, "d").reserve(1)
    begun(ledger, "two").settle(None)
    assert ledger.balance("d", "record").spent.epsilon == 1
    assert ledger.open_spends() == []


def test_leaving_charges_what_any_run_has_begun(ledger: Ledger) -> None:
    begun(ledger, "one")
    LedgerBudget(PROMISE, STUDY, ledger, "d").leave()
    assert ledger.balance("d", "record").spent.epsilon == 1
    assert ledger.open_spends() == []


def test_an_outbox_keeps_its_identity_and_a_fresh_one_has_another(tmp_path: Path) -> None:
    names = []
    for file in ("a.db", "a.db", "b.db"):
        outbox = Outbox(tmp_path / file, "0" * 64)
        names.append(outbox.identity)
        outbox.close()
    assert names[0] == names[1] != names[2]


def test_a_reservation_of_version_0_1_is_adopted_by_its_outbox_only(ledger: Ledger) -> None:
    body = {
        "dataset": "d",
        "epsilon": "1.0",
        "delta": "1e-06",
        "unit": "record",
        "adjacency": "add-remove",
        "purpose": STUDY,
        "part": None,
        "owner": Owner("h", 1, 1).as_body(),
    }
    number = ledger._append(lambda state: ("reserve", body))
    ledger._append(lambda state: ("draw", {"reservation": number}))
    with pytest.raises(BudgetExceeded):
        begun(ledger, "a fresh one")
    begun(ledger, BEFORE_IDENTITIES).settle(None)
    assert ledger.balance("d", "record").spent.epsilon == 1


# ── parts ──


def run(study: Study, ledger: Ledger, identity: str) -> None:
    budget = LedgerBudget.of(study, ledger, "d")
    budget.belongs_to(identity)
    for window in (1, 2, 3):
        budget.reserve(window)
        budget.spend(window)
    budget.settle(None)


def test_windows_of_one_run_are_parallel_and_runs_add(ledger: Ledger) -> None:
    ledger.allow("d", "record", 9.0, 1e-5, composition="adding")
    run(online("one"), ledger, "outbox 1")
    assert ledger.balance("d", "record").spent.epsilon == 1
    run(online("two"), ledger, "outbox 2")
    assert ledger.balance("d", "record").spent.epsilon == 2
    again = online("three")
    run(again, ledger, "outbox 3")
    run(again, ledger, "outbox 4")  # the same study with a fresh folder: other windows
    assert ledger.balance("d", "record").spent.epsilon == 4


def test_a_ceiling_admits_one_online_study_not_any_number(ledger: Ledger) -> None:
    run(online("one"), ledger, "outbox 1")
    with pytest.raises(BudgetExceeded):
        run(online("two"), ledger, "outbox 2")


def test_networks_and_studies_add(ledger: Ledger) -> None:
    ledger.allow("d", "record", 9.0, 1e-5, composition="adding")
    run(online("one"), ledger, "outbox 1")
    for network, part in (("a", "rows 1 to 66"), ("a", "rows 67 to 90"), ("b", "rows 1 to 132")):
        purse = LedgerPurse(PROMISE, ledger, "d", network * 32, part, identity="folder")
        group = purse.budget("g" * 40)
        group.reserve(1)
        group.spend(1)
        group.settle(None)
    assert ledger.balance("d", "record").spent.epsilon == Fraction(3)


def test_a_peer_that_lost_its_folder_is_charged_beside(ledger: Ledger) -> None:
    ledger.allow("d", "record", 1.5, 1e-5, composition="adding")
    for identity in ("folder", None):
        purse = LedgerPurse(PROMISE, ledger, "d", "a" * 32, "rows 1 to 66", identity)
        group = purse.budget("g" * 40)
        if identity is None:
            assert not purse.able
            with pytest.raises(Refused):
                group.reserve(1)
            break
        group.reserve(1)
        group.spend(1)
        group.settle(None)


def test_a_study_reserves_the_cost_of_its_plan(ledger: Ledger) -> None:
    ledger.allow("d", "record", 9.0, 1e-5)
    study = local_study(KMeans(2, 3), 2, SCHEMA, PROMISE, [SigningKey.generate() for _ in range(3)])
    LedgerBudget.of(study, ledger, "d").reserve(1)
    (spend,) = ledger.open_spends()
    assert spend.cost == SpendCost.of(study.levels().planned_releases(), PROMISE.adjacency)
    assert spend.cost is not None
    assert spend.cost.leak == 0


class In(Gone):
    """A container that shares the ledger with others, and does not see their processes."""

    def __init__(self, host: str) -> None:
        self._host = host

    def owner(self) -> Owner:
        return Owner(self._host, 1, 1)

    def fate(self, owner: Owner) -> Fate:
        return Fate.RUNNING if owner.host == self._host else Fate.ELSEWHERE


@pytest.mark.parametrize("first", ["here", "there"])
def test_of_two_that_hold_one_reservation_the_last_may_draw(tmp_path: Path, first: str) -> None:
    """A copy of the folder is started elsewhere while the first one still runs."""
    here, there = (Ledger(tmp_path / "ledger.db", In(name)) for name in ("here", "there"))
    here.allow("d", "record", 1.0, 1e-6)
    budgets = {}
    for name, ledger in (("here", here), ("there", there)):
        budgets[name] = LedgerBudget(PROMISE, STUDY, ledger, "d", once=True)
        budgets[name].belongs_to("journal key")
        assert not budgets[name].reserve(1)
    for name in (first, *({"here", "there"} - {first})):
        if name == "here":
            with pytest.raises(Refused, match="was taken over"):
                budgets[name].spend(1)
        else:
            budgets[name].spend(1)
    assert [spend.drawn for spend in here.open_spends()] == [True]
