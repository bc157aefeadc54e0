"""A pact: what all peers of a network agree on. Its digest is the network's name.

Whoever joins gets it from the first peer that it meets, reads it, and takes part under these terms
or not at all: nobody can be talked into less noise, since everyone computes it from the pact.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import Any, Literal

import msgspec

from tacit.channels.peers.view import LARGEST_VIEW
from tacit.channels.studies.asked import column_names, whose
from tacit.channels.studies.checks import name_problems
from tacit.channels.studies.chosen import chosen_learner
from tacit.channels.studies.tables import Chosen, Terms
from tacit.crypto.signing import digest, is_public_key
from tacit.data.schema import Schema
from tacit.data.toml import exact, fields, schema_form, tagged
from tacit.errors import InputError, TacitError
from tacit.privacy.policy import Asked
from tacit.privacy.promise import Promise, Unit
from tacit.programs.averaging import Averaged

__all__ = ["Pact", "pact_from_bytes"]

FORMAT = "tacit peers 1"
LARGEST_GROUP = 255

Publish = Literal["participants", "all", "tags"]


class Pact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """The terms of a network.

    chosen      what each peer trains alone, and groups average
    terms       what *one* aggregation costs each of its members
    group_size  how many average together; 1: each publishes its own noisy model
    colluding   so many members of a group may work together, the curator, who is one, among them
    smallest    every member has at least so many records: the noise rests on it
    records     the most that one may bring
    publish     to those who took part, to all, or to peers that share a tag with all of them
    view        how many others a peer knows at a time
    cycle       seconds between two exchanges of views
    patience    seconds that a group waits for a member
    members     public keys of those who may take part; none are listed where anyone may
    """

    name: str
    question: str
    chosen: Chosen
    terms: Terms
    group_size: int
    colluding: int = 1
    smallest: int
    records: int = 10_000_000
    publish: Publish = "all"
    protocol: Literal["joint", "as-published"] = "joint"
    view: int = 20
    cycle: float = 10.0
    patience: float = 60.0
    members: tuple[str, ...] = ()
    schema: Schema

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise InputError(f"pact: {problem}")

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical form: what people compare, and what letters are signed for."""
        values = {f: getattr(self, f) for f in self.__struct_fields__}
        chosen = {**fields(self.chosen), "settings": tagged(self.chosen.settings)}
        promise = self.promise
        form = {
            **values,
            "format": FORMAT,
            "chosen": chosen,
            # 10 and 10.0 are the same seconds: whoever reads the bytes has the second.
            "cycle": float(self.cycle),
            "patience": float(self.patience),
            "terms": [promise.epsilon, promise.delta, str(promise.unit), str(promise.adjacency)],
            "schema": schema_form(self.schema),
        }
        plain: dict[str, Any] = exact(form)
        return digest(plain)

    @cached_property
    def promise(self) -> Promise:
        """Of one aggregation."""
        terms = self.terms
        return Promise(terms.epsilon, terms.delta, terms.unit, terms.adjacency)

    @cached_property
    def averaged(self) -> Averaged:
        """What is trained, as installed here."""
        chosen = self.chosen
        found = chosen_learner(chosen, old=True)
        if not isinstance(found, Averaged):
            raise InputError(
                f"{chosen.name!r} is not trained by each alone: peers average what each has "
                "trained, such as averaged-logistic."
            )
        return found

    @property
    def asked(self) -> Asked:
        """What it asks of a holder's data, as a policy sees it. Nobody has signed it, and every
        member may come to be the curator of a group."""
        return Asked(
            program=self.chosen.name,
            columns=column_names(self.schema),
            author=None,
            servers=self.members or None,
            study=self.digest,
            **whose(self.schema),
        )

    def admits(self, key: str) -> bool:
        """Whether the owner of this key may take part."""
        return not self.members or key in self.members

    def to_bytes(self) -> bytes:
        """As it is sent."""
        plain = {f: getattr(self, f) for f in self.__struct_fields__ if f != "schema"}
        return msgspec.json.encode({**plain, "format": FORMAT, "schema": self.schema.to_dict()})


def pact_from_bytes(data: bytes) -> Pact:
    """The pact that a peer has sent; InputError for anything else."""
    try:
        document = msgspec.json.decode(data)
        if document.pop("format", None) != FORMAT:
            raise InputError("this is not a pact, or one of another version of tacit.")
        schema = Schema.from_dict(document.pop("schema"), "pact, schema")
        schema.require_complete()
        kinds = {f.name: f.type for f in msgspec.structs.fields(Pact) if f.name != "schema"}
        unknown = [key for key in document if key not in kinds]
        if unknown:
            raise InputError(f"pact: unknown {unknown[0][:60]!r}. A pact has: {', '.join(kinds)}.")
        values = {k: msgspec.convert(document[k], kinds[k]) for k in document}
        return Pact(**values, schema=schema)
    except msgspec.MsgspecError as error:
        raise InputError(f"this is not a pact: {error}.") from None
    except (KeyError, TypeError, AttributeError):
        raise InputError("this is not a pact.") from None


def _problems(pact: Pact) -> Iterable[str]:
    yield from name_problems(pact.name, pact.question)
    if pact.group_size != 1 and not pact.colluding + 2 <= pact.group_size <= LARGEST_GROUP:
        yield (
            f"group_size = {pact.group_size}: take 1, or {pact.colluding + 2} to {LARGEST_GROUP}: "
            "besides those who may work together, two at least must be honest."
        )
    if pact.group_size - 1 > pact.view:
        yield f"group_size = {pact.group_size}: members are drawn from a view of {pact.view}."
    if pact.colluding < 1 and pact.group_size > 1:
        yield "colluding = 0: the curator is one of the group, so it is 1 at least."
    if not 1 <= pact.smallest <= pact.records:
        yield f"smallest = {pact.smallest}: give 1 to records = {pact.records}."
    for name in ("cycle", "patience"):
        if not (math.isfinite(getattr(pact, name)) and getattr(pact, name) > 0):
            yield f"{name}: give seconds above 0."
    if not 2 <= pact.view <= LARGEST_VIEW:
        yield f"view = {pact.view}: give 2 to {LARGEST_VIEW}."
    yield from _unit_problems(pact)
    if not all(is_public_key(key) for key in pact.members):
        yield "members are public keys, 64 hexadecimal digits in small letters each."
    try:
        length = pact.averaged.length(pact.schema)
        promise = pact.promise
    except TacitError as error:
        yield str(error)
        return
    if length < 1 or not promise.is_private:
        yield "epsilon must be finite: peers publish what they release."


def _unit_problems(pact: Pact) -> Iterable[str]:
    if pact.terms.unit is Unit.PERSON:
        yield (
            'unit = "person": a person may be with several peers; take "record", or "holder", '
            "which covers everyone who is with one."
        )
    if pact.protocol == "as-published" and pact.terms.unit is not Unit.RECORD:
        yield (
            'protocol = "as-published" speaks of records alone: take unit = "record", or protocol '
            '= "joint".'
        )
