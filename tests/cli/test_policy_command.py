"""`tacit policy`: from a draft to force; what it forbids is refused with nothing reserved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.channels.studies.study import Study
from tacit.cli.main import main
from tacit.crypto.signing import SigningKey
from tacit.home import ledger_path, tacit_home
from tacit.privacy.ledger import Ledger
from tacit.privacy.policy import Policy

SCHEMA = """
[columns.who]
type = "integer"
role = "person"

[columns.hours]
type = "number"
bounds = [0, 60]
edges = [2, 6]

[columns.quit]
type = "boolean"
role = "label"
"""
A, B, C = ("a" * 64, "b" * 64, "c" * 64)


class Result:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def document(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    draw = np.random.default_rng(0)
    rows = [f"{i},{draw.uniform(0, 60):.2f},{int(draw.random() < 0.5)}" for i in range(60)]
    (tmp_path / "course.csv").write_text("who,hours,quit\n" + "\n".join(rows) + "\n")
    (tmp_path / "me.csv").write_text("who,hours,quit\n1,3.5,0\n")
    return tmp_path


@pytest.fixture
def tacit(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*words: str, code: int = 0) -> Result:
        with pytest.raises(SystemExit) as left:
            main(list(words))
        printed = capsys.readouterr()
        assert left.value.code == code, printed.err
        return Result(code, printed.out, printed.err)

    return run


def own_key() -> str:
    return SigningKey.of_holder().public_key


def written(tacit: Any, *more: str, program: str = "histogram", servers: int = 2) -> Path:
    """A study of which this machine is a holder."""
    words = [
        "study", "new", "study.toml", "--force", "--name", "course-2026", "--question", "Who?",
        "--program", program, "--epsilon", "1", "--schema", "schema.toml",
        "--aggregator", f"sum=https://127.0.0.1:1={C}",
        "--holder", f"me={own_key()}", "--holder", f"b={'e' * 64}", "--holder", f"c={'9' * 64}",
    ]  # fmt: skip
    for number in range(servers):
        words += ["--server", f"s{number}=https://127.0.0.1:2={str(number + 3) * 64}"]
    tacit(*words, *more)
    return Path("study.toml")


def in_force(number: int = 1, **rules: Any) -> Policy:
    key = SigningKey.of_holder()
    document = {
        "format": "tacit policy 1",
        "name": "clinic",
        "number": number,
        "approvers": [key.public_key],
        "datasets": {"*": rules},
    }
    made = Policy.from_dict(document).signed(key)
    Ledger(ledger_path()).decisions.use(made)
    return made


def head() -> str:
    return Ledger(ledger_path()).head


# ── a policy's life ──


def test_from_a_draft_to_force(tacit: Any, folder: Path) -> None:
    assert "No policy is in force" in tacit("policy", "show").out
    made = tacit("policy", "new", "p.toml", "--name", "clinic", "--dataset", "course", "--json")
    assert made.document["number"] == 1
    assert "tacit policy sign" in tacit("policy", "use", "p.toml", code=4).err
    text = (folder / "p.toml").read_text()
    assert "# epsilon_per_year" in text
    edited = text.replace("programs = []", 'programs = ["histogram"]\nepsilon_per_year = 1.5')
    (folder / "p.toml").write_text(edited)
    tacit("policy", "sign", "p.toml")
    tacit("policy", "use", "p.toml")
    shown = tacit("policy", "show").out
    for words in ("data set course:", "programs: histogram", "per year: ε = 1.5", "has signed"):
        assert words in shown
    assert tacit("policy", "show", "--json").document["policy"]["name"] == "clinic"
    second = tacit("policy", "new", "q.toml", "--name", "clinic", "--json").document
    assert second["number"] == 2
    assert tacit("policy", "new", "q.toml", "--name", "clinic", code=2)


def test_signing_again_drops_signatures_of_what_was_changed(tacit: Any, folder: Path) -> None:
    tacit("policy", "new", "p.toml", "--name", "clinic")
    tacit("keys", "new", "other")
    tacit("policy", "sign", "p.toml", "--key", "other")
    text = (folder / "p.toml").read_text()
    (folder / "p.toml").write_text(text.replace('name = "clinic"', 'name = "clinics"'))
    assert tacit("policy", "sign", "p.toml", "--json").document["signed_by"] == [own_key()]


def test_a_changed_file_is_not_put_in_force(tacit: Any, folder: Path) -> None:
    tacit("policy", "new", "p.toml", "--name", "clinic")
    tacit("policy", "sign", "p.toml")
    text = (folder / "p.toml").read_text()
    (folder / "p.toml").write_text(text.replace("programs = []", 'programs = ["histogram"]'))
    assert "changed after signing" in tacit("policy", "use", "p.toml", code=6).err
    assert "No policy is in force" in tacit("policy", "show").out


def test_check_says_every_broken_rule_and_reserves_nothing(tacit: Any) -> None:
    study = str(written(tacit))
    assert "no policy is in force" in tacit("policy", "check", study, "--dataset", "course").out
    in_force(programs=["pca"], epsilon_per_study=0.5, servers=["3" * 64], authors=[A])
    before = head()
    refused = tacit("policy", "check", study, "--dataset", "course", code=4)
    rules = ("programs", "epsilon_per_study", "servers", "authors")
    assert all(f'policy rule datasets."*".{rule}: asked ' in refused.err for rule in rules)
    found = tacit("policy", "check", study, "--dataset", "course", "--json", code=4).document
    assert [one["rule"].rpartition(".")[2] for one in found["broken"]] == [
        "programs", "epsilon_per_study", "authors", "servers",
    ]  # fmt: skip
    in_force(2, programs=["histogram"])
    assert "permits it" in tacit("policy", "check", study, "--dataset", "course").out
    assert before != head()  # the second policy alone


# ── every way in ──


def refused_by(tacit: Any, rule: str, *words: str) -> None:
    """By this rule, with nothing reserved: the ledger is as it was."""
    before = head()
    result = tacit(*words, code=4)
    assert f'policy rule datasets."*".{rule}: asked ' in result.err
    assert "; allowed " in result.err
    assert head() == before


@pytest.fixture
def allowed(tacit: Any) -> None:
    for dataset, unit in (("course", "record"), ("me", "person"), ("new", "record")):
        tacit("budget", "allow", dataset, "--unit", unit, "--epsilon", "10", "--delta", "1e-3")


RULES = [
    ("programs", ["other"]),
    ("columns", ["hours", "quit"]),
    ("unit", "holder"),
    ("epsilon_per_study", 0.5),
    ("epsilon_per_year", 0.5),
    ("authors", [A]),
    ("servers", [A]),
    ("approval", "each study"),
]


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize(("rule", "value"), [*RULES, ("trust", [A])])
def test_join_is_refused(tacit: Any, rule: str, value: Any) -> None:
    study = str(written(tacit))
    in_force(**{rule: value})
    refused_by(tacit, rule, "join", study, "--data", "course.csv")


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize(("rule", "value"), [*RULES, ("trust", [A])])
def test_join_that_follows_is_refused(tacit: Any, folder: Path, rule: str, value: Any) -> None:
    study = str(written(tacit, "--windows", "2", program="logistic"))
    in_force(**{rule: value})
    (folder / "new").mkdir()
    refused_by(tacit, rule, "join", study, "--data", "new", "--follow")


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize(("rule", "value"), RULES)
def test_join_of_a_consortium_is_refused(tacit: Any, rule: str, value: Any) -> None:
    more = ("--smallest", "20", "--records", "100")
    study = str(written(tacit, *more, program="averaged-logistic", servers=0))
    in_force(**{rule: value})
    refused_by(tacit, rule, "join", study, "--data", "course.csv")


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize(("rule", "value"), RULES)
def test_a_peer_is_refused(tacit: Any, rule: str, value: Any) -> None:
    in_force(**{rule: value})
    refused_by(
        tacit, rule, "peer", "--data", "course.csv", "--schema", "schema.toml", "--name", "courses",
        "--question", "Who?", "--epsilon", "1", "--smallest", "50", "--group-size", "1",
        "--until-rest", "--cycle", "0.02",
    )  # fmt: skip


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize(("rule", "value"), RULES)
def test_a_person_of_a_crowd_is_refused(tacit: Any, rule: str, value: Any) -> None:
    for number in range(3):
        tacit("keys", "new", f"relay-{number}")
        tacit(
            "crowd", "offer", f"card-{number}.toml", "--name", f"r{number}", "--address",
            f"https://127.0.0.1:{9000 + number}", "--key", f"relay-{number}",
        )  # fmt: skip
    cards = [word for n in range(3) for word in ("--relay", f"card-{n}.toml")]
    tacit(
        "crowd", "propose", "crowd.toml", "--name", "crowd", "--question", "Who?", "--schema",
        "schema.toml", "--epsilon", "2", "--minimum", "100", "--address", "https://127.0.0.1:8999",
        *cards,
    )  # fmt: skip
    in_force(**{rule: value})
    before = head()
    result = tacit("crowd", "join", "crowd.toml", "--data", "me.csv", "--yes", code=4)
    assert f'policy rule datasets."*".{rule}: asked ' in result.err
    assert head() == before
    assert tacit("policy", "check", "crowd.toml", "--dataset", "me", code=4)


@pytest.mark.usefixtures("allowed")
def test_what_is_permitted_is_not_refused(tacit: Any) -> None:
    """It goes on until nobody answers: there is no aggregator here."""
    study = Study.load(written(tacit, "--gather", "0.01"))
    assert study.signature is not None
    in_force(
        programs=["histogram"],
        columns=["who", "hours", "quit"],
        unit="record",
        epsilon_per_study=1,
        epsilon_per_year=1,
        authors=[study.signature.author],
        servers=[server.key for server in study.servers],
        trust=2,
        approval="each study",
    )
    joined = ("join", "study.toml", "--data", "course.csv", "--folder")
    refused_by(tacit, "approval", *joined, "first")
    tacit("policy", "approve", "study.toml", "--dataset", "course")
    before = len(Ledger(ledger_path()).entries())
    tacit(*joined, "second", code=5)
    kinds = [entry.kind for entry in Ledger(ledger_path()).entries()[before:]]
    assert kinds == ["reserve", "release"]


def test_estimators_are_held_to_it_too(tacit: Any) -> None:
    from tacit.errors import Refused
    from tacit.estimators import KMeans

    tacit("budget", "allow", "data", "--epsilon", "10", "--delta", "1e-3")
    in_force(programs=["logistic"])
    X, before = np.random.default_rng(0).random((200, 2)), head()
    model = KMeans(2, bounds=(0, 1), ledger=str(ledger_path()))
    with pytest.raises(Refused, match=r'datasets\."\*"\.programs'):
        model.fit(X)
    in_force(2, programs=["k-means"], columns=["a"])
    with pytest.raises(Refused, match="columns without names"):
        model.fit(X)
    in_force(3, programs=["k-means"], authors=[own_key()])
    model.fit(X)
    assert before != head()


# ── approvals ──


def test_an_approver_elsewhere_sends_a_file(tacit: Any, folder: Path) -> None:
    study = str(written(tacit))
    in_force(approval="each study")
    words = ("policy", "approve", study, "--dataset", "course")
    tacit("keys", "new", "stranger")
    assert "not an approver" in tacit(*words, "--key", "stranger", code=4).err
    tacit(*words, "--out", "yes.toml")
    assert tacit("policy", "check", study, "--dataset", "course", code=4)
    assert (
        "another data set"
        in tacit("policy", "approve", study, "--dataset", "other", "--from", "yes.toml", code=3).err
    )
    text = (folder / "yes.toml").read_text()
    (folder / "no.toml").write_text(text.replace(own_key(), A))
    tacit(*words, "--from", "no.toml", code=4)
    tacit(*words, "--from", "yes.toml")
    tacit("policy", "check", study, "--dataset", "course")


# ── budget show ──


@pytest.mark.usefixtures("allowed")
def test_budget_show_lists_the_policy_and_what_is_left_of_the_year(tacit: Any) -> None:
    assert "No policy: budgets alone decide." in tacit("budget", "show").out
    assert tacit("budget", "show", "--json").document["policy"] is None
    made = in_force(epsilon_per_year=2.5)
    tacit("policy", "revoke", "me")
    tacit("policy", "leave-out", "course", "--id", "7")
    shown = tacit("budget", "show").out
    for words in (
        "Policy clinic, number 1",
        "course: ε = 2.5 of 2.5 left of the last 365 days.",
        "me: its use is revoked.",
        "course: 1 left out.",
    ):
        assert words in shown
    document = tacit("budget", "show", "--json").document
    assert document["policy"]["digest"] == made.digest
    assert document["revoked"] == ["me"]
    assert document["left_out"] == {"course": 1}


# ── leaving ──


@pytest.mark.usefixtures("allowed")
def test_a_revoked_data_set_is_not_joined_with(tacit: Any) -> None:
    study = str(written(tacit))
    tacit("policy", "revoke", "course")
    before = head()
    assert "has revoked the use" in tacit("join", study, "--data", "course.csv", code=4).err
    assert tacit("policy", "check", study, "--dataset", "course", "--json", code=4).document[
        "revoked"
    ]
    assert head() == before
    tacit("policy", "revoke", "course", "--undo")
    tacit("policy", "check", study, "--dataset", "course")


def test_people_are_left_out_by_id_or_file(tacit: Any, folder: Path) -> None:
    assert "Nobody" in tacit("policy", "left-out").out
    tacit("policy", "leave-out", "course", code=2)
    (folder / "ids.txt").write_text("1\n\n 2 \n3\n")
    words = ("policy", "leave-out", "course")
    assert tacit(*words, "--ids", "ids.txt", "--json").document["left_out"] == 3
    assert tacit(*words, "--id", "2", "--take-back", "--json").document["left_out"] == 2
    assert "course: 2 people are left out." in tacit("policy", "left-out").out
    assert not any("4711" in p.read_text(errors="replace") for p in tacit_home().rglob("*.json"))


def test_what_may_keep_people_from_being_found_is_said_without_their_ids(tacit: Any) -> None:
    words = ("policy", "leave-out", "curse", "--id", "4711.0")
    said = " ".join(tacit(*words).out.split())
    for expected in (
        "no budget for a data set 'curse'",
        "1 of the ids are spelt",
        "--person COLUMN",
    ):
        assert expected in said
    assert "4711" not in said
    tacit("budget", "allow", "curse", "--epsilon", "1", "--person", "student")
    assert tacit(*words[:-1], "4711", "--json").document["warnings"] == []


@pytest.mark.usefixtures("allowed")
def test_join_without_people_in_the_schema_is_refused(tacit: Any, folder: Path) -> None:
    text = SCHEMA.replace('role = "person"', 'role = "ignore"')
    (folder / "schema.toml").write_text(text)
    study = str(written(tacit))
    tacit("policy", "leave-out", "course", "--id", "7")
    before = head()
    assert 'role = "person"' in tacit("join", study, "--data", "course.csv", code=4).err
    assert head() == before


# ── trust ──


def test_the_author_sees_what_statements_cost(tacit: Any) -> None:
    written(tacit, "--noise", "honest=3", servers=4)
    tacit("policy", "trust", "me.toml", code=2)
    tacit("policy", "trust", "me.toml", "--servers", "2")
    found = tacit("study", "trust", "study.toml", "me.toml", "--json").document
    assert found["holders"] == [
        {
            "holder": "me",
            "trusted": 2,
            "parts": 1,
            "factor": 2.0,
            "factor_without": pytest.approx((4 / 3) ** 0.5),
        }
    ]
    assert (found["noise"], found["factor"], found["suffices"]) == ("every-server", 2.0, False)
    assert found["study"]["noise"] == "honest = 3"
    words = tacit("study", "trust", "study.toml", "me.toml").out
    assert "it does NOT suffice" in words
    tacit("policy", "trust", "me.toml", *(w for n in "345" for w in ("--server", n * 64)))
    assert tacit("study", "trust", "study.toml", "me.toml", "--json").document["suffices"]
    tacit("keys", "new", "stranger")
    tacit("policy", "trust", "me.toml", "--servers", "2", "--key", "stranger")
    assert "no holder of this study" in tacit("study", "trust", "study.toml", "me.toml", code=3).err


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize(("trust", "enough"), [(4, True), (3, True), (2, False), (5, False)])
def test_a_holder_refuses_noise_that_its_trust_does_not_bear(
    tacit: Any, trust: int, enough: bool
) -> None:
    study = str(written(tacit, "--noise", "honest=3", servers=4))
    in_force(trust=trust)
    if enough:
        tacit("policy", "check", study, "--dataset", "course")
    else:
        refused_by(tacit, "trust", "join", study, "--data", "course.csv")


def test_approvers_sign_that_two_data_sets_are_distinct(tacit: Any) -> None:
    keys = [SigningKey.of_holder()]
    tacit("keys", "new", "board")
    keys.append(SigningKey.load_or_create(tacit_home() / "keys" / "board.pem"))
    document = {
        "format": "tacit policy 1",
        "name": "clinic",
        "approvers": [key.public_key for key in keys],
        "needed": 2,
        "datasets": {"*": {}},
    }
    ledger = Ledger(ledger_path())
    ledger.decisions.use(Policy.from_dict(document).signed(keys[0]).signed(keys[1]))
    words = ("budget", "distinct", "a", "b", "--reason", "two clinics")
    assert "1 have" in tacit(*words, code=4).err  # the holder is one of them
    tacit(*words, "--key", "board", "--out", "yes.toml")
    assert "approves something else" in tacit(*words[:-1], "why", "--from", "yes.toml", code=3).err
    assert ledger.entries()[-1].kind == "approve"
    tacit(*words, "--from", "yes.toml")
    assert ledger.entries()[-1].kind == "distinct"
