"""A reading: one way to understand the question, complete enough to be a problem."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial, reduce
from typing import Literal

from tacit.personal.ask.expressions import Condition, aggregate, compared, condition_text
from tacit.personal.ask.horizons import Horizon
from tacit.personal.durations import duration
from tacit.personal.events import EventType, Kind
from tacit.personal.features.nodes import Binary, Feature
from tacit.personal.problems.feature_words import length_words
from tacit.personal.problems.problem import Asked, FeatureTerms, InstanceTerms, LabelTerms, Problem

__all__ = ["Part", "Reading", "Supposition", "Target", "problem_of"]

_FEATURE_KINDS = ("number", "boolean", "category", "time")


@dataclass(frozen=True)
class Target:
    """What is to be predicted.

    shape    of each event itself, or of all events in a stretch of time
    value    the label, in the language of features
    says     the same as a question for people
    fit      how well it fits the words, between 0 and 1
    by       a field that tells things apart, such as pipes
    assumed  what had to be guessed, as a sentence; empty if nothing
    outcome  the word of the built-in list that it came from (`pass`), if any
    """

    shape: Literal["event", "window"]
    kind: Asked
    value: Feature
    says: str
    fit: float
    fields: frozenset[str] = frozenset()
    by: str = ""
    assumed: str = ""
    outcome: str = ""


@dataclass(frozen=True)
class Supposition:
    """`if I sleep less than six hours`: an event that is supposed to happen before."""

    type: str
    conditions: tuple[Condition, ...]

    @property
    def features(self) -> tuple[str, ...]:
        """What lets a model notice it: whether it held of the last such event, or whether there was
        one within a day; and the number itself."""
        if not self.conditions:
            return (str(compared(aggregate("count", self.type, "", (), days=1), ">", 0)),)
        lasts = {c.field: aggregate("last", self.type, c.field, ()) for c in self.conditions}
        held = [compared(lasts[c.field], c.operator, c.value) for c in self.conditions]
        return str(reduce(partial(Binary, "and"), held)), *map(str, lasts.values())

    def in_words(self) -> str:
        said = " and ".join(condition.in_words() for condition in self.conditions)
        return f"a *{self.type}*" + (f" whose {said}" if said else "")


@dataclass(frozen=True)
class Part:
    """Which words of the question were understood, and as what."""

    role: Literal["form", "entity", "label", "horizon", "condition", "supposition"]
    words: str
    means: str


@dataclass(frozen=True)
class Reading:
    """One way to understand the question. `confidence` is by the rules of readings.py."""

    problem: Problem
    entity: str
    target: Target
    horizon: Horizon
    conditions: tuple[Condition, ...]
    suppositions: tuple[Supposition, ...]
    parts: tuple[Part, ...]
    unknown: tuple[str, ...]
    confidence: float

    @property
    def asked_group(self) -> str | None:
        """The one thing asked about (pipe 3), where things are told apart."""
        for condition in self.conditions:
            if condition.field == self.target.by and isinstance(condition.value, str):
                return condition.value
        return None

    def in_words(self) -> str:
        """The problem in plain words."""
        return " ".join(
            part for part in (self._entity(), self._when(), self._if(), self.target.assumed) if part
        )

    def _entity(self) -> str:
        told = [c for c in self.conditions if c.field != self.target.by]
        where = " and ".join(condition.in_words() for condition in told)
        if self.target.shape == "event":
            return (
                f"For each *{self.entity}*{f' where {where}' if where else ''}: {self.target.says}"
            )
        unit = "week" if self.problem.instance.every == "1w" else "day"
        by = f" and each {self.target.by}" if self.target.by else ""
        return f"For each {unit}{by}: {self.target.says}"

    def _when(self) -> str:
        lead = duration(self.problem.instance.lead)
        if self.target.shape == "event":
            ahead = f"Looking {_counted(lead)} ahead, from" if lead else "From"
            return f"{ahead} what happened before."
        said = f"“{self.horizon.said}”" if self.horizon.stated else "no particular time"
        length = _counted(duration(self.horizon.length))
        before = f"until {_counted(lead)} before" if lead else "before"
        return (
            f"Asked about {said}: {length} from {self.horizon.start:%A %d %B, %H:%M}; from what "
            f"happened {before}."
        )

    def _if(self) -> str:
        said = "; ".join(supposed.in_words() for supposed in self.suppositions)
        return f"Supposing that there is, just before, {said}." if said else ""


def _counted(length: int) -> str:
    words = length_words(length)
    return words if words[0].isdigit() else f"one {words}"


def problem_of(
    question: str,
    catalogue: Mapping[str, EventType],
    entity: str,
    target: Target,
    horizon: Horizon,
    conditions: tuple[Condition, ...],
    suppositions: tuple[Supposition, ...],
    now: datetime.datetime,
) -> Problem:
    """The reading as a problem: everything the person has may serve as a feature."""
    listed = ["weekday(moment)", "hour(moment)"]
    listed += [feature for supposed in suppositions for feature in supposed.features]
    return Problem(
        name=f"ask-{entity}-{target.shape}".replace("_", "-")[:64],
        question=re.sub(r"\s+", " ", question).strip(),
        instance=_instance(entity, target, horizon, conditions, bool(suppositions), now),
        label=LabelTerms(
            value=str(target.value),
            horizon=horizon.length if target.shape == "window" else "",
            kind=target.kind,
            name="answer",
        ),
        events=_events(catalogue),
        features=FeatureTerms(list=tuple(dict.fromkeys(listed)), depth=2),
        static=tuple(sorted(name for name, kind in catalogue.items() if kind.static)),
    )


def _instance(
    entity: str,
    target: Target,
    horizon: Horizon,
    conditions: tuple[Condition, ...],
    is_supposed: bool,
    now: datetime.datetime,
) -> InstanceTerms:
    """What is supposed to happen until the last moment cannot be known earlier: no lead then."""
    if target.shape == "event":
        days = horizon.days_ahead(now) if horizon.stated else 0
        lead = f"{days}d" if days and not is_supposed else "0s"
        known = tuple(dict.fromkeys(c.field for c in conditions if c.field not in target.fields))
        return InstanceTerms(
            per="event",
            event=entity,
            where=condition_text(conditions, entity),
            lead=lead,
            known=known,
        )
    return InstanceTerms(
        per="window",
        event="" if target.by else entity,  # before the first such event, nobody kept a record
        every=horizon.every,
        cutoff=horizon.cutoff,
        lead="0s" if is_supposed else horizon.lead(now),
        by=(target.by,) if target.by else (),
    )


def _events(catalogue: Mapping[str, EventType]) -> dict[str, dict[str, Kind]]:
    return {
        name: {field: sort for field, sort in kind.fields.items() if sort in _FEATURE_KINDS}
        for name, kind in catalogue.items()
    }
