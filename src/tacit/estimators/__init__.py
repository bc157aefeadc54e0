"""Estimators: programs run through the central channel, with scikit-learn's manners."""

from __future__ import annotations

from tacit.estimators.itemsets import FrequentItemsets
from tacit.estimators.kmeans import KMeans
from tacit.estimators.linear import LinearRegression
from tacit.estimators.logistic import LogisticRegression
from tacit.estimators.mixture import GaussianMixture
from tacit.estimators.naive_bayes import NaiveBayes
from tacit.estimators.pca import PCA
from tacit.estimators.scaler import Imputer, Scaler

__all__ = [
    "PCA",
    "FrequentItemsets",
    "GaussianMixture",
    "Imputer",
    "KMeans",
    "LinearRegression",
    "LogisticRegression",
    "NaiveBayes",
    "Scaler",
]
