"""Labels: what is known of the answers, computed over the label's stretch and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.errors import UsageError
from tacit.personal.dataset import Dataset
from tacit.personal.durations import SECOND
from tacit.personal.events import Field, Value
from tacit.personal.features.engine import evaluate
from tacit.personal.features.language import parse
from tacit.personal.features.nodes import Aggregate, Events
from tacit.personal.problems.reading import check_asked, reads

if TYPE_CHECKING:
    from tacit.personal.problems.instances import Instances

__all__ = ["TRUTHS", "Labels", "decided", "labels_of"]

TRUTHS = ("false", "true")
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Labels:
    """Numbers, or places in `classes` (of a boolean: false, true); NaN where not known yet."""

    values: Numbers
    kind: Literal["number", "boolean", "category"]
    classes: tuple[str, ...] = ()

    def field(self, name: str, place: int) -> Field | None:
        """One of them as it is meant, or None."""
        value = float(self.values[place])
        if np.isnan(value):
            return None
        if self.kind == "category":
            return Field(name, "category", self.classes[int(value)])
        return Field(name, self.kind, bool(value) if self.kind == "boolean" else value)


def labels_of(instances: Instances) -> Labels:
    """The label of each instance whose stretch is over."""
    if isinstance(instances.label, str):
        return _expressed(instances, instances.label)
    return _computed(instances, instances.label)


def _expressed(instances: Instances, text: str) -> Labels:
    label = parse(text)
    read = reads(label)
    check_asked(read, instances.known)
    counts = [Aggregate("count", Events(name)) for name in sorted(read.types)]
    asked = [label, *(counts if instances.is_open else [])]
    columns, kinds, values = evaluate(asked, instances.dataset, instances.label_frame)
    known = instances.is_over
    if len(asked) > 1:  # an open stretch says nothing until something has happened in it
        known = known & (columns[:, 1:] > 0).any(axis=1)
    numbers = np.where(known, columns[:, 0], np.nan)
    if kinds[0] == "category":
        return _classified(numbers, values[str(label)])
    boolean = kinds[0] == "boolean"
    return Labels(numbers, "boolean" if boolean else "number", TRUTHS if boolean else ())


def decided(instances: Instances) -> NDArray[np.int64]:
    """When each answer was known: at the end of its stretch, or, where that has none, with the last
    of the events that the label reads. (Where none has happened, the answer is not known.)"""
    if not instances.is_open or not isinstance(instances.label, str):
        return instances.label_until
    names = sorted(reads(parse(instances.label)).types)
    lasts = [parse(f"last({name}.time)") for name in names]
    seconds, _, _ = evaluate(lasts, instances.dataset, instances.label_frame)
    latest = np.nan_to_num(seconds, nan=-np.inf).max(axis=1, initial=-np.inf)
    there = np.isfinite(latest)
    # The engine tells moments in seconds: the next whole one is surely not before.
    after = (np.ceil(np.where(there, latest, 0)) * SECOND).astype(np.int64) + SECOND
    return np.where(there, np.minimum(after, instances.label_until), instances.cutoffs)


def _classified(codes: Numbers, names: Sequence[str]) -> Labels:
    """Places among the values that occur, in their order, whatever order the engine found."""
    there = ~np.isnan(codes)
    found = sorted({names[int(code)] for code in np.unique(codes[there])})
    rank = np.array([found.index(n) if n in found else -1 for n in names], np.float64)
    places = np.full(len(codes), np.nan)
    places[there] = rank[codes[there].astype(np.int64)]
    return Labels(places, "category", tuple(found))


def _computed(instances: Instances, label: Callable[[Dataset], Value]) -> Labels:
    """By a function of the events of each stretch, for those who code: it sees nothing else."""
    frame = instances.label_frame
    values = [
        _plain(label(frame.seen(instances.dataset, place))) if over else None
        for place, over in enumerate(instances.is_over)
    ]
    said = {type(value) for value in values if value is not None}
    if said == {str}:
        names = sorted({value for value in values if isinstance(value, str)})
        codes = [names.index(v) if isinstance(v, str) else np.nan for v in values]
        return Labels(np.array(codes, np.float64), "category", tuple(names))
    if not (said <= {bool} or said <= {int, float}):
        raise UsageError("a label function returns numbers, truths or texts, and None for unknown.")
    numbers = np.array([np.nan if v is None else float(v) for v in values], np.float64)  # type: ignore[arg-type]
    return Labels(numbers, "boolean", TRUTHS) if said == {bool} else Labels(numbers, "number")


def _plain(value: Any) -> Value:
    """numpy's numbers and truths as Python's; what is no finite number is not known."""
    plain: Value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain
