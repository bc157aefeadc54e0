"""A certificate belongs to the model in hand: attributes follow it, files keep it, others fail."""

from __future__ import annotations

import copy
import json
import math
import pickle
import sys
from dataclasses import fields, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_validate

sys.path.insert(0, str(Path(__file__).parent))

from fits import NAMES, ROWS, fit, learned, made, table

from tacit.cli.main import main
from tacit.crypto.signing import SigningKey, digest
from tacit.data import Schema
from tacit.errors import CertificateInvalid, InputError
from tacit.estimators import KMeans, LinearRegression, LogisticRegression
from tacit.privacy import Ledger
from tacit.programs.model_file import load_model


def moved(estimator: Any, certificate: Any) -> Any:
    """The estimator with a foreign certificate, past every check: what a forger would hand out."""
    forged = copy.copy(estimator)
    forged._release = replace(forged._release, certificate=certificate)
    return forged


def run(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main(words)
    said = capsys.readouterr()
    return int(stopped.value.code or 0), said.out, said.err


@pytest.mark.parametrize("name", NAMES)
class TestEveryEstimator:
    def test_verify_recomputes_the_models_digest(self, name: str, tmp_path: Path) -> None:
        fitted = fit(name, epsilon=2.0)
        verdict = fitted.verify(SigningKey.of_holder().public_key)
        assert verdict.epsilon <= 2.0 * (1 + 1e-6)
        assert verdict.conditions == fitted.certificate_.conditions
        fitted.save(tmp_path / "model")
        assert digest((tmp_path / "model").read_bytes()) == fitted.certificate_.subject

    def test_a_certificate_of_another_model_fails(self, name: str, tmp_path: Path) -> None:
        good, exact = fit(name), fit(name, epsilon=math.inf)
        with pytest.raises(CertificateInvalid, match="not the one"):
            exact.certificate_ = good.certificate_
        forged = moved(exact, good.certificate_)
        with pytest.raises(CertificateInvalid, match="not the one"):
            forged.verify()
        with pytest.raises(CertificateInvalid, match="not the one"):
            forged.save(tmp_path / "model")
        assert not (tmp_path / "model").exists()
        assert exact.certificate_.promise.epsilon == math.inf

    def test_a_model_that_was_changed_fails(self, name: str) -> None:
        """Every array and number of the model, and all that gives them meaning."""
        fitted = fit(name)
        for field in fields(fitted.model_):
            value = getattr(fitted.model_, field.name)
            if isinstance(value, np.ndarray) and value.size and value.dtype.kind == "f":
                value = value.copy()
                value.flat[0] = np.nextafter(value.flat[0], np.inf)
            elif isinstance(value, float):
                value = np.nextafter(value, np.inf)
            else:
                continue
            other = copy.copy(fitted)
            model = replace(fitted.model_, **{field.name: value})
            other._release = replace(fitted._release, model=model)
            with pytest.raises(CertificateInvalid, match="not the one"):
                other.verify()
        for key in ("program", "settings", "schema", "estimator"):
            other = copy.deepcopy(fitted)
            other._release.about[key] = None
            with pytest.raises(CertificateInvalid, match="not the one"):
                other.verify()

    def test_fitted_attributes_cannot_be_set(self, name: str) -> None:
        fitted = fit(name)
        for attribute, value in learned(fitted).items():
            if attribute == "certificate_":
                continue
            with pytest.raises(AttributeError):
                setattr(fitted, attribute, value)
            if isinstance(value, np.ndarray) and attribute != "labels_":
                with pytest.raises(ValueError, match="read-only"):
                    value[...] = value
        fitted.__dict__.update(dict.fromkeys(learned(fitted)))  # not even past the setter
        assert fitted.model_ is not None
        fitted.verify()

    def test_saved_and_loaded_it_is_the_same(self, name: str, tmp_path: Path) -> None:
        fitted, path = fit(name, epsilon=1.5), tmp_path / "model"
        fitted.save(path)
        loaded = type(fitted).load(path, SigningKey.of_holder().public_key)
        loaded.verify()
        ours, theirs = learned(fitted), learned(_with_records(loaded, fitted))
        for attribute, value in ours.items():
            if attribute != "model_":
                same = theirs[attribute] == value
                assert np.all(same), attribute
        X, _ = table(name)
        for method in ("predict", "transform", "predict_proba", "score_samples"):
            if hasattr(fitted, method):
                assert np.array_equal(getattr(loaded, method)(X), getattr(fitted, method)(X))
        assert loaded.epsilon == 1.5
        again = tmp_path / "again"
        loaded.save(again)
        assert again.read_bytes() == path.read_bytes()

    def test_the_commands_read_what_is_saved(
        self, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        fitted, path = fit(name), tmp_path / "model"
        fitted.save(path)
        assert type(load_model(path).model) is type(fitted.model_)
        code, out, _ = run(["verify", str(path), "--json"], capsys)
        assert code == 0
        assert json.loads(out)["conditions"] == list(fitted.certificate_.conditions)
        assert json.loads(out)["promise_holds"]
        code, out, err = run(["verify", str(path)], capsys)
        assert code == 0
        assert "provided that" in out + err
        if hasattr(fitted, "predict"):
            rows = ",".join(c.name for c in fitted.schema_.features) + "\n0.5,0.1,-0.2\n"
            (tmp_path / "new.csv").write_text(rows)
            code, out, _ = run(["predict", str(path), str(tmp_path / "new.csv")], capsys)
            assert code == 0
            assert str(fitted.predict([[0.5, 0.1, -0.2]])[0])[:6] in out

    def test_files_that_were_exchanged_are_refused(self, name: str, tmp_path: Path) -> None:
        one, other = fit(name), fit(name)
        for fitted, path in ((one, "one"), (other, "other")):
            fitted.save(tmp_path / path)
        certificate = (tmp_path / "one.certificate.json").read_bytes()
        (tmp_path / "other.certificate.json").write_bytes(certificate)
        with pytest.raises(CertificateInvalid, match="not the one"):
            type(one).load(tmp_path / "other")
        (tmp_path / "one.certificate.json").unlink()
        with pytest.raises(CertificateInvalid, match="no certificate"):
            type(one).load(tmp_path / "one")
        other.save(tmp_path / "one")
        with pytest.raises(CertificateInvalid, match="not by the expected"):
            type(one).load(tmp_path / "one", SigningKey.generate().public_key)

    def test_pickles_and_copies_hold_nothing_of_a_record(self, name: str) -> None:
        fitted = fit(name)
        fitted.left_behind_ = table(name)  # by a careless subclass, or its user
        stream = BytesIO()
        joblib.dump(fitted, stream)
        for copied in (
            pickle.loads(pickle.dumps(fitted)),
            joblib.load(BytesIO(stream.getvalue())),
            copy.copy(fitted),
            copy.deepcopy(fitted),
        ):
            assert not any(ROWS in shape for shape in shapes(vars(copied)))
            copied.verify()
            X, _ = table(name)
            if hasattr(fitted, "predict"):
                assert np.array_equal(copied.predict(X), fitted.predict(X))
        assert not any(ROWS in shape for shape in shapes(vars(clone(fitted))))

    def test_before_the_fit_there_is_nothing(self, name: str, tmp_path: Path) -> None:
        for attribute in ("model_", "certificate_", "schema_", "n_rounds_"):
            assert not hasattr(made(name), attribute)
        with pytest.raises(NotFittedError):
            made(name).verify()
        with pytest.raises(NotFittedError):
            made(name).save(tmp_path / "model")


def _with_records(loaded: Any, fitted: Any) -> Any:
    """k-means alone computes something from the records that were fitted."""
    if isinstance(loaded, KMeans):
        loaded._records = fitted._records
    return loaded


def shapes(value: Any, depth: int = 0) -> list[tuple[int, ...]]:
    """Of all arrays and lists inside, however deep."""
    if isinstance(value, np.ndarray):
        return [value.shape]
    if isinstance(value, dict):
        return [s for part in value.values() for s in shapes(part, depth + 1)]
    if isinstance(value, (list, tuple)):
        return [(len(value),), *(s for part in value for s in shapes(part, depth + 1))]
    if depth < 12 and hasattr(value, "__dict__"):
        return shapes(vars(value), depth + 1)
    if depth < 12 and hasattr(value, "__slots__"):
        parts = [getattr(value, n, None) for n in value.__slots__ if n != "__weakref__"]
        return [s for part in parts for s in shapes(part, depth + 1)]
    return []


def test_the_labels_of_k_means_stay_where_the_fit_was() -> None:
    X, _ = table("KMeans")
    fitted = made("KMeans")
    assert not hasattr(fitted, "labels_")
    assert np.array_equal(made("KMeans").fit_predict(X).shape, (ROWS,))
    fitted.fit(X)
    assert np.array_equal(fitted.labels_, fitted.predict(X))
    for copied in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted), clone(fitted)):
        with pytest.raises(AttributeError, match=r"predict\(X\)"):
            _ = copied.labels_


def test_estimators_come_back_from_other_processes() -> None:
    X, y = table("LogisticRegression")
    found = cross_validate(
        made("LogisticRegression", classes=["no", "yes"]),
        X,
        y,
        cv=2,
        n_jobs=2,
        return_estimator=True,
    )
    for estimator in found["estimator"]:
        estimator.verify()
        assert estimator.score(X, y) >= 0


def test_a_file_of_another_estimator_is_not_loaded(tmp_path: Path) -> None:
    fit("LinearRegression").save(tmp_path / "linear")
    with pytest.raises(InputError, match="no LogisticRegression"):
        LogisticRegression.load(tmp_path / "linear")

    class Other(LinearRegression):
        pass

    with pytest.raises(InputError, match="holds no Other"):
        Other.load(tmp_path / "linear")
    with pytest.raises(InputError, match="cannot be read"):
        LinearRegression.load(tmp_path / "nothing")


@pytest.mark.parametrize(
    "damage",
    [
        {"parameters": {"no such": 1}},
        {"parameters": []},
        {"classes": {"values": 3, "dtype": "<i8"}},
        {"classes": {"values": [1], "dtype": "V8"}},
        {"classes": 7},
        {"features": ["one"]},
        {"rounds": None},
    ],
)
def test_what_a_file_says_of_its_estimator_is_checked(
    damage: dict[str, Any], tmp_path: Path
) -> None:
    fitted, path = fit("KMeans"), tmp_path / "model"
    about = copy.deepcopy(fitted._release.about)
    about["estimator"].update(damage)
    release = replace(fitted._release, about=about)
    signed = replace(release.certificate, subject=digest(release.file))
    path.write_bytes(release.file)
    beside = path.with_name("model.certificate.json")
    beside.write_text(signed.signed(SigningKey.generate()).to_json())
    with pytest.raises(InputError, match="damaged"):
        KMeans.load(path)


def test_a_certificate_signed_anew_for_the_same_model_is_taken() -> None:
    fitted, key = fit("PCA"), SigningKey.generate()
    fitted.certificate_ = fitted.certificate_.signed(key)
    assert fitted.verify(key.public_key).signer


@pytest.mark.parametrize(
    "labels",
    [np.array([0, 1]), np.array([2.0, 7.0]), np.array([False, True]), np.array(["", "é b"])],
    ids=["integers", "floats", "truth values", "texts"],
)
def test_classes_keep_their_kind_in_a_file(labels: Any, tmp_path: Path) -> None:
    X, _ = table("NaiveBayes")
    y = labels[(X[:, 0] > 0).astype(int)]
    fitted = made("NaiveBayes").fit(X, y)
    fitted.save(tmp_path / "model")
    loaded = type(fitted).load(tmp_path / "model")
    assert loaded.classes_.dtype == labels.dtype
    assert loaded.classes_.tolist() == labels.tolist()
    assert np.array_equal(loaded.predict(X), fitted.predict(X))


def test_local_parameters_stay_here(tmp_path: Path) -> None:
    """Neither the seed, which would remove the noise, nor a path of this machine."""
    Ledger(tmp_path / "secret place.db").allow("secret data", "record", 1.0, 1e-6)
    schema = Schema.from_dict(
        {"columns": {f"c{i}": {"type": "number", "bounds": [-1, 1]} for i in range(3)}}
    )
    (tmp_path / "secret schema.toml").write_text(schema.to_toml())
    fitted = fit(
        "PCA",
        schema=str(tmp_path / "secret schema.toml"),
        bounds=None,
        ledger=str(tmp_path / "secret place.db"),
        dataset="secret data",
        random_state=918273645,
    )
    fitted.save(tmp_path / "model")
    data = (tmp_path / "model").read_bytes()
    assert b"secret" not in data
    assert b"918273645" not in data
    assert type(fitted).load(tmp_path / "model").schema == schema


def test_parameters_from_arrays_are_numbers_too(tmp_path: Path) -> None:
    X, _ = table("KMeans")
    search = GridSearchCV(made("KMeans"), {"n_clusters": np.array([2, 3])}, cv=2).fit(X)
    search.best_estimator_.save(tmp_path / "model")
    assert KMeans.load(tmp_path / "model").n_clusters in (2, 3)
    items, _ = table("FrequentItemsets")
    made("FrequentItemsets", min_support=np.float64(0.2), max_length=np.int64(2)).fit(
        items
    ).verify()
