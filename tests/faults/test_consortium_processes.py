"""A consortium as real processes over TLS, with kill -9 of the curator and of parties.

Noise is drawn from the system's generator here, so there is no one right model: everybody must have
the same, its certificate must verify, and every party that was averaged has paid for it once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from federation_processes import HOLDERS, NAME, Roles, hash_of, reserved

from tacit import children
from tacit.channels.studies.study import (
    Chosen,
    Consortium,
    Deadlines,
    Party,
    Service,
    Study,
    TakePart,
)
from tacit.crypto.signing import SigningKey
from tacit.data.schema import Column, Schema
from tacit.privacy.promise import Promise

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs kill -9 and /proc")

CHILD = Path(__file__).with_name("consortium_child.py")
PROMISE = Promise(2.0, 1e-6)
SCHEMA = Schema(
    columns=(
        *(Column(name=name, type="number", bounds=(0.0, 1.0)) for name in ("x", "y")),
        Column(name="ill", type="boolean", role="label"),
    )
)
SHORT = 20.0  # seconds for a step, where somebody does not come back
LONG = 60.0
TERMS = Consortium(colluding=0, smallest=200)
REFUSED, UNREACHABLE = 4, 5  # exit codes


class Members(Roles):
    """Three parties and their curator, which is the study's aggregator."""

    def start_all(self) -> None:
        for name in ("aggregator", *HOLDERS):
            if name not in self.running:
                self.start(name)


@contextmanager
def consortium(root: Path, step_seconds: float, terms: Consortium = TERMS) -> Iterator[Members]:
    names = ("aggregator", *HOLDERS)
    keys = {n: SigningKey.load_or_create(root / n / "keys" / "holder.pem") for n in names}
    port = reserved()
    study = written(keys, port.getsockname()[1], step_seconds, terms)
    (root / "study.toml").write_text(study.to_toml(), encoding="utf-8")
    members = Members(root, study, [port], child=CHILD)
    for holder in HOLDERS:
        members.ledger(holder).allow("data", "record", PROMISE.epsilon, PROMISE.delta)
        members.data(holder).write_text(made_up(holder), encoding="utf-8")
    try:
        yield members
    finally:
        for process in members.running.values():
            process.kill()
        port.close()


def written(
    keys: dict[str, SigningKey], port: int, step_seconds: float, terms: Consortium
) -> Study:
    return Study(
        name=NAME,
        question="Who is ill?",
        rounds=1,
        chosen=Chosen(name="averaged-logistic", version=1, settings={"penalty": 0.1}),
        promise=PROMISE,
        take_part=TakePart(minimum=2, maximum=len(HOLDERS), records=1000),
        deadlines=Deadlines(gather=60.0, round=step_seconds),
        aggregator=Service(
            name="aggregator",
            address=f"https://127.0.0.1:{port}",
            key=keys["aggregator"].public_key,
        ),
        holders=tuple(Party(name=name, key=keys[name].public_key) for name in HOLDERS),
        schema=SCHEMA,
        consortium=terms,
    ).signed(keys["aggregator"])


def made_up(*about: object, count: int = 250) -> str:
    source = np.random.default_rng(hash_of(about))
    points = source.random((count, 2))
    ill = points.sum(axis=1) + source.normal(0, 0.2, count) > 1
    lines = [
        f"{x:.6f},{y:.6f},{str(bool(i)).lower()}" for (x, y), i in zip(points, ill, strict=True)
    ]
    return "x,y,ill\n" + "\n".join(lines) + "\n"


@pytest.fixture(autouse=True)
def one_thread_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture
def members(tmp_path: Path) -> Iterator[Members]:
    with consortium(tmp_path, LONG) as found:
        yield found


def check_the_end(
    members: Members,
    averaged: tuple[str, ...] = HOLDERS,
    attempts: int = 1,
    paused: str | None = None,
) -> None:
    """One model for all, a certificate that verifies, and those who were averaged paid once."""
    members.finish()
    begun = [e["round"] for e in members.events("aggregator") if e["event"] == "attempt begun"]
    assert begun == list(range(1, attempts + 1))
    assert {members.model(name) for name in ("aggregator", *averaged)} == {members.model()}
    words = [sys.executable, "-m", "tacit.cli", "verify", f"{NAME}.safetensors", "--signer"]
    found = children.run(
        [*words, members.study.aggregator.key],
        cwd=members.root / "aggregator",
        capture_output=True,
        timeout=120,
    )
    assert found.returncode == 0, found.stderr
    certificate = members.certificate()
    assert certificate == members.certificate(averaged[0])
    keys = {holder.key for holder in members.study.holders if holder.name in averaged}
    assert {witness.public_key for witness in certificate.witnesses} == keys
    assert certificate.participation is not None
    assert certificate.participation.holders == len(averaged)
    for holder in averaged:
        check_charged_once(members, holder, 2 if holder == paused else 1)


def check_charged_once(members: Members, holder: str, reserved: int) -> None:
    ledger = members.ledger(holder)
    ledger.verify()
    balance = ledger.balance("data", "record")
    assert (balance.spent.epsilon, balance.left.epsilon) == (PROMISE.epsilon, 0)
    assert not ledger.open_spends()
    kinds = [entry.kind for entry in ledger.entries()]
    assert (kinds.count("reserve"), kinds.count("commit")) == (reserved, 1)


def killed_at(members: Members, name: str, *points: tuple[str, int]) -> None:
    """Start the role once for each point, where it kills itself, and once more to go on."""
    for point, step in points:
        members.start(name, point, step)
        members.start_all()
        members.until_dead(name)
    members.start(name)


def test_an_undisturbed_consortium(members: Members) -> None:
    members.start_all()
    check_the_end(members)
    taken = [e["step"] for e in members.events("aggregator") if e["event"] == "step taken"]
    assert taken == [1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_the_curator_is_killed_in_every_step(members: Members) -> None:
    killed_at(members, "aggregator", ("taken", 1), ("taken", 2), ("taken", 3), ("published", 0))
    check_the_end(members)
    assert len([e for e in members.events("aggregator") if e["event"] == "listening"]) == 5


def test_a_party_is_killed_in_every_step(members: Members) -> None:
    killed_at(
        members,
        "h2",
        ("answered", 1),  # it knows all keys, and has masked nothing
        ("answered", 2),  # it knows that all vectors are there, and has not paid
        ("revealed", 0),  # it has noted that it reveals, and has not paid
        ("spent", 0),  # it has paid, and does not know it
        ("paid", 0),  # it knows it, and the curator does not
        ("kept", 0),  # it has the model, and its ledger is open
        ("settled", 0),  # it has paid for good, and written no file
    )
    check_the_end(members)


def test_a_party_whose_records_changed_takes_part_in_another_attempt(members: Members) -> None:
    """Killed before its vector leaves, restarted with a corrected table: never the same noise."""
    members.start("h2", "answered", 1)
    members.start_all()
    members.until_dead("h2")
    members.data("h2").write_text(made_up("h2", "corrected"), encoding="utf-8")
    members.start("h2")
    check_the_end(members, attempts=2)
    assert [e["round"] for e in members.events("h2") if e["event"] == "records changed"] == [1]


def test_records_that_change_in_the_last_step_are_refused_until_they_are_back(
    members: Members,
) -> None:
    """Others may have revealed: nothing is said, and nothing is paid until it goes on."""
    before = members.data("h2").read_text(encoding="utf-8")
    members.start("h2", "answered", 2)
    members.start_all()
    members.until_dead("h2")
    members.data("h2").write_text(made_up("h2", "corrected"), encoding="utf-8")
    stopped = members.start("h2")
    assert stopped.popen.wait(60) == REFUSED
    assert "Put your records back" in " ".join(stopped.log.read_text().split())
    members.data("h2").write_text(before, encoding="utf-8")
    members.start("h2")
    check_the_end(members, paused="h2")


def test_a_party_that_never_returns_is_left_out_and_pays_nothing(tmp_path: Path) -> None:
    with consortium(tmp_path, SHORT) as members:
        members.start("h3", "answered", 1)  # before it has sent its vector
        members.start_all()
        members.until_dead("h3")
        members.until("aggregator", "attempt given up", round=1, missing="h3")
        check_the_end(members, averaged=("h1", "h2"), attempts=2)
        ledger = members.ledger("h3")
        ledger.verify()
        assert ledger.balance("data", "record").spent.epsilon == 0
        assert [spend.drawn for spend in ledger.open_spends()] == [False]
        assert not (tmp_path / "h3" / f"{NAME}.safetensors").exists()


def test_who_vanished_in_the_last_step_is_waited_for(tmp_path: Path) -> None:
    """The others have revealed what is theirs: there is no second run, only this one."""
    with consortium(tmp_path, SHORT) as members:
        members.start("h3", "spent", 0)
        members.start_all()
        members.until_dead("h3")
        stopped = members.running.pop("aggregator")
        assert stopped.popen.wait(60) == UNREACHABLE
        assert "h3 vanished in the last step" in stopped.log.read_text()
        for name in ("h1", "h2"):  # they have heard of it, and why; started again, they go on
            told = members.running.pop(name)
            assert told.popen.wait(60) == UNREACHABLE
            assert "h3 vanished in the last step" in told.log.read_text()
        members.start_all()
        check_the_end(members)


def test_the_protocol_as_published_runs_and_is_marked(tmp_path: Path) -> None:
    terms = Consortium(protocol="as-published", colluding=0, smallest=200, key_bits=2048)
    with consortium(tmp_path, 300.0, terms) as members:
        members.start_all()
        check_the_end(members)
        certificate = members.certificate()
        assert not certificate.promise_holds
        assert any("does NOT hold" in warning for warning in certificate.warnings)
