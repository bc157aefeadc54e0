"""What expressions read, and that no feature sees what is to be predicted.

Everything here follows from the definition alone, before any event is looked at. The one principle:
what a label reads must lie at the cut-off or later, and what a feature reads before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.errors import InputError, Leakage
from tacit.personal.durations import duration
from tacit.personal.features.language import parse, parse_condition
from tacit.personal.features.nodes import (
    Aggregate,
    Column,
    Events,
    Feature,
    Own,
    Static,
    children,
)
from tacit.personal.features.signature import check_condition, kind_of

if TYPE_CHECKING:
    from tacit.personal.problems.problem import Asked, Problem

__all__ = [
    "Reads",
    "check_asked",
    "check_expressions",
    "feature_kind",
    "label_kind",
    "negated",
    "reads",
]


@dataclass(frozen=True)
class Reads:
    """What an expression looks at.

    own      fields of the instance's own event
    types    events that it adds up, or picks from
    static   properties, as (type, field)
    windows  how far back it looks, in microseconds
    """

    own: frozenset[str]
    types: frozenset[str]
    static: frozenset[tuple[str, str]]
    windows: frozenset[int]


def reads(feature: Feature) -> Reads:
    nodes = list(_nodes(feature))
    return Reads(
        frozenset(node.field for node in nodes if isinstance(node, Own)),
        frozenset(node.type for node in nodes if isinstance(node, Events | Column)),
        frozenset((node.type, node.field) for node in nodes if isinstance(node, Static)),
        frozenset(
            node.window
            for node in nodes
            if isinstance(node, Aggregate) and isinstance(node.window, int)
        ),
    )


def _nodes(feature: Feature) -> Iterator[Feature]:
    yield feature
    for child in children(feature):
        yield from _nodes(child)
    if isinstance(feature, Aggregate) and feature.where is not None:
        yield from _nodes(feature.where)


def negated(condition: str) -> str:
    """True where a condition is false: where it is missing, neither is."""
    return f"not ({condition})"


def label_kind(problem: Problem) -> Asked:
    """What the answer is."""
    own = _own(problem)
    known = problem.events[own] if own else ()
    return kind_of(parse(problem.label.value), problem.types, own, known)


def feature_kind(problem: Problem, text: str) -> Asked:
    """What this feature is; raises unless it fits the events and reads only what lies before the
    cut-off."""
    feature, own = parse(text), _own(problem)
    known = frozenset(problem.instance.known)
    if own and _sees_own(problem, problem.lead):
        known = frozenset(problem.events[own])
    kind = kind_of(feature, problem.types, own, known)
    if reads(feature).static & reads(parse(problem.label.value)).static:
        raise Leakage("reads the very property that is to be predicted. Leave it out.")
    return kind


def check_expressions(problem: Problem) -> None:
    """Raise unless every expression fits the events, and no feature can see the answer."""
    terms = problem.instance
    if terms.where:
        with _placed("[instance]: where"):
            for text in (terms.where, negated(terms.where)):
                check_condition(parse_condition(text, terms.event), problem.types)
    with _placed("[label]: value"):
        asked, given = problem.label.kind, label_kind(problem)
    if asked not in (None, given):
        raise InputError(f"[label]: kind = {asked!r}, but `{problem.label.value}` is a {given}.")
    label = reads(parse(problem.label.value))
    _check_stretch(problem, label)
    check_asked(label, terms.known)
    for text in problem.features.list:
        with _placed(f"[features]: {text[:200]}"):
            feature_kind(problem, text)
    for name, text in problem.columns.items():
        with _placed(f"[columns]: {name}"):
            feature_kind(problem, text)


@contextmanager
def _placed(where: str) -> Iterator[None]:
    """Errors inside say where in the problem they are."""
    try:
        yield
    except InputError as error:
        raise type(error)(f"{where}: {error}") from None


def check_asked(label: Reads, known: Collection[str]) -> None:
    """Raise if a label says nothing but what is known beforehand.

    It may read such fields beside others: whether a ride will cost more than its known estimate is
    a fair question.
    """
    if label.types or label.static or label.own - set(known):
        return
    fields = ", ".join(f"own.{name}" for name in sorted(label.own))
    raise Leakage(
        f"the label reads only what is known beforehand ({fields or 'no event at all'}): there is "
        "nothing to predict. Take it out of `known`, or ask for something else."
    )


def _own(problem: Problem) -> str | None:
    return problem.instance.event if problem.instance.per == "event" else None


def _check_stretch(problem: Problem, label: Reads) -> None:
    """What the label reads must lie at the cut-off or later."""
    per, horizon = problem.instance.per, problem.label.horizon
    if not horizon and problem.cutoff == "end":
        raise Leakage(
            '[instance]: with cutoff = "end" features see the whole instance, and the label is '
            "over the same. Take an earlier cut-off, or give the label a horizon."
        )
    if label.own and _sees_own(problem, lead=0):
        raise Leakage(
            "[label]: reads the instance's own event, which lies before the cut-off: features "
            'would see it. Take cutoff = "start".'
        )
    if per == "event" and not horizon and label.types:
        raise Leakage(
            "[label]: an event is one moment, so what is added up here lies before its cut-off. "
            "Give the label a horizon, or read a field of the event itself, such as own.price."
        )
    longest = max(label.windows, default=0)
    if horizon not in ("", "ever") and longest > duration(horizon):
        raise Leakage(
            "[label]: looks back further than its horizon is long, to before the cut-off. Take a "
            "shorter window, or none: the horizon is what it looks at."
        )


def _sees_own(problem: Problem, lead: int) -> bool:
    """Whether an instance's own event lies before the cut-off."""
    term = problem.cutoff
    if term in ("start", "end"):
        return term == "end" and lead == 0
    return duration(term) > lead
