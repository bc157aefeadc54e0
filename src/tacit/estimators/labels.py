"""Class labels: the classes that were stated, or those that occur, and each label's number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from tacit.data.schema import Column
from tacit.errors import InputError, UsageError
from tacit.estimators.arrays import WITHOUT_LABEL, in_our_words

LABEL_KINDS = "biufUSO"  # of numpy's types: truth values, numbers, texts
KINDS = (str, bytes, bool, int, float, np.generic)

__all__ = ["Labels", "classes_of_schema", "labels_of"]


@dataclass(frozen=True, slots=True)
class Labels:
    """The classes in order, each record's number among them, and whether they were stated."""

    classes: NDArray[Any]
    numbers: NDArray[np.int64]
    stated: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Of the classes, as a schema spells them: 1 and 1.0 are "1"."""
        return tuple(_spelt(value) for value in self.classes.tolist())


def labels_of(y: Any, classes: Any = None, column: Column | None = None) -> Labels:
    """y as numbers of classes: of `classes`, or of a schema's label, else of those that occur."""
    y = _plain(y)
    values, inverse = np.unique(y, return_inverse=True)
    if classes is not None:
        stated = _stated(classes)
        return _placed(values, inverse, stated, {v: i for i, v in enumerate(stated.tolist())})
    if column is not None and (spelt := _of_schema(column, values)) is not None:
        return _placed(values, inverse, *spelt)
    if len(values) < 2:
        raise InputError(
            "a classifier needs at least two classes, but y has only one class. State all that "
            "may occur (classes=[…]), or give records of another one."
        )
    return Labels(values, inverse.astype(np.int64), stated=False)


def _plain(y: Any) -> NDArray[Any]:
    """The labels as an array; refused before anything is spent if they are no classes."""
    found = np.asarray(y)
    if any(value is None or value != value for value in _objects(found)):
        raise InputError(f"y has missing labels: Input y contains NaN. {WITHOUT_LABEL}")
    if len({isinstance(value, str) for value in _objects(found)}) > 1:
        raise InputError("y holds texts and numbers: give one kind of labels.")
    try:
        check_classification_targets(y)
    except ValueError as error:
        raise in_our_words(error, "A classifier") from None
    if found.dtype.kind not in LABEL_KINDS or not all(
        isinstance(v, KINDS) for v in _objects(found)
    ):
        raise InputError("classes are truth values, numbers or texts: give these as labels.")
    return found


def _objects(values: NDArray[Any]) -> list[Any]:
    return values.ravel().tolist() if values.dtype.kind == "O" else []


def classes_of_schema(column: Column, values: NDArray[Any]) -> NDArray[Any] | None:
    """The classes of a schema's label, in the kind that these values have; None if it has none."""
    found = _of_schema(column, values)
    return None if found is None else found[0]


def _stated(classes: Any) -> NDArray[Any]:
    given = np.asarray(classes)
    if given.dtype.kind == "O" and all(isinstance(value, str) for value in given.ravel()):
        given = given.astype(str)
    listed = given.ndim == 1 and given.dtype.kind != "O"
    found = np.unique(given) if listed else given
    if not listed or len(found) < 2 or len(found) != len(given):
        raise UsageError(
            "classes must be a list of two or more different labels, all texts or all numbers: "
            "every one that may occur."
        )
    return found


def _placed(
    values: NDArray[Any], inverse: NDArray[Any], classes: NDArray[Any], known: dict[Any, int]
) -> Labels:
    """The number of each label; a label that is none of the classes is refused, unnamed."""
    places = [known.get(value, -1) for value in values.tolist()]
    if -1 in places:
        raise InputError(
            f"y has labels that are none of the {len(classes)} classes that were stated. Correct "
            "them, leave these records out, or state the classes anew, if they are public."
        )
    return Labels(classes, np.array(places, dtype=np.int64)[inverse], stated=True)


def _of_schema(column: Column, values: NDArray[Any]) -> tuple[NDArray[Any], dict[Any, int]] | None:
    """A schema's classes in y's own kind, so that predictions compare with y, and the number of
    each label; None if its label has no classes."""
    if column.is_number or column.type == "text":
        return None
    named = column.categories if isinstance(column.categories, tuple) else ("false", "true")
    if len(named) < 2:
        return None
    if values.dtype.kind not in "biuf":
        known = {name: place for place, name in enumerate(named)}
        known.update({alias: known[meant] for alias, meant in column.aliases.items()})
        return np.array(named), known
    if column.type == "boolean":
        return np.array([False, True]).astype(values.dtype), {0: 0, 1: 1}
    try:
        numbers = np.array([float(name) for name in named])
    except ValueError:
        return np.array(named), {}  # then no number is one of them, and y is refused
    if values.dtype.kind != "f" and np.equal(np.mod(numbers, 1), 0).all():
        numbers = numbers.astype(np.int64)
    return numbers, {number: place for place, number in enumerate(numbers.tolist())}


def _spelt(value: Any) -> str:
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else str(value)
