"""A whole federation on this machine: folders, keys, a signed study, and one process per role."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit import children
from tacit.channels.roles.folders import study_folder
from tacit.channels.studies.asked import asked_by
from tacit.channels.studies.study import (
    Chosen,
    Deadlines,
    Party,
    Service,
    Study,
    TakePart,
    planned_rounds,
)
from tacit.crypto.signing import SigningKey
from tacit.data.schema import Schema
from tacit.errors import TacitError, Unreachable
from tacit.privacy.ledger import Ledger
from tacit.privacy.promise import Promise
from tacit.programs.program import Program

__all__ = ["World"]

SERVERS = ("north", "south")
AGGREGATOR = "aggregator"
DATASET = "patients"
PATIENCE = 120.0  # seconds for a round before a hospital is left out; plenty on one machine


@dataclass
class World:
    """Where everything lies, and the processes that run in it."""

    folder: Path
    study: Study
    hospitals: tuple[str, ...]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @classmethod
    def made(
        cls,
        folder: Path,
        question: str,
        program: Program[Any, Any],
        schema: Schema,
        promise: Promise,
        tables: Sequence[Any],
    ) -> World:
        """Keys and folders for everybody, each hospital's own table and ledger, and the study."""
        from pyarrow import parquet

        hospitals = tuple(f"hospital-{number:02}" for number in range(1, len(tables) + 1))
        keys = {name: _key(folder, name) for name in (AGGREGATOR, *SERVERS, *hospitals)}
        ports = _free_ports(len(SERVERS) + 1)

        def service(name: str, port: int) -> Service:
            address = f"https://127.0.0.1:{port}"
            return Service(name=name, address=address, key=keys[name].public_key)

        study = Study(
            name="demo",
            question=question,
            rounds=planned_rounds(program, schema, promise),
            chosen=Chosen(name=program.name, version=program.version),
            promise=promise,
            take_part=TakePart(
                minimum=len(hospitals) // 2 + 1, maximum=len(hospitals), records=100_000
            ),
            deadlines=Deadlines(gather=PATIENCE, round=PATIENCE),
            servers=tuple(map(service, SERVERS, ports)),
            aggregator=service(AGGREGATOR, ports[-1]),
            holders=tuple(Party(name=name, key=keys[name].public_key) for name in hospitals),
            schema=schema,
        ).signed(keys[AGGREGATOR])
        (folder / "study.toml").write_text(study.to_toml(), encoding="utf-8")
        for name, table in zip(hospitals, tables, strict=True):
            parquet.write_table(table, folder / name / f"{DATASET}.parquet")
            ledger = Ledger(folder / name / "ledger.db")
            ledger.allow(DATASET, promise.unit, promise.epsilon, promise.delta)
        return cls(folder, study, hospitals)

    def start(self) -> None:
        for name in SERVERS:
            self._run(name, "serve", "server", self._study_file)
        out = str(self.folder)
        self._run(AGGREGATOR, "serve", "aggregator", self._study_file, "--out", out)
        for name in self.hospitals:
            data = str(self.folder / name / f"{DATASET}.parquet")
            home = str(self.folder / name)
            self._run(name, "join", self._study_file, "--data", data, "--out", home)

    @property
    def _study_file(self) -> str:
        return str(self.folder / "study.toml")

    def _run(self, name: str, *words: str) -> None:
        """A process with a home of its own; what it says goes to a log there."""
        home = self.folder / name
        # One thread each: thirteen processes share the cores of one machine here.
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        environment = {**os.environ, **threads, "TACIT_HOME": str(home)}
        environment.pop("TACIT_LEDGER", None)
        with (home / "log.txt").open("wb") as log:
            self.processes[name] = children.start(
                [sys.executable, "-m", "tacit.cli", *words],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def events(self) -> Iterator[dict[str, Any]]:
        """What the aggregator tells, as it happens; yields {} while nothing does."""
        path = self._folder_of(AGGREGATOR, "aggregator") / "events.jsonl"
        unread = b""
        place = 0
        while True:
            if path.exists():
                with path.open("rb") as file:
                    file.seek(place)
                    unread += file.read()
                    place = file.tell()
            *lines, unread = unread.split(b"\n")
            for line in lines:
                yield json.loads(line)
            self._check()
            if self.processes[AGGREGATOR].poll() == 0:
                return
            yield {}

    def journal(self) -> Path:
        return self._folder_of(AGGREGATOR, "aggregator") / "aggregator.db"

    def _folder_of(self, name: str, role: str) -> Path:
        return study_folder(self.folder / name, self.study, role)

    def _check(self) -> None:
        for name, process in self.processes.items():
            if process.poll() not in (None, 0):
                text = (self.folder / name / "log.txt").read_text(errors="replace")
                last = text.strip().splitlines()[-1:] or ["it said nothing"]
                raise Unreachable(f"{name} has stopped: {last[0]}")

    def wait(self, seconds: float = 60.0) -> None:
        """Until everybody has gone home."""
        for name, process in self.processes.items():
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                raise Unreachable(f"{name} does not end; see its log.txt.") from None
        self._check()

    def stop(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.terminate()
        for process in self.processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()

    def charged(self) -> dict[str, float]:
        """ε that each hospital's ledger was charged."""
        unit = self.study.promise.unit
        found = {}
        for name in self.hospitals:
            balance = Ledger(self.folder / name / "ledger.db").balance(DATASET, unit)
            found[name] = float(balance.spent.epsilon)
        return found

    def refusal(self) -> str:
        """What a hospital's ledger says when the same patients are asked for once more."""
        try:
            ledger = Ledger(self.folder / self.hospitals[0] / "ledger.db")
            asked = asked_by(self.study)
            ledger.reserve(self.study.promise, DATASET, "once more", asked=asked).release()
        except TacitError as refusal:
            return str(refusal)
        return "it was not refused"


def _key(folder: Path, name: str) -> SigningKey:
    return SigningKey.load_or_create(folder / name / "keys" / "holder.pem")


def _free_ports(count: int) -> list[int]:
    """Ports that are free now; all held at once, so that they differ."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports
