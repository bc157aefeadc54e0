"""What all estimators share: a promise, public bounds (or private ones), a ledger, a certificate.

An estimator is a program run through the central channel, with scikit-learn's manners.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.engines import Engine, Serial, Threads
from tacit.estimators.certified import CertifiedEstimator, signing_key
from tacit.estimators.labels import Labels
from tacit.estimators.run import Run
from tacit.estimators.scaling import Scaling
from tacit.programs.program import Program

__all__ = ["PrivateEstimator"]

Reals = NDArray[np.float64]


class PrivateEstimator(CertifiedEstimator):
    """Parameters that every estimator takes.

    epsilon, delta, adjacency   the promise; `epsilon=math.inf` runs without noise
    bounds                      (low, high), public: two numbers, or one value per feature each
    schema                      or a Schema (or its file) whose features are numbers with bounds, in
                                the order of X's columns
    ledger, dataset             path of a ledger to charge, and the data set's name in it
    random_state                None: secure randomness; a number: repeatable, and the promise does
                                NOT hold. Other data or parameters draw other noise
    n_jobs                      None or 1: one core; -1: all
    verbose                     1 shows progress
    """

    # One scale for all features, where distances between records matter.
    _uniform = False

    # slope and offset of the encoding, with the release that they are from
    _encoding: tuple[Any, tuple[Reals, Reals]]

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        bounds: Any = None,
        schema: Any = None,
        adjacency: str = "add-remove",
        ledger: str | None = None,
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

    def _fit(
        self,
        program: Program[Any, Any],
        X: Reals,
        y: NDArray[Any] | None = None,
        labels: Labels | None = None,
        label_bounds: Any = None,
    ) -> None:
        """Find bounds, run the program, charge the ledger once for both, and keep the release.

        Either y (plain numbers) or labels (classes), or neither.
        """
        key = signing_key()  # before anything is spent
        run = Run(self, program, X, y, labels, label_bounds)
        outcome, schema = run.outcome()
        self._keep(outcome, program, schema, key, None if labels is None else labels.classes)
        self._affine()  # now, because predict leaves an estimator as it is

    def _affine(self) -> tuple[Reals, Reals]:
        """slope, offset with encoded = slope · x + offset: from the release's own schema."""
        release = self._released
        known = vars(self).get("_encoding")
        if known is None or known[0] is not release:
            known = release, Scaling.of(self.schema_).affine(self._program)
            self._encoding = known
        found: tuple[Reals, Reals] = known[1]
        return found

    def _engine(self) -> Engine:
        if self.n_jobs in (None, 1):
            return Serial()
        return Threads(None if self.n_jobs == -1 else self.n_jobs)

    def _progress(self) -> Any:
        if not self.verbose:
            return None
        return lambda done, planned: print(f"round {done} of {planned}", flush=True)
