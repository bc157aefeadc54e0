"""From events to the matrix that a model is trained on: instances, features, labels."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.errors import UsageError
from tacit.personal.dataset import Dataset
from tacit.personal.features.featurizer import Featurizer
from tacit.personal.features.generate import generated
from tacit.personal.features.language import parse
from tacit.personal.features.nodes import Feature
from tacit.personal.matrix import FeatureMatrix
from tacit.personal.problems.declared import DeclaredInstancer
from tacit.personal.problems.instances import Instancer, Instances
from tacit.personal.problems.problem import Problem
from tacit.personal.problems.reading import feature_kind, reads

__all__ = ["features_of", "matrix_of", "matrix_over"]


def matrix_of(
    what: Problem | tuple[Instancer, Featurizer],
    dataset: Dataset,
    now: int | None = None,
    features: Sequence[str] | None = None,
) -> FeatureMatrix:
    """One row for each instance, labelled where the answer is known already.

    what      a problem, or an instancer and a featurizer in Python
    now       until when everything has been recorded; by default the last moment of the events
    features  these, and not those of the problem: such as the ones that a model has kept
    """
    if isinstance(what, Problem):
        chosen = features_of(what) if features is None else _given(what, features)
        return matrix_over(DeclaredInstancer(what).make_instances(dataset, now), chosen)
    if features is not None:
        raise UsageError("`features` goes with a problem; here the featurizer says which.")
    instancer, featurizer = what
    return _made(instancer.make_instances(dataset, now), featurizer)


def features_of(problem: Problem) -> tuple[Feature, ...]:
    """Those that it lists, and then those that are made; none that reads a property to predict."""
    listed = [parse(text) for text in problem.declared]
    label = reads(parse(problem.label.value))
    made = generated(problem.types, problem)
    safe = [feature for feature in made if not reads(feature).static & label.static]
    return tuple(dict.fromkeys((*listed, *safe)))


def matrix_over(instances: Instances, features: Sequence[Feature]) -> FeatureMatrix:
    """These features of these instances, and their labels."""
    return _made(instances, Featurizer(tuple(features)))


def _made(instances: Instances, featurizer: Featurizer) -> FeatureMatrix:
    labels = instances.labels
    return featurizer.make(
        instances.dataset,
        instances.frame,
        instances.keys,
        labels.values,
        instances.label_name,
        labels.classes,
    )


def _given(problem: Problem, features: Sequence[str]) -> list[Feature]:
    for text in features:
        feature_kind(problem, text)
    return [parse(text) for text in features]
