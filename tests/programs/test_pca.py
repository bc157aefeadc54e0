"""Principal components: equal to scikit-learn's without noise, close to them with some."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA as SklearnPCA

from tacit.channels.central import Central
from tacit.crypto.prg import SeededRandomness
from tacit.data import Column, Schema
from tacit.data.records import ArrayRecords
from tacit.errors import UsageError
from tacit.privacy import Promise
from tacit.programs.pca import PCA, denoised

Reals = NDArray[np.float64]
DIGITS: Reals = load_digits().data / 8 - 1


def schema(width: int) -> Schema:
    columns = (Column(name=f"x{i}", type="number", bounds=(-1, 1)) for i in range(width))
    return Schema(columns=tuple(columns))


def fitted(X: Reals, promise: Promise, **options: Any) -> Any:
    channel = Central(randomness=SeededRandomness(4))
    return channel.run(PCA(**options), ArrayRecords(X), schema(X.shape[1]), promise).model


def captured(X: Reals, components: Reals) -> float:
    """The part of the largest possible variance that these components hold."""
    covariance = np.cov(X.T)
    best = np.linalg.eigvalsh(covariance)[-len(components) :].sum()
    return float(np.trace(components @ covariance @ components.T) / best)


def test_digits_without_noise() -> None:
    own, sklearn = fitted(DIGITS, Promise(math.inf), n_components=8), SklearnPCA(8).fit(DIGITS)
    assert np.allclose(own.components, sklearn.components_, atol=1e-4)
    assert np.allclose(own.explained_variance_ratio, sklearn.explained_variance_ratio_, rtol=1e-5)
    assert np.allclose(own.mean, sklearn.mean_, atol=1e-5)


def test_uncentred_components_are_singular_vectors() -> None:
    own = fitted(DIGITS, Promise(math.inf), n_components=3, centred=False)
    _, values, directions = np.linalg.svd(DIGITS, full_matrices=False)
    assert np.allclose(np.abs(np.sum(own.components * directions[:3], axis=1)), 1, atol=1e-6)
    assert np.allclose(own.singular_values, values[:3], rtol=1e-5)
    assert not own.mean.any()


def test_digits_with_noise() -> None:
    """1,797 records of 64 numbers are few: without noise 1, random directions about 0.2."""
    model = fitted(DIGITS, Promise(4.0, 1e-5), n_components=5)
    assert captured(DIGITS, model.components) > 0.95
    best = SklearnPCA(5).fit(DIGITS).explained_variance_
    assert np.allclose(model.explained_variance, best, rtol=0.15)
    assert captured(DIGITS, fitted(DIGITS, Promise(1.0, 1e-5), n_components=5).components) > 0.65


def test_pure_noise_on_a_small_width() -> None:
    generator = np.random.default_rng(3)
    X = np.clip(generator.normal(0.2, 0.3, (4000, 1)) * [0.9, -0.5, 0.3, 0.1], -1, 1)
    model = fitted(X, Promise(1.0), n_components=1)
    assert captured(X, model.components) > 0.95
    assert np.allclose(model.components @ model.components.T, 1)


def test_what_noise_adds_to_eigenvalues_is_taken_off() -> None:
    generator = np.random.default_rng(5)
    true = np.zeros(100)
    true[:2] = 80.0, 40.0
    upper = np.triu(generator.normal(0, 2.0, (100, 100)))
    seen = np.linalg.eigvalsh(np.diag(true) + upper + np.triu(upper, 1).T)[::-1]
    assert seen[1] > 46
    found = denoised(seen, 2.0)
    assert np.allclose(found[:2], [80, 40], atol=5)
    assert found[3:].max() < 30
    assert np.array_equal(denoised(np.array([2.0, -1e-17]), 0.0), [2, 0])


@pytest.mark.parametrize("wanted", [0, 65])
def test_impossible_numbers_of_components_are_refused(wanted: int) -> None:
    with pytest.raises(UsageError, match="n_components"):
        fitted(DIGITS, Promise(1.0), n_components=wanted)
