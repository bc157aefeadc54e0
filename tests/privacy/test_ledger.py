"""The ledger: what it allows, what it refuses, what it adds up."""

from __future__ import annotations

import copy
import json
import logging
import math
import os
import pickle
import stat
import threading
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tacit.errors import BudgetExceeded, PromiseError, Refused, Unreachable, UsageError
from tacit.privacy.ledger import Amount, Ledger, Owner, Reservation, Surroundings, chain
from tacit.privacy.ledger.owner import Fate, fate_here
from tacit.privacy.promise import Promise, Unit

if TYPE_CHECKING:
    from collections.abc import Callable


class Scene(Surroundings):
    """Surroundings as a test wants them: a clock that stands, processes that live or not."""

    def __init__(self, pid: int = 1, running: bool = True) -> None:
        self.pid, self.running = pid, running

    def now(self) -> datetime:
        return datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    def owner(self) -> Owner:
        return Owner("here", self.pid, 7)

    def fate(self, owner: Owner) -> Fate:
        return Fate.RUNNING if self.running else Fate.GONE


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "ledger.db")
    made.allow("adult", "record", epsilon=1.0, delta=1e-6)
    return made


def spent(ledger: Ledger) -> Amount:
    return ledger.balance("adult", "record").spent


# ── ceilings ──


def test_a_hundred_tenths_are_exactly_ten(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.allow("adult", "record", epsilon=10)
    for _ in range(100):
        ledger.reserve(Promise(0.1), "adult", "count").commit()
    assert ledger.balance("adult", "record").left == Amount(Fraction(0), Fraction(0))
    with pytest.raises(BudgetExceeded) as refused:
        ledger.reserve(Promise(0.1), "adult", "count")
    assert (refused.value.asked, refused.value.left, refused.value.shortfall) == (0.1, 0.0, 0.1)


def test_an_overspend_names_asked_left_shortfall_and_remedy(ledger: Ledger) -> None:
    ledger.reserve(Promise(0.8, 1e-7), "adult", "count").commit()
    with pytest.raises(BudgetExceeded) as refused:
        ledger.reserve(Promise(0.5), "adult", "count")
    error = refused.value
    assert (error.asked, error.left, error.shortfall) == (0.5, 0.2, 0.3)
    assert "asked ε = 0.5, left ε = 0.2 of 1, short by 0.3" in str(error)
    assert "tacit budget allow adult --unit record --epsilon 1.3 --delta 1e-06" in str(error)
    ledger.allow("adult", "record", 1.3, 1e-6)  # the remedy is enough
    ledger.reserve(Promise(0.5), "adult", "count")


def test_delta_is_a_budget_of_its_own(ledger: Ledger) -> None:
    ledger.reserve(Promise(0.1, 8e-7), "adult", "count").commit()
    with pytest.raises(BudgetExceeded, match="asked δ = 5e-07, left δ = 2e-07 of 1e-06") as refused:
        ledger.reserve(Promise(0.1, 5e-7), "adult", "count")
    assert refused.value.shortfall == 3e-7
    assert "--epsilon 1 --delta 1.3e-06" in str(refused.value)


def test_without_a_budget_nothing_may_be_spent(ledger: Ledger) -> None:
    before = ledger.head
    with pytest.raises(Refused, match="tacit budget allow 'my data' --unit record --epsilon"):
        ledger.reserve(Promise(0.1), "my data", "count")
    with pytest.raises(Refused, match="--unit person"):
        ledger.reserve(Promise(0.1, unit=Unit.PERSON), "adult", "count")
    assert ledger.head == before


def test_no_noise_is_refused_under_a_finite_budget_only(ledger: Ledger) -> None:
    with pytest.raises(Refused, match="epsilon = inf promises nothing"):
        ledger.reserve(Promise(math.inf), "adult", "comparison")
    ledger.allow("public", "record", math.inf)
    ledger.reserve(Promise(math.inf), "public", "comparison").commit()
    balance = ledger.balance("public", "record")
    assert (balance.spent.epsilon, balance.left.epsilon) == (math.inf, math.inf)
    assert balance.reserved.epsilon == 0
    ledger.allow("public", "record", 5)
    assert Ledger(ledger.path).balance("public", "record").left.epsilon == 0
    with pytest.raises(BudgetExceeded):
        ledger.reserve(Promise(0.1), "public", "count")


def test_a_lowered_ceiling_leaves_nothing_and_a_raised_one_more(ledger: Ledger) -> None:
    ledger.reserve(Promise(0.5), "adult", "count").commit()
    assert ledger.allow("adult", "record", 0.25).left == Amount()
    with pytest.raises(BudgetExceeded) as refused:
        ledger.reserve(Promise(0.1), "adult", "count")
    assert refused.value.left == 0
    assert refused.value.shortfall == 0.35  # how far the ceiling would have to rise
    assert ledger.allow("adult", "record", 0.75).left.epsilon == Fraction(1, 4)
    assert ledger.allow("adult", "record", 0).left.epsilon == 0


@pytest.mark.parametrize(
    ("epsilon", "delta", "unit"),
    [
        (-1, 0, "record"),
        (math.nan, 0, "record"),
        (1, 1, "record"),
        (1, -1e-9, "record"),
        (1, 0, "people"),
    ],
)
def test_impossible_ceilings_are_refused(
    ledger: Ledger, epsilon: float, delta: float, unit: str
) -> None:
    with pytest.raises(PromiseError):
        ledger.allow("adult", unit, epsilon, delta)


@pytest.mark.parametrize("label", ["", " adult", "two\nlines", "\x1b[2J", "x" * 201, None, 3])
def test_names_are_one_short_printable_line(ledger: Ledger, label: str) -> None:
    with pytest.raises(UsageError):
        ledger.allow(label, "record", 1)
    with pytest.raises(UsageError):
        ledger.reserve(Promise(0.1), "adult", label)
    with pytest.raises(UsageError):
        ledger.reserve(Promise(0.1), label, "count")


def test_units_of_different_data_sets_are_apart(ledger: Ledger) -> None:
    ledger.allow("other", "person", 2)
    ledger.reserve(Promise(1.5, unit=Unit.PERSON), "other", "count").commit()
    assert spent(ledger) == Amount()


# ── parallel composition ──


def test_disjoint_parts_cost_their_maximum(ledger: Ledger) -> None:
    ledger.reserve(Promise(0.2), "adult", "all").commit()
    ledger.allow("adult", "record", 1.0, 1e-6, composition="adding")
    ledger.reserve(Promise(0.5, 1e-7), "adult", "count", part="women", partition="sex").commit()
    ledger.reserve(Promise(0.3, 4e-7), "adult", "count", part="men", partition="sex").commit()
    assert spent(ledger) == Amount(Fraction(7, 10), Fraction(4, 10**7))
    ledger.reserve(Promise(0.5), "adult", "sum", part="men", partition="sex")  # just fits: 1
    with pytest.raises(BudgetExceeded) as refused:
        ledger.reserve(Promise(0.4), "adult", "sum", part="women", partition="sex")
    assert (refused.value.left, refused.value.shortfall) == (0.3, 0.1)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(Promise(0.001), "adult", "all")


def test_a_ceiling_below_one_part_leaves_nothing_for_another(ledger: Ledger) -> None:
    ledger.reserve(Promise(0.5), "adult", "count", part="women").commit()
    ledger.allow("adult", "record", 0.45)
    with pytest.raises(BudgetExceeded) as refused:
        ledger.reserve(Promise(0.1), "adult", "count", part="men")
    assert (refused.value.left, refused.value.shortfall) == (0, 0.05)


def test_a_replaced_unit_may_change_its_part(ledger: Ledger) -> None:
    for part, epsilon in (("a", 0.2), ("b", 0.3), ("c", 0.1)):
        promise = Promise(epsilon, adjacency="replace")
        ledger.reserve(promise, "adult", "count", part=part).commit()
    assert spent(ledger).epsilon == Fraction(1, 2)  # the two largest


def test_costs_add_across_partitions_and_beside_the_whole(ledger: Ledger) -> None:
    for partition in ("by sex", "by age"):
        for part in ("one", "two", "three"):
            promise = Promise(0.3)
            ledger.reserve(promise, "adult", "count", part=part, partition=partition).commit()
    assert spent(ledger).epsilon == Fraction(6, 10)
    ledger.reserve(Promise(0.4), "adult", "count").commit()
    with pytest.raises(BudgetExceeded):
        ledger.reserve(Promise(0.1), "adult", "count", part="one", partition="by height")
    with pytest.raises(UsageError, match="names its part"):
        ledger.reserve(Promise(0.1), "adult", "count", partition="by sex")


def test_without_a_partition_the_purpose_names_it(ledger: Ledger) -> None:
    for purpose in ("study a", "study b"):
        ledger.reserve(Promise(0.3), "adult", purpose, part="window 1").commit()
        ledger.reserve(Promise(0.3), "adult", purpose, part="window 2").commit()
    assert spent(ledger).epsilon == Fraction(6, 10)


# ── reserve → commit | release ──


def test_a_reservation_counts_until_it_is_given_back(ledger: Ledger) -> None:
    reservation = ledger.reserve(Promise(0.7), "adult", "count")
    with pytest.raises(BudgetExceeded):
        ledger.reserve(Promise(0.7), "adult", "count")
    balance = ledger.balance("adult", "record")
    assert (balance.spent.epsilon, balance.reserved.epsilon) == (0, Fraction(7, 10))
    reservation.release()
    ledger.reserve(Promise(0.7), "adult", "count").commit()
    assert spent(ledger).epsilon == Fraction(7, 10)


def test_a_reservation_is_written_before_it_returns(ledger: Ledger) -> None:
    reservation = ledger.reserve(Promise(0.7, 1e-7), "adult", "count", part="women")
    (seen,) = Ledger(ledger.path).open_spends()
    assert (seen.id, seen.promise, seen.dataset) == (reservation.id, Promise(0.7, 1e-7), "adult")
    assert (seen.purpose, seen.part, seen.owner.pid) == ("count", "women", os.getpid())


def test_an_early_end_charges_what_was_spent(ledger: Ledger) -> None:
    reservation = ledger.reserve(Promise(0.7, 1e-7), "adult", "ten rounds")
    reservation.mark_drawn()
    reservation.commit(spent=Promise(0.3, 5e-8), certificate="c0ffee")
    assert spent(ledger) == Amount(Fraction(3, 10), Fraction(5, 10**8))
    assert ledger.entries()[-1].body["certificate"] == "c0ffee"


@pytest.mark.parametrize(
    "more",
    [
        Promise(0.8),
        Promise(0.7, 1e-9),
        Promise(0.7, unit=Unit.PERSON),
        Promise(0.7, adjacency="replace"),
    ],
)
def test_no_more_can_be_committed_than_was_reserved(ledger: Ledger, more: Promise) -> None:
    reservation = ledger.reserve(Promise(0.7), "adult", "count")
    with pytest.raises(UsageError, match="reserve the rest"):
        reservation.commit(spent=more)
    assert [s.id for s in ledger.open_spends()] == [reservation.id]


def test_drawn_noise_cannot_be_given_back(ledger: Ledger) -> None:
    reservation = ledger.reserve(Promise(0.7), "adult", "count")
    reservation.mark_drawn()
    reservation.mark_drawn()  # saying it twice changes nothing
    with pytest.raises(UsageError, match="noise was drawn"):
        reservation.release()
    assert ledger.balance("adult", "record").reserved.epsilon == Fraction(7, 10)
    assert [e.kind for e in ledger.entries()] == ["open", "allow", "reserve", "draw"]


@pytest.mark.parametrize("first", ["commit", "release"])
@pytest.mark.parametrize("second", ["commit", "release", "mark_drawn"])
def test_a_reservation_closes_once(ledger: Ledger, first: str, second: str) -> None:
    reservation = ledger.reserve(Promise(0.3), "adult", "count")
    getattr(reservation, first)()
    head = ledger.head
    with pytest.raises(UsageError, match="is not open"):
        getattr(reservation, second)()
    assert ledger.head == head


def test_leaving_the_block_commits(ledger: Ledger) -> None:
    with ledger.reserve(Promise(0.3), "adult", "count"):
        pass
    with ledger.reserve(Promise(0.3), "adult", "count") as reservation:
        reservation.commit(spent=Promise(0.1))  # leaving adds nothing
    with ledger.reserve(Promise(0.3), "adult", "count") as reservation:
        reservation.release()
    assert spent(ledger).epsilon == Fraction(4, 10)
    assert ledger.open_spends() == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize(("drawn", "cost"), [(False, 0), (True, Fraction(3, 10))])
def test_an_exception_gives_back_only_what_was_not_drawn(
    ledger: Ledger, error: type[BaseException], drawn: bool, cost: Fraction
) -> None:
    def work() -> None:
        with ledger.reserve(Promise(0.3), "adult", "count") as reservation:
            if drawn:
                reservation.mark_drawn()
            raise error

    with pytest.raises(error):
        work()
    assert spent(ledger).epsilon == cost
    assert ledger.open_spends() == []


def test_others_can_spend_while_a_block_runs(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain, "PATIENCE", 0.0)
    with ledger.reserve(Promise(0.3), "adult", "count"):
        Ledger(ledger.path).reserve(Promise(0.3), "adult", "count").commit()
    assert spent(ledger).epsilon == Fraction(6, 10)


def test_a_file_held_too_long_is_said_to_be_held(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain, "PATIENCE", 0.0)
    with (
        ledger._file.writing(),
        pytest.raises(Unreachable, match="held by another process"),
        Ledger(ledger.path)._file.writing(),
    ):
        pass


# ── interrupted reservations ──


def test_interrupted_reservations_count_until_settled(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene()
    ledger = Ledger(tmp_path / "ledger.db", scene)
    ledger.allow("adult", "record", 1)
    first = ledger.reserve(Promise(0.3), "adult", "mixture")
    second = ledger.reserve(Promise(0.4), "adult", "mixture")
    assert ledger.interrupted() == []

    after = Scene(running=False)
    with caplog.at_level(logging.WARNING, "tacit.ledger"):
        ledger = Ledger(tmp_path / "ledger.db", after)
    assert f"tacit budget settle {first.id} --spent | --unspent" in caplog.text
    assert [s.id for s in ledger.interrupted()] == [first.id, second.id]
    with pytest.raises(BudgetExceeded):
        ledger.reserve(Promise(0.5), "adult", "count")

    ledger.settle(first.id, spent=True)
    ledger.settle(second.id, spent=False)
    assert ledger.interrupted() == []
    balance = ledger.balance("adult", "record")
    assert (balance.spent.epsilon, balance.reserved.epsilon) == (Fraction(3, 10), 0)
    assert [e.body["settled"] for e in ledger.entries()[-2:]] == [True, True]
    with pytest.raises(Refused, match="was settled"):
        ledger.settle(second.id, spent=False)


def test_only_the_undrawn_can_be_settled_as_unspent(tmp_path: Path) -> None:
    scene = Scene()
    ledger = Ledger(tmp_path / "ledger.db", scene)
    ledger.allow("adult", "record", 1)
    reservation = ledger.reserve(Promise(0.3), "adult", "mixture")
    with pytest.raises(Refused, match="still runs"):
        ledger.settle(reservation.id, spent=False)
    reservation.mark_drawn()
    scene.running = False
    with pytest.raises(Refused, match=f"tacit budget settle {reservation.id} --spent"):
        ledger.settle(reservation.id, spent=False)
    ledger.settle(reservation.id, spent=True)
    assert spent(ledger).epsilon == Fraction(3, 10)


@pytest.mark.parametrize(
    "step",
    [Reservation.mark_drawn, Reservation.commit, lambda r: r.__exit__(None, None, None)],
)
def test_a_settled_reservation_stops_its_process(
    tmp_path: Path, step: Callable[[Reservation], None]
) -> None:
    """Settled as unspent while its process, out of sight, still ran: nothing may leave."""
    ledger = Ledger(tmp_path / "ledger.db", Scene(running=False))
    ledger.allow("adult", "record", 1)
    reservation = ledger.reserve(Promise(0.3), "adult", "mixture")
    ledger.settle(reservation.id, spent=False)
    with pytest.raises(Refused, match="Reserve again"):
        step(reservation)


def test_an_unknown_reservation_cannot_be_settled(ledger: Ledger) -> None:
    with pytest.raises(UsageError, match="reservation 99 is not open"):
        ledger.settle(99, spent=True)


OWNER = Owner("here", 42, started=1000)


@pytest.mark.parametrize(
    ("state", "number_in_use", "fate"),
    [
        (("S", 1000), True, Fate.RUNNING),
        (("Z", 1000), True, Fate.GONE),  # killed, not yet collected
        (("S", 2000), True, Fate.GONE),  # the number was given to another process
        (None, False, Fate.GONE),
        (None, True, Fate.RUNNING),  # no /proc, or it is hidden
    ],
)
def test_the_fate_of_a_process(
    state: tuple[str, int] | None, number_in_use: bool, fate: Fate
) -> None:
    assert fate_here(OWNER, state, number_in_use) is fate


def test_this_process_runs_and_another_boot_is_elsewhere() -> None:
    here = Surroundings()
    mine = here.owner()
    assert (mine.pid, here.fate(mine)) == (os.getpid(), Fate.RUNNING)
    assert here.fate(Owner("0" * 16, mine.pid, mine.started)) is Fate.ELSEWHERE
    if mine.started is not None:  # where the system tells when a process started
        assert here.fate(Owner(mine.host, mine.pid, mine.started + 1)) is Fate.GONE


# ── the file ──


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        ledger = Ledger(tmp_path / "deep" / "ledger.db")
    finally:
        os.umask(previous)
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(ledger.path.parent.stat().st_mode) == 0o700
    with ledger._file.writing() as transaction:
        transaction._connection.execute("PRAGMA user_version = 1")  # any write opens the journal
        journal = ledger.path.with_name("ledger.db-journal")
        assert stat.S_IMODE(journal.stat().st_mode) == 0o600


def test_commits_survive_a_power_failure(ledger: Ledger) -> None:
    """No test can pull the plug; these are the settings that the documentation asks for."""
    with ledger._file.reading() as transaction:
        assert transaction._pragma("synchronous") == 3  # EXTRA
        assert transaction._pragma("journal_mode") == "delete"


def test_copies_charge_the_same_file(ledger: Ledger) -> None:
    for other in (copy.deepcopy(ledger), pickle.loads(pickle.dumps(ledger)), Ledger(ledger.path)):
        other.reserve(Promise(0.1), "adult", "count").commit()
    assert spent(ledger).epsilon == Fraction(3, 10)


def test_a_relative_path_keeps_its_meaning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger("ledger.db")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    ledger.allow("adult", "record", 1)
    assert not (tmp_path / "other" / "ledger.db").exists()


def test_odd_file_names_work(tmp_path: Path) -> None:
    path = tmp_path / "a ledger? #1 100%.db"
    Ledger(path).allow("adult", "record", 1)
    assert {p.name for p in tmp_path.iterdir()} == {path.name, "tacit-home"}


def test_entries_hold_no_more_than_the_spend(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db", Scene(pid=5))
    ledger.allow("adult", "record", 1)
    ledger.reserve(Promise(0.25), "adult", "count").commit()
    assert [(e.kind, e.at, e.body) for e in ledger.entries()[1:]] == [
        (kind, "2026-01-02T03:04:05.000+00:00", body)
        for kind, body in [
            (
                "allow",
                {
                    "dataset": "adult",
                    "unit": "record",
                    "epsilon": "1.0",
                    "delta": "0.0",
                    "adjacency": None,
                    "composition": "adding",
                    "most_persons": None,
                    "most_records": None,
                },
            ),
            (
                "reserve",
                {
                    "dataset": "adult",
                    "unit": "record",
                    "epsilon": "0.25",
                    "delta": "0.0",
                    "adjacency": "add-remove",
                    "purpose": "count",
                    "partition": None,
                    "part": None,
                    "cost": None,
                    "identity": None,
                    "owner": {"host": "here", "pid": 5, "started": 7},
                },
            ),
            (
                "commit",
                {
                    "reservation": 3,
                    "epsilon": "0.25",
                    "delta": "0.0",
                    "certificate": None,
                    "settled": False,
                },
            ),
        ]
    ]
    json.dumps([e.body for e in ledger.entries()])


def test_catching_up_reads_only_what_is_new(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        ledger.reserve(Promise(0.1), "adult", "count").commit()
    checked: list[int] = []
    original = chain.Transaction._checked

    def counting(self: chain.Transaction, row: tuple[object, ...], seq: int, head: str) -> object:
        checked.append(seq + 1)
        return original(self, row, seq, head)

    other = Ledger(ledger.path)
    monkeypatch.setattr(chain.Transaction, "_checked", counting)
    ledger.reserve(Promise(0.1), "adult", "count")
    assert checked == []  # its own entries need no reading
    assert other.balance("adult", "record").reserved.epsilon == Fraction(1, 10)
    assert checked == [13]


def test_a_failed_write_is_not_believed(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: chain.Transaction, entry: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(chain.Transaction, "append", fail)
        with pytest.raises(KeyboardInterrupt):
            ledger.reserve(Promise(0.7), "adult", "count")
    assert ledger.open_spends() == []
    ledger.reserve(Promise(0.7), "adult", "count").commit()
    ledger.verify()


def test_threads_share_a_ledger(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.allow("adult", "record", 1)
    outcomes: list[bool] = []

    def spend() -> None:
        for _ in range(5):
            try:
                ledger.reserve(Promise(0.1), "adult", "count").commit()
                outcomes.append(True)
            except BudgetExceeded:
                outcomes.append(False)

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (outcomes.count(True), outcomes.count(False)) == (10, 10)
    ledger.verify()


# ── going on after a crash ──


def test_work_that_goes_on_is_paid_once(tmp_path: Path) -> None:
    path, promise = tmp_path / "ledger.db", Promise(1.0, 1e-6)
    first = Ledger(path, Scene(pid=1))
    first.allow("adult", "record", 1.0, 1e-6)
    first.reserve(promise, "adult", "study x", identity="outbox").mark_drawn()
    second = Ledger(path, Scene(pid=2, running=False))
    for other in (None, "another outbox"):
        assert second.resume(promise, "adult", "study x", identity=other) is None
    taken = second.resume(promise, "adult", "study x", identity="outbox")
    assert taken is not None
    (spend,) = second.open_spends()
    assert spend.owner.pid == 2
    assert spend.drawn
    taken.commit()
    assert spent(second).epsilon == 1
    assert second.resume(promise, "adult", "study x", identity="outbox") is None
    assert [entry.kind for entry in second.entries()][-2:] == ["adopt", "commit"]
    second.verify()


def test_only_the_same_work_is_resumed(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db", Scene(running=False))
    ledger.allow("adult", "record", 1.0, 1e-6)
    ledger.reserve(Promise(0.5), "adult", "study x", part="window 1", identity="outbox")
    for promise, purpose, part in (
        (Promise(0.4), "study x", "window 1"),
        (Promise(0.5), "study y", "window 1"),
        (Promise(0.5), "study x", "window 2"),
        (Promise(0.5), "study x", None),
    ):
        assert ledger.resume(promise, "adult", purpose, part, identity="outbox") is None
    found = ledger.resume(Promise(0.5), "adult", "study x", "window 1", identity="outbox")
    assert found is not None


@pytest.mark.parametrize("drawn", [True, False])
def test_what_bears_no_identity_is_nobodys_to_resume(tmp_path: Path, drawn: bool) -> None:
    """Whoever drew under it kept nothing: to go on would be to draw a second time for nothing."""
    ledger = Ledger(tmp_path / "ledger.db", Scene(running=False))
    ledger.allow("adult", "record", 1.0)
    reservation = ledger.reserve(Promise(1.0), "adult", "fit")
    if drawn:
        reservation.mark_drawn()
    for identity in (None, "outbox"):
        assert ledger.resume(Promise(1.0), "adult", "fit", identity=identity) is None


@pytest.mark.parametrize("most", [0, -1, 1.5, 0.5, math.nan, math.inf, True, "3", 10**6 + 1])
@pytest.mark.parametrize("name", ["most_records", "most_persons"])
def test_how_many_records_one_has_is_a_whole_number(tmp_path: Path, name: str, most: Any) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    with pytest.raises(UsageError, match=f"{name} must be a whole number from 1 to 1000000"):
        ledger.allow("adult", "holder", 1.0, **{name: most})
    assert [entry.kind for entry in ledger.entries()] == ["open"]


def test_what_another_process_works_on_is_not_taken_from_it(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db", Scene(running=True))
    ledger.allow("adult", "record", 1.0, 1e-6)
    ledger.reserve(Promise(0.5), "adult", "study x")
    with pytest.raises(Refused, match="at work"):
        ledger.resume(Promise(0.5), "adult", "study x", identity=None)
