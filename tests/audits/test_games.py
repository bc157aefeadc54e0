"""Every program, channel and rule of cost keeps its claim, and half its noise is caught.

Short games run at confidence 0.98 and with fewer trials; all that they draw is seeded. The long
ones are those of `tacit audit all`: a claim that holds is accused once in a million runs.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

from tacit.audits.attacks import ATTACKS
from tacit.audits.claims import Claim, Shifts
from tacit.audits.game import Heard, Report, WhiteBox, play, power
from tacit.audits.programs import PROGRAM_GAMES, PURE, TABLES
from tacit.audits.targets import WHITE_BOX_TARGETS
from tacit.crypto.prg import Randomness, SeededRandomness
from tacit.errors import AuditFailed, UsageError
from tacit.privacy import noise as draws
from tacit.privacy.promise import Promise
from tacit.programs.program import Program
from tacit.programs.registry import installed

HALF = Fraction(1, 2)
# Of the rules, those that no program's game plays already; of two games that run the same code one.
RULES = ["record/replace", "person", "holder", "window", "federation-hostile"]
PROGRAMS = [name for name in TABLES if name != "gaussian-mixture-in-shared-coordinates"]
SHORT = {**dict.fromkeys(PROGRAMS, 75), **dict.fromkeys(RULES, 90)}
SHORT |= {"selection": 250, "consortium": 120, "federation-hostile": 75}
SHORT |= {"record/replace (pure)": 130, "histogram (pure)": 130, "naive-bayes (pure)": 130}
SHORT |= {"sampled-several-blocks": 200}
CONFIDENCE = 0.98


def _plays(game: WhiteBox, name: str, trials: int, confidence: float) -> tuple[Report, Report]:
    honest, halved = (
        play(game, part, SeededRandomness(f"{part} of {name}"), trials, confidence)
        for part in (Fraction(1), HALF)
    )
    assert honest.passed, f"{name}: μ ≥ {honest.mu} of {honest.claim.mu}"
    assert not halved.passed, f"{name}: only μ ≥ {halved.mu} of {halved.claim.mu}"
    assert halved.power >= 0.95
    assert honest.false_alarms <= 1.0001 * (1 - confidence)
    # By the law of the noise it is not accused more often than one that just keeps the claim.
    assert honest.power <= 1.01 * honest.false_alarms
    honest.check()
    with pytest.raises(AuditFailed, match="less noise than promised"):
        halved.check()
    return honest, halved


@pytest.mark.statistical
@pytest.mark.parametrize("name", SHORT)
def test_the_claim_holds_and_half_the_noise_is_caught(name: str) -> None:
    """Seeded; a new seed would fail once in twenty times."""
    honest, _ = _plays(WHITE_BOX_TARGETS[name](), name, SHORT[name], CONFIDENCE)
    assert honest.reach > (0.2 if "published" in name else 0.85)  # the game is not played blindly


@pytest.mark.long
@pytest.mark.timeout(2400)  # hundreds of federations of a hundred rounds each, on a busy machine
@pytest.mark.statistical
@pytest.mark.parametrize("name", WHITE_BOX_TARGETS)
def test_as_tacit_audit_plays_it(name: str) -> None:
    """Seeded; a new seed would fail once in a hundred times, by the power of the games."""
    game = WHITE_BOX_TARGETS[name]()
    _, halved = _plays(game, f"long {name}", game.trials, 1 - 1e-6)
    assert halved.power >= 0.99


def test_every_program_has_a_game() -> None:
    sums = {name for name, kind in installed().items() if issubclass(kind, Program)}
    assert sums | {"ranges", "averaged-logistic"} <= set(WHITE_BOX_TARGETS)
    for name in sums - {"gaussian-mixture", "gaussian-mixture-as-published"}:
        assert f"{name} (pure)" in PROGRAM_GAMES
    # What is learned from a crowd's tables is made of reports that are noisy already.
    others = set(installed()) - sums - {"averaged-logistic"}
    assert others <= {"partition-ensemble", "tabulated-bayes"}


def test_every_round_of_the_plan_is_played() -> None:
    for name in ("logistic", "k-means", "frequent-itemsets"):
        game = PROGRAM_GAMES[name]()
        found = game.trial(True, Fraction(1), SeededRandomness(name))
        assert found.shifts is not None
        # One unit that reaches its bound in every round has the whole μ of the claim.
        assert found.shifts.mu == pytest.approx(game.claim.mu, rel=0.01), name


@pytest.mark.parametrize("name", sorted(PURE))
def test_a_pure_loss_is_never_above_epsilon(name: str) -> None:
    game = PROGRAM_GAMES[f"{name} (pure)"]()
    epsilon = game.claim.promise.epsilon
    for present in (True, False):
        for part in (Fraction(1), HALF):
            found = game.trial(present, part, SeededRandomness(f"{name}{present}"))
            assert abs(found.loss) <= epsilon
            assert found.shifts is not None
            assert sum(found.shifts.laplace) <= epsilon


def _coin(success: float, reach: float = 1.0) -> Callable[[bool, Fraction, Randomness], Heard]:
    """A trial whose guess is right with the given probability."""

    def trial(present: bool, noise: Fraction, randomness: Randomness) -> Heard:
        right = bool(draws.bernoulli(Fraction(success), 1, randomness)[0])
        return Heard(1.0 if right == present else -1.0, None, reach)

    return trial


class TestTheGame:
    claim = Claim(Promise(11.0, 1e-6), 0.84)

    def test_is_as_powerful_as_it_says(self) -> None:
        """200 games: the share of those that accuse is within three deviations of the power."""
        randomness, confidence, games = SeededRandomness("power"), 0.99, 200
        for success in (0.84, 0.93):
            game = WhiteBox(self.claim, _coin(success), 60)
            reports = [play(game, HALF, randomness, 60, confidence) for _ in range(games)]
            share = sum(not report.passed for report in reports) / games
            stated = power(self.claim, success, 60, confidence)
            assert abs(share - stated) <= 3 * (stated * (1 - stated) / games) ** 0.5 + 0.005

    def test_a_broken_bound_is_a_failure_by_itself(self) -> None:
        report = play(
            WhiteBox(self.claim, _coin(0.5, reach=1.5), 50), randomness=SeededRandomness(1)
        )
        assert not report.passed
        with pytest.raises(AuditFailed, match=r"1\.5 times its bound"):
            report.check()

    def test_too_few_trials(self) -> None:
        with pytest.raises(UsageError, match="at least 20"):
            play(WhiteBox(self.claim, _coin(0.5), 5))

    def test_it_tells_how_far_it_is(self) -> None:
        told: list[tuple[int, int]] = []
        game = WhiteBox(self.claim, _coin(0.5), 30)
        play(game, randomness=SeededRandomness(1), progress=lambda a, b: told.append((a, b)))
        assert told == [(done, 30) for done in range(1, 31)]


def test_rules_that_the_matrix_refers_to() -> None:
    named = {"record/add-remove", "record/replace", "person", "holder", "pure", "gaussian"}
    named |= {"sampled-several-blocks", "selection", "window", "federation", "consortium"}
    assert named <= set(ATTACKS)


def test_expected_success_is_the_mean_over_runs() -> None:
    def trial(present: bool, noise: Fraction, randomness: Randomness) -> Heard:
        return Heard(1.0 if present else -1.0, Shifts(2.0))

    report = play(WhiteBox(TestTheGame.claim, trial, 30), HALF, SeededRandomness(1))
    assert report.expected == pytest.approx(Shifts(2.0).success(0.5))
