"""What may be asked of events of one type: each form of question has its own few possibilities.

How well a possibility fits, beside the words themselves:

    0.95  the form's second meaning (what … : a number rather than a category)
    0.9   the type is not named, only one of its fields or values is
    0.85  an outcome that is a value of a category (result = "pass") rather than a truth
    0.8   one event is spoken of and a stretch of time is taken, or the other way round
    0.6   a possibility that leaves an outcome or a comparison of the question unused
    0.5   a threshold that stands nowhere in the data had to be guessed (what is a pass?)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from tacit.personal.ask.expressions import Condition, aggregate, compared
from tacit.personal.ask.forms import Wanted
from tacit.personal.ask.grammar import Sentence
from tacit.personal.ask.reading import Target
from tacit.personal.ask.scope import Measured, Scope
from tacit.personal.ask.vocabulary import LEVELS, OUTCOMES, Outcome
from tacit.personal.features.nodes import Aggregate, Column, Feature, Function, Own

__all__ = ["Topic", "targets"]

SECOND, IMPLIED, AS_VALUE, OTHER_SHAPE, UNUSED, GUESSED = 0.95, 0.9, 0.85, 0.8, 0.6, 0.5
Shape = Literal["event", "window"]


@dataclass(frozen=True)
class Topic:
    """A sentence read as speaking of one type, with conditions on its events."""

    sentence: Sentence
    scope: Scope
    conditions: tuple[Condition, ...]

    @property
    def type(self) -> str:
        return self.scope.kind.name

    def others(self, *fields: str) -> tuple[Condition, ...]:
        """The conditions, but those on these fields."""
        return tuple(c for c in self.conditions if c.field not in fields)

    def said(self, *fields: str) -> str:
        words = " and ".join(c.in_words() for c in self.others(*fields))
        return f" where {words}" if words else ""


def targets(topic: Topic) -> Iterator[Target]:
    """Everything the sentence may want to know of these events."""
    form = topic.sentence.form
    for wanted, sure in ((form.wanted, 1.0), (form.also, SECOND)):
        if wanted is not None:
            for target in _MAKERS[wanted](topic):
                named = 1.0 if topic.scope.named else IMPLIED
                yield replace(target, fit=target.fit * sure * named)


# ── yes or no ──


def _yes_no(topic: Topic) -> Iterator[Target]:
    clear = list(_outcomes(topic)) + list(_truths(topic)) + list(_compared(topic))
    yield from clear
    yield from _valued(topic)
    yield from _occurring(topic, UNUSED if clear else 1.0)


def _outcomes(topic: Topic) -> Iterator[Target]:
    """`pass`, `late`: in whatever field this type keeps it."""
    for place, token in enumerate(topic.scope.clause.tokens):
        for word in sorted(token.forms & OUTCOMES.keys()):
            kept, before = OUTCOMES[word], topic.scope.describes(frozenset([place]))
            found = list(_kept(topic, kept, True))
            if kept.unless and not found:
                found = list(_kept(topic, OUTCOMES[kept.unless], False))
            for asked, fit, assumed in found:
                for target in _own(topic, asked, fit * token.sure, before):
                    yield replace(target, assumed=assumed, outcome=word)


def _kept(topic: Topic, outcome: Outcome, is_so: bool) -> Iterator[tuple[Condition, float, str]]:
    """In which fields an outcome is kept: as a truth, as a value, or behind a threshold."""
    fields = topic.scope.kind.fields
    for name in outcome.fields:
        if fields.get(name) == "boolean":
            yield Condition(name, "=", is_so), 1.0, ""
    for field, kind in fields.items():
        values = _values(topic, field) if kind == "category" else []
        for value in [v for v in values if v.casefold() in outcome.values][:1]:
            yield Condition(field, "=" if is_so else "!=", value), AS_VALUE, ""
    for name, operator, number in outcome.numbers:
        if fields.get(name) == "number":
            asked = Condition(name, operator, number)
            said = f"Taking it that {asked.in_words()}: say the number if it is another."
            yield asked if is_so else asked.opposite(), GUESSED, said


def _truths(topic: Topic) -> Iterator[Target]:
    """A truth that a word names: will my ride be shared?"""
    for field, hit in topic.scope.fields("boolean").items():
        before = topic.scope.describes(hit.places)
        yield from _own(topic, Condition(field, "=", True), hit.fit, before)


def _own(topic: Topic, asked: Condition, fit: float, before: bool = False) -> Iterator[Target]:
    """Of each event whether the condition holds; or whether any such event occurs.

    before  it was said before the name: an important mail is one that occurs
    """
    if topic.scope.clause.is_negated:
        asked = asked.opposite()
    says, fields = f"{_will(asked)}?", frozenset([asked.field])
    one = fit * OTHER_SHAPE if before else fit
    yield Target("event", "boolean", asked.of_own(), says, one, fields)
    conditions = (*topic.others(asked.field), asked)
    yield _any(topic, conditions, fit if before else fit * OTHER_SHAPE)


def _any(topic: Topic, conditions: tuple[Condition, ...], fit: float, by: str = "") -> Target:
    told = tuple(c for c in conditions if c.field != by)
    words = " and ".join(c.in_words() for c in told)
    says = f"will there be a *{topic.type}*{f' where {words}' if words else ''}?"
    value = compared(aggregate("count", topic.type, "", told), ">", 0)
    return Target("window", "boolean", value, says, fit, _fields(told), by)


def _valued(topic: Topic) -> Iterator[Target]:
    """Will my next ride *be* in Bern: of that ride, not whether there is one."""
    if not topic.scope.is_single or not any(t.norm == "be" for t in topic.scope.clause.tokens):
        return
    for asked in topic.conditions:
        if isinstance(asked.value, str):
            yield from _own(topic, asked, 1.0)


def _occurring(topic: Topic, fit: float) -> Iterator[Target]:
    """Whether it happens at all; of each pipe by itself if it is said to happen to pipes."""
    for by in _grouping(topic):
        yield _any(topic, topic.conditions, fit, by)
        fit *= OTHER_SHAPE
    target = _any(topic, topic.conditions, fit)
    if topic.scope.clause.is_negated:
        says = target.says.replace("will there be a", "will there be no")
        none = compared(aggregate("count", topic.type, "", topic.conditions), "=", 0)
        target = replace(target, value=none, says=says)
    yield target


def _grouping(topic: Topic) -> list[str]:
    """Category fields named as things: how likely is a pipe to burst, which pipe will burst."""
    if topic.scope.named is None or topic.sentence.by_person or topic.scope.is_single:
        return []
    return list(topic.scope.fields("category"))[:1]


# ── comparisons ──


def _compared(topic: Topic) -> Iterator[Target]:
    for comparison in topic.scope.clause.comparisons:
        if comparison.is_clock:
            yield from _by_clock(topic, comparison.operator.split()[1], comparison.number)
            continue
        for measured in topic.scope.measured(comparison):
            if measured.field:
                yield from _measured(topic, measured)
            else:
                yield _counted(topic, measured)


def _measured(topic: Topic, measured: Measured) -> Iterator[Target]:
    asked = Condition(measured.field, measured.operator, measured.number)
    if topic.scope.clause.is_negated:
        asked = asked.opposite()
    for shape, fit in _shapes(topic, measured.fit):
        value = compared(_number(topic, shape, asked.field), asked.operator, asked.value)
        says = f"{_will(asked)}?" if shape == "event" else f"{_total(topic, asked)}?"
        fields = frozenset([asked.field])
        yield Target(shape, "boolean", value, says, fit, fields, "", measured.assumed)


def _counted(topic: Topic, measured: Measured) -> Target:
    count = aggregate("count", topic.type, "", topic.conditions)
    value = compared(count, measured.operator, measured.number)
    asked = Condition("count", measured.operator, measured.number)
    said = asked.in_words().replace("`count` is ", "")
    says = f"will the number of *{topic.type}* events{topic.said()} be {said}?"
    return Target("window", "boolean", value, says, measured.fit, _fields(topic.conditions))


def _by_clock(topic: Topic, operator: str, hour: float) -> Iterator[Target]:
    """Before 8: whether the first one is; after 22: whether the last one is."""
    times = [*topic.scope.fields("time"), "time"]
    first = operator.startswith("<")
    for rank, field in enumerate(times[:2]):
        hours = Aggregate("min" if first else "max", Function("hour", Column(topic.type, field)))
        which = "first" if first else "last"
        word = "before" if first else "at or after"
        says = f"will the {which} *{topic.type}* be {word} {hour:g} o’clock (by `{field}`)?"
        value, fit = compared(hours, operator, hour), OTHER_SHAPE if rank else 1.0
        yield Target("window", "boolean", value, says, fit, frozenset([field]) - {"time"})


# ── how many, how much ──


def _count(topic: Topic) -> Iterator[Target]:
    """Of events; or of what a number field counts: how many steps."""
    named = topic.scope.named
    fields = {f: hit.fit for f, hit in topic.scope.fields("number").items()}
    if named is not None and topic.scope.counter:
        fields.setdefault(topic.scope.counter, named.fit)
    for field, fit in list(fields.items())[:2]:
        yield _sum(topic, "window", field, fit)
    value = aggregate("count", topic.type, "", topic.conditions)
    says = f"how many *{topic.type}* events{topic.said()} will there be?"
    fit = OTHER_SHAPE if fields else 1.0
    yield Target("window", "number", value, says, fit, _fields(topic.conditions))


def _how_much(topic: Topic) -> Iterator[Target]:
    scope, form = topic.scope, topic.sentence.form
    fields = scope.by_measure(form.measure)
    for field, hit in scope.fields("number").items():
        fields[field] = max(fields.get(field, 0), hit.fit)
    if not fields and scope.named is not None and not form.measure and form.also is None:
        field = scope.measure or scope.only_number
        fields = {field: OTHER_SHAPE} if field else {}
    for field, fit in sorted(fields.items(), key=lambda f: -f[1])[:3]:
        for shape, sure in _shapes(topic, fit):
            yield _sum(topic, shape, field, sure)


def _sum(topic: Topic, shape: Shape, field: str, fit: float) -> Target:
    says = f"what will its `{field}` be?"
    if shape == "window":
        function = _FUNCTIONS[_function(topic, field)]
        of = f"*{topic.type}*{topic.said(field)}"
        says = f"what will the {function} `{field}` of {of} be?"
    return Target(shape, "number", _number(topic, shape, field), says, fit, frozenset([field]))


# ── which ──


def _which(topic: Topic) -> Iterator[Target]:
    """The value of a category: of the next event, or the most frequent in a stretch of time."""
    for by in _grouping(topic):
        yield _any(topic, topic.conditions, 1.0, by)
        return
    fields = {f: hit.fit for f, hit in topic.scope.fields("category").items()}
    if not fields and topic.scope.named is not None:
        categories = [f for f, kind in topic.scope.kind.fields.items() if kind == "category"]
        fields = {field: OTHER_SHAPE / len(categories) ** 0.5 for field in categories}
    for field, fit in list(fields.items())[:3]:
        for shape, sure in _shapes(topic, fit):
            if shape == "event":
                says = f"which `{field}` will it have?"
                value: Feature = Own(field)
            else:
                of = f"*{topic.type}*{topic.said(field)}"
                says = f"which `{field}` will be the most frequent of {of}?"
                value = aggregate("mode", topic.type, field, topic.others(field))
            yield Target(shape, "category", value, says, sure, frozenset([field]))


_MAKERS: dict[Wanted, Callable[[Topic], Iterator[Target]]] = {
    "yes-no": _yes_no,
    "count": _count,
    "number": _how_much,
    "category": _which,
}


# ── words and expressions that several share ──


def _shapes(topic: Topic, fit: float) -> list[tuple[Shape, float]]:
    """One event is spoken of, or a stretch of time; the other is the less likely."""
    if topic.scope.is_single or topic.scope.has_next:
        return [("event", fit), ("window", fit * OTHER_SHAPE)]
    return [("window", fit), ("event", fit * OTHER_SHAPE)]


def _function(topic: Topic, field: str) -> str:
    asked = {token.norm for token in topic.scope.clause.tokens}
    level = bool(LEVELS & set(field.split("_"))) or bool(asked & {"average", "mean", "usually"})
    return "mean" if level else "sum"


def _number(topic: Topic, shape: Shape, field: str) -> Feature:
    if shape == "event":
        return Own(field)
    return aggregate(_function(topic, field), topic.type, field, topic.others(field))


_FUNCTIONS = {"mean": "average", "sum": "total"}


def _total(topic: Topic, asked: Condition) -> str:
    function = _FUNCTIONS[_function(topic, asked.field)]
    said = asked.in_words().replace(f"`{asked.field}` is ", "")
    return (
        f"will the {function} `{asked.field}` of *{topic.type}*{topic.said(asked.field)} be {said}"
    )


def _will(asked: Condition) -> str:
    return f"will {asked.in_words().replace('` is ', '` be ', 1)}"


def _fields(conditions: tuple[Condition, ...]) -> frozenset[str]:
    return frozenset(condition.field for condition in conditions)


def _values(topic: Topic, field: str) -> list[str]:
    return topic.scope.lexicon.values(topic.type, field)
