"""k-means and Gaussian mixtures under the contract of every program."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from tacit.data.encode import Encoded
from tacit.data.schema import Schema
from tacit.privacy import Promise
from tacit.programs.contribute import decoded, prepared, record_sum
from tacit.programs.kmeans import KMeans, KMeansModel
from tacit.programs.mixture import Mixture, MixtureModel

NUMBERS = Schema.from_dict(
    {"columns": {name: {"type": "number", "bounds": [-1, 1]} for name in ("a", "b", "c")}}
)


def groups(seed: int, rows: int = 600) -> np.ndarray[Any, Any]:
    """Three overlapping groups within the box."""
    generator = np.random.default_rng(seed)
    centres = np.array([[-0.5, 0.4, 0.1], [0.5, 0.5, -0.4], [0.1, -0.5, 0.3]])
    noise = generator.normal(0, 0.2, (rows, 3)) * [1.0, 0.6, 1.2]
    return np.clip(centres[generator.integers(3, size=rows)] + noise, -1, 1)


def kmeans_case() -> dict[str, Any]:
    program, X = KMeans(3, rounds=6), groups(1)

    def textbook(model: KMeansModel) -> None:
        from sklearn.cluster import KMeans as Lloyd

        start = program.init(NUMBERS, Promise(math.inf)).centres
        peer = Lloyd(3, init=start, n_init=1, max_iter=6, tol=0, algorithm="lloyd").fit(X)
        np.testing.assert_allclose(model.centres, peer.cluster_centers_, atol=1e-5)

    return {
        "name": "k-means",
        "program": program,
        "schema": NUMBERS,
        "X": X,
        "y": None,
        "textbook": textbook,
    }


def counted(program: Mixture, X: np.ndarray[Any, Any]) -> Any:
    """The state after the rounds of counts, without privacy."""
    state = first = program.init(NUMBERS, Promise(math.inf))
    ready = prepared(program, Encoded(X, None, None), first)
    for stage in list(program.plan(first))[: first.tree]:
        query = program.asked(state, stage.query)
        assert query is not None
        total = record_sum(program, ready, state, query, clip=False)
        state = program.reduce(decoded(total, query), state)
    return state


def mixture_case(kind: Any, coordinates: Any) -> dict[str, Any]:
    program = Mixture(3, kind, rounds=6, coordinates=coordinates)
    X = groups(2) / math.sqrt(3)

    def textbook(model: MixtureModel) -> None:
        from sklearn.mixture import GaussianMixture

        start = counted(program, X)
        inverse = np.linalg.inv if kind == "full" else np.reciprocal
        peer = GaussianMixture(
            3,
            covariance_type=kind,
            weights_init=start.weights,
            means_init=start.means,
            precisions_init=inverse(start.covariances),
            max_iter=6,
            tol=0,
            reg_covar=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # six rounds are not meant to converge
            peer.fit(X)
        np.testing.assert_allclose(model.weights, peer.weights_, atol=1e-4)
        np.testing.assert_allclose(model.means, peer.means_, atol=1e-4)
        np.testing.assert_allclose(model.covariances, peer.covariances_, atol=1e-5)
        np.testing.assert_allclose(model.log_likelihoods(X), peer.score_samples(X), atol=1e-2)

    return {
        "name": f"mixture {kind} {coordinates}",
        "program": program,
        "schema": NUMBERS,
        "X": X,
        "y": None,
        "textbook": textbook,
    }


CASES = [
    kmeans_case(),
    *(mixture_case(kind, "own") for kind in ("full", "diag", "spherical")),
    mixture_case("full", "shared"),
]
