"""Arrays of numbers, as scikit-learn checks them, with errors that say what to do.

What scikit-learn, numpy and pandas say of a value they cannot read may show it. Nothing of theirs
is passed on but sentences about shapes, names and types; all else has words of our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import validation

from tacit.errors import InputError

__all__ = ["WITHOUT_LABEL", "in_our_words", "numbers_of", "validate_data"]

SCHEMA = (
    "schema = Schema.draft(X), then state its bounds and categories, and give it as schema=schema "
    "(docs/guide/estimators.md)."
)
NO_NUMBERS = (
    f"holds texts, categories or dates, of which a schema must say what they mean: {SCHEMA}"
)
# What Python and numpy say of a text that is no number; both show it.
NO_NUMBER = (
    "could not convert",
    "could not be promoted",
    "cannot cast",
    "cannot be converted",
    "invalid literal",
    "unable to parse",
)
# The beginnings of sentences of scikit-learn's that speak of shapes, names and types alone, and
# what to do then.
HARMLESS = {
    "Found array with dim": "Give one row per record, one column per feature.",
    "Found array with": "Give at least one record and one column.",
    "Found input variables with inconsistent": "Give one label for each record, in their order.",
    "Input X contains infinity": "Correct these values, or give a gap in their place.",
    "Input y contains infinity": "Correct these values, or leave their records out.",
    "X has ": "Give the columns of the fit, in their order.",
    "The feature names should match": "Give the columns of the fit, in their order.",
    "Feature names are only supported": "Name all columns by texts: X.columns.astype(str).",
    "This ": "Give y; or a table with a label column and a schema that names it.",
    "y should be a 1d array": "Give one label for each record.",
    "Sparse data was passed": "Give a dense array.",
    "Unknown label type": "For numbers, take tacit.estimators.LinearRegression.",
}
# The rest, by a part of what was said.
OURS = {
    "complex data": "Complex data not supported. Give real and imaginary part as two columns.",
    "got scalar": "X is no table: give one row per record, one column per feature.",
    "expected 2d array": "X must have two dimensions. Reshape your data: X.reshape(-1, 1) if it is "
    "one column, X.reshape(1, -1) if it is one record.",
    "2-dimensional container": "X is one column: give a frame with one row per record.",
    "inhomogeneous": "the rows of X differ in length: give each record a value in every column.",
    "with a sequence": "X holds lists within its cells: give one number in each.",
    "too large": "X or y holds whole numbers beyond what a float can hold: scale them first.",
    "one array or dtype": "X has no columns: Found array with 0 feature(s).",
}
WITHOUT_LABEL = 'Leave these records out, or give a schema whose label has when_missing = "drop".'
TIMES = ("date", "time", "duration", "interval", "period")  # how names of such types begin


class NotNumbers(InputError, TypeError):
    """Of another kind than arrays of numbers; scikit-learn's own error is a TypeError too."""


def validate_data(estimator: Any, X: Any, *args: Any, **options: Any) -> Any:
    """As scikit-learn's. A sparse matrix becomes an array: noise leaves nothing sparse."""
    _refuse_unreadable(X, "X")
    for y in (*args, options.get("y")):
        _refuse_unreadable(y, "y")
    if estimator._takes_sparse:
        X = _dense(X)
    try:
        return validation.validate_data(estimator, X, *args, **options)
    except InputError:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        raise in_our_words(error, type(estimator).__name__) from None


def in_our_words(error: Exception, name: str) -> InputError:
    """The same without any value of the data, and with a remedy."""
    text = str(error)
    lower = text.lower()
    if any(words in lower for words in NO_NUMBER):
        return InputError(f"X {NO_NUMBERS}")
    if "NaN" in text:
        return _missing(text.splitlines()[0].rstrip("."), name)
    for beginning, remedy in HARMLESS.items():
        if text.startswith(beginning):
            between = "\n" if "\n" in text else " " if text.endswith(".") else ". "
            kind = NotNumbers if isinstance(error, TypeError) else InputError
            return kind(f"{text.strip()}{between}{remedy}")
    if "argument must be" in lower:
        return NotNumbers(
            "X holds what is no number: each value's argument must be a string or a real number. "
            f"Of dates, categories and the like a schema must say what they mean: {SCHEMA}"
        )
    for part, words in OURS.items():
        if part in lower:
            return InputError(words)
    return InputError(
        "X or y cannot be read as numbers: give one row per record, one number per column; or "
        f"have a schema say what else they hold: {SCHEMA}"
    )


def _missing(text: str, name: str) -> InputError:
    if not text.startswith("Input X"):
        return InputError(f"y has missing labels: {text}. {WITHOUT_LABEL}")
    return InputError(
        f"{text}. {name} takes no missing values without a schema: say there what they mean "
        "(when_missing), or use tacit.estimators.Imputer."
    )


def numbers_of(y: Any) -> NDArray[np.float64]:
    """Labels of a regression."""
    try:
        return np.asarray(y, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        raise InputError(
            "y holds what is no number: a regression needs numbers. Convert the labels, or take "
            "a classifier."
        ) from None


def _refuse_unreadable(values: Any, what: str) -> None:
    """What would be read as something that it is not, or is said better here."""
    if sparse.issparse(values):
        return
    if isinstance(values, Mapping) or hasattr(values, "collect"):
        raise NotNumbers(
            f"{what} is a {type(values).__name__}, which is read through a schema only: {SCHEMA}"
            if isinstance(values, Mapping)
            else f"{what} is a lazy frame: give {what}.collect()."
        )
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InputError(
            f"{what} is a masked array, whose mask would be lost: fill the gaps with NaN "
            f"({what}.filled(np.nan)), and use tacit.estimators.Imputer or a schema."
        )
    if any(_is_time(dtype) for dtype in _dtypes(values)):
        remedy = f"X {NO_NUMBERS}" if what == "X" else "y holds dates: give texts or numbers."
        raise InputError(remedy)
    names = [str(name) for name in getattr(values, "columns", ())] if what == "X" else []
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"X has {twice!r} twice. Give every column a name of its own.")


def _dtypes(values: Any) -> list[Any]:
    """Of an array, a column, or each column of a frame of pandas, polars or Arrow."""
    found = getattr(values, "dtypes", None)
    if found is None:
        found = getattr(getattr(values, "schema", None), "types", None)
    if found is None:
        found = getattr(values, "dtype", None)
    if found is None or isinstance(found, (np.dtype, str)) or not hasattr(found, "__iter__"):
        return [found]
    return list(found)


def _is_time(dtype: Any) -> bool:
    if isinstance(dtype, np.dtype):
        return dtype.kind in "mM"
    return str(dtype).lower().startswith(TIMES)


def _dense(X: Any) -> Any:
    if sparse.issparse(X):
        return X.toarray()
    thin = [str(dtype).startswith("Sparse") for dtype in _dtypes(X)]
    if any(thin) and hasattr(X, "columns"):
        kinds = {c: d.subtype for c, d, t in zip(X.columns, X.dtypes, thin, strict=True) if t}
        return X.astype(kinds)
    return X
