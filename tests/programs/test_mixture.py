"""Gaussian mixture: the √3, utility, degenerate data, the published ways, and the game."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))

from rounds import asked, check_sums, planned, ready, unshortened

from tacit.channels.central import Central
from tacit.crypto.prg import SeededRandomness
from tacit.data import Schema
from tacit.data.records import ArrayRecords
from tacit.errors import UsageError
from tacit.privacy import Norm, Promise, audit
from tacit.privacy.clipping import clip_to_ball
from tacit.programs.components import statistics
from tacit.programs.contribute import decoded, record_sum
from tacit.programs.divided import off_diagonal
from tacit.programs.levels import Levels
from tacit.programs.mixture import Mixture
from tacit.programs.mixture_em import joint_bound
from tacit.programs.mixture_published import PublishedMixture, perturbed
from tacit.programs.program import Plan

Reals = NDArray[np.float64]

PLANE = Schema.from_dict({"columns": {n: {"type": "number", "bounds": [-1, 1]} for n in "xy"}})
LINE = Schema.from_dict({"columns": {"x": {"type": "number", "bounds": [-1, 1]}}})
KINDS = ("full", "diag", "spherical")


def fitted(
    X: Reals, promise: Promise, program: Mixture, seed: int = 0, schema: Schema = PLANE
) -> Any:
    return Central(randomness=SeededRandomness(seed)).run(program, ArrayRecords(X), schema, promise)


def blobs(rows: int, seed: int = 1, deviation: float = 0.05) -> Reals:
    """Three groups in the unit ball."""
    generator = np.random.default_rng(seed)
    centres = np.array([[-0.4, -0.4], [0.4, -0.3], [0.0, 0.4]])
    noise = generator.normal(0, deviation, (rows, 2)) * [1.0, 2.0]
    return clip_to_ball(centres[generator.integers(3, size=rows)] + noise, 1.0)


def in_shares(seen: Reals, shares: Reals, kind: str, norm: Norm) -> Reals:
    """The statistics of records that are divided among components, seen from each."""
    pairs, stretch = zip(shares.T, seen, strict=True), off_diagonal(norm)
    return np.hstack([share[:, None] * statistics(each, kind, stretch) for share, each in pairs])


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 6),
    st.integers(1, 7),
    st.sampled_from(KINDS),
    st.sampled_from([Norm.L1, Norm.L2]),
    st.floats(0.01, 100),
)
def test_statistics_of_a_record_are_no_longer_than_declared(
    seed: int, width: int, components: int, kind: str, norm: Norm, sharpness: float
) -> None:
    """√3 in L2 whatever the number of components; every kind, every division of a record."""
    generator = np.random.default_rng(seed)
    seen = generator.normal(size=(components, 40, width))
    seen /= np.maximum(1.0, np.linalg.norm(seen, axis=2, keepdims=True))  # half on the sphere
    shares = np.exp(sharpness * generator.normal(size=(40, components)))
    shares /= shares.sum(axis=1, keepdims=True)
    rows = in_shares(seen, shares, kind, norm)
    lengths = np.linalg.norm(rows, ord=1 if norm is Norm.L1 else 2, axis=1)
    assert (lengths <= float(joint_bound(norm, kind, width)) * (1 + 1e-12)).all()


def test_the_bound_is_reached() -> None:
    one = np.array([[[0.0, 1.0]]])
    rows = in_shares(one, np.ones((1, 1)), "full", Norm.L2)
    assert np.linalg.norm(rows) == pytest.approx(math.sqrt(3))
    assert float(joint_bound(Norm.L2, "full", 2)) == pytest.approx(math.sqrt(3))
    level = np.full((1, 1, 2), math.sqrt(0.5))
    assert np.abs(in_shares(level, np.ones((1, 1)), "full", Norm.L1)).sum() == pytest.approx(
        float(joint_bound(Norm.L1, "full", 2))
    )


def test_in_shared_coordinates_no_record_of_the_ball_is_shortened() -> None:
    program = Mixture(3, coordinates="shared")
    state = program.init(PLANE, Promise(1.0, 1e-5))
    query = asked(program, state, state, state.tree + 1)
    batch = ready(program, blobs(500, deviation=0.5), None, state)
    rows = check_sums(program, batch, state, query)
    (free,) = unshortened(program, batch, state, query)
    assert np.array_equal(rows, free)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("promise", [Promise(2.0, 1e-5), Promise(4.0)], ids=["gaussian", "pure"])
def test_it_learns_the_groups(kind: Any, promise: Promise) -> None:
    X, fresh = blobs(6000), blobs(2000, seed=2)
    exact = fitted(X, Promise(math.inf), Mixture(3, kind)).model.log_likelihoods(fresh).mean()
    noisy = [
        fitted(X, promise, Mixture(3, kind), seed).model.log_likelihoods(fresh).mean()
        for seed in range(3)
    ]
    assert np.mean(noisy) > exact - (0.6 if promise.delta == 0 else 0.35)
    model = fitted(X, promise, Mixture(3, kind)).model
    assert model.weights.sum() == pytest.approx(1)
    assert model.responsibilities(fresh).sum(axis=1) == pytest.approx(np.ones(2000))


def test_own_coordinates_beat_shared_ones_on_small_groups() -> None:
    """Noise relative to a component instead of to the whole ball."""
    X, fresh = blobs(6000, deviation=0.01), blobs(2000, seed=2, deviation=0.01)
    promise = Promise(1.0, 1e-5)
    own, shared = (
        fitted(X, promise, Mixture(3, coordinates=c)).model.log_likelihoods(fresh).mean()  # type: ignore[arg-type]
        for c in ("own", "shared")
    )
    assert own > shared + 1.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "promise", [Promise(math.inf), Promise(1.0), Promise(1.0, 1e-6)], ids=["none", "pure", "gauss"]
)
def test_degenerate_data(kind: Any, promise: Promise) -> None:
    for X in (np.full((500, 2), 0.3), np.array([[0.1, 0.2]]), np.zeros((3, 2))):
        for seed in range(3):
            model = fitted(X, promise, Mixture(5, kind), seed).model
            assert np.isfinite(model.log_likelihoods(X)).all()
            assert (np.linalg.norm(model.means, axis=1) <= 1 + 1e-12).all()
            values = np.linalg.eigvalsh(model.covariances) if kind == "full" else model.covariances
            assert (values >= 0.99e-6).all()
            assert (values <= 1.01).all()


def test_what_is_refused() -> None:
    for wrong in (
        {"components": 0},
        {"rounds": 0},
        {"covariance": "tied"},
        {"coordinates": "polar"},
        {"floor": 0.0},
    ):
        with pytest.raises(UsageError):
            Mixture(**wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="delta"):
        PublishedMixture().init(PLANE, Promise(1.0))
    with pytest.raises(UsageError, match="laplace"):
        PublishedMixture(weights_noise="uniform")


@pytest.mark.parametrize("weights_noise", ["laplace", "gaussian"])
def test_the_published_ways_keep_the_promise_and_cost_more(weights_noise: str) -> None:
    X, fresh = blobs(6000), blobs(2000, seed=2)
    promise = Promise(1.0, 1e-5, adjacency="replace")  # type: ignore[arg-type]
    ours = fitted(X, promise, Mixture(3)).model.log_likelihoods(fresh).mean()
    program = PublishedMixture(3, weights_noise=weights_noise)
    outcome = fitted(X, promise, program)
    assert program.promise_holds
    laws = {release.mechanism for release in outcome.certificate.releases}
    assert laws == ({"laplace", "gaussian"} if weights_noise == "laplace" else {"gaussian"})
    assert outcome.model.log_likelihoods(fresh).mean() < ours - 0.3
    # The report's noise: Δ·√(2 ln(1.25/δᵢ))/εᵢ with ε and δ divided over T(2K + 1) releases.
    releases = 10 * 7
    gaussians = releases - 10 if weights_noise == "laplace" else releases
    published = 2 * math.sqrt(2 * math.log(1.25 * gaussians / 1e-5)) * releases
    assert outcome.state.noise == pytest.approx(published, rel=1e-3)


def test_published_without_privacy_is_the_same_algorithm() -> None:
    """A round of it makes of one mixture what ours makes of it."""
    X, nothing = blobs(500), Promise(math.inf)
    theirs, ours = PublishedMixture(3, rounds=1), Mixture(3, rounds=1)
    first, own = theirs.init(PLANE, nothing), ours.init(PLANE, nothing)
    same = {"weights": first.weights, "means": first.means, "covariances": first.covariances}
    found = []
    for program, state in ((theirs, first), (ours, replace(own, done=own.tree, **same))):
        query = planned(program, state).stages[-1].query
        total = record_sum(program, ready(program, X, None, state), state, query, clip=False)
        found.append(program.result(program.reduce(decoded(total, query), state)))  # type: ignore[arg-type]
    np.testing.assert_allclose(found[0].means, found[1].means, atol=1e-5)
    np.testing.assert_allclose(found[0].covariances, found[1].covariances, atol=1e-5)


def test_tight_accounting_of_the_published_releases_costs_less() -> None:
    promise = Promise(1.0, 1e-5)
    linear, tight = (
        PublishedMixture(3, weights_noise="gaussian", composition=c).init(PLANE, promise).noise
        for c in ("linear", "tight")
    )
    assert tight < linear / 5


@pytest.mark.parametrize("promise", [Promise(1.0), Promise(1.0, 1e-5)], ids=["pure", "gaussian"])
def test_input_perturbation_has_the_noise_of_one_record(promise: Promise) -> None:
    X = blobs(4000)
    noise = perturbed(X, promise, SeededRandomness(3)) - X
    expected = 2 * math.sqrt(2) * math.sqrt(2) if promise.delta == 0 else 2 * 3.7304
    assert noise.std() == pytest.approx(expected, rel=0.05)
    model = fitted(X + noise, Promise(math.inf), Mixture(3, rounds=3)).model
    assert np.isfinite(model.log_likelihoods(X)).all()


@pytest.mark.statistical
@pytest.mark.parametrize("coordinates", ["own", "shared"])
def test_the_game(coordinates: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """False alarms: at most one in a million runs. Halved noise must be caught.

    The adversary sees the noisy statistics of a round, of which all else is made.
    """
    claim = Promise(1.0, 0.01)
    program, source = Mixture(2, rounds=1, coordinates=coordinates), SeededRandomness(12)
    first = program.init(LINE, claim)
    state = replace(first, covariances=first.covariances / 16)  # a record that needs shortening

    def play(X: Reals, runs: int) -> Reals:
        query = asked(program, first, state, first.tree + 1)
        total = record_sum(program, ready(program, X, None, first), state, query)
        (mechanism,) = Levels.planned(claim, alone).charge(1, query)
        return mechanism.perturb(np.tile(total, (runs, 1)), source)

    # The round of statistics by itself, as if all of the promise were for it.
    alone = Plan((planned(program, first).stages[-1],))
    neighbours = (np.array([[0.0], [1.0]]), np.array([[0.0]]))
    honest = audit(play, neighbours, claim, trials=60_000)
    assert 0.2 < honest.epsilon <= claim.epsilon
    calibrated = Levels.mechanism
    monkeypatch.setattr(Levels, "mechanism", lambda self, block: halved(calibrated(self, block)))
    assert audit(play, neighbours, claim, trials=60_000).epsilon > claim.epsilon


def halved(mechanism: Any) -> Any:
    return replace(mechanism, scale=mechanism.scale / 2)
