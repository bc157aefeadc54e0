"""What a crowd's model is worth: one question each, beside AnonML's plan, for the same epsilon.

Adult (32,561 people; AUC on its own test part, mean of 20 runs), and course drop-out (OULAD, KDD
Cup 2015; 5 runs) as stand-ins for the thesis's EdX data. Schemas, edges and groups of categories
are public knowledge: crowd_parts/problems.py says which. ε is what a person pays for everything
that she sends, added up.

    tacit        each person answers one question with the whole ε; which ones are asked follows
                 from ε, the schema and the number of people (channels/crowd/choice.py). Numbers
                 have public edges; the learner is tabulated-bayes
    AnonML k_p×k_s
                 k_p parts of the group are each asked for k_h = 2 tables of k_s features; numbers
                 are cut at private medians, for which everyone answers one question more, so that
                 each of three answers has ε/3. Its learner as published: a logistic regression for
                 each table, which votes with its label, weighted by f1
    … at best    the same, but classifiers vote with their chances and are weighted by AUC: what
                 serves it best on Adult, found in hindsight. Tables are made consistent for all
    no privacy   scikit-learn's logistic regression of all records, with tacit's edges

Beside AnonML's plans stands the thesis's own figure: the most that any one attribute is asked for.
It is smaller than what a person pays, and protects her only if her attributes had nothing to do
with one another. Beside tacit's AUC stand calibration slope and log loss, shown only. Groups, edges
and the constants of tabulated-bayes were settled once, looking at these three public sets; within a
run nothing but the randomised answers is looked at. Points and picture are left in the folder
bench.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from threadpoolctl import threadpool_limits

from crowd_parts.problems import Problem, problems, without_edges
from shared_parts.probabilities import Quality, log_odds, quality, quality_rows
from tacit.channels.crowd.learning import collected, learn
from tacit.channels.crowd.plan import Plan, PlanTerms
from tacit.cli.bench import Row
from tacit.cli.plot_panels import Line, Panel, plot_panels
from tacit.crypto.prg import SeededRandomness
from tacit.data import Batch, Encoder, Schema
from tacit.programs.partition_ensemble import PartitionEnsemble
from tacit.programs.tabulated import Tabulated
from tacit.programs.tabulated_bayes import TabulatedBayes

BARS = {0.5: 0.73, 1.0: 0.80, 2.0: 0.85, 4.0: 0.88, 8.0: 0.885}  # of AUC on Adult
RUNS = {"Adult": 20, "OULAD": 5, "KDD Cup": 5}
FOLDER = Path("bench")

OURS, SINGLE, TRIPLE, SINGLE_BEST, TRIPLE_BEST, EXACT = METHODS = (
    "tacit",
    "AnonML 20×1",
    "AnonML 5×3",
    "AnonML 20×1 at best",
    "AnonML 5×3 at best",
    "no privacy",
)
ONES = PlanTerms(kind="anonml", bins=2, partitions=20, subsets=2, size=1)
THREES = PlanTerms(kind="anonml", bins=2, partitions=5, subsets=2, size=3)
PUBLISHED, BEST = PartitionEnsemble(), PartitionEnsemble("logistic", "auc", "chances")
PLANS: dict[str, tuple[PlanTerms, Tabulated]] = {
    OURS: (PlanTerms(), TabulatedBayes()),
    SINGLE: (ONES, PUBLISHED),
    TRIPLE: (THREES, PUBLISHED),
    SINGLE_BEST: (ONES, BEST),
    TRIPLE_BEST: (THREES, BEST),
}
COLOURS = dict(
    zip(METHODS, ("#1f5fbf", "#c9772b", "#b03a48", "#e0b080", "#d99aa2", "0.55"), strict=True)
)
COLUMNS = (
    "problem",
    "method",
    "epsilon",
    "attribute_epsilon",
    "runs",
    "mean",
    "tenth",
    "ninetieth",
)

Say = Callable[[str], None]
Reals = NDArray[np.float64]


class Point(NamedTuple):
    """One method at one place: the AUC of each run, and the thesis's figure for its plan.

    qualities   of each run: error, calibration slope and log loss
    """

    problem: str
    method: str
    epsilon: float
    attribute_epsilon: float
    runs: tuple[float, ...]
    qualities: tuple[Quality, ...] = ()

    @property
    def mean(self) -> float:
        return fmean(self.runs)


def rows(say: Say) -> Iterator[Row]:
    points: list[Point] = []
    with threadpool_limits(1):  # matrices of a few cells: threads only wait for one another
        for problem in problems(say):
            found = measured(problem, say)
            points += found
            yield from judged(found)
    FOLDER.mkdir(exist_ok=True)
    table, picture = (FOLDER / f"crowd-utility.{end}" for end in ("csv", "png"))
    write_points(points, table)
    plot_panels(panels(points), picture)
    say(f"written: {table}, {picture}")


def measured(problem: Problem, say: Say) -> list[Point]:
    scores = without_privacy(problem)
    exact, best = auc(scores, _truth(problem)), (quality(scores, _truth(problem)),)
    say(f"{problem.name}: {problem.train.rows:,} people; no privacy: AUC {exact:.4f}")
    found = [Point(problem.name, EXACT, epsilon, epsilon, (exact,), best) for epsilon in BARS]
    for method in PLANS:
        for epsilon in BARS:
            point = studied(problem, method, epsilon)
            say(
                f"{problem.name}, ε = {epsilon:g}, {method}: AUC {point.mean:.4f} (each attribute "
                f"is asked for at most ε = {point.attribute_epsilon:.3g})"
            )
            found.append(point)
    return found


def studied(problem: Problem, method: str, epsilon: float) -> Point:
    """Studies of one kind, each with lots, noise and, for AnonML, subsets of its own."""
    terms, learner = PLANS[method]
    schema = problem.schema if method == OURS else without_edges(problem.schema)
    people = Batch(schema, problem.train.columns, problem.train.rows)
    runs, qualities, shown = [], [], 0.0
    for run in range(RUNS[problem.name]):
        about = f"{problem.name} {method} {epsilon} {run}"
        seed = hashlib.sha256(about.encode()).digest()
        plan = Plan.drawn_up(schema, terms, epsilon, people.rows, seed)
        assert plan.person_epsilon <= epsilon
        tables, found = collected(plan, terms.bins, people, seed, SeededRandomness(about))
        said = learner.predict(learn(learner, found, tables), _vectors(problem, found))
        assert said is not None
        assert said.scores is not None
        runs.append(auc(said.scores[:, 1], _truth(problem)))
        qualities.append(quality(log_odds(said.scores), _truth(problem)))
        shown = max(shown, plan.attribute_epsilon)
    return Point(problem.name, method, epsilon, shown, tuple(runs), tuple(qualities))


def without_privacy(problem: Problem) -> Reals:
    """The scores of those who are judged by."""
    from sklearn.linear_model import LogisticRegression

    train = Encoder(problem.schema, interval="symmetric").encode(problem.train)
    model = LogisticRegression(max_iter=1000).fit(train.X, train.y)
    return np.asarray(model.decision_function(_vectors(problem, problem.schema)))


def _vectors(problem: Problem, schema: Schema) -> Reals:
    """Of those who are judged by; the schema may have found its own edges."""
    unseen = Batch(schema, problem.test.columns, problem.test.rows)
    return Encoder(schema, interval="symmetric").encode(unseen).X


def _truth(problem: Problem) -> NDArray[np.bool_]:
    label = problem.schema.label
    assert label is not None
    return problem.test.columns[label.name] == 1


def auc(scores: Reals, truth: NDArray[np.bool_]) -> float:
    """The area under the ROC curve, from the ranks of the positive ones (Mann and Whitney)."""
    ones = int(truth.sum())
    ranks = rankdata(scores)[truth].sum()
    return float((ranks - ones * (ones + 1) / 2) / (ones * (len(truth) - ones)))


# ── what is said of it ──


def judged(points: Sequence[Point]) -> Iterator[Row]:
    by = {(point.method, point.epsilon): point for point in points}
    for epsilon, bar in BARS.items():
        ours, exact = by[OURS, epsilon], by[EXACT, epsilon]
        what = f"{ours.problem}, ε = {epsilon:g}: AUC of"
        if ours.problem == "Adult":
            yield Row(f"{what} {OURS}", ours.mean, bar, "the bar", 1.0)
            for method in list(PLANS)[1:]:
                peer = by[method, epsilon]
                shown = f"{method}; {peer.attribute_epsilon:.3g} per attribute"
                yield Row(f"{what} {OURS}", ours.mean, peer.mean, shown, 1.0)
        else:
            for method in PLANS:
                yield Row(f"{what} {method}", by[method, epsilon].mean, exact.mean, EXACT, 0.0)
        if ours.qualities:
            head = f"{ours.problem}, ε = {epsilon:g}, {OURS}"
            yield from quality_rows(head, ours.qualities, (EXACT, exact.qualities[0].loss))


def write_points(points: Sequence[Point], path: Path) -> None:
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for p in points:
            spread = np.quantile(p.runs, (0.1, 0.9)).tolist()
            table.writerow([*p[:4], len(p.runs), p.mean, *spread])


def panels(points: Sequence[Point]) -> list[Panel]:
    below = "ε of a person, everything added up: smaller is more private"
    return [
        Panel(f"{name}: AUC", below, [_line(points, name, method) for method in METHODS])
        for name in RUNS
    ]


def _line(points: Sequence[Point], name: str, method: str) -> Line:
    own = [p for p in points if (p.problem, p.method) == (name, method)]
    return Line(method, [(p.epsilon, (p.mean,)) for p in own], COLOURS[method], bold=method == OURS)
