"""Every estimator keeps its claim in the game, and half its noise is caught."""

from __future__ import annotations

from fractions import Fraction

import pytest

import tacit.estimators as room
from tacit.crypto.prg import SeededRandomness
from tacit.estimators.audit_targets import ESTIMATOR_TARGETS
from tacit.privacy import audit


def test_every_estimator_has_a_game() -> None:
    assert set(ESTIMATOR_TARGETS) == set(room.__all__)


@pytest.mark.statistical
@pytest.mark.parametrize("name", ESTIMATOR_TARGETS)
def test_the_claim_holds_and_half_the_noise_is_caught(name: str) -> None:
    for noise, holds in ((Fraction(1), True), (Fraction(1, 2), False)):
        game = ESTIMATOR_TARGETS[name](noise, SeededRandomness(f"{name} {noise}"))
        report = audit(game.play, game.neighbours, game.claim, game.trials)
        assert report.passed is holds, f"ε ≥ {report.epsilon} with {noise} of the noise"
