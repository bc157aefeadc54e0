"""The collector: what it answers, what it counts, what it refuses without saying whose it was."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from rehearsal import PEOPLE, UNCUT, Rehearsal, refused, secret

from tacit.channels.crowd.assignment import context_of, wave_digest
from tacit.channels.crowd.collector import Collector
from tacit.channels.crowd.drawing import committed
from tacit.channels.crowd.letters import (
    IDLE,
    RECEIPT_BYTES,
    Batches,
    Bulletin,
    Commitment,
    Packets,
    Receipts,
    SeenBulletin,
    TokenAsked,
    TokenGiven,
    Wave,
    is_among,
)
from tacit.channels.crowd.payload import COVER, Answer, receipt_of
from tacit.channels.crowd.proofs import proofs_of
from tacit.channels.crowd.secrets import Secrets
from tacit.channels.roles.letters import Letter, read, write
from tacit.crypto.onion import peel, wrap
from tacit.crypto.signing import SigningKey
from tacit.errors import InputError, UsageError
from tacit.privacy.attested import BatchStatement

STRANGER = SigningKey.generate()


@pytest.fixture
def opened() -> Rehearsal:
    return Rehearsal().opened()


@pytest.fixture
def drawn() -> Rehearsal:
    """Tokens are being issued."""
    return Rehearsal().drawn()


def phase(study: Rehearsal) -> str:
    return study.collector.bulletin(study.now).phase


# ── registration ──


def test_whoever_comes_first_may_register_until_the_group_is_full() -> None:
    study = Rehearsal().registered()
    assert study.ask(study.people[0], "register").kind == "registered"
    assert "the group is full: 12" in refused(lambda: study.ask(STRANGER, "register"))
    assert study.store.members() == sorted(p.public_key for p in study.people)


def test_nobody_registers_after_the_roster_is_closed(opened: Rehearsal) -> None:
    assert "registration is closed" in refused(lambda: opened.ask(STRANGER, "register"))
    assert opened.ask(opened.people[0], "register").kind == "registered"  # the answer was lost


def test_only_the_listed_may_register_where_there_is_a_list() -> None:
    listed = tuple(p.public_key for p in Rehearsal().people)
    study = Rehearsal(members=listed)
    assert "not among those" in refused(lambda: study.ask(STRANGER, "register"))
    study.opened()
    assert phase(study) == "asking"


def test_a_roster_closes_early_if_the_list_is_longer_than_the_group() -> None:
    listed = tuple(p.public_key for p in Rehearsal(20).people)
    study = Rehearsal(members=listed).registered().committed()
    assert phase(study) == "drawing"


def test_relays_and_the_collector_do_not_answer_questions() -> None:
    study = Rehearsal()
    for official in (*study.relays, study.cast.collector):
        message = refused(lambda official=official: study.ask(official, "register"))
        assert "does not answer questions" in message


def test_a_key_that_no_ring_can_hold_is_refused() -> None:
    """A point of small order would have the tag of everybody."""
    study = Rehearsal(proof="ring")
    small = "01" + "00" * 31
    letter = Letter("register", 0)
    assert "cannot be in a ring" in refused(lambda: study.collector.answer(small, letter, 0.0))
    assert study.store.members() == []


# ── lots ──


def test_a_relay_commits_once() -> None:
    study = Rehearsal().committed()
    assert study.commit(0).kind == "committed"
    other = committed(study.relays[0], study.proposal.digest, bytes(32))
    assert "another seed" in refused(lambda: study.ask(study.relays[0], "commit", other))
    assert "only a relay" in refused(lambda: study.ask(study.people[0], "commit", other))


def test_a_commitment_is_signed_by_its_relay_for_this_study() -> None:
    study = Rehearsal()
    digest, seed = study.proposal.digest, study.seeds[0]
    good = committed(study.relays[0], digest, seed)
    for wrong in (
        committed(study.relays[1], digest, seed),
        committed(study.relays[0], "00" * 32, seed),
        msgspec.structs.replace(good, commitment="00" * 32),
        msgspec.structs.replace(good, signature=""),
        msgspec.structs.replace(good, signature="é"),
    ):
        said = refused(lambda wrong=wrong: study.ask(study.relays[0], "commit", wrong))
        assert "not signed by the relay" in said
    assert study.ask(study.relays[0], "commit", good).kind == "committed"


@pytest.mark.parametrize("text", ["", "é" * 64, "0" * 63, "0" * 65, "0" * 64 + "\n", "A" * 64])
def test_a_commitment_is_a_digest(text: str) -> None:
    study = Rehearsal()
    for _ in range(2):  # the second is compared with the first
        with pytest.raises(InputError):
            study.ask(study.relays[0], "commit", Commitment(text, "0" * 128))
        study.commit(0)


def test_nobody_commits_after_the_roster_is_known() -> None:
    study = Rehearsal().registered()
    for place in (0, 1, 2):
        study.commit(place)
    study.pass_time(1000.0)
    assert phase(study) == "drawing"
    assert "the roster is closed" in refused(lambda: study.commit(3))
    assert study.commit(0).kind == "committed"


def test_nobody_reveals_before_the_roster_is_closed() -> None:
    study = Rehearsal()
    other = Rehearsal().registered().committed()
    said = other.revealed(0)
    assert "keep your seed" in refused(lambda: study.ask(study.relays[0], "reveal", said))


def test_only_what_was_committed_to_is_revealed() -> None:
    study = Rehearsal().registered().committed()
    said, seeds = study.revealed(0), study.seeds
    study.seeds = [secret("another seed"), *seeds[1:]]
    another = study.revealed(0)  # signed by the relay itself
    study.seeds = seeds
    for wrong in (
        another,
        msgspec.structs.replace(said, seed=bytes(32)),
        msgspec.structs.replace(said, seed=b""),
        msgspec.structs.replace(said, signature="0" * 128),
        msgspec.structs.replace(said, signature="é"),
        study.revealed(1),
    ):
        message = refused(lambda wrong=wrong: study.ask(study.relays[0], "reveal", wrong))
        assert "not the seed that you committed to" in message
    assert study.reveal(0).kind == study.reveal(0).kind == "revealed"


def test_lots_are_drawn_when_all_have_revealed_or_when_some_are_late() -> None:
    study = Rehearsal().registered().committed()
    for place in (1, 3, 4):
        study.reveal(place)
    study.pass_time(19.0)
    assert phase(study) == "drawing"
    study.pass_time(1.0)
    assert phase(study) == "issuing"
    drawn = study.collector.bulletin(study.now).drawn
    assert drawn is not None
    assert set(drawn.reveals) == {1, 3, 4}
    assert "goes on without you" in refused(lambda: study.reveal(0))
    assert study.reveal(1).kind == "revealed"  # the answer was lost
    assert study.store.drawing() == (study.assignment.drawing, (1, 3, 4))


def test_without_enough_relays_no_lots_are_drawn() -> None:
    """So many that one is honest: else whoever owns them all could steer the lots."""
    study = Rehearsal().registered().committed()
    study.reveal(0)
    study.reveal(1)
    study.pass_time(99.0)
    assert phase(study) == "drawing"
    assert study.collector.deadline == 100.0
    study.pass_time(1.0)
    assert "2 relays revealed their part of the lot, of 3" in study.collector.failure


def test_relays_that_come_late_are_waited_for() -> None:
    study = Rehearsal().registered().committed()
    study.pass_time(50.0)
    for place in (0, 1, 2):
        assert phase(study) == "drawing"
        study.reveal(place)
    assert phase(study) == "issuing"


def test_relays_have_their_time_when_the_collector_was_away() -> None:
    study = Rehearsal().registered().committed()
    study.now += 1e6
    study.restarted()
    study.pass_time(19.0)
    assert phase(study) == "drawing"
    for place in (0, 1, 2):
        study.reveal(place)
    study.pass_time(1.0)
    assert phase(study) == "issuing"


@pytest.mark.parametrize(("people", "relays"), [(PEOPLE - 1, 5), (PEOPLE, 2)])
def test_too_few_stop_the_study(people: int, relays: int) -> None:
    study = Rehearsal()
    for person in study.people[:people]:
        study.ask(person, "register")
    for place in range(relays):
        study.commit(place)
    study.pass_time(999.0)
    assert phase(study) == "gathering"
    study.pass_time(1.0)
    assert phase(study) == "failed"
    assert study.collector.failure.startswith(str(people if people < PEOPLE else relays))
    assert "registration is closed" in refused(lambda: study.ask(STRANGER, "register"))
    assert study.restarted().failure
    assert study.collector.deadline is None


def test_secrets_of_another_study_are_refused() -> None:
    study = Rehearsal()
    with pytest.raises(UsageError, match="another study"):
        Collector(study.proposal, Secrets.fresh("x25519"), study.store, 0.0)


# ── tokens ──


def test_one_token_for_each_person_and_question(drawn: Rehearsal) -> None:
    person = drawn.people[0]
    (question,) = drawn.asked(person)
    body = TokenAsked(question.name, drawn.blinded(question, drawn.report(question, "1")).blinded)
    other = msgspec.structs.replace(
        body, blinded=drawn.blinded(question, drawn.report(question, "2")).blinded
    )
    first = drawn.ask(person, "token", body)
    for _ in range(2):
        assert drawn.ask(person, "token", body) == first
        message = refused(lambda: drawn.ask(person, "token", other))
        assert "for another answer" in message
        drawn.restarted()
    assert drawn.store.tokens() == {question.name: 1}


def test_no_token_for_another_question_nor_for_strangers(drawn: Rehearsal) -> None:
    person = drawn.people[0]
    (mine,) = drawn.asked(person)
    for question in drawn.proposal.questions.values():
        blinded = drawn.blinded(question, drawn.report(question)).blinded
        for sender in (person, STRANGER, drawn.relays[0], drawn.cast.collector):
            if sender is person and question == mine:
                continue
            body = TokenAsked(question.name, blinded)
            message = refused(lambda sender=sender, body=body: drawn.ask(sender, "token", body))
            assert "not one that the lots have given to you" in message
    unknown = TokenAsked("table-99", b"")
    assert "not one that" in refused(lambda: drawn.ask(person, "token", unknown))
    assert not drawn.store.tokens()


@pytest.mark.parametrize("blinded", [b"", bytes(256), b"\xff" * 256, bytes(255) + b"\x01" + b"x"])
def test_what_was_not_blinded_is_not_signed(drawn: Rehearsal, blinded: bytes) -> None:
    (question,) = drawn.asked(drawn.people[0])
    with pytest.raises(InputError):
        drawn.ask(drawn.people[0], "token", TokenAsked(question.name, blinded))
    assert not drawn.store.tokens()


def test_no_token_before_the_lots() -> None:
    study = Rehearsal().registered()
    body = TokenAsked("table-0", b"")
    assert "nothing is asked yet" in refused(lambda: study.ask(study.people[0], "token", body))


def test_tokens_are_issued_before_the_first_wave_and_never_after(drawn: Rehearsal) -> None:
    """Whoever got hers later would be known by the wave in which her answer comes."""
    early, late = drawn.people[:2]
    (question,) = drawn.asked(early)
    asked = TokenAsked(question.name, drawn.blinded(question, drawn.report(question)).blinded)
    given = drawn.ask(early, "token", asked)
    assert phase(drawn) == "issuing"
    drawn.pass_time(20.0)
    assert phase(drawn) == "asking"
    assert drawn.ask(early, "token", asked) == given  # the answer was lost
    (question,) = drawn.asked(late)
    asked = TokenAsked(question.name, drawn.blinded(question, drawn.report(question)).blinded)
    assert "before its first wave" in refused(lambda: drawn.ask(late, "token", asked))
    assert drawn.collector.bulletin(drawn.now).expected == 1
    assert drawn.restarted().bulletin(drawn.now).expected == 1


def test_the_first_wave_opens_when_everybody_has_her_tokens(drawn: Rehearsal) -> None:
    for person in drawn.people:
        assert phase(drawn) == "issuing"
        drawn.answer(person)
    assert phase(drawn) == "asking"
    assert drawn.wave.number == 0


def test_people_have_their_time_for_tokens_when_the_collector_was_away(drawn: Rehearsal) -> None:
    drawn.now += 1e6
    drawn.restarted()
    drawn.pass_time(19.0)
    assert phase(drawn) == "issuing"
    drawn.pass_time(1.0)
    assert phase(drawn) == "asking"


# ── packets ──


def broken_proof(study: Rehearsal, answer: Answer) -> bytes:
    return replace(answer, proof=answer.proof[:-1] + bytes([answer.proof[-1] ^ 1])).to_bytes()


def other_report(study: Rehearsal, answer: Answer) -> bytes:
    """The token of one answer, with another answer."""
    question = list(study.proposal.questions.values())[answer.question]
    reports = (study.report(question, str(n)) for n in range(100))
    return replace(answer, report=next(r for r in reports if r != answer.report)).to_bytes()


def other_question(study: Rehearsal, answer: Answer) -> bytes:
    """The token of one question, for another."""
    questions = list(study.proposal.questions.values())
    number = next(n for n in range(len(questions)) if n != answer.question)
    report = study.report(questions[number])
    return replace(answer, question=number, report=report).to_bytes()


def other_prefix(study: Rehearsal, answer: Answer) -> bytes:
    """A second mark for one token."""
    return replace(answer, proof=bytes(32) + answer.proof[32:]).to_bytes()


REASONS: dict[str, tuple[str, Callable[[Rehearsal, Answer], bytes]]] = {
    "cover": ("cover", lambda study, answer: COVER),
    "broken proof": ("forged", broken_proof),
    "no proof": ("forged", lambda _, a: replace(a, proof=bytes(len(a.proof))).to_bytes()),
    "a token for another answer": ("forged", other_report),
    "a token for another question": ("another batch", other_question),
    "a second mark": ("forged", other_prefix),
    "study": ("another study", lambda _, a: replace(a, study="5a" * 32).to_bytes()),
    "impossible report": (
        "malformed",
        lambda _, a: replace(a, report=b"\xff" * len(a.report)).to_bytes(),
    ),
    "unknown question": ("malformed", lambda _, a: replace(a, question=99).to_bytes()),
    "cut off": ("malformed", lambda _, a: a.to_bytes()[:-1]),
    "too short for a head": ("malformed", lambda _, a: b"\x01" + bytes(3) + b"\x01"),
    "unknown kind": ("malformed", lambda _, a: b"\x02" + a.to_bytes()[1:]),
    "empty": ("malformed", lambda _, a: b""),
}


@pytest.mark.parametrize("case", REASONS)
def test_what_does_not_count_is_counted_by_its_reason_and_nothing_else(case: str) -> None:
    study = Rehearsal().opened()
    reason, made = REASONS[case]
    person = study.people[0]
    answer, batch = study.answers[person.public_key], study.batch(person)
    assert study.deliver(made(study, answer), batch=batch).kind == "taken"
    assert study.store.refused() == {reason: 1}
    assert study.store.reports() == []
    assert_no_identity(study)
    study.deliver(answer.to_bytes(), batch=batch)  # the honest one counts all the same
    assert [stored.report for stored in study.store.reports()] == [answer.report]


def assert_no_identity(study: Rehearsal) -> None:
    """What is told of refused reports: how many, for which reason."""
    for event, fields in study.told:
        if event == "reports refused":
            assert all(type(count) is int for count in fields.values()), fields


def test_what_was_sealed_for_others_is_unreadable(opened: Rehearsal) -> None:
    """Or under other terms: whoever was shown another wave is mixed with nobody."""
    person, wave = opened.people[0], opened.wave
    answer, batch = opened.answers[person.public_key].to_bytes(), opened.batch(person)
    other = next(name for name in opened.proposal.questions if name != batch)
    good = opened.packet(answer, batch)
    size = len(good)
    packets = [
        b"",
        bytes(size),
        good[:-1],
        good + b"\0",
        bytes([2]) + good[1:],
        good[:40] + bytes([good[40] ^ 1]) + good[41:],
        opened.packet(answer, batch, hop=2),
        opened.packet(answer, other),
    ]
    for terms in (
        {"number": 1, "before": "5c" * 32},
        {"stage": 1},
        {"opens": wave.opens + 1},
        {"thresholds": {"age": [1.0]}},
    ):
        shown = msgspec.structs.replace(wave, **terms)
        packets.append(_sealed_under(opened, shown, batch, answer))
    last = opened.relays[opened.assignment.ways(0)[batch][2]]
    for packet in packets:
        opened.ask(last, "packets", Packets(0, 0, 3, batch, [packet]))
    assert opened.store.refused() == {"unreadable": len(packets)}
    assert opened.store.reports() == []
    assert opened.told[-1] == ("reports refused", {"unreadable": 1})


def _sealed_under(study: Rehearsal, wave: Wave, batch: str, payload: bytes) -> bytes:
    """As it comes to the collector from relays that were shown the same other terms."""
    drawn = study.assignment
    context = context_of(drawn.drawing, wave, batch)
    stops = [study.proposal.stops[place] for place in (0, 1, 2)]
    packet = wrap(drawn.shape, context, stops, study.proposal.collector.onion, payload)
    for place in (0, 1, 2):
        packet = peel(drawn.shape, context, study.cast.relays[place][1], packet).packet
    return packet


def test_the_same_report_again_counts_once_also_after_a_restart(opened: Rehearsal) -> None:
    person = opened.people[0]
    answer, batch = opened.answers[person.public_key].to_bytes(), opened.batch(person)
    opened.deliver(answer, answer, batch=batch)
    opened.deliver(answer, batch=batch)
    opened.restarted()
    opened.deliver(answer, batch=batch)
    assert len(opened.store.reports()) == 1
    assert opened.store.refused() == {"again": 3}
    assert opened.collector.bulletin(0.0).arrived == 1
    assert not any(event == "reports refused" for event, _ in opened.told)


def test_a_ring_member_who_answers_twice_is_counted_once() -> None:
    study = Rehearsal(proof="ring").opened()
    person = study.people[0]
    answers = [study.answer(person, draw).to_bytes() for draw in "0123456789"]
    assert len(set(answers)) > 1
    first = study.answer(person, "0")
    study.deliver(*answers, batch=study.batch(person))
    (stored,) = study.store.reports()
    assert stored.report == first.report
    found = study.store.refused()
    assert found["double use"] > 0
    assert found["double use"] + found["again"] == len(answers) - 1
    assert_no_identity(study)


def test_a_ring_is_made_of_members() -> None:
    study = Rehearsal(proof="ring").opened()
    (question,) = study.asked(study.people[0])
    other = Rehearsal(proof="ring", seed=9).opened()  # the same people in another study
    stolen = replace(other.answers[other.people[0].public_key], study=study.proposal.digest)
    study.deliver(stolen.to_bytes(), batch=question.name)
    assert set(study.store.refused()) <= {"forged", "malformed", "another batch"}
    assert not study.store.reports()
    assert "not one that" in refused(
        lambda: study.ask(study.people[0], "token", TokenAsked(question.name, b""))
    )


def test_only_relays_bring_packets_and_tell_of_batches(opened: Rehearsal) -> None:
    batch = opened.batch(opened.people[0])
    answer = opened.packet(opened.answers[opened.people[0].public_key].to_bytes(), batch)
    said = BatchStatement("00" * 32, opened.assignment.drawing, 0, 0, 0, {})
    for sender in (STRANGER, opened.people[0], opened.cast.collector):
        for kind, body in (
            ("packets", Packets(0, 0, 3, batch, [answer])),
            ("batches", Batches(said.signed(sender))),
        ):
            message = refused(lambda s=sender, k=kind, b=body: opened.ask(s, k, b))
            assert "only a relay" in message
    assert not opened.store.reports()


@pytest.mark.parametrize("number", [-1, 2**31, 2**63, 2**64 - 1])
def test_numbers_that_nothing_has_room_for_are_refused(opened: Rehearsal, number: int) -> None:
    relay = opened.relays[0]
    for body in (Packets(number, 0, 3, "", [b"x"]), Packets(0, number, 3, "", [b"x"])):
        with pytest.raises(InputError):
            opened.ask(relay, "packets", body)
    with pytest.raises(InputError, match="no stage"):
        opened.ask(opened.people[0], "receipts", number=number)


def test_packets_of_a_question_come_from_the_last_relay_of_its_circuit(opened: Rehearsal) -> None:
    batch = opened.batch(opened.people[0])
    last = opened.assignment.ways(0)[batch][2]
    for place, relay in enumerate(opened.relays):
        for name in (batch, "table-99"):
            if (place, name) != (last, batch):
                body = Packets(0, 0, 3, name, [])
                said = refused(lambda r=relay, b=body: opened.ask(r, "packets", b))
                assert "another relay" in said
    assert opened.store.delivered(0, 0) == {}


# ── what relays say ──


def test_a_relay_says_once_what_it_has_passed_on(opened: Rehearsal) -> None:
    assert opened.state(0, (4, 4)).kind == opened.state(0, (4, 4)).kind == "noted"
    assert "something else" in refused(lambda: opened.state(0, (5, 5)))
    assert opened.store.statements(0, 0)[0].holds


@pytest.mark.parametrize(
    "terms",
    [
        {"relay": "00" * 32},
        {"drawing": "00" * 32},
        {"stage": 1},
        {"wave": 1},
        {"hop": 2},
        {"batches": {"table-99": (4, 4)}},
    ],
)
def test_a_statement_is_about_its_own_relay_and_wave(
    opened: Rehearsal, terms: dict[str, Any]
) -> None:
    drawn, key = opened.assignment, opened.relays[0]
    good = BatchStatement(key.public_key, drawn.drawing, 0, 0, drawn.hop_of(0, ()), {})
    wrong = Batches(replace(good, **terms).signed(key))
    assert refused(lambda: opened.ask(key, "batches", wrong))
    unsigned = Batches(replace(good, signature="00" * 64))
    assert refused(lambda: opened.ask(key, "batches", unsigned))
    assert opened.ask(key, "batches", Batches(good.signed(key))).kind == "noted"


def test_a_statement_comes_in_time(opened: Rehearsal) -> None:
    drawn, key = opened.assignment, opened.relays[0]
    said = BatchStatement(key.public_key, drawn.drawing, 0, 0, drawn.hop_of(0, ()), {}).signed(key)
    opened.pass_time(40.0)
    assert "this wave is over" in refused(lambda: opened.ask(key, "batches", Batches(said)))


@pytest.mark.parametrize(
    "kind", ["commit", "reveal", "bulletin", "token", "packets", "batches", "dance"]
)
@pytest.mark.parametrize("body", [b"", b"\xc1", b"\x90", b"\x81\xa4mark\xa1x"])
def test_bodies_that_say_nothing_are_refused(opened: Rehearsal, kind: str, body: bytes) -> None:
    sender = opened.people[0] if kind in ("bulletin", "token") else opened.relays[0]
    with pytest.raises(InputError):
        opened.collector.answer(sender.public_key, Letter(kind, 0, body), 0.0)


def test_letters_have_a_longest_length(opened: Rehearsal) -> None:
    assert opened.collector.limit("register") == Rehearsal().collector.limit("packets") == 4096
    packet = opened.packet(COVER, "table-0")
    full = write(Packets(2**31 - 1, 2**31 - 1, 3, "table-0", [packet] * 4096))
    assert len(full) <= opened.collector.limit("packets") <= len(full) + 4096 * 8 + 4096
    with pytest.raises(InputError, match="dance"):
        opened.collector.limit("dance")


# ── receipts ──


def test_receipts_are_of_all_by_question_and_in_order() -> None:
    study = Rehearsal(waves=1).opened()
    some = study.people[:5]
    study.deliver_all(*some)
    assert "when it is over" in refused(lambda: study.ask(STRANGER, "receipts"))
    study.pass_time(40.0)
    body = study.ask(STRANGER, "receipts").body
    said = read(Receipts, body)
    assert sum(len(digests) for digests in said.digests.values()) == 5 * RECEIPT_BYTES
    for digests in said.digests.values():
        parts = [digests[i : i + RECEIPT_BYTES] for i in range(0, len(digests), RECEIPT_BYTES)]
        assert parts == sorted(parts)
    proofs = proofs_of(study.proposal, ())
    for person in some:
        answer, name = study.answers[person.public_key], study.batch(person)
        mark = proofs.mark(name, answer.report, answer.proof)
        assert mark is not None
        assert is_among(said.digests[name], receipt_of(mark))
        assert not is_among(said.digests[name], receipt_of(b"nobody's"))
    assert not is_among(b"", receipt_of(b"nobody's"))
    study.restarted()
    assert study.ask(STRANGER, "receipts").body == body


def test_there_are_no_receipts_before_the_lots() -> None:
    assert "nothing is asked yet" in refused(lambda: Rehearsal().ask(STRANGER, "receipts"))


# ── waves ──


def test_a_study_is_over_when_all_have_arrived_and_all_relays_have_spoken() -> None:
    study = Rehearsal().opened()
    wave = study.wave
    study.deliver_all(*study.people[:-1])
    for place in range(4):
        study.state(place)
    assert phase(study) == "asking"
    study.deliver_all(study.people[-1])
    assert phase(study) == "asking"
    study.state(4)
    assert phase(study) == "over"
    assert study.collector.is_over
    assert study.collector.deadline is None
    payload = study.answers[study.people[0].public_key].to_bytes()
    study.deliver(payload, batch=study.batch(study.people[0]), wave=wave)
    assert study.store.refused() == {"after the window": 1}
    assert study.restarted().is_over
    assert len(study.store.reports()) == PEOPLE


def test_what_is_lost_after_it_has_left_a_relay_is_not_asked_again() -> None:
    study = Rehearsal().opened()
    study.deliver_all(*study.people[:7])
    for place in range(5):
        study.state(place, (4, 4))
    study.pass_time(40.0)
    assert phase(study) == "over"
    assert ("stage over", {"stage": 0, "reports": 7, "of": PEOPLE}) in study.told


def test_a_question_of_which_nothing_has_left_a_relay_is_asked_once_more() -> None:
    study = Rehearsal().opened()
    lost, *others = study.assignment.ways(0)
    for place in range(5):
        study.state(place, (4, 4), but=lost)
    before = study.wave
    study.pass_time(40.0)
    wave = study.wave
    assert (wave.number, wave.opens) == (1, 40.0)
    assert wave.before == wave_digest(study.assignment.drawing, before)
    assert study.assignment.repeated(wave) == {lost}
    assert set(study.assignment.open_batches(wave)) == {lost, IDLE}
    person = next(p for p in study.people if study.batch(p) == lost)
    other = next(p for p in study.people if study.batch(p) != lost)
    study.deliver_all(person)
    assert "another relay" in refused(lambda: study.deliver_all(other))
    study.pass_time(40.0)
    assert phase(study) == "over"
    assert [stored.wave for stored in study.store.reports()] == [1]
    assert others


def left_out(study: Rehearsal) -> tuple[int, ...]:
    return study.assignment.left_out(study.wave)


def test_relays_that_say_nothing_are_left_out_of_the_next_wave(opened: Rehearsal) -> None:
    for place in (0, 1, 2):
        opened.state(place)
    opened.pass_time(40.0)
    assert left_out(opened) == (3, 4)
    opened.restarted()
    assert left_out(opened) == (3, 4)


def test_if_fewer_than_a_circuit_speak_nobody_is_left_out(opened: Rehearsal) -> None:
    opened.state(0)
    opened.pass_time(40.0)
    assert left_out(opened) == ()


def test_a_relay_that_swallows_is_named(opened: Rehearsal) -> None:
    """The next stop has not received what it says it has passed on."""
    drawn = opened.assignment
    swallowed, lost = list(drawn.ways(0))[:2]
    culprit = drawn.ways(0)[swallowed][1]
    for place in range(5):
        hop = drawn.hop_of(place, ())
        opened.state(place, (4, 4) if hop < 2 else (0, 0), but=lost)
    opened.pass_time(40.0)
    assert culprit in left_out(opened)
    names = [fields["relay"] for event, fields in opened.told if event == "relay left out"]
    assert opened.proposal.relays[culprit].name in names


def test_a_wave_of_an_away_collector_ends_and_the_next_has_its_whole_time(
    opened: Rehearsal,
) -> None:
    opened.now += 1e6
    opened.restarted().tick(opened.now)
    wave = opened.collector.bulletin(opened.now).wave
    assert wave is not None
    assert (wave.number, wave.opens) == (1, opened.now)


def test_stages_follow_one_another_and_take_their_own_answers_only() -> None:
    study = Rehearsal(100, schema=UNCUT, waves=1).drawn()
    stages = study.proposal.drawn_up.stages
    assert stages > 1
    person = next(p for p in study.people if study.asked(p)[0].stage == 0)
    batch, answer = study.batch(person), study.answer(person).to_bytes()
    seen = []
    while phase(study) in ("issuing", "asking"):
        if phase(study) == "asking":
            stage = study.wave.stage
            seen.append(stage)
            name = batch if stage == 0 else study.proposal.drawn_up.in_stage(stage)[0].name
            before = len(study.store.reports())
            study.deliver(answer, batch=name)
            assert len(study.store.reports()) - before == (stage == 0)
        study.pass_time(40.0)
    assert seen == list(range(stages))
    assert study.store.refused() == {"another batch": stages - 1}


# ── bulletins ──


def test_a_bulletin_is_given_when_there_is_news() -> None:
    study = Rehearsal()
    first = read(Bulletin, study.ask(STRANGER, "bulletin", SeenBulletin(0)).body)
    assert (first.phase, first.roster, first.drawn, first.registered) == ("gathering", "", None, 0)
    assert study.ask(STRANGER, "bulletin", SeenBulletin(first.mark)).kind == "wait"
    study.opened()
    second = read(Bulletin, study.ask(STRANGER, "bulletin", SeenBulletin(first.mark)).body)
    assert second.mark > first.mark
    assert (second.phase, second.registered) == ("asking", PEOPLE)
    assert second.wave is not None
    assert second.expected == PEOPLE


@pytest.mark.parametrize("wave", [None, "there is one"])
def test_a_bulletin_has_a_wave_while_something_is_asked(wave: Any) -> None:
    study = Rehearsal().opened()
    news = msgspec.to_builtins(study.collector.bulletin(0.0))
    body = {**news, "wave": None} if wave is None else {**news, "phase": "over"}
    with pytest.raises(InputError):
        read(Bulletin, msgspec.msgpack.encode(body))


def test_the_collectors_part_of_the_lot_is_secret_until_the_roster_is_closed() -> None:
    """And until the relays have revealed theirs: it could be used to choose among them."""
    study = Rehearsal().registered().committed()
    for place in range(4):
        assert study.collector.bulletin(study.now).drawn is None
        study.reveal(place)
    study.reveal(4)
    drawn = study.collector.bulletin(study.now).drawn
    assert drawn is not None
    assert drawn.seed == study.cast.secrets.seed


def test_a_token_says_nothing_about_its_owner(drawn: Rehearsal) -> None:
    """What the collector has seen of a request does not occur in the token."""
    person = drawn.people[0]
    (question,) = drawn.asked(person)
    blinded = drawn.blinded(question, drawn.report(question))
    body = TokenAsked(question.name, blinded.blinded)
    given = read(TokenGiven, drawn.ask(person, "token", body).body)
    token = blinded.finalize(given.signature).to_bytes()
    for part in (blinded.blinded, given.signature):
        assert part not in token
