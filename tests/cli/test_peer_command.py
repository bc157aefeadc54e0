"""`tacit peer`: what it refuses, what it says, and records that come later."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit import children
from tacit.channels.peers.library import Library
from tacit.channels.peers.pact import pact_from_bytes
from tacit.cli.main import main
from tacit.data import load_dataset
from tacit.errors import DatasetError
from tacit.privacy import Ledger

SCHEMA = """
[columns.hours]
type = "number"
bounds = [0, 60]

[columns.forum]
type = "boolean"

[columns.quit]
type = "boolean"
role = "label"
"""
# Everybody publishes its own model: a network in which one process can do everything.
FOUNDING = {
    "--data": "course.csv", "--schema": "schema.toml", "--name": "courses",
    "--question": "Who gives up?", "--epsilon": "1", "--smallest": "50", "--group-size": "1",
    "--cycle": "0.02", "--patience": "20",
}  # fmt: skip
pytestmark = pytest.mark.timeout(300)
PATIENCE = 120.0  # seconds until a test gives up: only a defect or a dead machine takes so long


class Result:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def document(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "course.csv").write_text("hours,forum,quit\n" + students(60))
    return tmp_path


@pytest.fixture
def tacit(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*words: str) -> Result:
        with pytest.raises(SystemExit) as left:
            main(list(words))
        printed = capsys.readouterr()
        code = left.value.code
        return Result(code if isinstance(code, int) else 0, printed.out, printed.err)

    return run


def students(count: int, seed: int = 1) -> str:
    source = np.random.default_rng(seed)
    hours = source.uniform(0, 60, count)
    quits = hours + source.normal(0, 10, count) < 30
    rows = zip(hours, source.integers(0, 2, count), quits, strict=True)
    return "".join(f"{h:.2f},{f},{int(q)}\n" for h, f, q in rows)


def words(*more: str, **changed: str | None) -> list[str]:
    """The words that found a network, with some of them changed or, by None, left out."""
    given = {**FOUNDING, **{f"--{name.replace('_', '-')}": v for name, v in changed.items()}}
    pairs = [word for name, value in given.items() if value for word in (name, value)]
    return ["peer", *pairs, *more]


def allowed(tacit: Any, epsilon: float = 1.0, *more: str) -> None:
    found = tacit("budget", "allow", "course", "--epsilon", str(epsilon), "--delta", "1e-4", *more)
    assert found.code == 0, found.err


def spent(folder: Path) -> float:
    balance = Ledger(folder / "tacit-home" / "ledger.db").balance("course", "record")
    assert balance.reserved.epsilon == 0
    return float(balance.spent.epsilon)


# ── what is refused ──


def test_a_new_network_needs_terms_and_each_missing_one_is_named(tacit: Any) -> None:
    found = tacit("peer", "--data", "course.csv")
    assert found.code == 2
    assert "--schema, --name, --question, --epsilon, --smallest" in found.err
    assert "--bootstrap" in found.err
    one = tacit(*words(smallest=None), "--json")
    assert one.code == 2
    assert one.document["error"]["message"].startswith("a new network needs --smallest.")


@pytest.mark.parametrize(
    "text",
    [
        "https://127.0.0.1:8443",
        "127.0.0.1:8443=" + "a" * 64,
        "http://127.0.0.1:8443=" + "a" * 64,
        "https://127.0.0.1:8443=" + "a" * 63,
        "https://127.0.0.1:8443=" + "X" * 64,
        "=" + "a" * 64,
        "",
    ],
)
def test_a_bootstrap_is_an_address_and_a_key(tacit: Any, text: str) -> None:
    found = tacit("peer", "--bootstrap", text)
    assert found.code == 2
    assert "write https://host:port=PUBLIC-KEY" in found.err


def test_a_bootstrap_that_is_not_there_is_not_reached(tacit: Any) -> None:
    found = tacit("peer", "--bootstrap", "https://127.0.0.1:1=" + "a" * 64)
    assert found.code == 5


@pytest.mark.parametrize(
    ("changed", "code", "said"),
    [
        ({"listen": "nowhere"}, 2, "give host:port"),
        ({"listen": "0.0.0.0:0"}, 2, "--address https://host:port"),
        ({"listen": "[::]:0"}, 2, "--address https://host:port"),
        ({"group_size": "2"}, 3, "two at least must be honest"),
        ({"epsilon": "-1"}, 2, "epsilon"),
        ({"smallest": "0"}, 2, "at least 1"),
        ({"cycle": "0"}, 3, "cycle"),
        ({"name": "no such/name"}, 3, "name"),
        ({"publish": "tags"}, 2, "--tag"),
        ({"publish": "tags", "tag": "Not A Tag"}, 2, "tags"),
        ({"address": "https://Example.org"}, 2, "address"),
        ({"data": "nothing.csv"}, 3, "nothing.csv"),
        ({"schema": "nothing.toml"}, 3, "nothing.toml"),
    ],
)
def test_impossible_terms_are_refused(
    tacit: Any, folder: Path, changed: dict[str, str], code: int, said: str
) -> None:
    allowed(tacit)
    found = tacit(*words("--until-rest", **changed))
    assert (found.code, said in found.err) == (code, True), found.err
    assert spent(folder) == 0


def test_without_a_budget_nothing_is_spent_and_nobody_is_called(tacit: Any, folder: Path) -> None:
    found = tacit(*words("--until-rest"))
    assert found.code == 4
    assert "tacit budget allow course" in found.err
    events = (folder / "tacit-home" / "peers" / "courses" / "events.jsonl").read_text()
    assert "listening" not in events


def test_terms_that_changed_under_a_name_are_agreed_to_again(tacit: Any) -> None:
    allowed(tacit)
    assert tacit(*words("--until-rest")).code == 0
    found = tacit(*words("--until-rest", epsilon="0.5"))
    assert found.code == 4
    assert "--agree" in found.err


@pytest.mark.parametrize("command", [("status", "courses"), ("predict", "courses", "course.csv")])
def test_who_never_took_part_has_nothing_to_show(tacit: Any, command: tuple[str, ...]) -> None:
    found = tacit("peer", *command)
    assert found.code == 3
    assert "no such peer" in found.err


def test_pure_promises_are_for_listed_members(tacit: Any, folder: Path) -> None:
    allowed(tacit)
    found = tacit(*words("--until-rest", delta="0", group_size="3"))
    assert found.code == 3
    assert "delta = 0 in a network that anybody may join" in found.err
    assert "--members" in found.err
    assert spent(folder) == 0
    assert tacit(*words("--until-rest", delta="0")).code == 0  # alone: all of the noise is its own


def test_what_the_terms_do_not_cover_is_shown(tacit: Any) -> None:
    allowed(tacit)
    assert tacit("peer", "show", "courses").code == 3
    terms = words("--until-rest", group_size="3", data=None)
    found = tacit(*terms)
    assert found.code == 0, found.err
    assert "your own part of the noise alone gives ε = 1.4" in found.err
    assert "taking part says to all that you have at least 50 records" in found.err
    assert "alone gives ε = 1.4" in tacit("peer", "show", "courses").out
    assert "ε = 1.4" in tacit("peer", "show", "courses", "--json").document["surrounded"]


def test_files_that_others_could_read_are_made_private(tacit: Any, folder: Path) -> None:
    allowed(tacit)
    before = os.umask(0o022)
    try:
        home = folder / "tacit-home" / "peers" / "courses"
        home.mkdir(parents=True)
        for name in ("status.json", "own.model", "events.jsonl"):
            (home / name).write_text("")
        assert tacit(*words("--until-rest")).code == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in home.iterdir()} == {0o600}


def test_what_cannot_be_read_in_a_library_ends_nothing(tacit: Any, folder: Path) -> None:
    allowed(tacit, 2)
    assert tacit(*words("--until-rest", epsilon="1")).code == 0
    home = folder / "tacit-home" / "peers" / "courses"
    pact = pact_from_bytes((home / "pact.json").read_bytes())
    with closing(Library(home / "library.db", pact.digest)) as library:
        library.add("ab" * 32, "", False, b"no publication", 0.0)
        ((body, _, _), *_) = library.all()[-1:]
        library.add("cd" * 32, "", False, body, 0.0)  # under a name that is not its own
        before = len(library.ids())
    judged = tacit("peer", "predict", "courses", "course.csv", "--json")
    assert judged.code == 0, judged.err
    again = tacit(*words("--until-rest", "--json"))
    assert again.code == 0, again.err
    assert again.err.count("is set aside") == 2
    assert again.document["models"] == before - 2
    with closing(Library(home / "library.db", pact.digest)) as library:
        assert len(library.aside()) == 2
    assert "is set aside" not in tacit(*words("--until-rest")).err


def test_only_members_take_part(tacit: Any, folder: Path) -> None:
    allowed(tacit)
    own = tacit("keys", "new", "--json").document["public_key"]
    (folder / "members.txt").write_text("\n")
    nobody = tacit(*words("--until-rest", members="members.txt"))
    assert (nobody.code, "names nobody" in nobody.err) == (3, True)
    (folder / "members.txt").write_text("a" * 64 + "\n")
    refused = tacit(*words("--until-rest", name="other", members="members.txt"))
    assert (refused.code, "not among those" in refused.err) == (4, True)
    assert spent(folder) == 0
    (folder / "members.txt").write_text(f"{own}\n\n{'a' * 64}\n")
    assert tacit(*words("--until-rest", members="members.txt")).code == 0
    assert spent(folder) == 1


# ── alone: everything but groups ──


def test_a_peer_alone_publishes_pays_once_rests_and_predicts(tacit: Any, folder: Path) -> None:
    allowed(tacit)
    found = tacit(*words("--until-rest", "--json"))
    assert found.code == 0, found.err
    for said in ("network courses: Who gives up?", "costs 1 of ε", "others reach you at https://"):
        assert said in found.err
    document = found.document
    assert (document["models"], document["groups"], document["at_rest"]) == (1, 1, True)
    assert (document["epsilon_spent"], document["epsilon_allowed"]) == (1.0, 1.0)
    assert not document["able"]
    assert spent(folder) == 1
    assert tacit("peer", "status", "courses", "--json").document == document
    assert "epsilon spent" in tacit("peer", "status", "courses").out
    home = folder / "tacit-home" / "peers" / "courses"
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    written = {file.name: stat.S_IMODE(file.stat().st_mode) for file in home.iterdir()}
    assert {"own.model", "status.json", "events.jsonl", "library.db", "pact.json"} <= set(written)
    assert set(written.values()) == {0o600}, written

    (folder / "new.csv").write_text("hours,forum\n5,1\n55,0\n")
    said = tacit("peer", "predict", "courses", "new.csv", "--weigh", "course.csv")
    assert said.code == 0, said.err
    title, *lines = said.out.splitlines()
    assert (title, [line.partition(",")[0] for line in lines]) == ("row,prediction", ["1", "2"])
    assert {line.partition(",")[2] for line in lines} <= {"true", "false"}
    judged = tacit("peer", "predict", "courses", "course.csv", "--json").document
    assert (judged["records"], judged["labelled"], judged["models"]) == (60, 60, 2)
    assert 0 <= judged["accuracy"] <= 1
    out = tacit("peer", "predict", "courses", "new.csv", "--out", "said.csv", "--json").document
    assert (out["out"], "rows" in out) == ("said.csv", False)
    assert (folder / "said.csv").read_text().startswith("row,prediction\n1,")

    again = tacit(*words("--until-rest", "--json"))  # nothing is left: nothing is published
    assert (again.code, again.document["models"]) == (0, 1)
    assert spent(folder) == 1


def test_with_too_few_records_nobody_hears_of_us(tacit: Any, folder: Path) -> None:
    """How many there are is private: whether one is able is not read off it."""
    found = tacit(*words("--until-rest", "--json", smallest="61"))
    assert found.code == 3
    assert "fewer than the 61 records" in found.err
    assert "60" not in found.err.replace("61", "")  # not how many there are
    events = (folder / "tacit-home" / "peers" / "courses" / "events.jsonl").read_text()
    assert "listening" not in events


def test_without_data_one_gets_models_and_needs_no_budget(tacit: Any) -> None:
    found = tacit(*words("--until-rest", "--json", data=None))
    assert found.code == 0, found.err
    assert found.document["models"] == 0
    assert not found.document["able"]
    assert "epsilon_spent" not in found.document
    said = tacit("peer", "predict", "courses", "course.csv")
    assert said.code == 3
    assert "no model has arrived" in said.err


# ── records that come later ──


def test_new_records_have_a_budget_of_their_own_also_after_a_restart(
    tacit: Any, folder: Path
) -> None:
    allowed(tacit)
    follow = words("--follow", "--until-rest", "--json")
    peer = folder / "tacit-home" / "peers" / "courses"

    def noted() -> tuple[int, int]:
        pact = pact_from_bytes((peer / "pact.json").read_bytes())
        with closing(Library(peer / "library.db", pact.digest)) as library:
            part = library.used()
        assert part is not None
        return part.first, part.used

    assert tacit(*follow).document["models"] == 1
    assert noted() == (0, 60)
    table = folder / "course.csv"

    table.write_text(table.read_text() + students(49, 2))  # not enough for a model
    assert tacit(*follow).document["models"] == 1
    few = tacit(*follow, "--new-part")
    assert few.code == 3
    assert "fewer than the 50 new records" in few.err
    assert noted() == (0, 60)

    table.write_text(table.read_text() + students(10, 3))
    assert tacit(*follow).document["models"] == 1  # a part begins when its owner says so
    assert noted() == (0, 60)
    grown = tacit(*follow, "--new-part")
    assert grown.document["models"] == 2
    assert "new records (rows 61 to 119)" in grown.err
    assert noted() == (60, 119)
    (peer / "used.json").write_text("[0, 60]")  # as version 0.1 noted it: of no use any more
    assert tacit(*follow).document["models"] == 2  # the same part: it has been paid for

    assert spent(folder) == 1  # of each record: nobody's is in two models
    entries = Ledger(folder / "tacit-home" / "ledger.db").entries()
    paid = [entry.body["part"] for entry in entries if entry.kind == "reserve"]
    assert paid == ["rows 1 to 60", "rows 61 to 119"]

    head, *rows = table.read_text().splitlines(keepends=True)
    table.write_text("".join([head, *reversed(rows)]))
    reordered = tacit(*follow)
    assert reordered.code == 3
    assert "reordered" in reordered.err
    table.write_text("hours,forum,quit\n" + students(60))
    shrunk = tacit(*follow)
    assert shrunk.code == 3
    assert "must only grow" in shrunk.err


def test_a_holder_has_one_budget_however_many_records_come(tacit: Any, folder: Path) -> None:
    allowed(tacit, 1.0, "--unit", "holder")
    follow = words("--follow", "--until-rest", "--json", unit="holder")
    assert tacit(*follow).document["models"] == 1
    table = folder / "course.csv"
    table.write_text(table.read_text() + students(60, 2))
    assert tacit(*follow, "--new-part").document["models"] == 1
    balance = Ledger(folder / "tacit-home" / "ledger.db").balance("course", "holder")
    assert (balance.spent.epsilon, balance.reserved.epsilon) == (1, 0)


# ── somebody to join ──


@pytest.fixture
def founder(folder: Path) -> Iterator[str]:
    """A peer without data, in a process of its own: its address and key."""
    home = folder / "founder"
    environment = {**os.environ, "TACIT_HOME": str(home)}
    process = children.start(
        [sys.executable, "-m", "tacit.cli", *words(data=None, cycle="0.2")],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield _address(process, home / "peers" / "courses" / "events.jsonl")
    finally:
        process.kill()
        process.communicate()


def _address(process: subprocess.Popen[str], events: Path) -> str:
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends and process.poll() is None:
        lines = events.read_text().splitlines(keepends=True) if events.exists() else []
        for line in (json.loads(line) for line in lines if line.endswith("\n")):
            if line["event"] == "reachable":
                return str(line["address"])
        time.sleep(0.01)
    raise AssertionError("the founder did not start")


def test_joining_takes_the_networks_terms_and_refuses_another_schema(
    tacit: Any, folder: Path, founder: str
) -> None:
    other = SCHEMA.replace("[0, 60]", "[0, 70]")
    (folder / "other.toml").write_text(other)
    allowed(tacit)
    join = ["peer", "--bootstrap", founder, "--data", "course.csv", "--until-rest", "--json"]
    refused = tacit(*join, "--schema", "other.toml")
    assert refused.code == 3
    assert "another schema" in refused.err
    assert spent(folder) == 0
    found = tacit(*join, "--schema", "schema.toml")
    assert found.code == 0, found.err
    assert (found.document["models"], found.document["knows"]) == (1, 1)
    assert spent(folder) == 1
    other_key = founder.rpartition("=")[0] + "=" + "a" * 64
    wrong = tacit("peer", "--bootstrap", other_key)
    assert wrong.code in (5, 6)


# ── simulated ──


@pytest.fixture
def credit() -> None:
    try:
        load_dataset("australian")
    except DatasetError as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("credit")
def test_a_simulated_network_says_what_its_peers_know(tacit: Any, folder: Path) -> None:
    simulate = [
        "peer", "simulate", "--data", "australian", "--peers", "6", "--group-size", "3",
        "--records", "30", "--newcomers", "1", "--seed", "1", "--plot", "peers.png", "--json",
    ]  # fmt: skip
    found = tacit(*simulate)
    assert found.code == 0, found.err
    document = found.document
    assert tacit(*simulate).document == document  # from a seed
    assert (document["peers"], document["models"], document["aggregations_paid"]) == (6, 2.0, 1.0)
    assert len(document["newcomers_accuracy"]) == 1
    assert (folder / "peers.png").stat().st_size > 10_000


@pytest.mark.usefixtures("credit")
def test_a_simulation_needs_records_for_all_its_peers(tacit: Any) -> None:
    found = tacit("peer", "simulate", "--data", "australian", "--peers", "1000")
    assert found.code == 3
    assert "too many" in found.err
