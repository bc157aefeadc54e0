"""Any sequence of calls, against a model that composes by the definition."""

from __future__ import annotations

import itertools
import tempfile
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import BudgetExceeded, UsageError
from tacit.privacy.ledger import Amount, Ledger, Reservation
from tacit.privacy.promise import Promise


@dataclass
class Charge:
    """The model's idea of a reservation."""

    amount: Amount
    part: str | None
    replace: bool
    state: str = "open"


def worst_loss(charges: list[Charge]) -> Amount:
    """The composition rule by its definition: the worst over where a unit is, or moves."""
    parts = sorted({c.part for c in charges if c.part is not None}) or ["none"]
    moves = any(c.replace for c in charges)
    places = [{p} for p in parts]
    if moves:
        places += [set(pair) for pair in itertools.combinations(parts, 2)]
    losses = [
        (
            sum(c.amount.epsilon for c in charges if c.part is None or c.part in place),
            sum(c.amount.delta for c in charges if c.part is None or c.part in place),
        )
        for place in places
    ]
    return Amount(max(e for e, _ in losses), max(d for _, d in losses))


def counted(charges: list[Charge]) -> list[Charge]:
    return [c for c in charges if c.state != "released"]


STEPS = st.one_of(
    st.tuples(
        st.just("allow"),
        st.sampled_from([0, 0.1, 0.5, 1.0, 1.5]),
        st.sampled_from([0, 1e-6, 1e-5]),
    ),
    st.tuples(
        st.just("reserve"),
        st.sampled_from([0.1, 0.2, 0.3, 0.05, 1e-3]),
        st.sampled_from([0.0, 1e-7, 3e-7]),
        st.sampled_from([None, "a", "b", "c"]),
        st.booleans(),
    ),
    st.tuples(st.sampled_from(["draw", "commit", "half", "release"]), st.integers(0, 30)),
    st.just(("reopen",)),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(STEPS, max_size=25))
def test_any_sequence_stays_within_what_was_allowed(steps: list[tuple[object, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        walk(Path(folder) / "ledger.db", steps)


def walk(path: Path, steps: list[tuple[object, ...]]) -> None:
    ledger = Ledger(path)
    ledger.allow("adult", "record", 1.0, 1e-6)
    allowed, charges, handles = Amount.of(1.0, 1e-6), [], []
    for step in steps:
        match step:
            case ("allow", epsilon, delta):
                ledger.allow("adult", "record", epsilon, delta)
                allowed = Amount.of(epsilon, delta)
            case ("reserve", epsilon, delta, part, replace):
                adjacency = "replace" if replace else "add-remove"
                charge = Charge(Amount.of(epsilon, delta), part, replace)
                fits = allowed.covers(worst_loss(counted([*charges, charge])))
                try:
                    promise = Promise(epsilon, delta, adjacency=adjacency)
                    handles.append(ledger.reserve(promise, "adult", "count", part))
                    charges.append(charge)
                    assert fits
                except BudgetExceeded:
                    assert not fits
            case ("reopen",):
                ledger = Ledger(path)
            case (verb, number) if number < len(charges):
                move(verb, charges[number], handles[number])
        compare(ledger, allowed, charges)
    assert Ledger(path)._state == ledger._state
    ledger.verify(ledger.head)


def move(verb: str, charge: Charge, handle: Reservation) -> None:
    try:
        match verb:
            case "draw":
                handle.mark_drawn()
            case "commit":
                handle.commit()
            case "half":
                half = Promise(handle.promise.epsilon / 2, 0.0, adjacency=handle.promise.adjacency)
                handle.commit(spent=half)
                charge.amount = Amount.of(half.epsilon, 0.0)
            case "release":
                handle.release()
    except UsageError:
        assert charge.state in {"committed", "released"} or (verb, charge.state) == (
            "release",
            "drawn",
        )
        return
    assert charge.state in {"open", "drawn"}
    charge.state = {"draw": "drawn", "release": "released"}.get(verb, "committed")


def compare(ledger: Ledger, allowed: Amount, charges: list[Charge]) -> None:
    balance = ledger.balance("adult", "record")
    total = worst_loss(counted(charges))
    done = worst_loss([c for c in charges if c.state == "committed"])
    assert balance.allowed == allowed
    assert balance.spent == done
    assert balance.spent + balance.reserved == total
    assert balance.left == Amount(
        max(Fraction(0), allowed.epsilon - total.epsilon),
        max(Fraction(0), allowed.delta - total.delta),
    )
