"""What all estimators share: a promise, public bounds (or private ones), a ledger, a certificate.

An estimator is a program run through the central channel, with scikit-learn's manners.
"""

from __future__ import annotations

from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tacit.crypto.signing import SigningKey
from tacit.data.encode import Encoded
from tacit.data.schema import Schema
from tacit.engines import Engine, Serial, Threads
from tacit.errors import UsageError
from tacit.estimators.arrays import validate_data
from tacit.estimators.certified import CertifiedEstimator, frozen, signing_key, whole_number
from tacit.estimators.expectation import expected_of, expected_of_table, warn_if_useless
from tacit.estimators.labels import Labels
from tacit.estimators.preprocessing import warn_of_fitted_steps
from tacit.estimators.progress import Progress
from tacit.estimators.run import Run, known_schema
from tacit.estimators.scaling import Mixed, Scaling
from tacit.estimators.table_run import TableRun
from tacit.estimators.tables import Target, columns_of, has_names, is_plain, read_table
from tacit.programs.expected import ExpectedError
from tacit.programs.prediction import Prediction
from tacit.programs.program import Learner, Program

__all__ = ["PrivateEstimator"]

Reals = NDArray[np.float64]


class PrivateEstimator(CertifiedEstimator):
    """Parameters that every estimator takes.

    epsilon, delta, adjacency   the promise; `epsilon=math.inf` runs without noise
    bounds                      (low, high), public: two numbers, or one value per feature each
    schema                      or a Schema (or its file): a table is read by the names of its
                                columns, with texts, categories, dates and gaps as the schema says;
                                an array's columns are the schema's features in their order
    ledger, dataset             a Ledger to charge, or its path, and the data set's name in it
    random_state                None: secure randomness; a number: repeatable, and the promise does
                                NOT hold. Other data or parameters draw other noise
    n_jobs                      None or 1: one core; -1: all
    verbose                     1 shows one line of progress, on stderr
    """

    # One scale for all features, where distances between records matter.
    _uniform = False

    # how records are encoded, with the release that this follows from
    _encoding: tuple[Any, Scaling | Mixed, Learner]

    def __init__(
        self,
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
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.schema = schema
        self.adjacency = adjacency
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _new_program(self) -> Program[Any, Any]:
        """What the parameters ask for."""
        raise NotImplementedError

    def expected_error(
        self, n: int, features: int | None = None, classes: Any = None
    ) -> ExpectedError:
        """What to expect of a fit on n records, before anything is spent: no data are needed.

        features   how many columns; may be left out where a schema, bounds or an earlier fit say it
        classes    of a classifier: how many, or which; two by default

        It speaks of a typical table: docs/guide/estimators.md says what that is. `print` it, or
        read `useless`, `needed_n`, `value` and `kept`.
        """
        return expected_of(self, self._new_program(), n, features, classes)

    def _fit(
        self,
        program: Program[Any, Any],
        X: Reals,
        y: NDArray[Any] | None = None,
        labels: Labels | None = None,
        label_bounds: Any = None,
    ) -> None:
        """Run the program, charge the ledger, and keep the release. Bounds that nobody stated are
        found by the first rounds.

        Either y (plain numbers) or labels (classes), or neither.
        """
        kinds = None if labels is None else len(labels.classes)
        warn_if_useless(expected_of(self, program, len(X), X.shape[1], kinds), stacklevel=3)
        key = signing_key()  # before anything is spent
        warn_of_fitted_steps(self, X)
        run = Run(self, program, X, y, labels, label_bounds)
        self._conclude(run, program, key)

    def _is_table(self, X: Any) -> bool:
        """Whether X is read through the schema, cell by cell: a table with names, or an array of
        what the schema says are categories, dates or gaps."""
        schema = known_schema(self.schema)
        return schema is not None and (has_names(X) or not is_plain(schema))

    def _fit_table(
        self,
        program: Program[Any, Any],
        X: Any,
        target: Target | None = None,
        schema: Schema | None = None,
    ) -> Self:
        """A fit on a table that is read through the schema: the estimator's, or a given one."""
        key = signing_key()  # before anything is spent
        warn_of_fitted_steps(self)
        if schema is None:
            schema = known_schema(self.schema)
            assert schema is not None  # `_is_table`
            self._note_names(X, schema)
        run = TableRun(self, program, X, schema, target)
        warn_if_useless(expected_of_table(program, run.schema, run.promise, run.batch.rows), 3)
        self._conclude(run, program, key)
        return self

    def _note_names(self, X: Any, schema: Schema) -> None:
        """As scikit-learn keeps them."""
        names = [column.name for column in schema.features]
        self.n_features_in_ = len(names)
        self.__dict__.pop("feature_names_in_", None)
        if has_names(X):
            self.feature_names_in_: Any = np.array(names, dtype=object)

    def _table_vectors(self, X: Any, target: Target | None = None) -> Encoded:
        """Records of a table as vectors, with the label's values if a target is given: by the
        schema that the model was learned under. Without a target there is one vector for each
        record, so that one which the schema drops is refused."""
        learned = self.schema_
        features = learned.features
        if target is None:
            features = tuple(
                msgspec.structs.replace(c, when_missing="refuse") if c.when_missing == "drop" else c
                for c in features
            )
        extra = msgspec.structs.replace(learned, columns=learned.features, extra_columns="ignore")
        columns = columns_of(X, extra, features)
        if target is not None:
            columns[target.column.name] = target.values
            features = (*features, target.column)
        batch = read_table(columns, msgspec.structs.replace(learned, columns=features))
        _, program = self._known_encoding()
        return program.encoder(batch.schema).encode(batch)

    @property
    def encoded_names_(self) -> NDArray[Any]:
        """What each coordinate of `coef_` and the like stands for: a column, or a value of one."""
        names = self._program.encoder(self.schema_).feature_names
        return frozen(np.array(names, dtype=object))

    def _conclude(self, run: Run, program: Program[Any, Any], key: SigningKey) -> None:
        try:
            outcome = run.outcome()
        finally:
            if run.channel.progress is not None:
                run.channel.progress.close()  # type: ignore[attr-defined]  # ours
        classes = None if run.labels is None else run.labels.classes
        self._keep(outcome, program, outcome.schema, key, classes)
        self._affine()  # now, because predict leaves an estimator as it is
        run.warn(outcome.schema)

    def _encoded(self, X: Any) -> Reals:
        """Records as vectors, by the very function that fit encoded its own with: the one way in
        for everything that is said of records. A value beyond its bounds counts as the bound."""
        check_is_fitted(self)
        if self._is_table(X):
            return self._vectors(X)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self._vectors(X)

    def _vectors(self, X: Any) -> Reals:
        if self._is_table(X):
            return self._table_vectors(X).X
        scaling, program = self._known_encoding()
        vectors: Reals = scaling.encode(program, X, None).X
        return vectors

    def _said(self, X: Any) -> Prediction:
        """What the program's model says of records."""
        vectors = self._encoded(X)
        _, program = self._known_encoding()
        found = program.predict(self.model_, vectors)
        assert found is not None  # an estimator's program speaks of single records
        return found

    def _affine(self) -> tuple[Reals, Reals]:
        """slope, offset with encoded = slope · x + offset within the bounds: for coefficients and
        centres in the units of X, never for records, which `_encoded` is for."""
        scaling, program = self._known_encoding()
        if self._uniform and isinstance(scaling, Mixed):
            # There is no one width for numbers and categories: distances are those of the vectors.
            width = scaling.affine(program)[0].shape
            return np.ones(width), np.zeros(width)
        found: tuple[Reals, Reals] = scaling.affine(program)
        return found

    def _known_encoding(self) -> tuple[Any, Learner]:
        """From the release's own schema."""
        release = self._released
        known = vars(self).get("_encoding")
        if known is None or known[0] is not release:
            schema = self.schema_
            plain = all(c.is_number and not c.edges for c in schema.features)
            gaps = any(c.when_missing == "category" for c in schema.features)
            kind: Any = Scaling if plain and not gaps else Mixed
            known = release, kind.of(schema), self._program
            self._encoding = known
        return known[1], known[2]

    def _engine(self) -> Engine:
        jobs = None if self.n_jobs is None else whole_number(self.n_jobs, "n_jobs", -1)
        if jobs == 0:
            raise UsageError("n_jobs must be a number of cores, -1 for all, or None; not 0.")
        return Serial() if jobs in (None, 1) else Threads(None if jobs == -1 else jobs)

    def _progress(self) -> Any:
        return Progress(type(self).__name__) if self.verbose else None
