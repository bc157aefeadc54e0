"""A study: what several holders agree to learn together, in one signed file.

Everyone who takes part (holder, server, aggregator) reads the same file and computes from it alone
what is asked, how much noise is due and who may speak. Nobody is told these things by another
party, so nobody can be talked into less noise or more rounds. The digest says that two people
have read the same study; the signature says who wrote it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from tacit.channels.studies.capacity import (
    LIMIT,
    coarsened,
    largest_contribution,
    largest_noise,
)
from tacit.channels.studies.checks import problems
from tacit.channels.studies.chosen import chosen_learner
from tacit.channels.studies.file import (
    FIRST_FORMAT,
    FORMAT,
    FORMATS,
    canonical_form,
    write_toml,
)
from tacit.channels.studies.tables import (
    Chosen,
    Consortium,
    Deadlines,
    Head,
    Noise,
    Online,
    Party,
    PromiseTable,
    Sampling,
    Selection,
    Service,
    Signature,
    TakePart,
)
from tacit.crypto.signing import SigningKey, canonical, digest, signed_by
from tacit.data.schema import Schema
from tacit.data.toml import read_toml, table_of
from tacit.errors import CheckFailed, InputError, Refused, UsageError
from tacit.privacy.promise import Promise, Unit
from tacit.programs.averaging import Averaged
from tacit.programs.levels import Levels
from tacit.programs.program import Block, Plan, Program, Query
from tacit.programs.ranged import ranged
from tacit.programs.reckoned import reckoned
from tacit.programs.registry import summing
from tacit.programs.sampled import noise_of_samples

__all__ = [
    "Chosen",
    "Consortium",
    "Deadlines",
    "Noise",
    "Online",
    "Party",
    "Sampling",
    "Selection",
    "Service",
    "Signature",
    "Study",
    "TakePart",
    "planned_rounds",
]


class Study(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True, eq=True
):
    """An agreed computation. `chosen` is the file's [program]; the other names are the file's.

    rounds    that the program's plan allows, of all windows together: a run has at most so many.
              In the first format: the releases of the plan without windows
    holders_per_person   of the file's [promise]: with so many holders one person may be, at most
    """

    name: str
    question: str
    rounds: int
    chosen: Chosen
    promise: Promise
    take_part: TakePart
    deadlines: Deadlines
    servers: tuple[Service, ...] = ()
    aggregator: Service
    holders: tuple[Party, ...]
    schema: Schema
    noise: Noise = Noise()
    online: Online | None = None
    consortium: Consortium | None = None
    sampling: Sampling | None = None
    selection: Selection | None = None
    holders_per_person: int | None = None
    signature: Signature | None = None
    format: str = FORMAT

    def __post_init__(self) -> None:
        for problem in problems(self):
            raise InputError(f"study: {problem}")

    # ── the file ──

    @classmethod
    def load(cls, path: str | Path) -> Study:
        """Read a study from a TOML file. Whether its signature holds: `check_signature`."""
        return cls.from_dict(read_toml(Path(path), _WRITE.format(path)), where=str(path))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], where: str = "study") -> Study:
        """A study from plain data, as `tomllib` reads it."""
        return _from_dict(document, where)

    def to_toml(self) -> str:
        """The file: the same bytes for the same study."""
        return write_toml(self)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical form, without the signature: what people compare."""
        return digest(canonical_form(self))

    def signed(self, key: SigningKey) -> Study:
        """The same study, signed by its author."""
        signature = key.sign(canonical(canonical_form(self)))
        return msgspec.structs.replace(
            self, signature=Signature(author=key.public_key, signature=signature)
        )

    def check_signature(self) -> None:
        """Raise unless the author's signature covers everything that stands in the study."""
        if self.signature is None:
            raise CheckFailed(f"study {self.name}: is not signed. Its author runs: {_SIGN}")
        message = canonical(canonical_form(self))
        if not signed_by(self.signature.author, self.signature.signature, message):
            raise CheckFailed(
                f"study {self.name}: the signature does not fit: something was changed after "
                f"signing. Ask the author for the file, or if you are the author, run: {_SIGN}"
            )

    # ── who ──

    def holder_named(self, key: str) -> str | None:
        """The name of the holder with this public key, or None."""
        return next((h.name for h in self.holders if h.key == key), None)

    def server_place(self, key: str) -> int:
        """The place among the servers, from 0, of the one with this public key."""
        for place, server in enumerate(self.servers):
            if server.key == key:
                return place
        names = ", ".join(server.name for server in self.servers)
        raise UsageError(
            f"study {self.name}: this key is none of its servers' ({names}). See which key you "
            "have with: tacit keys show"
        )

    # ── what ──

    def program(self) -> Program[Any, Any]:
        """The program, as installed here; its plan must have the study's rounds. In a study in
        windows, as it learns from these."""
        return self._program

    def program_at_once(self) -> Program[Any, Any]:
        """The same, for all records at once, whether or not the study has windows."""
        self.program()
        found: Program[Any, Any] = self.__dict__["_at_once"]
        return found

    def averaged(self) -> Averaged:
        """What each party of a consortium trains alone, as installed here."""
        return self._averaged

    @property
    def agreed_consortium(self) -> Consortium:
        """The file's [consortium]; a UsageError where there is none."""
        if self.consortium is None:
            raise UsageError(f"study {self.name}: is not a consortium's.")
        return self.consortium

    def running(self, program: Program[Any, Any]) -> Study:
        """The same study, run with this very program: one that is not installed, in one process."""
        study = msgspec.structs.replace(self)
        study.__dict__["_program"] = study._fitting(program)  # where cached_property looks
        return study

    def first_state(self) -> Any:
        """The program's state before any data, told how much noise all servers add together."""
        return self._first

    def plan(self) -> Plan:
        """What every round asks, with bounds and steps: from the study alone, before any data."""
        return self._plan

    def levels(self, window: int = 0) -> Levels:
        """The noise each server adds, computed from the study alone; a fresh record of releases.

        In an online study that of one window, which keeps the whole promise by itself: windows
        hold different records, so they compose in parallel, and the worst counts, not the sum.
        """
        windows = self._plan.windows
        if not min(1, windows) <= window <= windows:
            has = f"windows 1 to {windows}" if windows else "no windows"
            raise UsageError(f"study {self.name}: has {has}, and no window {window}.")
        return self._levels(window).afresh()

    def window_of(self, number: int) -> int:
        """The window of round `number`, from 1; 0 if there are none."""
        return self._plan.place(number)[0]

    @property
    def last_round(self) -> int:
        """No round has a higher number: as the plan allows, of all windows together."""
        return self._plan.rounds

    @property
    def parts(self) -> int:
        """Into how many parts the noise of the promise is divided; each server adds one."""
        return 1 if self.noise.honest is None else self.noise.honest - 1

    @property
    def spread(self) -> float:
        """√(m / parts): how much larger the noise is than in one trusted place. Variances add up
        over m servers, each with one of `parts` parts."""
        return math.sqrt(len(self.servers) / self.parts)

    @property
    def contributions(self) -> int:
        """How many holders' contributions one unit may have in a sum: every bound is so many times
        that of one. A record is with one holder; a person with as many as the study states."""
        return self.holders_per_person or 1

    @property
    def noise_factor(self) -> float:
        """How much larger the noise of the result is than a trusted place's, which would see that
        a person's contributions are hers, and clip them together."""
        return self.spread * self.contributions * self.sampling_factor

    @property
    def rate(self) -> Fraction:
        """The probability with which a unit takes part in a round."""
        return Fraction(1) if self.sampling is None else self.sampling.exact

    @cached_property
    def sampling_factor(self) -> float:
        """How much larger the noise is than without samples, at the same promise."""
        program = self.program()
        plan = Plan(tuple(program.plan(program.init(self.schema, self.promise))))
        return noise_of_samples(self.promise, plan.part(min(1, plan.windows)), self.rate)

    # ── how large ──

    def largest_sum(self, block: Block, holders: int) -> int:
        """The largest |integer| that a coordinate of the block can honestly have.

        Beyond it, except with probability 2^−64, somebody sent garbage. Without privacy nothing
        is clipped, and only the width of the integers bounds a sum.
        """
        if not self.promise.is_private:
            return LIMIT - 1
        return self._units(holders) * largest_contribution(block) + self._largest_noise(block)

    def _units(self, holders: int) -> int:
        """The most units that so many holders may bring."""
        whole = self.promise.is_private and self.promise.unit is Unit.HOLDER
        return holders if whole else holders * self.take_part.records

    def _largest_noise(self, block: Block) -> int:
        """In whichever window there is the most."""
        if not self.promise.is_private:
            return 0
        found = {id(c): c for c in map(self._calibrated, self._windows)}.values()
        return max(
            largest_noise(levels.mechanism(block), len(self.servers))
            for levels in found
            if block.name in levels.multipliers
        )

    def check_capacity(self) -> None:
        """Refuse a plan of which any sum, in any round or window, could leave 62 bits."""
        for stage in self._plan.stages:
            self.capacity_check(stage.query)

    def capacity_check(self, query: Query) -> None:
        """Refuse a query whose sum could leave 62 bits: residues would wrap round unnoticed."""
        if query == self.__dict__.get("_fitting_query"):  # found before: rounds ask alike
            return
        for block in query.blocks if self.promise.is_private else ():
            largest = self.largest_sum(block, self.take_part.maximum)
            if largest >= LIMIT:
                raise UsageError(
                    f"study {self.name}: a sum of block {block.name!r} could reach "
                    f"2^{largest.bit_length()}, and 2^62 is the most that the servers can add, "
                    "however it is rounded. In [take_part], lower records or maximum."
                )
        self.__dict__["_fitting_query"] = query

    # ── computed once ──

    @cached_property
    def _program(self) -> Program[Any, Any]:
        chosen = self.chosen
        try:
            program = summing(chosen_learner(chosen, self.format == FIRST_FORMAT))
        except (Refused, UsageError) as error:
            raise InputError(f"study {self.name}, [program]: {error}") from None
        return self._fitting(program)

    def _fitting(self, program: Program[Any, Any]) -> Program[Any, Any]:
        old = self.format == FIRST_FORMAT
        if self.selection is not None and not program.selects:
            raise InputError(
                f"study {self.name}, [selection]: {program.name} does not select by its sums, as "
                "itemsets does: take [selection] out."
            )
        program = ranged(program, self.schema)
        self.__dict__["_at_once"] = program
        try:
            if self.online is not None and not old:
                program = program.windowed(self.online.windows)
            plan = Plan(tuple(program.plan(program.init(self.schema, self.promise))))
        except UsageError as error:
            raise InputError(f"study {self.name}, [program]: {error}") from None
        rounds = plan.releases if old else plan.rounds
        if rounds != self.rounds:
            raise InputError(
                f"study {self.name}: rounds = {self.rounds}, but the plan of {program.name} "
                f"{program.version} has {rounds}: write rounds = {rounds}, and sign again."
            )
        if old and self.online is not None and self.online.windows > plan.rounds:
            raise InputError(
                f"study {self.name}, [online]: windows = {self.online.windows}, but {program.name} "
                f"is done after {plan.rounds}: take at most {plan.rounds}."
            )
        return program

    @cached_property
    def _averaged(self) -> Averaged:
        chosen = self.chosen
        try:
            found = chosen_learner(chosen, self.format == FIRST_FORMAT)
        except (Refused, UsageError) as error:
            raise InputError(f"study {self.name}, [program]: {error}") from None
        if not isinstance(found, Averaged):
            raise InputError(
                f"study {self.name}, [program]: {chosen.name!r} sums over records; a consortium "
                "averages what parties train alone, such as averaged-logistic."
            )
        return found

    @cached_property
    def _first(self) -> Any:
        return self.program().init(self.schema, reckoned(self.promise, self.noise_factor))

    @cached_property
    def _fine_plan(self) -> Plan:
        """As the program gives it, for any number of units."""
        plan = Plan(tuple(self.program().plan(self.first_state()))).sampled(self.rate)
        if self.online is not None and self.format == FIRST_FORMAT:
            return _one_round_each(plan, self.online.windows)
        return plan

    @cached_property
    def _plan(self) -> Plan:
        if self.consortium is not None:
            return self._fine_plan
        units = self._units(self.take_part.maximum)
        return coarsened(self._fine_plan, units, self._largest_noise)

    @property
    def _windows(self) -> range:
        """The numbers of the windows; 0 where there are none."""
        windows = self._fine_plan.windows
        return range(min(1, windows), windows + 1)

    def _calibrated(self, window: int) -> Levels:
        """Windows that ask alike have the same noise: it is reckoned once."""
        part = self._fine_plan.part(window)
        if part not in self._known_levels:
            self._known_levels[part] = Levels.planned(
                self.promise, part, parts=self.parts, holders=self.contributions
            )
        return self._known_levels[part]

    @cached_property
    def _known_levels(self) -> dict[Plan, Levels]:
        return {}

    def _levels(self, window: int) -> Levels:
        # What rounding adds to a bound is added to the noise in proportion: multipliers stay.
        return replace(self._calibrated(window).afresh(), plan=self._plan.part(window))


def _one_round_each(plan: Plan, windows: int) -> Plan:
    """What windows were in the first format: the first rounds of a plan that knew of none."""
    numbers = range(1, windows + 1)
    return Plan(tuple(replace(plan.stage(n), count=1, window=n) for n in numbers))


def planned_rounds(
    program: Program[Any, Any], schema: Schema, promise: Promise, windows: int | None = None
) -> int:
    """How many rounds the program's plan has, of all windows together if there are any."""
    learned = ranged(program, schema)
    if windows is not None:
        learned = learned.windowed(windows)
    return Plan(tuple(learned.plan(learned.init(schema, promise)))).rounds


_SIGN = "tacit study sign FILE"
_WRITE = "Write one with: tacit study new {}"
_TABLES: dict[str, Any] = {
    "take_part": TakePart,
    "deadlines": Deadlines,
    "servers": tuple[Service, ...],
    "aggregator": Service,
    "holders": tuple[Party, ...],
    "noise": Noise,
    "online": Online,
    "consortium": Consortium,
    "sampling": Sampling,
    "selection": Selection,
    "signature": Signature,
}
_OPTIONAL = {"servers", "noise", "online", "consortium", "sampling", "selection", "signature"}


def _from_dict(document: Mapping[str, Any], where: str) -> Study:
    known = [*Head.__struct_fields__, "program", "promise", *_TABLES, "schema"]
    for key in document:
        if key not in known:
            raise InputError(f"{where}: unknown {key!r}. A study has: {', '.join(known)}.")
    for key in known:
        if key not in document and key not in _OPTIONAL:
            raise InputError(f"{where}: {key!r} is missing. `tacit study new` writes a whole file.")
    found = document.get("format")
    if found not in FORMATS:
        raise InputError(
            f"{where}: format is {found!r}; this version of tacit reads {FORMAT!r}. Update tacit, "
            "or ask the author for a file of that format."
        )
    head: Head = table_of({k: document[k] for k in Head.__struct_fields__}, Head, where)
    terms: PromiseTable = table_of(document["promise"], PromiseTable, f"{where}, [promise]")
    tables = {
        key: table_of(document[key], kind, f"{where}, [{key}]")
        for key, kind in _TABLES.items()
        if key in document
    }
    chosen = table_of(document["program"], Chosen, f"{where}, [program]")
    try:
        return Study(
            name=head.name,
            question=head.question,
            rounds=head.rounds,
            format=head.format,
            chosen=chosen,
            promise=Promise(terms.epsilon, terms.delta, terms.unit, terms.adjacency),
            schema=_schema(document["schema"], f"{where}, [schema]"),
            holders_per_person=terms.holders_per_person,
            **tables,
        )
    except UsageError as error:  # the promise's: in a file it is bad input
        raise InputError(f"{where}, [promise]: {error}") from None
    except InputError as error:
        raise type(error)(f"{where}: {str(error).removeprefix('study: ')}") from None


def _schema(document: Any, where: str) -> Schema:
    if not isinstance(document, dict):
        raise InputError(f"{where}: must be a table.")
    schema = Schema.from_dict(document, where)
    schema.require_complete()
    return schema
