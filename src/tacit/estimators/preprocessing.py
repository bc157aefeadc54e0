"""Steps before a private fit that read the records without noise: found, warned of, written down.

A pipeline of scikit-learn's hands on transformed records and nothing else, so the pipeline is
looked up among the calling frames: it calls `fit` of its last step in its own process, also in
searches and with `n_jobs`. What was fitted outside of a pipeline cannot be found that way; columns
that are standardised to the last digit give it away, and the condition that nothing before the fit
depends on the records stands in every certificate anyway.

The certificate names steps of a pipeline, which is public. The look at the numbers ends in a
warning to who holds them, and nowhere else.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags

from tacit.errors import PreprocessingWarning
from tacit.privacy.certificate import Certificate

__all__ = ["fitted_steps", "is_standardised", "warn_of_fitted_steps", "with_fitted_steps"]

INSTEAD = (
    "Put tacit.estimators.Scaler or Imputer in their place (public parameters, or found under a "
    "promise of their own), or state bounds and what a missing value means in a schema."
)
# Of scikit-learn's: what their fit learns is the number of columns, or nothing of the records.
PUBLIC = frozenset(
    {
        "AdditiveChi2Sampler",
        "Binarizer",
        "FeatureHasher",
        "FunctionTransformer",
        "GaussianRandomProjection",
        "HashingVectorizer",
        "MissingIndicator",
        "Normalizer",
        "PolynomialCountSketch",
        "PolynomialFeatures",
        "RBFSampler",
        "SkewedChi2Sampler",
        "SparseRandomProjection",
    }
)
EXACT = 1e-9  # how near to mean 0 and deviation 1 a scaler comes
FEW_ROWS = 10  # of which a chance agreement is thinkable


def fitted_steps(estimator: Any) -> tuple[str, ...]:
    """Steps before `estimator` in the pipelines that are fitting it, which learn from the records
    without noise: by name and class, the outermost pipeline's first."""
    found: dict[str, None] = {}
    for step in _calling(estimator, sys._getframe(1)):
        found[step] = None
    return tuple(found)


def warn_of_fitted_steps(estimator: Any, X: NDArray[np.float64] | None = None) -> None:
    """PreprocessingWarning if there are any, or if X looks as if there were; before anything is
    spent. A fit without privacy has nothing to lose."""
    if estimator.epsilon == math.inf:
        return
    steps = fitted_steps(estimator)
    if steps:
        warnings.warn(
            f"{', '.join(steps)}: fitted on the records without noise before "
            f"{type(estimator).__name__}, whose promise does not cover it. {INSTEAD}",
            PreprocessingWarning,
            stacklevel=4,
        )
    elif X is not None and is_standardised(X):
        warnings.warn(
            "the columns have mean 0 and deviation 1 to the last digit: they were standardised by "
            "their own records, without noise, which the promise does not cover. " + INSTEAD,
            PreprocessingWarning,
            stacklevel=4,
        )


def is_standardised(X: NDArray[np.float64]) -> bool:
    """Whether every column that varies has mean 0 and deviation 1 exactly, as only a scaler makes
    them that was fitted on these very records."""
    if len(X) < FEW_ROWS:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        mean, deviation = X.mean(axis=0), X.std(axis=0)
    varies = deviation > EXACT
    exact = (np.abs(mean) < EXACT) & (np.abs(deviation - 1) < EXACT)
    return bool(varies.any() and exact[varies].all())


def with_fitted_steps(certificate: Certificate, estimator: Any) -> Certificate:
    """The certificate with one more condition, if such steps were found."""
    steps = fitted_steps(estimator)
    if not steps or not certificate.promise.is_private:
        return certificate
    told = (
        f"Fitted on the records before this fit, without noise, and NOT covered: "
        f"{', '.join(steps)}. The promise holds for what was learned after them only if what they "
        "learned is public."
    )
    return replace(certificate, conditions=(*certificate.conditions, told))


def _calling(estimator: Any, frame: FrameType | None) -> Iterator[str]:
    """From the outermost pipeline inwards."""
    frames = []
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(("sklearn.", "imblearn.")):
            frames.append(frame)
        frame = frame.f_back
    seen: list[Any] = []
    for one in reversed(frames):
        composite = one.f_locals.get("self")
        if any(composite is other for other in seen):
            continue
        seen.append(composite)
        if isinstance(composite, Pipeline):
            yield from _learning(_before(composite, estimator, seen))
        elif isinstance(composite, TransformedTargetRegressor) and composite.transformer:
            yield from _learning([("the target", composite.transformer)])


def _before(pipeline: Pipeline, estimator: Any, outer: list[Any]) -> list[tuple[str, Any]]:
    """The steps before the one that is being fitted. A step in the middle is a clone, known by its
    class alone: of several, the last is taken, so that rather one step too many is named."""
    steps = pipeline.steps
    kinds = (type(estimator),)
    places = [i for i, (_, step) in enumerate(steps[:-1]) if _holds(step, kinds)]
    last = steps[-1][1]
    if last is estimator or _holds(last, kinds) or not places:
        return list(steps[:-1])
    return list(steps[: places[-1]])


def _holds(step: Any, kinds: tuple[type, ...]) -> bool:
    """Whether a step is, or has in it, an estimator of these classes."""
    if isinstance(step, kinds):
        return True
    if not hasattr(step, "get_params"):
        return False
    return any(isinstance(value, kinds) for value in step.get_params(deep=True).values())


def _learning(steps: Iterable[tuple[str, Any]]) -> Iterator[str]:
    """Those which learn from records, looking into what is put together from others."""
    for name, step in steps:
        if isinstance(step, Pipeline):
            yield from _learning(step.steps)
        elif isinstance(step, FeatureUnion):
            yield from _learning(step.transformer_list)
        elif isinstance(step, ColumnTransformer):
            yield from _learning((part, kind) for part, kind, *_ in step.transformers)
        elif _learns(step):
            yield f"{type(step).__name__} ({name!r})"


def _learns(step: Any) -> bool:
    from tacit.estimators.certified import CertifiedEstimator

    if step is None or isinstance(step, (str, CertifiedEstimator)):
        return False
    kind, given = type(step).__name__, step.get_params() if hasattr(step, "get_params") else {}
    if kind in PUBLIC and type(step).__module__.startswith("sklearn."):
        return False
    if kind == "SimpleImputer" and given.get("strategy") == "constant":
        return False
    if kind in ("OneHotEncoder", "OrdinalEncoder") and _lists_only(given):
        return False
    try:
        return bool(get_tags(step).requires_fit)
    except Exception:  # no tags: somebody's own class
        return True


def _lists_only(given: dict[str, Any]) -> bool:
    """Whether an encoder was told its categories, and groups none of them by how often they are."""
    stated = not isinstance(given.get("categories"), str)
    return stated and given.get("min_frequency") is None and given.get("max_categories") is None
