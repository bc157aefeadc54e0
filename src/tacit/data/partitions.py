"""Cutting a data set among holders, for experiments: disjoint parts that cover it, from a seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator, default_rng

from tacit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

__all__ = ["partition"]

REDRAWS = 1000


def partition(
    data: Any,
    holders: int | None = None,
    how: str | Sequence[int] = "even",
    *,
    seed: int = 0,
    alpha: float = 0.5,
    label: str | ArrayLike | None = None,
    least: int = 1,
) -> list[Any]:
    """Split records among holders; each part is of the same kind as `data`.

    data     a Dataset (its train part), a pyarrow table, a pandas or polars frame, an array, or a
             tuple of arrays (X, y)
    holders  how many; may be left out where `how` says it
    how      "even": at random, sizes differing by one at most
             [5000, 300, …]: at random, with these sizes, which add up to the records
             "column:NAME": by the values of a column (hospital, course, person). Fewer holders
             than values: values are dealt out whole, the largest first to the smallest holder
             "dirichlet": each label's records in shares drawn from Dirichlet(alpha); the smaller
             alpha, the less alike the holders (Hsu, Qi, Brown 2019)
    label    for "dirichlet": a column's name, or one value per record; a Dataset and (X, y) know it
    least    for "dirichlet": each holder gets at least so many records

    This draws no noise and protects nobody: it makes experiments repeatable.
    """
    if hasattr(data, "train") and hasattr(data, "schema"):  # a Dataset
        label = data.schema.label.name if label is None and data.schema.label else label
        data = data.train
    rows = _length(data)
    generator = default_rng(seed)
    if not isinstance(how, str):
        parts = _sized(rows, holders, list(how), generator)
    elif how == "even":
        sizes = _even_sizes(rows, _count(holders, rows))
        parts = _sized(rows, None, sizes, generator)
    elif how.startswith("column:"):
        parts = _by_value(_column(data, how.removeprefix("column:")), holders)
    elif how == "dirichlet":
        labels = _labels(data, label, rows)
        parts = _dirichlet(labels, _count(holders, rows), alpha, least, generator)
    else:
        raise UsageError(
            f'how must be "even", a list of sizes, "column:NAME" or "dirichlet", not {how!r}.'
        )
    return [_take(data, np.sort(part)) for part in parts]


def _length(data: Any) -> int:
    arrays = data if isinstance(data, tuple) else (data,)
    if not arrays or any(not hasattr(a, "__len__") for a in arrays):
        raise UsageError("data must be a table, an array, or a tuple of arrays.")
    lengths = {len(a) for a in arrays}
    if len(lengths) != 1:
        raise UsageError(f"the arrays differ in length: {sorted(lengths)}.")
    rows = lengths.pop()
    if rows == 0:
        raise UsageError("there are no records to split.")
    return rows


def _count(holders: int | None, rows: int) -> int:
    if holders is None:
        raise UsageError("say how many holders there are.")
    if int(holders) != holders or not 1 <= holders <= rows:
        raise UsageError(f"{rows} records can be split among 1 to {rows} holders, not {holders}.")
    return int(holders)


def _even_sizes(rows: int, holders: int) -> list[int]:
    return [rows // holders + (i < rows % holders) for i in range(holders)]


def _sized(
    rows: int, holders: int | None, sizes: list[int], generator: Generator
) -> list[NDArray[np.intp]]:
    if holders is not None and holders != len(sizes):
        raise UsageError(f"{len(sizes)} sizes were given for {holders} holders.")
    if any(int(s) != s or s < 1 for s in sizes):
        raise UsageError(f"sizes must be whole numbers of at least 1, not {sizes}.")
    if sum(sizes) != rows:
        raise UsageError(f"sizes add up to {sum(sizes)}, but there are {rows} records.")
    return np.split(generator.permutation(rows), np.cumsum(sizes)[:-1])


def _by_value(values: NDArray[Any], holders: int | None) -> list[NDArray[np.intp]]:
    _, codes = np.unique(values, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(codes))[:-1])
    if holders is None or holders == len(groups):
        return groups
    if not 1 <= holders < len(groups):
        raise UsageError(f"the column has {len(groups)} values; it cannot serve {holders} holders.")
    dealt: list[list[NDArray[np.intp]]] = [[] for _ in range(holders)]
    sizes = [0] * holders
    for group in sorted(groups, key=len, reverse=True):
        smallest = sizes.index(min(sizes))
        dealt[smallest].append(group)
        sizes[smallest] += len(group)
    return [np.concatenate(part) for part in dealt]


def _dirichlet(
    labels: NDArray[Any], holders: int, alpha: float, least: int, generator: Generator
) -> list[NDArray[np.intp]]:
    if not 0 < alpha < np.inf:
        raise UsageError(f"alpha must be a number above 0, not {alpha}.")
    if least < 0 or least * holders > len(labels):
        raise UsageError(f"{len(labels)} records cannot give {holders} holders {least} each.")
    for _ in range(REDRAWS):
        parts: list[list[NDArray[np.intp]]] = [[] for _ in range(holders)]
        for value in np.unique(labels):
            rows = generator.permutation(np.flatnonzero(labels == value))
            shares = generator.dirichlet([alpha] * holders)
            cuts = np.rint(np.cumsum(shares)[:-1] * len(rows)).astype(int)
            for part, piece in zip(parts, np.split(rows, cuts), strict=True):
                part.append(piece)
        joined = [np.concatenate(part) for part in parts]
        if min(len(part) for part in joined) >= least:
            return joined
    raise UsageError(
        f"no draw in {REDRAWS} gave every holder {least} record(s): raise alpha, or take fewer "
        "holders."
    )


def _column(data: Any, name: str) -> NDArray[Any]:
    names = getattr(data, "column_names", getattr(data, "columns", None))
    if names is None or isinstance(data, tuple):
        raise UsageError("only a table can be split by a column.")
    if name not in list(names):
        raise UsageError(f"there is no column {name!r}. There are: {', '.join(map(str, names))}.")
    column = data[name]
    values = np.asarray(column.to_pylist() if hasattr(column, "to_pylist") else column.to_numpy())
    if values.dtype == object:  # None cannot be sorted beside text
        values = np.array(["" if v is None else str(v) for v in values])
    return values


def _labels(data: Any, label: str | ArrayLike | None, rows: int) -> NDArray[Any]:
    if isinstance(label, str):
        return _column(data, label)
    if label is None and isinstance(data, tuple) and len(data) == 2:
        label = data[1]
    if label is None:
        raise UsageError('"dirichlet" needs label: a column\'s name, or one value per record.')
    values = np.asarray(label)
    if values.shape != (rows,):
        raise UsageError(f"label must hold one value for each of the {rows} records.")
    return values


def _take(data: Any, rows: NDArray[np.intp]) -> Any:
    if isinstance(data, tuple):
        return tuple(_take(part, rows) for part in data)
    library = type(data).__module__.partition(".")[0]
    if library == "pandas":
        return data.iloc[rows]
    if library == "polars":
        return data[rows]
    if library == "pyarrow":
        return data.take(rows)
    return np.asarray(data)[rows]
