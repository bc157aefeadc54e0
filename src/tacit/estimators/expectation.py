"""What an estimator can be expected to find, asked before anything is spent; and a warning if it is
nothing."""

from __future__ import annotations

import warnings
from collections.abc import Sized
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.data.schema import Column, Schema
from tacit.errors import UsageError, UtilityWarning
from tacit.estimators.certified import whole_number
from tacit.estimators.run import known_schema
from tacit.privacy.promise import Promise
from tacit.programs.expected import SEARCHED, ExpectedError, expected_error
from tacit.programs.program import Program

if TYPE_CHECKING:
    from tacit.estimators.base import PrivateEstimator

__all__ = ["expected_of", "expected_of_table", "warn_if_useless"]

REMEDY = "Give more records, fewer columns or a larger epsilon; see `expected_error`."


def expected_of(
    estimator: PrivateEstimator,
    program: Program[Any, Any],
    records: int,
    features: int | None = None,
    classes: Any = None,
) -> ExpectedError:
    """From the parameters, the number of records and the width: no record is read."""
    schema = _typical(estimator, _width(estimator, features), classes)
    promise = Promise(estimator.epsilon, estimator.delta, adjacency=estimator.adjacency)  # type: ignore[arg-type]
    stated = estimator.bounds is not None or estimator.schema is not None
    return expected_error(program, schema, promise, records, factor=1.0 if stated else SEARCHED)


def expected_of_table(
    program: Program[Any, Any], schema: Schema, promise: Promise, records: int
) -> ExpectedError:
    """The same for a table: its schema says all but how many records there are."""
    return expected_error(program, schema, promise, records)


def warn_if_useless(expected: ExpectedError, stacklevel: int) -> None:
    """A word to whoever has the records; it depends on their number, so no certificate has it."""
    if expected.useless:
        warnings.warn(f"{expected} {REMEDY}", UtilityWarning, stacklevel=stacklevel + 1)


def _width(estimator: PrivateEstimator, features: int | None) -> int:
    known = known_schema(estimator.schema)
    if features is not None:
        return whole_number(features, "features")
    if known is not None:
        return len(known.features)
    fitted = getattr(estimator, "n_features_in_", None)
    if fitted is not None:
        return int(fitted)
    if estimator.bounds is not None:
        widest = max(np.size(end) for end in estimator.bounds)
        if widest > 1:
            return int(widest)
    raise UsageError("say how many columns there will be: expected_error(n, features=…).")


def _typical(estimator: PrivateEstimator, width: int, classes: Any) -> Schema:
    """Numbers, as fit encodes them; what their bounds are makes no difference."""
    columns = [Column(name=f"x{i}", type="number", bounds=(-1.0, 1.0)) for i in range(width)]
    if hasattr(estimator, "classes"):
        count = _count(estimator, classes)
        names = tuple(str(i) for i in range(count))
        columns.append(Column(name="y", type="category", role="label", categories=names))
    elif hasattr(estimator, "label_bounds"):
        columns.append(Column(name="y", type="number", role="label", bounds=(-1.0, 1.0)))
    return Schema(columns=tuple(columns))


def _count(estimator: Any, classes: Any) -> int:
    """How many classes: as given, stated, in the schema or fitted; two otherwise."""
    if classes is not None and not isinstance(classes, (Sized, np.ndarray)):
        return max(2, whole_number(classes, "classes"))
    known = known_schema(estimator.schema)
    label = None if known is None else known.label
    named = None if label is None else label.categories
    for stated in (classes, estimator.classes, named):
        if isinstance(stated, (Sized, np.ndarray)):
            return max(2, len(stated))
    return len(estimator.classes_) if estimator.__sklearn_is_fitted__() else 2
