"""`tacit budget`: what people and programs see of a ledger."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from tacit.cli.main import main
from tacit.home import ledger_path, tacit_home
from tacit.privacy.accounting import GaussianLoss, SpendCost
from tacit.privacy.accounting.gaussian import largest_mu
from tacit.privacy.ledger import Ledger, Owner, Surroundings
from tacit.privacy.promise import Promise

if TYPE_CHECKING:
    from pathlib import Path


class Vanished(Surroundings):
    """Reservations made here look as if their process were gone."""

    def owner(self) -> Owner:
        return Owner("another boot", 42, 1)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TACIT_HOME", str(tmp_path))
    monkeypatch.delenv("TACIT_LEDGER", raising=False)
    monkeypatch.setenv("COLUMNS", "140")
    return tmp_path


@pytest.fixture
def ledger(home: Path) -> Ledger:
    made = Ledger(home / "ledger.db")
    made.allow("adult", "record", 1, 1e-6)
    made.allow("heart", "person", 2)
    made.reserve(Promise(0.25, 1e-7), "adult", "logistic regression").commit()
    return made


class Result:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def document(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def tacit(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*words: object) -> Result:
        with pytest.raises(SystemExit) as left:
            main(["budget", *map(str, words)])
        captured = capsys.readouterr()
        assert isinstance(left.value.code, int)
        return Result(left.value.code, captured.out, captured.err)

    return run


# ── show ──


def test_show_draws_budgets_and_newest_entries(tacit: Any, ledger: Ledger) -> None:
    result = tacit("show")
    assert (result.code, result.err) == (0, "")
    assert f"chain intact, 5 entries, head {ledger.head}" in result.out
    rows = {line.split()[0]: line.split() for line in result.out.splitlines() if line.strip()}
    assert rows["adult"] == [
        "adult",
        "record",
        "ε",
        "██········",
        "25",
        "%",
        "0.25",
        "0",
        "0.75",
        "1",
    ]
    assert rows["δ"] == ["δ", "█·········", "10", "%", "1e-07", "0", "9e-07", "1e-06"]
    assert rows["heart"] == ["heart", "person", "ε", "··········", "0", "%", "0", "0", "2", "2"]
    assert "reserve" in result.out
    assert "logistic regression" in result.out
    assert "Interrupted" not in result.out


def test_show_json_is_one_document(tacit: Any, ledger: Ledger) -> None:
    result = tacit("show", "--json", "--dataset", "adult")
    assert result.code == 0
    assert result.document["head"] == ledger.head
    assert result.document["entries"] == 5
    assert result.document["budgets"] == [
        {
            "dataset": "adult",
            "unit": "record",
            "allowed": {"epsilon": 1.0, "delta": 1e-6},
            "spent": {"epsilon": 0.25, "delta": 1e-7},
            "reserved": {"epsilon": 0.0, "delta": 0.0},
            "left": {"epsilon": 0.75, "delta": 9e-7},
            "adjacencies": ["add-remove"],
            "composition": "adding",
            "adding_says": {"epsilon": 0.25, "delta": 1e-7},
            "most_records": None,
            "most_persons": None,
        }
    ]
    assert [e["kind"] for e in result.document["recent"]] == [
        "open",
        "allow",
        "allow",
        "reserve",
        "commit",
    ]


def test_show_without_a_ledger_says_how_to_begin(tacit: Any, home: Path) -> None:
    result = tacit("show")
    assert result.code == 0
    assert "tacit budget allow" in result.out
    assert tacit("show", "--json").document["budgets"] == []
    assert tacit("show", "--ledger", home / "typo.db").code == 3
    assert list(home.iterdir()) == []  # showing makes nothing


def test_show_of_an_unknown_data_set_names_the_known(tacit: Any, ledger: Ledger) -> None:
    result = tacit("show", "--dataset", "adlut")
    assert result.code == 3
    assert "adult, heart" in result.err


def test_show_does_not_obey_markup_in_names(tacit: Any, ledger: Ledger) -> None:
    ledger.allow("[red]x[/]", "record", float("inf"))
    ledger.reserve(Promise(1), "[red]x[/]", "[bold]purpose").commit()
    result = tacit("show")
    assert "[red]x[/]" in result.out
    assert "[bold]purpose" in result.out
    assert "no ceiling" in result.out
    (budget,) = tacit("show", "--dataset", "[red]x[/]", "--json").document["budgets"]
    assert budget["left"]["epsilon"] == "inf"


def test_show_tells_when_adjacencies_were_mixed(tacit: Any, ledger: Ledger) -> None:
    assert "kept under replace" not in tacit("show").out
    tacit("allow", "adult", "--epsilon", "2", "--delta", "1e-5", "--adjacency", "replace")
    ledger.reserve(Promise(0.1, adjacency="replace"), "adult", "count").commit()
    assert "adult per record: kept under replace" in tacit("show").out


def test_show_says_what_adding_would_say(tacit: Any, ledger: Ledger) -> None:
    tacit("allow", "other", "--epsilon", "5", "--delta", "1e-5", "--composition", "filter")
    cost = SpendCost(((GaussianLoss(largest_mu(0.5, 1e-6)),),))
    for _ in range(12):
        ledger.reserve(Promise(0.5, 1e-6), "other", "study", cost=cost).commit()
    shown = " ".join(tacit("show", "--dataset", "other").out.split())
    assert "other per record: composed by a filter. Adding would say ε = 6" in shown
    assert "would have stopped at ε = 5" in shown
    (budget,) = tacit("show", "--dataset", "other", "--json").document["budgets"]
    assert budget["composition"] == "filter"
    assert budget["adding_says"]["epsilon"] == 6


def test_most_records_are_stated(tacit: Any, ledger: Ledger) -> None:
    words = (*("--unit", "person", "--epsilon", 9, "--delta", 1e-5), "--most-records", 4)
    tacit("allow", "adult", *words)
    (person, _) = tacit("show", "--dataset", "adult", "--json").document["budgets"]
    assert (person["unit"], person["most_records"], person["spent"]["epsilon"]) == ("person", 4, 1)


def test_an_older_copy_is_recovered_by_the_holders_word(tacit: Any, ledger: Ledger) -> None:
    older = ledger.path.read_bytes()
    ledger.reserve(Promise(0.1), "adult", "count").commit()
    ledger.path.write_bytes(older)
    refused = tacit("show")
    assert refused.code == 6
    assert "tacit budget recover" in refused.err
    assert tacit("recover", "--json").document["entries"] == 6  # five, and that it was recovered
    budgets = tacit("show", "--json").document["budgets"]
    assert [budget["left"]["epsilon"] for budget in budgets] == [0, 0]
    ledger.path.unlink()
    assert tacit("show").code == 6


def test_a_bar_is_full_only_when_nothing_is_left(tacit: Any, ledger: Ledger) -> None:
    ledger.reserve(Promise(0.749), "adult", "count").commit()
    assert "█████████·  99 %" in tacit("show").out
    ledger.reserve(Promise(0.001), "adult", "count")
    assert "█████████▒ 100 %" in tacit("show").out


def test_show_of_a_tampered_ledger_exits_6(tacit: Any, ledger: Ledger) -> None:
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER entries_hold")
        connection.execute("UPDATE entries SET body = replace(body, '0.25', '0.05') WHERE seq = 5")
    result = tacit("show")
    assert (result.code, result.out) == (6, "")
    assert "entry 5 was changed" in result.err
    assert tacit("show", "--json").document["error"]["kind"] == "LedgerTampered"


def test_show_checks_a_head_noted_earlier(tacit: Any, ledger: Ledger) -> None:
    assert tacit("show", "--head", ledger.entries()[1].hash).code == 0
    assert tacit("show", "--head", "0" * 64).code == 6


def test_show_of_another_file_exits_3(tacit: Any, home: Path) -> None:
    (home / "notes.txt").write_text("not a ledger " * 100)
    assert tacit("show", "--ledger", home / "notes.txt").code == 3


# ── allow ──


def test_allow_sets_a_ceiling(tacit: Any, home: Path) -> None:
    result = tacit("allow", "adult", "--epsilon", 2, "--delta", 1e-6, "--unit", "person")
    assert result.code == 0
    assert result.out == "adult per person: ε = 2, δ = 1e-06 allowed, ε = 2, δ = 1e-06 left.\n"
    document = tacit("allow", "adult", "--epsilon", 3, "--unit", "person", "--json").document
    assert document["budget"]["allowed"] == {"epsilon": 3.0, "delta": 0.0}
    (balance,) = Ledger(home / "ledger.db").balances()
    assert (balance.dataset, balance.unit, balance.allowed.epsilon) == ("adult", "person", 3)


@pytest.mark.parametrize(
    "words", [["--epsilon", "-1"], ["--epsilon", "much"], [], ["--epsilon", "1", "--unit", "cat"]]
)
def test_wrong_usage_exits_2_and_sets_nothing(tacit: Any, home: Path, words: list[str]) -> None:
    assert tacit("allow", "adult", *words).code == 2
    assert "allow" not in [e.kind for p in home.glob("*.db") for e in Ledger(p).entries()]


# ── settle ──


def test_interrupted_reservations_are_shown_and_settled(
    tacit: Any, home: Path, ledger: Ledger
) -> None:
    gone = Ledger(ledger.path, Vanished())
    first = gone.reserve(Promise(0.3), "adult", "mixture")
    second = gone.reserve(Promise(0.2), "adult", "itemsets")
    second.mark_drawn()
    result = tacit("show")
    assert "Interrupted reservations" in result.out
    assert "mixture" in result.out
    assert "tacit budget settle NUMBER --spent | --unspent" in result.out
    found = tacit("show", "--json").document["interrupted"]
    assert [(s["reservation"], s["noise_drawn"]) for s in found] == [
        (first.id, False),
        (second.id, True),
    ]

    assert tacit("settle", first.id).code == 2
    assert tacit("settle", first.id, "--unspent").code == 0
    refused = tacit("settle", second.id, "--unspent")
    assert refused.code == 4
    assert "noise was drawn" in refused.err
    document = tacit("settle", second.id, "--spent", "--json").document
    assert document == {"reservation": second.id, "spent": True, "head": ledger.head}
    assert "Interrupted" not in tacit("show").out
    assert float(ledger.balance("adult", "record").spent.epsilon) == 0.45


def test_what_still_runs_is_not_settled_by_hand(tacit: Any, ledger: Ledger) -> None:
    reservation = ledger.reserve(Promise(0.3), "adult", "mixture")
    result = tacit("settle", reservation.id, "--unspent", "--json")
    assert result.code == 4
    assert result.document["error"]["kind"] == "Refused"
    assert tacit("settle", 999, "--spent").code == 2


def test_settling_needs_a_ledger(tacit: Any, home: Path) -> None:
    assert tacit("settle", 3, "--spent").code == 3
    assert list(home.iterdir()) == []


# ── where it is ──


def test_where_the_ledger_lives(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    monkeypatch.delenv("TACIT_HOME")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert tacit_home() == tmp_path / "me" / ".local" / "share" / "tacit"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert tacit_home() == tmp_path / "me" / ".local" / "share" / "tacit"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert ledger_path() == tmp_path / "data" / "tacit" / "ledger.db"
    monkeypatch.setenv("TACIT_HOME", "~/t")
    assert ledger_path() == tmp_path / "me" / "t" / "ledger.db"
    monkeypatch.setenv("TACIT_LEDGER", "~/mine.db")
    assert ledger_path() == tmp_path / "me" / "mine.db"


def test_what_can_be_gone_on_with_is_shown_under_that_name(
    tacit: Any, home: Path, ledger: Ledger
) -> None:
    gone = Ledger(ledger.path, Vanished())
    gone.reserve(Promise(0.3), "adult", "study s", identity="of an outbox").mark_drawn()
    result = tacit("show")
    assert "Reservations that can be resumed" in result.out
    assert "tacit join" in result.out
    assert "Interrupted" not in result.out
    assert [s["resumable"] for s in tacit("show", "--json").document["interrupted"]] == [True]
