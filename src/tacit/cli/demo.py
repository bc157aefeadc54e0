"""`tacit demo`: the main job on one machine, without configuration.

Today one holder learns; every later channel replaces the middle part and keeps the frame: budget,
noise, certificate, picture.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.output import json_option, people, print_document
from tacit.errors import BudgetExceeded

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.channels.central import Outcome
    from tacit.data.encode import Encoded
    from tacit.data.schema import Schema
    from tacit.privacy import Ledger, Promise
    from tacit.programs.logistic import LogisticModel

__all__ = ["demo"]

DATASET = "adult"
QUESTION = "does a person earn more than 50,000 dollars a year?"
SMALLER = (0.1, 0.3)  # parts of epsilon, learned too: what more privacy would cost


@click.command()
@click.option("--epsilon", type=float, default=1.0, show_default=True, help="The promise.")
@click.option("--delta", type=float, default=1e-6, show_default=True, help="Its failure rate.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("demo"),
    show_default=True,
    help="Folder for the results.",
)
@json_option
def demo(epsilon: float, delta: float, out: Path, as_json: bool) -> None:
    """Learn from a real data set under a promise, beside learning without one.

    Writes the model, its certificate, a picture and a charged ledger.
    """
    from tacit.privacy import Ledger, Promise

    promises = [Promise(epsilon * part, delta) for part in (*SMALLER, 1.0)]
    words = people(as_json=True)
    data = _read(words)
    out.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(out / "ledger.db")
    _allow(ledger, promises)
    results = [_learned(words, data, Promise(math.inf), None)]
    results += [_learned(words, data, promise, ledger) for promise in promises]
    files = _written(words, data, results, out)
    refusal = _try_again(ledger, promises[-1])
    if as_json:
        print_document(_document(data, results, files, refusal))
    else:
        _show(people(), data, results, files, refusal)


@dataclass(frozen=True, slots=True)
class Data:
    """Both parts of the data set, encoded by its public schema."""

    schema: Schema
    train: Encoded
    test: Encoded
    names: tuple[str, ...]

    @property
    def majority(self) -> float:
        """The accuracy of always saying the commoner answer."""
        import numpy as np

        assert self.test.y is not None  # the schema has a label
        share = float(np.mean(self.test.y == 1))
        return max(share, 1 - share)


@dataclass(frozen=True, slots=True)
class Result:
    promise: Promise
    outcome: Outcome[Any, LogisticModel]
    accuracy: float


def _read(words: Console) -> Data:
    from tacit.data import Batch, load_dataset, read_batches
    from tacit.programs.logistic import Logistic

    with words.status(f"looking for the data set {DATASET} …") as status:
        found = load_dataset(DATASET, say=status.update)
        status.update("reading and checking every record …")
        encoder = Logistic().encoder(found.schema)
        train, test = (
            encoder.encode(Batch.concat(list(read_batches(table, found.schema))))
            for table in (found.train, found.test)
        )
    words.print(f"{found.title}: {len(train.X):,} records ({found.found}). {found.source}")
    return Data(found.schema, train, test, encoder.feature_names)


def _allow(ledger: Ledger, promises: list[Promise]) -> None:
    """Just enough for this demonstration, on top of what earlier ones in the folder spent."""
    spent = [b.spent for b in ledger.balances() if b.dataset == DATASET]
    epsilon = sum(float(a.epsilon) for a in spent) + math.fsum(p.epsilon for p in promises)
    delta = sum(float(a.delta) for a in spent) + math.fsum(p.delta for p in promises)
    ledger.allow(DATASET, "record", round(epsilon, 12), float(f"{delta:.12g}"))


def _learned(words: Console, data: Data, promise: Promise, ledger: Ledger | None) -> Result:
    from rich.progress import Progress

    from tacit.channels.central import Central
    from tacit.data.records import ArrayRecords
    from tacit.programs.logistic import Logistic

    promise.check_population(len(data.train.X))
    program, records = Logistic(), ArrayRecords(data.train.X, data.train.y)
    name = f"ε = {promise.epsilon:g}" if promise.is_private else "no privacy"
    with Progress(console=words, transient=True) as progress:
        task = progress.add_task(name)

        def advance(done: int, planned: int) -> None:
            progress.update(task, completed=done, total=planned)

        channel = Central(ledger=ledger, dataset=DATASET, progress=advance)
        outcome = channel.run(program, records, data.schema, promise)
    accuracy = float((outcome.model.predict(data.test.X) == data.test.y).mean())
    return Result(promise, outcome, accuracy)


def _written(words: Console, data: Data, results: list[Result], out: Path) -> dict[str, Path]:
    from dataclasses import replace

    from tacit.cli.plot import plot_learning
    from tacit.crypto.signing import SigningKey, digest
    from tacit.programs.files import to_bytes

    files = {
        "model": out / "model.safetensors",
        "certificate": out / "model.safetensors.certificate.json",
        "picture": out / "learning.png",
        "ledger": out / "ledger.db",
    }
    outcome = results[-1].outcome
    model = to_bytes(outcome.model)
    files["model"].write_bytes(model)
    certificate = replace(outcome.certificate, subject=digest(model))
    signed = certificate.signed(SigningKey.of_holder())
    files["certificate"].write_text(signed.to_json(), encoding="utf-8")
    with words.status("drawing the picture …"):
        private, exact = results[-1], results[0]
        plot_learning(
            [(r.promise.epsilon, r.accuracy) for r in results[1:]],
            (exact.accuracy, data.majority),
            (data.names, private.outcome.model.coef[0], exact.outcome.model.coef[0]),
            private.promise,
            files["picture"],
        )
    return files


def _try_again(ledger: Ledger, promise: Promise) -> str:
    """Learning once more from the same records must be refused: that is what the ledger is for."""
    try:
        ledger.reserve(promise, DATASET, "once more").release()
    except BudgetExceeded as refusal:
        return str(refusal)
    return "it was not refused"


def _document(
    data: Data, results: list[Result], files: dict[str, Path], refusal: str
) -> dict[str, Any]:
    return {
        "question": QUESTION,
        "records": len(data.train.X),
        "majority": data.majority,
        "results": [
            {
                "epsilon": r.promise.epsilon if r.promise.is_private else None,
                "delta": r.promise.delta,
                "test_accuracy": r.accuracy,
            }
            for r in results
        ],
        "files": {name: str(path) for name, path in files.items()},
        "once_more": refusal,
    }


def _show(
    words: Console, data: Data, results: list[Result], files: dict[str, Path], refusal: str
) -> None:
    from rich.table import Table

    table = Table(title=f"Logistic regression: {QUESTION}")
    table.add_column("promise")
    table.add_column("accuracy on the test part", justify="right")
    table.add_row("always the commoner answer", f"{data.majority:.2%}")
    for result in sorted(results, key=lambda r: r.promise.epsilon):
        promise = str(result.promise) if result.promise.is_private else "no privacy"
        table.add_row(promise, f"{result.accuracy:.2%}")
    words.print(table)
    words.print(f"Once more from the same records: {refusal}\n")
    words.print("Look further:")
    words.print(f"  .venv/bin/tacit verify {files['model']}")
    words.print(f"  .venv/bin/tacit budget show --ledger {files['ledger']}")
    words.print(f"  the picture: {files['picture']}")
