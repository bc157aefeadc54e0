"""The guide to a network of peers, command by command, everybody in a folder of their own."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent / "guide"))

from actors import COMMANDS, PATIENCE, SCHEMA, Company, Somebody

from tacit.channels.peers.library import Library
from tacit.channels.peers.pact import pact_from_bytes
from tacit.data import load_dataset
from tacit.errors import DatasetError
from tacit.privacy import Ledger

PAGE = Path(__file__).parent.parent / "docs" / "guide" / "peers.md"
RECORDS = 300
EPSILON, ALLOWED, MEASURED = 1.0, 2.0, 0.5

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def cast(tmp_path: Path, ports: Callable[[int], list[int]]) -> Iterator[dict[str, list[Somebody]]]:
    (schema,) = SCHEMA.findall(PAGE.read_text(encoding="utf-8"))
    with Company(tmp_path) as company:
        anna, ben, clara, dora, dreamer = (
            company.somebody(name, OMP_NUM_THREADS="1", PORT=str(port))
            for name, port in zip(
                ("anna", "ben", "clara", "dora", "dreamer"), ports(5), strict=True
            )
        )
        for number, somebody in enumerate((anna, ben, clara, dora)):
            (somebody.folder / "schema.toml").write_text(schema)
            unknown = [line.rpartition(",")[0] for line in visits(40, 100 + number).splitlines()]
            (somebody.folder / "tomorrow.csv").write_text("\n".join(unknown) + "\n")
            if somebody is not dora:
                (somebody.folder / "visits.csv").write_text(visits(RECORDS, number))
        yield {
            "anna": [anna],
            "colleague": [ben, clara],
            "dora": [dora],
            "practice": [anna, ben, clara],
            "dreamer": [dreamer],
        }


def home(somebody: Somebody) -> Path:
    return somebody.folder / "home" / "peers" / "practices"


def address(somebody: Somebody) -> str:
    """Once it is reachable."""
    events, ends = home(somebody) / "events.jsonl", time.monotonic() + PATIENCE
    while True:
        lines = events.read_text().splitlines(keepends=True) if events.exists() else []
        for event in (json.loads(line) for line in lines if line.endswith("\n")):
            if event["event"] == "reachable":
                return str(event["address"])
        somebody.company.look_after(ends, f"{somebody.name} to be reachable")


def models(somebody: Somebody) -> set[str]:
    pact = pact_from_bytes((home(somebody) / "pact.json").read_bytes())
    library = Library(home(somebody) / "library.db", pact.digest)
    try:
        return set(library.ids())
    finally:
        library.close()


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
            if "peer status" in line and name == "practice":
                for colleague in cast["colleague"]:
                    assert "at rest" in colleague.finish()
            started = [(somebody, somebody.start(line)) for somebody in cast[name]]
            if line.endswith(" &") and name == "anna":
                for somebody in (*cast["colleague"], dora):
                    somebody.variables["ANNA"] = address(anna)
            if not line.endswith(" &"):
                for somebody, process in started:  # Anna's peer goes on
                    somebody.company.finished(somebody, process)
    assert "stopped by the user" in anna.interrupt()
    _check_the_end(cast["practice"], dora)
    _check_measured(cast["colleague"])


def _check_the_end(practices: list[Somebody], dora: Somebody) -> None:
    published = models(dora)
    assert published
    for somebody in practices:
        assert models(somebody) == published
        ledger = Ledger(somebody.folder / "home" / "ledger.db")
        ledger.verify()
        balance = ledger.balance("visits", "record")
        measured = MEASURED if somebody.name != "anna" else 0.0
        groups = (float(balance.added.epsilon) - measured) / EPSILON
        assert groups == round(groups)
        assert len(published) <= groups
        assert balance.spent.epsilon <= ALLOWED + measured
        assert balance.reserved.epsilon == 0
        status = json.loads((home(somebody) / "status.json").read_text())
        assert (status["able"], status["at_rest"]) == (False, True)
        if not measured:  # which is paid when the peer has ended
            assert status["epsilon_spent"] == float(balance.spent.epsilon)
        for name in ("risks.csv", "weighed.csv"):
            assert len((somebody.folder / name).read_text().splitlines()) == 41
    assert len((dora.folder / "risks.csv").read_text().splitlines()) == 41
    assert not Ledger(dora.folder / "home" / "ledger.db").balances()


def _check_measured(colleagues: list[Somebody]) -> None:
    """Status said it, and predictions were weighed by it."""
    for somebody in colleagues:
        worth = json.loads((home(somebody) / "measured.json").read_text())
        assert worth["epsilon"] == MEASURED
        assert worth["mine"] == len(worth["models"]) > 0
        said = [log.read_text() for log in sorted(somebody.folder.glob("said-*.log"))]
        assert sum("your own records alone: " in text for text in said) >= 2
        assert any("learned from your records" in text for text in said)


def test_the_network_that_is_simulated(cast: dict[str, list[Somebody]]) -> None:
    try:
        load_dataset("spambase")
    except DatasetError as error:
        pytest.skip(str(error))
    (dreamer,) = cast["dreamer"]
    for name, block in COMMANDS.findall(PAGE.read_text(encoding="utf-8")):
        for line in [line[2:] for line in block.splitlines() if name == "dreamer"]:
            assert "newcomers accuracy" in dreamer.run(line)
    assert (dreamer.folder / "peers.png").stat().st_size > 10_000
