"""A fitted estimator is one release: a model, what it is, and the certificate for these very bytes.

All that an estimator learned is read from the release: no attribute can say something else than
what was certified, and nothing beside it (records, their clusters) is ever pickled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tacit.crypto.signing import SigningKey, digest
from tacit.data.schema import Schema
from tacit.errors import CertificateInvalid, InputError, UsageError
from tacit.estimators.budget import refuse_unless_all_fits
from tacit.estimators.preprocessing import with_fitted_steps
from tacit.privacy.certificate import Certificate, Verdict
from tacit.privacy.ledger import Ledger
from tacit.programs.files import about_of, read, to_bytes
from tacit.programs.model_file import model_bytes, model_from_bytes
from tacit.programs.program import Learner
from tacit.programs.registry import learner_named

__all__ = [
    "CertifiedEstimator",
    "count_or_none",
    "frozen",
    "plain_number",
    "signing_key",
    "whole_number",
]

SUFFIX = ".certificate.json"  # beside the model, as `tacit verify` expects it
# Parameters of this machine and this run: they are not part of a saved estimator.
LOCAL = frozenset({"ledger", "dataset", "random_state", "n_jobs", "verbose"})
# What is pickled beside the parameters; the last two are scikit-learn's, of its own configuration.
KEPT = frozenset(
    {
        "_release",
        "n_features_in_",
        "feature_names_in_",
        "_sklearn_version",
        "_sklearn_output_config",
        "_metadata_request",
    }
)
LABEL_KINDS = "biufUSO"  # of numpy's types: truth values, numbers, texts


@dataclass(frozen=True, slots=True)
class Release:
    """A model, plain data about it (program, schema, estimator), and their certificate."""

    model: Any
    about: dict[str, Any]
    certificate: Certificate

    @property
    def file(self) -> bytes:
        """The model file that the certificate is for."""
        return to_bytes(self.model, self.about)


class CertifiedEstimator(BaseEstimator):
    """What fit released, and what can be done with it: verify, save, load.

    A subclass names the program whose models it has, and reads its fitted attributes from `model_`.
    """

    _program_type: ClassVar[type[Learner]]
    # Sparse matrices are taken, and made dense: noise leaves nothing sparse.
    _takes_sparse: ClassVar[bool] = True
    # Parameters that the model file has in another place.
    _said_elsewhere: ClassVar[frozenset[str]] = frozenset()
    _release: Release

    @property
    def model_(self) -> Any:
        """The program's model, in its own coordinates: what was released."""
        return self._released.model

    @property
    def certificate_(self) -> Certificate:
        return self._released.certificate

    @certificate_.setter
    def certificate_(self, certificate: Certificate) -> None:
        """Another certificate for the same model, e.g. signed by another key; no other one."""
        certificate.verify(subject=digest(self._released.file))
        self._release = replace(self._release, certificate=certificate)

    @property
    def schema_(self) -> Schema:
        """The columns as the program saw them, with the bounds that were used."""
        return Schema.from_dict(self._released.about["schema"])

    @property
    def range_found_(self) -> NDArray[np.bool_]:
        """For each feature, whether its range is known: stated, or found under the promise. Where
        it is False a guess was used."""
        found = [column.range_found is not False for column in self.schema_.features]
        return frozen(np.array(found, dtype=np.bool_))

    @property
    def label_range_found_(self) -> bool:
        """The same of the label; True where it has no range."""
        label = self.schema_.label
        return label is None or label.range_found is not False

    @property
    def n_rounds_(self) -> int:
        return int(self._released.about["estimator"]["rounds"])

    def verify(self, signer: str | None = None) -> Verdict:
        """Recompute the model's digest and the certificate; CertificateInvalid if either fails.

        `signer` pins the public key that must have signed.
        """
        check_is_fitted(self)
        return self.certificate_.verify(signer, digest(self._released.file))

    def save(self, path: str | Path) -> None:
        """Write a model file, and its certificate beside it: `tacit verify` and `tacit predict`
        read them. What is local (ledger, random_state, n_jobs) is left out."""
        self.verify()
        _beside(path).unlink(missing_ok=True)  # never an old certificate beside a new model
        Path(path).write_bytes(self._released.file)
        _beside(path).write_bytes(self.certificate_.to_json().encode())

    @classmethod
    def load(cls, path: str | Path, signer: str | None = None) -> Self:
        """What `save` wrote, verified first: CertificateInvalid if model or certificate is
        another, InputError if the file holds no estimator of this class."""
        data, beside = read(path), _beside(path)
        if not beside.exists():
            raise CertificateInvalid(f"{path} has no certificate: {beside.name} is not beside it.")
        certificate = Certificate.from_json(read(beside))
        certificate.verify(signer, digest(data))
        saved = model_from_bytes(data, str(path))
        if not isinstance(saved.program, cls._program_type):
            raise InputError(f"{path} holds a model of {saved.program.name!r}, no {cls.__name__}.")
        return cls._restored(Release(saved.model, about_of(data), certificate), str(path))

    @classmethod
    def _restored(cls, release: Release, where: str) -> Self:
        about = release.about.get("estimator")
        if not isinstance(about, dict) or about.get("name") != cls.__name__:
            raise InputError(
                f"{where} holds no {cls.__name__} that was saved by an estimator: load it with the "
                "class that saved it, or with tacit.programs.model_file.load_model."
            )
        try:
            return cls._built(release, about)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise InputError(f"{where}: what it says of its estimator is damaged.") from None

    @classmethod
    def _built(cls, release: Release, about: dict[str, Any]) -> Self:
        promise = release.certificate.promise
        given = {name: _parameter(name, value) for name, value in about["parameters"].items()}
        whole = {"epsilon": promise.epsilon, "delta": promise.delta}
        estimator = cls(**{**given, **whole, "adjacency": promise.adjacency.value})
        estimator._release = release
        names = about["features"]
        estimator.n_features_in_ = len(estimator.schema_.features)
        if names is not None:
            if len(names) != estimator.n_features_in_:
                raise ValueError("names for other columns")
            estimator.feature_names_in_ = np.array([str(name) for name in names], dtype=object)
        _classes(about)
        int(about["rounds"])
        return estimator

    @property
    def _released(self) -> Release:
        try:
            return self._release
        except AttributeError:
            raise AttributeError(
                f"this {type(self).__name__} is not fitted yet: call fit first."
            ) from None

    @property
    def _program(self) -> Learner:
        about = self._released.about
        return learner_named(about["program"], about["version"], about["settings"])

    @property
    def _classes(self) -> NDArray[Any] | None:
        return _classes(self._released.about["estimator"])

    def _keep(
        self,
        outcome: Any,
        program: Learner,
        schema: Schema,
        key: SigningKey,
        classes: NDArray[Any] | None = None,
    ) -> None:
        """Certify what a channel released: the model together with all that gives it meaning."""
        names = getattr(self, "feature_names_in_", None)
        about = {
            **about_of(model_bytes(outcome.model, program, schema)),
            "estimator": {
                "name": type(self).__name__,
                "rounds": outcome.rounds,
                "features": None if names is None else [str(name) for name in names],
                "classes": None if classes is None else _plain_classes(classes),
                "parameters": self._public_parameters(),
            },
        }
        certificate = with_fitted_steps(outcome.certificate, self)
        release = Release(outcome.model, about, certificate)
        certificate = replace(certificate, subject=digest(release.file)).signed(key)
        self._release = replace(release, certificate=certificate)

    def _public_parameters(self) -> dict[str, Any]:
        """Those that are part of the model, but for the promise, which the certificate has."""
        skipped = LOCAL | {"epsilon", "delta", "adjacency", *self._said_elsewhere}
        given = self.get_params(deep=False)
        if isinstance(given.get("schema"), (str, Path)):
            given["schema"] = Schema.load(given["schema"])  # a path is this machine's
        return {name: _plain(value) for name, value in given.items() if name not in skipped}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "_release" in vars(self)

    def __getstate__(self) -> dict[str, Any]:
        """For pickles and copies: parameters and the release, nothing that a record left behind. A
        ledger is named by its path: what it holds is the holder's."""
        known = KEPT | set(self._get_param_names())
        state = super().__getstate__()
        kept = {name: value for name, value in state.items() if name in known}
        if isinstance(kept.get("ledger"), Ledger):
            kept["ledger"] = str(kept["ledger"].path)
        return kept

    def __sklearn_clone__(self) -> Self:
        """A copy that is not fitted. The first of many is the last moment to refuse them all."""
        if getattr(self, "ledger", None) is not None:
            refuse_unless_all_fits()
        copy: Self = super().__sklearn_clone__()
        return copy

    def _html_repr(self) -> str:
        """What a notebook shows: scikit-learn's diagram, and the certificate of a fitted one."""
        diagram = str(super()._html_repr())
        return diagram + (self.certificate_._repr_html_() if self.__sklearn_is_fitted__() else "")


def signing_key() -> SigningKey:
    """The holder's, or where nothing can be written, one for this certificate alone."""
    try:
        return SigningKey.of_holder()
    except OSError:
        return SigningKey.generate()


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A copy that cannot be changed: what is learned is changed by learning."""
    copy = np.array(array)
    copy.flags.writeable = False
    return copy


def plain_number(value: Any) -> Any:
    """A parameter from one of numpy's arrays as Python's own number; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def whole_number(value: Any, name: str, least: int = 1) -> int:
    """A parameter that counts something; UsageError before anything is spent if it does not."""
    value = plain_number(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UsageError(f"{name} must be a whole number of at least {least}, not {value!r}.")
    return value


def count_or_none(value: Any, name: str) -> int | None:
    return None if value is None else whole_number(value, name)


def _beside(path: str | Path) -> Path:
    return Path(path).with_name(Path(path).name + SUFFIX)


def _plain(value: Any) -> Any:
    """A parameter as JSON has it."""
    if isinstance(value, Schema):
        return value.to_dict()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return _plain(np.asarray(value).tolist())


def _parameter(name: str, value: Any) -> Any:
    return Schema.from_dict(value) if name == "schema" and isinstance(value, dict) else value


def _plain_classes(classes: NDArray[Any]) -> dict[str, Any]:
    if classes.dtype.kind not in LABEL_KINDS:
        raise UsageError("classes are truth values, numbers or texts: give these as labels.")
    values = classes.astype(str) if classes.dtype.kind == "S" else classes
    return {"values": values.tolist(), "dtype": classes.dtype.str}


def _classes(about: dict[str, Any]) -> NDArray[Any] | None:
    stored = about["classes"]
    if stored is None:
        return None
    dtype = np.dtype(stored["dtype"])
    if dtype.kind not in LABEL_KINDS or not isinstance(stored["values"], list):
        raise ValueError("no classes")
    return np.array(stored["values"], dtype=dtype)
