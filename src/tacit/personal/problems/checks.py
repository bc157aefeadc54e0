"""What a problem must satisfy as a whole, beyond the types of its terms."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tacit.errors import InputError
from tacit.personal.durations import DAY, duration
from tacit.personal.events import NAME
from tacit.personal.problems.file import canonical_form, check_texts
from tacit.personal.problems.reading import check_expressions

if TYPE_CHECKING:
    from tacit.personal.problems.problem import InstanceTerms, Problem

__all__ = ["check_problem"]

PROBLEM_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
LONGEST = 300  # characters of what people read at a glance
MOST_TYPES, MOST_FIELDS, MOST_FEATURES, DEEPEST = 100, 300, 1000, 3

# per → the terms it cannot do without, and those it may have beside them.
TERMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "event": (("event",), ("where", "by", "cutoff", "lead", "known")),
    "window": (("every",), ("event", "where", "by", "cutoff", "lead")),
    "session": (("event", "gap"), ("where", "by", "cutoff", "lead")),
    "group": (("by",), ("event", "where", "cutoff", "lead")),
    "user": ((), ("event", "where", "cutoff", "lead")),
}


def check_problem(problem: Problem) -> None:
    """Raise an InputError for what is wrong, a Leakage where a feature could see the answer."""
    check_texts(canonical_form(problem))
    for checks in (_head, _events, _terms, _by, _lengths, _cutoff, _features):
        for fault in checks(problem):
            raise InputError(fault)
    check_expressions(problem)


def _head(problem: Problem) -> Iterable[str]:
    if not PROBLEM_NAME.fullmatch(problem.name):
        yield f"name = {problem.name[:80]!r}: take 1 to 64 small letters, digits and hyphens."
    if not problem.question.strip() or len(problem.question) > LONGEST:
        yield f"question: say in a sentence what is to be learned, in {LONGEST} characters at most."
    if not NAME.fullmatch(problem.label.name):
        yield "[label]: name is made of small letters, digits and _, beginning with a letter."


def _events(problem: Problem) -> Iterable[str]:
    if not problem.events:
        yield 'needs no events: name them, such as [events.ride] with price = "number".'
    if len(problem.events) > MOST_TYPES or any(
        len(fields) > MOST_FIELDS for fields in problem.events.values()
    ):
        yield f"[events]: {MOST_TYPES} types of {MOST_FIELDS} fields are the most there may be."
    _ = problem.types  # refuses names that no event or field can have
    for name in problem.static:
        if name not in problem.events:
            yield f"static: {name[:80]!r} is none of the needed events ({_listed(problem.events)})."
    if set(problem.static) >= set(problem.events):
        yield "static: all the needed events are without a moment; at least one must happen."


def _terms(problem: Problem) -> Iterable[str]:
    terms = problem.instance
    needed, allowed = TERMS[terms.per]
    for name in needed:
        if not getattr(terms, name):
            yield f'[instance]: per = "{terms.per}" needs `{name}`: {_MEANS[name]}.'
    for name in ("event", "where", "by", "every", "gap", "known"):
        if getattr(terms, name) and name not in (*needed, *allowed):
            more = ' Take per = "group".' if (terms.per, name) == ("user", "by") else ""
            yield f'[instance]: `{name}` does not go with per = "{terms.per}".{more}'
    if terms.where and not terms.event:
        yield "[instance]: `where` is a condition on events: say of which type with `event`."
    if terms.event and terms.event not in problem.events:
        yield (
            f"[instance]: event = {terms.event[:80]!r} is none of the needed events "
            f"({_listed(problem.events)})."
        )
    if terms.event in problem.static:
        yield f"[instance]: event = {terms.event!r} is static: it has no moment to begin with."
    for name in terms.known:
        if name not in problem.events.get(terms.event, ()):
            yield (
                f"[instance]: known = {name[:80]!r} is no field of {terms.event} "
                f"({_listed(problem.events[terms.event])})."
            )


def _by(problem: Problem) -> Iterable[str]:
    terms = problem.instance
    if len(set(terms.by)) < len(terms.by) or len(terms.by) > 8:
        yield "[instance]: `by` has 8 different fields at most."
    having = [
        fields
        for name, fields in problem.events.items()
        if set(terms.by) <= set(fields) and name not in problem.static
    ]
    if terms.event and not set(terms.by) <= set(problem.events[terms.event]):
        yield f"[instance]: {terms.event} does not have all the fields in `by`."
    elif terms.by and not having:
        yield f"[instance]: no needed event has all the fields in `by` ({_listed(terms.by)})."
    for name in terms.by:
        kinds = {fields[name].replace("text", "category") for fields in having}
        if "time" in kinds:
            yield f"[instance]: by = {name!r} is a time, which tells nothing apart; take windows."
        if len(kinds) > 1:
            yield f"[instance]: by = {name!r} is of different kinds in different events."


def _lengths(problem: Problem) -> Iterable[str]:
    terms, horizon = problem.instance, problem.label.horizon
    for name, text in (("every", terms.every), ("gap", terms.gap)):
        if text and duration(text, f"[instance]: {name}") == 0:
            yield f"[instance]: {name} must be longer than nothing."
    duration(terms.lead, "[instance]: lead")
    if horizon not in ("", "ever") and duration(horizon, "[label]: horizon") == 0:
        yield "[label]: horizon must be longer than nothing."
    if terms.every:
        every = duration(terms.every)
        if every % DAY and DAY % every:
            yield (
                f"[instance]: every = {terms.every!r} does not fit the days: take whole days or "
                "weeks, or a part of a day such as 1h, 6h or 30m."
            )


def _cutoff(problem: Problem) -> Iterable[str]:
    terms = problem.instance
    if terms.per in ("group", "user") and not terms.cutoff and not problem.label.horizon:
        yield (
            f'[instance]: per = "{terms.per}" needs `cutoff`: until when features may look. Give a '
            "length of time after the start (28d), or a date (2026-03-01)."
        )
    if terms.cutoff in ("", "start", "end"):
        return
    if DATE.fullmatch(terms.cutoff):
        yield from _date(terms)
        return
    after = duration(terms.cutoff, "[instance]: cutoff is `start`, `end`, a date or a length")
    if terms.every and after >= duration(terms.every):
        yield "[instance]: cutoff lies beyond the window: take less than `every`."


def _date(terms: InstanceTerms) -> Iterable[str]:
    if terms.per not in ("group", "user"):
        yield (
            f'[instance]: a date as cutoff does not go with per = "{terms.per}", whose instances '
            "begin at different moments. Take `start`, `end` or a length of time."
        )
    try:
        datetime.date.fromisoformat(terms.cutoff)
    except ValueError:
        yield f"[instance]: cutoff = {terms.cutoff!r} is no day of the calendar."


def _features(problem: Problem) -> Iterable[str]:
    terms = problem.features
    if not 0 <= terms.depth <= DEEPEST:
        yield f"[features]: depth = {terms.depth}; give 0 (none are made) to {DEEPEST}."
    if not 1 <= terms.most <= MOST_FEATURES:
        yield f"[features]: most = {terms.most}; give 1 to {MOST_FEATURES}."
    if len(problem.declared) > MOST_FEATURES:
        yield f"[features]: {MOST_FEATURES} features are the most there may be."
    if len(terms.windows) > 10 or not all(
        duration(window, "[features]: windows") for window in terms.windows
    ):
        yield "[features]: windows has 10 lengths of time at most, each longer than nothing."
    if not problem.declared and not terms.depth:
        yield "[features]: there are none: list some, or have them made with depth = 2."
    for name in problem.columns:
        if not name.strip() or len(name) > 64 or name == problem.label.name:
            yield (
                "[columns]: a column has a name of 64 characters at most, other than the label's "
                f"({problem.label.name})."
            )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


_MEANS = {
    "event": "which type of events",
    "every": "how long a window is, such as 1w",
    "gap": "how long a silence ends a session, such as 30m",
    "by": "the fields that tell groups apart",
}
