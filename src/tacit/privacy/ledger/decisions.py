"""What the holder has decided beside budgets: a policy, approvals, revocations, people left out.

Pure: folded from the entries of the chain, as state.py is. A policy stands in the chain as its
whole text with its signatures, which are checked again whenever the ledger is opened.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tacit.errors import Refused, TacitError, UsageError
from tacit.privacy.policy.policy import Approval, Policy, distinct_digest
from tacit.privacy.policy.rules import Asked, Totals, says_whose, shown_person
from tacit.privacy.promise import Promise, Unit

if TYPE_CHECKING:
    from tacit.privacy.ledger.chain import Entry

__all__ = ["KINDS", "Decisions"]

_UNSAID = Asked(program="", columns=None, author=None)

KINDS = frozenset({"policy", "approve", "revoke", "permit", "leave out", "person"})


@dataclass(frozen=True, slots=True)
class Decisions:
    """Never changed, only replaced.

    policy_at  number of the entry that put the policy in force
    approvals  (digest of a study, data set) → approvers who have signed it
    revoked    data set → number of the entry that revoked its use
    persons    data set → the column that says whose a record is, by the holder's word
    left_out   data set → digest of an identifier as text → all digests of that identifier
    key_check  of the secret that those digests were made with
    """

    policy: Policy | None = None
    policy_at: int = 0
    approvals: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    revoked: Mapping[str, int] = field(default_factory=dict)
    persons: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    key_check: str | None = None

    # ── reading entries ──

    def after(self, entry: Entry) -> Decisions:
        """With the next entry; ValueError if it cannot follow what was decided before."""
        body = entry.body
        try:
            match entry.kind:
                case "policy":
                    policy = Policy.from_toml(body["text"])
                    policy.check_signatures(self.policy)
                    return replace(self, policy=policy, policy_at=entry.seq)
                case "approve":
                    return self._approved(Approval(**body))
                case "revoke":
                    return replace(self, revoked={**self.revoked, body["dataset"]: entry.seq})
                case "permit":
                    self.check_permit(body["dataset"])
                    kept = {k: v for k, v in self.revoked.items() if k != body["dataset"]}
                    return replace(self, revoked=kept)
                case "person":
                    known = {**self.persons, str(body["dataset"]): str(body["column"])}
                    return replace(self, persons=known)
                case _:
                    return self._left_out(body)
        except TacitError as error:
            raise ValueError(str(error)) from error

    def recovered(self, text: str | None, number: int) -> Decisions:
        """An older copy is in use, or a new ledger: what was decided since is not in it, but for
        the policy, which entry `number` keeps in force. A copy's own is never lost."""
        if text is None:
            return self
        policy = Policy.from_toml(text)
        try:
            policy.check_signatures()
        except TacitError as error:
            raise ValueError(str(error)) from error
        if self.policy is not None and policy.number < self.policy.number:
            raise ValueError("an older policy does not come back")
        if policy.digest == self.policy_digest:
            return self
        return replace(self, policy=policy, policy_at=number)

    def _approved(self, approval: Approval) -> Decisions:
        if not approval.holds:
            raise ValueError("an approval is not signed by its approver")
        place = approval.study, approval.dataset
        signers = self.approvals.get(place, frozenset()) | {approval.approver}
        return replace(self, approvals={**self.approvals, place: signers})

    def _left_out(self, body: dict[str, Any]) -> Decisions:
        if self.key_check not in (None, body["key"]):
            raise ValueError("its digests were made with another secret")
        people = dict(self.left_out.get(body["dataset"], {}))
        for digests in body["people"]:
            if body["back"]:
                people.pop(digests[0], None)
            else:
                people[digests[0]] = tuple(digests)
        known = {**self.left_out, body["dataset"]: people}
        return replace(self, left_out=known, key_check=body["key"])

    # ── deciding ──

    def check(
        self,
        dataset: str,
        promise: Promise,
        asked: Asked | None,
        totals: Totals,
        person: str | None,
    ) -> None:
        """Refused, unless the holder permits this spend, whatever is left of the budget. `person`
        is the column by which earlier spends told persons apart."""
        self.refuse_revoked(dataset)
        self.check_person(dataset, promise, asked, person)
        if self.policy is None:
            return
        if asked is None:
            raise Refused(
                f"data set {dataset!r} is under policy {self.policy.name!r}, and this spend does "
                "not say what it is for. In Python: ledger.reserve(…, asked=Asked(program=…, "
                "columns=…, author=…)), from tacit.privacy.policy."
            )
        signed = self.approvals.get((asked.study or "", dataset), frozenset())
        self.policy.check(dataset, promise, asked, totals, signed)

    def check_distinct(self, dataset: str, other: str, reason: str) -> None:
        """A second budget for records that look the same is up to a policy's approvers."""
        if self.policy is None:
            return
        place = distinct_digest(dataset, other, reason), min(dataset, other)
        signed = self.approvals.get(place, frozenset()) & set(self.policy.approvers)
        if len(signed) < self.policy.needed:
            raise Refused(
                f"that data sets {dataset!r} and {other!r} have no records in common gives the "
                f"same records a second budget, if it is wrong: under policy {self.policy.name!r} "
                f"{self.policy.needed} of its approvers must sign it, with this reason; "
                f"{len(signed)} have. An approver writes it: tacit budget distinct … --out FILE; "
                "then: tacit budget distinct … --from FILE"
            )

    def check_person(
        self, dataset: str, promise: Promise, asked: Asked | None, used: str | None
    ) -> None:
        """Refused unless persons are told apart by the one column that the holder says: its author
        could otherwise call every visit a person, or read those who are left out."""
        rules = None if self.policy is None else self.policy.rules(dataset)
        by_rule = None if rules is None else rules.person
        stated = self.persons.get(dataset) or by_rule
        for column, why in (
            (self.persons.get(dataset), "by its holder's word"),
            (used, "as in what was spent before"),
        ):
            if column is not None and not says_whose(asked or _UNSAID, promise, column):
                raise Refused(
                    f"data set {dataset!r}: persons are told apart by "
                    f"{shown_person((asked or _UNSAID).person)} here, and by "
                    f"{shown_person(column)} {why}. Ask the "
                    f'study\'s author for a schema with role = "person" on that column.'
                )
        if asked is None:
            return
        must_count = rules is not None and rules.unit is Unit.PERSON and asked.person is not None
        must_find = bool(self.left_out.get(dataset))
        if must_find and asked.person is None:
            raise Refused(
                f"people of data set {dataset!r} asked to be left out, and these records do not "
                'say whose they are. Give a schema with a column of role = "person".'
            )
        if stated is None and (must_count or (must_find and used is None)):
            raise Refused(
                f"data set {dataset!r}: the study's author tells persons apart by "
                f"{shown_person(asked.person)}, and "
                f"{'the policy is about persons' if must_count else 'people are left out'}. Its "
                "holder says which column it is: tacit budget allow "
                f"{shlex.quote(dataset)} --person COLUMN"
            )

    def check_state_person(self, dataset: str, column: str, used: str | None) -> None:
        """What was spent per person was spent on persons as they were told apart then."""
        if used not in (None, column):
            raise Refused(
                f"spends on data set {dataset!r} told persons apart by {shown_person(used)}; what "
                f"they cost one person of {shown_person(column)} is not known. "
                "Keep that column; or use the records under another name from now on (tacit "
                "budget distinct says that this is meant)."
            )

    def refuse_revoked(self, dataset: str) -> None:
        if dataset in self.revoked:
            raise Refused(
                f"the holder has revoked the use of data set {dataset!r}: nothing more is answered "
                "with it. What was released stays released, and is charged. To permit its use "
                f"again: tacit policy revoke {dataset} --undo"
            )

    def check_permit(self, dataset: str) -> None:
        """A policy's approvers decide whether a revoked data set is used again."""
        if dataset not in self.revoked:
            raise UsageError(f"the use of data set {dataset!r} is not revoked.")
        if self.policy is not None and self.policy_at < self.revoked[dataset]:
            raise Refused(
                f"the use of data set {dataset!r} was revoked under policy {self.policy.name!r}: "
                "its approvers permit it again, by a policy with a higher number. Put that in "
                "force first: tacit policy use FILE"
            )

    @property
    def policy_digest(self) -> str | None:
        return None if self.policy is None else self.policy.digest

    @property
    def policy_text(self) -> str | None:
        return None if self.policy is None else self.policy.to_toml()

    def digests(self, dataset: str) -> frozenset[str]:
        people = self.left_out.get(dataset, {})
        return frozenset(digest for digests in people.values() for digest in digests)
