"""Going on with an older copy, or with none: nothing that was drawn comes back, no policy is shaken
off, and a crash in the middle leaves it noticed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.channels.peers.purse import LedgerPurse
from tacit.channels.roles.budget import LedgerBudget
from tacit.crypto.signing import SigningKey
from tacit.errors import LedgerTampered, Refused, TacitError, UsageError
from tacit.privacy.ledger import Ledger, Owner, Surroundings, seen
from tacit.privacy.ledger.chain import Transaction
from tacit.privacy.ledger.owner import Fate
from tacit.privacy.policy import Asked, Policy
from tacit.privacy.promise import Promise

BOARD, OTHER = SigningKey.generate(), SigningKey.generate()
ONE = Promise(1.0)


class Gone(Surroundings):
    """Whoever made a reservation before has been killed."""

    def now(self) -> datetime:
        return datetime(2026, 1, 2, tzinfo=UTC)

    def fate(self, owner: Owner) -> Fate:
        return Fate.GONE


@pytest.fixture
def path(tmp_path: Path) -> Path:
    ledger = Ledger(tmp_path / "ledger.db", Gone())
    ledger.allow("d", "record", 1.0)
    return ledger.path


def back_to(copy: bytes, path: Path) -> Ledger:
    """The copy takes the ledger's place, by the holder's word, and its ceiling is set anew."""
    path.write_bytes(copy)
    ledger = Ledger.recover(path, Gone())
    ledger.allow("d", "record", 1.0)
    return ledger


def policy(number: int, *keys: SigningKey, signed: tuple[SigningKey, ...] = ()) -> Policy:
    document = {
        "format": "tacit policy 1",
        "name": "clinic",
        "number": number,
        "approvers": [key.public_key for key in keys],
        "datasets": {"*": {"programs": ["histogram"]}},
    }
    made = Policy.from_dict(document)
    for key in (*keys, *signed):
        made = made.signed(key)
    return made


# ── what was reserved in the copy may have been drawn since ──


def _settled_by_its_outbox(ledger: Ledger) -> None:
    budget = LedgerBudget(ONE, "study s", ledger, "d")
    budget.belongs_to("outbox")
    budget.settle("certificate")


def _paused(ledger: Ledger) -> None:
    budget = LedgerBudget(ONE, "study s", ledger, "d")
    budget.belongs_to("outbox")
    budget.pause()


def _another_outbox(ledger: Ledger) -> None:
    budget = LedgerBudget(ONE, "study s", ledger, "d")
    budget.belongs_to("a fresh one")
    with pytest.raises(Refused):
        budget.reserve(1)


def _left(ledger: Ledger) -> None:
    LedgerBudget(ONE, "study s", ledger, "d").leave()


def _unspent(ledger: Ledger) -> None:
    with pytest.raises(Refused, match="after the copy of the ledger"):
        ledger.settle(ledger.open_spends()[0].id, spent=False)


@pytest.mark.parametrize(
    "then", [_settled_by_its_outbox, _paused, _another_outbox, _left, _unspent]
)
def test_what_an_outbox_drew_after_the_copy_is_charged(
    path: Path, then: Callable[[Ledger], None]
) -> None:
    budget = LedgerBudget(ONE, "study s", Ledger(path, Gone()), "d")
    budget.belongs_to("outbox")
    budget.reserve(1)
    copy = path.read_bytes()
    budget.spend(1)
    ledger = back_to(copy, path)
    then(ledger)
    assert ledger.balance("d", "record").left.epsilon == 0
    ledger.verify()


def test_what_a_peer_drew_after_the_copy_is_charged(path: Path) -> None:
    budget = LedgerPurse(ONE, Ledger(path, Gone()), "d", "network", None).budget("group")
    budget.reserve(1)
    copy = path.read_bytes()
    budget.spend(1)
    ledger = back_to(copy, path)
    LedgerPurse(ONE, ledger, "d", "network", None)
    assert ledger.balance("d", "record").left.epsilon == 0


@pytest.mark.parametrize("peer", [False, True])
def test_a_run_that_goes_on_over_a_recovered_ledger_charges_too(path: Path, peer: bool) -> None:
    """What is spent is what the ledger says, not what the process remembers."""
    ledger = Ledger(path, Gone())
    budget: Any = LedgerBudget(ONE, "study s", ledger, "d")
    if peer:
        budget = LedgerPurse(ONE, ledger, "d", "network", None).budget("group")
    budget.reserve(1)
    Ledger.recover(path, Gone())
    budget.settle(None)
    Ledger(path, Gone()).allow("d", "record", 1.0)
    assert ledger.balance("d", "record").spent.epsilon == 1


def test_a_reservation_made_after_recovery_is_given_back_as_ever(path: Path) -> None:
    ledger = back_to(path.read_bytes(), path)
    reservation = ledger.reserve(ONE, "d", "study")
    reservation.settle()
    assert ledger.balance("d", "record").left.epsilon == 1
    with pytest.raises(UsageError):
        reservation.settle()


# ── a crash at any write ──


class Stopped(BaseException):
    """The machine stops here."""


def test_a_crash_at_any_moment_leaves_it_noticed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = path.read_bytes()
    Ledger(path).reserve(ONE, "d", "study").commit()
    Ledger(path).decisions.use(policy(1, BOARD))
    append, write = Transaction.append, seen._write
    for stop in count():
        path.write_bytes(copy)
        writes = count()

        def stopping(real: Callable[..., None], writes: Any = writes, stop: int = stop) -> Any:
            def act(*args: Any) -> None:
                if next(writes) == stop:
                    raise Stopped
                real(*args)

            return act

        with monkeypatch.context() as patched:
            patched.setattr(Transaction, "append", stopping(append))
            patched.setattr(seen, "_write", stopping(write))
            try:
                Ledger.recover(path)
            except Stopped:
                finished = False
            else:
                finished = True
        try:
            ledger = Ledger(path)
        except LedgerTampered:
            assert not finished
            ledger = Ledger.recover(path)
        assert ledger.balance("d", "record").allowed.epsilon == 0
        assert ledger.decisions.policy == policy(1, BOARD)
        if finished:
            break
    assert stop >= 3  # the entry and both marks


# ── the policy ──


def under_a_policy(path: Path) -> Policy:
    made = policy(1, BOARD)
    Ledger(path).decisions.use(made)
    return made


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("lost", [True, False])
def test_a_ledger_made_anew_is_under_the_same_policy(path: Path, times: int, lost: bool) -> None:
    made = under_a_policy(path)
    for _ in range(times):
        if lost:
            path.unlink()
        ledger = Ledger.recover(path)
        assert ledger.decisions.policy == made
    ledger.allow("d", "record", 9.0)
    with pytest.raises(Refused, match="programs"):
        ledger.reserve(ONE, "d", "x", asked=Asked(program="pca", columns=None, author=None))
    for other in (policy(1, OTHER), policy(2, OTHER), policy(1, BOARD)):
        with pytest.raises(Refused):
            ledger.decisions.use(other)
    ledger.decisions.use(policy(2, BOARD))
    ledger.verify()


def test_an_older_copy_at_another_path_is_under_the_policy_too(path: Path, tmp_path: Path) -> None:
    shutil.copy(path, tmp_path / "older.db")
    made = under_a_policy(path)
    assert Ledger.recover(tmp_path / "older.db").decisions.policy == made


def test_a_superseded_policy_does_not_come_back(path: Path) -> None:
    under_a_policy(path)
    copy = path.read_bytes()
    second = policy(2, OTHER, signed=(BOARD,))
    third = policy(3, OTHER)  # which the approvers of the copy's have not signed
    for made in (second, third):
        Ledger(path).decisions.use(made)
    ledger = back_to(copy, path)
    assert ledger.decisions.policy == third
    with pytest.raises(Refused, match="an older policy does not come back"):
        ledger.decisions.use(second)


def test_another_ledger_at_the_path_takes_its_policy_over(path: Path, tmp_path: Path) -> None:
    made = under_a_policy(path)
    Ledger(tmp_path / "other.db").allow("d", "record", 9.0)
    shutil.copy(tmp_path / "other.db", path)
    ledger = Ledger.recover(path)
    assert ledger.decisions.policy == made
    assert Ledger(path).id == Ledger(tmp_path / "ledger.db").id == ledger.id


def test_of_two_policies_neither_is_dropped(path: Path, tmp_path: Path) -> None:
    under_a_policy(path)
    before = path.read_bytes()
    Ledger(tmp_path / "other.db").decisions.use(policy(5, OTHER))
    shutil.copy(tmp_path / "other.db", path)
    with pytest.raises(Refused, match="neither may replace the other"):
        Ledger.recover(path)
    path.write_bytes(before)
    assert Ledger(path).decisions.policy == policy(1, BOARD)


def test_a_revoked_data_set_is_not_permitted_by_recovering(path: Path) -> None:
    under_a_policy(path)
    Ledger(path).decisions.revoke("d")
    ledger = Ledger.recover(path)
    with pytest.raises(Refused, match="higher number"):
        ledger.decisions.permit("d")


acts = st.lists(
    st.tuples(
        st.sampled_from(["use", "copy", "back", "remove", "elsewhere", "usurp", "recover"]),
        st.integers(0, 3),
    ),
    max_size=14,
)


@given(acts)
@settings(max_examples=40, deadline=None)
def test_whatever_is_copied_removed_and_recovered_the_newest_policy_holds(
    taken: list[tuple[str, int]],
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        Ledger(path)
        copies, number = [path.read_bytes()], 0
        for act, which in taken:
            if act == "use":
                number += 1
                _opened(path).decisions.use(policy(number, BOARD))
            elif act == "copy":
                copies.append(path.read_bytes() if path.exists() else copies[0])
            elif act == "back":
                path.write_bytes(copies[which % len(copies)])
            elif act == "remove":
                path.unlink(missing_ok=True)
            elif act == "elsewhere":
                other = path.with_name(f"other-{which}.db")
                other.write_bytes(copies[which % len(copies)])
                path = other
            elif act == "usurp":
                with pytest.raises(TacitError):
                    _opened(path).decisions.use(policy(number or 1, OTHER, OTHER))
            else:
                Ledger.recover(path)
        found = _opened(path).decisions.policy
        assert (0 if found is None else found.number) == number


def _opened(path: Path) -> Ledger:
    try:
        return Ledger(path)
    except LedgerTampered:
        return Ledger.recover(path)
