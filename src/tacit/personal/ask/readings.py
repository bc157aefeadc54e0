"""All the ways to understand a question, each with its confidence; best first.

    confidence = form × target × when × words × supposed

form      1; less where the question word is missing or vague (forms.py)
target    how well it is known what to predict (targets.py)
when      1; 0.95 where a stretch of time is needed and none was said
words     the mean over the words that must mean something: how well each fits (lexicon.py), half
          for a field that is named and not used, 0 for a word that means nothing here
supposed  the same for the words after `if`
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tacit.errors import InputError
from tacit.personal.ask.expressions import Condition
from tacit.personal.ask.grammar import Clause, Sentence
from tacit.personal.ask.lexicon import Lexicon
from tacit.personal.ask.reading import Part, Reading, Supposition, Target, problem_of
from tacit.personal.ask.scope import Scope
from tacit.personal.ask.targets import Topic, targets
from tacit.personal.ask.vocabulary import OUTCOMES
from tacit.personal.events import EventType
from tacit.personal.features.nodes import Truth

__all__ = ["readings"]

UNSTATED = 0.95
NOT_USED = 0.5
RIVAL = 0.95  # words that are values of two fields: the second
MOST = 4  # the best, and three others


@dataclass(frozen=True)
class _Supposed:
    """What the clause after `if` says: of events of the asked type, or of others."""

    conditions: tuple[Condition, ...] = ()
    suppositions: tuple[Supposition, ...] = ()
    fit: float = 1.0
    unknown: tuple[str, ...] = ()
    part: Part | None = None


@dataclass(frozen=True)
class _Draft:
    """A reading before it is made a problem."""

    topic: Topic
    target: Target
    supposed: _Supposed
    confidence: float
    unknown: tuple[str, ...]


def readings(
    question: str,
    sentence: Sentence,
    catalogue: Mapping[str, EventType],
    lexicon: Lexicon,
    now: datetime.datetime,
) -> list[Reading]:
    drafts = [
        draft
        for kind in catalogue.values()
        if not kind.static
        for draft in _drafts(sentence, kind, catalogue, lexicon)
    ]
    drafts.sort(key=lambda d: (-d.confidence, d.topic.type, str(d.target.value)))
    made: dict[tuple[str, str], Reading] = {}
    for draft in drafts:
        reading = _completed(question, draft, sentence, catalogue, now)
        if reading is not None:
            key = str(reading.problem.instance), str(reading.problem.label)
            made.setdefault(key, reading)
        if len(made) == MOST:
            break
    return list(made.values())


def _drafts(
    sentence: Sentence, kind: EventType, catalogue: Mapping[str, EventType], lexicon: Lexicon
) -> Iterator[_Draft]:
    scope = Scope(sentence.main, kind, lexicon)
    supposed = _supposed(sentence.supposed, kind, catalogue, lexicon)
    for conditions, sure in _conditions(scope, sentence.form.wanted != "yes-no"):
        topic = Topic(sentence, scope, (*conditions, *supposed.conditions))
        for target in targets(topic):
            if not scope.hits and not target.outcome:
                continue
            words, unknown = _words(scope, target, {c.field for c in conditions})
            when = 1.0 if sentence.horizon.stated or target.shape == "event" else UNSTATED
            confidence = sentence.form.sure * target.fit * when * words * supposed.fit * sure
            yield _Draft(topic, target, supposed, confidence, (*unknown, *supposed.unknown))


def _conditions(scope: Scope, compare: bool) -> Iterator[tuple[tuple[Condition, ...], float]]:
    """The conditions that the words set; a second time where a word may belong to two fields."""
    fixed = _compared(scope) if compare else []
    chosen = [Condition(h.meaning.field, "=", h.meaning.value or "") for h in scope.values]
    yield (*chosen, *fixed), 1.0
    for place, hit in enumerate(scope.values):
        for rival in scope.rivals(hit)[:1]:
            other = Condition(rival.meaning.field, "=", rival.meaning.value or "")
            yield (*chosen[:place], other, *chosen[place + 1 :], *fixed), RIVAL


def _compared(scope: Scope) -> list[Condition]:
    """How many cancelled rides over 20 francs: truths and comparisons narrow the events."""
    truths = [Condition(field, "=", True) for field in scope.fields("boolean")]
    found = [scope.condition(c) for c in scope.clause.comparisons if not c.is_clock]
    return truths + [condition for condition in found if condition is not None]


def _words(scope: Scope, target: Target, fields: set[str]) -> tuple[float, tuple[str, ...]]:
    """How well the words fit on the whole, and those that mean nothing here."""
    clause = scope.clause
    if not clause.left:
        return 0.0, ()
    used = fields | target.fields | {target.by}
    fits = dict.fromkeys(clause.left, 0.0)
    for hit in scope.hits:
        whole = hit.meaning.what == "type" or hit.meaning.field in used
        for place in hit.places & clause.left:
            fits[place] = max(fits[place], hit.fit * (1 if whole else NOT_USED))
    for place in clause.left:
        if target.outcome and target.outcome in clause.tokens[place].forms & OUTCOMES.keys():
            fits[place] = max(fits[place], clause.tokens[place].sure)
    unknown = [place for place, fit in sorted(fits.items()) if fit == 0]
    return sum(fits.values()) / len(fits), tuple(clause.tokens[p].text for p in unknown)


def _supposed(
    clause: Clause | None,
    kind: EventType,
    catalogue: Mapping[str, EventType],
    lexicon: Lexicon,
) -> _Supposed:
    if clause is None or not (clause.left or clause.comparisons):
        return _Supposed()
    best = _Supposed(
        fit=NOT_USED, unknown=tuple(clause.tokens[p].text for p in sorted(clause.left))
    )
    for other in catalogue.values():
        scope = Scope(clause, other, lexicon)
        if other.static or not scope.hits:
            continue
        conditions, _ = next(_conditions(scope, compare=True))
        fit, unknown = _clause_fit(scope, conditions)
        if fit > best.fit or best.part is None:
            part = _part(clause, Supposition(other.name, conditions))
            same = other.name == kind.name and bool(conditions)
            best = _Supposed(
                conditions if same else (),
                () if same else (Supposition(other.name, conditions),),
                fit,
                unknown,
                part,
            )
    return best


def _clause_fit(scope: Scope, conditions: tuple[Condition, ...]) -> tuple[float, tuple[str, ...]]:
    nothing = Target("event", "boolean", Truth(False), "", 1.0)
    fit, unknown = _words(scope, nothing, {c.field for c in conditions})
    missed = len([c for c in scope.clause.comparisons if not scope.condition(c)])
    return fit * NOT_USED**missed, unknown


def _part(clause: Clause, supposed: Supposition) -> Part:
    said = clause.said(range(len(clause.tokens)))
    return Part("supposition", said, supposed.in_words())


def _completed(
    question: str,
    draft: _Draft,
    sentence: Sentence,
    catalogue: Mapping[str, EventType],
    now: datetime.datetime,
) -> Reading | None:
    """None where it makes no problem: some combinations ask for what they already know."""
    target, supposed = draft.target, draft.supposed
    conditions = draft.topic.others(*(target.fields if target.shape == "event" else ()))
    try:
        problem = problem_of(
            question,
            catalogue,
            draft.topic.type,
            target,
            sentence.horizon,
            conditions,
            supposed.suppositions,
            now,
        )
    except InputError:
        return None
    return Reading(
        problem,
        draft.topic.type,
        target,
        sentence.horizon,
        conditions,
        supposed.suppositions,
        _parts(draft, sentence),
        draft.unknown,
        round(draft.confidence, 4),
    )


def _parts(draft: _Draft, sentence: Sentence) -> tuple[Part, ...]:
    """Which words led to what."""
    scope, target = draft.topic.scope, draft.target
    parts = [Part("form", sentence.form_said, sentence.form.wanted)]
    if scope.named is not None:
        parts.append(Part("entity", scope.clause.said(scope.named.places), scope.kind.name))
    label = {p for h in scope.hits if h.meaning.field in target.fields for p in h.places}
    label |= {
        place
        for place, token in enumerate(scope.clause.tokens)
        if target.outcome and target.outcome in token.forms
    }
    label |= {p for c in scope.clause.comparisons for p in c.places}
    parts.append(Part("label", scope.clause.said(frozenset(label)), str(target.value)))
    for hit in scope.values:
        means = f"{hit.meaning.field} = {hit.meaning.value}"
        parts.append(Part("condition", scope.clause.said(hit.places), means))
    horizon = sentence.horizon
    parts.append(
        Part("horizon", horizon.said, f"{horizon.length} from {horizon.start:%Y-%m-%d %H:%M}")
    )
    if draft.supposed.part is not None:
        parts.append(draft.supposed.part)
    return tuple(part for part in parts if part.words)
