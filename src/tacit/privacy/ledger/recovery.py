"""What a ledger is told that takes the place of one of which more was seen (`Ledger.recover`)."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import CheckFailed, Refused
from tacit.privacy.ledger import seen
from tacit.privacy.policy.policy import Policy

if TYPE_CHECKING:
    from tacit.privacy.ledger.state import State

__all__ = ["recovery"]


def recovery(path: Path, state: State) -> dict[str, Any]:
    """The body of the entry: what this machine has seen here, and the policy that stays in force.

    It is the newest of this ledger's own, as far as it was seen at any path; and of the ledger that
    was at this path before, if that was another.
    """
    here, own = seen.mark_at(path), seen.mark_of(state.ledger)
    policy = _later(state.decisions.policy, _policy(own))
    if here is not None and here.ledger != state.ledger:
        policy = _joined(policy, _policy(here), path)
    noted = here or own
    return {
        "seen": None if noted is None else {**asdict(noted), "policy": None},
        "policy": None if policy is None else policy.to_toml(),
    }


def _policy(mark: seen.Mark | None) -> Policy | None:
    if mark is None or mark.policy is None:
        return None
    return Policy.from_toml(mark.policy, "the policy that this machine has seen in force")


def _later(copy: Policy | None, noted: Policy | None) -> Policy | None:
    """Of one ledger: numbers only grow, and each was signed as it had to be when it came."""
    if copy is None or noted is None:
        return noted or copy
    return noted if noted.number >= copy.number else copy


def _joined(one: Policy | None, other: Policy | None, path: Path) -> Policy | None:
    """Of two ledgers: the one that may replace the other."""
    if one is None or other is None or one.digest == other.digest:
        return one or other
    for later, earlier in ((one, other), (other, one)):
        try:
            later.check_signatures(earlier)
        except (Refused, CheckFailed):
            continue
        return later
    raise Refused(
        f"{path} is under policy {one.name!r}, number {one.number}, and the ledger that was here "
        f"before was under policy {other.name!r}, number {other.number}: neither may replace the "
        "other. Put this ledger at another path, and recover each at its own."
    )
