"""Attacks on rules: with the noise that is due they pass, with half of it they do not.

Short games of the fast ones, at confidence 0.98, seeded, so that results are the same for everyone.
All of them, at full length, are played by `tests/audits/test_games.py`, as `tacit audit` does.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from tacit.audits.game import play, power
from tacit.audits.rule_attacks import RULE_ATTACKS
from tacit.audits.targets import WHITE_BOX_TARGETS
from tacit.crypto.prg import SeededRandomness

CONFIDENCE = 0.98
SHORT = {
    "sampled-several-blocks (pure)": 250,
    "consortium (pure)": 120,
    "shuffled": 400,
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", SHORT)
def test_half_of_the_noise_is_caught(name: str) -> None:
    """Seeded; a new seed would fail once in fifteen times."""
    game, trials = RULE_ATTACKS[name](), SHORT[name]
    due = play(game, Fraction(1), SeededRandomness(f"due {name}"), trials, CONFIDENCE)
    assert due.false_alarms <= 1.0001 * (1 - CONFIDENCE)
    assert due.passed
    half = play(game, Fraction(1, 2), SeededRandomness(f"half {name}"), trials, CONFIDENCE)
    assert half.power >= 0.95
    assert not half.passed


@pytest.mark.parametrize("name", RULE_ATTACKS)
def test_claims_leave_room_for_a_verdict(name: str) -> None:
    """A game whose claim is nearly certain success could never be lost."""
    game = RULE_ATTACKS[name]()
    assert 0.6 < game.claim.success < 0.9
    assert power(game.claim, game.claim.success, game.trials) <= 1e-6


def test_they_are_among_what_tacit_audit_plays() -> None:
    assert RULE_ATTACKS.items() <= WHITE_BOX_TARGETS.items()
