"""From what was understood to an answer: past examples, a model tested in the order of time, the
asked-for case; how it was obtained, and how far to trust it (AnonML 9.3.1, third application)."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tacit.errors import InputError, UsageError
from tacit.personal.ask.case import LEAST_EXAMPLES, Case, Result
from tacit.personal.ask.posing import posed
from tacit.personal.ask.reading import Reading
from tacit.personal.ask.recorded import recorded_until
from tacit.personal.ask.trust import Trusted, untrusted
from tacit.personal.ask.understanding import Understanding
from tacit.personal.dataset import Dataset
from tacit.personal.durations import DAY
from tacit.personal.events import moment
from tacit.personal.features.language import parse
from tacit.personal.learning.training import Trained
from tacit.personal.problems.feature_words import feature_words
from tacit.personal.problems.problem import Asked, Problem

__all__ = ["Answer", "answer"]

Method = Literal["model", "counting"]
MOST_USEFUL = 5
STALE = 7 * DAY


@dataclass(frozen=True)
class Answer:
    """What a person is told.

    results   one for each asked-for case; of several things, the likeliest first
    says      the first of them as a sentence
    method    `model`, or `counting` where a model could not be made or was no better
    examples  past cases whose answer is known
    how       how it was obtained, sentence by sentence
    helps     what would make it better
    imagined  whether the asked-for event is in no calendar
    """

    understood: str
    problem: Problem
    results: tuple[Result, ...]
    says: str
    method: Method
    examples: int
    how: tuple[str, ...]
    helps: tuple[str, ...]
    imagined: bool

    @property
    def trust(self) -> Trusted:
        return self.results[0].trust


def answer(
    understanding: Understanding,
    dataset: Dataset,
    now: datetime.datetime,
    *,
    choice: int | None = None,
    seed: int = 0,
) -> Answer:
    """Answer what was understood.

    choice  which reading is meant, as `Understanding.in_words` numbers them from 1; needed where
            the understanding is not sure
    """
    reading = _chosen(understanding, choice)
    until = recorded_until(dataset, reading.entity, moment(now))
    case = Case(reading, posed(reading, dataset, now), moment(now), until)
    if not case.asked.rows:
        raise InputError(
            f"{reading.entity}: too little is recorded for what is asked about. Import more first "
            "(`tacit me import`)."
        )
    trained, why = case.trained(seed)
    if trained is not None and trained.report.verdict.outcome == "better":
        return _told(case, case.predicted(trained), "model", trained, why)
    untold = untrusted(trained.report.verdict.words if trained else why)
    return _told(case, case.counted(untold), "counting", trained, why)


def _chosen(understanding: Understanding, choice: int | None) -> Reading:
    if understanding.reading is None:
        raise InputError(understanding.in_words())
    if choice is None:
        if not understanding.is_sure:
            raise UsageError(f"{understanding.in_words()}\nChoose one of them by its number.")
        return understanding.reading
    ways = (understanding.reading, *understanding.alternatives)
    if not 1 <= choice <= len(ways):
        raise UsageError(f"there are {len(ways)} ways to understand it, from 1; not {choice}.")
    return ways[choice - 1]


def _told(
    case: Case, results: list[Result], method: Method, trained: Trained | None, why: str
) -> Answer:
    return Answer(
        case.reading.in_words(),
        case.reading.problem,
        tuple(results),
        _sentence(case.task, results[0], method),
        method,
        case.past.rows,
        tuple(_how(case, method, trained, why)),
        tuple(_helps(case, results[0], trained)),
        case.posed.imagined,
    )


def _how(case: Case, method: Method, trained: Trained | None, why: str) -> Iterator[str]:
    """How it was obtained, sentence by sentence."""
    entity = case.reading.entity
    yield f"From {case.past.rows} past examples."
    if case.posed.imagined:
        yield f"No such {entity} is known yet: one was imagined at its usual time."
    if case.posed.known:
        yield f"{case.posed.known} such {entity} events are recorded for that time already."
    if trained is None:
        yield why
    elif method == "counting":
        yield f"A model was tried and not used. {trained.report.verdict.words}"
    else:
        yield f"Model: {trained.report.recipe.model}. {trained.report.verdict.words}"
        words = [feature_words(parse(u.name)) for u in trained.report.useful if u.lost > 0]
        if words:
            yield f"Most useful: {'; '.join(words[:MOST_USEFUL])}."
    if method == "counting" and case.reading.suppositions:
        yield f"Counted were the {case.held.sum()} examples in which what you suppose held."


def _helps(case: Case, result: Result, trained: Trained | None) -> Iterator[str]:
    """What would make it better."""
    outcome = trained.report.verdict.outcome if trained else ""
    if trained is None and case.past.rows < LEAST_EXAMPLES:
        missing = LEAST_EXAMPLES - case.past.rows
        yield f"At least {missing} more past examples: import an older or a longer export."
    elif trained is None:
        yield "Examples in which the answer was otherwise."
    elif outcome == "too few":
        yield "More past examples, to tell whether the model is better than guessing."
    elif outcome == "no better":
        yield "Other kinds of events: nothing in those you have says anything about it."
    elif result.trust.grade == "little":
        yield "More past examples, above all some like this case."
    if case.age > STALE:
        yield f"A newer export of {case.reading.entity}: yours is {case.age // DAY} days old."
    if case.posed.imagined:
        yield f"A calendar with the coming {case.reading.entity} in it."


def _sentence(task: Asked, result: Result, method: Method) -> str:
    if result.value is None:
        return "There is no past example to count."
    basis = "Going by" if method == "model" else "Counting"
    if task == "boolean":
        share = f"{result.value:.0%}"
        between = "" if result.low is None else f" ({result.low:.0%} to {result.high:.0%})"
        return f"{basis} what happened before, the chance is {share}{between}."
    if task == "number":
        between = "" if result.low is None else f", likely {result.low:.4g} to {result.high:.4g}"
        return f"{basis} what happened before, about {result.value:.4g}{between}."
    most = ", ".join(f"{value} {chance:.0%}" for value, chance in result.chances[:3])
    return f"{basis} what happened before, most likely: {most}."
