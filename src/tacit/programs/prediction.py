"""What a model says of single records, whatever the program, and what classes are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.data.schema import Column

__all__ = ["Kind", "Prediction", "class_names", "within"]

Kind = Literal["class", "value", "cluster", "components"]


@dataclass(frozen=True, slots=True)
class Prediction:
    """One row per record.

    kind     class: a place among the label's classes; value: in the label's own unit; cluster: a
             number from 0; components: coordinates, one column each
    scores   how sure: probabilities of the classes or clusters, or for k-means the distance to
             each centre, one column each; None where there is nothing more to say
    """

    kind: Kind
    values: NDArray[Any]
    scores: NDArray[np.float64] | None = None


def within(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Vectors as a fit sees them: encoded values lie in [−1, 1], and others are brought there; what
    is no number is 0.

    Every model says what it says of these. A model knows nothing beyond the public bounds: a
    Gaussian that is narrow there would be sure of anything far outside.
    """
    kept: NDArray[np.float64] = np.clip(np.asarray(X, dtype=np.float64), -1.0, 1.0)
    np.copyto(kept, 0.0, where=np.isnan(kept))
    return kept


def class_names(label: Column) -> tuple[str, ...]:
    """The classes of a label, in the order of their numbers; none for a plain number."""
    if label.is_number:
        return tuple(f"bin {i}" for i in range(len(label.edges) + 1)) if label.edges else ()
    if isinstance(label.categories, tuple):
        return label.categories
    return ("false", "true") if label.type == "boolean" else ()
