"""`tacit demo`: the main job on one machine, without configuration.

One aggregator, two servers and ten hospitals as real processes that speak TLS on loopback, and a
real data set split among them.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.output import json_option, people, print_document
from tacit.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.cli.demo_compare import Comparison
    from tacit.cli.demo_watch import Watch
    from tacit.cli.demo_world import World
    from tacit.data.encode import Encoded
    from tacit.data.schema import Schema
    from tacit.privacy import Promise

__all__ = ["demo"]

SET = "adult"
QUESTION = "Does a person earn more than 50,000 dollars a year?"
MARK = "study.toml"  # a folder that holds it was made by an earlier demonstration


@click.command()
@click.option("--epsilon", type=float, default=1.0, show_default=True, help="The promise.")
@click.option("--delta", type=float, default=1e-6, show_default=True, help="Its failure rate.")
@click.option("--hospitals", type=click.IntRange(2, 40), default=10, show_default=True)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("demo"),
    show_default=True,
    help="Folder for the results; an earlier demonstration in it is replaced.",
)
@json_option
def demo(epsilon: float, delta: float, hospitals: int, out: Path, as_json: bool) -> None:
    """Hospitals learn one model together, and none shows another a patient.

    Writes the model, its certificate, a picture, and everybody's folders with ledgers and logs.
    """
    from tacit.cli.demo_compare import accuracy, compared
    from tacit.cli.demo_watch import Watch, watched
    from tacit.cli.demo_world import World
    from tacit.privacy import Promise
    from tacit.programs.logistic import Logistic
    from tacit.programs.model_file import load_model

    promise = Promise(epsilon, delta)
    if not promise.is_private:
        raise UsageError("epsilon must be finite: the demonstration shows the rest beside it.")
    words = people(as_json=True)
    _clear(out)
    data = _read(words, hospitals)
    promise.check_population(min(len(part.X) for part in data.parts))
    world = World.made(out, QUESTION, Logistic(), data.schema, promise, data.tables)
    _introduce(words, data, world)
    try:
        world.start()
        watch = watched(world, Watch(world.study, data.test, data.majority), words)
        world.wait()
    finally:
        world.stop()
    model = load_model(out / "demo.safetensors").model
    with words.status("") as status:
        others = compared(data.parts, data.test, data.schema, promise, status.update)
    result = Result(promise, accuracy(model, data.test), others, watch, world)
    result.draw(out / "demo.png")
    if as_json:
        print_document(result.document(out))
    else:
        result.show(people(), out)


@dataclass(frozen=True, slots=True)
class Data:
    """The data set, cut among hospitals; each part as a table, and encoded for comparison."""

    title: str
    schema: Schema
    tables: list[Any]
    parts: list[Encoded]
    test: Encoded

    @property
    def majority(self) -> float:
        """The accuracy of always saying the commoner answer."""
        assert self.test.y is not None  # the schema has a label
        share = float((self.test.y == 1).mean())
        return max(share, 1 - share)


@dataclass(frozen=True, slots=True)
class Result:
    promise: Promise
    federation: float
    others: Comparison
    watch: Watch
    world: World

    def rows(self) -> list[tuple[str, float, str]]:
        alone = self.others.alone
        spread = f"{min(alone):.2%} to {max(alone):.2%}"
        return [
            ("all records in one place, no privacy", self.others.no_privacy, ""),
            ("tacit federation", self.federation, str(self.promise)),
            ("each hospital alone, same promise", sum(alone) / len(alone), spread),
            ("every hospital adds its own noise", self.others.noise_only, str(self.promise)),
            ("always the commoner answer", self.others.majority, ""),
        ]

    def draw(self, path: Path) -> None:
        from tacit.cli.plot import plot_federation

        plot_federation(self.rows(), self.watch.curve, self.promise, path)

    def document(self, out: Path) -> dict[str, Any]:
        others, study = self.others, self.world.study
        return {
            "question": QUESTION,
            "promise": {"epsilon": self.promise.epsilon, "delta": self.promise.delta},
            "hospitals": len(self.world.hospitals),
            "servers": len(study.servers),
            "rounds": self.watch.round,
            "accuracy": {
                "no_privacy": others.no_privacy,
                "federation": self.federation,
                "alone": list(others.alone),
                "noise_only": others.noise_only,
                "majority": others.majority,
            },
            "curve": [
                {"round": n, "accuracy": score, "epsilon_spent": spent}
                for n, score, spent in self.watch.curve
            ],
            "charged": self.world.charged(),
            "once_more": self.world.refusal(),
            "files": {
                "study": str(out / MARK),
                "model": str(out / "demo.safetensors"),
                "certificate": str(out / "demo.safetensors.certificate.json"),
                "picture": str(out / "demo.png"),
            },
        }

    def show(self, words: Console, out: Path) -> None:
        from rich.table import Table

        table = Table(title=QUESTION)
        table.add_column("who learned how")
        table.add_column("accuracy", justify="right")
        table.add_column("")
        for name, score, note in self.rows():
            table.add_row(name, f"{score:.2%}", note)
        words.print(table)
        first = self.world.hospitals[0]
        words.print(f"The same patients once more: {self.world.refusal()}\n")
        words.print("Look further:")
        for line in (
            f"tacit verify {out / 'demo.safetensors'}",
            f"tacit study show {out / MARK}",
            f"tacit budget show --ledger {out / first / 'ledger.db'}",
            f"tacit predict {out / 'demo.safetensors'} {out / first / 'patients.parquet'}",
        ):
            words.print(f"  .venv/bin/{line}")
        words.print(f"  the picture: {out / 'demo.png'}")


def _clear(out: Path) -> None:
    """Make room, but never in a folder that is not ours."""
    if out.exists() and any(out.iterdir()):
        if not (out / MARK).exists():
            raise UsageError(f"{out} is not empty, and not an earlier demonstration: name another.")
        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)


def _read(words: Console, hospitals: int) -> Data:
    from tacit.data import Batch, load_dataset, read_batches
    from tacit.data.partitions import partition
    from tacit.programs.logistic import Logistic

    with words.status(f"looking for the data set {SET} …") as status:
        found = load_dataset(SET, say=status.update)
        status.update("reading and checking every record …")
        tables = partition(found, hospitals)
        encoder = Logistic().encoder(found.schema)
        *parts, test = (
            encoder.encode(Batch.concat(list(read_batches(table, found.schema))))
            for table in (*tables, found.test)
        )
    words.print(f"{found.title} ({found.found}). {found.source}")
    return Data(found.title, found.schema, tables, parts, test)


def _introduce(words: Console, data: Data, world: World) -> None:
    records = sum(len(part.X) for part in data.parts)
    servers = " and ".join(server.name for server in world.study.servers)
    words.print(
        f"{records:,} records of {len(data.parts)} hospitals. Each keeps its own and sends shares "
        f"of sums to two servers, {servers}, over TLS. Each server adds the noise for "
        f"{world.study.promise}."
    )
