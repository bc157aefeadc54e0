"""What the classifiers share: classes, stated or read off the labels."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from tacit.estimators.base import PrivateEstimator
from tacit.estimators.certified import frozen
from tacit.estimators.labels import Labels, labels_of
from tacit.estimators.run import known_schema

__all__ = ["PrivateClassifier"]


class PrivateClassifier(ClassifierMixin, PrivateEstimator):
    """Parameters: `tacit.estimators.base.PrivateEstimator`, and

    classes   every label that may occur, public. Without it, a schema's label states the classes;
              without either they are read off y, and the certificate lists that as a condition
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        bounds: Any = None,
        schema: Any = None,
        classes: Any = None,
        adjacency: str = "add-remove",
        ledger: str | None = None,
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
        self.classes = classes

    @property
    def classes_(self) -> NDArray[Any]:
        found = self._classes
        assert found is not None  # a classifier's release has them
        return frozen(found)

    def _labels(self, y: Any) -> Labels:
        schema = known_schema(self.schema)
        return labels_of(y, self.classes, None if schema is None else schema.label)
