"""A ledger drawn for people: bars of what is used, interrupted reservations, newest entries."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tacit.cli.policy_view import decided_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from tacit.privacy.ledger import Balance, Entry, Ledger, Spend

__all__ = ["RECENT", "print_budgets"]

BAR = 10
RECENT = 8
DATASET, WORDS = "data set", "what"


def print_budgets(
    console: Console,
    ledger: Ledger,
    balances: Sequence[Balance],
    interrupted: Sequence[Spend],
    entries: list[Entry],
) -> None:
    from rich.text import Text

    head = entries[-1].hash
    console.print(Text.assemble(("Ledger ", "bold"), str(ledger.path)))
    console.print(f"[green]✓[/] chain intact, {len(entries)} entries, head {head}\n")
    if balances:
        console.print(_balances_table(balances), "")
    else:
        console.print("No budget is set: nothing may be spent. Set one: tacit budget allow --help")
    for balance in balances:
        for remark in _remarks(balance):
            console.print(remark + "\n", markup=False)
    for name, count in sorted(ledger.known.counts().items()):
        console.print(f"{name}: about {count:,} records are known\n", markup=False)
    for line in decided_lines(ledger, sorted({balance.dataset for balance in balances})):
        console.print(line, markup=False)
    console.print()
    resumable = [spend for spend in interrupted if spend.resumable]
    lost = [spend for spend in interrupted if not spend.resumable]
    if resumable:
        console.print(_spends_table("Reservations that can be resumed", resumable), "")
        console.print(
            "They count as spent. Start the same command again (tacit join, tacit crowd join), "
            "with the same folder,\nand it goes on without another charge; or leave the study: "
            "tacit join STUDY --leave\n",
            markup=False,
        )
    if lost:
        console.print(_spends_table("Interrupted reservations", lost), "")
        console.print(
            "They count as spent until you say what became of them (in doubt: spent):\n"
            "  tacit budget settle NUMBER --spent | --unspent\n",
            markup=False,
        )
    console.print(_entries_table(entries[-RECENT:]))


def _remarks(balance: Balance) -> list[str]:
    from tacit.privacy.ledger import Composition

    name, found = f"{balance.dataset} per {balance.unit}", []
    if len(balance.adjacencies) > 1:
        found.append(f"{name}: kept under replace, for which add-remove promises count twice.")
    if balance.composition is Composition.FILTER and balance.added.epsilon:
        fits = balance.allowed.covers(balance.added)
        found.append(
            f"{name}: composed by a filter. Adding would say {balance.added}"
            + (", which fits too." if fits else f", and would have stopped at {balance.allowed}.")
        )
    return found


def _table(title: str, *columns: str) -> Table:
    """Columns named `<…` are numbers: aligned to the right and, like bars, never folded."""
    from rich import box
    from rich.table import Table

    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 1),
        pad_edge=False,
        show_edge=False,
    )
    for name in columns:
        words = name in {DATASET, WORDS}
        table.add_column(
            name.removeprefix("<"),
            justify="right" if name.startswith("<") else "left",
            no_wrap=not words,
            overflow="fold",
            min_width=10 if words else None,
        )
    return table


def _balances_table(balances: Sequence[Balance]) -> Table:
    from rich.text import Text

    columns = ["<spent", "<reserved", "<left", "<allowed"]
    table = _table("Budgets", DATASET, "per", "", "used", *columns)
    for b in balances:
        for letter, name in (("ε", "epsilon"), ("δ", "delta")):
            numbers = [getattr(a, name) for a in (b.spent, b.reserved, b.left, b.allowed)]
            if name == "delta" and not any(numbers):
                continue
            title = (Text(b.dataset), str(b.unit)) if name == "epsilon" else ("", "")
            bar = _bar(numbers[0], numbers[1], numbers[3])
            table.add_row(*title, letter, bar, *(f"{float(n):.5g}" for n in numbers))
    return table


def _bar(spent: Any, reserved: Any, allowed: Any) -> Text:
    """Full blocks for what is spent, shaded ones for what is reserved, dots for what is left."""
    from rich.text import Text

    if allowed == math.inf:
        return Text("no ceiling", style="dim")
    used, full = _share(spent + reserved, allowed), _share(spent, allowed)
    blocks = _blocks(used)
    solid = min(blocks, _blocks(full))
    colour = "red" if used >= 0.9 else "yellow" if used >= 0.6 else "green"
    return Text.assemble(
        ("█" * solid + "▒" * (blocks - solid), colour),
        ("·" * (BAR - blocks), "dim"),
        f" {math.floor(100 * used):3d} %",
    )


def _share(part: Any, allowed: Any) -> float:
    return 1.0 if part >= allowed else float(part / allowed)


def _blocks(share: float) -> int:
    """Whatever is used at all is seen, and a bar is full only when nothing is left."""
    if share in (0, 1):
        return BAR * int(share)
    return min(BAR - 1, max(1, round(BAR * share)))


def _spends_table(title: str, spends: Sequence[Spend]) -> Table:
    from rich.text import Text

    table = _table(title, "<number", "made (UTC)", DATASET, "amount", WORDS, "noise")
    for s in spends:
        noise = "drawn" if s.drawn else "not drawn"
        table.add_row(
            str(s.id), _when(s.at), Text(s.dataset), str(s.amount), Text(s.purpose), noise
        )
    return table


def _entries_table(entries: Sequence[Entry]) -> Table:
    from rich.text import Text

    table = _table("Newest entries", "<number", "when (UTC)", "kind", WORDS, "hash")
    for e in entries:
        table.add_row(str(e.seq), _when(e.at), e.kind, Text(_words(e.kind, e.body)), e.hash[:8])
    return table


def _words(kind: str, body: dict[str, Any]) -> str:
    match kind:
        case "open":
            return f"ledger {body['ledger'][:8]}"
        case "allow":
            return f"{body['dataset']} per {body['unit']}: {_amount(body)}"
        case "reserve":
            part = f", part {body['part']}" if body["part"] is not None else ""
            return f"{body['dataset']} per {body['unit']}: {_amount(body)}, {body['purpose']}{part}"
        case "commit":
            return f"reservation {body['reservation']}: {_amount(body)}{_whose(body)}"
        case "release":
            return f"reservation {body['reservation']} given back{_whose(body)}"
        case "adopt":
            return f"reservation {body['reservation']}: gone on with"
        case "distinct":
            return f"{body['dataset']} is not {body['other']}, by the holder's word"
        case "policy":
            return "a policy is in force"
        case "approve":
            return f"{body['dataset']}: study {body['study'][:16]} approved"
        case "revoke":
            return f"{body['dataset']}: its use is revoked"
        case "permit":
            return f"{body['dataset']}: its use is permitted again"
        case "person":
            return f"{body['dataset']}: persons are told apart by column {body['column']}"
        case "leave out":
            again = "no longer left out" if body["back"] else "left out"
            return f"{body['dataset']}: {len(body['people'])} {again}"
        case "recover":
            return "an older copy is in use, by the holder's word: every budget is closed"
        case _:
            return f"reservation {body['reservation']}: noise drawn"


def _whose(body: dict[str, Any]) -> str:
    return ", by the holder's word" if body["settled"] else ""


def _amount(body: dict[str, Any]) -> str:
    from tacit.privacy.ledger import Amount

    return str(Amount.read(body))


def _when(at: str) -> str:
    return at[:16].replace("T", " ")
