"""What follows from the drawing: the same for everybody who was shown the same, and no others."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from rehearsal import PEOPLE, UNCUT, Rehearsal

from tacit.channels.crowd.assignment import Assignment, context_of, wave_digest
from tacit.channels.crowd.letters import IDLE, Drawn, Wave
from tacit.channels.crowd.plan import PlanTerms
from tacit.crypto.signing import SigningKey
from tacit.errors import CheckFailed
from tacit.privacy.attested import BatchStatement

SECOND = Wave(0, 1, 0.0, before="5c" * 32)
STRANGER = SigningKey.generate().public_key
WAVE = Wave(0, 1, 20.0, {"age": [1.0, 2.0]}, {}, {"table-0": 4}, "5c" * 32)


@pytest.fixture(params=["one", "stages", "anonml"])
def drawn(request: pytest.FixtureRequest) -> Assignment:
    terms = {
        "one": Rehearsal(),
        "stages": Rehearsal(100, schema=UNCUT),
        "anonml": Rehearsal(plan=PlanTerms(kind="anonml", partitions=3, subsets=1, size=2)),
    }
    return terms[request.param].drawn().assignment


def test_everybody_sends_as_many_packets_each_in_a_batch(drawn: Assignment) -> None:
    for stage in range(drawn.plan.stages):
        batches = Counter(name for member in drawn.members for name in drawn.slots(member, stage))
        assert {*batches, IDLE} == set(drawn.batches(stage))
        assert sum(batches.values()) == drawn.plan.packets(stage) * len(drawn.members)
        for name, number in batches.items():
            if name != IDLE:
                assert number == drawn.expected(name)
                assert 2 * drawn.required(name) >= number
                assert drawn.required(name) <= number


def test_strangers_are_asked_nothing(drawn: Assignment) -> None:
    assert drawn.place_of(STRANGER) is None
    assert drawn.names(STRANGER) == ()
    for place, member in enumerate(drawn.members):
        assert drawn.place_of(member) == place


def test_every_batch_has_a_circuit_of_relays_in_play(drawn: Assignment) -> None:
    for stage in range(drawn.plan.stages):
        ways = drawn.ways(stage)
        assert set(ways) == set(drawn.batches(stage))
        for way in ways.values():
            assert len(set(way)) == drawn.proposal.route.hops
            assert [drawn.hop_of(place, ()) for place in way] == [0, 1, 2]


def test_relays_that_did_not_draw_are_not_in_play() -> None:
    study = Rehearsal().registered().committed()
    for place in (0, 2, 3):
        study.reveal(place)
    study.pass_time(20.0)
    drawn = study.assignment
    assert drawn.relays == (0, 2, 3)
    assert set(drawn.ways(0)["table-0"]) == {0, 2, 3}
    assert drawn.hop_of(1, ()) == -1


def test_two_drawings_have_two_digests() -> None:
    study = Rehearsal().drawn()
    shown = study.collector.bulletin(study.now).drawn
    assert shown is not None
    digests = {study.assignment.drawing}
    for place in shown.reveals:
        fewer = {p: said for p, said in shown.reveals.items() if p != place}
        other = Assignment(study.proposal, study.roster, Drawn(shown.seed, fewer))
        digests.add(other.drawing)
    assert len(digests) == 1 + len(shown.reveals)


@pytest.mark.parametrize(
    "terms",
    [
        {"stage": 1},
        {"number": 2},
        {"opens": 20.5},
        {"thresholds": {"age": [1.0, 3.0]}},
        {"delivered": {"table-0": 5}},
        {"before": "5d" * 32},
        {"statements": {0: BatchStatement("00" * 32, "00" * 32, 0, 0, 0, {})}},
    ],
    ids=lambda terms: next(iter(terms)),
)
def test_whoever_is_shown_another_wave_makes_packets_that_nobody_can_open(
    terms: dict[str, object],
) -> None:
    other = msgspec.structs.replace(WAVE, **terms)
    for batch in ("table-0", IDLE):
        assert context_of("00" * 32, WAVE, batch) != context_of("00" * 32, other, batch)
    assert wave_digest("00" * 32, WAVE) != wave_digest("00" * 32, other)


def test_batches_and_drawings_have_contexts_of_their_own() -> None:
    names = ("table-0", "table-1", "", "able-0")
    found = {context_of(d * 32, WAVE, name) for name in names for d in ("00", "01")}
    assert len(found) == 8
    assert {len(context) for context in found} == {32}


def test_in_the_first_wave_nobody_is_left_out() -> None:
    drawn = Rehearsal().drawn().assignment
    assert drawn.left_out(Wave(0, 0, 0.0)) == ()
    with pytest.raises(ValueError, match="nothing was sent"):
        Wave(0, 0, 0.0, statements={0: BatchStatement("", "", 0, 0, 0, {})})


def test_statements_are_the_relays_own() -> None:
    study = Rehearsal().drawn()
    drawn, key = study.assignment, study.relays[0]
    good = BatchStatement(key.public_key, drawn.drawing, 0, 0, 0, {})
    drawn.left_out(msgspec.structs.replace(SECOND, statements={0: good.signed(key)}))
    for place, wrong in (
        (0, good),
        (1, good.signed(key)),
        (7, good.signed(key)),
        (0, good.signed(study.relays[1])),
        (0, BatchStatement(key.public_key, "00" * 32, 0, 0, 0, {}).signed(key)),
        (0, BatchStatement(key.public_key, drawn.drawing, 1, 0, 0, {}).signed(key)),
        (0, BatchStatement(key.public_key, drawn.drawing, 0, 1, 0, {}).signed(key)),
    ):
        with pytest.raises(CheckFailed, match="has not said"):
            drawn.left_out(msgspec.structs.replace(SECOND, statements={place: wrong}))


def test_silent_relays_are_left_out_while_enough_are_left() -> None:
    study = Rehearsal().drawn()
    drawn = study.assignment
    said = {
        place: BatchStatement(key.public_key, drawn.drawing, 0, 0, -1, {}).signed(key)
        for place, key in enumerate(study.relays)
    }
    assert drawn.left_out(msgspec.structs.replace(SECOND, statements=said)) == ()
    three = {place: said[place] for place in (0, 2, 4)}
    assert drawn.left_out(msgspec.structs.replace(SECOND, statements=three)) == (1, 3)
    assert drawn.left_out(msgspec.structs.replace(SECOND, statements={0: said[0]})) == ()
    assert len(drawn.members) == PEOPLE


def test_a_question_is_asked_again_only_if_no_relay_has_passed_anything_on() -> None:
    study = Rehearsal().drawn()
    drawn = study.assignment
    names = set(drawn.ways(0)) - {IDLE}

    def shown(**passed: int) -> Wave:
        said = {
            place: BatchStatement(
                key.public_key,
                drawn.drawing,
                0,
                0,
                drawn.hop_of(place, ()),
                {name: (9, passed.get(f"at_{place}", 0)) for name in names},
            ).signed(key)
            for place, key in enumerate(study.relays)
        }
        return msgspec.structs.replace(SECOND, statements=said)

    assert drawn.repeated(SECOND) == names  # everybody is silent
    assert drawn.repeated(shown()) == names
    for place in range(5):
        assert drawn.repeated(shown(**{f"at_{place}": 1})) == set()
    assert drawn.repeated(Wave(0, 0, 0.0)) == set()
    assert set(drawn.open_batches(shown())) == {*names, IDLE}
    assert set(drawn.open_batches(shown(at_0=1))) == {IDLE}
    third = msgspec.structs.replace(shown(), number=2, statements={})
    assert set(drawn.open_batches(third)) == {IDLE}
