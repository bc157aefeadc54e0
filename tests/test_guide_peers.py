"""The guide to a network of peers, command by command, everybody in a folder of their own."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tacit.channels.peers.library import Library
from tacit.channels.peers.pact import pact_from_bytes
from tacit.data import load_dataset
from tacit.errors import DatasetError
from tacit.privacy import Ledger

PAGE = Path(__file__).parent.parent / "docs" / "guide" / "peers.md"
COMMANDS = re.compile(r"^```console as (\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SCHEMA = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RECORDS, TIMEOUT = 300, 300
EPSILON, ALLOWED = 1.0, 2.0

pytestmark = pytest.mark.timeout(900)


class Somebody:
    """A folder, a home and processes."""

    def __init__(self, folder: Path, name: str, **variables: str) -> None:
        self.name, self.folder = name, folder / name
        self.folder.mkdir()
        kept = {k: v for k, v in os.environ.items() if not k.startswith("TACIT_L")}
        home = str(self.folder / "home")
        self.variables = {**kept, "TACIT_HOME": home, "OMP_NUM_THREADS": "1", **variables}
        self.running: list[subprocess.Popen[str]] = []

    @property
    def peer(self) -> Path:
        return self.folder / "home" / "peers" / "practices"

    def start(self, line: str) -> None:
        words = line.replace("tacit ", f"{sys.executable} -m tacit.cli ", 1)
        process = subprocess.Popen(
            ["bash", "-c", f"exec {words.removesuffix(' &')}"],
            cwd=self.folder,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.running.append(process)

    def finish(self, code: int = 0) -> str:
        """Everything that is running; what the last one said."""
        said = ""
        while self.running:
            process = self.running.pop(0)
            said, _ = process.communicate(timeout=TIMEOUT)
            assert process.returncode == code, f"{self.name}: {process.args!r}\n{said}"
        return said

    def address(self) -> str:
        """Once it is reachable."""
        events, ends = self.peer / "events.jsonl", time.monotonic() + TIMEOUT
        while time.monotonic() < ends and self.running[-1].poll() is None:
            lines = events.read_text().splitlines(keepends=True) if events.exists() else []
            for event in (json.loads(line) for line in lines if line.endswith("\n")):
                if event["event"] == "reachable":
                    return str(event["address"])
            time.sleep(0.01)
        raise AssertionError(f"{self.name} is not reachable")

    def models(self) -> set[str]:
        pact = pact_from_bytes((self.peer / "pact.json").read_bytes())
        library = Library(self.peer / "library.db", pact.digest)
        try:
            return set(library.ids())
        finally:
            library.close()


@pytest.fixture
def cast(tmp_path: Path) -> Iterator[dict[str, list[Somebody]]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    anna = Somebody(tmp_path, "anna", PORT=port)
    ben, clara, dora = (Somebody(tmp_path, name) for name in ("ben", "clara", "dora"))
    everybody = {
        "anna": [anna],
        "colleague": [ben, clara],
        "dora": [dora],
        "practice": [anna, ben, clara],
        "dreamer": [Somebody(tmp_path, "dreamer")],
    }
    (schema,) = SCHEMA.findall(PAGE.read_text(encoding="utf-8"))
    for number, somebody in enumerate((anna, ben, clara, dora)):
        (somebody.folder / "schema.toml").write_text(schema)
        unknown = [line.rpartition(",")[0] for line in visits(40, 100 + number).splitlines()]
        (somebody.folder / "tomorrow.csv").write_text("\n".join(unknown) + "\n")
        if somebody is not dora:
            (somebody.folder / "visits.csv").write_text(visits(RECORDS, number))
    try:
        yield everybody
    finally:
        for somebody in (one for some in everybody.values() for one in some):
            for process in somebody.running:
                process.kill()
                process.communicate()


def visits(count: int, seed: int) -> str:
    source = np.random.default_rng(seed)
    ahead, before = source.uniform(0, 90, count), source.integers(0, 11, count)
    reminded = source.integers(0, 2, count)
    missed = ahead / 90 + before / 10 - 0.5 * reminded + source.normal(0, 0.2, count) > 0.75
    rows = zip(ahead, before, reminded, missed, strict=True)
    lines = [f"{a:.1f},{b},{r},{int(m)}" for a, b, r, m in rows]
    return "\n".join(["days_ahead,missed_before,reminded,missed", *lines]) + "\n"


def test_a_network_of_peers(cast: dict[str, list[Somebody]]) -> None:
    (anna,), (dora,) = cast["anna"], cast["dora"]
    for name, block in COMMANDS.findall(PAGE.read_text(encoding="utf-8")):
        for line in [line[2:] for line in block.splitlines() if name != "dreamer"]:
            if "peer status" in line:
                for colleague in cast["colleague"]:
                    assert "at rest" in colleague.finish()
            for somebody in cast[name]:
                somebody.start(line)
            if line.endswith(" &") and name == "anna":
                for somebody in (*cast["colleague"], dora):
                    somebody.variables["ANNA"] = anna.address()
            if not line.endswith(" &"):
                _finished(cast[name])
    (process,) = anna.running
    process.send_signal(signal.SIGINT)
    assert "stopped by the user" in anna.finish(130)
    _check_the_end(cast["practice"], dora)


def _finished(some: list[Somebody]) -> None:
    """What they were told to do last; Anna's peer goes on."""
    for somebody in some:
        stays = somebody.running[:-1]
        somebody.running = somebody.running[-1:]
        somebody.finish()
        somebody.running = stays


def _check_the_end(practices: list[Somebody], dora: Somebody) -> None:
    models = dora.models()
    assert models
    for somebody in practices:
        assert somebody.models() == models
        ledger = Ledger(somebody.folder / "home" / "ledger.db")
        ledger.verify()
        balance = ledger.balance("visits", "record")
        groups = float(balance.spent.epsilon) / EPSILON
        assert groups == round(groups)
        assert len(models) <= groups <= ALLOWED / EPSILON
        assert balance.reserved.epsilon == 0
        status = json.loads((somebody.peer / "status.json").read_text())
        assert (status["able"], status["at_rest"]) == (False, True)
        assert status["epsilon_spent"] == balance.spent.epsilon
        for name in ("risks.csv", "weighed.csv"):
            assert len((somebody.folder / name).read_text().splitlines()) == 41
    assert len((dora.folder / "risks.csv").read_text().splitlines()) == 41
    assert not Ledger(dora.folder / "home" / "ledger.db").balances()


def test_the_network_that_is_simulated(cast: dict[str, list[Somebody]]) -> None:
    try:
        load_dataset("spambase")
    except DatasetError as error:
        pytest.skip(str(error))
    (dreamer,) = cast["dreamer"]
    for name, block in COMMANDS.findall(PAGE.read_text(encoding="utf-8")):
        for line in [line[2:] for line in block.splitlines() if name == "dreamer"]:
            dreamer.start(line)
            assert "newcomers accuracy" in dreamer.finish()
    assert (dreamer.folder / "peers.png").stat().st_size > 10_000
