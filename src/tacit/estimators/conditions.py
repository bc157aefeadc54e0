"""What must be public for an estimator's promise to hold, in words, for its certificate.

Noise protects what a program adds up. What `fit` takes from its arguments without noise is not
protected: it is listed here, for each fit only what that fit took.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["ITEMS_READ_OFF", "SCORES_ARE_EXACT", "conditions"]

COLUMNS = "The number of columns is public."
NAMED_COLUMNS = "The number of columns and their names are public."
CLASSES_READ_OFF = (
    "The set of classes is public: it was read off the labels, without noise. Give `classes`, or a "
    "schema with a label, to state it."
)
ITEMS_READ_OFF = (
    "The set of items is public: it was read off the baskets, without noise. Give `items` to state "
    "it."
)
BEFORE = (
    "What was done to the records before the fit (scaling, encoding, choosing columns or records) "
    "does not depend on them: a step that was fitted on them is not covered."
)
PARAMETERS = "The parameters were chosen without these records."
SCORES_ARE_EXACT = (
    "The ledger counts fits alone. Scores of a cross-validation and the choice of a grid search "
    "read the records without noise: neither the ledger nor this promise covers them."
)


def conditions(
    *, named: bool, stated: Sequence[str] = (), classes_read_off: bool = False
) -> tuple[str, ...]:
    """The conditions of one fit.

    named              whether the columns' names are kept
    stated             what the caller stated instead of having it learned: bounds, classes
    classes_read_off   whether the classes are those that occur in the labels
    """
    found = [NAMED_COLUMNS if named else COLUMNS]
    if classes_read_off:
        found.append(CLASSES_READ_OFF)
    if stated:
        listed = " and ".join([", ".join(stated[:-1]), stated[-1]] if stated[1:] else stated)
        found.append(f"Public, and not read off these records: the stated {listed}.")
    return (*found, PARAMETERS, BEFORE)
