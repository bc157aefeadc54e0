"""Whose a record is, is the holder's word: not that of whoever writes a study."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.channels.federation.local import local_study
from tacit.channels.studies.asked import asked_by, asked_by_holder, whose
from tacit.cli.main import cli
from tacit.crypto.signing import SigningKey
from tacit.data.schema import Column, Layout, Schema
from tacit.errors import Refused
from tacit.privacy.ledger import Ledger
from tacit.privacy.policy import Asked, Policy
from tacit.privacy.promise import Promise
from tacit.programs.histogram import Histogram

KEY = SigningKey.generate()
KEYS = [SigningKey.generate() for _ in range(3)]
PERSON = Promise(1.0, unit="person")


def asked(person: str | None, **more: Any) -> Asked:
    return Asked(program="histogram", columns=("ill",), author=None, person=person, **more)


def schema(person: str | None, header: bool = True) -> Schema:
    ids = (
        Column(name=name, type="text", role="person" if name == person else "ignore")
        for name in ("patient", "visit")
    )
    columns = (Column(name="ill", type="boolean"), *ids)
    return Schema(columns=columns, file=Layout(header=header, skip_rows=int(not header)))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "ledger.db")
    made.allow("patients", "record", 100.0)
    made.allow("patients", "person", 100.0, most_records=5)
    return made


def put_in_force(ledger: Ledger, **rules: Any) -> None:
    before = ledger.decisions.policy
    document = {
        "format": "tacit policy 1",
        "name": "clinic",
        "number": 1 if before is None else before.number + 1,
        "approvers": [KEY.public_key],
        "datasets": {"patients": rules},
    }
    ledger.decisions.use(Policy.from_dict(document).signed(KEY))


def refused(ledger: Ledger, words: str, ask: Asked | None, promise: Promise = PERSON) -> None:
    head = ledger.head
    with pytest.raises(Refused, match=words):
        ledger.reserve(promise, "patients", "study", asked=ask)
    assert not ledger.affords(promise, "patients", asked=ask)
    assert ledger.head == head


@pytest.mark.parametrize("promise", [Promise(1.0), PERSON])
def test_the_first_study_with_a_person_column_settles_which_it_is(
    ledger: Ledger, promise: Promise
) -> None:
    ledger.reserve(Promise(1.0), "patients", "none", asked=asked(None)).commit()
    ledger.reserve(promise, "patients", "first", asked=asked("patient")).commit()
    words = "by column visit here, and by column patient as in what was spent before"
    for again in (ledger, Ledger(ledger.path)):
        assert again.decisions.person("patients") == "patient"
        refused(again, words, asked("visit"))
        refused(again, words, asked("visit"), Promise(1.0))
        refused(again, "by no column here, and by column patient", asked(None))
        refused(again, "by no column here, and by column patient", None)
    ledger.reserve(Promise(1.0), "patients", "records alone", asked=asked(None)).commit()
    ledger.reserve(PERSON, "patients", "the same", asked=asked("patient")).commit()
    ledger.verify()


def test_what_was_given_back_settles_nothing(ledger: Ledger) -> None:
    ledger.reserve(PERSON, "patients", "first", asked=asked("visit")).release()
    ledger.reserve(PERSON, "patients", "second", asked=asked("patient")).commit()
    ledger.reserve(PERSON, "patients", "third", asked=asked("patient")).release()
    refused(ledger, "by column patient", asked("visit"))


def test_the_holder_says_it_beforehand_and_may_correct_it_until_it_is_used(ledger: Ledger) -> None:
    ledger.decisions.state_person("patients", "visit")
    ledger.decisions.state_person("patients", "patient")
    head = ledger.head
    ledger.decisions.state_person("patients", "patient")
    assert ledger.head == head
    refused(ledger, "by column patient by its holder's word", asked("visit"))
    ledger.reserve(PERSON, "patients", "study", asked=asked("patient")).commit()
    with pytest.raises(Refused, match="told persons apart by column patient"):
        ledger.decisions.state_person("patients", "visit")
    assert Ledger(ledger.path).decisions.person("patients") == "patient"


def test_a_policy_says_it(ledger: Ledger) -> None:
    put_in_force(ledger, person="patient")
    refused(
        ledger,
        "rule datasets.patients.person: asked column visit; allowed column patient",
        asked("visit"),
    )
    refused(ledger, "rule datasets.patients.person: asked no column", asked(None))
    ledger.reserve(Promise(1.0), "patients", "records", asked=asked(None)).commit()
    ledger.reserve(PERSON, "patients", "persons", asked=asked("patient")).commit()
    (broken,) = ledger.decisions.policy.broken("patients", PERSON, asked("visit"))  # type: ignore[union-attr]
    assert (broken.rule, broken.asked) == ("datasets.patients.person", "column visit")


def test_a_policy_about_persons_does_not_leave_it_to_the_author(ledger: Ledger) -> None:
    put_in_force(ledger, unit="person")
    refused(ledger, "the policy is about persons.*budget allow patients --person", asked("visit"))
    ledger.decisions.state_person("patients", "patient")
    refused(ledger, "by its holder's word", asked("visit"))
    ledger.reserve(PERSON, "patients", "study", asked=asked("patient")).commit()


def test_nor_does_somebody_who_is_left_out(ledger: Ledger) -> None:
    ledger.decisions.leave_out("patients", ["3"])
    refused(ledger, "people are left out.*--person COLUMN", asked("visit"), Promise(1.0))
    refused(ledger, "do not say whose they are", asked(None), Promise(1.0))
    ledger.decisions.state_person("patients", "patient")
    refused(ledger, "by its holder's word", asked("visit"), Promise(1.0))
    ledger.reserve(PERSON, "patients", "study", asked=asked("patient")).commit()


def test_a_study_and_a_run_of_ones_own_say_their_column(ledger: Ledger) -> None:
    study = local_study(Histogram(), 2, schema("visit"), PERSON, KEYS, None, 1)
    assert (asked_by(study).person, asked_by(study).by_position) == ("visit", False)
    assert asked_by_holder(ledger, "histogram", ("ill",), schema("visit")).person == "visit"
    assert asked_by_holder(ledger, "histogram", ("ill",)).person is None


def test_without_a_header_a_column_is_known_by_its_place(ledger: Ledger) -> None:
    assert whose(schema("visit", header=False)) == {"person": "#3", "by_position": True}
    assert whose(schema(None, header=False)) == {"person": None, "by_position": True}
    ledger.decisions.state_person("patients", "visit")
    refused(ledger, "by column #3 here", asked(**whose(schema("visit", header=False))))


def test_a_column_policy_refuses_names_that_only_the_author_gives(ledger: Ledger) -> None:
    put_in_force(ledger, columns=["ill"])
    by_position = asked(None, by_position=True)
    refused(
        ledger, "rule datasets.patients.headerless: .* without a header", by_position, Promise(1)
    )
    put_in_force(ledger, columns=["ill"], headerless=True)
    ledger.reserve(Promise(1.0), "patients", "study", asked=by_position).commit()
    put_in_force(ledger, columns=["ill"], headerless=False)
    refused(ledger, "headerless", by_position, Promise(1.0))
    put_in_force(ledger, programs=["histogram"])
    ledger.reserve(Promise(1.0), "patients", "study", asked=by_position).commit()


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["reserve", "state"]),
            st.sampled_from([None, "a", "b"]),
            st.booleans(),
            st.booleans(),
        ),
        max_size=8,
    )
)
def test_one_data_set_never_has_two_person_columns(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, str | None, bool, bool]]
) -> None:
    ledger = Ledger(tmp_path_factory.mktemp("ledger") / "ledger.db")
    ledger.allow("patients", "record", 100.0)
    ledger.allow("patients", "person", 100.0, most_records=2)
    for act, column, per_person, kept in acts:
        try:
            if act == "state" and column is not None:
                ledger.decisions.state_person("patients", column)
            elif act == "reserve":
                promise = PERSON if per_person else Promise(1.0)
                found = ledger.reserve(promise, "patients", "study", asked=asked(column))
                found.commit() if kept else found.release()
        except Refused:
            continue
    bodies = {e.seq: e.body for e in ledger.entries() if e.kind == "reserve"}
    spent = [bodies[e.body["reservation"]] for e in ledger.entries() if e.kind == "commit"]
    assert len({body["person"] for body in spent} - {None}) <= 1
    Ledger(ledger.path).verify()


def test_on_the_command_line(tmp_path: Path) -> None:
    def run(*arguments: str) -> Any:
        return CliRunner().invoke(cli, ["budget", *arguments, "--ledger", str(tmp_path / "l.db")])

    said = run("allow", "patients", "--person", "patient")
    assert "patients: persons are told apart by column patient." in said.stdout
    both = run("allow", "patients", "--epsilon", "1", "--unit", "person", "--person", "patient")
    assert both.exit_code == 0
    assert json.loads(run("show", "--json").stdout)["persons"] == {"patients": "patient"}
    assert "persons are told apart" in run("show").stdout
    assert run("allow", "patients").exit_code == 2
