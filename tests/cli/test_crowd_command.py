"""`tacit crowd`: cards, proposals, their words, and what is refused before anything is sent."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tacit.channels.crowd.proposal import Proposal
from tacit.cli.crowd_row import row_from_events
from tacit.cli.main import main
from tacit.privacy import Ledger

SCHEMA = """
[columns.hours]
type = "number"
bounds = [0, 60]
edges = [2, 6]

[columns.forum]
type = "boolean"

[columns.quit]
type = "boolean"
role = "label"
"""


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
    (tmp_path / "me.csv").write_text("hours,forum,quit\n3.5,1,0\n")
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


def offered(tacit: Any, number: int, *more: str) -> None:
    tacit("keys", "new", f"relay-{number}")
    found = tacit(
        "crowd", "offer", f"card-{number}.toml", "--name", f"relay-{number}", "--address",
        f"https://127.0.0.1:{9000 + number}", "--key", f"relay-{number}", *more, "--json",
    )  # fmt: skip
    assert found.code == 0, found.err


def proposed(tacit: Any, *more: str, relays: int = 3) -> Result:
    for number in range(relays):
        offered(tacit, number)
    cards = [word for n in range(relays) for word in ("--relay", f"card-{n}.toml")]
    found: Result = tacit(
        "crowd", "propose", "course.toml", "--name", "course", "--question", "Who gives up?",
        "--schema", "schema.toml", "--epsilon", "2", "--minimum", "100", "--address",
        "https://127.0.0.1:8999", *cards, *more, "--json",
    )  # fmt: skip
    return found


def test_a_proposal_says_what_it_asks_and_keeps_its_secrets(tacit: Any, folder: Path) -> None:
    made = proposed(tacit)
    assert made.code == 0, made.err
    assert made.document["questions"] >= 2
    assert made.document["person_epsilon"] == 2.0
    proposal = Proposal.load(folder / "course.toml")
    proposal.check_signature()
    assert proposal.digest == made.document["digest"]
    (secrets,) = (folder / "tacit-home" / "crowds").iterdir()
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o600
    onions = list((folder / "tacit-home" / "keys").glob("*.onion"))
    assert len(onions) == 3
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in onions)


def test_show_explains_in_plain_words_also_as_a_study(tacit: Any) -> None:
    proposed(tacit)
    words = tacit("crowd", "show", "course.toml")
    assert words.code == 0
    for text in ("What you would reveal", "one question", "ε = 2", "needs no trust in anyone"):
        assert text in words.out
    assert tacit("study", "show", "course.toml").out == words.out
    document = tacit("crowd", "show", "course.toml", "--json").document
    assert document["explanation"]["What it costs"]
    assert "No liars are assumed" in document["explanation"]["If people lie"][-1]
    assert document["liars"]["assumed"] == 0
    assert all(weight["cell"] > 1 for weight in document["liars"]["weights"].values())


def test_public_coins_are_explained_with_what_liars_weigh(tacit: Any, folder: Path) -> None:
    made = proposed(tacit, "--table", "forum", "--public-coins", "--corrupt", "3")
    assert made.code == 0, made.err
    assert made.document["questions"] == 3
    assert Proposal.load(folder / "course.toml").plan.public_coins is True
    words = tacit("crowd", "show", "course.toml").out
    assert "in one half of all 4" in words
    assert "At most 3 liars are assumed" in words


def test_a_changed_byte_breaks_the_proposal(tacit: Any, folder: Path) -> None:
    proposed(tacit)
    path = folder / "course.toml"
    path.write_text(path.read_text().replace("Who gives up?", "Who gives in?"))
    assert tacit("crowd", "show", "course.toml").code == 6
    refused = tacit("crowd", "join", "course.toml", "--data", "me.csv", "--yes")
    assert refused.code == 6
    assert "changed after signing" in refused.err


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--hops", "4"), "different relays"),
        (("--epsilon", "-1"), "epsilon"),
        (("--minimum", "1"), "too few"),
        (("--anonml", "2", "5", "1"), "features"),
        (("--anonml", "2", "1", "1", "--table", "hours"), "two plans"),
        (("--proof", "ring", "--maximum", "2000"), "ring"),
        (("--table", "hours,nothing"), "features"),
        (("--learner", "pca"), "tables only"),
    ],
)
def test_impossible_proposals_are_refused(
    tacit: Any, folder: Path, more: tuple[str, ...], words: str
) -> None:
    found = proposed(tacit, *more)
    assert found.code in (2, 3)
    assert words in found.err
    assert not (folder / "course.toml").exists()


def test_a_proposal_is_never_overwritten(tacit: Any) -> None:
    proposed(tacit)
    again = proposed(tacit)
    assert again.code == 2
    assert "is there already" in again.err


def test_nothing_is_sent_or_spent_without_a_budget_or_with_a_wrong_table(
    tacit: Any, folder: Path
) -> None:
    proposed(tacit)
    join = ("crowd", "join", "course.toml", "--data", "me.csv", "--yes")
    refused = tacit(*join)
    assert refused.code == 4
    assert "tacit budget allow me --unit person" in refused.err
    tacit("budget", "allow", "me", "--unit", "person", "--epsilon", "2")
    (folder / "me.csv").write_text("hours,forum,quit\n3.5,1,0\n7,0,1\n")
    two = tacit(*join)
    assert two.code == 3
    assert "a person has one" in two.err
    (folder / "me.csv").write_text("hours,quit\n3.5,0\n")
    assert tacit(*join).code == 3
    balance = Ledger(folder / "tacit-home" / "ledger.db").balance("me", "person")
    assert (balance.spent.epsilon, balance.reserved.epsilon) == (0, 0)


@pytest.mark.parametrize("row", ["many,1,0", ",1,0", "3.5,1,perhaps"])
def test_whoever_has_no_row_takes_part_all_the_same(tacit: Any, folder: Path, row: str) -> None:
    """Whether she has one is private: it is said to her, and she is refused for nothing else than
    anybody is."""
    proposed(tacit)
    join = ("crowd", "join", "course.toml", "--data", "me.csv", "--yes")
    usual = tacit(*join)
    (folder / "me.csv").write_text(f"hours,forum,quit\n{row}\n")
    found = tacit(*join)
    assert found.code == usual.code == 4
    assert "Your row cannot be used. You take part all the same" in found.err
    assert found.err.endswith(usual.err)


def test_collecting_needs_a_study_that_is_over(tacit: Any) -> None:
    proposed(tacit)
    found = tacit("crowd", "collect", "course.toml")
    assert found.code == 3
    assert "nothing was collected" in found.err


def test_a_relay_serves_with_the_key_of_its_card(tacit: Any) -> None:
    proposed(tacit)
    found = tacit("serve", "relay", "course.toml")  # the holder's key is no relay's
    assert found.code == 2
    assert "none of its relays" in found.err


def test_relays_with_keys_of_different_kinds(tacit: Any) -> None:
    offered(tacit, 7, "--kem", "hybrid")
    cards = [word for n in (0, 1, 2, 7) for word in ("--relay", f"card-{n}.toml")]
    for number in range(3):
        offered(tacit, number)
    found = tacit(
        "crowd", "propose", "x.toml", "--name", "x", "--question", "?", "--schema", "schema.toml",
        "--epsilon", "2", "--minimum", "100", "--address", "https://127.0.0.1:1", *cards,
    )  # fmt: skip
    assert found.code == 2
    assert "different kinds" in found.err


HABITS = """
name = "habits"
question = "Who gives up?"

[events.study]
minutes = "number"
forum = "boolean"
quit = "boolean"

[instance]
per = "user"
cutoff = "2024-02-01"

[label]
value = "last(study.quit)"
horizon = "4w"
name = "quit"

[columns]
hours = "sum(study.minutes, 4w) / 60"
forum = "last(study.forum)"
"""


def test_a_row_is_made_of_ones_own_events_by_the_bundle_of_the_study(
    tacit: Any, folder: Path
) -> None:
    (folder / "habits.toml").write_text(HABITS)
    (folder / "others.toml").write_text(HABITS.replace("4w) / 60", "3w) / 60"))
    for name in ("habits", "others"):
        assert tacit("me", "share", f"{name}.toml", f"{name}-bundle.toml").code == 0
    made = proposed(tacit, "--bundle", "habits-bundle.toml")
    assert made.code == 0, made.err
    proposal = Proposal.load(folder / "course.toml")
    proposal.check_signature()
    assert len(proposal.bundle) == 64
    assert proposal.bundle in tacit("crowd", "show", "course.toml").out
    join = ("crowd", "join", "course.toml", "--yes")
    assert "either --data" in tacit(*join).err
    assert "either --data" in tacit(*join, "--data", "me.csv", "--bundle", "habits.toml").err
    other = tacit(*join, "--bundle", "others-bundle.toml")
    assert other.code == 6
    assert "not the bundle that course was proposed with" in other.err
    assert tacit(*join, "--bundle", "habits.toml").code == 6  # nobody has signed it
    assert "no store yet" in tacit(*join, "--bundle", "habits-bundle.toml").err
    rows = [f"2024-0{month}-10 10:00,90,true,{month > 1}" for month in (1, 2)]
    (folder / "study.csv").write_text("\n".join(["when,minutes,forum,quit", *rows]) + "\n")
    assert tacit("me", "import", "study.csv").code == 0
    undecided = tacit(*join, "--bundle", "habits-bundle.toml")
    assert "not known yet" in undecided.err  # the four weeks are not over in what was imported
    assert "You take part all the same" in undecided.err
    refused = tacit(*join, "--bundle", "habits-bundle.toml", "--now", "2024-03-10")
    assert "You take part all the same" not in refused.err
    for found in (undecided, refused):
        assert found.code == 4
        assert "tacit budget allow me --unit person" in found.err


def test_the_row_of_ones_events_is_what_they_say(tacit: Any, folder: Path) -> None:
    (folder / "habits.toml").write_text(HABITS)
    tacit("me", "share", "habits.toml", "bundle.toml")
    proposed(tacit, "--bundle", "bundle.toml")
    rows = [f"2024-0{month}-10 10:00,90,true,{month > 1}" for month in (1, 2)]
    (folder / "study.csv").write_text("\n".join(["when,minutes,forum,quit", *rows]) + "\n")
    tacit("me", "import", "study.csv")
    proposal = Proposal.load(folder / "course.toml")
    row, why = row_from_events(proposal, folder / "bundle.toml", None, "2024-03-10")
    assert why == ""
    assert row is not None
    assert row.rows == 1
    values = {name: column[0] for name, column in row.columns.items()}
    assert values["hours"] == 1.5
    assert values["forum"] == 1
    assert values["quit"] == 1
