"""People left out: found by keyed digests, absent from every sum, and never named anywhere."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.channels.central import Central
from tacit.channels.federation.contribution import from_records
from tacit.channels.federation.local import local_study
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.data.columns import BadCell, check_column
from tacit.data.records import ArrayRecords, TableRecords
from tacit.data.remaining import remaining
from tacit.data.schema import Column, Layout, Schema
from tacit.errors import CheckFailed, Refused
from tacit.estimators import KMeans
from tacit.home import tacit_home
from tacit.privacy.ledger import Ledger
from tacit.privacy.policy import LeftOut
from tacit.privacy.policy.left_out import digests_of, never_whole
from tacit.privacy.promise import Promise
from tacit.programs.histogram import Histogram

SECRET = b"s" * 32


def schema(kind: Any) -> Schema:
    return Schema(
        columns=(
            Column(name="who", type=kind, role="person"),
            Column(name="ward", type="category", categories=("a", "b", "c")),
        )
    )


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setenv("TACIT_HOME", str(tmp_path / "home"))
    made = Ledger(tmp_path / "ledger.db")
    made.allow("patients", "person", 100, most_records=2)
    made.allow("patients", "record", 100)
    return made


def table(path: Path, rows: list[tuple[Any, str]]) -> Path:
    path.write_text("who,ward\n" + "".join(f"{who},{ward}\n" for who, ward in rows))
    return path


# ── identifiers ──


def absent(identifier: str) -> LeftOut:
    return LeftOut("x", frozenset(digests_of(SECRET, identifier)), SECRET)


@pytest.mark.parametrize(
    ("said", "values", "stays"),
    [
        ("7", np.array([7, 8, -7]), [False, True, True]),
        (" 007 ", np.array([7, 70]), [False, True]),
        ("-7", np.array([7, -7], dtype=np.int32), [True, False]),
        ("007", np.array(["007", "7", "0070"], dtype=object), [False, True, True]),
        ("Zoé", np.array(["Zoe\u0301", "Zoé", "Zoe"], dtype=object), [False, False, True]),
        ("a b", np.array([" a b ", "a  b", "A b"], dtype=object), [False, True, True]),
        ("1.0", np.array([1, 10]), [True, True]),
        ("7", np.array(["7", "８"]), [False, True]),
    ],
)
def test_an_identifier_is_known_by_type_blanks_and_composition(
    said: str, values: Any, stays: list[bool]
) -> None:
    assert absent(said).keep(values).tolist() == stays


@given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20))
def test_texts_are_the_same_person_if_their_canonical_forms_are(one: str, other: str) -> None:
    def canonical(text: str) -> str:
        return unicodedata.normalize("NFC", text.strip())

    if not canonical(one):
        return
    (stays,) = absent(one).keep(np.array([other], dtype=object))
    assert stays == (canonical(one) != canonical(other))


@given(st.lists(st.integers(-5, 5), max_size=30), st.sets(st.integers(-5, 5)))
def test_each_record_goes_by_its_own_identifier_alone(people: list[int], gone: set[int]) -> None:
    digests = {d for one in gone for d in digests_of(SECRET, str(one))}
    found = LeftOut("x", frozenset(digests), SECRET).keep(np.array(people, dtype=np.int64))
    assert found.tolist() == [one not in gone for one in people]


def test_another_secret_has_other_digests() -> None:
    assert not set(digests_of(SECRET, "7")) & set(digests_of(b"t" * 32, "7"))


# ── the ledger ──


def test_people_are_counted_and_come_back(ledger: Ledger) -> None:
    assert ledger.decisions.leave_out("patients", ["7", " 7 ", "anna"]) == 2
    assert ledger.decisions.leave_out("patients", ["7"]) == 2
    assert ledger.decisions.left_out_counts == {"patients": 2}
    assert ledger.decisions.leave_out("patients", ["7"], back=True) == 1
    assert ledger.decisions.left_out("patients").keep(np.array([7])).all()
    assert not ledger.decisions.left_out("others")
    ledger.verify()


def test_no_identifier_is_in_any_file(ledger: Ledger, tmp_path: Path) -> None:
    ledger.decisions.leave_out("patients", ["patient-4711", "8675309"])
    for file in tmp_path.rglob("*"):
        data = file.read_bytes() if file.is_file() else b""
        assert b"patient-4711" not in data
        assert b"8675309" not in data


def test_without_the_secret_nobody_is_read_rather_than_everybody(ledger: Ledger) -> None:
    ledger.decisions.leave_out("patients", ["7"])
    (tacit_home() / "keys" / "records.key").unlink()
    for act in (
        lambda: ledger.decisions.left_out("patients"),
        lambda: ledger.decisions.leave_out("patients", ["8"]),
    ):
        with pytest.raises(CheckFailed, match=r"keys/records\.key"):
            act()


# ── sums ──

ROWS = [(1, "a"), (2, "b"), (1, "c"), (3, "c"), (2, "a"), (4, "b")]


@pytest.mark.parametrize("kind", ["integer", "text"])
@pytest.mark.parametrize("unit", ["record", "person"])
def test_a_run_without_them_is_bit_equal_to_one_on_a_table_without_them(
    ledger: Ledger, tmp_path: Path, kind: str, unit: str
) -> None:
    known, promise = schema(kind), Promise(1.0, unit=unit)  # type: ignore[arg-type]
    encoder = Histogram().encoder(known)

    def model(rows: list[tuple[Any, str]]) -> Any:
        records = TableRecords(table(tmp_path / "t.csv", rows), encoder)
        run = Central(ledger=ledger, dataset="patients", randomness=SeededRandomness("7"))
        return run.run(Histogram(), records, known, promise).state

    expected = model([row for row in ROWS if row[0] != 2])
    assert not _same(model(ROWS), expected)
    ledger.decisions.leave_out("patients", ["2"])
    assert _same(model(ROWS), expected)


def _same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)


def test_from_the_next_round_on_also_for_records_in_memory(ledger: Ledger, tmp_path: Path) -> None:
    keys = [SigningKey.generate() for _ in range(3)]
    study = local_study(Histogram(), 4, schema("integer"), Promise(1.0), keys)
    state, query = study.first_state(), study.plan().stage(1).query
    encoder = Histogram().encoder(study.schema)

    def read(rows: list[tuple[Any, str]]) -> TableRecords:
        return TableRecords(table(tmp_path / f"{len(rows)}.csv", rows), encoder)

    (batch,) = read(ROWS).batches()
    memory = ArrayRecords(*batch)
    for records in (memory, read(ROWS)):
        ledger.decisions.leave_out("patients", ["1", "2", "3", "4"], back=True)
        answer = from_records(
            study, records, left_out=lambda: ledger.decisions.left_out("patients")
        )
        for gone in ([], [2], [2, 3], [1, 2, 3, 4]):
            ledger.decisions.leave_out("patients", map(str, gone))
            rest = [row for row in ROWS if row[0] not in gone]
            got = answer(1, state, query).total
            if not rest:
                assert not got.any()  # like a holder who has nothing new: no error tells of it
                continue
            expected = from_records(study, read(rest))(1, state, query).total
            assert np.array_equal(got, expected)


def test_batches_that_are_left_out_whole_are_not_missed(tmp_path: Path) -> None:
    rows = [(1, "a")] * 20_000 + [(2, "b")] * 5
    encoder = Histogram().encoder(schema("integer"))
    records = TableRecords(table(tmp_path / "t.csv", rows), encoder)
    assert sum(len(b.X) for b in remaining(records, absent("1")).batches()) == 5


def test_records_that_do_not_say_whose_they_are_are_refused(ledger: Ledger) -> None:
    ledger.decisions.leave_out("patients", ["7"])
    X = np.random.default_rng(0).random((50, 2))
    head = ledger.head
    model = KMeans(2, bounds=(0, 1), ledger=str(ledger.path), dataset="patients")
    with pytest.raises(Refused, match='role = "person"'):
        model.fit(X)
    assert ledger.head == head


SPELLINGS = st.from_regex(r"[+-]?0{0,40}[0-9]{1,40}", fullmatch=True)


@settings(max_examples=60, deadline=None)
@given(st.lists(SPELLINGS, min_size=1, max_size=5))
def test_whole_numbers_are_read_however_they_are_spelt_and_never_shown(texts: list[str]) -> None:
    column = schema("integer").person
    assert column is not None
    meant = [int(text) for text in texts]
    beyond = [not -(2**63) <= number < 2**63 for number in meant]
    if not any(beyond):
        assert check_column(pa.array(texts), column, Layout()).values.tolist() == meant
        return
    with pytest.raises(BadCell) as caught:
        check_column(pa.array(texts), column, Layout())
    bad = caught.value
    assert bad.index == beyond.index(True)
    assert texts[bad.index] not in f"{bad} {bad.remedy}"


def test_a_number_too_long_for_python_is_refused_without_it() -> None:
    column = schema("integer").person
    assert column is not None
    with pytest.raises(BadCell, match="beyond 64 bits"):
        check_column(pa.array(["7" * 10_000]), column, Layout())


@pytest.mark.parametrize("odd", ["7.0", "1e1", "７", "7" * 31, "0x7", "1'000", "1,000", ".5"])
def test_what_is_nobody_in_a_column_of_integers_is_counted(odd: str) -> None:
    assert never_whole([odd, "7", "+7", "007", " 7 ", "anna", "a7", "e1"]) == 1
