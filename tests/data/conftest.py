"""Small schemas and files, and real data sets where they can be had."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tacit.data import Dataset, Schema, load_dataset
from tacit.errors import DatasetError

PEOPLE = {
    "columns": {
        "age": {"type": "integer", "bounds": [0, 100]},
        "sex": {"type": "category", "categories": ["F", "M"], "when_missing": "category"},
        "income": {"type": "number", "bounds": [0, 1000]},
        "married": {"type": "boolean"},
    }
}


@pytest.fixture
def people() -> Schema:
    return Schema.from_dict(PEOPLE)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    def writer(content: str | bytes, name: str = "table.csv") -> str:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return writer


@pytest.fixture
def dataset() -> Callable[[str], Dataset]:
    """A data set by name; the test is skipped, with the reason, if it cannot be had."""

    def loader(name: str) -> Dataset:
        try:
            return load_dataset(name)
        except DatasetError as error:
            pytest.skip(str(error))

    return loader
