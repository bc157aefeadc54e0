"""What a packet holds: an answer, cover, or nothing that counts."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from rehearsal import Rehearsal

from tacit.channels.crowd.payload import (
    COVER,
    Answer,
    payload_bytes,
    read_payload,
    receipt_of,
    signed_message,
)
from tacit.errors import InputError

STUDY = Rehearsal().proposal
DIGEST, QUESTIONS, PROOF = STUDY.digest, list(STUDY.questions.values()), STUDY.proof_bytes(0)


def answers() -> st.SearchStrategy[Answer]:
    return st.integers(0, len(QUESTIONS) - 1).flatmap(
        lambda number: st.builds(
            Answer,
            st.just(DIGEST),
            st.just(number),
            st.binary(
                min_size=QUESTIONS[number].randomiser.report_bytes,
                max_size=QUESTIONS[number].randomiser.report_bytes,
            ),
            st.binary(min_size=PROOF, max_size=PROOF),
        )
    )


@given(answers())
def test_an_answer_comes_back_as_it_was(answer: Answer) -> None:
    body = answer.to_bytes()
    assert len(body) <= payload_bytes(QUESTIONS, PROOF)
    assert read_payload(body, DIGEST, QUESTIONS, PROOF) == answer


@given(answers(), st.integers(1, 400))
def test_what_is_cut_off_is_malformed(answer: Answer, cut: int) -> None:
    body = answer.to_bytes()
    with pytest.raises(InputError, match=r"^malformed$"):
        read_payload(body[: -min(cut, len(body))], DIGEST, QUESTIONS, PROOF)


@given(answers(), st.binary(min_size=1, max_size=9))
def test_nothing_stands_behind_an_answer(answer: Answer, more: bytes) -> None:
    """A part that nobody checks could tell one packet from another."""
    if any(more):
        with pytest.raises(InputError, match=r"^malformed$"):
            read_payload(answer.to_bytes() + more, DIGEST, QUESTIONS, PROOF)


@given(st.binary(max_size=600))
def test_other_bytes_are_cover_or_refused_in_a_word(body: bytes) -> None:
    if body[:1] == COVER:
        assert read_payload(body, DIGEST, QUESTIONS, PROOF) is None
        return
    with pytest.raises(InputError, match=r"^(malformed|another study)$"):
        read_payload(body, DIGEST, QUESTIONS, PROOF)


def test_another_study_is_told_apart() -> None:
    size = QUESTIONS[0].randomiser.report_bytes
    answer = Answer("5a" * 32, 0, bytes(size), bytes(PROOF))
    with pytest.raises(InputError, match=r"^another study$"):
        read_payload(answer.to_bytes(), DIGEST, QUESTIONS, PROOF)
    for number in (len(QUESTIONS), 65535):
        with pytest.raises(InputError, match=r"^malformed$"):
            read_payload(
                replace(answer, study=DIGEST, question=number).to_bytes(), DIGEST, QUESTIONS, PROOF
            )


def test_what_is_signed_says_everything() -> None:
    said = {
        signed_message(study, question, report)
        for study in (DIGEST, "5a" * 32)
        for question in ("table-0", "table-1")
        for report in (b"", b"\0", b"\0\0")
    }
    assert len(said) == 12


def test_a_receipt_does_not_show_its_mark() -> None:
    mark = bytes(range(32))
    assert mark not in receipt_of(mark)
    assert receipt_of(mark) != receipt_of(mark + b"\0")
    assert len(receipt_of(mark)) == 32
