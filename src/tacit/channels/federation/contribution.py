"""A holder's sum for one round, from its records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.channels.federation.holder import Contribute
from tacit.channels.roles.growing import FileNote
from tacit.channels.studies.study import Study
from tacit.data.records import Records
from tacit.engines import Engine, Serial
from tacit.programs.holding import Holding
from tacit.programs.program import Query

__all__ = ["Sum", "from_records"]


@dataclass(frozen=True, slots=True)
class Sum:
    """What a holder shares in one round, and which records of followed files went into it."""

    total: NDArray[np.int64]
    used: Sequence[FileNote] = ()


def from_records(study: Study, records: Records, engine: Engine | None = None) -> Contribute:
    """Answers every round with the sum over the same records."""
    add = (engine or Serial()).map_sum
    holding = Holding(study.program(), study.first_state(), records, study.promise, add)

    def contribute(number: int, state: Any, query: Query) -> Sum:
        # The sample is the holder's own secret, drawn anew in each round.
        return Sum(holding.sum(state, query, study.plan().stage(number).sampling))

    return contribute
