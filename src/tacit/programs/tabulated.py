"""Learners that see no records at all: only noisy tables of counts, each over a few features.

Not sums over records that a channel asks for round by round, so not a `Program`: the tables come
from a crowd (channels/crowd), and whatever is made of them costs nothing further.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.schema import Schema
from tacit.errors import UsageError
from tacit.programs.program import Learner

__all__ = ["Marginal", "Tabulated", "asked_about"]


@dataclass(frozen=True, slots=True)
class Marginal:
    """How many people have each combination of some features' codes and the label.

    features  places among the schema's features
    counts    one axis for each of them, and a last one of length 2 for the label; none below 0
    variance  of one count, as the noise on it makes it; what drawing people by lot adds is not here
    people    how many were asked: what the counts add up to
    """

    features: tuple[int, ...]
    counts: NDArray[np.float64]
    variance: float
    people: int


class Tabulated(Learner):
    """Made of tables of counts; the schema's features are discrete and its label has two values."""

    @abstractmethod
    def learn(self, tables: Sequence[Marginal], schema: Schema) -> Any:
        """The model. Tables must not contradict one another: see channels/crowd/tables.py."""


def asked_about(tables: Sequence[Marginal]) -> list[Marginal]:
    """The tables that somebody has answered, at least one of them."""
    found = [table for table in tables if table.people > 0]
    if not found:
        raise UsageError("nobody has answered a single question: there is nothing to learn from.")
    return found
