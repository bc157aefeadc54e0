"""Which columns say nothing that an earlier, simpler one does not say."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.personal.matrix import FeatureMatrix

__all__ = ["without_redundant"]

ALIKE = 0.999  # correlation

Floats = NDArray[np.float64]


def without_redundant(matrix: FeatureMatrix) -> tuple[tuple[str, ...], dict[str, str]]:
    """The names to keep, and why each of the others goes. Looks at these rows and nothing else:
    give it the rows that are trained on, so that the choice knows nothing of those tested on.

    Two numbers are alike if they are missing in the same rows and correlate in the others: where
    one is missing and the other is not, the two say different things. Categories have no scale:
    they are alike if they tell the same rows apart.
    """
    kept: dict[tuple[bytes, bool], list[tuple[str, Floats]]] = {}
    dropped: dict[str, str] = {}
    for place, name in enumerate(matrix.names):
        column, is_category = matrix.columns[:, place], matrix.kinds[place] == "category"
        known = ~np.isnan(column)
        if reason := _alone(column[known]):
            dropped[name] = reason
            continue
        alike = kept.setdefault((known.tobytes(), is_category), [])
        score = column[known] if is_category else _score(column[known])
        same = np.array_equal if is_category else _correlate
        twin = next((other for other, had in alike if same(score, had)), None)
        if twin is None:
            alike.append((name, score))
        else:
            dropped[name] = f"says the same as {twin}"
    names = [name for name in matrix.names if name not in dropped]
    return tuple(names), dropped


def _alone(known: Floats) -> str | None:
    if len(known) == 0:
        return "never known"
    return "always the same" if known.min() == known.max() else None


def _score(known: Floats) -> Floats:
    """Centred and of length one, so that products are correlations."""
    centred = known - known.mean()
    centred = centred / np.abs(centred).max()
    made: Floats = centred / np.sqrt(centred @ centred)
    return made


def _correlate(score: Floats, had: Floats) -> bool:
    return abs(float(score @ had)) > ALIKE
