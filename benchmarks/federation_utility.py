"""What a federation's models are worth: PEM's evaluation (its section 7.2) again, beside tacit.

Adult one-hot (LIBSVM's a9a, both parts: 48,842 records), Nursery (12,960) and Mushroom (8,124),
split evenly among 100 clients; two servers. Runs on Adult are the first folds of PEM's ten-fold
validation. Promises cover replacing one record, as PEM's do; where there is a δ, it is 1e-6.

    no privacy               the same program without noise
    PEM as published         ε/T for each of T rounds, Laplace, full noise by each server, δ = 0:
                             the promise holds, it is only paid for dearly
    PEM, tight composition   the same rounds with δ: Gaussian for L2 bounds, composed tightly
    tacit                    the default program with δ, full noise by each server
    every client's own noise PEM's "noise-only": as published, but by each client instead

PEM gives no learning rate: of 0.1, 1 and 10 each of its points gets the one that is best on the
very folds it is judged by, which is more than anybody could know. One-hot vectors span a constant,
so none is added, and L = 2 · 14 = 28. Its k-means gets tacit's repairs (empty clusters, centres
kept in the box), without which it divides by noise.

Holders' sums are integers and add up to the same in any order, so one sum over all records stands
for theirs, and what tacit learns does not depend on how many they are. That is checked, not
assumed: runs through all state machines, of 100 holders on Adult and of 1,000 on Nursery, must give
the same model to the last bit. Points and picture are left in the folder bench.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from federation_parts.as_published import added, by_everyone, gradient_descent
from federation_parts.summed import Integers, Noise, by_servers, check_federated, summed
from tacit.cli.bench import Row
from tacit.cli.plot_panels import Line, Panel, plot_panels
from tacit.data import Schema, load_dataset
from tacit.privacy import Promise
from tacit.privacy.bound import Norm
from tacit.programs.itemsets import FrequentItemsets
from tacit.programs.kmeans import KMeans
from tacit.programs.levels import Levels
from tacit.programs.logistic import Logistic
from tacit.programs.program import Block, Plan, Query, Stage, norm_for
from utility_itemsets import LENGTHS, MINSUP, loss, pem

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
CLIENTS = (100, 200, 500, 1000)
FEW, MANY = CLIENTS[0], CLIENTS[-1]
SERVERS, RUNS, DELTA = 2, 3, 1e-6
ROUNDS, FOLDS, RATES = 1000, 10, (0.1, 1.0, 10.0)  # of PEM's gradient descent
CLUSTERS, LLOYD = 5, 50  # of its k-means
GAP = 0.005  # of accuracy, at most, at ε = 1
FOLDER = Path("bench")

NONE, PUBLISHED, TIGHT, OURS, ALONE = METHODS = (
    "no privacy",
    "PEM as published",
    "PEM, tight composition",
    "tacit",
    "every client's own noise",
)
# Tight composition is not PEM's: it may come close, where more rounds suit the data.
LEAST = {PUBLISHED: 1.0, TIGHT: 0.98, ALONE: 1.0}  # of accuracy; of losses, the reciprocal at most
ADDED = "tacit, add or remove"  # its default: half the bound
STYLES = {NONE: "0.55", PUBLISHED: "#c9772b", TIGHT: "#7a5ea8", OURS: "#1f5fbf", ALONE: "#b03a48"}

Say = Callable[[str], None]
Reals = NDArray[np.float64]


class Point(NamedTuple):
    """One method at one place: the measure of each run."""

    data: str
    method: str
    epsilon: float
    clients: int
    runs: tuple[float, ...]

    @property
    def mean(self) -> float:
        return fmean(self.runs)

    def __str__(self) -> str:
        return f"{self.mean:.4f} ({min(self.runs):.4f} to {max(self.runs):.4f})"


def rows(say: Say) -> Iterator[Row]:
    points: list[Point] = []
    for figure, judged in ((adult, adult_rows), (nursery, loss_rows), (mushroom, loss_rows)):
        found = figure(say)
        points += found
        yield from judged(found)
    FOLDER.mkdir(exist_ok=True)
    table, picture = (FOLDER / f"federation-utility.{end}" for end in ("csv", "png"))
    write_points(points, table)
    plot_panels(panels(points), picture)
    say(f"written: {table}, {picture}")


def reckoning(method: str) -> int:
    """How many servers' noise a program is told of: tacit's own know it from the study."""
    return SERVERS if method in (OURS, ADDED) else 1


# ── the three data sets ──


def adult(say: Say) -> list[Point]:
    data = load_dataset("a9a", say=say)
    parts = [data.arrays(part) for part in ("train", "test")]
    X, y = (np.concatenate([np.asarray(part[i]) for part in parts]) for i in (0, 1))
    fold = np.random.default_rng(0).permutation(len(X)) % FOLDS
    keys = [(m, e, FEW) for e in EPSILONS for m in (PUBLISHED, TIGHT, ALONE)]
    keys += [(ALONE, 1.0, clients) for clients in CLIENTS[1:]]

    def point(method: str, epsilon: float, clients: int, said: Sequence[Any]) -> Point:
        right = [np.mean((s == y)[fold == run]) for run, s in enumerate(said)]
        return Point("adult", method, epsilon, clients, tuple(map(float, right)))

    with threadpool_limits(1), ThreadPoolExecutor(1) as pool:  # a core for PEM's, one for ours
        say(f"adult: PEM's {ROUNDS:,} rounds for {len(keys)} settings, in the background …")
        settings = [(promised(m, e), adders(m, n), eta) for m, e, n in keys for eta in RATES]
        descended = pool.submit(gradient_descent, X, y, fold, settings, ROUNDS, RUNS)
        points = _adult_ours(X, y, fold, data.schema, point, say)
        say("adult: waiting for PEM's rounds …")
        said = [list((X @ weights > 0).T) for weights in descended.result()]
    for place, key in enumerate(keys):
        rates = said[place * len(RATES) : (place + 1) * len(RATES)]
        points.append(max((point(*key, each) for each in rates), key=lambda p: p.mean))
    return points


def _adult_ours(
    X: Reals, y: Any, fold: Any, schema: Schema, point: Callable[..., Point], say: Say
) -> list[Point]:
    def models(method: str, epsilon: float) -> list[Any]:
        say(f"adult: {method}, ε = {epsilon:g}, {RUNS} runs …")
        promise, parts = promised(method, epsilon), [fold != run for run in range(RUNS)]
        return [
            summed(
                Logistic(),
                (X[part], y[part]),
                schema,
                promise,
                noise_of(method, run),
                reckoning(method),
            )
            for run, part in enumerate(parts)
        ]

    def said(found: list[Any]) -> list[Any]:
        return [model.predict(X) for model in found]

    exact = said(models(NONE, math.inf))
    ours = {epsilon: models(OURS, epsilon) for epsilon in EPSILONS}
    points = [point(NONE, epsilon, FEW, exact) for epsilon in EPSILONS]
    points += [point(OURS, epsilon, FEW, said(found)) for epsilon, found in ours.items()]
    points += [point(NONE, 1.0, clients, exact) for clients in CLIENTS[1:]]
    points += [point(OURS, 1.0, clients, said(ours[1.0])) for clients in CLIENTS[1:]]
    points.append(point(ADDED, 1.0, FEW, said(models(ADDED, 1.0))))
    say(f"adult: run 0 at ε = 1 again, by {FEW} holders and {SERVERS} servers …")
    part, promise = (X[fold != 0], y[fold != 0]), promised(OURS, 1.0)
    check_federated(Logistic(), part, schema, promise, (FEW, SERVERS), ours[1.0][0])
    return points


def nursery(say: Say) -> list[Point]:
    """PEM's φ_r: how far the sum of squared distances is above that without noise."""
    data = load_dataset("nursery", say=say)
    X, _ = data.arrays(interval="symmetric")
    as_published = KMeans(CLUSTERS, LLOYD, split=Fraction(1, 2))

    def model(method: str, epsilon: float, run: int) -> Any:
        program = KMeans(CLUSTERS) if method in (NONE, OURS) else as_published
        promise, noise = promised(method, epsilon), noise_of(method, run)
        return summed(program, (X,), data.schema, promise, noise, reckoning(method))

    def distances(method: str, epsilon: float, run: int) -> float:
        return float((model(method, epsilon, run).distances(X).min(axis=1) ** 2).sum())

    exact = distances(NONE, math.inf, 0)
    say(f"nursery: run 0 at ε = 1 again, by {MANY:,} holders and {SERVERS} servers …")
    promise, expected = promised(OURS, 1.0), model(OURS, 1.0, 0)
    check_federated(KMeans(CLUSTERS), (X,), data.schema, promise, (MANY, SERVERS), expected)
    return measured("nursery", lambda *at: distances(*at) / exact - 1, say)


def mushroom(say: Say) -> list[Point]:
    """PEM's φ: how far counts are off, of all that are there with or without noise."""
    data = load_dataset("mushroom", say=say)
    X, _ = data.arrays()
    default = FrequentItemsets(MINSUP, max_length=max(LENGTHS))

    def found(method: str, epsilon: float, run: int) -> Any:
        promise = promised(method, epsilon)
        if method in (NONE, OURS):
            noise = noise_of(method, run)
            model = summed(default, (X,), data.schema, promise, noise, reckoning(method))
            return model.families()
        generator = np.random.default_rng(run)

        def noisy(counts: Integers, bound: int) -> Reals:
            """Replacing one record moves at most `bound` counts, by one each."""
            norm = norm_for(promise)
            block = Block("round", len(counts), norm, Fraction(1))
            plan = Plan((Stage(Query((block,)), len(LENGTHS)),))
            size = bound if norm is Norm.L1 else math.sqrt(bound)
            scale = float(Levels.planned(promise, plan).multipliers["round"]) * size
            return counts + added(norm, scale, adders(method, FEW), counts.shape, generator)

        return pem(X, data.schema, noisy)

    true = found(NONE, math.inf, 0)
    return measured("mushroom", lambda *at: loss(found(*at), true), say)


def measured(data: str, score: Callable[[str, float, int], float], say: Say) -> list[Point]:
    """Every method at every ε; without privacy there is nothing to repeat."""
    points = []
    for epsilon in EPSILONS:
        say(f"{data}: ε = {epsilon:g} …")
        for method in METHODS:
            count = 1 if method == NONE else RUNS
            runs = tuple(score(method, epsilon, run) for run in range(count))
            points.append(Point(data, method, epsilon, FEW, runs))
    return points


# ── the methods ──


def promised(method: str, epsilon: float) -> Promise:
    if method == NONE:
        return Promise(math.inf)
    if method == ADDED:
        return Promise(epsilon, DELTA)
    delta = 0.0 if method in (PUBLISHED, ALONE) else DELTA
    return Promise(epsilon, delta, adjacency="replace")  # type: ignore[arg-type]


def noise_of(method: str, run: int) -> Noise:
    published = method in (PUBLISHED, TIGHT, ALONE)
    return by_everyone(adders(method, FEW), run) if published else by_servers(SERVERS, run)


def adders(method: str, clients: int) -> int:
    """How many add the full noise."""
    return clients if method == ALONE else SERVERS


# ── what is said of it ──


def adult_rows(points: Sequence[Point]) -> Iterator[Row]:
    at = {(p.method, p.epsilon, p.clients): p for p in points}
    for method, clients in ((OURS, FEW), (OURS, MANY), (ADDED, FEW)):
        ours, exact = at[method, 1.0, clients], at[NONE, 1.0, FEW].mean
        what = f"adult, {clients:,} clients, ε = 1: accuracy of {method}, {ours}, ≤ 0.5 points lost"
        yield Row(what, ours.mean, exact, NONE, 1 - GAP / exact)
    for (method, epsilon, clients), peer in at.items():
        if method in LEAST:
            ours = at[OURS, epsilon, clients]
            what = f"adult, {clients:,} clients, ε = {epsilon:g}: accuracy, peer {peer}"
            yield Row(what, ours.mean, peer.mean, method, LEAST[method])


def loss_rows(points: Sequence[Point]) -> Iterator[Row]:
    """φ may be 0 or below for k-means, so 1 + φ is compared."""
    at = {(p.method, p.epsilon): p for p in points}
    for (method, epsilon), peer in at.items():
        if method in LEAST:
            ours = at[OURS, epsilon]
            what = f"{peer.data}, ε = {epsilon:g}: 1 + PEM's loss, ours {ours}, peer {peer}"
            yield Row(
                what,
                1 + ours.mean,
                1 + peer.mean,
                method,
                round(1 / LEAST[method], 4),
                at_most=True,
            )


def write_points(points: Sequence[Point], path: Path) -> None:
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(
            ["data", "method", "epsilon", "delta", "adjacency", "clients", "mean", *range(RUNS)]
        )
        for p in points:
            promise = promised(p.method, p.epsilon)
            kept = (promise.delta, promise.adjacency.value, p.clients)
            table.writerow([p.data, p.method, p.epsilon, *kept, p.mean, *p.runs])


def panels(points: Sequence[Point]) -> list[Panel]:
    def lines(data: str, over: str) -> list[Line]:
        few = over == "epsilon"
        found = []
        for method in METHODS:
            own = [p for p in points if (p.data, p.method) == (data, method)]
            kept = [p for p in own if (p.clients == FEW if few else p.epsilon == 1.0)]
            if len(kept) > 1:
                values = [(float(getattr(p, over)), p.runs) for p in kept]
                found.append(Line(method, values, STYLES[method], bold=method == OURS))
        return found

    epsilon = "ε: smaller is more private"
    return [
        Panel("Adult: accuracy, 100 clients", epsilon, lines("adult", "epsilon")),
        Panel("Adult: accuracy at ε = 1", "clients", lines("adult", "clients")),
        Panel("Nursery: k-means, relative loss", epsilon, lines("nursery", "epsilon")),
        Panel("Mushroom: item sets, PEM's loss", epsilon, lines("mushroom", "epsilon")),
    ]
