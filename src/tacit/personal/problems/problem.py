"""A prediction problem as plain data: which events it needs, what an instance is, what is asked.

Someone else's problem is safe to use because it is only this: no code, and every expression is in
the small language of features. The file is TOML:

    name = "pipe-burst"
    question = "Will this pipe burst next week?"

    [events.flow]
    pipe = "category"
    litres = "number"

    [events.burst]
    pipe = "category"

    [instance]
    per = "window"
    every = "1w"
    by = ["pipe"]

    [label]
    value = "count(burst) > 0"
    horizon = "1w"

    [features]
    list = ["sum(flow.litres, 7d)", "trend(flow.litres, 28d)", "since(burst)"]
    depth = 2
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec

from tacit.crypto.signing import digest
from tacit.data.toml import table_of
from tacit.errors import InputError
from tacit.personal.durations import duration
from tacit.personal.events import EventType, Kind
from tacit.personal.problems.checks import check_problem
from tacit.personal.problems.file import canonical_form, plain_document, read_document, write_toml

__all__ = ["Asked", "FeatureTerms", "InstanceTerms", "LabelTerms", "Per", "Problem"]

Per = Literal["event", "window", "session", "group", "user"]
Asked = Literal["number", "boolean", "category"]


class InstanceTerms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one instance is.

    per     event: each event of a type. window: each stretch of `every`. session: events of a type
            with less than `gap` between them. group: each value of the fields `by`. user: one
    event   of which type (event and session; group and user: whose first event is the start)
    where   a condition on those events, in the language of features: `status = "completed"`. Of
            events still to come, those stay of which it is not known yet
    by      fields that tell things apart, such as pipes: each has instances of its own, which see
            only their own events
    every   the length of a window
    gap     what ends a session
    cutoff  until when features may look: `start` or `end` of the instance's span, a length of time
            after its start (7d), or a date. By default the start; the end with a horizon
    lead    how long before the cut-off the prediction is wanted: features look no later than that
    known   fields of the instance's own event known beforehand, such as where a ride begins
    """

    per: Per
    event: str = ""
    where: str = ""
    by: tuple[str, ...] = ()
    every: str = ""
    gap: str = ""
    cutoff: str = ""
    lead: str = "0s"
    known: tuple[str, ...] = ()


class LabelTerms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be predicted.

    value    in the language of features, over the instance's own events after the cut-off, or over
             the horizon: `own.price`, `count(burst) > 0`, `last(result.grade)`
    horizon  how long after the cut-off events count (7d), or `ever`
    kind     number, boolean, category: what the value is; to be sure of it
    name     what the answer is called
    """

    value: str
    horizon: str = ""
    kind: Asked | None = None
    name: str = "label"


class FeatureTerms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known of an instance.

    list     features, in their language
    depth    beside those, make features by stacking functions so deep; 0 for none
    windows  over which the made ones look back
    most     how many features at most
    """

    list: tuple[str, ...] = ()
    depth: int = 0
    windows: tuple[str, ...] = ("7d", "28d")
    most: int = 100


class Problem(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True, eq=True
):
    """The whole.

    events   the events it needs: type → field → kind
    static   those of them that have no moment
    columns  for a study of many people: the name of a column → the feature that fills it. They are
             features like those in the list
    """

    name: str
    question: str
    instance: InstanceTerms
    label: LabelTerms
    events: dict[str, dict[str, Kind]]
    features: FeatureTerms = FeatureTerms(depth=2)
    columns: dict[str, str] = {}
    static: tuple[str, ...] = ()
    about: str = ""

    def __post_init__(self) -> None:
        check_problem(self)

    @classmethod
    def load(cls, path: str | Path) -> Problem:
        return cls.from_dict(read_document(Path(path)), str(path))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], where: str = "problem") -> Problem:
        plain = plain_document(document, where)
        for name, kind in _TABLES.items():
            if name in plain:
                table_of(plain[name], kind, f"{where}, [{name}]")  # an error with its place
        try:
            return msgspec.convert(plain, cls)
        except msgspec.ValidationError as error:
            if isinstance(error.__cause__, InputError):  # of the checks below: it says enough
                raise type(error.__cause__)(f"{where}: {error.__cause__}") from None
            made: Problem = table_of(plain, cls, where)  # says what does not fit, and where
            return made

    def to_toml(self) -> str:
        """The file: the same bytes for the same problem."""
        return write_toml(self)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical form: what people compare."""
        return digest(canonical_form(self))

    @cached_property
    def types(self) -> dict[str, EventType]:
        """The events it needs, as types, in the order of their names."""
        return {
            name: EventType(
                name=name, fields=dict(sorted(fields.items())), static=name in self.static
            )
            for name, fields in sorted(self.events.items())
        }

    @property
    def cutoff(self) -> str:
        """As it stands there, or what it is by default."""
        return self.instance.cutoff or ("end" if self.label.horizon else "start")

    @property
    def lead(self) -> int:
        return duration(self.instance.lead, "lead")

    @property
    def declared(self) -> tuple[str, ...]:
        """The features that are written down: the list, then the columns, each once."""
        return tuple(dict.fromkeys((*self.features.list, *self.columns.values())))

    def check_against(self, catalogue: Mapping[str, EventType]) -> None:
        """Raise unless everything it needs is there, of the right kind."""
        for name, fields in self.events.items():
            if name not in catalogue:
                known = ", ".join(sorted(catalogue)) or "none"
                raise InputError(
                    f"{self.name}: needs events of type {name}, and you have none (you have: "
                    f"{known}). Import them first: `tacit me import`."
                )
            if catalogue[name].static != (name in self.static):
                says = "happen" if catalogue[name].static else "are static"
                raise InputError(f"{self.name}: says that {name} events {says}; yours do not.")
            for field, kind in fields.items():
                there = catalogue[name].fields.get(field)
                if there != kind and {there, kind} != {"category", "text"}:
                    found = f"is a {there}" if there else "is not there"
                    raise InputError(f"{self.name}: needs {name}.{field}, a {kind}; it {found}.")


_TABLES: dict[str, Any] = {
    "instance": InstanceTerms,
    "label": LabelTerms,
    "features": FeatureTerms,
}
