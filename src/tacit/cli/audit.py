"""`tacit audit TARGET`: the distinguishing game, with a proof that it has teeth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from tacit.cli.output import fail, json_option, people, print_document
from tacit.errors import AuditFailed, UsageError

__all__ = ["audit"]


@click.command()
@click.argument("target")
@click.option("--trials", type=click.IntRange(min=100), help="Runs on each input.")
@json_option
def audit(target: str, trials: int | None, as_json: bool) -> None:
    """Play the distinguishing game against TARGET: a mechanism, an estimator, or "all".

    The game is a black box: it runs the mechanism on two neighbouring inputs and proves a lower
    bound on epsilon that is wrong with probability one in a million. It must stay below the claim,
    and the same game must catch the mechanism with half its noise.
    """
    targets = _targets()
    if target != "all" and target not in targets:
        raise UsageError(f"there is no target {target!r}; there are: {', '.join(targets)}, all.")
    names = list(targets) if target == "all" else [target]
    found = [_audited(name, targets[name], trials) for name in names]
    if as_json:
        print_document({"audits": found})
    else:
        _table(found)
    failed = [entry["target"] for entry in found if not (entry["passed"] and entry["teeth"])]
    if failed:
        fail(AuditFailed(f"not as claimed: {', '.join(failed)}."))


def _targets() -> dict[str, Callable[..., Any]]:
    """Mechanisms, and estimators where scikit-learn is installed."""
    from tacit.privacy.audit_targets import TARGETS

    try:
        from tacit.estimators.audit_targets import ESTIMATOR_TARGETS
    except ImportError:
        return dict(TARGETS)
    return {**TARGETS, **ESTIMATOR_TARGETS}


def _audited(name: str, target: Callable[..., Any], trials: int | None) -> dict[str, Any]:
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
        "claim": {"epsilon": honest.claim.epsilon, "delta": honest.claim.delta},
        "epsilon_at_least": honest.epsilon,
        "passed": honest.passed,
        "halved_noise_epsilon_at_least": halved.epsilon,
        "teeth": not halved.passed,
        "trials": honest.trials,
        "confidence": honest.confidence,
    }


def _table(found: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table(title="the distinguishing game", caption="lower bounds at confidence 1 − 10⁻⁶")
    for heading in ("target", "claimed", "proven", "with half the noise", ""):
        table.add_column(heading, justify="left" if heading == "target" else "right")
    for entry in found:
        claim = entry["claim"]
        delta = f", δ = {claim['delta']:g}" if claim["delta"] else ""
        caught = "caught" if entry["teeth"] else "NOT caught"
        table.add_row(
            entry["target"],
            f"ε = {claim['epsilon']:g}{delta}",
            f"ε ≥ {entry['epsilon_at_least']:.3f}",
            f"ε ≥ {entry['halved_noise_epsilon_at_least']:.3f}: {caught}",
            "[green]holds[/]" if entry["passed"] else "[red]BROKEN[/]",
        )
    people().print(table)
