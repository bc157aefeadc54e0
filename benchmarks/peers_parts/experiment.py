"""A whole network at one setting: train, form groups, publish, vote; the accuracy of each peer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from peers_parts.aggregation import Aggregation, as_published, joint
from peers_parts.problems import Fold, Problem
from peers_parts.training import trained
from shared_parts.probabilities import Quality, quality
from tacit.channels.peers.advice import suggested
from tacit.channels.peers.ensemble import decided, tally
from tacit.crypto.prg import SeededRandomness
from tacit.privacy.clipping import clip_to_ball
from tacit.privacy.promise import Promise
from tacit.programs.averaging import UNBOUNDED, AveragedLogistic

Reals = NDArray[np.float64]
Method = Literal["as published", "as published, summed loss", "corrected"]
PUBLISHED: Method = "as published"
SUMMED: Method = "as published, summed loss"
CORRECTED: Method = "corrected"
DELTA = 1e-5
RULE = None  # as the penalty: what tacit suggests


@dataclass(frozen=True)
class Setting:
    """Everyone takes part once, with the whole ε, in a random group of `group`.

    method    as published: the thesis's scaling and noise, its penalty beside the mean loss (its
              equation 3.9, which its bound belongs to) or beside the summed loss (3.8)
    penalty   λ; RULE: what `suggested` says for this group size
    to        whom an average is published to: "all", or its "participants"
    """

    method: Method
    epsilon: float
    penalty: float | None
    peers: int
    records: int
    group: int
    to: Literal["all", "participants"] = "all"
    colluding: int = 1
    unit: Literal["record", "holder"] = "record"
    radius: float = UNBOUNDED

    @property
    def promise(self) -> Promise:
        return Promise(self.epsilon, DELTA, self.unit, "replace")  # type: ignore[arg-type]

    def with_penalty(self, length: int) -> Setting:
        if self.penalty is not None:
            return self
        found = suggested(
            self.peers, self.records, length, self.promise, self.colluding, self.group
        )
        return replace(self, penalty=found.penalty, radius=found.radius)


@dataclass(frozen=True)
class Outcome:
    """The accuracy of every peer: folds × peers."""

    setting: Setting
    accuracies: Reals

    @property
    def mean(self) -> float:
        return float(self.accuracies.mean())

    @property
    def between_peers(self) -> float:
        """The standard deviation between the peers of one network, in the mean of the folds."""
        return float(self.accuracies.std(axis=1).mean())

    @property
    def between_folds(self) -> float:
        """What the thesis calls the deviation: of a network's mean, from fold to fold."""
        return float(self.accuracies.mean(axis=1).std())


class Lab:
    """One data set, and what was trained on it: each peer's model once for a fold and a penalty."""

    def __init__(self, problem: Problem, folds: int) -> None:
        self.problem, self.folds = problem, folds
        self._trained = cache(self._train)

    def outcome(self, setting: Setting) -> Outcome:
        chosen = setting.with_penalty(self.features(setting.method).shape[1])
        aggregation = self.aggregation(chosen)
        runs = [self._run(chosen, aggregation, number) for number in range(self.folds)]
        return Outcome(chosen, np.array(runs))

    def features(self, method: Method) -> Reals:
        return self.problem.prepared if method == CORRECTED else self.problem.published

    def fold(self, setting: Setting, number: int) -> Fold:
        return self.problem.fold(number, setting.peers, setting.records)

    def vectors(self, setting: Setting, number: int) -> Reals:
        """The peers' own models, one row each."""
        assert setting.penalty is not None
        penalty = setting.penalty / (setting.records if setting.method == SUMMED else 1)
        published = setting.method != CORRECTED
        found = self._trained(published, penalty, setting.peers, setting.records, number)
        return clip_to_ball(found, setting.radius)

    def _train(self, published: bool, penalty: float, peers: int, records: int, n: int) -> Reals:
        rows = self.problem.fold(n, peers, records).peers
        features = self.problem.published if published else self.problem.prepared
        return trained(features[rows], self.problem.y[rows], penalty)

    def aggregation(self, setting: Setting) -> Aggregation:
        assert setting.penalty is not None
        if setting.method != CORRECTED:
            length = self.problem.published.shape[1]
            return as_published(setting.penalty, length, setting.epsilon, setting.records)
        program = AveragedLogistic(setting.penalty, records="rooted", radius=setting.radius)
        schema = self.problem.schema
        group = setting.group, setting.records, setting.colluding
        return joint(program, schema, setting.promise, *group)

    def groups(self, setting: Setting, number: int) -> list[NDArray[np.intp]]:
        """Whoever is left over in the end is in none: the network comes to rest."""
        order = np.random.default_rng([2, number]).permutation(setting.peers)
        whole = setting.peers // setting.group
        return list(order[: whole * setting.group].reshape(whole, setting.group))

    def published(self, setting: Setting, aggregation: Aggregation, number: int) -> Reals:
        """The noisy average of each group, one row each."""
        vectors = self.vectors(setting, number)
        source = SeededRandomness(f"{setting} {number}")
        groups = self.groups(setting, number)
        return np.array([aggregation.average(vectors[group], source) for group in groups])

    def qualities(self, setting: Setting) -> list[Quality]:
        """Error, calibration slope and log loss of each published model, in all folds."""
        chosen = setting.with_penalty(self.features(setting.method).shape[1])
        aggregation = self.aggregation(chosen)
        found = []
        for number in range(self.folds):
            test = self.fold(chosen, number).test
            X, y = self.features(chosen.method)[test], self.problem.y[test]
            scores = X @ self.published(chosen, aggregation, number).T
            found += [quality(column, y) for column in scores.T]
        return found

    def _run(self, setting: Setting, aggregation: Aggregation, number: int) -> Reals:
        test = self.fold(setting, number).test
        X, y = self.features(setting.method)[test], self.problem.y[test]
        own = X @ self.vectors(setting, number).T > 0
        scores = X @ self.published(setting, aggregation, number).T
        got = [np.arange(scores.shape[1])] * setting.peers
        if setting.to == "participants":
            groups = self.groups(setting, number)
            got = [
                np.array([place for place, group in enumerate(groups) if peer in group], dtype=int)
                for peer in range(setting.peers)
            ]
        return np.array([accuracy(scores[:, got[p]], own[:, p], y) for p in range(setting.peers)])


def accuracy(
    scores: Reals,
    own: NDArray[np.bool_] | None,
    y: NDArray[np.int64],
    weights: Reals | None = None,
) -> float:
    """Of the vote of published models, with one column of scores each, and one's own model."""
    said = (scores > 0).T.astype(np.int64)
    if own is not None:
        said = np.vstack([said, own.astype(np.int64)])
    counts = np.ones(len(said)) if weights is None or not weights.any() else weights
    sure = expit(scores) @ counts[: scores.shape[1]]
    total = counts[: scores.shape[1]].sum()
    chances = np.column_stack([total - sure, sure])
    return float((decided(tally(said, counts, 2), chances) == y).mean())


def central(problem: Problem, setting: Setting, folds: int, penalty: float) -> Reals:
    """One model of all records together, without privacy: the accuracy of each fold."""
    X = problem.prepared if setting.method == CORRECTED else problem.published
    found = []
    for number in range(folds):
        fold = problem.fold(number, setting.peers, setting.records)
        rows = fold.peers.reshape(1, -1)
        weights = trained(X[rows], problem.y[rows], penalty)[0]
        found.append(accuracy((X[fold.test] @ weights)[:, None], None, problem.y[fold.test]))
    return np.array(found)


def alone(lab: Lab, setting: Setting) -> Reals:
    """Each peer with its own model only: folds × peers."""
    chosen = setting.with_penalty(lab.features(setting.method).shape[1])
    runs = []
    for number in range(lab.folds):
        test = lab.fold(chosen, number).test
        scores = lab.features(chosen.method)[test] @ lab.vectors(chosen, number).T
        truth = lab.problem.y[test][:, None] > 0
        runs.append(((scores > 0) == truth).mean(axis=0))
    return np.array(runs)
