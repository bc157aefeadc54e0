"""Files that grow, are rotated, copied, cut and reordered: no record is used twice, and none is
passed over without a word."""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tacit.channels.federation.follow import Followed
from tacit.channels.federation.local import local_study
from tacit.channels.federation.noise_plan import asked_by
from tacit.channels.federation.outbox import Outbox
from tacit.channels.roles.store import MEMORY
from tacit.channels.studies.study import Online, Study, TakePart
from tacit.crypto.signing import SigningKey
from tacit.data.schema import Column, Schema
from tacit.errors import InputError
from tacit.home import tacit_home
from tacit.privacy.promise import Promise
from tacit.programs.contribute import decoded
from tacit.programs.histogram import Histogram
from tacit.programs.program import Plan
from tacit.programs.states import state_bytes

MOST = 64  # different records, each with a number of its own
COLUMNS = tuple(f"id{i}" for i in range(7))  # the number, so often that it is no coincidence
KEYS = [SigningKey.generate() for _ in range(3)]


def study_over(schema: Schema, records: int = 10**6) -> Study:
    plain = local_study(Histogram(), 2, schema, Promise(1.0, 1e-6), KEYS)
    part = TakePart(minimum=1, maximum=2, records=records)
    online = msgspec.structs.replace(plain, take_part=part, online=Online(windows=1))
    return online.running(Histogram())


NUMBERED = study_over(
    Schema(
        columns=tuple(
            Column(name=n, type="category", categories=tuple(str(i) for i in range(MOST)))
            for n in COLUMNS
        )
    )
)
ILL = study_over(Schema(columns=(Column(name="ill", type="boolean"),)))


def text(rows: list[int]) -> str:
    lines = [",".join(COLUMNS), *(",".join([str(row)] * len(COLUMNS)) for row in rows)]
    return "\n".join(lines) + "\n"


class Holder:
    """Windows of one holder, and how often each record was used."""

    def __init__(self, path: Path, study: Study = NUMBERED) -> None:
        self.path, self.study = path, study
        self.outbox = Outbox(MEMORY, study.digest)
        self.state, self.query = asked_by(study, 1, state_bytes(study.first_state()))
        self.used = np.zeros(MOST)
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.windows = 0
        self.restart()

    def restart(self) -> None:
        self.followed = Followed(
            self.study,
            self.path,
            self.outbox,
            lambda event, **fields: self.events.append((event, fields)),
        )

    def window(self) -> list[int]:
        """The numbers of the records that were used."""
        made = self.followed.contribute(1, self.state, self.query)
        self.windows += 1
        self.outbox.keep(self.windows, bytes(32), {"a": b"x"}, made.used)
        counts = np.asarray(decoded(made.total, self.query))[: len(self.used)].round()
        self.used[: len(counts)] += counts
        return [int(n) for n in np.repeat(np.arange(len(counts)), counts.astype(int))]

    def named(self, event: str) -> list[str]:
        return [fields["file"] for name, fields in self.events if name == event]


@pytest.fixture
def holder(tmp_path: Path) -> Holder:
    return Holder(tmp_path)


def write(holder: Holder, name: str, rows: list[int]) -> None:
    (holder.path / name).write_text(text(rows))


# ── what happens to logs ──


def test_a_rotated_log_is_known_again_and_its_successor_is_new(holder: Holder) -> None:
    write(holder, "log.csv", [1, 2, 3])
    assert holder.window() == [1, 2, 3]
    write(holder, "log.csv", [1, 2, 3, 4])  # between the last look and the rotation
    os.rename(holder.path / "log.csv", holder.path / "log.1.csv")
    write(holder, "log.csv", [5, 6])
    assert holder.window() == [4, 5, 6]
    assert holder.named("file renamed") == ["log.1.csv"]
    os.rename(holder.path / "log.1.csv", holder.path / "log.2.csv")
    os.rename(holder.path / "log.csv", holder.path / "log.1.csv")
    write(holder, "log.csv", [7])
    holder.restart()
    assert holder.window() == [7]
    os.unlink(holder.path / "log.2.csv")
    assert holder.window() == []


def test_the_log_that_was_reported(tmp_path: Path) -> None:
    """Records that are all alike: three true ones are rotated, four false ones follow."""
    holder = Holder(tmp_path, ILL)
    (tmp_path / "log.csv").write_text("ill\n" + "true\n" * 3)
    assert holder.window() == [1, 1, 1]
    os.rename(tmp_path / "log.csv", tmp_path / "log.1.csv")
    (tmp_path / "log.csv").write_text("ill\n" + "false\n" * 4)
    assert holder.window() == [0, 0, 0, 0]


def test_a_log_that_is_copied_and_emptied(holder: Holder) -> None:
    write(holder, "log.csv", [1, 2])
    assert holder.window() == [1, 2]
    write(holder, "log.csv", [1, 2, 3])
    shutil.copy(holder.path / "log.csv", holder.path / "log.1.csv")
    assert holder.window() == [3]  # once, though it is there twice
    assert holder.named("file left out") == ["log.1.csv"]
    (holder.path / "log.csv").write_text("")
    assert holder.window() == []
    write(holder, "log.csv", [4])
    assert holder.window() == [4]


def test_a_compressed_log(holder: Holder) -> None:
    write(holder, "log.csv", [1, 2])
    assert holder.window() == [1, 2]
    (holder.path / "log.1.csv.gz").write_bytes(gzip.compress(text([1, 2, 3]).encode()))
    write(holder, "log.csv", [4])
    assert holder.window() == [3, 4]


@pytest.mark.parametrize("rows", [[2, 1, 3], [1, 2], [9, 8, 7, 6], [1, 2, 9, 9]])
def test_a_log_that_is_not_what_it_was_is_refused(holder: Holder, rows: list[int]) -> None:
    write(holder, "log.csv", [1, 2, 3])
    holder.window()
    write(holder, "log.csv", rows)
    for _ in range(2):
        with pytest.raises(InputError, match=r"log\.csv .* a name that no file had"):
            holder.window()
        holder.restart()
    os.rename(holder.path / "log.csv", holder.path / "new.csv")
    if rows[0] == 9:  # the remedy
        assert holder.window() == sorted(rows)


def test_a_log_that_is_reordered_beside_its_copy_is_refused(holder: Holder) -> None:
    write(holder, "log.csv", [1, 2, 3])
    holder.window()
    write(holder, "copy.csv", [1, 2, 3])
    write(holder, "log.csv", [3, 2, 1])
    with pytest.raises(InputError, match=r"log\.csv has 3 of the records .* copy\.csv too"):
        holder.window()


def test_a_single_file_that_was_rotated_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text(text([1, 2]))
    holder = Holder(log)
    assert holder.window() == [1, 2]
    os.rename(log, tmp_path / "log.1.csv")
    log.write_text(text([3]))
    with pytest.raises(InputError, match="follow the folder"):
        holder.window()


def test_two_copies_in_one_window(holder: Holder) -> None:
    write(holder, "a.csv", [1, 2])
    write(holder, "b.csv", [1, 2, 3])
    assert holder.window() == [1, 2, 3]
    assert holder.named("file left out") == ["a.csv"]


def test_records_that_are_too_alike_go_by_name_and_it_is_said(tmp_path: Path) -> None:
    holder = Holder(tmp_path, ILL)
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("ill\ntrue\n")
    assert holder.window() == [1, 1]
    assert holder.named("file alike") == ["b.csv"]
    assert holder.window() == []


def test_counts_of_earlier_versions_are_adopted(holder: Holder) -> None:
    holder.outbox.database.execute("INSERT INTO used VALUES ('log.csv', 2)")
    write(holder, "log.csv", [1, 2, 3])
    assert holder.window() == [3]
    assert holder.named("file adopted") == ["log.csv"]
    assert holder.outbox.counted() == {}
    holder.restart()
    os.rename(holder.path / "log.csv", holder.path / "log.1.csv")
    write(holder, "log.csv", [4])
    assert holder.window() == [4]


def test_fewer_records_than_an_earlier_version_has_counted(holder: Holder) -> None:
    holder.outbox.database.execute("INSERT INTO used VALUES ('log.csv', 2)")
    write(holder, "log.csv", [1])
    with pytest.raises(InputError, match=r"fewer records than the 2"):
        holder.window()


def test_half_a_line_is_no_record_yet(holder: Holder) -> None:
    (holder.path / "log.csv").write_text(text([1]) + "2,2")
    assert holder.window() == [1]
    (holder.path / "log.csv").write_text(text([1, 2]))
    assert holder.window() == [2]


def test_more_than_a_window_takes_is_refused(tmp_path: Path) -> None:
    holder = Holder(tmp_path, study_over(NUMBERED.schema, records=2))
    write(holder, "log.csv", [1, 2, 3])
    with pytest.raises(InputError, match="more than 2 new records"):
        holder.window()


def test_a_folder_that_has_not_changed_is_not_read(
    holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(holder, "log.csv", [1])
    holder.window()
    assert not holder.followed._has_new()
    monkeypatch.setattr("tacit.channels.federation.follow.linked_batches", None)
    assert not holder.followed._has_new()


def test_a_file_that_changes_between_look_and_use(
    holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(holder, "log.csv", [1, 2])
    assert holder.followed._has_new()
    look, changed = holder.followed._look, []

    def changing() -> Any:
        found = look()
        if not changed:
            changed.append(True)
            write(holder, "log.csv", [3, 4, 5])
        return found

    monkeypatch.setattr(holder.followed, "_look", changing)
    assert holder.window() == [3, 4, 5]


# ── records that come again ──


@pytest.mark.parametrize(
    ("before", "gone", "after"),
    [
        ({"d1": [1, 2, 3], "d2": [4, 5, 6]}, True, {"month": [1, 2, 3, 4, 5, 6, 7]}),
        ({"d1": [1, 2, 3], "d2": [4, 5, 6]}, False, {"month": [1, 2, 3, 4, 5, 6, 7]}),
        ({"d1": [1, 2, 3], "d2": [4, 5, 6]}, True, {"month": [4, 5, 6, 1, 2, 3, 7]}),
        ({"a": [1, 2, 3]}, True, {"b": [9, 1, 2, 3]}),  # the newest first
        ({"a": [1, 2, 3, 4]}, False, {"b": [3, 4, 5]}),  # the end of it, once more
        ({}, False, {"a": [1, 2, 3], "b": [2, 3, 4]}),  # in one window
        ({"a": [1, 2, 3]}, True, {"b": [3, 2, 1]}),  # sorted otherwise
        ({"a": [1, 2, 3]}, True, {"b": [3, 2, 1, 3, 2, 1]}),
        ({"a": [1, 2, 3]}, False, {"a": [1, 2, 3, 1, 2, 3, 4]}),  # appended as a whole
        ({"a": [1, 2], "b": [3, 4]}, True, {"c": [5, 6, 7, 8, 2, 9, 4]}),
    ],
)
def test_records_that_come_again_are_refused(
    holder: Holder, before: dict[str, list[int]], gone: bool, after: dict[str, list[int]]
) -> None:
    for name, rows in before.items():
        write(holder, f"{name}.csv", rows)
    holder.window()
    if gone:
        for name in before:
            os.unlink(holder.path / f"{name}.csv")
    for name, rows in after.items():
        write(holder, f"{name}.csv", rows)
    culprit = sorted(after)[-1]
    for _ in range(2):
        with pytest.raises(InputError, match=rf"{culprit}\.csv .* Take those out") as told:
            holder.window()
        assert "records.key" not in str(told.value)
        holder.restart()
    os.unlink(holder.path / f"{culprit}.csv")
    others = {row for rows in before.values() for row in rows}
    others |= {row for name in after if name != culprit for row in after[name]}
    new = sorted(set(after[culprit]) - others)
    write(holder, "rest.csv", new)  # the remedy
    assert set(new) <= set(holder.window())
    assert holder.used.max() <= 1


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_in_whatever_order_and_file_two_records_come_again(data: st.DataObject) -> None:
    """Used rows, at least two, mixed among new ones in any way, over any number of new files."""
    with tempfile.TemporaryDirectory() as folder:
        holder = Holder(Path(folder))
        used = list(range(data.draw(st.integers(2, 12))))
        cut = data.draw(st.integers(1, len(used)))
        write(holder, "a.csv", used[:cut])
        write(holder, "b.csv", used[cut:])
        holder.window()
        for name in ("a.csv", "b.csv"):
            if data.draw(st.booleans()):
                os.unlink(holder.path / name)
        again = data.draw(st.lists(st.sampled_from(used), min_size=2, unique=True))
        mixed = data.draw(st.permutations([*again, *range(20, 20 + data.draw(st.integers(0, 9)))]))
        write(holder, "c.csv", mixed)
        holder.restart()
        with suppress(InputError):
            holder.window()
        assert holder.used.max() <= 1
        holder.outbox.close()


def test_records_that_are_often_alike_come_again_by_chance(holder: Holder) -> None:
    """What was used says how often; those that were there once do not come again together."""
    write(holder, "a.csv", [1, 2, 3, 4, 5, *[6] * 3, *[7] * 3])
    holder.window()
    write(holder, "b.csv", [8, 6, 9, 10, 7, 11, 6, 12])
    assert len(holder.window()) == 8
    write(holder, "c.csv", [13, 1, 2, 3, 4, 5, *range(14, 50), 8, 9, 10, 11, 12])
    with pytest.raises(InputError, match=r"c\.csv has 10 records among its 47 new ones"):
        holder.window()


def test_tables_with_repetitions_are_not_refused(tmp_path: Path) -> None:
    """Honest records, some values frequent and many rare, once there is something to go by."""
    draws, most = np.random.default_rng(5), 1200
    numbers = tuple(str(i) for i in range(most))
    columns = [Column(name=n, type="category", categories=numbers) for n in COLUMNS]
    holder = Holder(tmp_path, study_over(Schema(columns=tuple(columns))))
    shares = 1 / np.arange(1, most - 11)
    for day in range(12):
        rows = draws.choice(most - 12, 299, p=shares / shares.sum())
        write(holder, f"{day:02}.csv", [most - 1 - day, *rows.tolist()])  # none begin alike
        assert holder.followed._look()[-1].count == 300
        made = holder.followed.contribute(1, holder.state, holder.query)
        holder.outbox.keep(day + 1, bytes(32), {"a": b"x"}, made.used)


def test_a_copy_with_more_records_goes_on_where_the_other_ends(holder: Holder) -> None:
    """Each day's file holds all so far, and the older ones stay or go."""
    rows: list[int] = []
    for day in range(6):
        rows += [3 * day, 3 * day + 1, 3 * day + 2]
        write(holder, f"day{day}.csv", rows)
        assert holder.window() == rows[-3:]
        if day == 3:
            os.unlink(holder.path / "day1.csv")
            os.unlink(holder.path / "day3.csv")
            holder.restart()
    assert "day5.csv" in holder.named("file goes on")
    assert holder.named("file left out") == []


def test_a_copy_that_grew_otherwise_than_its_original(holder: Holder) -> None:
    write(holder, "a.csv", [1, 2, 3])
    holder.window()
    write(holder, "a.csv", [1, 2, 3, 4])
    write(holder, "b.csv", [1, 2, 3, 5, 6])
    assert holder.window() == [4, 5, 6]


def test_copies_that_grow_by_the_same_records(holder: Holder) -> None:
    """One catches up with the other, both grow at once, one is ahead: each record is used once."""
    write(holder, "a.csv", [1, 2])
    holder.window()
    write(holder, "b.csv", [1, 2, 3])
    assert holder.window() == [3]
    write(holder, "a.csv", [1, 2, 3])
    assert holder.window() == []
    for name in ("a.csv", "b.csv"):
        write(holder, name, [1, 2, 3, 4, 5])
    assert holder.window() == [4, 5]
    write(holder, "a.csv", [1, 2, 3, 4, 5, 6])
    write(holder, "b.csv", [1, 2, 3, 4, 5, 6, 7])
    holder.restart()
    assert holder.window() == [6, 7]
    assert holder.window() == []
    write(holder, "a.csv", [1, 2, 3, 4, 5, 6, 8])  # from here on they differ
    write(holder, "b.csv", [1, 2, 3, 4, 5, 6, 7, 9])
    assert holder.window() == [8, 9]


def test_files_of_records_that_are_alike_are_not_passed_over(tmp_path: Path) -> None:
    """A new file every day, the older ones archived: they often begin alike."""
    holder, draws = Holder(tmp_path, ILL), np.random.default_rng(1)
    for day in range(20):
        for file in tmp_path.glob("*.csv"):
            file.unlink()
        lines = ["true\n" if ill else "false\n" for ill in draws.random(4) < 0.05]
        (tmp_path / f"day{day}.csv").write_text("ill\n" + "".join(lines))
        assert len(holder.window()) == 4


def test_another_key_is_noticed(holder: Holder) -> None:
    write(holder, "a.csv", [1, 2, 3])
    holder.window()
    key = tacit_home() / "keys" / "records.key"
    content = key.read_bytes()
    key.unlink()
    with pytest.raises(InputError, match=r"Put back keys/records\.key"):
        holder.restart()
    key.write_bytes(content)
    holder.restart()
    os.rename(holder.path / "a.csv", holder.path / "b.csv")
    assert holder.window() == []


# ── whatever may happen to files, in any order ──


class Folder(RuleBasedStateMachine):
    """A folder in which every record has a number of its own, and one who keeps count.

    A file is renamed, rewritten or goes on growing between two looks: rewritten and more, nothing
    tells it from a new one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.path = Path(tempfile.mkdtemp())
        self.holder = Holder(self.path)
        self.next = 0
        self.files: dict[str, list[int]] = {}
        self.renamed: set[str] = set()
        self.rewritten: set[str] = set()
        self.gone: set[int] = set()  # cut or written over, so nobody can use them any more

    def teardown(self) -> None:
        self.holder.outbox.close()
        shutil.rmtree(self.path)

    def save(self, name: str) -> None:
        write(self.holder, name, self.files[name])

    def fresh(self, count: int) -> list[int]:
        start, self.next = self.next, min(MOST, self.next + count)
        return list(range(start, self.next))

    @initialize()
    def begin(self) -> None:
        self.files["a.csv"] = self.fresh(2)
        self.save("a.csv")

    @rule(data=st.data(), count=st.integers(1, 3))
    @precondition(lambda self: self.files)
    def append(self, data: Any, count: int) -> None:
        name = data.draw(st.sampled_from(sorted(self.files)))
        if name not in self.rewritten:
            self.files[name] = self.files[name] + self.fresh(count)
            self.save(name)

    @rule(data=st.data(), copy=st.booleans())
    @precondition(lambda self: self.files)
    def rotate(self, data: Any, copy: bool) -> None:
        """Moved away, or copied and emptied; then it grows anew."""
        name = data.draw(st.sampled_from(sorted(self.files)))
        if name in self.rewritten:
            return
        target = f"r{len(self.files)}-{self.next}.csv"
        if target in self.files:
            return
        self.files[target], self.files[name] = self.files[name], self.fresh(1)
        if copy:
            shutil.copy(self.path / name, self.path / target)
        else:
            os.rename(self.path / name, self.path / target)
        self.renamed |= {name, target}
        self.save(name)

    @rule(data=st.data())
    @precondition(lambda self: self.files)
    def rename(self, data: Any) -> None:
        name = data.draw(st.sampled_from(sorted(self.files)))
        target = data.draw(st.sampled_from([f"{letter}.csv" for letter in "abcd"]))
        if target in self.files or name in self.rewritten:
            return
        os.rename(self.path / name, self.path / target)
        self.files[target] = self.files.pop(name)
        self.renamed.add(target)

    @rule(data=st.data(), cut=st.booleans())
    @precondition(lambda self: self.files)
    def rewrite(self, data: Any, cut: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.files)))
        rows = self.files[name]
        if name in self.renamed or len(rows) < 2:
            return
        if cut:
            keep = data.draw(st.integers(0, len(rows) - 1))
            self.gone |= set(rows[keep:])
            self.files[name] = rows[:keep]
        else:
            self.files[name] = data.draw(st.permutations(rows))
        self.rewritten.add(name)
        self.save(name)

    @rule(data=st.data())
    @precondition(lambda self: self.files)
    def copy(self, data: Any) -> None:
        name = data.draw(st.sampled_from(sorted(self.files)))
        target = f"copy-of-{len(self.files)}-{self.next}.csv"
        count = data.draw(st.integers(0, len(self.files[name])))
        if target not in self.files and name not in self.rewritten:
            self.files[target] = self.files[name][:count]
            self.renamed |= {name, target}
            self.save(target)

    @rule(name=st.sampled_from(["a.csv", "b.csv", "c.csv", "d.csv"]), count=st.integers(1, 3))
    def add(self, name: str, count: int) -> None:
        if name not in self.files:
            self.files[name] = self.fresh(count)
            self.renamed.add(name)
            self.save(name)

    @rule()
    def restart(self) -> None:
        self.holder.restart()

    @rule(times=st.integers(1, 2))
    def window(self, times: int) -> None:
        for _ in range(times):
            self.look()

    @rule(data=st.data(), count=st.integers(1, 3))
    @precondition(lambda self: self.files)
    def append_and_look(self, data: Any, count: int) -> None:
        self.append(data, count)
        self.look()

    def look(self) -> None:
        try:
            self.holder.window()
        except InputError as error:
            culprits = [name for name in self.files if f"{self.path / name} " in str(error)]
            assert len(culprits) == 1
            for name in culprits:  # its holder takes it away, as it is told
                self.gone |= set(self.files.pop(name))
                os.unlink(self.path / name)
            self.holder.restart()
            return
        self.renamed.clear()
        self.rewritten.clear()
        said = set(self.holder.named("file left out"))
        for name, rows in self.files.items():
            missed = [row for row in rows if not self.holder.used[row]]
            assert not missed or name in said, f"{name}: {missed} were passed over in silence"

    @invariant()
    def nothing_twice(self) -> None:
        assert self.holder.used.max() <= 1


TestFolder = Folder.TestCase
TestFolder.settings = settings(
    max_examples=15, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)


# ── several rounds of one window ──


class Rounds(Holder):
    """Two rounds of each of two windows; the same sum is asked in all of them."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.number = 0
        (stage,) = self.study.plan().stages
        places = [(number, turn) for number in (1, 2) for turn in (1, 2)]
        self.study = self.study.running(Histogram())
        plan = Plan(tuple(replace(stage, count=2, window=number) for number in (1, 2)))
        self.study.__dict__["_plan"] = plan
        assert [plan.place(number) for number in (1, 2, 3, 4)] == places
        self.restart()

    def round(self) -> list[int]:
        self.number += 1
        made = self.followed.contribute(self.number, self.state, self.query)
        window = self.study.window_of(self.number)
        self.outbox.keep(self.number, bytes(32), {"a": b"x"}, made.used, window)
        counts = np.asarray(decoded(made.total, self.query))[:MOST].round().astype(int)
        return [int(n) for n in np.repeat(np.arange(MOST), counts)]


def test_all_rounds_of_a_window_are_about_the_same_records(tmp_path: Path) -> None:
    holder = Rounds(tmp_path)
    write(holder, "a.csv", [1, 2])
    write(holder, "b.csv", [5])
    assert holder.round() == [1, 2, 5]
    write(holder, "a.csv", [1, 2, 3])  # in the midst of the window: for the next one
    write(holder, "c.csv", [7])
    os.rename(tmp_path / "b.csv", tmp_path / "d.csv")
    holder.restart()  # after a crash
    assert holder.round() == [1, 2, 5]
    assert holder.round() == [3, 7]
    write(holder, "a.csv", [1, 2, 3, 4])
    assert holder.round() == [3, 7]


def test_a_file_that_vanishes_in_the_midst_of_a_window(tmp_path: Path) -> None:
    holder = Rounds(tmp_path)
    write(holder, "a.csv", [1, 2])
    assert holder.round() == [1, 2]
    write(holder, "a.csv", [1, 9])
    with pytest.raises(InputError, match="in the midst of a window"):
        holder.round()
    write(holder, "a.csv", [1, 2, 9])
    holder.number -= 1
    assert holder.round() == [1, 2]


def test_a_window_that_begins_with_nothing(tmp_path: Path) -> None:
    """What comes before its second round is taken then, and in no other window."""
    holder = Rounds(tmp_path)
    assert holder.round() == []
    write(holder, "a.csv", [4])
    assert holder.round() == [4]
    assert holder.round() == []
    assert holder.round() == []
