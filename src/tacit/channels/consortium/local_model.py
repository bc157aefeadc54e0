"""What a party brings to a consortium: a model that it has trained alone."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.channels.studies.study import Study
from tacit.data.encode import Encoded
from tacit.data.records import Records
from tacit.errors import InputError

__all__ = ["Local", "trained"]


@dataclass(frozen=True, slots=True)
class Local:
    """The trained vector, and of how many records. Both are private: neither is ever shown."""

    vector: NDArray[np.float64] = field(repr=False)
    records: int = field(repr=False)


def trained(study: Study, records: Records) -> Local:
    """Train on all records of this party, which must be as many as the study counts on."""
    columns = zip(*records.batches(), strict=True)
    whole = Encoded(*(None if c[0] is None else np.concatenate(c) for c in columns))  # type: ignore[arg-type]
    count, terms = len(whole.X), study.agreed_consortium
    if not terms.smallest <= count <= study.take_part.records:
        raise InputError(
            f"the study takes parties with {terms.smallest} to {study.take_part.records} records, "
            "and this one has fewer or more: the noise would not fit."
        )
    return Local(study.averaged().train(whole, study.schema), count)
