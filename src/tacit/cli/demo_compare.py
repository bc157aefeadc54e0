"""What the demonstration compares a federation with, on the same records."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.channels.central import Central
from tacit.channels.federation.local import Federation
from tacit.data.encode import Encoded
from tacit.data.records import ArrayRecords
from tacit.data.schema import Schema
from tacit.privacy.promise import Promise
from tacit.programs.logistic import Logistic, LogisticModel

__all__ = ["Comparison", "accuracy", "compared"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Accuracies on the test part; `alone` has one for each hospital."""

    majority: float
    no_privacy: float
    alone: tuple[float, ...]
    noise_only: float


def accuracy(model: LogisticModel, test: Encoded) -> float:
    return float((model.predict(test.X) == test.y).mean())


def compared(
    parts: Sequence[Encoded],
    test: Encoded,
    schema: Schema,
    promise: Promise,
    say: Callable[[str], None],
) -> Comparison:
    records = [ArrayRecords(part.X, part.y) for part in parts]
    whole = ArrayRecords(
        np.concatenate([part.X for part in parts]),
        np.concatenate([part.y for part in parts if part.y is not None]),
    )
    say("for comparison: all records in one place, no privacy …")
    exact = Central().run(Logistic(), whole, schema, Promise(math.inf)).model
    alone = []
    for number, own in enumerate(records, start=1):
        say(f"for comparison: hospital {number} alone, same promise …")
        model = Central().run(Logistic(), own, schema, promise).model
        alone.append(accuracy(model, test))
    say("for comparison: every hospital adds its own noise …")
    # n holders who each add the full noise to what they send: the sum has n times the variance.
    # n servers who each add it to the sum give exactly the same law.
    noisy = Federation(servers=len(parts)).run(Logistic(), records, schema, promise).model
    share = float(np.mean(test.y == 1))
    return Comparison(
        max(share, 1 - share), accuracy(exact, test), tuple(alone), accuracy(noisy, test)
    )
