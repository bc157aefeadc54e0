"""Until when the past is known.

An export ends on the day it was made. Days after it are not days on which nothing happened, and
nothing may be learned from them.
"""

from __future__ import annotations

import numpy as np

from tacit.personal.dataset import Dataset

__all__ = ["recorded_until"]


def recorded_until(dataset: Dataset, type_: str, now: int) -> int:
    """The last moment, now at the latest, of anything from the sources that have such events."""
    import pyarrow.compute as pc

    sources = pc.unique(dataset.of(type_).table["source"].cast("string"))
    last = [
        int(table.times[np.flatnonzero(there)[-1]])
        for table in dataset.tables.values()
        if not table.kind.static
        for there in [pc.is_in(table.table["source"].cast("string"), value_set=sources).to_numpy()]
        if there.any()
    ]
    return min(now, max(last, default=now))
