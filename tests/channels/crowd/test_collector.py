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

from tacit.channels.crowd.collector import Collector
from tacit.channels.crowd.letters import (
    RECEIPT_BYTES,
    Batches,
    Bulletin,
    Commitment,
    Packets,
    Receipts,
    SeenBulletin,
    TokenAsked,
    TokenGiven,
    is_among,
)
from tacit.channels.crowd.payload import COVER, Answer, receipt_of
from tacit.channels.crowd.plan import PlanTerms
from tacit.channels.crowd.proofs import proofs_of
from tacit.channels.crowd.secrets import Secrets
from tacit.channels.roles.letters import Letter, read, write
from tacit.crypto.lots import commitment
from tacit.crypto.signing import SigningKey
from tacit.errors import InputError, UsageError

STRANGER = SigningKey.generate()


@pytest.fixture
def opened() -> Rehearsal:
    return Rehearsal().opened()


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
    other = Commitment(commitment(bytes(32)))
    assert "another seed" in refused(lambda: study.ask(study.relays[0], "commit", other))
    assert "only a relay" in refused(lambda: study.ask(study.people[0], "commit", other))


@pytest.mark.parametrize("text", ["", "é" * 64, "0" * 63, "0" * 65, "0" * 64 + "\n", "A" * 64])
def test_a_commitment_is_a_digest(text: str) -> None:
    study = Rehearsal()
    for _ in range(2):  # the second is compared with the first
        with pytest.raises(InputError):
            study.ask(study.relays[0], "commit", Commitment(text))
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
    study.reveal(3)
    study.pass_time(19.0)
    assert phase(study) == "drawing"
    study.pass_time(1.0)
    assert phase(study) == "asking"
    drawn = study.collector.bulletin(study.now).drawn
    assert drawn is not None
    assert set(drawn.reveals) == {3}


def test_without_any_relay_no_lots_are_drawn() -> None:
    study = Rehearsal().registered().committed()
    study.pass_time(20.0)
    assert "no relay revealed" in study.collector.failure


def test_relays_have_their_time_when_the_collector_was_away() -> None:
    study = Rehearsal().registered().committed()
    study.now += 1e6
    study.restarted()
    study.pass_time(19.0)
    assert phase(study) == "drawing"
    study.reveal(0)
    study.pass_time(1.0)
    assert phase(study) == "asking"


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


def test_one_token_for_each_person_and_question(opened: Rehearsal) -> None:
    person = opened.people[0]
    (question,) = opened.asked(person)
    body = TokenAsked(question.name, opened.blinded(question, opened.report(question, "1")).blinded)
    other = msgspec.structs.replace(
        body, blinded=opened.blinded(question, opened.report(question, "2")).blinded
    )
    first = opened.ask(person, "token", body)
    for _ in range(2):
        assert opened.ask(person, "token", body) == first
        message = refused(lambda: opened.ask(person, "token", other))
        assert "for another answer" in message
        opened.restarted()
    assert opened.store.tokens() == 1


def test_no_token_for_another_question_nor_for_strangers(opened: Rehearsal) -> None:
    person = opened.people[0]
    (mine,) = opened.asked(person)
    for question in opened.proposal.questions.values():
        blinded = opened.blinded(question, opened.report(question)).blinded
        for sender in (person, STRANGER, opened.relays[0], opened.cast.collector):
            if sender is person and question == mine:
                continue
            body = TokenAsked(question.name, blinded)
            message = refused(lambda sender=sender, body=body: opened.ask(sender, "token", body))
            assert "not one that the lots have given to you" in message
    unknown = TokenAsked("table-99", b"")
    assert "not one that" in refused(lambda: opened.ask(person, "token", unknown))
    assert opened.store.tokens() == 0


@pytest.mark.parametrize("blinded", [b"", bytes(256), b"\xff" * 256, bytes(255) + b"\x01" + b"x"])
def test_what_was_not_blinded_is_not_signed(opened: Rehearsal, blinded: bytes) -> None:
    (question,) = opened.asked(opened.people[0])
    with pytest.raises(InputError):
        opened.ask(opened.people[0], "token", TokenAsked(question.name, blinded))
    assert opened.store.tokens() == 0


def test_no_token_before_the_lots_and_none_after_the_window() -> None:
    study = Rehearsal().registered()
    body = TokenAsked("table-0", b"")
    assert "nothing is asked yet" in refused(lambda: study.ask(study.people[0], "token", body))
    study = Rehearsal(waves=1).opened()
    early, late = study.people[:2]
    (question,) = study.asked(early)
    asked = TokenAsked(question.name, study.blinded(question, study.report(question)).blinded)
    given = study.ask(early, "token", asked)
    study.pass_time(1000.0)
    assert phase(study) == "over"
    assert study.ask(early, "token", asked) == given  # the answer was lost
    (question,) = study.asked(late)
    asked = TokenAsked(question.name, study.blinded(question, study.report(question)).blinded)
    assert "is over" in refused(lambda: study.ask(late, "token", asked))


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
    "a token for another question": ("forged", other_question),
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
    answer = study.answer(study.people[0])
    assert study.deliver(made(study, answer)).kind == "taken"
    assert study.store.refused() == {reason: 1}
    assert study.store.reports() == []
    assert_no_identity(study)
    study.deliver(answer.to_bytes())  # the honest one counts all the same
    assert [stored.report for stored in study.store.reports()] == [answer.report]


def assert_no_identity(study: Rehearsal) -> None:
    """What is told of refused reports: how many, for which reason."""
    for event, fields in study.told:
        if event == "reports refused":
            assert all(type(count) is int for count in fields.values()), fields


def test_what_was_sealed_for_others_is_unreadable(opened: Rehearsal) -> None:
    answer = opened.answer(opened.people[0]).to_bytes()
    good = opened.packet(answer)
    size = len(good)
    for packet in (
        b"",
        bytes(size),
        good[:-1],
        good + b"\0",
        bytes([2]) + good[1:],
        good[:40] + bytes([good[40] ^ 1]) + good[41:],
        opened.packet(answer, hop=2),
        opened.packet(answer, wave=1),
        opened.packet(answer, stage=1),
    ):
        opened.ask(opened.relays[0], "packets", Packets(0, 0, 3, [packet]))
    assert opened.store.refused() == {"unreadable": 9}
    assert opened.store.reports() == []
    assert opened.told[-1] == ("reports refused", {"unreadable": 1})


def test_the_same_report_again_counts_once_also_after_a_restart(opened: Rehearsal) -> None:
    answer = opened.answer(opened.people[0]).to_bytes()
    opened.deliver(answer, answer)
    opened.deliver(answer)
    opened.restarted()
    opened.deliver(answer)
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
    study.deliver(*answers)
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
    stolen = replace(other.answer(other.people[0]), study=study.proposal.digest)
    study.deliver(stolen.to_bytes())
    assert set(study.store.refused()) <= {"forged", "malformed"}
    assert not study.store.reports()
    assert "not one that" in refused(
        lambda: study.ask(study.people[0], "token", TokenAsked(question.name, b""))
    )


def test_only_relays_bring_packets_and_tell_of_batches(opened: Rehearsal) -> None:
    answer = opened.packet(opened.answer(opened.people[0]).to_bytes())
    for sender in (STRANGER, opened.people[0], opened.cast.collector):
        for kind, body in (
            ("packets", Packets(0, 0, 3, [answer])),
            ("batches", Batches(0, 0, {0: 1})),
        ):
            message = refused(lambda s=sender, k=kind, b=body: opened.ask(s, k, b))
            assert "only a relay" in message
    assert not opened.store.reports()


@pytest.mark.parametrize("number", [-1, 2**31, 2**63, 2**64 - 1])
def test_numbers_that_nothing_has_room_for_are_refused(opened: Rehearsal, number: int) -> None:
    relay = opened.relays[0]
    for kind, body in (
        ("packets", Packets(number, 0, 3, [b"x"])),
        ("packets", Packets(0, number, 3, [b"x"])),
        ("batches", Batches(number, 0, {})),
        ("batches", Batches(0, number, {})),
        ("batches", Batches(0, 0, {number: 1})),
        ("batches", Batches(0, 0, {1: number})),
    ):
        with pytest.raises(InputError):
            opened.ask(relay, kind, body)
    with pytest.raises(InputError, match="no stage"):
        opened.ask(opened.people[0], "receipts", number=number)


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
    packet = opened.packet(COVER)
    full = write(Packets(2**31 - 1, 2**31 - 1, 3, [packet] * 4096))
    assert len(full) <= opened.collector.limit("packets") <= len(full) + 4096 * 8 + 4096
    with pytest.raises(InputError, match="dance"):
        opened.collector.limit("dance")


# ── receipts ──


def test_receipts_are_of_all_and_in_order(opened: Rehearsal) -> None:
    answers = [opened.answer(person) for person in opened.people[:5]]
    opened.deliver(*(answer.to_bytes() for answer in answers))
    assert read(Receipts, opened.ask(STRANGER, "receipts").body).digests == b""
    assert opened.collector.deadline is not None
    opened.now = opened.collector.deadline  # what arrived in a wave is published with the next
    said = read(Receipts, opened.ask(STRANGER, "receipts").body).digests
    parts = [said[i : i + RECEIPT_BYTES] for i in range(0, len(said), RECEIPT_BYTES)]
    assert len(parts) == 5
    assert parts == sorted(parts)
    proofs = proofs_of(opened.proposal, ())
    names = opened.proposal.drawn_up.names
    for answer in answers:
        mark = proofs.mark(names[answer.question], answer.report, answer.proof)
        assert mark is not None
        assert is_among(said, receipt_of(mark))
    assert not is_among(said, receipt_of(b"nobody's"))
    assert not is_among(b"", receipt_of(b"nobody's"))
    opened.restarted()
    assert read(Receipts, opened.ask(STRANGER, "receipts").body).digests == said


def test_there_are_no_receipts_before_the_lots() -> None:
    assert "nothing is asked yet" in refused(lambda: Rehearsal().ask(STRANGER, "receipts"))


# ── waves ──


def test_a_study_is_over_when_all_have_arrived() -> None:
    study = Rehearsal().opened()
    answers = [study.answer(person).to_bytes() for person in study.people]
    study.deliver(*answers[:-1])
    assert phase(study) == "asking"
    study.deliver(answers[-1])
    assert phase(study) == "over"
    assert study.collector.is_over
    assert study.collector.deadline is None
    study.deliver(answers[0])
    assert study.store.refused() == {"after the window": 1}
    assert study.restarted().is_over
    assert len(study.store.reports()) == PEOPLE


def test_what_is_missing_after_the_last_wave_stays_so() -> None:
    study = Rehearsal(waves=2).opened()
    study.deliver(*(study.answer(person).to_bytes() for person in study.people[:7]))
    study.pass_time(40.0)
    news = study.collector.bulletin(study.now)
    assert news.wave is not None
    assert (news.wave.number, news.wave.opens, news.arrived, news.expected) == (1, 40.0, 7, PEOPLE)
    study.pass_time(40.0)
    assert phase(study) == "over"
    assert ("stage over", {"stage": 0, "reports": 7, "of": PEOPLE}) in study.told


def test_relays_that_say_nothing_are_named(opened: Rehearsal) -> None:
    for place in (0, 1, 2):
        opened.ask(opened.relays[place], "batches", Batches(0, 0, {place: 4} if place else {}))
    opened.pass_time(40.0)
    assert opened.collector.bulletin(opened.now).silent == [3, 4]
    assert opened.restarted().bulletin(opened.now).silent == [3, 4]
    opened.ask(opened.relays[0], "batches", Batches(0, 1, {}))
    opened.pass_time(40.0)  # fewer than a circuit: the collector itself was not heard
    assert opened.collector.bulletin(opened.now).silent == [3, 4]


def test_a_wave_of_an_away_collector_ends_and_the_next_has_its_whole_time(
    opened: Rehearsal,
) -> None:
    opened.now += 1e6
    opened.restarted().tick(opened.now)
    wave = opened.collector.bulletin(opened.now).wave
    assert wave is not None
    assert (wave.number, wave.opens) == (1, opened.now)


def test_stages_follow_one_another_and_take_their_own_answers_only() -> None:
    plan = PlanTerms(kind="anonml", partitions=1, subsets=1, size=3)
    study = Rehearsal(60, schema=UNCUT, plan=plan, waves=1).opened()
    stages = study.proposal.drawn_up.stages
    assert stages > 1
    person = study.people[0]
    first = study.asked(person)[0]
    answer = study.answer(person).to_bytes()
    while phase(study) == "asking":
        news = study.collector.bulletin(study.now)
        assert news.wave is not None
        before = len(study.store.reports())
        study.deliver(answer, stage=news.wave.stage)
        assert len(study.store.reports()) - before == (news.wave.stage == first.stage)
        assert sum(news.wave.stage == q.stage for q in study.proposal.questions.values())
        study.pass_time(40.0)
    assert study.store.refused() == {"after the window": stages - 1}


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


def test_a_token_says_nothing_about_its_owner(opened: Rehearsal) -> None:
    """What the collector has seen of a request does not occur in the token."""
    person = opened.people[0]
    (question,) = opened.asked(person)
    blinded = opened.blinded(question, opened.report(question))
    body = TokenAsked(question.name, blinded.blinded)
    given = read(TokenGiven, opened.ask(person, "token", body).body)
    token = blinded.finalize(given.signature).to_bytes()
    for part in (blinded.blinded, given.signature):
        assert part not in token
