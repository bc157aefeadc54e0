"""How people see a study."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tacit.crypto.signing import fingerprint
from tacit.program_names import current_name

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from tacit.channels.studies.explanation import Explanation
    from tacit.channels.studies.study import Study

__all__ = ["print_study"]


def print_study(console: Console, study: Study, explanation: Explanation) -> None:
    """The study in the order in which a holder decides."""
    from rich.text import Text

    author = "nobody" if study.signature is None else fingerprint(study.signature.author)
    console.print(Text(f"{study.name}: {study.question}", style="bold"))
    _say(
        console,
        _summary(study),
        f"digest     {study.digest}",
        f"signed by  {author}",
    )
    if explanation.seen:
        _say(console, explanation.seen)
    _heading(console, "What is promised")
    _say(console, explanation.promise, explanation.trust)
    _heading(console, "Who sees what")
    for who, lines in explanation.sees.items():
        _say(console, *(f"{who}: {line}" for line in lines))
    _heading(console, "Noise")
    _say(console, explanation.noise_words)
    if explanation.noise:
        console.print(_noise(explanation))
    if explanation.schedule:
        _heading(console, "Rounds")
        _say(console, *explanation.schedule)
    if explanation.options:
        _heading(console, "What sampling and selection buy")
        _say(console, *explanation.options)
    _heading(console, "What it costs")
    _say(console, explanation.cost)
    if explanation.ranges:
        _say(console, explanation.ranges)
    if explanation.expected is not None:
        _heading(console, "What it can find")
        _say(console, str(explanation.expected))
    if explanation.loss is not None:
        _say(console, str(explanation.loss))
    _heading(console, "Who drops out")
    _say(console, *explanation.drop_out)
    _heading(console, "Parties, by the fingerprints of their keys")
    console.print(_parties(study))


def _summary(study: Study) -> str:
    chosen, part = study.chosen, study.take_part
    named = [f"{name} = {json.dumps(value)}" for name, value in sorted(chosen.settings.items())]
    what = ", ".join([current_name(chosen.name), f"version {chosen.version}", *named])
    if study.consortium is not None:
        terms = study.consortium
        return (
            f"{what}, trained by each party alone, then averaged once ({terms.protocol}) · "
            f"{part.minimum} to {part.maximum} parties with {terms.smallest:,} to "
            f"{part.records:,} records each"
        )
    return (
        f"{what}, at most {study.last_round} rounds · {len(study.servers)} servers · "
        f"{part.minimum} to {part.maximum} holders with up to {part.records:,} records each"
    )


def _heading(console: Console, text: str) -> None:
    console.print(f"\n[bold]{text}[/bold]")


def _say(console: Console, *lines: str) -> None:
    for line in lines:
        console.print(line, markup=False)


def _noise(explanation: Explanation) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table("noise of", "law", box=None, pad_edge=False)
    for title in ("numbers", "bound", explanation.noise[0].adder, "result", "trusted place"):
        table.add_column(title, justify="right")
    for row in explanation.noise:
        deviations = (row.one_part, row.result, row.central)
        table.add_row(
            Text(row.block),
            row.mechanism,
            str(row.length),
            f"{row.bound:g}",
            *(f"{value:.4g}" for value in deviations),
        )
    table.caption = "standard deviations, of one number"
    return table


def _parties(study: Study) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table("role", "name", "fingerprint", "address", box=None, pad_edge=False)
    for server in study.servers:
        table.add_row("server", server.name, fingerprint(server.key), Text(server.address))
    chief, apart = study.aggregator, study.consortium is None
    table.add_row(
        "aggregator" if apart else "curator",
        chief.name,
        fingerprint(chief.key),
        Text(chief.address),
    )
    for holder in study.holders:
        table.add_row("holder" if apart else "party", holder.name, fingerprint(holder.key), "")
    return table
