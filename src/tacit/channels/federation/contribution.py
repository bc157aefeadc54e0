"""A holder's sum for one round, from its records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.channels.federation.holder import Contribute
from tacit.channels.federation.secret_samples import Samples, fresh_samples
from tacit.channels.roles.growing import FileNote
from tacit.channels.studies.study import Study
from tacit.data.records import Records
from tacit.data.remaining import remaining
from tacit.engines import Engine, Serial
from tacit.privacy.policy import LeftOut
from tacit.programs.holding import Holding
from tacit.programs.program import Query

__all__ = ["Sum", "from_records"]


@dataclass(frozen=True, slots=True)
class Sum:
    """What a holder shares in one round, and which records of followed files went into it."""

    total: NDArray[np.int64]
    used: Sequence[FileNote] = ()


def from_records(
    study: Study,
    records: Records,
    engine: Engine | None = None,
    left_out: Callable[[], LeftOut] = lambda: LeftOut("data"),
    samples: Samples = fresh_samples,
) -> Contribute:
    """Answers every round with the sum over the same records, but for people who were left out
    before that round; or over the round's own secret sample of them."""
    add = (engine or Serial()).map_sum
    prepared: dict[LeftOut, Holding] = {}

    def holding() -> Holding:
        absent = left_out()
        if absent not in prepared:
            prepared.clear()
            stay = remaining(records, absent)
            prepared[absent] = Holding(
                study.program(), study.first_state(), stay, study.promise, add
            )
        return prepared[absent]

    def contribute(number: int, state: Any, query: Query) -> Sum:
        rate = study.plan().stage(number).sampling
        return Sum(holding().sum(state, query, rate, samples(number)))

    return contribute
