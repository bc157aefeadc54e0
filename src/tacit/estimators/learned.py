"""Any program as an estimator: also one of another package."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from tacit.errors import UsageError
from tacit.estimators.arrays import validate_data
from tacit.estimators.base import PrivateEstimator
from tacit.estimators.certified import Release
from tacit.programs.prediction import Prediction
from tacit.programs.program import Learner, Program
from tacit.programs.registry import program_named

__all__ = ["Learned"]


class Learned(PrivateEstimator):
    """What a program learns of features: `model_` is its model.

    `program` is one, or the name of one that is installed or allowed. It sees no label; the other
    parameters are explained in `tacit.estimators.base.PrivateEstimator`.
    """

    _program_type = Program
    _said_elsewhere = frozenset({"program"})  # the program, with its settings

    def __init__(
        self,
        program: Any = "histogram",
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        bounds: Any = None,
        schema: Any = None,
        adjacency: str = "add-remove",
        ledger: Any = None,
        dataset: str = "data",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            epsilon,
            delta,
            bounds=bounds,
            schema=schema,
            adjacency=adjacency,
            ledger=ledger,
            dataset=dataset,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.program = program

    def _new_program(self) -> Program[Any, Any]:
        if isinstance(self.program, str):
            return program_named(self.program)
        if isinstance(self.program, Program):
            return self.program
        raise UsageError(
            f"program is a {type(self.program).__name__}: give a program, such as "
            "ScoreHistogram(), or the name of one."
        )

    def fit(self, X: Any, y: Any = None) -> Self:
        """X alone: `y` is there for pipelines, and not looked at."""
        if self._is_table(X):
            return self._fit_table(self._new_program(), X)
        X = validate_data(self, X, dtype=np.float64)
        self._fit(self._new_program(), X)
        return self

    def said(self, X: Any) -> Prediction | None:
        """What the model says of each record; None if it speaks of all together."""
        vectors = self._encoded(X)
        return self._program.predict(self.model_, vectors)

    @property
    def _program(self) -> Learner:
        """The one that was fitted; of a saved model, the one that is found by its name."""
        name = self._released.about["program"]
        own = self.program
        same = isinstance(own, Program) and own.written_name == name
        return own if same else super()._program

    @classmethod
    def _built(cls, release: Release, about: dict[str, Any]) -> Self:
        found: Self = super()._built(release, about)
        found.program = found._program
        return found
