"""A crowd's relays and collector as processes of their own on this machine, over TLS."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tacit import children
from tacit.channels.crowd.cards import onion_key
from tacit.channels.crowd.plan import PlanTerms
from tacit.channels.crowd.proposal import Proposal
from tacit.channels.crowd.propose import Draft
from tacit.channels.crowd.secrets import Secrets
from tacit.channels.crowd.terms import CrowdTerms, Group, RelayCard, Route, Windows
from tacit.crypto.onion import OnionKey
from tacit.crypto.signing import SigningKey
from tacit.data.schema import Column, Schema
from tacit.errors import CheckFailed

HERE = Path(__file__).parent
NAME = "lungs"
SCHEMA = Schema(
    columns=(
        Column(name="age", type="integer", bounds=(0.0, 100.0), edges=(30.0, 60.0)),
        Column(name="smokes", type="boolean"),
        Column(name="ill", type="boolean", role="label"),
    )
)


@dataclass
class Roles:
    """Keys, homes and processes under one folder."""

    root: Path
    proposal: Proposal
    secrets: Secrets
    onions: list[OnionKey]
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start_relay(self, place: int, loss: float) -> None:
        words = ["-m", "crowd_parts.lossy", str(loss), "serve", "relay"]
        self._start(relay_name(place), words)

    def start_collector(self) -> None:
        self._start("collector", ["-m", "tacit.cli", "serve", "collector"])

    def _start(self, name: str, words: list[str]) -> None:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("TACIT_")}
        with (self.root / f"{name}.log").open("wb") as log:
            self.running[name] = children.start(
                [sys.executable, *words, str(self.root / "study.toml"), "--json"],
                cwd=HERE.parent,
                env={**kept, "TACIT_HOME": str(self.root / name)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        process.kill()
        process.wait()

    @property
    def collected(self) -> Path:
        return self.root / "collector" / "studies" / f"{NAME}-collector" / "collector.db"

    def check(self) -> None:
        """Refuse to go on without a process that was not killed by us."""
        for name, process in self.running.items():
            if process.poll() not in (None, 0):
                said = (self.root / f"{name}.log").read_text()
                raise CheckFailed(f"{name} failed:\n{said[-2000:]}")

    def finish(self, seconds: float) -> None:
        """Wait until every process has ended by itself, and well."""
        for process in self.running.values():
            process.wait(seconds)
        self.check()


def relay_name(place: int) -> str:
    return f"relay-{place}"


@contextmanager
def roles(root: Path, people: int, relays: int, windows: Windows) -> Iterator[Roles]:
    """A study that is proposed, with nobody at work yet."""
    with _ports(relays + 1) as ports:
        cards, onions = [], []
        for place, port in enumerate(ports[1:]):
            keys = root / relay_name(place) / "keys"
            key = SigningKey.load_or_create(keys / "holder.pem")
            onions.append(onion_key(keys / "holder.onion", "x25519"))
            cards.append(
                RelayCard(
                    name=relay_name(place),
                    address=f"https://127.0.0.1:{port}",
                    key=key.public_key,
                    onion=onions[-1].public,
                )
            )
        draft = Draft(
            name=NAME,
            question="Who falls ill?",
            schema=SCHEMA,
            promise=CrowdTerms(epsilon=2.0),
            group=Group(minimum=people, maximum=people),
            windows=windows,
            relays=tuple(cards),
            address=f"https://127.0.0.1:{ports[0]}",
            route=Route(hops=3, batch=max(2, people // 20)),
            plan=PlanTerms(),
        )
        home = root / "collector"
        proposal, secrets = draft.proposed(SigningKey.load_or_create(home / "keys" / "holder.pem"))
        secrets.save(home / "crowds" / f"{NAME}.secrets")
        (root / "study.toml").write_text(proposal.to_toml(), encoding="utf-8")
        made = Roles(root, proposal, secrets, onions)
        try:
            yield made
        finally:
            for process in made.running.values():
                process.kill()
                process.wait()


@contextmanager
def _ports(count: int) -> Iterator[list[int]]:
    """Bound but not listening: they stay ours until a process listens on them."""
    found = [socket.socket() for _ in range(count)]
    try:
        for one in found:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(("127.0.0.1", 0))
        yield [int(one.getsockname()[1]) for one in found]
    finally:
        for one in found:
            one.close()


def processor_seconds() -> float:
    """Of this process and of all its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
