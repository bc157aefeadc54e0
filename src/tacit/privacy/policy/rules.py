"""The rules for one data set, what a spend says of itself, and what breaks which rule. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from tacit.privacy.policy.trust import Trust, most_parts, noise_choice, trusted
from tacit.privacy.promise import Promise, Unit
from tacit.program_names import current_name

__all__ = ["Asked", "Broken", "Rules", "Totals", "exact", "says_whose", "shown_person"]

Number = Fraction | float  # a float is only ever infinity
ApprovalMode = Literal["policy", "each study"]
RANK = {Unit.RECORD: 0, Unit.PERSON: 1, Unit.HOLDER: 2}
SEVERAL = 5  # names in one message


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a spend is for. How much it costs is said by its promise.

    columns   that are used; None: they have no names
    author    public key of who wrote the study; for a holder's own run, the holder's; None: nobody
              has signed it
    servers   public keys of those who are sent something; None: whoever comes
    parts     into which the servers divide the noise; None: they add none
    study     digest of the study's file; None: there is none
    person    the column that says whose a record is; None: none does
    by_position  the study's author names columns by their places in a file without a header
    """

    program: str
    columns: tuple[str, ...] | None
    author: str | None
    servers: tuple[str, ...] | None = ()
    parts: int | None = None
    study: str | None = None
    person: str | None = None
    by_position: bool = False


@dataclass(frozen=True, slots=True)
class Totals:
    """(ε, δ) of one study, and of the last 365 days, each with what is asked now."""

    study: tuple[Number, Number]
    year: tuple[Number, Number]

    @classmethod
    def first(cls, promise: Promise) -> Totals:
        """As if nothing had been spent."""
        amount = exact(promise.epsilon), exact(promise.delta)
        return cls(amount, amount)


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule, what was asked, what it allows, and what can be done."""

    rule: str
    asked: str
    allowed: str
    remedy: str

    def __str__(self) -> str:
        return f"policy rule {self.rule}: asked {self.asked}; allowed {self.allowed}. {self.remedy}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """For one data set. None: the policy does not care.

    headerless  whether columns may be named by their places in files without a header: then
                `columns` is a rule about the author's words for them
    person      the column that says whose a record is
    unit        the smallest that a promise may be about: record < person < holder
    trust       in the study's servers (trust.md)
    approval    "each study": approvers sign each one's digest
    """

    programs: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    headerless: bool | None = None
    person: str | None = None
    unit: Unit | None = None
    epsilon_per_study: float | None = None
    delta_per_study: float | None = None
    epsilon_per_year: float | None = None
    delta_per_year: float | None = None
    authors: tuple[str, ...] | None = None
    servers: tuple[str, ...] | None = None
    trust: Trust | None = None
    approval: ApprovalMode = "policy"

    def broken(
        self, asked: Asked, promise: Promise, totals: Totals, approved: int, needed: int
    ) -> Iterator[Broken]:
        """Every rule that is broken; the names are those of the fields."""
        yield from self._what(asked, promise)
        yield from self._whose(asked, promise)
        yield from self._how_much(promise, totals)
        yield from self._who(asked)
        yield from self._trusted(asked)
        if self.approval == "each study" and approved < needed:
            yield Broken(
                "approval",
                f"a study with {approved} approvals",
                f"one with {needed}",
                "An approver signs it: tacit policy approve STUDY --dataset NAME"
                if asked.study is not None
                else "What has no study file cannot be approved: have one written.",
            )

    def _what(self, asked: Asked, promise: Promise) -> Iterator[Broken]:
        program = current_name(asked.program)
        if self.programs is not None and program not in map(current_name, self.programs):
            yield Broken("programs", _some([program]), _some(self.programs), _CHANGE)
        if self.columns is not None:
            names = ("columns without names",) if asked.columns is None else asked.columns
            extra = [name for name in names if name not in self.columns]
            if extra or asked.columns is None:
                remedy = "Give them names, with a schema." if asked.columns is None else _CHANGE
                yield Broken("columns", _some(extra), _some(self.columns), remedy)
            if asked.by_position and not self.headerless:
                yield Broken(
                    "headerless",
                    "columns by their places in a file without a header",
                    "columns by the names in the file itself",
                    "Give the file a header, and ask the study's author for header = true; or ask "
                    "the approvers for headerless = true.",
                )
        if self.unit is not None and RANK[promise.unit] < RANK[self.unit]:
            coarser = [str(unit) for unit in Unit if RANK[unit] >= RANK[self.unit]]
            yield Broken("unit", str(promise.unit), _some(coarser), _CHANGE)

    def _whose(self, asked: Asked, promise: Promise) -> Iterator[Broken]:
        if self.person is not None and not says_whose(asked, promise, self.person):
            yield Broken("person", shown_person(asked.person), shown_person(self.person), _CHANGE)

    def _how_much(self, promise: Promise, totals: Totals) -> Iterator[Broken]:
        for span, total in (("study", totals.study), ("year", totals.year)):
            for name, letter, used in zip(("epsilon", "delta"), "εδ", total, strict=True):
                most = getattr(self, f"{name}_per_{span}")
                if most is None or used <= exact(most):
                    continue
                now = exact(getattr(promise, name))
                before = used - now if used != math.inf else 0
                said, remedy = f"{letter} = {_shown(now)}", _LESS
                if before > 0:
                    remedy = _LATER if span == "year" else _LESS
                    of = "of the last 365 days" if span == "year" else "of the same study"
                    said += f" beside {_shown(before)} {of}"
                yield Broken(f"{name}_per_{span}", said, f"{letter} = {most:g}", remedy)

    def _who(self, asked: Asked) -> Iterator[Broken]:
        if self.authors is not None and asked.author not in self.authors:
            said = "nobody's signature" if asked.author is None else f"author {asked.author}"
            yield Broken("authors", said, _keys(self.authors), _CHANGE)
        if self.servers is None:
            return
        if asked.servers is None:
            yield Broken("servers", "a network that anybody may join", _keys(self.servers), _CHANGE)
            return
        strange = [key for key in asked.servers if key not in self.servers]
        if strange:
            yield Broken("servers", f"server {_some(strange)}", _keys(self.servers), _CHANGE)

    def _trusted(self, asked: Asked) -> Iterator[Broken]:
        if self.trust is None or asked.parts is None or asked.servers is None:
            return
        most = most_parts(self.trust, asked.servers)
        if asked.parts <= most:
            return
        count = trusted(self.trust, asked.servers)
        yield Broken(
            "trust",
            f"noise that suffices if {asked.parts + 1} of {len(asked.servers)} servers do not "
            "collude" if asked.parts > 1 else "noise that suffices if one server does not collude",
            f"what suffices with {count} of them trusted: "
            + (noise_choice(most) if most else "none"),
            'Ask its author for more noise ([noise] policy = "every-server", or a smaller honest).'
            if most
            else "State anew how many of these servers you trust, or which.",
        )  # fmt: skip


_CHANGE = "Ask its author for another study, or the approvers for another policy."
_LESS = "Ask its author for less, or the approvers for another policy."
_LATER = "Wait until older spends are a year old, or ask the approvers for another policy."


def says_whose(asked: Asked, promise: Promise, person: str) -> bool:
    """Whether persons are told apart by the column that the holder says, or not at all where that
    is not needed."""
    return asked.person == person or (asked.person is None and promise.unit is not Unit.PERSON)


def shown_person(column: str | None) -> str:
    return "no column" if column is None else f"column {_printable(column)}"


def exact(value: float) -> Number:
    """The decimal that Python prints for it, as the ledger takes it."""
    return math.inf if value == math.inf else Fraction(repr(float(value)))


def _shown(value: Number) -> str:
    return f"{float(value):.6g}"


def _some(names: tuple[str, ...] | list[str]) -> str:
    more = f" and {len(names) - SEVERAL} more" if len(names) > SEVERAL else ""
    return (", ".join(map(_printable, names[:SEVERAL])) + more) or "none"


def _printable(name: str) -> str:
    """Names come from others' files: nothing in them may act on a terminal."""
    short = name[:64]
    return short if short.isprintable() else ascii(short)


def _keys(names: tuple[str, ...]) -> str:
    return f"key {_some(names)}" if names else "none"
