"""Class labels as scikit-learn has them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

__all__ = ["class_numbers"]


def class_numbers(y: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The classes in order, and each label's place among them."""
    check_classification_targets(y)
    classes, numbers = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"a classifier needs at least two classes, but there is one class: {len(classes)}"
        )
    return classes, numbers.astype(np.int64)
