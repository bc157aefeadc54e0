"""Frequent item sets of Mushroom, minsup 0.01, lengths 2 to 4: PEM's loss, against PEM's way.

The loss is PEM's (section 7.2): Σ |count − true count| / Σ (count + true count) over all sets that
are frequent with or without noise; 0 is exact, 1 is useless. PEM's way (algorithm 3, one server):
single items are all frequent, three rounds of Laplace noise with ε/3 each and the bound
min(2·C(22, k), candidates), noisy counts as they are. Replacing one record in both. The last rows
allow δ = 1e-5, which PEM does not know: its loss is the pure one at the same ε.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from statistics import mean

import numpy as np
from numpy.typing import NDArray

from tacit.channels.central import Central
from tacit.cli.bench import Row
from tacit.crypto.prg import Randomness, SeededRandomness
from tacit.data import load_dataset
from tacit.data.records import ArrayRecords
from tacit.data.schema import Schema
from tacit.privacy import Promise
from tacit.privacy.bound import Bound, Norm
from tacit.privacy.mechanisms import Laplace
from tacit.programs.apriori import Sets, Tree, candidates, packed, support
from tacit.programs.itemsets import FrequentItemsets

MINSUP, LENGTHS, RUNS = 0.01, (2, 3, 4), 3
DELTA = 1e-5
BARS = {0.0: 0.7, DELTA: 0.5}

Families = tuple[list[Sets], list[NDArray[np.float64]]]
# Noisy counts, from counts and how much one record can change them in all.
Noisy = Callable[[NDArray[np.int64], int], NDArray[np.float64]]


def rows(say: Callable[[str], None]) -> Iterator[Row]:
    data = load_dataset("mushroom", say=say)
    X, _ = data.arrays()
    true = ours(X, data.schema, Promise(math.inf), SeededRandomness(0))
    say(f"without noise: {[len(sets) for sets in true[0]]} sets of length 1 to 4")
    base = loss(independent(X, data.schema), true)
    say(f"exact counts of single items, as if independent: loss {base:.3f}")
    for epsilon in (0.5, 1.0, 5.0):
        seeds = [f"itemsets {epsilon} {run}" for run in range(RUNS)]
        pems = [pem(X, data.schema, laplace(epsilon, SeededRandomness(seed))) for seed in seeds]
        peer = mean(loss(found, true) for found in pems)
        for delta in (0.0, DELTA):
            promise = Promise(epsilon, delta, adjacency="replace")  # type: ignore[arg-type]
            runs = [ours(X, data.schema, promise, SeededRandomness(seed)) for seed in seeds]
            mine = mean(loss(found, true) for found in runs)
            what = f"mushroom, ε = {epsilon:g}, δ = {delta:g}: PEM's loss"
            yield Row(what, mine, peer, f"PEM's way, ε = {epsilon:g}", BARS[delta], at_most=True)


def ours(X: NDArray[np.float64], schema: Schema, promise: Promise, source: Randomness) -> Families:
    program = FrequentItemsets(MINSUP, max_length=max(LENGTHS))
    return (
        Central(randomness=source).run(program, ArrayRecords(X), schema, promise).model.families()
    )


def laplace(epsilon: float, source: Randomness) -> Noisy:
    """One server's noise for counts of which replacing a record moves `bound`, by one each."""
    each = Promise(epsilon / len(LENGTHS), adjacency="replace")  # type: ignore[arg-type]

    def noisy(counts: NDArray[np.int64], bound: int) -> NDArray[np.float64]:
        allowed = Bound(Norm.L1, Fraction(bound))
        mechanism = Laplace.calibrated(allowed, each, len(counts), integral=True)
        return mechanism.perturb(counts, source).astype(np.float64)

    return noisy


def pem(X: NDArray[np.float64], schema: Schema, noisy: Noisy) -> Families:
    """Algorithm 3 as published."""
    words, items = packed(X > 0.5), X.shape[1]
    columns = FrequentItemsets().init(schema, Promise(math.inf)).columns
    families, counts = [np.arange(items, dtype=np.int32)[:, None]], [np.full(items, np.nan)]
    for length in LENGTHS:
        asked = np.concatenate(
            [np.empty((0, length), np.int32), *candidates(Tree(families, items), columns)]
        )
        found = np.empty(0)
        if len(asked):
            bound = min(2 * math.comb(len(schema.features), length), len(asked))
            found = noisy(support(words, asked), bound)
        families.append(asked[found > MINSUP * len(X)])
        counts.append(found[found > MINSUP * len(X)])
    return families, counts


def independent(X: NDArray[np.float64], schema: Schema) -> Families:
    """The frequent sets if items were independent, from exact counts of single items: what is had
    before any longer set is counted."""
    columns = FrequentItemsets().init(schema, Promise(math.inf)).columns
    shares = X.mean(axis=0)
    families: list[Sets] = [np.flatnonzero(shares >= MINSUP).astype(np.int32)[:, None]]
    counts = [shares[families[0][:, 0]] * len(X)]
    for _ in LENGTHS:
        asked = np.concatenate(list(candidates(Tree(families, X.shape[1]), columns)))
        product = shares[asked].prod(axis=1)
        families.append(asked[product >= MINSUP])
        counts.append(product[product >= MINSUP] * len(X))
    return families, counts


def loss(found: Families, true: Families) -> float:
    """φ(I) of PEM's section 7.2; a set that one side lacks has count 0 there."""
    apart = together = 0.0
    items = 1 + max(int(side[0][0].max()) for side in (found, true))
    tree = Tree(true[0], items)
    for length in LENGTHS:
        real = true[1][length - 1]
        if len(found[0]) < length:
            apart, together = apart + real.sum(), together + real.sum()
            continue
        noisy, places = found[1][length - 1], tree.find(found[0][length - 1])
        known = places >= 0
        same = np.where(known, real[places], 0.0)
        missed = float(real.sum() - real[places[known]].sum())
        apart += float(np.abs(noisy - same).sum()) + missed
        together += float(np.abs(noisy + same).sum()) + missed
    return apart / together
