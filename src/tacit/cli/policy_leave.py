"""Leaving: `tacit policy revoke`, `leave-out` and `left-out`."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.ledger_there import ledger_there
from tacit.cli.output import json_option, people, print_document
from tacit.errors import InputError, UsageError
from tacit.home import ledger_path

if TYPE_CHECKING:
    from tacit.privacy.ledger import Ledger

__all__ = ["leave_out", "ledger_option", "left_out", "revoke"]


def ledger_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--ledger", "path", type=click.Path(path_type=Path), help="By default your own."
    )(command)


@click.command()
@click.argument("dataset")
@click.option("--undo", is_flag=True, help="Permit its use again.")
@ledger_option
@json_option
def revoke(dataset: str, undo: bool, path: Path | None, as_json: bool) -> None:
    """Stop every use of DATASET: running studies at their next round, new ones at once.

    Sums that were released stay released, and their cost stays charged. Under a policy, --undo
    needs a newer policy in force, signed by its approvers.
    """
    from tacit.privacy.ledger import Ledger

    ledger = Ledger(path or ledger_path())
    if undo:
        ledger.decisions.permit(dataset)
    else:
        ledger.decisions.revoke(dataset)
    if as_json:
        return print_document({"dataset": dataset, "revoked": not undo, "head": ledger.head})
    words = (
        f"{dataset} may be used again, as far as budget and policy allow."
        if undo
        else f"The use of {dataset} is revoked. Running studies stop at their next round; others "
        "wait for you until their deadlines, unless you tell them: tacit join STUDY --leave. What "
        "was released before cannot be taken back."
    )
    return people().print(words, markup=False)


@click.command("leave-out")
@click.argument("dataset")
@click.option("--id", "identifiers", multiple=True, help="Whom: the person's id. Several.")
@click.option(
    "--ids", "file", type=click.Path(path_type=Path, exists=True), help="A file, one id a line."
)
@click.option("--take-back", is_flag=True, help="They may be used again.")
@ledger_option
@json_option
def leave_out(
    dataset: str,
    identifiers: tuple[str, ...],
    file: Path | None,
    take_back: bool,
    path: Path | None,
    as_json: bool,
) -> None:
    """Use nothing of a person in DATASET from now on: from the next round of running studies.

    The ledger keeps a keyed digest of the id, never the id. The study's schema must say whose a
    record is (role = "person"). Sums that a person is in already stay released.
    """
    from tacit.privacy.ledger import Ledger
    from tacit.privacy.policy.left_out import identifiers_in, never_whole

    everybody = [*identifiers, *([] if file is None else _lines(file))]
    if not everybody:
        raise UsageError("say whom: --id ID, or --ids FILE with one id a line.")
    ledger, chosen = Ledger(path or ledger_path()), identifiers_in(everybody)
    count = ledger.decisions.leave_out(dataset, chosen, back=take_back)
    warnings = [] if take_back else list(_doubts(ledger, dataset, never_whole(chosen)))
    if as_json:
        return print_document(
            {"dataset": dataset, "left_out": count, "warnings": warnings, "head": ledger.head}
        )
    people().print(f"{dataset}: {_people(count)} left out from now on.", markup=False)
    for words in warnings:
        people().print(f"Warning: {words}", markup=False)
    return None


def _doubts(ledger: Ledger, dataset: str, odd: int) -> Iterator[str]:
    """What may keep people from being found; without an identifier in it."""
    if not ledger.decisions.is_known(dataset):
        yield (
            f"this ledger has no budget for a data set {dataset!r}. If that is a slip, leave them "
            "out of the right one: `tacit budget show` lists them."
        )
    if odd:
        yield (
            f"{odd} of the ids are spelt like numbers, but not like whole ones (7.0, 1e1): in a "
            "column of integers they are nobody's."
        )
    if ledger.decisions.person(dataset) is None:
        yield (
            "say in which column the ids stand, or studies are refused: tacit budget allow "
            f"{shlex.quote(dataset)} --person COLUMN"
        )


@click.command("left-out")
@ledger_option
@json_option
def left_out(path: Path | None, as_json: bool) -> None:
    """Say how many people are left out of each data set."""
    ledger = ledger_there(path)
    counts = {} if ledger is None else ledger.decisions.left_out_counts
    if as_json:
        return print_document({"left_out": counts})
    if not counts:
        return people().print("Nobody is left out.")
    for dataset, count in counts.items():
        people().print(f"{dataset}: {_people(count)} left out.", markup=False)
    return None


def _people(count: int) -> str:
    return "1 person is" if count == 1 else f"{count} people are"


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise InputError(f"{file}: is not UTF-8 text. Save it as UTF-8.") from None
