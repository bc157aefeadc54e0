"""What consortium and peers tell the ledger beyond (ε, δ): many runs fit under one ceiling."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "consortium"))
sys.path.insert(0, str(Path(__file__).parent / "peers"))
from protocol_runs import study_of
from small_network import pact_of

from tacit.channels.consortium.protocols import planned_cost, terms_of
from tacit.channels.consortium.terms import joint_cost
from tacit.channels.peers.pact import Terms
from tacit.channels.peers.purse import LedgerPurse
from tacit.channels.roles.budget import LedgerBudget
from tacit.errors import BudgetExceeded
from tacit.privacy.accounting import SpendCost
from tacit.privacy.ledger import Ledger
from tacit.privacy.promise import Promise

PROMISE, MOST = Promise(0.5, 1e-6), 100


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "ledger.db")
    made.allow("clinic", "record", epsilon=5.0, delta=1e-5)
    return made


@pytest.mark.parametrize("parties", [3, 8])
def test_a_consortium_costs_the_same_whoever_takes_part(parties: int) -> None:
    study = study_of("joint", parties, 5, PROMISE)
    keys = tuple(party.key for party in study.holders)
    planned = planned_cost(study)
    assert planned is not None
    for size in range(1, parties + 1):
        assert planned == SpendCost.of(terms_of(study, keys[:size]).releases, PROMISE.adjacency)


def test_what_has_no_proof_tells_nothing_more() -> None:
    assert planned_cost(study_of("as-published", 3, 5, Promise(0.5))) is None


def test_many_consortia_under_one_ceiling(ledger: Ledger) -> None:
    study, done = study_of("joint", 3, 5, PROMISE), 0
    while done < MOST:
        budget = LedgerBudget.of(study, ledger, "clinic", lambda number: planned_cost(study))
        try:
            budget.reserve(1)
        except BudgetExceeded:
            break
        budget.spend(1)
        budget.settle(None)
        done += 1
    assert 50 <= done < 81  # adding admits 10; studies that nobody chose by results, 81
    ledger.verify()


def test_many_aggregations_of_peers_under_one_ceiling(ledger: Ledger) -> None:
    pact, done = pact_of(terms=Terms(epsilon=0.5, delta=1e-6)), 0
    cost = joint_cost(pact.averaged, pact.schema, pact.promise, pact.smallest)
    purse = LedgerPurse(pact.promise, ledger, "clinic", pact.digest, None, cost=cost)
    while purse.able and done < MOST:
        budget = purse.budget(f"{done:064x}")
        budget.reserve(1)
        budget.spend(1)
        budget.settle(None)
        done += 1
    assert 50 <= done < 81
    ledger.verify()
