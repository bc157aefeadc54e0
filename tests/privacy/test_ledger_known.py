"""Known records: a table under another name has no budget of its own."""

from __future__ import annotations

import logging
import multiprocessing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.data.digests import digests_of_arrays
from tacit.errors import BudgetExceeded, InputError, Refused, UsageError
from tacit.privacy.ledger import Ledger, RecordDigests
from tacit.privacy.ledger.known import KnownRecords, compared
from tacit.privacy.ledger.known_file import Header, KnownFile, layout_of, write_known
from tacit.privacy.promise import Promise

PROMISE = Promise(0.1)


def table(rows: int, seed: int = 0, columns: int = 4) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, columns))


def ledger_with(folder: Path, *names: str) -> Ledger:
    ledger = Ledger(folder / "ledger.db")
    for name in names:
        ledger.allow(name, "record", epsilon=10.0)
    return ledger


def charge(ledger: Ledger, name: str, rows: np.ndarray, y: np.ndarray | None = None) -> None:
    ledger.reserve(PROMISE, name, "count", records=digests_of_arrays(rows, y)).commit()


def charge_all(ledger: Ledger, name: str, tables: list[np.ndarray]) -> None:
    for rows in tables:
        charge(ledger, name, rows)


def know_all(ledger: Ledger, name: str, windows: list[np.ndarray]) -> None:
    for rows in windows:
        ledger.know(name, digests_of_arrays(rows))


def spent(ledger: Ledger, name: str) -> float:
    return float(ledger.balance(name, "record").spent.epsilon)


# ── recognised ──

ROWS = table(200)
ALTERED = ROWS.copy()
ALTERED[::10] += 1
COPIES = {
    "the same": ROWS,
    "shuffled": ROWS[np.random.default_rng(1).permutation(200)],
    "a subset": ROWS[50:90],
    "one record": ROWS[7:8],
    "a superset": np.vstack([ROWS, table(800, seed=2)]),
    "altered here and there": ALTERED,
    "written out twice": np.vstack([ROWS, ROWS]),
    "half of it twice": np.vstack([ROWS, ROWS[:100]]),
}


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES.keys())
def test_a_copy_under_another_name_is_refused_with_both_names(
    tmp_path: Path, copy: np.ndarray
) -> None:
    ledger = ledger_with(tmp_path, "adult", "copy")
    charge(ledger, "adult", ROWS)
    with pytest.raises(Refused, match=r"'adult'.*'copy'") as refused:
        charge(ledger, "copy", copy)
    assert "--dataset adult" in str(refused.value)
    assert "tacit budget distinct copy adult --reason" in str(refused.value)
    assert spent(ledger, "copy") == 0
    assert not ledger.open_spends()
    charge(ledger, "adult", copy)  # by its own name it is charged as before


def test_other_records_have_a_budget_of_their_own(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path, "a", "b")
    charge(ledger, "a", table(200, seed=1))
    charge(ledger, "b", table(200, seed=2))
    assert spent(ledger, "b") == 0.1


@pytest.mark.parametrize(("common", "known"), [(19, False), (30, True)])
def test_a_tenth_may_be_known(tmp_path: Path, common: int, known: bool) -> None:
    ledger = ledger_with(tmp_path, "a", "b")
    charge(ledger, "a", ROWS)
    mixed = np.vstack([ROWS[:common], table(200 - common, seed=3)])
    if not known:
        charge(ledger, "b", mixed)
        return
    with pytest.raises(Refused):
        charge(ledger, "b", mixed)


def test_a_tenth_at_a_time_does_not_carry_a_table_over(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path, "a", "b")
    charge(ledger, "a", ROWS)
    grown = table(400, seed=3)
    charge(ledger, "b", grown)
    with pytest.raises(Refused):
        charge(ledger, "b", np.vstack([grown, ROWS[:20]]))  # 5 % of all, 100 % of what is new


def test_what_was_not_reserved_is_not_known(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path, "a", "b")
    ledger.allow("a", "record", epsilon=0.01)
    with pytest.raises(BudgetExceeded):
        charge(ledger, "a", ROWS)
    charge(ledger, "b", ROWS)
    assert ledger.known.counts() == {"b": 200}


def test_the_label_and_the_number_of_columns_count(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path, "a", "b", "c")
    labels = np.arange(200.0)
    charge(ledger, "a", ROWS, labels)
    charge(ledger, "b", ROWS, labels + 1)
    charge(ledger, "c", ROWS)


def test_pieces_that_are_each_below_a_tenth_add_up(tmp_path: Path) -> None:
    """Nine in a hundred of every piece: after some, more than a tenth of the other data set."""
    ledger = ledger_with(tmp_path, "a", "b")
    charge(ledger, "a", ROWS)
    pieces = [
        np.vstack([table(250, seed=piece + 10), ROWS[piece * 20 : piece * 20 + 20]])
        for piece in range(4)
    ]
    charge(ledger, "b", pieces[0])
    with pytest.raises(Refused, match=r"'a'.*'b'"):
        charge_all(ledger, "b", pieces[1:])
    again = Ledger(tmp_path / "ledger.db")
    with pytest.raises(Refused):
        charge(again, "b", np.vstack([table(250, seed=99), ROWS[-20:]]))


def test_matches_are_counted_through_merges(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path, "a", "b")
    charge(ledger, "a", table(5000))
    for piece in range(12):
        charge(ledger, "b", np.vstack([table(250, seed=piece + 1), table(5000)[piece : piece + 1]]))
    own = [f.header for f in ledger.known._files() if f.header.account == "b"]
    assert len(own) < 12
    assert sum(header.matches["a"] for header in own if header.matches) == 12


OVERSAMPLED = {
    "twice, and one row three times": np.r_[0:200, 0:200, 0:1],
    "three quarters twice": np.r_[0:200, 0:150],
    "a bootstrap": np.random.default_rng(2).integers(0, 200, 200),
    "ten bootstraps": np.random.default_rng(3).integers(0, 200, 2000),
}


@pytest.mark.parametrize("places", OVERSAMPLED.values(), ids=OVERSAMPLED.keys())
def test_an_oversampled_copy_does_not_excuse_itself(tmp_path: Path, places: np.ndarray) -> None:
    ledger = ledger_with(tmp_path, "a", "b")
    charge(ledger, "a", ROWS)
    with pytest.raises(Refused):
        charge(ledger, "b", ROWS[places])


# ── windows ──


@pytest.mark.parametrize("seed", range(6))
def test_streams_of_few_booleans_are_not_taken_for_one_another(tmp_path: Path, seed: int) -> None:
    """In windows of five nothing repeats; in the stream nearly everything does."""
    draw = np.random.default_rng(seed)
    records = KnownRecords(tmp_path / "ledger.db")
    with records.locked():
        for name in ("a", "b"):
            for _ in range(25):
                window = digests_of_arrays(draw.integers(0, 2, (5, 7)).astype(float))
                found = records.check(name, window, [], windows=True)
                records.add(name, window, found, windows=True)


def test_one_person_in_two_places_is_no_copy(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path, "a", "b")
    ids = np.arange(200)
    ledger.know("a", digests_of_arrays(ROWS, person=ids))
    for common in range(4):
        window = np.array([common, *range(1000 + 10 * common, 1004 + 10 * common)])
        ledger.know("b", digests_of_arrays(ROWS[:5], person=window))
    with pytest.raises(Refused):
        ledger.know("b", digests_of_arrays(ROWS[:40], person=np.arange(40)))


def test_a_stream_that_is_copied_in_windows_is_noticed(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path, "a", "b")
    for _ in range(2):  # two studies follow the same records
        for start in range(0, 200, 5):
            ledger.know("a", digests_of_arrays(ROWS[start : start + 5]))
    with pytest.raises(Refused):
        ledger.know("b", digests_of_arrays(ROWS[:2]))
    ledger.know("b", digests_of_arrays(table(500, seed=5)))
    with pytest.raises(Refused):
        know_all(ledger, "b", [ROWS[start : start + 2] for start in range(0, 60, 2)])


# ── the holder's word ──


def test_distinct_data_sets_are_stated_and_stay_stated(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path, "a", "b", "c")
    charge(ledger, "a", ROWS)
    ledger.state_distinct("b", "a", "another year, numbered alike")
    again = Ledger(tmp_path / "ledger.db")
    charge(again, "b", ROWS)
    again.verify()
    (entry,) = [e for e in again.entries() if e.kind == "distinct"]
    assert entry.body == {"dataset": "b", "other": "a", "reason": "another year, numbered alike"}
    with pytest.raises(Refused, match="'a'"):
        charge(again, "c", ROWS)


@pytest.mark.parametrize(
    "stated", [("a", "a", "why"), ("a", "b", ""), ("a", "b", "two\nlines"), (" a", "b", "why")]
)
def test_a_statement_names_two_data_sets_and_a_reason(
    tmp_path: Path, stated: tuple[str, str, str]
) -> None:
    ledger = ledger_with(tmp_path, "a", "b")
    with pytest.raises(UsageError):
        ledger.state_distinct(*stated)


# ── too little entropy ──


def test_ten_booleans_go_by_their_name_and_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    draw = np.random.default_rng(5)
    ledger = ledger_with(tmp_path, "a", "b")
    charge(ledger, "a", draw.integers(0, 2, (20_000, 10)))
    with caplog.at_level(logging.WARNING, "tacit.ledger"):
        charge(ledger, "b", draw.integers(0, 2, (20_000, 10)))
    assert "'b' repeat too often to tell" in caplog.text
    assert "'a'" in caplog.text


@settings(max_examples=60, deadline=None)
@given(
    values=st.integers(2, 12),
    columns=st.integers(1, 12),
    skew=st.floats(0.5, 3.0),
    sizes=st.tuples(st.integers(40, 3000), st.integers(40, 3000)),
    seed=st.integers(0, 2**32),
)
def test_independent_tables_of_any_entropy_are_not_taken_for_one_another(
    values: int, columns: int, skew: float, sizes: tuple[int, int], seed: int
) -> None:
    """Drawn from one distribution, from a handful of possible rows to nearly no repetition."""
    draw = np.random.default_rng(seed)
    weights = np.arange(1, values + 1.0) ** -skew
    weights /= weights.sum()

    def sample(rows: int) -> RecordDigests:
        return digests_of_arrays(draw.choice(values, (rows, columns), p=weights).astype(float))

    assert not judged(sample(sizes[0]), sample(sizes[1])).is_known


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(300, 2000),
    part=st.floats(0.3, 1.0),
    twice=st.floats(0.0, 0.5),
    seed=st.integers(0, 2**32),
)
def test_copies_of_tables_in_which_rows_differ_are_recognised(
    rows: int, part: float, twice: float, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    known = draw.normal(size=(rows, 3))
    known = np.vstack([known, known[: int(twice * rows)]])
    copy = draw.permutation(known)[: int(part * len(known))]
    assert judged(digests_of_arrays(known), digests_of_arrays(copy)).is_known


def judged(known: RecordDigests, asked: RecordDigests):  # type: ignore[no-untyped-def]
    from tacit.privacy.ledger.known import chance_of_match

    count = len(known.digests)
    header = Header("a", known.columns, known.key, count, known.rows, count, known.alone)
    matches = len(np.intersect1d(known.digests, asked.digests))
    return compared(len(asked.digests), matches, chance_of_match([header]))


def test_ids_are_told_apart_however_often_they_occur() -> None:
    persons = np.repeat(np.arange(100), 30)
    digests = digests_of_arrays(table(3000), person=persons)
    assert (digests.rows, digests.alone, len(digests.digests)) == (100, 100, 100)


# ── the file ──


@settings(max_examples=50, deadline=None)
@given(
    count=st.sampled_from([1, 2, 50, 300, 5000, 70_000]),
    seed=st.integers(0, 2**32),
    bits=st.sampled_from([20, 33, 48]),
)
def test_a_file_has_what_was_written_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, count: int, seed: int, bits: int
) -> None:
    draw = np.random.default_rng(seed)
    digests = np.unique(draw.integers(0, 2**bits, count, dtype=np.uint64))
    path = tmp_path_factory.mktemp("known") / "a.known"
    write_known(path, header_of("a", digests), digests)
    file = KnownFile(path)
    assert np.array_equal(file.digests, digests)
    asked = np.unique(np.concatenate([digests[::3], draw.integers(0, 2**bits, 500, np.uint64)]))
    assert np.array_equal(file.has(asked), np.isin(asked, digests))
    assert not len(file.has(asked[:0]))


def header_of(name: str, digests: np.ndarray) -> Header:
    return Header(name, "c", "k", len(digests), len(digests), len(digests), len(digests))


def test_a_hundred_million_records_take_less_than_400_mb() -> None:
    prefix = layout_of(10**8)
    # Prefixes have six digests each on average; 256 or more have a probability below e^-700.
    assert 256**prefix + 10**8 * (6 - prefix) <= 320_000_000


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "grown", "header", "version"])
def test_a_damaged_file_is_an_error_that_says_what_to_do(tmp_path: Path, damage: str) -> None:
    ledger = ledger_with(tmp_path, "a", "b")
    charge(ledger, "a", ROWS)
    (path,) = ledger.known.folder.glob("*.known")
    content = bytearray(path.read_bytes())
    match damage:
        case "cut":
            content = content[:-1]
        case "changed":
            content[-100] ^= 1
        case "empty":
            content = bytearray()
        case "grown":
            content += b"\0"
        case "header":
            content[8:12] = b"\xff\xff\xff\x7f"
        case "version":
            content[4] = 9
    path.write_bytes(content)
    other = Ledger(tmp_path / "ledger.db")
    with pytest.raises(InputError, match=path.name) as raised:
        charge(other, "b", ROWS)
    assert "version of tacit" in str(raised.value) or "remove it" in str(raised.value)
    assert spent(other, "b") == 0
    path.unlink()
    charge(other, "b", ROWS)


def test_any_changed_byte_is_noticed(tmp_path: Path) -> None:
    digests = np.arange(50, dtype=np.uint64)
    path = tmp_path / "a.known"
    write_known(path, header_of("a", digests), digests)
    content = path.read_bytes()
    for place in range(0, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        with pytest.raises(InputError):
            KnownFile(path)


def test_a_lost_secret_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = ledger_with(tmp_path, "a", "b")
    charge(ledger, "a", ROWS)
    monkeypatch.setenv("TACIT_HOME", str(tmp_path / "another"))
    with pytest.raises(InputError, match=r"keys/records\.key"):
        charge(ledger, "b", ROWS)


def test_nothing_of_a_record_is_in_the_file(tmp_path: Path) -> None:
    """The digests of two homes have nothing in common, though the records are the same."""
    ledger = ledger_with(tmp_path, "a")
    charge(ledger, "a", ROWS)
    (path,) = ledger.known.folder.glob("*.known")
    assert (path.stat().st_mode & 0o777, ledger.known.folder.stat().st_mode & 0o777) == (
        0o600,
        0o700,
    )
    assert not any(row.tobytes()[:8] in path.read_bytes() for row in ROWS)


def test_digests_differ_between_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = digests_of_arrays(ROWS)
    monkeypatch.setenv("TACIT_HOME", str(tmp_path / "another"))
    second = digests_of_arrays(ROWS)
    assert not np.intersect1d(first.digests, second.digests).size
    assert first.key != second.key


# ── growing, crashes, processes ──


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 500), st.integers(1, 80)), min_size=1, max_size=25))
def test_many_tables_are_the_union_of_all_in_few_files(
    tmp_path_factory: pytest.TempPathFactory, parts: list[tuple[int, int]]
) -> None:
    everything, known = table(600), set()
    records = KnownRecords(tmp_path_factory.mktemp("known") / "ledger.db")
    with records.locked():
        for start, length in parts:
            part = digests_of_arrays(everything[start : start + length])
            records.add("a", part, records.check("a", part, ()))
            known |= set(range(start, start + length))
    files = records._files()
    found = np.unique(np.concatenate([file.digests for file in files]))
    assert np.array_equal(found, digests_of_arrays(everything[sorted(known)]).digests)
    assert len(files) <= 1 + np.log2(len(known))
    assert records.counts()["a"] == len(known)


class Crash(BaseException):
    """The process ends here."""


def test_after_a_crash_anywhere_what_was_drawn_for_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after every file that is written or removed; noise is drawn after `reserve`."""
    for crash_at in range(400):
        folder = tmp_path / str(crash_at)
        folder.mkdir()
        drawn = charged_until_crash(folder, crash_at, monkeypatch)
        monkeypatch.undo()
        monkeypatch.setenv("TACIT_HOME", str(tmp_path / "tacit-home"))
        known = {file.path: file for file in Ledger(folder / "ledger.db").known._files()}
        found = np.concatenate([f.digests for f in known.values()]) if known else np.zeros(0)
        for rows in drawn:
            assert np.isin(digests_of_arrays(rows).digests, found).all()
        if len(drawn) == 6:
            assert crash_at > 20
            return
    pytest.fail("it never came to its end")


def charged_until_crash(
    folder: Path, crash_at: int, monkeypatch: pytest.MonkeyPatch
) -> list[np.ndarray]:
    """The tables for which noise may have been drawn."""
    from tacit.privacy.ledger import known

    ledger = ledger_with(folder, "a")
    left = [crash_at]

    def step() -> None:
        if left[0] == 0:
            raise Crash
        left[0] -= 1

    def crashing(function):  # type: ignore[no-untyped-def]
        def wrapped(*args, **kwargs):  # type: ignore[no-untyped-def]
            step()
            found = function(*args, **kwargs)
            step()
            return found

        return wrapped

    monkeypatch.setattr(known, "write_known", crashing(known.write_known))
    monkeypatch.setattr(known.Path, "unlink", crashing(Path.unlink))
    drawn = []
    try:
        for number in range(6):
            rows = table(30, seed=number)
            reservation = ledger.reserve(PROMISE, "a", "n", records=digests_of_arrays(rows))
            drawn.append(rows)
            reservation.mark_drawn()
    except Crash:
        pass
    return drawn


def test_a_full_disk_leaves_nothing_reserved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tacit.privacy.ledger import known

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    ledger = ledger_with(tmp_path, "a")
    monkeypatch.setattr(known, "write_known", full)
    with pytest.raises(OSError, match="No space"):
        charge(ledger, "a", ROWS)
    assert not ledger.open_spends()
    assert spent(ledger, "a") == 0


def _charging(folder: str, name: str, barrier, told) -> None:  # type: ignore[no-untyped-def]
    ledger = Ledger(Path(folder) / "ledger.db")
    records = digests_of_arrays(ROWS)
    barrier.wait(60)
    try:
        ledger.reserve(PROMISE, name, "count", records=records).commit()
        told.put((name, "charged"))
    except Refused:
        told.put((name, "refused"))


def test_of_processes_that_charge_a_table_at_once_under_many_names_one_succeeds(
    tmp_path: Path,
) -> None:
    names = ["a", "b", "c", "d"]
    ledger = ledger_with(tmp_path, *names)
    digests_of_arrays(ROWS)  # so that all find one secret
    context = multiprocessing.get_context("spawn")
    barrier, told = context.Barrier(len(names)), context.Queue()
    processes = [
        context.Process(target=_charging, args=(str(tmp_path), name, barrier, told))
        for name in names
    ]
    for process in processes:
        process.start()
    outcomes = dict(told.get(timeout=120) for _ in names)
    for process in processes:
        process.join(60)
    assert sorted(outcomes.values()) == ["charged", "refused", "refused", "refused"]
    assert sum(spent(ledger, name) for name in names) == pytest.approx(0.1)
