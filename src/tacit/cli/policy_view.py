"""A policy in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tacit.crypto.signing import fingerprint

if TYPE_CHECKING:
    from tacit.privacy.ledger import Ledger
    from tacit.privacy.policy import Policy, Rules

__all__ = ["decided_lines", "policy_lines"]


def policy_lines(policy: Policy) -> Iterator[str]:
    signers = policy.signers()
    yield f"Policy {policy.name}, number {policy.number}, digest {policy.digest}"
    yield (
        f"decided by {policy.needed} of {len(policy.approvers)} approvers; signed by "
        f"{len(signers & set(policy.approvers))}"
    )
    for key in policy.approvers:
        yield f"  {fingerprint(key)}{' (has signed)' if key in signers else ''}"
    for name, rules in policy.datasets.items():
        yield "all other data sets:" if name == "*" else f"data set {name}:"
        stated = list(_rules(rules))
        yield from stated or ["  everything is permitted, as far as its budget goes"]


def _rules(rules: Rules) -> Iterator[str]:
    if rules.programs is not None:
        yield f"  programs: {', '.join(rules.programs) or 'none'}"
    if rules.columns is not None:
        yield f"  columns: {', '.join(rules.columns) or 'none'}"
    if rules.headerless:
        yield "  files without a header: columns by the names that a study's author gives them"
    if rules.person is not None:
        yield f"  person: told apart by column {rules.person}"
    if rules.unit is not None:
        yield f"  protected at least: one whole {rules.unit}"
    for span in ("study", "year"):
        for letter, name in (("ε", "epsilon"), ("δ", "delta")):
            most = getattr(rules, f"{name}_per_{span}")
            if most is not None:
                yield f"  per {span}: {letter} = {most:g}"
    for title, keys in (("authors", rules.authors), ("servers", rules.servers)):
        if keys is not None:
            yield f"  {title}: {', '.join(map(fingerprint, keys)) or 'none'}"
    if rules.trust is not None:
        which = (
            f"{rules.trust} of a study's servers do not collude"
            if isinstance(rules.trust, int)
            else f"these do not collude: {', '.join(map(fingerprint, rules.trust))}"
        )
        yield f"  trust: {which}"
    if rules.approval != "policy":
        yield "  approval: an approver signs each study"


def decided_lines(ledger: Ledger, datasets: list[str]) -> Iterator[str]:
    """What `tacit budget show` says of it."""
    decisions = ledger.decisions
    policy = decisions.policy
    if policy is None:
        yield "No policy: budgets alone decide."
    else:
        yield f"Policy {policy.name}, number {policy.number} (tacit policy show)"
        for dataset in datasets:
            yield from _year_left(ledger, policy, dataset)
    for dataset in decisions.revoked:
        yield f"{dataset}: its use is revoked."
    for dataset, count in decisions.left_out_counts.items():
        yield f"{dataset}: {count} left out."


def _year_left(ledger: Ledger, policy: Policy, dataset: str) -> Iterator[str]:
    rules = policy.rules(dataset)
    if rules is None:
        yield f"{dataset}: not named by the policy, so nothing is permitted."
        return
    used = ledger.decisions.year(dataset)
    for letter, name, spent in zip("εδ", ("epsilon", "delta"), used, strict=True):
        most = getattr(rules, f"{name}_per_year")
        if most is not None:
            left = max(0.0, most - spent)
            yield f"{dataset}: {letter} = {left:.6g} of {most:g} left of the last 365 days."
