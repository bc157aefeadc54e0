"""`tacit budget`: what a holder allows, what was spent, and what was interrupted."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.budget_view import RECENT, print_budgets
from tacit.cli.keys import HOLDER, key_named
from tacit.cli.ledger_there import ledger_there
from tacit.cli.output import json_option, people, print_document
from tacit.errors import InputError
from tacit.home import ledger_path
from tacit.whole_file import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tacit.privacy.ledger import Amount, Balance, Entry, Ledger, Spend

__all__ = ["budget"]

AMOUNTS = ("epsilon", "delta")


@click.group()
def budget() -> None:
    """Show or set what a holder's ledger allows.

    The ledger is one file: --ledger, else $TACIT_LEDGER, else ledger.db in $TACIT_HOME.
    """


def ledger_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--ledger",
        "path",
        type=click.Path(path_type=Path),
        help="The ledger's file [default: $TACIT_LEDGER, or ledger.db in $TACIT_HOME].",
    )(command)


@budget.command()
@click.option("--dataset", help="Only the budgets of this data set.")
@click.option("--head", help="A head noted earlier: check that it is still part of the history.")
@ledger_option
@json_option
def show(path: Path | None, dataset: str | None, head: str | None, as_json: bool) -> None:
    """Check the ledger and show its budgets, interrupted reservations and newest entries."""
    if path is None and ledger_there(None) is None:
        return _show_nothing_yet(ledger_path(), as_json)
    ledger = _existing(path)
    if head:
        ledger.verify(head)
    balances = _chosen(ledger, dataset)
    entries = ledger.entries()
    interrupted = [s for s in ledger.interrupted() if dataset in (None, s.dataset)]
    if as_json:
        return print_document(_document(ledger, balances, interrupted, entries))
    return print_budgets(people(), ledger, balances, interrupted, entries)


@budget.command()
@click.argument("dataset")
@click.option("--epsilon", type=float, help="The most that may be spent in all.")
@click.option("--delta", type=float, default=0.0, show_default=True, help="The same for delta.")
@click.option(
    "--unit",
    type=click.Choice(["record", "person", "holder"]),
    default="record",
    show_default=True,
    help="What is protected.",
)
@click.option(
    "--composition",
    type=click.Choice(["adding", "filter"]),
    help="How spends add up [default: as the first spend suggests].",
)
@click.option(
    "--adjacency",
    type=click.Choice(["add-remove", "replace"]),
    help="What the budget is kept under [default: as it is spent].",
)
@click.option(
    "--most-records",
    type=click.IntRange(min=1),
    help="Records that one person or holder has at most: a spend per record counts so often.",
)
@click.option(
    "--most-persons",
    type=click.IntRange(min=1),
    help="Persons that one holder has at most: a spend per person counts so often.",
)
@click.option(
    "--person",
    help="The column that says whose a record is: studies that say another are refused.",
)
@ledger_option
@json_option
def allow(
    dataset: str,
    epsilon: float | None,
    delta: float,
    unit: str,
    person: str | None,
    path: Path | None,
    as_json: bool,
    **stated: Any,
) -> None:
    """Set the ceiling of DATASET: it replaces all that was set before.

    A ceiling below what is already spent leaves nothing; 0 closes the budget. With --person and
    without --epsilon, budgets stay as they are.
    """
    from tacit.privacy.ledger import Ledger

    if epsilon is None and person is None:
        raise click.UsageError("say how much may be spent, with --epsilon.")
    ledger = Ledger(path or ledger_path())
    if person is not None:
        ledger.decisions.state_person(dataset, person)
    if epsilon is None:
        return _say_person(ledger, dataset, as_json)
    balance = ledger.allow(dataset, unit, epsilon, delta, **stated)
    if as_json:
        return print_document(
            {"ledger": str(ledger.path), "head": ledger.head, "budget": _budget(balance)}
        )
    return people().print(
        f"{dataset} per {unit}: {balance.allowed} allowed, {balance.left} left.", markup=False
    )


def _say_person(ledger: Ledger, dataset: str, as_json: bool) -> None:
    column = ledger.decisions.person(dataset)
    if as_json:
        return print_document(
            {"ledger": str(ledger.path), "head": ledger.head, "dataset": dataset, "person": column}
        )
    return people().print(f"{dataset}: persons are told apart by column {column}.", markup=False)


@budget.command()
@click.argument("reservation", type=int)
@click.option("--spent/--unspent", default=None, help="Charge it, or give it back.")
@ledger_option
@json_option
def settle(reservation: int, spent: bool | None, path: Path | None, as_json: bool) -> None:
    """Say what became of an interrupted RESERVATION (its number in `tacit budget show`).

    If in doubt, it was spent. One under which noise was drawn cannot be given back.
    """
    if spent is None:
        raise click.UsageError("say --spent to charge it, or --unspent to give it back.")
    ledger = _existing(path)
    ledger.settle(reservation, spent)
    if as_json:
        return print_document({"reservation": reservation, "spent": spent, "head": ledger.head})
    return people().print(
        f"Reservation {reservation} is {'charged' if spent else 'given back'}; the ledger says "
        "that this was its holder's word."
    )


@budget.command()
@click.argument("dataset")
@click.argument("other")
@click.option("--reason", required=True, help="Why they look alike, for whoever reads the ledger.")
@click.option("--key", "key_name", default=HOLDER, show_default=True, help="Your identity.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Sign as an approver; write it for the holder."
)
@click.option(
    "--from", "given", type=click.Path(path_type=Path), help="Record what an approver has written."
)
@ledger_option
@json_option
def distinct(
    dataset: str,
    other: str,
    reason: str,
    key_name: str,
    out: Path | None,
    given: Path | None,
    path: Path | None,
    as_json: bool,
) -> None:
    """State that DATASET and OTHER have no records in common, though they look alike.

    From then on they are not compared when a table is charged to one of them. Under a policy its
    approvers sign this: you, if you are one of them, or others with --out and --from.
    """
    from tacit.privacy.policy import Approval
    from tacit.privacy.policy.policy import distinct_digest

    subject = distinct_digest(dataset, other, reason), min(dataset, other)
    if out is not None:
        approval = Approval.signed(*subject, key_named(key_name))
        write_whole(out, approval.to_toml())
        if as_json:
            return print_document({"file": str(out), "approver": approval.approver})
        return people().print(f"Wrote {out}: the holder gives it with --from.", markup=False)
    ledger = _existing(path)
    policy = ledger.decisions.policy
    if given is not None:
        approval = Approval.load(given)
        if (approval.study, approval.dataset) != subject:
            raise InputError(f"{given}: approves something else, or for another reason.")
        ledger.decisions.approve(approval)
    elif policy is not None and key_named(key_name).public_key in policy.approvers:
        ledger.decisions.approve(Approval.signed(*subject, key_named(key_name)))
    ledger.state_distinct(dataset, other, reason)
    if as_json:
        return print_document(
            {"dataset": dataset, "other": other, "reason": reason, "head": ledger.head}
        )
    return people().print(
        f"{dataset} and {other} have separate budgets; the ledger says that this was its holder's "
        "word.",
        markup=False,
    )


@budget.command()
@ledger_option
@json_option
def recover(path: Path | None, as_json: bool) -> None:
    """Go on with an older copy of the ledger, or with a new one where none is left.

    What it lacks was spent and is not known: every budget is closed until you set it anew, and what
    is still reserved counts as spent.
    """
    from tacit.privacy.ledger import Ledger

    ledger = Ledger.recover(path or ledger_path())
    if as_json:
        return print_document(
            {"ledger": str(ledger.path), "head": ledger.head, "entries": len(ledger.entries())}
        )
    return people().print(
        f"{ledger.path} is in use again, with {len(ledger.entries())} entries. Every budget is "
        "closed; set what may be spent with `tacit budget allow`, knowing what is missing. "
        "The policy that this machine has seen in force stays in force; revocations and people "
        "left out since then are missing: enter them first.",
        markup=False,
    )


def _existing(path: Path | None) -> Ledger:
    # `show` has a section for interrupted reservations; the log would say the same twice.
    logging.getLogger("tacit.ledger").addHandler(logging.NullHandler())
    found = ledger_there(path)
    if found is None:
        raise InputError(
            f"there is no ledger at {path or ledger_path()}: check --ledger, or make one by "
            "setting a first budget with `tacit budget allow`."
        )
    return found


def _chosen(ledger: Ledger, dataset: str | None) -> list[Balance]:
    balances = ledger.balances()
    if dataset is None:
        return balances
    chosen = [b for b in balances if b.dataset == dataset]
    if not chosen:
        known = ", ".join(sorted({b.dataset for b in balances})) or "none yet"
        raise InputError(f"the ledger has no budget for data set {dataset!r}; it has: {known}.")
    return chosen


def _show_nothing_yet(path: Path, as_json: bool) -> None:
    if as_json:
        return print_document(
            {
                "ledger": str(path),
                "entries": 0,
                "budgets": [],
                "interrupted": [],
                "policy": None,
                "recent": [],
            }
        )
    return people().print(
        f"No ledger yet at {path}.\nSet a first budget, for instance: "
        "tacit budget allow DATASET --unit record --epsilon 1",
        markup=False,
    )


def _document(
    ledger: Ledger, balances: Sequence[Balance], interrupted: Sequence[Spend], entries: list[Entry]
) -> dict[str, Any]:
    return {
        "ledger": str(ledger.path),
        "id": ledger.id,
        "entries": len(entries),
        "head": entries[-1].hash,
        "budgets": [_budget(b) for b in balances],
        "known_records": ledger.known.counts(),
        "interrupted": [_interrupted(s) for s in interrupted],
        **_decided(ledger, balances),
        "recent": [
            {"seq": e.seq, "at": e.at, "kind": e.kind, "hash": e.hash, **_told(e)}
            for e in entries[-RECENT:]
        ],
    }


def _decided(ledger: Ledger, balances: Sequence[Balance]) -> dict[str, Any]:
    """What the holder has decided beside budgets."""
    decisions = ledger.decisions
    policy = decisions.policy
    names = sorted({balance.dataset for balance in balances})
    years = {name: dict(zip(AMOUNTS, decisions.year(name), strict=True)) for name in names}
    return {
        "policy": None
        if policy is None
        else {"name": policy.name, "number": policy.number, "digest": policy.digest},
        "last_365_days": {} if policy is None else years,
        "revoked": list(decisions.revoked),
        "left_out": decisions.left_out_counts,
        "persons": {name: found for name in names if (found := decisions.person(name))},
    }


def _told(entry: Entry) -> dict[str, Any]:
    """An entry's body; of people left out, only how many."""
    if entry.kind != "leave out":
        return entry.body
    return {**entry.body, "people": len(entry.body["people"])}


def _budget(balance: Balance) -> dict[str, Any]:
    return {
        "dataset": balance.dataset,
        "unit": str(balance.unit),
        "allowed": _numbers(balance.allowed),
        "spent": _numbers(balance.spent),
        "reserved": _numbers(balance.reserved),
        "left": _numbers(balance.left),
        "adjacencies": [str(a) for a in balance.adjacencies],
        "composition": str(balance.composition),
        "adding_says": _numbers(balance.added),
        "most_records": balance.most.records,
        "most_persons": balance.most.persons,
    }


def _numbers(amount: Amount) -> dict[str, float | str]:
    def number(value: Any) -> float | str:
        return "inf" if value == math.inf else float(value)  # JSON has no infinity

    return {"epsilon": number(amount.epsilon), "delta": number(amount.delta)}


def _interrupted(spend: Spend) -> dict[str, Any]:
    return {
        "reservation": spend.id,
        "at": spend.at,
        "dataset": spend.dataset,
        "unit": str(spend.promise.unit),
        "amount": _numbers(spend.amount),
        "purpose": spend.purpose,
        "noise_drawn": spend.drawn,
        "resumable": spend.resumable,
        "pid": spend.owner.pid,
    }
