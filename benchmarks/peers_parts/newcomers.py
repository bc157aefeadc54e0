"""Who arrives with few records, and who publishes garbage: votes on Spambase, weighed or not."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from peers_parts.experiment import CORRECTED, RULE, Lab, Setting, accuracy
from peers_parts.training import trained
from tacit.channels.peers.ensemble import DOUBT, OWN_DOUBT, weight
from tacit.programs.averaging import AveragedLogistic

Reals = NDArray[np.float64]
OWN = (0, 5, 20, 66)  # records that a newcomer brings
NEWCOMERS = 12  # so many times 66 records are nobody's
GROUP = 5
NETWORK = Setting(CORRECTED, 1.0, RULE, 50, 66, GROUP)


@dataclass(frozen=True)
class Arrival:
    """The mean accuracy of newcomers with `records` of their own once `models` have arrived."""

    group: int
    records: int
    models: int
    alone: float
    vote: float
    weighed: float


@dataclass(frozen=True)
class Attack:
    """The mean accuracy of 50 peers beside so many garbage models of one of them."""

    group: int
    kind: str
    garbage: int
    plain: float
    weighed: float


def weights(said: NDArray[np.bool_], truth: NDArray[np.int64], own: bool) -> Reals:
    """Of each column of `said`; the last is one's own, if there is one."""
    doubts = [DOUBT] * said.shape[1]
    if own:
        doubts[-1] = OWN_DOUBT
    columns = said.T.astype(np.int64)
    return np.array([weight(c, truth, 2, d) for c, d in zip(columns, doubts, strict=True)])


# ── newcomers ──


def arrivals(lab: Lab, group: int, own: int, models: list[int]) -> list[Arrival]:
    """Groups of one size; each fold has its own newcomers, and its own order of arrival."""
    found: dict[int, list[tuple[float, ...]]] = {count: [] for count in models}
    setting, published = _network(lab, group)
    for number in range(lab.folds):
        fold, X, y = lab.fold(setting, number), lab.problem.prepared, lab.problem.y
        rows = fold.unused[: NEWCOMERS * max(OWN)].reshape(NEWCOMERS, -1)[:, :own]
        trained_own = _own(X, y, rows, setting)
        for place, row in enumerate(rows):
            model = None if trained_own is None else trained_own[place]
            order = np.random.default_rng([3, number, place]).permutation(published[number])
            for count in models:
                found[count].append(_arrived(X, y, row, fold.test, model, order[:count]))
    return [
        Arrival(group, own, count, *np.mean(runs, axis=0).tolist()) for count, runs in found.items()
    ]


def _network(lab: Lab, group: int) -> tuple[Setting, list[Reals]]:
    """The setting with its penalty, and what is published in each fold."""
    setting = replace(NETWORK, group=group)
    setting = setting.with_penalty(lab.problem.prepared.shape[1])
    aggregation = lab.aggregation(setting)
    return setting, [lab.published(setting, aggregation, n) for n in range(lab.folds)]


def _own(X: Reals, y: NDArray[np.int64], rows: NDArray[np.intp], setting: Setting) -> Reals | None:
    assert setting.penalty is not None
    return trained(X[rows], y[rows], setting.penalty) if rows.shape[1] else None


def _arrived(
    X: Reals,
    y: NDArray[np.int64],
    row: NDArray[np.intp],
    test: NDArray[np.intp],
    own: Reals | None,
    models: Reals,
) -> tuple[float, float, float]:
    """Accuracy alone, by vote, and by weighed vote; 0.5 where there is nothing to go by."""
    seen, unseen = X[row], X[test]
    mine = None if own is None else unseen @ own > 0
    alone = 0.5 if mine is None else float((mine == (y[test] > 0)).mean())
    if not len(models):
        return alone, alone, alone
    scores = unseen @ models.T
    voters = models if own is None else np.vstack([models, own])
    judged = weights(seen @ voters.T > 0, y[row], own is not None)
    return alone, accuracy(scores, mine, y[test]), accuracy(scores, mine, y[test], judged)


# ── garbage ──


def attacks(lab: Lab, group: int, counts: tuple[int, ...]) -> list[Attack]:
    """`random`: as long as an honest model, anywhere. `opposite`: the contrary of an honest one."""
    setting, published = _network(lab, group)
    found = []
    for kind in ("random", "opposite"):
        for count in counts:
            runs = [
                _attacked(lab, setting, number, published[number], _garbage(kind, count, honest))
                for number, honest in enumerate(published)
            ]
            found.append(Attack(group, kind, count, *np.mean(runs, axis=0).tolist()))
    return found


def _garbage(kind: str, count: int, honest: Reals) -> Reals:
    """Of plausible length: what is longer is dropped unseen (plausible.py)."""
    source = np.random.default_rng(4)
    length = np.linalg.norm(honest, axis=1).mean()
    if kind == "opposite":
        return -honest[np.arange(count) % len(honest)]
    drawn = source.normal(size=(count, honest.shape[1]))
    return np.asarray(length * drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def _attacked(
    lab: Lab, setting: Setting, number: int, honest: Reals, garbage: Reals
) -> tuple[float, float]:
    fold, X, y = lab.fold(setting, number), lab.problem.prepared, lab.problem.y
    models, own = np.vstack([honest, garbage]), lab.vectors(setting, number)
    unseen, truth = X[fold.test], y[fold.test]
    scores = unseen @ models.T
    plain, weighed = [], []
    for row, mine in zip(fold.peers, own, strict=True):
        said = unseen @ mine > 0
        judged = weights(X[row] @ np.vstack([models, mine]).T > 0, y[row], own=True)
        plain.append(accuracy(scores, said, truth))
        weighed.append(accuracy(scores, said, truth, judged))
    return float(np.mean(plain)), float(np.mean(weighed))


def from_within(lab: Lab, group: int) -> tuple[float, float]:
    """One member of each group sends the longest vector it may, against the others' average: the
    mean accuracy without it and with it, by weighed votes."""
    setting, honest = _network(lab, group)
    assert setting.penalty is not None
    longest = AveragedLogistic(setting.penalty, records="rooted").largest(lab.problem.schema)
    before, after = [], []
    for number in range(lab.folds):
        models = honest[number]
        mean = lab.vectors(setting, number).mean(axis=0)
        push = (longest * mean / np.linalg.norm(mean) + mean) / group
        before.append(_attacked(lab, setting, number, models, models[:0])[1])
        after.append(_attacked(lab, setting, number, models - push, models[:0])[1])
    return float(np.mean(before)), float(np.mean(after))
