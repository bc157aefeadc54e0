"""A trained model as bytes: its recipe and its rows, never code.

Whoever reads a pickle runs what its author wrote. Here the model is fitted again from plain data,
from the same seed, and must repeat answers that were kept beside it. If it does not, the library
has changed since: it is kept in use with a note that says by how much.
"""

from __future__ import annotations

import dataclasses
from importlib.metadata import version
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, UsageError
from tacit.personal.events import Kind
from tacit.personal.learning.models import fit
from tacit.personal.learning.report import Report
from tacit.personal.learning.training import Trained
from tacit.personal.matrix import FeatureMatrix

__all__ = ["from_bytes", "to_bytes"]

FORM = "tacit kept model 1"
LIBRARIES = ("numpy", "scikit-learn")
PROBED = 64  # rows whose answers are kept
CLOSE = 1e-6
DAMAGED = "this is not a kept model of tacit, or it is damaged: train it again."
LAYOUT: dict[str, tuple[Any, int]] = {  # dtype and dimensions
    "about": (np.uint8, 1),
    "columns": (np.float64, 2),
    "cutoffs": (np.int64, 1),
    "labels": (np.float64, 1),
    "probe": (np.float64, 2),
}


class _About(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    form: str
    report: Report
    seed: int
    span: Annotated[int, msgspec.Meta(ge=0, le=2**62)]
    versions: dict[str, str]
    keys: tuple[str, ...]
    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    label: str
    classes: tuple[str, ...]
    values: dict[str, tuple[str, ...]]


def to_bytes(trained: Trained) -> bytes:
    """Everything that `from_bytes` needs. They hold the person's own rows: keep them as safe."""
    from safetensors.numpy import save

    matrix = trained.matrix
    about = _About(
        form=FORM,
        report=trained.report,
        seed=trained.seed,
        span=trained.span,
        versions=_versions(),
        keys=matrix.keys,
        names=matrix.names,
        kinds=matrix.kinds,
        label=matrix.label,
        classes=matrix.classes,
        values={n: v for n, v in (matrix.values or {}).items() if n in matrix.names},
    )
    arrays: dict[str, NDArray[Any]] = {
        "about": np.frombuffer(msgspec.json.encode(about), np.uint8),
        "columns": np.ascontiguousarray(matrix.columns),
        "cutoffs": np.ascontiguousarray(matrix.cutoffs),
        "labels": np.ascontiguousarray(matrix.labels),
        "probe": _probe(trained),
    }
    return bytes(save(arrays))


def from_bytes(data: bytes) -> Trained:
    """The model, fitted again. An InputError if the bytes are not such a model's."""
    arrays = _arrays(data)
    about = _about(arrays["about"].tobytes())
    matrix = _matrix(about, arrays)
    _check_report(about, matrix)
    report = about.report
    model = fit(report.recipe, report.task, matrix, matrix, about.span, about.seed)
    trained = Trained(report, matrix, model, about.span, about.seed)
    return dataclasses.replace(trained, notes=_compared(trained, arrays["probe"], about.versions))


def _versions() -> dict[str, str]:
    return {name: version(name) for name in LIBRARIES}


def _probe(trained: Trained) -> NDArray[np.float64]:
    """Answers to the latest rows, one row each."""
    said = trained.answers(trained.matrix.take(np.arange(trained.matrix.rows)[-PROBED:]))
    return np.ascontiguousarray(said.reshape(len(said), -1))


def _compared(
    trained: Trained, kept: NDArray[np.float64], versions: dict[str, str]
) -> tuple[str, ...]:
    """Nothing if the answers are as they were; numbers are compared relative to their size."""
    again = _probe(trained)
    if again.shape != kept.shape or not np.isfinite(kept).all():
        raise InputError(DAMAGED)
    apart = float(np.max(np.abs(again - kept) / np.maximum(1.0, np.abs(kept)), initial=0.0))
    if apart <= CLOSE:
        return ()
    now = _versions()
    changed = [f"{n} {versions.get(n, '?')[:20]} → {now[n]}" for n in LIBRARIES]
    return (
        f"It was fitted again, and its answers differ from those kept by up to {apart:.2g}: the "
        f"libraries have changed ({', '.join(changed)}). Its scores are those of the first time; "
        "train it again to renew them.",
    )


def _arrays(data: bytes) -> dict[str, NDArray[Any]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays: dict[str, NDArray[Any]] = load(data)
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError):
        raise InputError(DAMAGED) from None
    if arrays.keys() != LAYOUT.keys():
        raise InputError(DAMAGED)
    for name, (dtype, dimensions) in LAYOUT.items():
        if arrays[name].dtype != dtype or arrays[name].ndim != dimensions:
            raise InputError(DAMAGED)
    return arrays


def _about(text: bytes) -> _About:
    try:
        about = msgspec.json.decode(text, type=_About)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise InputError(DAMAGED) from None
    if about.form != FORM:
        raise InputError("this model was kept by another version of tacit: train it again.")
    return about


def _matrix(about: _About, arrays: dict[str, NDArray[Any]]) -> FeatureMatrix:
    try:
        matrix = FeatureMatrix(
            about.keys,
            arrays["cutoffs"],
            about.names,
            about.kinds,
            arrays["columns"],
            arrays["labels"],
            about.label,
            about.classes,
            about.values,
        )
    except UsageError:
        raise InputError(DAMAGED) from None
    coded = [
        name for name, kind in zip(about.names, about.kinds, strict=True) if kind == "category"
    ]
    fits = (
        matrix.rows > 0
        and np.isfinite(matrix.labels).all()
        and set(coded) <= about.values.keys()
        and len(set(about.names)) == len(about.names)
    )
    if not fits:
        raise InputError(DAMAGED)
    return matrix


def _check_report(about: _About, matrix: FeatureMatrix) -> None:
    """What the report says must fit the rows, or answers would be read wrongly."""
    report, labels = about.report, matrix.labels
    number = report.task == "number"
    many = len(about.classes)
    curves = report.calibration.curves
    wanted = 0 if report.calibration.method == "none" else (1 if many == 2 else many)
    fits = (
        len(report.classes) == many
        and number == (many == 0)
        and report.features == about.names
        and len(curves) == wanted
        and all(len(curve.xs) == len(curve.ys) > 0 for curve in curves)
        and (number or bool(np.isin(labels, np.arange(many)).all()))
        and not (number and wanted)
    )
    if not fits:
        raise InputError(DAMAGED)
