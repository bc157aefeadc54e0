"""What a holder decides beside budgets, written into its ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tacit.errors import CheckFailed, Refused, UsageError
from tacit.privacy.ledger.checks import label
from tacit.privacy.policy.left_out import LeftOut, digests_of, key_check, secret_of
from tacit.privacy.policy.policy import Approval, Policy
from tacit.privacy.policy.rules import Asked, Totals
from tacit.privacy.promise import Promise

if TYPE_CHECKING:
    from tacit.privacy.ledger.ledger import Ledger
    from tacit.privacy.ledger.reservation import Draft
    from tacit.privacy.ledger.state import State

__all__ = ["HolderDecisions"]

AT_ONCE = 10_000  # people in one entry


class HolderDecisions:
    """`ledger.decisions`: the policy in force, approvals, revocations, people left out."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    # ── a policy ──

    @property
    def policy(self) -> Policy | None:
        """The one in force."""
        return self._ledger._now().decisions.policy

    def use(self, policy: Policy) -> None:
        """Put it in force; refused unless enough approvers have signed, also those of the policy
        that it replaces."""

        def decide(state: State) -> Draft:
            policy.check_signatures(state.decisions.policy)
            return "policy", {"text": policy.to_toml()}

        self._ledger._append(decide)

    def approve(self, approval: Approval) -> None:
        """Record that an approver permits a study."""
        label("dataset", approval.dataset)

        def decide(state: State) -> Draft:
            state.check_name(approval.dataset)
            policy = state.decisions.policy
            if policy is None:
                raise UsageError("no policy is in force, so no approval is needed.")
            if approval.approver not in policy.approvers:
                raise Refused(f"{approval.approver} is not an approver of policy {policy.name}.")
            if not approval.holds:
                raise CheckFailed("the approval's signature does not fit: it was changed.")
            return "approve", {
                "study": approval.study,
                "dataset": approval.dataset,
                "approver": approval.approver,
                "signature": approval.signature,
            }

        self._ledger._append(decide)

    def approvers_of(self, study: str, dataset: str) -> frozenset[str]:
        return self._ledger._now().decisions.approvals.get((study, dataset), frozenset())

    def totals(self, dataset: str, promise: Promise, study: str | None) -> Totals:
        """What one study and the last 365 days would come to, with such a spend."""
        return self._ledger._now().totals_with(dataset, promise, study, self._ledger._clock())

    def year(self, dataset: str) -> tuple[float, float]:
        """(ε, δ) of the last 365 days."""
        epsilon, delta = self._ledger._now().year(dataset, self._ledger._clock())
        return float(epsilon), float(delta)

    def check(self, promise: Promise, dataset: str, asked: Asked) -> None:
        """Refused if such a spend could never be made, however little was spent before."""
        state = self._ledger._now()
        person = state.persons.get(dataset)
        state.decisions.check(dataset, promise, asked, Totals.first(promise), person)

    # ── whose a record is ──

    def person(self, dataset: str) -> str | None:
        """The column that says so: by the policy, by the holder's word, or by the first study."""
        state = self._ledger._now()
        policy = state.decisions.policy
        rules = None if policy is None else policy.rules(dataset)
        stated = state.decisions.persons.get(dataset) or state.persons.get(dataset)
        return (rules and rules.person) or stated

    def state_person(self, dataset: str, column: str) -> None:
        """Say it: a study that tells persons apart by another column is refused from now on."""
        body = {"dataset": label("dataset", dataset), "column": label("column", column)}

        def decide(state: State) -> Draft | None:
            state.decisions.check_state_person(dataset, column, state.persons.get(dataset))
            return None if state.decisions.persons.get(dataset) == column else ("person", body)

        self._ledger._append(decide)

    def check_person(self, promise: Promise, dataset: str, asked: Asked) -> None:
        """Refused if the study tells persons apart by another column."""
        state = self._ledger._now()
        state.decisions.check_person(dataset, promise, asked, state.persons.get(dataset))

    # ── revoking ──

    @property
    def revoked(self) -> tuple[str, ...]:
        return tuple(sorted(self._ledger._now().decisions.revoked))

    def revoke(self, dataset: str) -> None:
        """From now on nothing is reserved or drawn for this data set, by nobody."""
        label("dataset", dataset)

        def decide(state: State) -> Draft:
            state.check_name(dataset)
            return "revoke", {"dataset": dataset}

        self._ledger._append(decide)

    def permit(self, dataset: str) -> None:
        """Undo that; under a policy, only after its approvers have signed a newer one."""

        def decide(state: State) -> Draft:
            state.decisions.check_permit(dataset)
            return "permit", {"dataset": dataset}

        self._ledger._append(decide)

    # ── people who are left out ──

    def leave_out(self, dataset: str, identifiers: Iterable[str], back: bool = False) -> int:
        """From now on (or no longer, if `back`); how many are left out after that."""
        label("dataset", dataset)
        secret = secret_of()
        check, people = key_check(secret), [list(digests_of(secret, i)) for i in identifiers]
        self.left_out(dataset)  # CheckFailed, with another secret
        for start in range(0, len(people), AT_ONCE):
            self._write(dataset, people[start : start + AT_ONCE], check, back)
        return self.left_out_count(dataset)

    def _write(self, dataset: str, people: Sequence[list[str]], check: str, back: bool) -> None:
        body = {"dataset": dataset, "people": list(people), "key": check, "back": back}

        def decide(state: State) -> Draft:
            state.check_name(dataset)
            return "leave out", body

        self._ledger._append(decide)

    def left_out_count(self, dataset: str) -> int:
        return len(self._ledger._now().decisions.left_out.get(dataset, {}))

    def left_out(self, dataset: str) -> LeftOut:
        """Whose records are not read for studies."""
        decisions = self._ledger._now().decisions
        return LeftOut.known(dataset, decisions.digests(dataset), decisions.key_check)

    def is_known(self, dataset: str) -> bool:
        """Whether the ledger has a budget or a word of its holder's about such a data set."""
        state = self._ledger._now()
        named = {name for name, _ in state.accounts} | set(state.decisions.persons)
        return dataset in named

    @property
    def left_out_counts(self) -> dict[str, int]:
        people = self._ledger._now().decisions.left_out
        return {name: len(found) for name, found in sorted(people.items()) if found}
