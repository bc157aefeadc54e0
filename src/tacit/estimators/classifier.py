"""What the classifiers share: classes, stated or read off the labels."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from tacit.estimators.base import PrivateEstimator
from tacit.estimators.certified import frozen
from tacit.estimators.labels import Labels, labels_of
from tacit.estimators.run import known_schema
from tacit.estimators.tables import Target, read_target

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
        self.classes = classes

    @property
    def classes_(self) -> NDArray[Any]:
        found = self._classes
        assert found is not None  # a classifier's release has them
        return frozen(found)

    def _target(self, X: Any, y: Any) -> Target:
        schema = known_schema(self.schema)
        assert schema is not None  # a table is read with one
        return read_target(X, y, schema, classes=self.classes, is_class=True)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy; of a table, with its own label column if y is left out."""
        if not self._is_table(X):
            return float(super().score(X, y, sample_weight))
        check_is_fitted(self)
        target = self._scored(X, y)
        vectors, numbers, _ = self._table_vectors(X, target)
        _, program = self._known_encoding()
        found = program.predict(self.model_, vectors)
        assert found is not None
        assert numbers is not None  # there is a target
        return float(accuracy_score(numbers, found.values, sample_weight=sample_weight))

    def _scored(self, X: Any, y: Any) -> Target:
        """The label under the very classes that were learned, whichever of them occur here."""
        schema = known_schema(self.schema)
        assert schema is not None
        if schema.label is not None and self.classes is None:
            return self._target(X, y)
        return read_target(X, y, schema, classes=self.classes_, is_class=True)

    def _labels(self, y: Any) -> Labels:
        schema = known_schema(self.schema)
        return labels_of(y, self.classes, None if schema is None else schema.label)
