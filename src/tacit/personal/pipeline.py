"""The whole way for one person: a problem over her store, a model that is kept, what it predicts.

Plain functions, for the command line and for any other face.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tacit.errors import InputError, UsageError
from tacit.personal.dataset import Dataset
from tacit.personal.events import EPOCH, MICROSECOND, Event, Kind, Value
from tacit.personal.features.language import parse
from tacit.personal.learning.kept import from_bytes, to_bytes
from tacit.personal.learning.prediction import Prediction, predict
from tacit.personal.learning.training import Trained, train
from tacit.personal.matrix import FeatureMatrix
from tacit.personal.problems.bundle import Bundle
from tacit.personal.problems.declared import DeclaredInstancer
from tacit.personal.problems.instances import Instances, last_moment
from tacit.personal.problems.making import features_of, matrix_over
from tacit.personal.problems.problem import Problem
from tacit.personal.problems.reading import label_kind
from tacit.personal.store.store import Kept, Store

__all__ = [
    "Imagined",
    "adopt",
    "instances_of",
    "kept_model",
    "matrix_from",
    "predict_with",
    "problem_named",
    "train_and_keep",
    "values_in",
]

FREQUENT = 200  # values of a category that a question may name
TRUE, FALSE = ("true", "yes", "1"), ("false", "no", "0")


@dataclass(frozen=True)
class Imagined:
    """An event that has not happened: when it would, and what is known of it beforehand."""

    at: int
    known: Mapping[str, str]


def problem_named(store: Store, word: str) -> Problem:
    """The problem in a file, or the one kept under this name."""
    if word.endswith(".toml") or Path(word).is_file():
        return Bundle.load(word).problem
    return Bundle.from_dict(_plain(store.fetched("problem", word)), word).problem


def adopt(store: Store, bundle: Bundle) -> None:
    """Keep a problem under its name, in place of an earlier one."""
    problem = bundle.problem
    kept = Kept("problem", problem.name, tuple(problem.events), problem.question)
    store.keep(kept, bundle.to_toml().encode())


def instances_of(store: Store, problem: Problem, now: int | None = None) -> Instances:
    return DeclaredInstancer(problem).make_instances(_dataset(store, problem), now)


def matrix_from(store: Store, problem: Problem, now: int | None = None) -> FeatureMatrix:
    """Every instance with its features and, where it is known, its label."""
    return matrix_over(instances_of(store, problem, now), features_of(problem))


def train_and_keep(
    store: Store, problem: Problem, now: int | None = None, seed: int = 0
) -> Trained:
    """Learn from all instances whose label is known; the problem and the model are kept."""
    instances = instances_of(store, problem, now)
    matrix = matrix_over(instances, features_of(problem))
    trained = train(matrix, label_kind(problem), label_span=instances.label_span, seed=seed)
    if not _is_kept(store, problem):  # or its author's signature would be lost
        adopt(store, Bundle(problem))
    kept = Kept("model", problem.name, tuple(problem.events), problem.question)
    store.keep(kept, to_bytes(trained))
    return trained


def kept_model(store: Store, name: str) -> Trained:
    """The model that was trained on this problem; fitted anew from what was kept."""
    if name not in store.kept("model"):
        known = ", ".join(store.kept("model")) or "none"
        raise UsageError(
            f"nothing was trained under the name {name}; there are: {known}. Run: tacit me train"
        )
    return from_bytes(store.fetched("model", name))


def predict_with(
    store: Store,
    problem: Problem,
    trained: Trained,
    now: int | None = None,
    imagined: Imagined | None = None,
) -> tuple[FeatureMatrix, tuple[Prediction, ...]]:
    """What the model says of the instances whose label is not known yet; of one that is imagined,
    if there is one."""
    dataset = _dataset(store, problem)
    now = last_moment(dataset) if now is None else now
    if imagined is not None:
        dataset = _with(dataset, problem, imagined)
    instances = DeclaredInstancer(problem).make_instances(dataset, now)
    matrix = matrix_over(instances, [parse(text) for text in trained.matrix.names])
    asked_for = ~matrix.is_labelled
    if imagined is not None:
        asked_for &= instances.starts == imagined.at
    asked = matrix.take(asked_for)
    if not asked.rows:
        raise InputError(
            f"{problem.name}: every instance has its answer already. Say when the next one is with "
            "--at, or import newer data."
        )
    return asked, predict(trained, asked)


def values_in(dataset: Dataset) -> Callable[[str, str], list[str]]:
    """Type, field → the values of a category, the most frequent first."""

    def found(name: str, field: str) -> list[str]:
        codes, values = dataset.of(name).codes(field)
        counts = np.bincount(codes[codes >= 0], minlength=len(values))
        return [values[place] for place in np.argsort(-counts, kind="stable")[:FREQUENT]]

    return found


def _is_kept(store: Store, problem: Problem) -> bool:
    kept = store.kept("problem")
    return problem.name in kept and problem_named(store, problem.name).digest == problem.digest


def _dataset(store: Store, problem: Problem) -> Dataset:
    problem.check_against(store.catalogue())
    return store.dataset(list(problem.events))


def _with(dataset: Dataset, problem: Problem, imagined: Imagined) -> Dataset:
    """The data with one more event, of which only what is known beforehand is known."""
    terms = problem.instance
    if terms.per != "event":
        raise UsageError(
            f"{problem.name}: is about each {terms.per}, so there is no single event to imagine. "
            "Leave --at out."
        )
    unknown = sorted(set(imagined.known) - set(terms.known))
    if unknown:
        known = ", ".join(terms.known) or "nothing"
        raise UsageError(f"{unknown[0]} is not known beforehand in {problem.name}: {known} is.")
    fields = problem.types[terms.event].fields
    values = {n: _value(fields[n], text, n) for n, text in imagined.known.items()}
    time = EPOCH + imagined.at * MICROSECOND
    return dataset.with_event(Event(terms.event, time, values, "imagined"))


def _value(kind: Kind, text: str, name: str) -> Value:
    try:
        if kind == "number":
            return float(text)
        if kind == "time":
            return datetime.datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{name} is a {kind}; {text[:40]!r} is none.") from None
    if kind == "boolean":
        if text.lower() not in TRUE + FALSE:
            raise UsageError(f"{name} is yes or no.")
        return text.lower() in TRUE
    return text


def _plain(data: bytes) -> Mapping[str, object]:
    import tomllib

    return tomllib.loads(data.decode())
