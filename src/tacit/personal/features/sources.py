"""What an aggregate is over: the rows of one type, or buckets of one length."""

from __future__ import annotations

from collections.abc import Iterator

from tacit.personal.durations import written
from tacit.personal.features.nodes import Aggregate, Events, leaves
from tacit.personal.features.vocabulary import AGGREGATES

__all__ = ["MOST_BUCKETS", "bucketed", "check_source", "finest"]

MOST_BUCKETS = 10_000  # of one instance; a stranger's problem must not ask for every second


def bucketed(aggregate: Aggregate) -> list[Aggregate]:
    """The aggregates for each bucket that it is over; none if it is over rows."""
    return [leaf for leaf in leaves(aggregate.of) if isinstance(leaf, Aggregate)]


def finest(aggregate: Aggregate) -> int | None:
    """The shortest buckets anywhere inside."""
    inner = [length for leaf in bucketed(aggregate) for length in (leaf.every, finest(leaf))]
    return min((length for length in inner if length is not None), default=None)


def check_source(aggregate: Aggregate, within: bool) -> Iterator[str]:
    """What is wrong with it. `within` another aggregate it stands for buckets, and must say so."""
    found = list(leaves(aggregate.of))
    if not found:
        yield "an aggregate is over events: name their type, or a field of theirs."
    if any(isinstance(leaf, Events) for leaf in found) and not isinstance(aggregate.of, Events):
        yield "events themselves have no value: name a field of theirs, such as ride.price."
    buckets = bucketed(aggregate)
    if len({leaf.type for leaf in found if not isinstance(leaf, Aggregate)}) > 1 or (
        buckets and len(buckets) < len(found)
    ):
        yield "an aggregate is over events of one type at a time."
    if len({leaf.every for leaf in buckets}) > 1:
        yield "buckets inside one aggregate must all be of one length."
    yield from _form(aggregate)
    yield from _lengths(aggregate, within)


def _form(aggregate: Aggregate) -> Iterator[str]:
    name, means = aggregate.name, AGGREGATES[aggregate.name]
    if isinstance(aggregate.of, Events):
        type_ = aggregate.of.type
        if not means.events:
            yield f"{name} is of a field: {name}({type_}.field)."
        if name == "share" and aggregate.where is None:
            yield f'share is of a condition: share({type_} where city = "Bern").'
    elif not means.takes:
        yield f"{name} is of events, not of values: {name}(ride), {name}(ride where price > 10)."


def _lengths(aggregate: Aggregate, within: bool) -> Iterator[str]:
    name, every, window = aggregate.name, aggregate.every, aggregate.window
    if within and every is None:
        yield f"inside another aggregate, say for how long each: {name}(… per 1d)."
    if not within and every is not None:
        yield f"`per` makes many values; take an aggregate of them: mean({name}(… per 1d), 28d)."
    if every is not None and window is not None:
        yield "the window belongs to the outer aggregate: mean(count(ride per 1d), 28d)."
    shortest, longest = finest(aggregate), window if every is None else every
    if shortest is None or not isinstance(longest, int):
        return
    outermost = max(leaf.every or 0 for leaf in bucketed(aggregate))
    if outermost > longest:
        yield f"buckets of {written(outermost)} do not fit into {written(longest)}."
    if longest // shortest > MOST_BUCKETS:
        yield f"{longest // shortest} buckets; {MOST_BUCKETS} are the most. Take longer ones."
