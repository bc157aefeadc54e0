"""A policy in force: the ledger demands it, keeps it, and lets nobody take it away."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.crypto.signing import SigningKey
from tacit.errors import CheckFailed, LedgerTampered, Refused, UsageError
from tacit.privacy.ledger import Ledger, Surroundings
from tacit.privacy.policy import Approval, Asked, Policy
from tacit.privacy.promise import Promise

ONE, TWO = SigningKey.generate(), SigningKey.generate()
ASKED = Asked(program="logistic", columns=("age",), author=TWO.public_key, study="5" * 64)


class Clock(Surroundings):
    """Time passes when a test says so."""

    def __init__(self) -> None:
        self.at = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    def wait(self, **span: float) -> None:
        self.at += timedelta(**span)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(tmp_path: Path, clock: Clock) -> Ledger:
    made = Ledger(tmp_path / "ledger.db", clock)
    made.allow("patients", "record", 1000.0)
    return made


def policy(number: int = 1, key: SigningKey = ONE, **rules: Any) -> Policy:
    document = {
        "format": "tacit policy 1",
        "name": "clinic",
        "number": number,
        "approvers": [key.public_key],
        "datasets": {"patients": rules},
    }
    return Policy.from_dict(document).signed(key)


def reserve(ledger: Ledger, epsilon: float = 1.0, asked: Asked | None = ASKED, **more: Any) -> Any:
    return ledger.reserve(Promise(epsilon), "patients", "study", asked=asked, **more)


def refused(ledger: Ledger, rule: str, *args: Any, **more: Any) -> None:
    """By this rule, and nothing was written."""
    head = ledger.head
    assert not ledger.affords(Promise(*args[:1] or (1.0,)), "patients", asked=ASKED)
    with pytest.raises(Refused, match=f"policy rule datasets.patients.{rule}:"):
        reserve(ledger, *args, **more)
    assert ledger.head == head


def test_without_a_policy_nothing_is_asked(ledger: Ledger) -> None:
    reserve(ledger, asked=None).commit()
    assert ledger.decisions.policy is None


def test_under_a_policy_a_spend_says_what_it_is_for(ledger: Ledger) -> None:
    ledger.decisions.use(policy())
    head = ledger.head
    with pytest.raises(Refused, match="does not say what it is for"):
        reserve(ledger, asked=None)
    assert ledger.head == head
    reserve(ledger).commit()
    ledger.verify()


def test_a_data_set_that_is_not_named_is_not_used(ledger: Ledger) -> None:
    ledger.decisions.use(policy())
    ledger.allow("others", "record", 10)
    with pytest.raises(Refused, match="policy rule datasets: asked data set others"):
        ledger.reserve(Promise(1.0), "others", "study", asked=ASKED)


def test_other_processes_see_it_and_it_is_still_there_tomorrow(
    ledger: Ledger, tmp_path: Path
) -> None:
    other = Ledger(tmp_path / "ledger.db")
    ledger.decisions.use(policy(programs=[]))
    for one in (other, Ledger(tmp_path / "ledger.db")):
        refused(one, "programs")


# ── the year ──


def test_a_year_rolls_and_reservations_count(ledger: Ledger, clock: Clock) -> None:
    ledger.decisions.use(policy(epsilon_per_year=1.0))
    reserve(ledger, 0.3).commit()
    clock.wait(days=100)
    held = reserve(ledger, 0.7)
    refused(ledger, "epsilon_per_year", 0.1)
    held.release()
    reserve(ledger, 0.7).commit()
    clock.wait(days=264)
    refused(ledger, "epsilon_per_year", 0.1)
    clock.wait(days=1)  # the first one is 365 days old
    assert ledger.decisions.year("patients") == (0.7, 0.0)
    refused(ledger, "epsilon_per_year", 0.4)
    reserve(ledger, 0.3).commit()
    refused(ledger, "epsilon_per_year", 0.1)


def test_a_long_study_counts_from_its_end(ledger: Ledger, clock: Clock) -> None:
    ledger.decisions.use(policy(epsilon_per_year=1.0))
    held = reserve(ledger)
    clock.wait(days=500)
    refused(ledger, "epsilon_per_year")
    held.commit()
    clock.wait(days=364)
    refused(ledger, "epsilon_per_year")
    clock.wait(days=1)
    reserve(ledger)


def test_a_clock_that_goes_back_forgets_nothing(ledger: Ledger, clock: Clock) -> None:
    ledger.decisions.use(policy(epsilon_per_year=1.0))
    reserve(ledger).commit()
    clock.wait(days=-1000)
    refused(ledger, "epsilon_per_year")


@given(st.lists(st.integers(-2000, 2000), max_size=8))
@settings(max_examples=30, deadline=None)
def test_within_a_year_of_the_true_clock_no_setting_of_it_spends_twice(days: list[int]) -> None:
    """Set back, an entry is not old; set ahead and right again, it is not forgotten either."""
    with TemporaryDirectory() as folder:
        clock = Clock()
        ledger = Ledger(Path(folder) / "ledger.db", clock)
        ledger.allow("patients", "record", 1000.0)
        ledger.decisions.use(policy(epsilon_per_year=1.0))
        right = clock.at
        ends: list[str] = []
        for jump in days:
            clock.at = right + timedelta(days=jump)
            try:
                reserve(ledger).commit()
            except Refused:
                assert any(datetime.fromisoformat(e) > clock.at - timedelta(days=365) for e in ends)
            else:
                ends.append(ledger.entries()[-1].at)
            clock.at = right
            assert ledger.decisions.year("patients") == (len(ends), 0.0)
        times = [entry.at for entry in ledger.entries()]
        assert times == sorted(times)
        if ends:
            refused(ledger, "epsilon_per_year", 0.1)


def test_a_clock_behind_the_ledger_is_said(
    ledger: Ledger, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    clock.wait(seconds=-30)  # as between two machines
    ledger.allow("patients", "record", 1000.0)
    assert caplog.text == ""
    clock.wait(days=-2)
    ledger.allow("patients", "record", 1000.0)
    assert "Set the clock right" in caplog.text


def test_entries_that_were_written_with_the_clock_set_back_are_not_old(
    ledger: Ledger, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As earlier versions wrote them."""
    ledger.decisions.use(policy(epsilon_per_year=1.0))
    with monkeypatch.context() as earlier:
        earlier.setattr(
            "tacit.privacy.ledger.ledger.entry_time", lambda clock, newest: clock.isoformat()
        )
        clock.wait(days=-400)
        reserve(ledger).commit()
        clock.wait(days=400)
    refused(Ledger(ledger.path, clock), "epsilon_per_year")


def test_windows_of_one_partition_count_once(ledger: Ledger) -> None:
    ledger.decisions.use(policy(epsilon_per_year=1.0, epsilon_per_study=1.0))
    for number in range(3):
        reserve(ledger, part=f"window {number}", partition="by month").commit()
    with pytest.raises(Refused, match="epsilon_per_study"):
        reserve(ledger, part="window 0", partition="by another outbox")


def test_a_study_that_is_run_again_counts_twice(ledger: Ledger) -> None:
    ledger.decisions.use(policy(epsilon_per_study=1.5))
    reserve(ledger).commit()
    refused(ledger, "epsilon_per_study")
    other = Asked(program="logistic", columns=(), author=None, study="6" * 64)
    reserve(ledger, asked=other).commit()


class Year(NamedTuple):
    """A spend as the slow reference keeps it; `end` is None while it is only reserved."""

    epsilon: Fraction
    end: datetime | None


steps = st.lists(
    st.tuples(
        st.sampled_from(["commit", "release", "hold", "settle"]),
        st.sampled_from([0.1, 0.25, 0.4]),
        st.integers(0, 300),
    ),
    max_size=12,
)


@given(steps)
@settings(max_examples=30)
def test_the_year_agrees_with_a_slow_reference(taken: list[tuple[str, float, int]]) -> None:
    with TemporaryDirectory() as folder:
        clock = Clock()
        ledger = Ledger(Path(folder) / "ledger.db", clock)
        ledger.allow("patients", "record", 1000.0)
        ledger.decisions.use(policy(epsilon_per_year=1.0))
        spends: list[Year] = []
        open_ones: list[tuple[Any, int]] = []
        for what, epsilon, days in taken:
            clock.wait(days=days)
            if what == "settle" and open_ones:
                held, place = open_ones.pop()
                held.commit()
                spends[place] = Year(spends[place].epsilon, clock.at)
                continue
            asked = Fraction(str(epsilon))
            since = clock.at - timedelta(days=365)
            used = sum(s.epsilon for s in spends if s.end is None or s.end > since)
            if used + asked > 1:
                refused(ledger, "epsilon_per_year", epsilon)
                continue
            held = reserve(ledger, epsilon)
            if what == "release":
                held.release()
            elif what == "commit":
                held.commit()
                spends.append(Year(asked, clock.at))
            else:
                open_ones.append((held, len(spends)))
                spends.append(Year(asked, None))
        ledger.verify()


# ── who may change it ──


def test_another_policy_needs_the_approvers_of_the_first(ledger: Ledger) -> None:
    ledger.decisions.use(policy(1, programs=[]))
    head = ledger.head
    with pytest.raises(Refused, match="earlier policy's approvers"):
        ledger.decisions.use(policy(2, TWO))
    with pytest.raises(Refused, match="older policy does not come back"):
        ledger.decisions.use(policy(1))
    assert ledger.head == head
    ledger.decisions.use(policy(2))
    reserve(ledger)


def test_a_forged_policy_is_refused(ledger: Ledger) -> None:
    text = policy(programs=[]).to_toml().replace("programs = []", 'programs = ["logistic"]')
    with pytest.raises(CheckFailed):
        ledger.decisions.use(Policy.from_toml(text))
    assert ledger.decisions.policy is None


def test_a_policy_cannot_be_altered_in_the_file(ledger: Ledger, tmp_path: Path) -> None:
    ledger.decisions.use(policy(programs=[]))
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as raw, raw:
        raw.execute("DROP TRIGGER entries_hold")
        raw.execute("UPDATE entries SET body = replace(body, '[]', '[1]') WHERE kind = 'policy'")
    with pytest.raises(LedgerTampered):
        Ledger(tmp_path / "ledger.db")


def test_not_even_a_rewritten_chain_holds_a_policy_that_nobody_signed(
    ledger: Ledger, tmp_path: Path
) -> None:
    """Whoever can compute hashes cannot sign: the fold checks signatures again."""
    ledger.decisions.use(policy(1, programs=[]))
    text = policy(2, TWO).to_toml()
    with pytest.raises(LedgerTampered, match="earlier policy's approvers"):
        ledger._append(lambda state: ("policy", {"text": text}))
    forged = {"study": "5" * 64, "dataset": "patients", "approver": ONE.public_key}
    with pytest.raises(LedgerTampered):
        ledger._append(lambda state: ("approve", {**forged, "signature": "0" * 128}))


def test_an_older_copy_without_the_policy_is_noticed(ledger: Ledger, tmp_path: Path) -> None:
    before = (tmp_path / "ledger.db").read_bytes()
    ledger.decisions.use(policy(programs=[]))
    (tmp_path / "ledger.db").write_bytes(before)
    with pytest.raises(LedgerTampered, match="older than what this machine has seen"):
        Ledger(tmp_path / "ledger.db")


def test_going_on_with_an_older_copy_does_not_shake_off_the_policy(
    ledger: Ledger, tmp_path: Path
) -> None:
    before = (tmp_path / "ledger.db").read_bytes()
    found = policy(programs=["logistic"])
    ledger.decisions.use(found)
    (tmp_path / "ledger.db").write_bytes(before)
    older = Ledger.recover(tmp_path / "ledger.db")
    older.allow("patients", "record", 1000.0)
    assert older.decisions.policy == found
    reserve(older)
    with pytest.raises(Refused, match="programs"):
        reserve(older, asked=Asked(program="pca", columns=(), author=None))


# ── approvals ──


def test_each_study_is_approved_by_itself(ledger: Ledger) -> None:
    ledger.decisions.use(policy(approval="each study"))
    refused(ledger, "approval")
    with pytest.raises(Refused, match="is not an approver"):
        ledger.decisions.approve(Approval.signed("5" * 64, "patients", TWO))
    good = Approval.signed("5" * 64, "patients", ONE)
    with pytest.raises(CheckFailed):
        ledger.decisions.approve(Approval("6" * 64, "patients", good.approver, good.signature))
    for other in (("6" * 64, "patients"), ("5" * 64, "others")):
        ledger.decisions.approve(Approval.signed(*other, ONE))
    refused(ledger, "approval")
    ledger.decisions.approve(good)
    reserve(ledger).commit()
    ledger.decisions.use(policy(2, approval="each study").signed(ONE))
    ledger.decisions.use(
        Policy.from_dict({**_plain(policy(3, TWO, approval="each study"))}).signed(TWO).signed(ONE)
    )
    refused(ledger, "approval")  # who signed it is no approver any more


def _plain(found: Policy) -> dict[str, Any]:
    return {
        "format": "tacit policy 1",
        "name": found.name,
        "number": found.number,
        "approvers": list(found.approvers),
        "datasets": {"patients": {"approval": "each study"}},
    }


# ── revoking ──


def test_a_revoked_data_set_is_neither_reserved_nor_drawn_nor_resumed(ledger: Ledger) -> None:
    running, drawn = reserve(ledger, asked=None), reserve(ledger, asked=None)
    drawn.mark_drawn()
    ledger.decisions.revoke("patients")
    for act in (running.mark_drawn, drawn.mark_drawn, lambda: reserve(ledger)):
        with pytest.raises(Refused, match="has revoked the use of data set 'patients'"):
            act()
    with pytest.raises(Refused, match="revoked"):
        ledger.resume(Promise(1.0), "patients", "study", identity=None)
    drawn.commit()  # what was begun is charged
    running.release()
    assert ledger.decisions.revoked == ("patients",)
    ledger.decisions.permit("patients")
    reserve(ledger).mark_drawn()
    ledger.verify()


def test_under_a_policy_its_approvers_permit_again(ledger: Ledger) -> None:
    ledger.decisions.use(policy(1))
    ledger.decisions.revoke("patients")
    with pytest.raises(Refused, match="by a policy with a higher number"):
        ledger.decisions.permit("patients")
    ledger.decisions.use(policy(2))
    with pytest.raises(Refused, match="revoked"):  # a policy alone lifts nothing by accident
        reserve(ledger)
    ledger.decisions.permit("patients")
    reserve(ledger)
    with pytest.raises(UsageError, match="is not revoked"):
        ledger.decisions.permit("patients")
