"""A whole study as real processes on this machine: started, stopped, killed, started again.

Every role has a home of its own, talks TLS over the loopback, and is followed by what it writes to
its events file: nothing here waits for a while and hopes.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from tacit import children
from tacit.channels.federation.noise_plan import NoisePlan
from tacit.channels.roles.folders import study_folder
from tacit.channels.studies.study import (
    Chosen,
    Deadlines,
    Online,
    Party,
    Service,
    Study,
    TakePart,
    planned_rounds,
)
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.data.records import TableRecords
from tacit.data.schema import Column, Schema
from tacit.engines import Serial
from tacit.privacy.certificate import Certificate
from tacit.privacy.ledger import Ledger
from tacit.privacy.promise import Promise
from tacit.programs.contribute import decoded
from tacit.programs.holding import Holding
from tacit.programs.kmeans import KMeans
from tacit.programs.model_file import model_bytes

CHILD = Path(__file__).with_name("federation_child.py")
PATIENCE = 180.0  # seconds until a test gives up: only a defect or a dead machine takes so long
LOOK = 0.01
NAME = "faults"
SERVERS, HOLDERS = ("s1", "s2"), ("h1", "h2", "h3")
ROUNDS = 10
PROMISE = Promise(2.0, 1e-6)
SCHEMA = Schema(
    columns=tuple(Column(name=name, type="number", bounds=(0.0, 1.0)) for name in ("x", "y")),
)

Event = dict[str, Any]
Reals = NDArray[np.float64]


def made_up_records(*about: object, count: int = 40) -> Reals:
    """Points around three places; six digits each, so that a value can be searched for in files."""
    source = np.random.default_rng(abs(hash_of(about)))
    places = np.array([[0.2, 0.2], [0.5, 0.8], [0.8, 0.3]])
    points = places[source.integers(3, size=count)] + source.normal(0, 0.05, (count, 2))
    return np.asarray(np.clip(points, 0.01, 0.99).round(6))


def hash_of(about: Sequence[object]) -> int:
    """The same in every process, unlike Python's own."""
    return int.from_bytes(repr(about).encode()) % 2**63


def as_csv(records: Reals) -> str:
    return "x,y\n" + "".join(f"{x:.6f},{y:.6f}\n" for x, y in records)


@dataclass
class Process:
    """One life of one role."""

    popen: subprocess.Popen[bytes]
    log: Path

    def kill(self) -> None:
        self.popen.kill()
        self.popen.wait()

    def send(self, number: signal.Signals) -> None:
        self.popen.send_signal(number)

    @property
    def is_stopped(self) -> bool:
        """Whether SIGSTOP has taken effect (state T in /proc)."""
        stat = Path(f"/proc/{self.popen.pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] == "T"


@dataclass
class Roles:
    """A study's keys, homes and processes under one folder."""

    root: Path
    study: Study
    ports: list[socket.socket]
    running: dict[str, Process] = field(default_factory=dict)
    lives: dict[str, int] = field(default_factory=dict)
    child: Path = CHILD
    seeded: bool = True  # the servers' noise, so that a run has one right model

    # ── starting ──

    def start(
        self, name: str, point: str = "", number: int = 0, how: str = "KILL", *, words: str = ""
    ) -> Process:
        """Start a role, or start it again; armed to KILL or STOP itself at a point of a round."""
        armed = [str(self.child), point, str(number), how] if point else ["-m", "tacit.cli"]
        life = self.lives[name] = self.lives.get(name, 0) + 1
        log = self.root / name / f"life-{life}.log"
        environment = {k: v for k, v in os.environ.items() if not k.startswith("TACIT_")}
        with log.open("wb") as errors:
            popen = children.start(
                [sys.executable, *armed, *self._words(name), *words.split()],
                env={**environment, "TACIT_HOME": str(self.root / name)},
                cwd=self.root / name,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
        self.running[name] = Process(popen, log)
        return self.running[name]

    def start_all(self) -> None:
        for name in (*SERVERS, "aggregator", *HOLDERS):
            if name not in self.running:
                self.start(name)

    def _words(self, name: str) -> list[str]:
        file = str(self.root / "study.toml")
        if name in SERVERS:
            seed = ["--unsafe-seed", seed_of(self.lives[name])] if self.seeded else []
            return ["serve", "server", file, *seed]
        out = ["--out", str(self.root / name)]
        if name == "aggregator":
            return ["serve", "aggregator", file, *out]
        follow = ["--follow"] if self.study.online else []
        return ["join", file, "--data", str(self.data(name)), "--dataset", "data", *follow, *out]

    def data(self, holder: str) -> Path:
        return self.root / holder / ("data" if self.study.online else "data.csv")

    # ── watching ──

    def folder(self, name: str) -> Path:
        kinds = {"aggregator": "aggregator", **{s: f"server-{s}" for s in SERVERS}}
        return study_folder(self.root / name, self.study, kinds.get(name, f"holder-{name}"))

    def events(self, name: str) -> list[Event]:
        path = self.folder(name) / "events.jsonl"
        whole = path.read_bytes().rpartition(b"\n")[0] if path.exists() else b""
        return [json.loads(line) for line in whole.splitlines()]

    def closings(self, server: str) -> list[tuple[int, int]]:
        """Each round that was closed, with the server's life, in the order it was told."""
        life, found = 0, []
        for event in self.events(server):
            life += event["event"] == "listening"
            if event["event"] == "round closed":
                found.append((event["round"], life))
        return found

    def until(self, name: str, event: str, count: int = 1, **fields: object) -> list[Event]:
        """Wait until such an event was written, `count` times in all."""
        ends = time.monotonic() + PATIENCE
        while True:
            found = [e for e in self.events(name) if matches(e, event, fields)]
            if len(found) >= count:
                return found
            self._check(ends, f"{name}: {event} {fields}")
            time.sleep(LOOK)

    def until_dead(self, name: str) -> None:
        """Wait until an armed process has killed itself."""
        code = self.running.pop(name).popen.wait(PATIENCE)
        assert code == -signal.SIGKILL, f"{name} left with {code}\n{self.logs()}"

    def until_stopped(self, name: str) -> None:
        ends = time.monotonic() + PATIENCE
        while not self.running[name].is_stopped:
            self._check(ends, f"{name} to stop itself")
            time.sleep(LOOK)

    def _check(self, ends: float, what: str) -> None:
        gone = [n for n, p in self.running.items() if p.popen.poll() not in (None, 0)]
        late = time.monotonic() > ends
        assert not gone, f"{gone} failed, waiting for {what}\n{self.logs()}"
        assert not late, f"waited in vain for {what}\n{self.logs()}"

    def kill(self, name: str) -> None:
        self.running.pop(name).kill()

    def stop(self, name: str) -> None:
        self.running[name].send(signal.SIGSTOP)
        self.until_stopped(name)

    def go_on(self, name: str) -> None:
        self.running[name].send(signal.SIGCONT)

    def logs(self) -> str:
        found = sorted(self.root.glob("*/life-*.log"))
        return "\n".join(f"── {p.parent.name} {p.stem}\n{p.read_text()}" for p in found)

    # ── the end ──

    def finish(self) -> None:
        """Wait until every process has ended by itself, and well."""
        ends = time.monotonic() + PATIENCE
        while any(p.popen.poll() is None for p in self.running.values()):
            self._check(ends, "the end")
            time.sleep(LOOK)
        self._check(ends, "the end")

    def model(self, name: str = "aggregator") -> bytes:
        return (self.root / name / f"{NAME}.safetensors").read_bytes()

    def certificate(self, name: str = "aggregator") -> Certificate:
        path = self.root / name / f"{NAME}.safetensors.certificate.json"
        return Certificate.from_json(path.read_bytes())

    def ledger(self, holder: str) -> Ledger:
        return Ledger(self.root / holder / "ledger.db")


def matches(event: Event, name: str, fields: dict[str, object]) -> bool:
    return event["event"] == name and all(event.get(k) == v for k, v in fields.items())


@contextmanager
def federation(
    root: Path,
    *,
    rounds: int = ROUNDS,
    round_seconds: float = 60.0,
    minimum: int = 2,
    windows: int | None = None,
) -> Iterator[Roles]:
    """A study that is written and agreed, with nobody at work yet."""
    names = (*SERVERS, "aggregator", *HOLDERS)
    keys = {n: SigningKey.load_or_create(root / n / "keys" / "holder.pem") for n in names}
    # Bound but not listening: the port stays ours while its server is down, and the server can
    # still have it, since both sides allow the address to be used again.
    ports = [reserved() for _ in range(3)]
    study = written(keys, ports, rounds, round_seconds, minimum, windows)
    (root / "study.toml").write_text(study.to_toml(), encoding="utf-8")
    roles = Roles(root, study, ports)
    for holder in HOLDERS:
        roles.ledger(holder).allow("data", "record", PROMISE.epsilon, PROMISE.delta)
        if windows is None:
            roles.data(holder).write_text(as_csv(made_up_records(holder)), encoding="utf-8")
        else:
            roles.data(holder).mkdir()
    try:
        yield roles
    finally:
        for process in roles.running.values():
            process.kill()
        for port in ports:
            port.close()


def reserved() -> socket.socket:
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.bind(("127.0.0.1", 0))
    return found


def written(
    keys: dict[str, SigningKey],
    ports: Sequence[socket.socket],
    rounds: int,
    round_seconds: float,
    minimum: int,
    windows: int | None,
) -> Study:
    services = [
        Service(
            name=name,
            address=f"https://127.0.0.1:{port.getsockname()[1]}",
            key=keys[name].public_key,
        )
        for name, port in zip((*SERVERS, "aggregator"), ports, strict=True)
    ]
    program = KMeans(clusters=3, rounds=rounds)
    return Study(
        name=NAME,
        question="Where are the places?",
        rounds=planned_rounds(program, SCHEMA, PROMISE, windows),
        chosen=Chosen(
            name=program.name, version=program.version, settings={"clusters": 3, "rounds": rounds}
        ),
        promise=PROMISE,
        take_part=TakePart(minimum=minimum, maximum=len(HOLDERS), records=1000),
        deadlines=Deadlines(gather=60.0, round=round_seconds),
        servers=tuple(services[:2]),
        aggregator=services[2],
        holders=tuple(Party(name=name, key=keys[name].public_key) for name in HOLDERS),
        schema=SCHEMA,
        online=None if windows is None else Online(windows=windows),
    ).signed(keys["aggregator"])


def seed_of(life: int) -> str:
    """A server draws other noise in another life: had it drawn twice for a round, it would show."""
    return f"federation faults, life {life}"


def expected_model(
    study: Study, of_round: Sequence[Reals], lives: Sequence[dict[int, int]] = ({}, {})
) -> bytes:
    """The model file of these records in each round and the servers' seeded noise, by plain sums.

    `lives[server][round]` is the life in which a server has closed a round, 1 if it is not there.
    Independent of shares, stores and messages: what the whole machinery must come to.
    """
    program, promise = study.program(), study.promise
    encoder = program.encoder(study.schema)
    state = study.first_state()
    plans = [NoisePlan(study) for _ in study.servers]
    for number, records in enumerate(of_round, start=1):
        query = program.asked(state, study.plan().stage(number).query)
        assert query is not None
        table = TableRecords(pyarrow.table(dict(zip("xy", records.T, strict=True))), encoder)
        holding = Holding(program, study.first_state(), table, promise, Serial().map_sum)
        total = holding.sum(state, query)
        for place in range(len(study.servers)):
            mechanisms = plans[place].charge(number, query)
            seed = seed_of(lives[place].get(number, 1))
            source = SeededRandomness(f"{seed} server {place} round {number}")
            for (_, slot), mechanism in zip(query.slices(), mechanisms, strict=True):
                total[slot] = mechanism.perturb(total[slot], source)
        state = program.reduce(decoded(total, query), state)
    return model_bytes(program.result(state), program, study.schema)
