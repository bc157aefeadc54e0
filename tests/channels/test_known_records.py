"""Wherever a table is charged, one that is known under another name is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tacit.channels.central import Central
from tacit.channels.federation.follow import Followed
from tacit.channels.federation.local import local_study
from tacit.channels.federation.outbox import Outbox
from tacit.channels.peers.purse import LedgerPurse
from tacit.channels.roles.budget import LedgerBudget
from tacit.crypto.signing import SigningKey
from tacit.data.digests import digests_of, digests_of_arrays
from tacit.data.records import ArrayRecords, TableRecords
from tacit.data.schema import Column, Schema
from tacit.errors import Refused
from tacit.estimators import PCA, FrequentItemsets, LogisticRegression
from tacit.privacy.ledger import Ledger
from tacit.privacy.promise import Promise
from tacit.programs.kmeans import KMeans

SCHEMA = Schema(columns=(Column(name="x", type="number", bounds=(-1.0, 1.0)),))
PROMISE = Promise(0.5, 1e-7)
ROWS = np.random.default_rng(1).uniform(-1, 1, (100, 1))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "ledger.db")
    for name in ("first", "second"):
        made.allow(name, "record", 10.0, 1e-4)
    return made


def written(path: Path, rows: np.ndarray) -> Path:
    path.write_text("x\n" + "".join(f"{value!r}\n" for value in rows[:, 0].tolist()))
    return path


def charged(ledger: Ledger, name: str) -> float:
    balance = ledger.balance(name, "record")
    return float(balance.spent.epsilon) + float(balance.reserved.epsilon)


def test_a_holders_budget(ledger: Ledger) -> None:
    def begin(name: str, purpose: str) -> None:
        budget = LedgerBudget(PROMISE, purpose, ledger, name)
        budget.pays_for(digests_of_arrays(ROWS))
        budget.reserve(1)

    begin("first", "one study")
    with pytest.raises(Refused, match="known as data set 'first'"):
        begin("second", "another study")
    assert charged(ledger, "second") == 0
    begin("first", "another study")


def test_a_holder_that_crashed_before_its_records_were_noted(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on with its reservation, and notes them before anything is drawn."""
    from tacit.privacy.ledger.owner import Fate, Surroundings

    ledger.reserve(PROMISE, "first", "study", identity="outbox")
    monkeypatch.setattr(Surroundings, "fate", lambda self, owner: Fate.GONE)
    budget = LedgerBudget(PROMISE, "study", ledger, "first")
    budget.pays_for(digests_of_arrays(ROWS))
    budget.belongs_to("outbox")
    assert ledger.known.counts() == {"first": 100}
    assert charged(ledger, "first") == 0.5


@pytest.fixture
def window(ledger: Ledger, tmp_path: Path) -> Callable[[str, str, Path], object]:
    """One window of an online study over a file, for an outbox of its own."""
    keys = [SigningKey.generate() for _ in range(3)]
    study = local_study(KMeans(2, 3), 2, SCHEMA, PROMISE, keys, windows=3)
    study = msgspec.structs.replace(study, name="online")

    boxes: dict[str, Outbox] = {}

    def run(outbox: str, dataset: str, path: Path) -> object:
        box = boxes.setdefault(outbox, Outbox(tmp_path / f"{outbox}-{len(boxes)}.db", study.digest))
        budget = LedgerBudget.of(study, ledger, dataset)
        followed = Followed(study, path, box, pay_for=budget.pays_now_for)
        return followed.contribute(1, study.first_state(), study.plan().stage(1).query)

    return run


def test_windows_of_a_file_that_grows(
    ledger: Ledger, tmp_path: Path, window: Callable[[str, str, Path], object]
) -> None:
    path = written(tmp_path / "log.csv", ROWS[:60])
    window("a", "first", path)
    assert ledger.known.counts() == {"first": 60}
    window("a", "first", written(tmp_path / "log.csv", ROWS))
    assert ledger.known.counts() == {"first": 100}
    copy = written(tmp_path / "copy.csv", ROWS[::-1])
    with pytest.raises(Refused, match="known as data set 'first'"):
        window("b", "second", copy)
    window("c", "second", written(tmp_path / "other.csv", ROWS / 2))


def test_a_peers_purse(ledger: Ledger) -> None:
    def purse(name: str) -> LedgerPurse:
        return LedgerPurse(PROMISE, ledger, name, "ab" * 32, None, records=digests_of_arrays(ROWS))

    purse("first")
    assert ledger.known.counts() == {}  # nothing is charged yet
    purse("second").budget("c" * 64).reserve(1)
    with pytest.raises(Refused, match="known as data set 'second'"):
        purse("first")


def test_a_central_run_over_arrays_and_tables(ledger: Ledger, tmp_path: Path) -> None:
    program = KMeans(2, 1)
    records = TableRecords(written(tmp_path / "a.csv", ROWS), program.encoder(SCHEMA))
    copy = TableRecords(written(tmp_path / "b.csv", ROWS[::-1]), program.encoder(SCHEMA))
    Central(ledger=ledger, dataset="first").run(program, records, SCHEMA, PROMISE)
    with pytest.raises(Refused, match="known as data set 'first'"):
        Central(ledger=ledger, dataset="second").run(program, copy, SCHEMA, PROMISE)
    array = ArrayRecords(ROWS)
    Central(ledger=ledger, dataset="first").run(program, array, SCHEMA, PROMISE)
    with pytest.raises(Refused):
        Central(ledger=ledger, dataset="second").run(program, array, SCHEMA, PROMISE)
    assert charged(ledger, "second") == 0
    assert len(digests_of(records).digests) == 100


def test_windows_of_a_central_run(ledger: Ledger) -> None:
    program = KMeans(2, 3)
    windows = [ArrayRecords(ROWS[:50]), ArrayRecords(ROWS[50:])]
    channel = Central(ledger=ledger, dataset="first")
    assert len(list(channel.follow(program, windows, SCHEMA, PROMISE))) == 2
    other = Central(ledger=ledger, dataset="second").follow(program, windows, SCHEMA, PROMISE)
    with pytest.raises(Refused, match="known as data set 'first'"):
        next(other)


@pytest.mark.filterwarnings("ignore::tacit.errors.PromiseWarning")
@pytest.mark.parametrize("name", ["LogisticRegression", "PCA", "FrequentItemsets"])
def test_estimators(ledger: Ledger, name: str) -> None:
    draw = np.random.default_rng(2)
    X = draw.normal(size=(200, 40)).clip(-1, 1)
    if name == "FrequentItemsets":
        X = (X > 0).astype(float)
    y = np.where(X[:, 0] > 0, "yes", "no")

    def fit(dataset: str) -> None:
        shared = {"epsilon": 0.5, "delta": 1e-7, "ledger": ledger.path, "dataset": dataset}
        match name:
            case "LogisticRegression":
                LogisticRegression(**shared, bounds=(-1, 1)).fit(X, y)
            case "PCA":
                PCA(n_components=2, **shared, bounds=(-1, 1)).fit(X)
            case _:
                FrequentItemsets(**shared).fit(X)

    fit("first")
    with pytest.raises(Refused, match="known as data set 'first'"):
        fit("second")
    fit("first")
    ledger.state_distinct("second", "first", "made up, for a test")
    fit("second")
