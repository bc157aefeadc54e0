"""From a crowd's tables to a model; and a whole study in memory, for benchmarks and tests.

In memory there are no tokens, onions or relays: what people are asked, what they answer under the
randomiser and what is learned from it are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.channels.crowd.binning import cells
from tacit.channels.crowd.plan import Plan
from tacit.channels.crowd.questions import Question
from tacit.channels.crowd.searches import Searches
from tacit.channels.crowd.tables import Table, consistent, estimated_tables
from tacit.crypto.prg import SYSTEM, Randomness
from tacit.data.batch import Batch
from tacit.data.discrete import with_edges
from tacit.data.schema import Schema
from tacit.errors import UsageError
from tacit.programs.program import Learner
from tacit.programs.tabulated import Tabulated

__all__ = ["Liars", "collected", "learn"]

Liars = Callable[[Question, NDArray[np.int64], NDArray[np.uint8]], NDArray[np.uint8]]
"""What liars make of a question's reports: given who answers it, and honest reports of all."""


def learn(learner: Learner, schema: Schema, tables: Sequence[Table]) -> Any:
    """The model that a learner makes of tables as estimated. The schema has edges for every number
    (`with_edges`): those that the crowd found are part of the model."""
    if not isinstance(learner, Tabulated):
        raise UsageError(
            f"{learner.name!r} learns from records, and a crowd has none to show: take a learner "
            "of tables, such as tabulated-bayes."
        )
    return learner.learn([table.marginal(schema) for table in consistent(tables)], schema)


def collected(
    plan: Plan,
    bins: int,
    batch: Batch,
    seed: bytes,
    randomness: Randomness = SYSTEM,
    liars: Liars | None = None,
) -> tuple[list[Table], Schema]:
    """The estimated tables of a plan, and the schema with the edges that were found on the way.

    batch  one record for each person
    bins   how many bins numbers without edges are cut into, as in the plan's terms
    seed   32 bytes that the lots are drawn from
    liars  replace the reports of some, if there are any
    """
    schema, tables = batch.schema, list[Table]()
    searches = Searches.start(schema, bins)
    asked = dict(_asked(plan, batch.rows, seed))
    for stage in range(plan.stages):
        answers = {}
        for question in plan.in_stage(stage):
            people = asked[question.name]
            cuts = searches.thresholds if question.kind == "quantiles" else searches.edges
            own = cells(question, schema, cuts, _rows(batch, people))
            reports = question.randomiser.release(own, randomness)
            answers[question] = liars(question, people, reports) if liars else reports
        searches = searches.learned(
            {q: [row.tobytes() for row in a] for q, a in answers.items() if q.kind == "quantiles"}
        )
        tables += estimated_tables(answers)
    return tables, with_edges(schema, searches.edges)


def _asked(plan: Plan, people: int, seed: bytes) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Who answers each question: places among the people."""
    drawn = plan.everyone(people, seed)
    for draw, lots in zip(plan.draws, drawn, strict=True):
        for number, lot in enumerate(draw):
            places = np.flatnonzero(lots == number)
            for name in lot.questions:
                yield name, places


def _rows(batch: Batch, places: NDArray[np.int64]) -> Batch:
    columns = {name: values[places] for name, values in batch.columns.items()}
    return Batch(batch.schema, columns, len(places))
