"""Every estimator has the game of the program that it runs (played in tests/audits)."""

from __future__ import annotations

import tacit.estimators as room
from tacit.audits.programs import PROGRAM_GAMES
from tacit.estimators.audit_targets import ESTIMATOR_TARGETS, PROGRAMS


def test_every_estimator_has_a_game() -> None:
    assert set(ESTIMATOR_TARGETS) == set(room.__all__)


def test_it_is_that_of_its_program() -> None:
    for name, game in ESTIMATOR_TARGETS.items():
        program = getattr(room, name)._program_type
        assert PROGRAMS[name] == program.name
        assert game is PROGRAM_GAMES[program.name]
