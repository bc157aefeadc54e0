"""`tacit demo`: the main job on one machine, without configuration.

Today that is a private summary of a real data set; every later channel replaces the middle part and
keeps the frame: budget, noise, certificate, picture.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.output import json_option, people, print_document
from tacit.errors import BudgetExceeded

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.cli.summary import Answer
    from tacit.data import Batch
    from tacit.privacy import Ledger, Promise, Release

__all__ = ["demo"]

DATASET = "adult"
COLUMNS = ("income", "education", "age", "hours-per-week")
TRUST = "The holder of the data, who adds the noise. Everyone else sees noisy figures only."


@click.command()
@click.option("--epsilon", type=float, default=1.0, show_default=True, help="The promise.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("demo"),
    show_default=True,
    help="Folder for the results.",
)
@json_option
def demo(epsilon: float, out: Path, as_json: bool) -> None:
    """A private summary of a real data set beside the exact one.

    Writes the noisy figures, their certificate, a picture and a charged ledger.
    """
    from tacit.privacy import Ledger, Promise

    promise = Promise(epsilon)
    words = people(as_json=True)
    batch, schema_digest = _read(words, promise)
    out.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(out / "ledger.db")
    spent = ledger.balance(DATASET, promise.unit).spent.epsilon if _known(ledger) else 0
    ledger.allow(DATASET, promise.unit, float(spent) + epsilon)
    answers, files = _release(words, batch, promise, ledger, out, schema_digest)
    refusal = _try_again(ledger, promise)
    if as_json:
        print_document(_document(promise, answers, files, refusal))
    else:
        _show(people(), promise, answers, files, refusal)


def _read(words: Console, promise: Promise) -> tuple[Batch, str]:
    from tacit.data import Batch, load_dataset, read_batches

    with words.status(f"looking for the data set {DATASET} …") as status:
        data = load_dataset(DATASET, say=status.update)
        status.update("reading and checking every record …")
        batch = Batch.concat(list(read_batches(data.train, data.schema)))
    words.print(f"{data.title}: {batch.rows:,} records ({data.found}). {data.source}")
    promise.check_population(batch.rows)
    return batch, data.schema.digest


def _known(ledger: Ledger) -> bool:
    return any(balance.dataset == DATASET for balance in ledger.balances())


def _release(
    words: Console, batch: Batch, promise: Promise, ledger: Ledger, out: Path, schema_digest: str
) -> tuple[list[Answer], dict[str, Path]]:
    """Reserve, draw, write, sign, charge: in this order."""
    from rich.progress import track

    from tacit.cli.plot import plot_summary
    from tacit.cli.summary import answer, questions, spends
    from tacit.crypto.signing import SigningKey
    from tacit.home import tacit_home

    columns = [column for column in batch.schema.columns if column.name in COLUMNS]
    asked = questions(sorted(columns, key=lambda c: COLUMNS.index(c.name)), promise)
    files = {
        "summary": out / "summary.json",
        "certificate": out / "summary.json.certificate.json",
        "picture": out / "summary.png",
        "ledger": out / "ledger.db",
    }
    with ledger.reserve(promise, DATASET, "summary") as reservation:
        head = ledger.head
        reservation.mark_drawn()
        steps = track(asked, "drawing noise", console=words, transient=True)
        answers = [answer(question, batch) for question in steps]
        summary = json.dumps([a.released() for a in answers], indent=1, ensure_ascii=False).encode()
        files["summary"].write_bytes(summary)
        certificate = _certificate(promise, spends(asked), summary, schema_digest, head)
        key = SigningKey.load_or_create(tacit_home() / "keys" / "holder.pem")
        signed = certificate.signed(key).to_json()
        files["certificate"].write_text(signed, encoding="utf-8")
        reservation.commit(certificate=_digest(signed.encode()))
    with words.status("drawing the picture …"):
        plot_summary(answers, promise, files["picture"])
    return answers, files


def _digest(data: bytes) -> str:
    from tacit.crypto.signing import digest

    return digest(data)


def _certificate(
    promise: Promise, releases: tuple[Release, ...], summary: bytes, schema_digest: str, head: str
) -> Any:
    from tacit.privacy import Certificate
    from tacit.privacy.accounting import cost

    return Certificate(
        promise=promise,
        releases=releases,
        trust=TRUST,
        accountant=cost(releases, promise.delta, promise.adjacency).accountant,
        program="summary 1",
        program_digest=_digest(json.dumps(["summary 1", *COLUMNS]).encode()),
        schema_digest=schema_digest,
        subject=_digest(summary),
        secure_randomness=True,
        ledger=head,
    )


def _try_again(ledger: Ledger, promise: Promise) -> str:
    """A second summary of the same records must be refused: that is what the ledger is for."""
    try:
        ledger.reserve(promise, DATASET, "summary, again").release()
    except BudgetExceeded as refusal:
        return str(refusal)
    return "it was not refused"


def _document(
    promise: Promise, answers: list[Answer], files: dict[str, Path], refusal: str
) -> dict[str, Any]:
    return {
        "promise": {"epsilon": promise.epsilon, "delta": promise.delta},
        "answers": [
            {**a.released(), "exact": dict(zip(a.question.cells, a.exact, strict=True))}
            for a in answers
        ],
        "files": {name: str(path) for name, path in files.items()},
        "second_summary": refusal,
    }


def _show(
    words: Console, promise: Promise, answers: list[Answer], files: dict[str, Path], refusal: str
) -> None:
    from rich.table import Table

    table = Table(title=f"A private summary, {promise}")
    for heading, side in (("of", "left"), ("", "left"), ("exact", "right"), ("private", "right")):
        table.add_column(heading, justify=side)  # type: ignore[arg-type]
    table.add_column("95 % of the noise", justify="right")
    for a in answers:
        rows = zip(a.question.cells, a.exact, a.private, strict=True)
        for number, (cell, exact, private) in enumerate(rows):
            name = a.question.name if number == 0 else ""
            reach = f"± {a.reach:.0f}" if a.reach is not None else ""
            digits = 0 if a.reach is not None else 1
            table.add_row(name, cell, f"{exact:,.{digits}f}", f"{private:,.{digits}f}", reach)
        table.add_section()
    words.print(table)
    words.print("The exact column is shown because this data set is public. Only the private one")
    words.print(f"was written to {files['summary']}.\n")
    words.print(f"A second summary of the same records: {refusal}\n")
    words.print("Look further:")
    for command in (
        f"tacit verify {files['summary']}",
        f"tacit budget show --ledger {files['ledger']}",
    ):
        words.print(f"  .venv/bin/{command}")
    words.print(f"  the picture: {files['picture']}")
