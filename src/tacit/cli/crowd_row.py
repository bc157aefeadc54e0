"""A person's row of a crowd's study: from a table, or made from her own events.

Whether there is one is private: whoever writes the schema, or the bundle, chooses what a row needs.
So what cannot be made a row of is no error, but `why`; she takes part all the same (person.md).
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tacit.channels.crowd.proposal import Proposal
from tacit.cli.me_store import moment_of, opened
from tacit.data.batch import Batch
from tacit.data.tables import read_batches
from tacit.errors import CheckFailed, InputError, TableError
from tacit.personal.problems.bundle import Bundle
from tacit.personal.problems.row import check_columns, row_of

__all__ = ["Row", "row_from_events", "row_from_table"]


class Row(NamedTuple):
    """The row, or why there is none: for the person's own eyes."""

    batch: Batch | None
    why: str = ""


def row_from_table(proposal: Proposal, path: Path) -> Row:
    """The one row, as the schema says. Wrong columns, or several rows, are mistakes; what stands in
    the row never is."""
    try:
        batch = Batch.concat(list(read_batches(path, proposal.schema)))
    except TableError as error:
        if error.row is None:
            raise
        return Row(None, str(error))
    if batch.rows > 1:
        raise InputError(
            f"{path} has {batch.rows} rows; a person has one. Keep the row that is yours."
        )
    return Row(batch) if batch.rows else Row(None, f"{path}: a value is missing in your row.")


def row_from_events(proposal: Proposal, path: Path, store: Path | None, now: str | None) -> Row:
    """By the bundle that the proposal names; another would make a row that means something else."""
    bundle = Bundle.load(path)
    bundle.check_signature()
    if proposal.bundle and bundle.digest != proposal.bundle:
        raise CheckFailed(
            f"{path}: is not the bundle that {proposal.name} was proposed with. Ask the collector "
            "for that one."
        )
    check_columns(bundle.problem, proposal.schema)
    with opened(store) as held:
        moment = moment_of(now, held.zone)
        try:
            dataset = held.dataset(list(bundle.problem.events))
            return Row(row_of(bundle.problem, dataset, proposal.schema, moment))
        except InputError as error:
            return Row(None, str(error))
