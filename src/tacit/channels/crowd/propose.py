"""Writing a proposal: fresh keys for the collector, the plan's questions, the signature."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass

from tacit.channels.crowd.plan import Plan, PlanTerms
from tacit.channels.crowd.proposal import Proposal
from tacit.channels.crowd.secrets import Secrets
from tacit.channels.crowd.terms import Collector, CrowdTerms, Group, RelayCard, Route, Windows
from tacit.channels.studies.tables import Chosen
from tacit.crypto.lots import commitment
from tacit.crypto.signing import SigningKey
from tacit.data.schema import Schema

__all__ = ["LEARNER", "Draft"]

LEARNER = Chosen(name="tabulated-bayes", version=1)


@dataclass(frozen=True, slots=True)
class Draft:
    """What its author decides."""

    name: str
    question: str
    schema: Schema
    promise: CrowdTerms
    group: Group
    windows: Windows
    relays: tuple[RelayCard, ...]
    address: str
    route: Route
    plan: PlanTerms
    learner: Chosen = LEARNER
    bundle: str = ""

    def proposed(self, key: SigningKey) -> tuple[Proposal, Secrets]:
        """The proposal, signed with the collector's key, and what only the collector may know."""
        secrets = Secrets.fresh(self.route.kem)
        if self.group.proof == "tokens":
            secrets = secrets.with_tokens(self.asked(commitment(secrets.seed)))
        return self.with_secrets(key, secrets), secrets

    def asked(self, lot: str) -> tuple[str, ...]:
        """The names of the questions. AnonML's subsets follow from the commitment."""
        plan = Plan.drawn_up(
            self.schema, self.plan, self.promise.epsilon, self.group.minimum, bytes.fromhex(lot)
        )
        return plan.names

    def with_secrets(self, key: SigningKey, secrets: Secrets) -> Proposal:
        """The signed proposal of a collector that has these secrets already."""
        collector = Collector(
            name="collector",
            address=self.address,
            key=key.public_key,
            onion=secrets.onion.public,
            lot=commitment(secrets.seed),
            tokens={name: token.public.to_hex() for name, token in secrets.tokens.items()},
        )
        proposal = Proposal(
            name=self.name,
            question=self.question,
            promise=self.promise,
            group=self.group,
            windows=self.windows,
            route=self.route,
            plan=self.plan,
            learner=self.learner,
            relays=self.relays,
            collector=collector,
            schema=self.schema,
            bundle=self.bundle,
        )
        # As whoever reads the file will read it: 1 and 1.0 are not the same text.
        return Proposal.from_dict(tomllib.loads(proposal.to_toml())).signed(key)
