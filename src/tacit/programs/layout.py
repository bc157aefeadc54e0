"""Which coordinates of an encoded vector belong to which column of the schema."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.data.encode import Encoder
from tacit.data.schema import Column, Schema

__all__ = ["layout", "owners"]


def layout(schema: Schema) -> list[tuple[Column, slice]]:
    """Each feature with its coordinates, in the encoder's order."""
    found, start = [], 0
    for column in schema.features:
        stop = start + Encoder(Schema(columns=(column,))).width
        found.append((column, slice(start, stop)))
        start = stop
    return found


def owners(schema: Schema) -> NDArray[np.int64]:
    """For each coordinate, the place of its column among the features."""
    widths = [place.stop - place.start for _, place in layout(schema)]
    return np.repeat(np.arange(len(widths), dtype=np.int64), widths)
