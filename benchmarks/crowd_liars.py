"""What people who lie do to a crowd's model, and what withstands them.

Adult and OULAD (crowd_parts/problems.py), means of 20 studies. A share of the people lies in the
worst way that we know: crowd_parts/liars.py says how, and what was tried against it.

    plain         each person is asked which cell of a table is hers; the randomiser of least error
    public coins  each person is asked whether her cell is in one half of the table's, drawn by lot
                  ([plan] public_coins = true; channels/crowd/halves.md)
    clipped       plain, and log-odds cut by what 1 % of liars can have done
    medians       plain, and each count the median of 11 groups'
    no privacy    scikit-learn's logistic regression of all records, nobody lying

Rows compare AUC − ½ with that of the plain plan without liars: 1 is as good, 0 is guessing, less
than 0 is what liars have turned round. The table that is printed is that of docs/explain/crowd.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from threadpoolctl import threadpool_limits

from crowd_parts.liars import Attack, clipped, heaviest, medians
from crowd_parts.problems import Problem, adult, oulad
from crowd_utility import _truth, _vectors, auc, without_privacy
from tacit.channels.crowd.learning import collected, learn
from tacit.channels.crowd.plan import Plan, PlanTerms
from tacit.channels.crowd.tables import Table
from tacit.cli.bench import Row
from tacit.crypto.prg import SeededRandomness
from tacit.programs.tabulated_bayes import TabulatedBayes

EPSILONS, SHARES = (0.5, 1.0, 2.0), (0.0, 0.005, 0.01, 0.02)
RUNS, QUICK = 20, 3
GROUPS, ASSUMED = 11, 0.01  # of medians; of clipping
PLAIN, COINS, CLIPPED, MEDIANS = METHODS = ("plain", "public coins", "clipped", "medians")
PEER = "plain, nobody lying"
# Of AUC − ½: what public coins keep with 1 % of liars, and what they cost where nobody lies.
KEPT = {("Adult", 0.5): 0.85, ("Adult", 1.0): 0.9, ("OULAD", 1.0): 0.7}
COST = {("Adult", 0.5): 0.95, ("Adult", 1.0): 0.95, ("OULAD", 1.0): 0.9}
ANY = -9.0  # told, not judged

Say = Callable[[str], None]


class Point(NamedTuple):
    """The mean AUC of one method at one place."""

    problem: str
    epsilon: float
    method: str
    share: float
    auc: float


def rows(say: Say, quick: bool = False) -> Iterator[Row]:
    with threadpool_limits(1):  # matrices of a few cells: threads only wait for one another
        for problem in (adult(say), oulad(say)):
            points = measured(problem, QUICK if quick else RUNS, say)
            best = auc(without_privacy(problem), _truth(problem))
            say(f"{problem.name}, no privacy: AUC {best:.3f}; guessing: 0.5")
            for line in table_lines(points):
                say(line)
            yield from judged(points, barred=not quick)


def measured(problem: Problem, runs: int, say: Say) -> list[Point]:
    found = []
    for epsilon in EPSILONS:
        for coins in (None, True):
            plan = _plan(problem, epsilon, coins, bytes(32))
            say(
                f"{problem.name}, ε = {epsilon:g}, {COINS if coins else PLAIN}: "
                f"{len(plan.questions)} questions; of many liars, each adds up to "
                f"{heaviest(list(plan.questions)):.1f} people"
            )
        for share in SHARES:
            studies = [studied(problem, epsilon, share, run) for run in range(runs)]
            found += [
                Point(problem.name, epsilon, m, share, fmean(study[m] for study in studies))
                for m in METHODS
            ]
    return found


def studied(problem: Problem, epsilon: float, share: float, run: int) -> dict[str, float]:
    """The AUC of each method in one study; all but public coins see the same reports."""
    whole, attack = _tables(problem, epsilon, share, run, None)
    halves, _ = _tables(problem, epsilon, share, run, True)
    tables = {
        PLAIN: whole,
        COINS: halves,
        CLIPPED: clipped(whole, ASSUMED),
        MEDIANS: medians(attack.answers, GROUPS, run),
    }
    return {method: _judged_by(problem, found) for method, found in tables.items()}


def _plan(problem: Problem, epsilon: float, coins: bool | None, seed: bytes) -> Plan:
    terms = PlanTerms(public_coins=coins)
    return Plan.drawn_up(problem.schema, terms, epsilon, problem.train.rows, seed)


def _tables(
    problem: Problem, epsilon: float, share: float, run: int, coins: bool | None
) -> tuple[list[Table], Attack]:
    about = f"liars {problem.name} {epsilon} {run}"
    seed = hashlib.sha256(about.encode()).digest()
    attack = Attack(problem, share, run)
    plan, noise = _plan(problem, epsilon, coins, seed), SeededRandomness(about)
    tables, _ = collected(plan, PlanTerms().bins, problem.train, seed, noise, attack)
    return tables, attack


def _judged_by(problem: Problem, tables: Sequence[Table]) -> float:
    learner, schema = TabulatedBayes(), problem.schema
    found = learner.predict(learn(learner, schema, tables), _vectors(problem, schema))
    assert found.scores is not None
    return auc(found.scores[:, 1], _truth(problem))


# ── what is said of it ──


def judged(points: Sequence[Point], barred: bool = True) -> Iterator[Row]:
    """Three studies, a first look, differ by more than the bars allow: they are told only."""
    by = {(p.epsilon, p.method, p.share): p.auc for p in points}
    name = points[0].problem
    for epsilon in sorted({p.epsilon for p in points}):
        honest = by[epsilon, PLAIN, 0.0] - 0.5
        for share in sorted({p.share for p in points}):
            for method in METHODS:
                bars = {0.0: COST, 0.01: KEPT}.get(share, {})
                bar = bars.get((name, epsilon), ANY) if barred and method == COINS else ANY
                what = f"{name}, ε = {epsilon:g}, {share:.1%} lie, {method}: AUC − ½"
                yield Row(what, by[epsilon, method, share] - 0.5, honest, PEER, bar)


def table_lines(points: Sequence[Point]) -> Iterator[str]:
    shares = sorted({p.share for p in points})
    yield "| | ε | " + " | ".join(f"{share:.1%} lie" for share in shares) + " |"
    yield "|---" * (2 + len(shares)) + "|"
    by = {(p.epsilon, p.method, p.share): p.auc for p in points}
    for epsilon in sorted({p.epsilon for p in points}):
        for method in METHODS:
            found = " | ".join(f"{by[epsilon, method, share]:.3f}" for share in shares)
            yield f"| {points[0].problem}, {method} | {epsilon:g} | {found} |"
