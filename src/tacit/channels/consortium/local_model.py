"""What a party brings to a consortium: a model that it has trained alone."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.channels.studies.study import Study
from tacit.data.records import Records, whole
from tacit.errors import InputError

__all__ = ["Local", "trained"]


@dataclass(frozen=True, slots=True)
class Local:
    """The trained vector, and of how many records. Both are private: neither is ever shown."""

    vector: NDArray[np.float64] = field(repr=False)
    records: int = field(repr=False)


def trained(study: Study, records: Records) -> Local:
    """Train on all records of this party, which must be as many as the study counts on."""
    everything = whole(records)
    count, terms = len(everything.X), study.agreed_consortium
    if not terms.smallest <= count <= study.take_part.records:
        raise InputError(
            f"the study takes parties with {terms.smallest} to {study.take_part.records} records, "
            "and this one has fewer or more: the noise would not fit."
        )
    return Local(study.averaged().train(everything, study.schema), count)
