"""Gaussian mixture on Gowalla check-ins: held-out log-likelihood, five components, ten rounds.

Latitude and longitude are scaled by their bounds, ±90 and ±180, to the unit ball: (lat/90, lon/180)
divided by √2, the schema's own encoding. The 18 records at (0, 0), where nobody checks in, are left
out; 20,000 of the other 157,233 are held out by a fixed shuffle, 137,233 are learned from. They are
the check-ins of 1,000 active users, not a random sample. One check-in is protected, not a person.

Likelihoods per check-in, exp(mean log-likelihood), are compared, so that a ratio means the same at
every level: the bars of 3.2 at ε = 1 and 3.35 at ε = 2 are exp(3.2) and exp(3.35) over the peer's.
Peers: the same program without privacy (from the same start, a local optimum that noise may leave
for a better one), and the mixture report's ways (3 runs; noise on the records: 1). Ours: 10 runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from tacit.channels.central import Central
from tacit.cli.bench import Row
from tacit.crypto.prg import SeededRandomness
from tacit.data import load_dataset
from tacit.data.records import ArrayRecords
from tacit.privacy import Promise
from tacit.programs.mixture import Mixture
from tacit.programs.mixture_published import PublishedMixture, perturbed

RUNS = 10
HELD_OUT = 20_000
DELTA = 1e-5
BARS = {1.0: 3.2, 2.0: 3.35}


def rows(say: Callable[[str], None]) -> Iterator[Row]:
    schema = load_dataset("gowalla").schema
    train, test = split()

    def score(program: Mixture, promise: Promise, seed: int = 0, X: object = None) -> float:
        records = ArrayRecords(train if X is None else X)  # type: ignore[arg-type]
        outcome = Central(randomness=SeededRandomness(seed)).run(program, records, schema, promise)
        return float(outcome.model.log_likelihoods(test).mean())

    def mean(program: Mixture, promise: Promise, runs: int = RUNS) -> float:
        return fmean(score(program, promise, seed) for seed in range(runs))

    exact = score(Mixture(5, rounds=10), Promise(math.inf))
    say(f"without privacy: {exact:.3f}")
    for epsilon, bar in BARS.items():
        promise = Promise(epsilon, DELTA)
        ours = mean(Mixture(5, rounds=10), promise)
        shared = mean(Mixture(5, rounds=10, coordinates="shared"), promise)
        published = mean(PublishedMixture(5), promise, 3)
        everywhere = mean(PublishedMixture(5, weights_noise="gaussian"), promise, 3)
        noisy = perturbed(train, promise, SeededRandomness(0))
        local = score(Mixture(5, rounds=10), Promise(math.inf), X=noisy)
        head = f"ε = {epsilon:g}: log-likelihood {ours:.3f}"
        yield _row(f"{head} (bar {bar}), no privacy {exact:.3f}", ours, exact, "no privacy", bar)
        for peer, name in (
            (shared, "shared coordinates"),
            (published, "report: Laplace on π, Gaussian on μ, Σ"),
            (everywhere, "report: Gaussian everywhere"),
            (local, "report: noise on the records"),
        ):
            yield _row(f"{head}, peer {peer:.3f}", ours, peer, name, peer)


def _row(what: str, ours: float, peer: float, name: str, bar: float) -> Row:
    return Row(what, math.exp(ours), math.exp(peer), name, math.exp(bar - peer))


def split() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Vectors to learn from, and held out."""
    X, _ = load_dataset("gowalla").arrays(interval="symmetric", ball="L2")
    X = X[X.any(axis=1)]
    X = X[np.random.default_rng(0).permutation(len(X))]
    return X[HELD_OUT:], X[:HELD_OUT]
