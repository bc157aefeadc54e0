"""A network of peers as real processes on this machine, followed by what they write down."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tacit import children
from tacit.channels.peers.library import Library
from tacit.channels.peers.pact import Pact, pact_from_bytes
from tacit.channels.peers.publication import Publication, checked
from tacit.privacy.ledger import Ledger

CHILD = Path(__file__).with_name("peers_child.py")
PATIENCE = 400.0  # seconds until a test gives up: only a defect or a dead machine takes so long
LOOK = 0.05
NAME = "faults"
SCHEMA = """
[columns.x]
type = "number"
bounds = [0, 1]

[columns.y]
type = "number"
bounds = [0, 1]

[columns.ill]
type = "boolean"
role = "label"
"""

Event = dict[str, Any]


@dataclass
class Peers:
    """Everybody's home under one folder. `terms` are the words by which the network is founded."""

    root: Path
    terms: Sequence[str]
    allowed: float
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    lives: dict[str, int] = field(default_factory=dict)

    @property
    def tokens(self) -> Path:
        return self.root / "tokens"

    # ── starting and ending ──

    def settle(self, name: str) -> None:
        """A home with records, and a budget for them."""
        (self.root / name).mkdir()
        (self.root / name / "data.csv").write_text(made_up(len(self.lives) + 1), encoding="utf-8")
        self.ledger(name).allow("data", "record", self.allowed, 1e-4)
        self.lives[name] = 0

    def start(self, name: str, bootstrap: str | None = None, armed: bool = False) -> None:
        """Start a peer, or start it again over its folder."""
        words = ["peer", "--data", "data.csv", *(self.terms if bootstrap is None else ())]
        if bootstrap is not None:
            words += ["--bootstrap", self.address(bootstrap)]
        program = [str(CHILD), str(self.tokens)] if armed else ["-m", "tacit.cli"]
        self.lives[name] += 1
        kept = {k: v for k, v in os.environ.items() if not k.startswith("TACIT_")}
        with (self.root / name / f"life-{self.lives[name]}.log").open("wb") as log:
            self.running[name] = children.start(
                [sys.executable, *program, *words],
                env={**kept, "TACIT_HOME": str(self.root / name), "OMP_NUM_THREADS": "1"},
                cwd=self.root / name,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    def interrupt(self) -> None:
        """Ctrl-C for everybody; each leaves as one does who was asked to."""
        for process in self.running.values():
            process.send_signal(signal.SIGINT)
        for name, process in self.running.items():
            assert process.wait(PATIENCE) == 130, f"{name}\n{self.log(name)}"
        self.running.clear()

    def killed_at(self, point: str) -> str:
        """Wait until a process has killed itself at this point; whose it was."""
        token = self.tokens / point
        self.until(lambda: token.exists() and bool(token.read_text()), f"a death at {point}")
        name = token.read_text()
        assert self.running.pop(name).wait(PATIENCE) == -signal.SIGKILL
        return name

    # ── watching ──

    def home(self, name: str) -> Path:
        return self.root / name / "peers" / NAME

    def events(self, name: str) -> list[Event]:
        path = self.home(name) / "events.jsonl"
        whole = path.read_bytes().rpartition(b"\n")[0] if path.exists() else b""
        return [json.loads(line) for line in whole.splitlines()]

    def address(self, name: str) -> str:
        """Where a peer is reached in its newest life, once it says so."""

        def said() -> list[str]:
            found = [e["address"] for e in self.events(name) if e["event"] == "reachable"]
            return [address for address in found if len(found) == self.lives[name]]

        self.until(lambda: bool(said()), f"{name} to listen")
        return said()[-1]

    def status(self, name: str) -> Event:
        path = self.home(name) / "status.json"
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def until(self, holds: Callable[[], bool], what: str) -> None:
        ends = time.monotonic() + PATIENCE
        while not holds():
            bad = [n for n, p in self.running.items() if p.poll() not in (None, -signal.SIGKILL)]
            assert not bad, f"{bad} left, waiting for {what}\n{self.log(bad[0])}"
            assert time.monotonic() < ends, f"waited in vain for {what}\n{self._summary()}"
            time.sleep(LOOK)

    def log(self, name: str) -> str:
        return (self.root / name / f"life-{self.lives[name]}.log").read_text()

    def _summary(self) -> str:
        return "\n".join(f"{name}: {self.status(name)}" for name in sorted(self.running))

    # ── what is left behind ──

    def ledger(self, name: str) -> Ledger:
        return Ledger(self.root / name / "ledger.db")

    def pact(self, name: str) -> Pact:
        return pact_from_bytes((self.home(name) / "pact.json").read_bytes())

    def publications(self, name: str) -> dict[str, Publication]:
        """All that a peer has, each checked anew."""
        pact = self.pact(name)
        library = Library(self.home(name) / "library.db", pact.digest)
        try:
            found = [checked(pact, body) for body, _, _ in library.all()]
        finally:
            library.close()
        return {publication.id: publication for publication in found}


@contextmanager
def network(root: Path, terms: Sequence[str], allowed: float) -> Iterator[Peers]:
    """Nobody is at work yet."""
    (root / "schema.toml").write_text(SCHEMA, encoding="utf-8")
    peers = Peers(root, ["--schema", str(root / "schema.toml"), "--name", NAME, *terms], allowed)
    peers.tokens.mkdir()
    try:
        yield peers
    finally:
        for process in peers.running.values():
            process.kill()
            process.wait()


def made_up(number: int, count: int = 60) -> str:
    source = np.random.default_rng(number)
    points = source.random((count, 2))
    ill = points.sum(axis=1) + source.normal(0, 0.2, count) > 1
    lines = [f"{x:.6f},{y:.6f},{int(i)}\n" for (x, y), i in zip(points, ill, strict=True)]
    return "x,y,ill\n" + "".join(lines)
