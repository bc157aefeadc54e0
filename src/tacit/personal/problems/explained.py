"""A problem in plain words: what it reads, what an example is, what it asks, what leaves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from tacit.personal.durations import duration
from tacit.personal.features.language import parse
from tacit.personal.problems.feature_words import feature_words, length_words

if TYPE_CHECKING:
    from tacit.personal.problems.problem import Problem

__all__ = ["Section", "explained"]


class Section(NamedTuple):
    title: str
    lines: tuple[str, ...]


def explained(problem: Problem) -> list[Section]:
    """For people who decide whether to use it, in the order in which they would ask."""
    return [
        Section("What it asks", tuple(filter(None, (problem.question, problem.about)))),
        Section("Which of your events it reads", tuple(_events(problem))),
        Section("What one example is", tuple(_example(problem))),
        Section("What it predicts", tuple(_label(problem))),
        Section("What it predicts from", tuple(_features(problem))),
        Section("What leaves your machine", tuple(_leaves(problem))),
    ]


def _events(problem: Problem) -> Iterable[str]:
    for name, kind in problem.types.items():
        fields = ", ".join(f"{field} ({k})" for field, k in kind.fields.items())
        what = "a property" if kind.static else "events"
        yield f"{name}, {what}: {fields or 'only when they happened'}"


def _example(problem: Problem) -> Iterable[str]:
    terms = problem.instance
    each = {
        "event": f"Each {terms.event}",
        "window": f"Each {length_words(duration(terms.every))}" if terms.every else "",
        "session": f"Each row of {terms.event} events with less than {terms.gap} between them",
        "group": f"Each {' and '.join(terms.by)}",
        "user": "You, once",
    }[terms.per]
    where = f", where {terms.where}" if terms.where else ""
    apart = f", for each {' and '.join(terms.by)}" if terms.by and terms.per != "group" else ""
    yield f"{each}{where}{apart}."
    if terms.event and terms.per in ("window", "group", "user"):
        yield f"It begins with the first {terms.event}."
    yield f"Only what happened before {_cutoff(problem)} is looked at."
    if terms.known:
        yield f"Known beforehand: {', '.join(terms.known)}."


def _cutoff(problem: Problem) -> str:
    term = problem.cutoff
    if term in ("start", "end"):
        at = {
            ("event", "start"): "it",
            ("event", "end"): "or with it",
            ("user", "end"): "now",
            ("group", "end"): "now",
        }.get((problem.instance.per, term), f"its {term}")
    elif "-" in term:
        at = term
    else:
        at = f"{term} after its start"
    return f"{problem.instance.lead} before {at}" if problem.lead else at


def _label(problem: Problem) -> Iterable[str]:
    label = problem.label
    yield f"{label.name}: {feature_words(parse(label.value))}"
    if label.horizon == "ever":
        yield "Counted from then on, without an end."
    elif label.horizon:
        yield f"Counted over the {length_words(duration(label.horizon))} after that."
    elif problem.instance.per != "event":
        yield "Counted over the rest of the example."
    yield "Where this is not over yet, it is predicted."


def _features(problem: Problem) -> Iterable[str]:
    named = {text: name for name, text in problem.columns.items()}
    for text in problem.declared:
        name = f" (column {named[text]})" if text in named else ""
        yield f"{feature_words(parse(text))}{name}"
    if problem.features.depth:
        most = problem.features.most
        yield (
            f"and what can be made of these events by counting, adding up and comparing, "
            f"{problem.features.depth} deep, {most} features at most"
        )


def _leaves(problem: Problem) -> Iterable[str]:
    yield "Nothing: it is computed here, and stays here. It is plain data and runs no code."
    if problem.columns:
        columns = ", ".join((*problem.columns, problem.label.name))
        yield (
            f"If you choose to join a study with it, your one row has the columns {columns}. The "
            "study shows you first what would be sent, randomised, and what it costs."
        )
