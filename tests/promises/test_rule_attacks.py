"""Attacks on rules: with the noise that is due they pass, with half of it they do not.

Randomness is seeded, so that results are the same for everyone; false alarms and power are stated
by the games themselves.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from tacit.audits.game import play, power
from tacit.audits.rule_attacks import RULE_ATTACKS
from tacit.crypto.prg import SeededRandomness

FALSE_ALARMS, POWER = 1e-6, 0.99


def check(name: str) -> None:
    game = RULE_ATTACKS[name]()
    due = play(game, randomness=SeededRandomness(name))
    assert due.false_alarms <= FALSE_ALARMS
    assert due.passed
    half = play(game, Fraction(1, 2), SeededRandomness(name))
    assert half.power >= POWER
    assert not half.passed


def test_a_shuffled_crowd() -> None:
    check("shuffled")


@pytest.mark.long
@pytest.mark.parametrize("name", RULE_ATTACKS)
def test_half_of_the_noise_is_caught(name: str) -> None:
    check(name)


@pytest.mark.parametrize("name", RULE_ATTACKS)
def test_claims_leave_room_for_a_verdict(name: str) -> None:
    """A game whose claim is nearly certain success could never be lost."""
    game = RULE_ATTACKS[name]()
    assert 0.6 < game.claim.success < 0.9
    assert power(game.claim, game.claim.success, game.trials) <= FALSE_ALARMS
