"""Proofs: one mark for each right to answer, and none for what is forged."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from rehearsal import PEOPLE, Rehearsal

from tacit.channels.crowd.proofs import RingProofs, TokenProofs, proofs_of


@pytest.fixture(scope="module", params=["tokens", "ring"])
def study(request: pytest.FixtureRequest) -> Rehearsal:
    return Rehearsal(proof=request.param).drawn()


def test_a_proposal_says_which_proofs() -> None:
    for proof, kind in (("tokens", TokenProofs), ("ring", RingProofs)):
        study = Rehearsal(proof=proof)
        members = [person.public_key for person in study.people]
        proofs = proofs_of(study.proposal, sorted(members))
        assert type(proofs) is kind
        assert proofs.size == study.proposal.proof_bytes(PEOPLE)
        assert (proof == "ring") == (not study.proposal.token_keys)


def test_everyone_has_a_mark_of_her_own(study: Rehearsal) -> None:
    proofs, names = proofs_of(study.proposal, study.store.members()), study.proposal.drawn_up.names
    marks = set()
    for person in study.people[:6]:
        answer = study.answer(person, draw="same")
        assert len(answer.proof) == proofs.size
        mark = proofs.mark(names[answer.question], answer.report, answer.proof)
        assert mark is not None
        assert mark == proofs.mark(names[answer.question], answer.report, answer.proof)
        marks.add(mark)
    assert len(marks) == 6


def test_a_proof_is_of_one_answer_to_one_question_in_one_study(study: Rehearsal) -> None:
    proofs, names = proofs_of(study.proposal, study.store.members()), study.proposal.drawn_up.names
    person = study.people[7]
    answer = study.answer(person)
    name = names[answer.question]
    assert proofs.mark(name, answer.report, answer.proof)
    assert proofs.mark(name, answer.report + b"\0", answer.proof) is None
    for other in names:
        assert other == name or proofs.mark(other, answer.report, answer.proof) is None
    for place in (0, 31, 32, len(answer.proof) - 1):
        spoilt = bytearray(answer.proof)
        spoilt[place] ^= 1
        assert proofs.mark(name, answer.report, bytes(spoilt)) is None
    again = Rehearsal(proof=study.proposal.group.proof, seed=8).proposal
    assert again.digest != study.proposal.digest
    elsewhere = proofs_of(again, study.store.members())
    assert elsewhere.mark(name, answer.report, answer.proof) is None


@pytest.mark.parametrize("proof", [b"", b"\0", b"\xff" * 5000])
def test_other_lengths_are_forged_too(study: Rehearsal, proof: bytes) -> None:
    proofs, name = proofs_of(study.proposal, study.store.members()), "table-0"
    assert proofs.mark(name, b"\0", proof.ljust(proofs.size, b"\0")) is None


def test_a_ring_has_one_mark_for_two_answers_of_one_member() -> None:
    study = Rehearsal(proof="ring").opened()
    proofs, names = proofs_of(study.proposal, study.store.members()), study.proposal.drawn_up.names
    person = study.people[0]
    answers = {a.report: a for a in (study.answer(person, str(n)) for n in range(10))}
    assert len(answers) > 1
    marks = {proofs.mark(names[a.question], a.report, a.proof) for a in answers.values()}
    assert len(marks) == 1
    assert None not in marks
    answer = study.answer(person)
    others = sorted(p.public_key for p in study.people[1:])
    assert (
        proofs_of(study.proposal, others).mark(names[answer.question], answer.report, answer.proof)
        is None
    )
