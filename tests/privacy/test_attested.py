"""What relays sign of their batches: every word of it, and how little it counts for."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.crypto.signing import SigningKey
from tacit.privacy.attested import BatchStatement, smallest_batch

KEYS = [SigningKey.generate() for _ in range(4)]
HOPS = 3


def said(hop: int, batches: dict[str, tuple[int, int]], **more: Any) -> BatchStatement:
    """By the relay that stands at this hop."""
    about = {"drawing": "ab" * 32, "stage": 1, "wave": 2, **more}
    return BatchStatement(KEYS[hop].public_key, hop=hop, batches=batches, **about).signed(KEYS[hop])


WHOLE = said(0, {"table-0": (12, 11), "": (3, 3)})


# ── signatures ──


def test_a_statement_holds_as_it_was_signed() -> None:
    assert WHOLE.holds
    assert (WHOLE.received("table-0"), WHOLE.passed_on("table-0")) == (12, 11)
    assert (WHOLE.received("table-1"), WHOLE.passed_on("table-1")) == (0, 0)
    reordered = replace(WHOLE, batches=dict(reversed(WHOLE.batches.items())))
    assert reordered.holds


CHANGES: dict[str, list[Any]] = {
    "relay": [KEYS[1].public_key, "", "ab"],
    "drawing": ["ac" * 32, ""],
    "stage": [0, 2],
    "wave": [1, 3],
    "hop": [1, -1],
    "batches": [
        {"table-0": (12, 12), "": (3, 3)},
        {"table-0": (13, 11), "": (3, 3)},
        {"table-0": (11, 12), "": (3, 3)},
        {"table-0": (12, 11)},
        {"table-1": (12, 11), "": (3, 3)},
        {"table-0": (12, 11), "": (3, 3), "table-1": (0, 0)},
        {"table-0": (3, 3), "": (12, 11)},
        {},
    ],
    "signature": ["", "00" * 64, "no signature", WHOLE.signature[:-2]],
}


def test_every_field_is_tried() -> None:
    assert set(CHANGES) == {field.name for field in fields(BatchStatement)}


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in CHANGES.items() for value in values],
    # Keys are drawn anew in every process: a name that shows one differs between workers.
    ids=[f"{name}-{n}" for name, values in CHANGES.items() for n, _ in enumerate(values)],
)
def test_any_change_is_found(name: str, value: Any) -> None:
    assert not replace(WHOLE, **{name: value}).holds


def test_a_statement_in_another_s_name_does_not_hold() -> None:
    assert not replace(WHOLE, signature="").signed(KEYS[1]).holds
    assert replace(WHOLE, relay=KEYS[1].public_key).signed(KEYS[1]).holds


names = st.text(max_size=8)
sizes = st.tuples(st.integers(0, 2**31), st.integers(0, 2**31))


@given(st.dictionaries(names, sizes, max_size=4), st.dictionaries(names, sizes, max_size=4))
def test_two_statements_never_share_a_signature(
    one: dict[str, tuple[int, int]], other: dict[str, tuple[int, int]]
) -> None:
    moved = replace(said(0, one), batches=other)
    assert moved.holds == (one == other)


@given(st.dictionaries(names, sizes, max_size=4))
def test_a_document_says_all_of_it(batches: dict[str, tuple[int, int]]) -> None:
    whole = said(1, batches)
    again = BatchStatement.from_document(whole.document(), whole.drawing)
    assert again == whole
    assert again.holds
    assert not BatchStatement.from_document(whole.document(), "cd" * 32).holds


# ── the smallest batch ──


def circuit(*sizes: int, question: str = "table-0", **more: Any) -> list[BatchStatement]:
    return [said(hop, {question: (size, size)}, **more) for hop, size in enumerate(sizes)]


def smallest(statements: list[BatchStatement], question: str = "table-0") -> int:
    return smallest_batch(statements, 1, 2, question, HOPS)


@pytest.mark.parametrize("sizes", [(9, 8, 7), (7, 8, 9), (9, 7, 9), (7, 7, 7)])
def test_the_worst_of_the_circuit_counts(sizes: tuple[int, int, int]) -> None:
    """Which of the relays is the honest one is not known."""
    assert smallest(circuit(*sizes)) == 7


def test_what_was_received_and_not_passed_on_does_not_count() -> None:
    held = [*circuit(9, 9), said(2, {"table-0": (9, 0)})]
    assert smallest(held) == 0


@pytest.mark.parametrize("silent", range(HOPS))
def test_a_hop_that_says_nothing_counts_as_none(silent: int) -> None:
    heard = [one for one in circuit(9, 9, 9) if one.hop != silent]
    assert smallest(heard) == 0
    elsewhere = [*heard, said(silent, {"table-1": (9, 9)})]
    assert smallest(elsewhere) == 0


def test_two_relays_at_one_hop_cannot_both_be_right() -> None:
    twice = replace(circuit(9, 9, 9)[1], relay=KEYS[3].public_key).signed(KEYS[3])
    assert smallest([*circuit(9, 9, 9), twice]) == 0
    beside = replace(twice, hop=-1).signed(KEYS[3])
    assert smallest([*circuit(9, 9, 9), beside]) == 0


def test_other_waves_stages_and_questions_do_not_help() -> None:
    others = [
        *circuit(99, 99, 99, wave=1),
        *circuit(99, 99, 99, stage=0),
        *circuit(99, 99, 99, question="table-1"),
    ]
    assert smallest(others) == 0
    assert smallest([*others, *circuit(9, 9, 9)]) == 9
    assert smallest(others, "table-1") == 99
    assert smallest([], "table-1") == 0


def test_more_hops_than_have_spoken_are_too_many() -> None:
    assert smallest_batch(circuit(9, 9, 9), 1, 2, "table-0", 4) == 0
    assert smallest_batch(circuit(9, 9, 9), 1, 2, "table-0", 2) == 0
