"""The games against estimators: those against the programs that they run.

An estimator publishes less than its program released on the way, and adds no noise of its own: what
holds for all noisy sums of all rounds holds for the model.
"""

from __future__ import annotations

from collections.abc import Callable

from tacit.audits.game import WhiteBox
from tacit.audits.programs import PROGRAM_GAMES

__all__ = ["ESTIMATOR_TARGETS", "PROGRAMS"]

PROGRAMS = {
    "LogisticRegression": "logistic",
    "LinearRegression": "linear-regression",
    "KMeans": "k-means",
    "GaussianMixture": "gaussian-mixture",
    "NaiveBayes": "naive-bayes",
    "PCA": "pca",
    "FrequentItemsets": "frequent-itemsets",
    "Scaler": "quantiles",
    "Imputer": "quantiles",
}

ESTIMATOR_TARGETS: dict[str, Callable[[], WhiteBox]] = {
    estimator: PROGRAM_GAMES[program] for estimator, program in PROGRAMS.items()
}
