"""`tacit peer measure`: what the network is worth beside one's own records, paid once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tacit.channels.peers.holdings import Holdings
from tacit.channels.peers.library import Library
from tacit.channels.peers.measuring import MeasurePlan, measured
from tacit.channels.peers.pact import Pact
from tacit.channels.peers.vetting import voting_models
from tacit.channels.peers.worth import MEASURED, Worth, read_worth
from tacit.cli.peer_words import pact_of, peer_folder, write_private
from tacit.errors import InputError, Refused, UsageError
from tacit.home import ledger_path
from tacit.privacy.accounting import SpendCost
from tacit.privacy.ledger import Ledger
from tacit.privacy.promise import Promise

__all__ = ["measure_network"]


def measure_network(
    network: str,
    data_path: Path,
    epsilon: float,
    share: float,
    *,
    folder: Path | None,
    dataset: str | None,
    ledger_file: Path | None,
    again: bool,
) -> Worth:
    """Paid, measured and kept in the peer's folder; refused before anything is drawn if the ledger
    cannot pay, or if it was measured already."""
    pact, where = pact_of(network, folder), peer_folder(network, folder)
    _refuse_second(pact, where, again)
    models, mine = _models(pact, where)
    terms = pact.promise
    plan = MeasurePlan(
        Promise(epsilon, 0.0, terms.unit, terms.adjacency), len(models), share, pact.smallest
    )
    if not plan.could_tell(pact.records):
        raise UsageError(
            f"with epsilon = {epsilon:g} the noise would hide {share:g} of the {pact.records:,} "
            "records that a peer may have. Take a larger --epsilon or --share; nothing was spent."
        )
    ledger, payer = Ledger(ledger_file or ledger_path()), dataset or data_path.stem
    ledger.balance(payer, terms.unit)  # refused, if nobody has set a budget
    holdings = Holdings(pact, data_path, lambda: ledger.decisions.left_out(payer))
    if not holdings.read() or holdings.records is None or holdings.records.y is None:
        raise InputError(
            f"{data_path} has fewer than the {pact.smallest} records with a label that network "
            f"{pact.name} needs of everybody who takes part with records."
        )
    purpose = f"peers {pact.digest[:16]} measure"
    _settle_interrupted(ledger, payer, purpose)
    cost = SpendCost.of(plan.spend, terms.adjacency)
    with ledger.reserve(
        plan.promise, payer, purpose, cost=cost, records=holdings.digests, asked=pact.asked
    ) as held:
        held.mark_drawn()
        worth = measured(pact, models, holdings.records, plan, mine)
        write_private(where / MEASURED, worth.to_dict())
    return worth


def _refuse_second(pact: Pact, where: Path, again: bool) -> None:
    if not again and read_worth(where, pact.digest) is not None:
        raise Refused(
            f"network {pact.name} was measured already (tacit peer status {pact.name}), and each "
            "measurement is paid for. To pay for another one, say --again."
        )


def _models(pact: Pact, where: Path) -> tuple[dict[str, Any], int]:
    """All that arrived, and how many of them learned from our own records."""
    library = Library(where / "library.db", pact.digest)
    try:
        models = voting_models(pact, library)
        own = sum(mine for _, mine, _ in library.all())
    finally:
        library.close()
    if not models:
        raise InputError("no model has arrived yet: wait for the first.")
    return models, min(own, len(models))


def _settle_interrupted(ledger: Ledger, payer: str, purpose: str) -> None:
    """A measurement that a crash has broken off: what had begun is charged, the rest given back."""
    for spend in ledger.interrupted():
        if (spend.dataset, spend.purpose) == (payer, purpose):
            ledger.settle(spend.id, spent=spend.drawn)
