"""A proposal: what a crowd is asked, what each person is promised, and who carries the answers.

Everyone computes from the signed file alone which questions there are, what an answer costs and how
long a packet is. The collector's keys and its commitment stand in it too, so that it cannot show
different ones to different people.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from tacit.channels.crowd.checks import problems
from tacit.channels.crowd.payload import payload_bytes
from tacit.channels.crowd.plan import Plan, PlanTerms
from tacit.channels.crowd.proposal_file import FORMAT, FORMAT_1, canonical_form, write_toml
from tacit.channels.crowd.questions import Question
from tacit.channels.crowd.terms import (
    Collector,
    CrowdTerms,
    Group,
    Head,
    RelayCard,
    Route,
    Windows,
)
from tacit.channels.studies.asked import column_names, whose
from tacit.channels.studies.chosen import chosen_learner
from tacit.channels.studies.tables import Chosen, Signature
from tacit.crypto.blind_signatures import TokenPublicKey
from tacit.crypto.onion import Hop, Shape
from tacit.crypto.ring_signatures import signature_bytes
from tacit.crypto.signing import SigningKey, canonical, digest, signed_by
from tacit.data.schema import Schema
from tacit.data.toml import read_toml, table_of
from tacit.errors import CheckFailed, InputError, Refused, UsageError
from tacit.privacy.policy import Asked
from tacit.privacy.promise import Adjacency, Promise, Unit
from tacit.programs.program import Learner

__all__ = ["Proposal"]


class Proposal(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True, eq=True
):
    """A crowd's study. `learner` is the file's [learner]; the other names are the file's.

    `bundle` is the digest of the definition by which people make their row from their own events,
    if there is one.
    """

    name: str
    question: str
    promise: CrowdTerms
    group: Group
    windows: Windows
    route: Route
    plan: PlanTerms
    learner: Chosen
    relays: tuple[RelayCard, ...]
    collector: Collector
    schema: Schema
    bundle: str = ""
    signature: Signature | None = None
    format: str = FORMAT

    def __post_init__(self) -> None:
        for problem in problems(self):
            raise InputError(f"proposal: {problem}")

    # ── the file ──

    @classmethod
    def load(cls, path: str | Path) -> Proposal:
        """Read a proposal from a TOML file. Whether its signature holds: `check_signature`."""
        return cls.from_dict(read_toml(Path(path), _WRITE), where=str(path))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], where: str = "proposal") -> Proposal:
        """A proposal from plain data, as `tomllib` reads it."""
        return _from_dict(document, where)

    def to_toml(self) -> str:
        """The file: the same bytes for the same proposal."""
        return write_toml(self)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical form, without the signature: what people compare."""
        return digest(canonical_form(self))

    def signed(self, key: SigningKey) -> Proposal:
        """The same proposal, signed by the collector."""
        if key.public_key != self.collector.key:
            raise UsageError(f"proposal {self.name}: is signed with its collector's key.")
        signature = key.sign(canonical(canonical_form(self)))
        return msgspec.structs.replace(
            self, signature=Signature(author=key.public_key, signature=signature)
        )

    def check_signature(self) -> None:
        """Raise unless the collector's signature covers everything that stands in the proposal."""
        message = canonical(canonical_form(self))
        if self.signature is None or self.signature.author != self.collector.key:
            raise CheckFailed(f"proposal {self.name}: is not signed by its collector.")
        if not signed_by(self.signature.author, self.signature.signature, message):
            raise CheckFailed(
                f"proposal {self.name}: the signature does not fit: something was changed after "
                "signing. Ask the collector for the file as it was."
            )

    def check_current(self) -> None:
        """Refused if nobody should take part in it any more."""
        if self.format != FORMAT:
            raise Refused(
                f"proposal {self.name} is of version 0.1, which let a collector ask a person for "
                "more than was promised, and tell her answers from others' (SECURITY.md). Ask the "
                "collector to propose it again. What it has collected can be learned from."
            )

    # ── what follows from it ──

    @property
    def local_promise(self) -> Promise:
        """What each person is promised, whoever sees her answers and whatever is known of others.

        Without the plan's rounding: what the ledger is charged.
        """
        return Promise(self.promise.epsilon, 0.0, Unit.PERSON, Adjacency.REPLACE)

    @property
    def asked(self) -> Asked:
        """What it asks of a person's row, as a policy sees it. Noise is her own."""
        return Asked(
            program=self.learner.name,
            columns=column_names(self.schema),
            author=None if self.signature is None else self.signature.author,
            servers=(self.collector.key,),
            study=self.digest,
            **whose(self.schema),
        )

    @cached_property
    def questions(self) -> dict[str, Question]:
        """By name, in the order of the plan."""
        return {question.name: question for question in self.drawn_up.questions}

    @cached_property
    def drawn_up(self) -> Plan:
        """The plan: which questions, of whom, at which cost."""
        # Subsets that are drawn at random follow from the collector's commitment, which is public.
        lot = bytes.fromhex(self.collector.lot)
        return Plan.drawn_up(self.schema, self.plan, self.promise.epsilon, self.group.minimum, lot)

    @cached_property
    def token_keys(self) -> dict[str, TokenPublicKey]:
        """Of the questions, by name; none where a ring proves membership."""
        return {name: TokenPublicKey.from_hex(text) for name, text in self.collector.tokens.items()}

    def proof_bytes(self, people: int) -> int:
        """Of an answer; a ring's proof grows with the group."""
        if self.group.proof == "ring":
            return signature_bytes(people)
        return max((key.token_bytes for key in self.token_keys.values()), default=0)

    def shape(self, people: int) -> Shape:
        """The one form of all packets."""
        size = payload_bytes(self.questions.values(), self.proof_bytes(people))
        return Shape(self.route.kem, self.route.hops, size)

    @cached_property
    def stops(self) -> tuple[Hop, ...]:
        """The relays as stops of a circuit."""
        return tuple(Hop(place, relay.onion) for place, relay in enumerate(self.relays))

    def relay_place(self, key: str) -> int:
        """The place among the relays, from 0, of the one with this public key."""
        for place, relay in enumerate(self.relays):
            if relay.key == key:
                return place
        names = ", ".join(relay.name for relay in self.relays)
        raise UsageError(
            f"proposal {self.name}: this key is none of its relays' ({names}). See which key you "
            "have with: tacit keys show"
        )

    def learned_by(self) -> Learner:
        """What makes a model of the tables, as installed here."""
        return chosen_learner(self.learner, old=True)

    @property
    def wave_seconds(self) -> float:
        """From the opening of a wave to the last relay's release."""
        return self.windows.send + self.route.hops * self.windows.release


_WRITE = "Write one with: tacit crowd propose"
_TABLES: dict[str, Any] = {
    "promise": CrowdTerms,
    "group": Group,
    "windows": Windows,
    "route": Route,
    "plan": PlanTerms,
    "learner": Chosen,
    "relays": tuple[RelayCard, ...],
    "collector": Collector,
    "signature": Signature,
}


def _from_dict(document: Mapping[str, Any], where: str) -> Proposal:
    known = [*Head.__struct_fields__, *_TABLES, "schema"]
    for key in document:
        if key not in known:
            raise InputError(f"{where}: unknown {key!r}. A proposal has: {', '.join(known)}.")
    for key in known:
        if key not in document and key not in ("signature", "bundle"):
            raise InputError(f"{where}: {key!r} is missing. {_WRITE}.")
    if document["format"] not in (FORMAT, FORMAT_1):
        raise InputError(
            f"{where}: format is {document['format']!r}; this version of tacit reads {FORMAT!r}. "
            "Update tacit, or ask the author for a file of that format."
        )
    words = {k: document[k] for k in Head.__struct_fields__ if k in document}
    head: Head = table_of(words, Head, where)
    tables = {
        key: table_of(document[key], kind, f"{where}, [{key}]")
        for key, kind in _TABLES.items()
        if key in document
    }
    if not isinstance(document["schema"], dict):
        raise InputError(f"{where}, [schema]: must be a table.")
    schema = Schema.from_dict(document["schema"], f"{where}, [schema]")
    schema.require_complete()
    try:
        return Proposal(
            name=head.name,
            question=head.question,
            bundle=head.bundle,
            format=head.format,
            schema=schema,
            **tables,
        )
    except InputError as error:
        raise type(error)(f"{where}: {str(error).removeprefix('proposal: ')}") from None
