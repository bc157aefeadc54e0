"""A model as a plain scikit-learn object, for programs that know nothing of tacit.

The object behaves as if scikit-learn had fitted it on encoded records; its pickle names no class of
tacit. It predicts what our model predicts; what only a fit on the data would know (inertia, class
counts) is not there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import UsageError
from tacit.programs.kmeans import KMeansModel
from tacit.programs.linear import LinearModel
from tacit.programs.logistic import LogisticModel
from tacit.programs.mixture import MixtureModel
from tacit.programs.model_file import SavedModel
from tacit.programs.naive_bayes import NaiveBayesModel
from tacit.programs.pca import PCAModel
from tacit.programs.prediction import class_names

__all__ = ["to_sklearn"]

Reals = NDArray[np.float64]


def to_sklearn(model: Any) -> Any:
    """The scikit-learn estimator that does what this model, or saved model, does.

    It takes encoded records (`SavedModel.encoder`). Classes have the names that the schema gives
    them; naive Bayes without its schema has numbers instead.
    """
    names: tuple[str, ...] = ()
    if isinstance(model, SavedModel):
        label = model.schema.label
        names = class_names(label) if label is not None else ()
        model = model.model
    match model:
        case LogisticModel():
            return _logistic(model)
        case LinearModel():
            return _linear(model)
        case KMeansModel():
            return _kmeans(model)
        case MixtureModel():
            return _mixture(model)
        case NaiveBayesModel():
            return _naive_bayes(model, names)
        case PCAModel():
            return _pca(model)
    raise UsageError(
        f"scikit-learn has nothing like a {type(model).__name__}. It has: logistic and linear "
        "regression, k-means, Gaussian mixture, naive Bayes, PCA."
    )


def _logistic(model: LogisticModel) -> Any:
    from sklearn.linear_model import LogisticRegression

    if model.features is not None:
        raise UsageError(
            f"this model sees numbers as {model.features}, and scikit-learn's takes them as they "
            "are. Use the model itself (tacit predict, or SavedModel.predict), or fit it with "
            'features = "raw".'
        )
    width = model.coef.shape[1]
    return _fitted(
        LogisticRegression(),
        width,
        coef_=model.coef,
        intercept_=model.intercept,
        classes_=np.array(model.classes),
    )


def _linear(model: LinearModel) -> Any:
    from sklearn.linear_model import LinearRegression

    # From the label scaled to [−1, 1] to its own unit: low + (scaled + 1) · stretch.
    stretch = (model.high - model.low) / 2.0
    intercept = model.low + (model.intercept + 1.0) * stretch
    coef = stretch * model.coef
    return _fitted(LinearRegression(), len(coef), coef_=coef, intercept_=intercept)


def _kmeans(model: KMeansModel) -> Any:
    from sklearn.cluster import KMeans

    clusters, width = model.centres.shape
    found = KMeans(n_clusters=clusters)
    # scikit-learn's fit leaves this beside the public attributes, and its predict reads it.
    return _fitted(found, width, cluster_centers_=model.centres, _n_threads=1)


def _mixture(model: MixtureModel) -> Any:
    from sklearn.mixture import GaussianMixture

    components, width = model.means.shape
    roots = _precision_roots(model.covariances)
    whole = roots @ roots.transpose(0, 2, 1) if roots.ndim == 3 else roots**2
    return _fitted(
        GaussianMixture(components, covariance_type=model.kind),
        width,
        weights_=model.weights,
        means_=model.means,
        covariances_=model.covariances,
        precisions_=whole,
        precisions_cholesky_=roots,
        converged_=True,
    )


def _precision_roots(covariances: Reals) -> Reals:
    """U with U Uᵀ = Σ⁻¹, upper triangular, as scikit-learn keeps it: L⁻ᵀ for Σ = L Lᵀ."""
    if covariances.ndim < 3:
        return np.asarray(1.0 / np.sqrt(covariances))
    return np.ascontiguousarray(np.linalg.inv(np.linalg.cholesky(covariances)).transpose(0, 2, 1))


def _naive_bayes(model: NaiveBayesModel, names: tuple[str, ...]) -> Any:
    from sklearn.naive_bayes import GaussianNB, MultinomialNB

    count, width = model.weights.shape
    classes = np.array(names) if names else np.arange(count)
    if not len(model.numbers):
        # A sum of weights of the coordinates that are 1, which is what MultinomialNB computes.
        prior = model.class_log_prior + model.offset
        weights = {"feature_log_prob_": model.weights, "class_log_prior_": prior}
        return _fitted(MultinomialNB(), width, classes_=classes, **weights)
    if len(model.numbers) < width:
        raise UsageError(
            "scikit-learn has no naive Bayes for numbers and categories together. Give the numbers "
            "edges in the schema, or use the model itself: tacit predict, or SavedModel.predict."
        )
    return _fitted(
        GaussianNB(),
        width,
        classes_=classes,
        class_prior_=np.exp(model.class_log_prior),
        theta_=model.mean,
        var_=model.variance,
        epsilon_=0.0,
    )


def _pca(model: PCAModel) -> Any:
    from sklearn.decomposition import PCA

    count, width = model.components.shape
    explained, shares = float(model.explained_variance.sum()), model.explained_variance_ratio.sum()
    left = explained / float(shares) - explained if shares > 0 else 0.0
    return _fitted(
        PCA(n_components=count),
        width,
        components_=model.components,
        mean_=model.mean,
        explained_variance_=model.explained_variance,
        explained_variance_ratio_=model.explained_variance_ratio,
        singular_values_=model.singular_values,
        n_components_=count,
        n_samples_=round(model.count),
        noise_variance_=max(left, 0.0) / (width - count) if count < width else 0.0,
    )


def _fitted(estimator: Any, width: int, **attributes: Any) -> Any:
    """The estimator with what its own fit would have set; arrays are copies of its own."""
    for name, value in {"n_features_in_": width, **attributes}.items():
        setattr(estimator, name, value.copy() if isinstance(value, np.ndarray) else value)
    return estimator
