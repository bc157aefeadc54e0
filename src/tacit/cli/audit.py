"""`tacit audit TARGET`: distinguishing games, with a proof that they have teeth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from tacit.cli.output import fail, json_option, people, print_document
from tacit.errors import AuditFailed, UsageError

__all__ = ["audit"]

PURE = " (pure)"  # of a target: the same game under a promise without delta


@click.command()
@click.argument("target")
@click.option("--trials", type=click.IntRange(min=20), help="Runs of each game.")
@json_option
def audit(target: str, trials: int | None, as_json: bool) -> None:
    """Play a distinguishing game against TARGET: a mechanism, a program, a channel, or "all".

    Mechanisms are black boxes: they run on two neighbouring inputs. Programs and channels are
    played white-box: the adversary knows every record but one, all states and all noisy sums, and
    guesses from their likelihood whether that one is there. What the game proves is wrong with
    probability one in a million. It must stay within the claim, and the same game must catch half
    the noise; how probable that was is stated as its power.
    """
    targets, target = _targets(), _current(target)
    if target != "all" and target not in targets:
        raise UsageError(f"there is no target {target!r}; there are: {', '.join(targets)}, all.")
    names = _each_once(targets) if target == "all" else {target: []}
    found = [{**targets[name](name, trials), "also": also} for name, also in names.items()]
    if as_json:
        print_document({"audits": found})
    else:
        _table(found)
    failed = [entry["target"] for entry in found if not (entry["passed"] and entry["teeth"])]
    if failed:
        fail(AuditFailed(f"not as claimed: {', '.join(failed)}."))


def _current(target: str) -> str:
    """A target by its name of today: `itemsets (pure)` is `frequent-itemsets (pure)`."""
    from tacit.program_names import current_name

    name = target.removesuffix(PURE)
    return current_name(name) + target[len(name) :]


class _Target:
    """A game and how it is played; two names of one game are the same target."""

    def __init__(self, game: Callable[..., Any], played: Callable[..., dict[str, Any]]) -> None:
        self.game, self._played = game, played

    def __call__(self, name: str, trials: int | None) -> dict[str, Any]:
        return self._played(name, self.game, trials)


def _targets() -> dict[str, _Target]:
    """Mechanisms, programs and channels, and estimators where scikit-learn is installed."""
    from tacit.audits.targets import WHITE_BOX_TARGETS
    from tacit.privacy.audit_targets import TARGETS

    # A mechanism and a rule of cost may have one name: the mechanism's game is the sharper one.
    white = {name: _Target(game, _white_box) for name, game in WHITE_BOX_TARGETS.items()}
    black = {name: _Target(game, _black_box) for name, game in TARGETS.items()}
    try:
        from tacit.estimators.audit_targets import ESTIMATOR_TARGETS
    except ImportError:
        return {**white, **black}
    fitted = {name: _Target(game, _white_box) for name, game in ESTIMATOR_TARGETS.items()}
    return {**white, **black, **fitted}


def _each_once(targets: Mapping[str, _Target]) -> dict[str, list[str]]:
    """The first name of each game, with its other names."""
    first: dict[Callable[..., Any], str] = {}
    names: dict[str, list[str]] = {}
    for name, target in targets.items():
        if target.game in first:
            names[first[target.game]].append(name)
        else:
            first[target.game] = name
            names[name] = []
    return names


def _black_box(name: str, target: Callable[..., Any], trials: int | None) -> dict[str, Any]:
    from fractions import Fraction

    from tacit.crypto.prg import SYSTEM
    from tacit.privacy.audit import audit as play_game

    bounds = []
    with people(as_json=True).status(f"playing against {name} …"):
        for noise in (Fraction(1), Fraction(1, 2)):
            game = target(noise, SYSTEM)
            report = play_game(game.play, game.neighbours, game.claim, trials or game.trials)
            bounds.append(report)
    honest, halved = bounds
    return {
        "target": name,
        "game": "black box",
        "claim": {"epsilon": honest.claim.epsilon, "delta": honest.claim.delta},
        "epsilon_at_least": honest.epsilon,
        "passed": honest.passed,
        "halved_noise_epsilon_at_least": halved.epsilon,
        "teeth": not halved.passed,
        "trials": honest.trials,
        "confidence": honest.confidence,
    }


def _white_box(name: str, target: Callable[..., Any], trials: int | None) -> dict[str, Any]:
    from fractions import Fraction

    from tacit.audits.game import play

    game = target()
    with people(as_json=True).status(f"playing against {name} …") as status:

        def progress(done: int, planned: int) -> None:
            status.update(f"playing against {name} … {done} of {planned}")

        honest, halved = (
            play(game, noise, trials=trials, progress=progress)
            for noise in (Fraction(1), Fraction(1, 2))
        )
    promise = game.claim.promise
    return {
        "target": name,
        "game": "white box",
        "claim": {
            "epsilon": promise.epsilon,
            "delta": promise.delta,
            "unit": str(promise.unit),
            "adjacency": str(promise.adjacency),
            "success": game.claim.success,
            "mu": game.claim.mu,
        },
        "mu_at_least": honest.mu,
        "passed": honest.passed,
        "halved_noise_mu_at_least": halved.mu,
        "teeth": not halved.passed,
        "power": halved.power,
        "false_alarm_rate": honest.false_alarms,
        "bound_reached": honest.reach,
        "trials": honest.trials,
        "confidence": honest.confidence,
    }


def _table(found: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table(title="distinguishing games", caption="lower bounds at confidence 1 − 10⁻⁶")
    table.add_column("target")
    for heading in ("claimed", "proven", "half the noise", "", "power", ""):
        table.add_column(heading, justify="right", no_wrap=True)
    for entry in found:
        table.add_row(
            entry["target"],
            *_bounds(entry),
            "caught" if entry["teeth"] else "NOT caught",
            f"{entry['power']:.3f}" if "power" in entry else "",
            "[green]holds[/]" if entry["passed"] else "[red]BROKEN[/]",
        )
    people().print(table)


def _bounds(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    """What is claimed and what was proven: μ where the noise is known, else ε."""
    claim = entry["claim"]
    if "mu" in claim:
        symbol, key, claimed = "μ", "mu", f"μ ≤ {claim['mu']:.2f}"
    else:
        symbol, key, claimed = "ε", "epsilon", f"ε ≤ {claim['epsilon']:g}"
    with_all, with_half = entry[f"{key}_at_least"], entry[f"halved_noise_{key}_at_least"]
    return claimed, f"{symbol} ≥ {with_all:.2f}", f"{symbol} ≥ {with_half:.2f}"
