"""Without bounds: what is lost by finding them privately, at ε = 1, δ = 1e-6, defaults only.

Each estimator beside itself with good public bounds (of these very tables: better than anybody
knows them), and beside scikit-learn without privacy, mean of five splits. Bars: logistic regression
within 2 points and naive Bayes within 4 points of their own result with public bounds; linear
regression on Friedman 1 within 0.05 of R²; k-means' inertia at most 1.1 times. Differences are
written as ratios of 1 + difference, so that a bar is one number. On scikit-learn's toy sets every
range must be found or warned of.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import cluster, datasets, linear_model, naive_bayes, preprocessing
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

import tacit.estimators as tacit
from tacit.cli.bench import Row
from tacit.data import load_dataset
from tacit.errors import RangeWarning, TacitWarning

Reals = NDArray[np.float64]
Table = tuple[Reals, NDArray[Any]]
SPLITS, QUICK_SPLITS = 5, 2
ROWS = 7_400


def rows(say: Callable[[str], None], quick: bool = False) -> Iterator[Row]:
    splits = QUICK_SPLITS if quick else SPLITS
    for name, made in CLASSES.items():
        yield from _classifiers(name, made, splits, say)
    yield from _friedman(splits, say)
    yield from _blobs(splits, say)
    yield from _toys(say)


# ── tables ──


def _twonorm(seed: int) -> Table:
    """Breiman's: two normal classes of 20 features, the means 2/√20 from the origin."""
    generator = np.random.default_rng(seed)
    y = generator.integers(0, 2, ROWS)
    return generator.normal(size=(ROWS, 20)) + np.where(y, 1, -1)[:, None] * 2 / 20**0.5, y


def _ringnorm(seed: int) -> Table:
    """Breiman's: one class four times as wide as the other, which lies 2/√20 off its centre."""
    generator = np.random.default_rng(seed)
    y = generator.integers(0, 2, ROWS)
    normal = generator.normal(size=(ROWS, 20))
    return np.where(y[:, None], normal + 1 / 20**0.5, 2 * normal), y


def _spambase(seed: int) -> Table:
    X, y = load_dataset("spambase").arrays(interval="unit")
    return _in_own_units("spambase", X), y


def _adult(seed: int) -> Table:
    """Its columns of numbers."""
    data = load_dataset("adult")
    names = [c.name for c in data.schema.features if c.is_number and c.edges is None]
    columns = [np.asarray(data.train[name], dtype=str).astype(np.float64) for name in names]
    label = np.char.strip(np.asarray(data.train[data.schema.label.name], dtype=str))
    return np.column_stack(columns), (np.char.find(label, ">") >= 0).astype(np.int64)


def _in_own_units(name: str, X: Reals) -> Reals:
    ends = np.array([c.bounds for c in load_dataset(name).schema.features], dtype=np.float64)
    return np.asarray(ends[:, 0] + X * (ends[:, 1] - ends[:, 0]))


CLASSES: dict[str, Callable[[int], Table]] = {
    "twonorm": _twonorm,
    "ringnorm": _ringnorm,
    "spambase": _spambase,
    "adult's numbers": _adult,
}
PAIRS = (
    (tacit.LogisticRegression, lambda: linear_model.LogisticRegression(max_iter=2000), 0.02),
    (tacit.NaiveBayes, naive_bayes.GaussianNB, 0.04),
)


def _public(X: Reals) -> tuple[Reals, Reals]:
    """Better than anybody knows: all but half a per cent of these very records on each side."""
    low, high = np.quantile(X, (0.005, 0.995), axis=0)
    return low, np.where(high > low, high, low + 1.0)


# ── rows ──


def _classifiers(
    name: str, made: Callable[[int], Table], splits: int, say: Callable[[str], None]
) -> Iterator[Row]:
    for ours, theirs, bar in PAIRS:
        found: list[tuple[float, float, float]] = []
        for seed in range(splits):
            X, y = made(seed)
            train, test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=seed)
            peer = make_pipeline(preprocessing.StandardScaler(), theirs()).fit(train, y_train)
            public = _fitted(ours(bounds=_public(X)), train, y_train)
            private = _fitted(ours(), train, y_train)
            found.append(tuple(m.score(test, y_test) for m in (private, public, peer)))
        private, public, peer = (fmean(column) for column in zip(*found, strict=True))
        what = f"{name}, {ours.__name__}: accuracy {private:.3f}, public bounds {public:.3f}"
        say(f"{what}, scikit-learn without privacy {peer:.3f}")
        yield Row(what, 1 + private - public, 1.0, "its public bounds", 1 - bar)


def _friedman(splits: int, say: Callable[[str], None]) -> Iterator[Row]:
    found = []
    for seed in range(splits):
        X, y = datasets.make_friedman1(10_000, 10, noise=1.0, random_state=seed)
        train, test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=seed)
        peer = linear_model.LinearRegression().fit(train, y_train)
        stated = tacit.LinearRegression(bounds=(0, 1), label_bounds=(-5, 35))
        models = _fitted(tacit.LinearRegression(), train, y_train), _fitted(stated, train, y_train)
        found.append(tuple(m.score(test, y_test) for m in (*models, peer)))
    private, public, peer = (fmean(column) for column in zip(*found, strict=True))
    what = f"Friedman 1, LinearRegression: R² {private:.3f}, public bounds {public:.3f}"
    say(f"{what}, scikit-learn without privacy {peer:.3f}")
    yield Row(what, 1 + private - public, 1.0, "its public bounds", 0.95)


def _blobs(splits: int, say: Callable[[str], None]) -> Iterator[Row]:
    found = []
    for seed in range(splits):
        X, _ = datasets.make_blobs(10_000, 4, centers=5, random_state=seed)
        peer = cluster.KMeans(5, n_init=10, random_state=seed).fit(X)
        stated = tacit.KMeans(n_clusters=5, bounds=(-15, 15))
        models = _fitted(tacit.KMeans(n_clusters=5), X), _fitted(stated, X)
        found.append((*(_inertia(X, m.cluster_centers_) for m in models), peer.inertia_))
    private, public, peer = (fmean(column) for column in zip(*found, strict=True))
    what = f"blobs, KMeans: inertia {private:,.0f}, public bounds {public:,.0f}"
    say(f"{what}, scikit-learn without privacy {peer:,.0f}")
    yield Row(what, private, public, "its public bounds", 1.1, at_most=True)


def _inertia(X: Reals, centres: Reals) -> float:
    return float(((X[:, None, :] - centres) ** 2).sum(axis=2).min(axis=1).sum())


def _toys(say: Callable[[str], None]) -> Iterator[Row]:
    """Some hundred records: a range that is not found must be warned of."""
    for name in ("iris", "wine", "breast_cancer", "digits", "diabetes"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        model = tacit.LinearRegression() if name == "diabetes" else tacit.NaiveBayes()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model.fit(X, y)
        found = [*model.range_found_, model.label_range_found_]
        silent = float(not all(found) and not any(w.category is RangeWarning for w in told))
        guessed = sum(not one for one in found)
        what = f"{name}: silent fallbacks ({guessed} of {len(found)} ranges guessed)"
        yield Row(what, 1 + silent, 1.0, "none", 1.0, at_most=True)


def _fitted(model: Any, *data: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TacitWarning)
        return model.fit(*data)
