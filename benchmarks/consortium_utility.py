"""What averaged local models are worth: Pathak's figure 2 put right, beside summed gradients.

Adult (LIBSVM's a9a, test error on its own test part) among five parties, each of which trains a
logistic regression of its own: equal parties, or a smallest one of 15 or 10 % (sizes as published).
Every promise covers replacing one record; where there is a δ, it is 1e-6. d = 123, ‖x‖₂ ≤ 1.

    no privacy          one model of all records
    pooled              the same under Gaussian noise for its bound 2/(nλ): somebody sees all
    as published        δ = 0: the average of the parties' models, with Laplace noise of scale
                        2/(n₍₁₎ελ) on each coordinate. The promise does NOT hold, since the bound is
                        one in L2, not in L1; it is also K times what the average moves by
    average, Laplace    δ = 0: Laplace for the L1 bound √d · 2/(K n₍₁₎ λ), shareable by parties
    average, Gaussian   Gaussian for the L2 bound 2/(K n₍₁₎ λ), shareable too
    federation          no models are averaged: tacit's default program, its sums shared between two
                        servers, each of which adds the whole noise

Means of 200 draws of the noise; of 3 runs for the federation, whose sums, and so whose models, are
the same for every split. λ is 1 as published, where even the model without noise says "no" to
everybody: the floor of 0.236 is the majority's vote, and no curve shows that anything was learned.
Beside it stands the best λ of a small grid, picked in hindsight by test error for every method and
every ε. No promise covers that choice: it flatters averaging, and the federation has no λ to pick.
Points and picture are left in the folder bench.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shared_parts.probabilities import Quality, quality, quality_rows
from tacit.channels.federation.local import Federation
from tacit.cli.bench import Row
from tacit.cli.plot_panels import Line, Panel, plot_panels
from tacit.crypto.prg import SeededRandomness
from tacit.data import Dataset, load_dataset
from tacit.data.partitions import partition
from tacit.data.records import ArrayRecords
from tacit.privacy import Promise
from tacit.privacy.bound import Bound, Norm, round_up
from tacit.privacy.mechanisms import Gaussian, Laplace
from tacit.programs.logistic import Logistic
from tacit.programs.logistic_output import LogisticOutput

EPSILONS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)
FEDERATED = (0.01, 0.05, 0.1, 0.2, 0.4)
PENALTIES = (1.0, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0001)
SPLITS = {
    "20 %": (6513, 6512, 6512, 6512, 6512),
    "15 %": (4884, 6512, 6512, 6512, 8141),
    "10 %": (3256, 6512, 6512, 6512, 9769),
}
EVEN, SERVERS, DELTA = "20 %", 2, 1e-6
RUNS, FEDERATED_RUNS = 200, 3
QUALITIES = 20  # draws whose calibration slope and log loss are measured
ATTRIBUTES = 14  # ones in a row of a9a, at most: its length is at most the root
JUDGED = (0.1, 0.4)
FOLDER = Path("bench")
COLUMNS = "method,smallest,epsilon,delta,promise_holds,penalty,runs,mean,tenth,ninetieth"

EXACT, POOLED, PUBLISHED, PURE, NORMAL, SUMMED = METHODS = (
    "no privacy",
    "pooled",
    "as published (no promise)",
    "average, Laplace",
    "average, Gaussian",
    "federation",
)
COLOURS = dict(
    zip(METHODS, ("0.55", "#3d8b6e", "#c9772b", "#b03a48", "#7a5ea8", "#1f5fbf"), strict=True)
)

Say = Callable[[str], None]
Reals = NDArray[np.float64]
Part = tuple[Any, Any]


class Point(NamedTuple):
    """One method at one place: the test error of each run. The federation has no penalty.

    qualities   of the first runs at ε that is judged: calibration slope and log loss
    """

    method: str
    split: str
    epsilon: float
    penalty: float | None
    runs: tuple[float, ...]
    qualities: tuple[Quality, ...] = ()

    @property
    def mean(self) -> float:
        return fmean(self.runs)


def rows(say: Say) -> Iterator[Row]:
    data = load_dataset("a9a", say=say)
    points = averaged(data, say) + federated(data, say)
    yield from judged(points)
    FOLDER.mkdir(exist_ok=True)
    table, picture = (FOLDER / f"consortium-utility.{end}" for end in ("csv", "png"))
    write_points(points, table)
    plot_panels(panels(points), picture)
    say(f"written: {table}, {picture}")
    say("at λ = 1 every curve's floor, 0.236, is the majority's vote: nothing was learned there.")


# ── the methods ──


def averaged(data: Dataset, say: Say) -> list[Point]:
    """Training is deterministic, and done once for each λ and split; then noise is drawn."""
    train, test = (_ball(data.arrays(part)) for part in ("train", "test"))
    points = []

    def runs(method: str, split: str, epsilon: float, penalty: float, start: Reals) -> Point:
        mechanism = noise_of(method, penalty, epsilon, SPLITS[split], len(start))
        drawn = noisy(mechanism, start, f"{method} {split} {epsilon} {penalty}")
        shown = method == NORMAL and epsilon in JUDGED
        sure = qualities(drawn[:QUALITIES], test) if shown else ()
        return Point(method, split, epsilon, penalty, errors(drawn, test), sure)

    for penalty in PENALTIES:
        say(f"λ = {penalty:g}: training, then {RUNS} draws for each ε …")
        pooled = LogisticOutput(penalty).train(*train)
        exact, sure = errors(pooled[None, :], test), qualities(pooled[None, :], test)
        whole = [Point(EXACT, EVEN, epsilon, penalty, exact, sure) for epsilon in EPSILONS]
        whole += [runs(POOLED, EVEN, epsilon, penalty, pooled) for epsilon in EPSILONS]
        for split, sizes in SPLITS.items():
            parts = partition(train, how=sizes)
            mean = np.mean([LogisticOutput(penalty).train(*part) for part in parts], axis=0)
            points += [point._replace(split=split) for point in whole]
            for method in (PUBLISHED, PURE, NORMAL):
                points += [runs(method, split, epsilon, penalty, mean) for epsilon in EPSILONS]
    return points


def noise_of(
    method: str, penalty: float, epsilon: float, sizes: Sequence[int], length: int
) -> Laplace | Gaussian:
    promise = promised(method, epsilon)
    if method == PUBLISHED:
        found = LogisticOutput(penalty, as_published=True).mechanism(min(sizes), length, promise)
    elif method == PURE:
        bound = LogisticOutput(penalty).bound(min(sizes), len(sizes)).value
        wide = Bound(Norm.L1, bound * round_up(math.sqrt(length)))
        found = Laplace.calibrated(wide, promise, length)
    else:
        records, models = (sum(sizes), 1) if method == POOLED else (min(sizes), len(sizes))
        found = LogisticOutput(penalty).mechanism(records, length, promise, models)
    assert isinstance(found, Laplace | Gaussian)
    return found


def promised(method: str, epsilon: float) -> Promise:
    if method == EXACT:
        return Promise(math.inf)
    delta = 0.0 if method in (PUBLISHED, PURE) else DELTA
    return Promise(epsilon, delta, adjacency="replace")  # type: ignore[arg-type]


def noisy(mechanism: Laplace | Gaussian, weights: Reals, seed: str) -> Reals:
    """One row for each run, by the exact mechanism."""
    start = np.tile(mechanism.grid.encode(weights), (RUNS, 1))
    return mechanism.grid.decode(mechanism.perturb(start, SeededRandomness(seed)))


def errors(weights: Reals, test: Part) -> tuple[float, ...]:
    """The share of the test part that each row of weights gets wrong."""
    said = test[0] @ weights.T > 0
    return tuple(np.mean(said != test[1][:, None], axis=0).tolist())


def qualities(weights: Reals, test: Part) -> tuple[Quality, ...]:
    """How sure each row of weights is, beside how often it is right."""
    return tuple(quality(scores, test[1]) for scores in (test[0] @ weights.T).T)


def federated(data: Dataset, say: Say) -> list[Point]:
    X, y = (np.ascontiguousarray(part) for part in data.arrays("train"))
    unseen, truth = data.arrays("test")
    holders = [ArrayRecords(*part) for part in partition((X, y), how=SPLITS[EVEN])]

    def tested(epsilon: float, run: int) -> Quality:
        say(f"federation: ε = {epsilon:g}, run {run + 1} of {FEDERATED_RUNS} …")
        channel = Federation(SERVERS, randomness=lambda *at: SeededRandomness(f"{run} {at}"))
        outcome = channel.run(Logistic(), holders, data.schema, promised(SUMMED, epsilon))
        return quality(outcome.model.scores(unseen), truth)

    found = {e: tuple(tested(e, run) for run in range(FEDERATED_RUNS)) for e in FEDERATED}
    return [
        Point(SUMMED, split, epsilon, None, tuple(run.error for run in runs), runs)
        for split in SPLITS
        for epsilon, runs in found.items()
    ]


def _ball(arrays: Part) -> Part:
    """One-hot rows span a constant, so that none is added."""
    return np.asarray(arrays[0], dtype=np.float64) / math.sqrt(ATTRIBUTES), np.asarray(arrays[1])


# ── what is said of it ──


def best(points: Sequence[Point], method: str, split: str, epsilon: float) -> Point:
    """In hindsight, over λ."""
    own = (p for p in points if (p.method, p.split, p.epsilon) == (method, split, epsilon))
    return min(own, key=lambda p: p.mean)


def judged(points: Sequence[Point]) -> Iterator[Row]:
    for split in (EVEN, "10 %"):
        for epsilon in JUDGED:
            for ours, peer in ((NORMAL, PUBLISHED), (NORMAL, PURE), (SUMMED, NORMAL)):
                mine, theirs = (best(points, method, split, epsilon) for method in (ours, peer))
                what = f"smallest {split}, ε = {epsilon:g}: test error of {_named(mine)}"
                yield Row(what, mine.mean, theirs.mean, _named(theirs), 1.0, at_most=True)
            yield from sure(points, split, epsilon)


def sure(points: Sequence[Point], split: str, epsilon: float) -> Iterator[Row]:
    """Beside the errors: calibration slope and log loss, shown. Averages are not calibrated."""
    exact = best(points, EXACT, split, epsilon)
    for method in (NORMAL, SUMMED):
        point = best(points, method, split, epsilon)
        head = f"smallest {split}, ε = {epsilon:g}, {_named(point)}"
        yield from quality_rows(head, point.qualities, (_named(exact), exact.qualities[0].loss))


def _named(point: Point) -> str:
    return point.method + (f", λ = {point.penalty:g}" if point.penalty else "")


def write_points(points: Sequence[Point], path: Path) -> None:
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS.split(","))
        for p in points:
            kept = promised(p.method, p.epsilon).delta, p.method not in (EXACT, PUBLISHED)
            spread = np.quantile(p.runs, (0.1, 0.9)).tolist()
            table.writerow(
                [p.method, p.split, p.epsilon, *kept, p.penalty, len(p.runs), p.mean, *spread]
            )


def panels(points: Sequence[Point]) -> list[Panel]:
    """For each split λ = 1 on the left, and the best λ on the right."""
    below = "ε: smaller is more private"
    made = []
    for split in SPLITS:
        fixed = [p for p in points if p.split == split and p.penalty in (1.0, None)]
        chosen = [best(points, p.method, split, p.epsilon) for p in fixed]
        title = f"smallest party {split}: test error"
        made.append(Panel(f"{title}, λ = 1 (0.236: majority's vote)", below, _lines(fixed)))
        made.append(Panel(f"{title}, best λ in hindsight", below, _lines(chosen)))
    return made


def _lines(points: Sequence[Point]) -> list[Line]:
    """Means; bands of 200 draws would hide one another."""
    return [
        Line(
            method,
            [(p.epsilon, (p.mean,)) for p in points if p.method == method],
            COLOURS[method],
            bold=method == SUMMED,
        )
        for method in METHODS
    ]
