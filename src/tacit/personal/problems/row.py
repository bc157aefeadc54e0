"""The one row of a study: what a person's own events say in the columns of its schema.

Nothing leaves here. The row goes to a channel, which randomises it and has a ledger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.data.batch import Batch
from tacit.data.schema import TODO, Column, Schema
from tacit.data.tables import read_batches
from tacit.errors import InputError
from tacit.personal.dataset import Dataset
from tacit.personal.events import Value
from tacit.personal.features.language import parse
from tacit.personal.problems.declared import DeclaredInstancer
from tacit.personal.problems.making import matrix_over
from tacit.personal.problems.reading import feature_kind, label_kind

if TYPE_CHECKING:
    from tacit.data.schema import Role
    from tacit.personal.problems.problem import Asked, Problem

__all__ = ["check_columns", "row_of", "schema_of"]

# A column's type → the kinds of features that can fill it.
FILLS: dict[str, tuple[Asked, ...]] = {
    "number": ("number", "boolean"),
    "integer": ("number", "boolean"),
    "boolean": ("boolean",),
    "category": ("category",),
}


def row_of(problem: Problem, dataset: Dataset, schema: Schema, now: int | None = None) -> Batch:
    """The row, typed, filled and clipped to the public bounds as the schema says."""
    schema.require_complete()
    check_columns(problem, schema)
    instances = DeclaredInstancer(problem).make_instances(dataset, now)
    if len(instances) != 1:
        raise InputError(
            f"{problem.name}: makes {len(instances)} rows of these events; a person has one. Take "
            'a problem with per = "user", and check that its first event has been imported.'
        )
    row: dict[str, list[Value]] = {}
    label = instances.labels.field(problem.label.name, 0)
    if schema.label is not None:
        if label is None:
            raise InputError(
                f"{problem.name}: for you it is not known yet ({problem.question}). Take part once "
                "it is, and has been imported."
            )
        row[schema.label.name] = [label.value]
    wanted = [column for column in schema.used if column.role == "feature"]
    features = [parse(problem.columns[column.name]) for column in wanted]
    (vector,) = matrix_over(instances, features).vectors()
    for column, feature in zip(wanted, vector.features, strict=True):
        row[column.name] = [feature.value]
    batch = Batch.concat(list(read_batches(row, schema)))
    if batch.rows != 1:
        raise InputError(
            f"{problem.name}: a value is missing in your row, and the study leaves such rows out. "
            "There is nothing to take part with."
        )
    return batch


def schema_of(problem: Problem) -> Schema:
    """A draft of the study's schema; its author still has to write in what is public."""
    kinds = {name: feature_kind(problem, text) for name, text in problem.columns.items()}
    columns = [_drafted(name, kind, "feature") for name, kind in kinds.items()]
    label = _drafted(problem.label.name, label_kind(problem), "label")
    return Schema(columns=(*columns, label), title=problem.question)


def _drafted(name: str, kind: Asked, role: Role) -> Column:
    if kind == "boolean":
        return Column(name=name, type="boolean", role=role)
    if kind == "number":
        return Column(name=name, type="number", role=role, bounds=TODO)
    return Column(name=name, type="category", role=role, categories=TODO)


def check_columns(problem: Problem, schema: Schema) -> None:
    """Every column of the schema must be one that the problem fills, with values of its kind."""
    for column in schema.used:
        kind = _filling(problem, column)
        if kind is None:
            raise InputError(
                f"{problem.name}: does not say what fills the study's {column.role} "
                f"{column.name!r}. Its columns are: {', '.join(problem.columns) or 'none'}; its "
                f"label is {problem.label.name}."
            )
        if kind not in FILLS.get(column.type, ()):
            raise InputError(
                f"{problem.name}: the study's column {column.name!r} is of type {column.type}, and "
                f"what fills it is a {kind}."
            )


def _filling(problem: Problem, column: Column) -> Asked | None:
    """The kind of what fills a column; None if nothing does."""
    if column.role == "label":
        return label_kind(problem) if column.name == problem.label.name else None
    if column.role == "feature" and column.name in problem.columns:
        return feature_kind(problem, problem.columns[column.name])
    return None
