"""The game never accuses the innocent, and has teeth."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tacit.crypto.prg import SeededRandomness
from tacit.errors import AuditFailed, UsageError
from tacit.privacy import Promise, audit
from tacit.privacy.audit import clopper_pearson
from tacit.privacy.audit_targets import TARGETS

# Of the dearest games a part is played here: enough, with these seeds, for half the noise to show.
PARTS = {"l2-laplace": 3, "permute-and-flip": 3, "exponential": 2, "quantile": 2}


@pytest.mark.statistical
@pytest.mark.parametrize("name", TARGETS)
def test_every_mechanism_keeps_its_claim_and_half_its_noise_is_caught(name: str) -> None:
    _plays(name, PARTS.get(name, 1))


@pytest.mark.long
@pytest.mark.statistical
@pytest.mark.parametrize("name", PARTS)
def test_as_tacit_audit_plays_it(name: str) -> None:
    _plays(name, 1)


def _plays(name: str, part: int) -> None:
    for noise, holds in ((Fraction(1), True), (Fraction(1, 2), False)):
        game = TARGETS[name](noise, SeededRandomness(f"{name} {noise}"))
        report = audit(game.play, game.neighbours, game.claim, game.trials // part)
        assert report.passed is holds, f"ε ≥ {report.epsilon} with {noise} of the noise"
        if holds:
            report.check()
            assert report.epsilon > 0.2 * game.claim.epsilon  # the game is not played blindly
        else:
            with pytest.raises(AuditFailed, match="less noise than promised"):
                report.check()


def test_no_noise_at_all_is_obvious() -> None:
    report = audit(lambda value, runs: np.full(runs, value), (0.0, 1.0), Promise(3.0), 1000)
    assert report.epsilon > 3


def test_equal_inputs_prove_nothing() -> None:
    generator = np.random.default_rng(1)
    report = audit(lambda _, runs: generator.normal(size=runs), (0, 0), Promise(0.1), 20_000)
    assert report.epsilon < 0.05


def test_vectors_are_projected_on_what_tells_most() -> None:
    generator = np.random.default_rng(2)

    def play(shift: float, runs: int) -> np.ndarray:
        noise = generator.laplace(size=(runs, 5))
        noise[:, 3] += shift
        return noise

    found = audit(play, (0.0, 1.0), Promise(1.0), 50_000).epsilon
    assert 0.5 < found < 1.0


def test_delta_is_granted() -> None:
    """A mechanism that reveals everything once in twenty times is (0, 0.05)-private."""
    generator = np.random.default_rng(3)

    def play(value: int, runs: int) -> np.ndarray:
        return np.where(generator.random(runs) < 0.05, value, 0)

    assert audit(play, (1, 2), Promise(0.1, 0.06), 50_000).passed
    assert not audit(play, (1, 2), Promise(0.1, 0.01), 50_000).passed


@pytest.mark.parametrize(("successes", "trials"), [(0, 50), (3, 50), (25, 50), (50, 50)])
def test_clopper_pearson(successes: int, trials: int) -> None:
    low, high = clopper_pearson(successes, trials, 0.01)
    reference = stats.binomtest(successes, trials).proportion_ci(0.98, method="exact")
    assert (low, high) == pytest.approx((reference.low, reference.high))


def test_wrong_use() -> None:
    with pytest.raises(UsageError, match="at least 100"):
        audit(lambda value, runs: np.zeros(runs), (0, 1), Promise(1.0), 10)
    with pytest.raises(UsageError, match="asked for 200"):
        audit(lambda value, runs: np.zeros(3), (0, 1), Promise(1.0), 200)
