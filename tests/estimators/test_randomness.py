"""A seed repeats a fit and nothing else: other data and other parameters draw other noise."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

sys.path.insert(0, str(Path(__file__).parent))

from fits import NAMES, fit, made, table

from tacit.channels.central import Central
from tacit.crypto.prg import SYSTEM, SeededRandomness
from tacit.data import Column, Schema
from tacit.data.records import ArrayRecords
from tacit.estimators import PCA
from tacit.estimators.randomness import RunDigest, randomness_of
from tacit.privacy import Promise
from tacit.programs.files import to_bytes
from tacit.programs.histogram import Histogram

NOISY = {"epsilon": 0.5, "delta": 1e-6, "random_state": 7}


def neighbours(name: str) -> list[Any]:
    """The same records but for one: removed, exchanged, or in one value alone."""
    X, y = table(name)
    found = [(X[1:], None if y is None else y[1:]), (X[::-1], None if y is None else y[::-1])]
    changed = X.copy()
    changed[0, 0] = 0.0 if changed[0, 0] else 1.0
    found.append((changed, y))
    if y is not None:
        other = y.copy()
        other[0] = 0.25 if y.dtype.kind == "f" else ({"yes": "no", "no": "yes"}[y[0]])
        found.append((X, other))
    return found


def roots(estimator: Any, X: Any, y: Any, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The roots of all noise that a fit draws."""
    drawn: list[bytes] = []
    real = SeededRandomness.stream

    def stream(self: SeededRandomness) -> Any:
        drawn.append(self._root)
        return real(self)

    with monkeypatch.context() as patch:
        patch.setattr(SeededRandomness, "stream", stream)
        estimator.fit(X, y)
    assert drawn
    return drawn


@pytest.mark.parametrize("name", NAMES)
class TestEveryEstimator:
    def test_neighbouring_data_share_no_noise(
        self, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        X, y = table(name)
        known = set(roots(made(name, **NOISY), X, y, monkeypatch))
        for other in neighbours(name):
            drawn = set(roots(made(name, **NOISY), *other, monkeypatch))
            assert not known & drawn
            known |= drawn

    def test_every_parameter_changes_the_noise_or_nothing(
        self, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        X, y = table(name)
        first = made(name, **NOISY)
        seen = set(roots(first, X, y, monkeypatch))
        subject = to_bytes(first.model_)
        others: dict[str, Any] = {
            "epsilon": 0.6,
            "delta": 1e-5,
            "adjacency": "replace",
            "random_state": 8,
            "bounds": (-2, 2),
            "schema": Schema.from_dict(
                {"columns": {f"c{i}": {"type": "number", "bounds": [-3, 1]} for i in range(3)}}
            ),
            "classes": ["maybe", "no", "yes"],
            "label_bounds": (-9, 9),
            "fit_intercept": False,
            "n_clusters": 3,
            "n_components": 2,
            "max_iter": 2,
            "covariance_type": "diag",
            "min_support": 0.3,
            "max_length": 2,
            "longest": 2,
            "features": "bins",
        }
        harmless = {"n_jobs": 2, "verbose": 0, "dataset": "other", "ledger": None}
        # What is done with the same release afterwards, or only to lists of names.
        harmless |= {"center": 0.0, "scale": 2.0, "items": ["milk"]}
        for parameter in first.get_params():
            if parameter == "values":  # with it, an imputer releases nothing
                continue
            if parameter in harmless:
                same = clone(first).set_params(**{parameter: harmless[parameter]}).fit(X, y)
                assert to_bytes(same.model_) == subject
                continue
            changed = clone(first).set_params(**{parameter: others[parameter]})
            drawn = set(roots(changed, X, y, monkeypatch))
            assert not seen & drawn, parameter
            seen |= drawn

    def test_the_same_values_in_another_form_repeat(self, name: str) -> None:
        X, y = table(name)
        first = made(name, **NOISY).fit(X, y)
        X = np.where(X == 0, -0.0, X)
        for same in (np.asfortranarray(X), X.tolist(), X.astype(object)):
            again = made(name, **NOISY).fit(same, y)
            assert to_bytes(again.model_) == to_bytes(first.model_)

    def test_the_promise_does_not_hold_with_a_seed(self, name: str) -> None:
        for state in (0, np.int64(3), np.random.RandomState(1), np.random):
            certificate = fit(name, random_state=state).certificate_
            assert not certificate.promise_holds
            assert not certificate.secure_randomness
            assert any("seed" in text for text in certificate.verify().warnings)
        assert fit(name).certificate_.promise_holds

    def test_a_generator_is_read_from_as_in_scikit_learn(self, name: str) -> None:
        X, y = table(name)
        state = np.random.RandomState(5)
        one, two = (made(name, random_state=state).fit(X, y) for _ in range(2))
        again = made(name, random_state=np.random.RandomState(5)).fit(X, y)
        assert to_bytes(one.model_) == to_bytes(again.model_)
        assert to_bytes(one.model_) != to_bytes(two.model_)

    @pytest.mark.parametrize("state", ["seed", 1.5, -1, object()])
    def test_what_scikit_learn_refuses(self, name: str, state: Any) -> None:
        with pytest.raises(ValueError, match=r"[Ss]eed"):
            fit(name, random_state=state)


def test_two_folds_with_one_seed_do_not_cancel() -> None:
    """The difference of two results is as noisy as with two seeds."""
    X = np.random.default_rng(0).uniform(-1, 1, (50, 2))

    def spread(seeds: tuple[int, int]) -> float:
        a, b = (
            PCA(0.1, 1e-6, bounds=(-1, 1), random_state=seed).fit(part).model_.count
            for seed, part in zip(seeds, (X, X[1:]), strict=True)
        )
        return abs(float(a - b) - 1)

    one_seed = np.median([spread((s, s)) for s in range(40)])
    two_seeds = np.median([spread((s, s + 1000)) for s in range(40)])
    assert 0.4 < one_seed / two_seeds < 2.5  # equal noise; cancelled, the first would be 0


def test_a_channels_own_seed_is_no_promise_either() -> None:
    schema = Schema(columns=(Column(name="x", type="number", bounds=(-1.0, 1.0)),))
    channel = Central(randomness=SeededRandomness(0))
    outcome = channel.run(Histogram(bins=4), ArrayRecords(np.ones((5, 1))), schema, Promise(1.0))
    assert not outcome.certificate.promise_holds


def digest_of(*parts: Any) -> str:
    found = RunDigest("X", Histogram(), Promise(1.0))
    for part in parts:
        found.add_numbers(part) if isinstance(part, np.ndarray) else found.add(part)
    return found.hexdigest()


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12),
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12),
)
def test_the_digest_tells_all_splits_apart(first: list[float], second: list[float]) -> None:
    whole = np.array([*first, *second])
    one = digest_of(np.array(first), np.array(second))
    assert one != digest_of(whole)
    assert one != digest_of(np.array(first)[:, None], np.array(second))
    assert one == digest_of(np.array(first) + 0.0, np.array(second) + 0.0)
    if first != second:
        assert one != digest_of(np.array(second), np.array(first))


def test_without_a_seed_randomness_is_the_systems() -> None:
    assert randomness_of(None, RunDigest("X", Histogram(), Promise(1.0))) is SYSTEM
