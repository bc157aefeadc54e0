"""`tacit me ask`: a question in plain words, how it was understood, and the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tacit.cli.output import people
from tacit.errors import InputError, UsageError
from tacit.personal.ask.answering import Answer, answer
from tacit.personal.ask.understanding import Understanding, understand
from tacit.personal.events import EPOCH, MICROSECOND
from tacit.personal.pipeline import values_in
from tacit.personal.store.store import Store

__all__ = ["asked_and_answered"]


def asked_and_answered(
    store: Store,
    question: str,
    now: int,
    choice: int | None,
    yes: bool,
    quiet: bool,
    save: Path | None,
) -> dict[str, Any]:
    """Say what was understood, let the person choose where it is unsure, and answer."""
    dataset = store.dataset()
    at = (EPOCH + now * MICROSECOND).astimezone(store.zone)
    understood = understand(question, dataset.types, values_in(dataset), at)
    console = people(as_json=quiet)
    console.print(understood.in_words(), markup=False)
    if understood.reading is None:
        raise InputError(understood.why)
    choice = choice or _choice(understood, yes)
    reading = (understood.reading, *understood.alternatives)[(choice or 1) - 1]
    if save is not None:
        if save.exists():
            raise UsageError(f"{save} is there already: it is not overwritten.")
        save.write_text(reading.problem.to_toml(), encoding="utf-8")
    with console.status("learning from your past …"):
        said = answer(understood, dataset, at, choice=choice)
    if not quiet:
        _print(said)
    return _document(understood, said, save)


def _choice(understood: Understanding, yes: bool) -> int | None:
    """Which reading is meant. Where it is sure, none needs to be named; programs must name one
    where it is not."""
    if understood.is_sure:
        if not yes:
            click.confirm("Is that what you mean?", default=True, abort=True, err=True)
        return None
    if yes:
        raise UsageError(f"{understood.why} Say which reading is meant with --choose NUMBER.")
    most = 1 + len(understood.alternatives)
    said: int = click.prompt("Which one", type=click.IntRange(1, most), err=True)
    return said


def _print(said: Answer) -> None:
    from rich.text import Text

    console = people()
    console.print(Text(said.says, style="bold"))
    for line in (
        f"How far to trust it: {said.trust.grade}: {said.trust.because}",
        *said.how,
        *said.helps,
    ):
        console.print(f"  {line}", markup=False)


def _document(understood: Understanding, said: Answer, save: Path | None) -> dict[str, Any]:
    return {
        "question": understood.question,
        "understood": said.understood,
        "confidence": understood.confidence,
        "alternatives": [reading.in_words() for reading in understood.alternatives],
        "problem": said.problem.to_toml(),
        "says": said.says,
        "results": [
            {
                "key": one.key,
                "value": one.value,
                "low": one.low,
                "high": one.high,
                "chances": dict(one.chances),
                "trust": {"grade": one.trust.grade, "because": one.trust.because},
            }
            for one in said.results
        ],
        "method": said.method,
        "examples": said.examples,
        "how": list(said.how),
        "helps": list(said.helps),
        "saved": None if save is None else str(save),
    }
