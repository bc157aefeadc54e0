"""A person's row of a crowd's study, made from her own events."""

from __future__ import annotations

from pathlib import Path

from tacit.channels.crowd.proposal import Proposal
from tacit.cli.me_store import moment_of, opened
from tacit.data.batch import Batch
from tacit.errors import CheckFailed
from tacit.personal.problems.bundle import Bundle
from tacit.personal.problems.row import row_of

__all__ = ["row_from_events"]


def row_from_events(proposal: Proposal, path: Path, store: Path | None, now: str | None) -> Batch:
    """By the bundle that the proposal names; another would make a row that means something else."""
    bundle = Bundle.load(path)
    bundle.check_signature()
    if proposal.bundle and bundle.digest != proposal.bundle:
        raise CheckFailed(
            f"{path}: is not the bundle that {proposal.name} was proposed with. Ask the collector "
            "for that one."
        )
    with opened(store) as held:
        dataset = held.dataset(list(bundle.problem.events))
        return row_of(bundle.problem, dataset, proposal.schema, moment_of(now, held.zone))
