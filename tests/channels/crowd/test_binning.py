"""From a row to a cell: the same codes as those that models are learned from."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.channels.crowd.binning import bins_of, cells, searches
from tacit.channels.crowd.questions import Question
from tacit.data.batch import Batch
from tacit.data.discrete import Discrete, with_edges
from tacit.data.schema import Schema
from tacit.errors import InputError

NAN = float("nan")
SCHEMA = Schema.from_dict(
    {
        "columns": {
            "income": {"type": "number", "bounds": [0, 100], "when_missing": "category"},
            "age": {"type": "integer", "bounds": [0, 100]},
            "hours": {"type": "integer", "edges": [35, 41]},
            "colour": {"type": "category", "categories": ["red", "green", "blue"]},
            "smokes": {"type": "boolean", "when_missing": "category"},
            "children": {"type": "integer", "bounds": [0, 2]},
            "ill": {"type": "boolean", "role": "label"},
        }
    }
)
COLUMNS = {
    "income": np.array([0.0, 50.0, 100.0, NAN, 25.0, 24.9]),
    "age": np.array([0.0, 30.0, 29.0, 100.0, 60.0, 59.0]),
    "hours": np.array([40.0, 34.0, 41.0, 35.0, 80.0, 0.0]),
    "colour": np.array([0, 1, 2, 2, 1, 0], dtype=np.int32),
    "smokes": np.array([0, 1, 2, 0, 1, 2], dtype=np.int32),
    "children": np.array([0.0, 1.0, 2.0, 2.0, 1.0, 0.0]),
    "ill": np.array([0, 1, 1, 0, 1, 0], dtype=np.int32),
}
BATCH = Batch(SCHEMA, COLUMNS, 6)
CUTS = {"income": (25.0, 50.0, 75.0), "age": (20.0, 30.0, 60.0), "children": (1.0, 2.0)}
NAMES = tuple(column.name for column in SCHEMA.features)


def table(*features: str) -> Question:
    sizes = Discrete(with_edges(SCHEMA, CUTS)).sizes
    places = [NAMES.index(name) for name in features]
    return Question("table", 1, "table", features, (*(sizes[p] for p in places), 2), 1.0)


@pytest.mark.parametrize("features", [(name,) for name in NAMES] + [("age", "smokes"), NAMES[::-1]])
def test_cells_are_those_of_the_models_codes(features: tuple[str, ...]) -> None:
    question = table(*features)
    cut = with_edges(SCHEMA, CUTS)
    model, seen = Discrete(cut), Batch(cut, COLUMNS, 6)
    codes = [model.codes(seen)[:, NAMES.index(name)] for name in features]
    expected = np.ravel_multi_index([*codes, model.labels(seen)], question.sizes)
    assert cells(question, SCHEMA, CUTS, BATCH).tolist() == expected.tolist()


def test_an_interval_by_hand() -> None:
    question = Question("quantiles-0-0", 0, "quantiles", ("income",), (5,), 1.0)
    found = cells(question, SCHEMA, {"income": (25.0, 50.0, 75.0)}, BATCH)
    assert found.tolist() == [0, 2, 3, 4, 1, 0]  # an edge belongs above; missing comes last


def test_thresholds_may_coincide_while_the_search_goes_on() -> None:
    question = Question("quantiles-1-0", 0, "quantiles", ("age",), (4,), 1.0)
    assert cells(question, SCHEMA, {"age": (30.0, 30.0, 30.0)}, BATCH).tolist() == [
        0,
        3,
        0,
        3,
        3,
        3,
    ]


@pytest.mark.parametrize(
    "cuts", [(), (1.0, 2.0), (1.0, 2.0, 3.0, 4.0), (3.0, 2.0, 1.0), (NAN,) * 3]
)
def test_cuts_that_do_not_fit_the_question_are_refused(cuts: tuple[float, ...]) -> None:
    """What a collector publishes must not push a person out of the cells she agreed to."""
    with pytest.raises(InputError, match="needs 3 rising cuts"):
        cells(table("age"), SCHEMA, {"age": cuts}, BATCH)


def test_missing_cuts_are_refused() -> None:
    with pytest.raises(InputError, match="column 'age' needs 3 rising cuts"):
        cells(table("age"), SCHEMA, {}, BATCH)


def test_the_search_starts_in_every_number_without_edges() -> None:
    started = searches(SCHEMA, 4)
    assert {name: search.bins for name, search in started.items()} == {
        "income": 4,
        "age": 4,
        "children": 3,
    }
    assert started["children"].edges == (1.0, 2.0)
    assert [bins_of(SCHEMA.column(name), 9) for name in started] == [9, 9, 3]
    assert started["age"].whole
    assert not started["income"].whole
