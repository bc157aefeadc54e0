"""Naive Bayes from noisy tables, less naive where tables of two features show what they share.

Each feature's log-odds come from all tables that it is in. If features are independent within each
class, their sum is the log-odds of a record. If not, a sum counts twice what two features say
alike: so the log-odds are multiplied by the inverse of the features' correlations within classes,
as far as these stand out from the noise (tabulated_bayes.md). Every rule is public.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, combinations, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.data.discrete import Discrete
from tacit.data.schema import Schema
from tacit.programs.logistic import Logistic, LogisticModel
from tacit.programs.prediction import Prediction, class_names
from tacit.programs.tabulated import Marginal, Tabulated, asked_about

__all__ = ["TabulatedBayes"]

Reals = NDArray[np.float64]

# Of the largest singular value that noise alone is expected to have: what is below is taken for
# noise. Measured, with the floor below, on three public data sets (tabulated_bayes.md).
NOISE_KEPT = 0.5
LEAST_EIGENVALUE = 0.3  # no direction of the log-odds is made more than 1/0.3 times as strong


class TabulatedBayes(Tabulated):
    """A score for each code of each feature, added up: a linear model of encoded records."""

    name = "tabulated-bayes"
    models = (LogisticModel,)

    def learn(self, tables: Sequence[Marginal], schema: Schema) -> LogisticModel:
        codes, asked = Discrete(schema), asked_about(tables)
        share = _label_share(asked)
        features = [_feature(asked, place, size) for place, size in enumerate(codes.sizes)]
        scores = _decorrelated(features, _pairs(asked, features, share), share)
        middle = sum(float((f.given.T @ s).mean()) for f, s in zip(features, scores, strict=True))
        coef, offset = _coordinates(scores, codes.open)
        intercept = np.log(share / (1 - share)) - middle + offset
        assert schema.label is not None  # Discrete has seen to it
        return LogisticModel(coef[None, :], np.array([intercept]), class_names(schema.label))

    def predict(self, model: LogisticModel, X: Reals) -> Prediction:
        return Logistic().predict(model, X)


class _Feature(NamedTuple):
    """given: the share of people with each code (rows), within each class (columns)."""

    given: Reals

    @property
    def log_odds(self) -> Reals:
        return np.asarray(np.log(self.given[:, 1] / self.given[:, 0]))

    def share(self, positive: float) -> Reals:
        """Of people with each code, whatever their class."""
        return np.asarray(self.given @ (1 - positive, positive))


def _label_share(tables: Sequence[Marginal]) -> float:
    """The share of people with label 1: the same in all tables that do not contradict another."""
    ones = sum(float(table.counts[..., 1].sum()) for table in tables)
    people = sum(table.people for table in tables)
    return (ones + 1) / (people + 2)


def _feature(tables: Sequence[Marginal], place: int, size: int) -> _Feature:
    """What all tables say of one feature, the more certain ones more loudly.

    As in programs/naive_bayes.py, a count gets 1 and one standard deviation of its noise as
    smoothing: a code whose count is mostly noise is then about as likely as any other.
    """
    total, weights, noise, people = np.zeros((size, 2)), 0.0, 0.0, 0
    for table in tables:
        if place not in table.features:
            continue
        counts = _summed(table, (place,))
        own = table.variance * (table.counts.size / counts.size) / table.people**2
        weight = 1 / (own + 1 / (counts.size * table.people))
        total += weight * counts / table.people
        weights, noise, people = weights + weight, noise + weight**2 * own, people + table.people
    if not people:
        return _Feature(np.full((size, 2), 1 / size))
    smooth = total / weights + np.sqrt(noise) / weights + 1 / people
    return _Feature(smooth / smooth.sum(axis=0))


def _summed(table: Marginal, places: tuple[int, ...]) -> Reals:
    """The table over these of its features alone, in the order given, and the label."""
    kept = [table.features.index(place) for place in places]
    rest = tuple(axis for axis in range(len(table.features)) if axis not in kept)
    found = table.counts.sum(axis=rest)
    if kept != sorted(kept):
        found = found.swapaxes(0, 1)
    return np.asarray(found)


class _Pair(NamedTuple):
    """How two features go together within classes: correlations between their codes, without
    what may well be noise."""

    first: int
    second: int
    correlations: Reals


def _pairs(
    tables: Sequence[Marginal], features: Sequence[_Feature], share: float
) -> Iterator[_Pair]:
    asked: dict[tuple[int, int], list[Marginal]] = {}
    for table in tables:
        for pair in combinations(sorted(table.features), 2):
            asked.setdefault(pair, []).append(table)
    for (i, j), found in asked.items():
        yield _Pair(i, j, _correlations(found, (i, j), (features[i], features[j]), share))


def _correlations(
    tables: Sequence[Marginal],
    pair: tuple[int, int],
    features: tuple[_Feature, _Feature],
    share: float,
) -> Reals:
    """D₁^−½ (P − P₀) D₂^−½, for P the joint shares of two features' codes, P₀ what they would be
    if the features were independent within each class, D their shares; its singular values shrunk
    by what noise alone would give (tabulated_bayes.md)."""
    first, second = features
    joint, noise, chance = _together(tables, pair)
    alone = np.einsum("iy,jy,y->ij", first.given, second.given, (1 - share, share))
    roots = np.sqrt(first.share(share)), np.sqrt(second.share(share))
    scale = np.outer(*roots)
    spread = noise / scale**2 + chance
    largest = np.sqrt(spread.sum(axis=1).max()) + np.sqrt(spread.sum(axis=0).max())
    left, values, right = np.linalg.svd(
        _centred((joint - alone) / scale, *roots), full_matrices=False
    )
    kept = np.clip(values - NOISE_KEPT * largest, 0.0, 1.0)
    return np.asarray((left * kept) @ right)


def _together(tables: Sequence[Marginal], pair: tuple[int, int]) -> tuple[Reals, float, float]:
    """Joint shares of two features' codes, the mean of all tables; the variance that noise gives
    to one of them; and, for a share p, p times what remains is the variance by chance."""
    joints = [_summed(table, pair).sum(axis=2) / table.people for table in tables]
    joint = np.mean(joints, axis=0)
    noise = [t.variance * (t.counts.size / joint.size) / t.people**2 for t in tables]
    chance = [1 / table.people for table in tables]
    squared = len(tables) ** 2
    return joint, sum(noise) / squared, sum(chance) / squared


def _centred(block: Reals, left: Reals, right: Reals) -> Reals:
    """Without what two constants have in common: of unit vectors, whose squares are shares."""
    block = block - np.outer(left, left @ block)
    return np.asarray(block - np.outer(block @ right, right))


def _decorrelated(
    features: Sequence[_Feature], pairs: Iterator[_Pair], share: float
) -> list[Reals]:
    """The scores of each feature's codes: D^−½ S⁻¹ D^½ times the log-odds, S the correlations."""
    roots = [np.sqrt(feature.share(share)) for feature in features]
    starts = list(accumulate((len(root) for root in roots), initial=0))
    blocks = [slice(*ends) for ends in pairwise(starts)]
    whole = np.eye(starts[-1])
    for i, j, correlations in pairs:
        whole[blocks[i], blocks[j]] = correlations
        whole[blocks[j], blocks[i]] = correlations.T
    centred = [f.log_odds - root**2 @ f.log_odds for f, root in zip(features, roots, strict=True)]
    values, vectors = np.linalg.eigh(whole)
    wanted = vectors.T @ np.concatenate([a * b for a, b in zip(roots, centred, strict=True)])
    found = vectors @ (wanted / np.maximum(values, LEAST_EIGENVALUE))
    return [found[block] / root for block, root in zip(blocks, roots, strict=True)]


def _coordinates(scores: Sequence[Reals], open: Sequence[bool]) -> tuple[Reals, float]:
    """The scores as weights of a vector's coordinates, and what is left for the intercept: the
    scores of codes that have none."""
    each = [s[1:] - s[0] if is_open else s for s, is_open in zip(scores, open, strict=True)]
    offset = sum(float(s[0]) for s, is_open in zip(scores, open, strict=True) if is_open)
    return np.concatenate(each), offset
