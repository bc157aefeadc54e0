"""The relay's batches: passed on whole, once, or never; whatever crashes."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from drawn_study import SEARCHED, UNCUT, DrawnStudy, identity
from one_batch import (
    ASKED,
    BATCH,
    LATER,
    OTHER,
    REQUIRED,
    SIZE,
    STUDY,
    WAVE,
    WAY,
    filled,
    opened,
    packet,
    passed_on,
)

from tacit.channels.crowd.letters import IDLE
from tacit.channels.crowd.relay import Taken
from tacit.channels.crowd.relay_store import RelayStore
from tacit.channels.roles.store import MEMORY
from tacit.crypto.onion import OnionKey
from tacit.errors import CheckFailed, Refused, UsageError

# ── release ──


def test_exactly_so_many_people_pass_and_one_fewer_are_held() -> None:
    assert len(ASKED) // 2 == REQUIRED
    made = filled(REQUIRED)
    (out,) = made.release(WAVE)
    assert (out.to, out.hop, out.question) == (WAY[1], 1, BATCH)
    assert len(out.packets) == REQUIRED
    assert made.attest(0, 0) == {BATCH: (REQUIRED, REQUIRED)}
    made = filled(REQUIRED - 1)
    assert made.release(WAVE) == []
    assert made.attest(0, 0) == {BATCH: (REQUIRED - 1, 0)}


def test_what_is_held_back_is_held_for_good() -> None:
    """Whoever came after the window would be seen among those who did not."""
    made = filled(REQUIRED - 1)
    made.release(WAVE)
    with pytest.raises(Refused, match="was released"):
        made.take(ASKED[5], 0, 0, 0, BATCH, [packet(b"one more")])
    assert made.release(WAVE) == []


def test_garbage_does_not_make_a_crowd() -> None:
    made = filled(REQUIRED - 1)
    for number, person in enumerate(ASKED[REQUIRED:]):
        made.take(person, 0, 0, 0, BATCH, [bytes([0, number]) + bytes(SIZE - 2)])
    assert made.release(WAVE) == []
    assert made.attest(0, 0) == {BATCH: (len(ASKED) - 1, 0)}


@pytest.mark.parametrize("count", [REQUIRED - 1, REQUIRED])
def test_later_hops_have_the_minimum_too(count: int) -> None:
    second = opened(1)
    second.take(STUDY.key(WAY[0]), 0, 0, 1, BATCH, passed_on()[:count])
    released = second.release(WAVE)
    gone = count if count == REQUIRED else 0
    assert [len(out.packets) for out in released] == [gone] * bool(gone)
    assert second.attest(0, 0) == {BATCH: (count, gone)}


def test_each_question_is_a_batch_of_its_own() -> None:
    """One with enough people lends none of them to another."""
    study = DrawnStudy(relays=3)  # so that both go the same way
    first = study.relay(study.way(BATCH, WAVE)[0])
    first.open_wave(WAVE)
    for batch, count in ((BATCH, study.drawn.required(BATCH)), (OTHER, 1)):
        for person in study.asked(batch)[:count]:
            first.take(person, 0, 0, 0, batch, [study.packet(WAVE, batch)])
    assert [out.question for out in first.release(WAVE)] == [BATCH]
    assert first.attest(0, 0) == {BATCH: (REQUIRED, REQUIRED), OTHER: (1, 0)}


def test_released_is_released() -> None:
    made = filled(3)
    first = made.release(WAVE)
    assert made.release(WAVE) == first  # asked again, the same in the same order
    with pytest.raises(Refused, match="was released"):
        made.take(ASKED[5], 0, 0, 0, BATCH, [packet(b"late")])
    assert made.attest(0, 0) == {BATCH: (3, 3)}


def test_the_idle_hide_nobody_and_are_passed_on_all_the_same() -> None:
    study = DrawnStudy(40, schema=UNCUT, plan=SEARCHED)
    way, idle = study.way(IDLE, WAVE), study.asked(IDLE)
    busy = next(person for person in study.people if person not in idle)
    stranger = identity("stranger").public_key
    assert study.drawn.required(IDLE) == 1
    first = study.relay(way[0])
    first.open_wave(WAVE)
    with pytest.raises(Refused, match="who are asked this"):
        first.take(stranger, 0, 0, 0, IDLE, [study.packet(WAVE, IDLE)])
    first.take(idle[0], 0, 0, 0, IDLE, [study.packet(WAVE, IDLE)])
    first.take(busy, 0, 0, 0, IDLE, [study.packet(WAVE, IDLE)])  # whose answer has no proof
    (out,) = first.release(WAVE)
    assert (out.to, out.question, len(out.packets)) == (way[1], IDLE, 2)
    assert first.attest(0, 0)[IDLE] == (2, 2)
    table = study.drawn.batches(study.drawn.plan.stages - 1)
    assert IDLE in table  # those who were asked before have nothing to say then


# ── waves ──


def test_waves_go_forward() -> None:
    made = STUDY.relay(WAY[0])
    with pytest.raises(Refused, match="not open"):
        made.take(ASKED[0], 0, 0, 0, BATCH, [packet()])
    made.open_wave(LATER)
    made.open_wave(LATER)  # told twice
    with pytest.raises(Refused, match="is over"):
        made.open_wave(WAVE)
    for other in (WAVE, msgspec.structs.replace(LATER, number=2)):
        with pytest.raises(Refused, match="not open"):
            made.release(other)
    with pytest.raises(Refused, match="not open"):
        made.take(ASKED[0], 0, 0, 0, BATCH, [packet()])


@pytest.mark.parametrize("again", [False, True], ids=["same life", "after a restart"])
@pytest.mark.parametrize("change", [{"opens": 0.0}, {"thresholds": {}}, {"statements": {}}])
def test_a_wave_has_one_version(change: Mapping[str, object], again: bool, tmp_path: Path) -> None:
    """With two, the collector could have some people's packets opened and others' dropped."""
    store = RelayStore(tmp_path / "relay.db", STUDY.proposal.digest)
    made = opened(store=store, wave=LATER)
    made.take(ASKED[0], 0, 1, 0, BATCH, [packet(wave=LATER)])
    if again:
        store.close()
        store = RelayStore(tmp_path / "relay.db", STUDY.proposal.digest)
        made = STUDY.relay(WAY[0], store)
    other = msgspec.structs.replace(LATER, **change)
    with pytest.raises(CheckFailed, match="that is a fraud"):
        made.open_wave(other)
    with pytest.raises(Refused, match="not open"):
        made.release(other)
    made.open_wave(LATER)  # the first still holds
    store.close()


@pytest.mark.parametrize(
    "change",
    [
        {"hop": 1},
        {"wave": 1},
        {"stage": 1},
        {"drawing": "00" * 32},
        {"batches": {BATCH: (9, 9)}},
        {"relay": STUDY.key(1)},
        {"signature": ""},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_wave_with_a_statement_that_nobody_has_signed_is_refused(
    change: dict[str, object],
) -> None:
    forged = {**LATER.statements, 0: replace(LATER.statements[0], **change)}
    made = STUDY.relay(WAY[0])
    with pytest.raises(CheckFailed, match="has not said"):
        made.open_wave(msgspec.structs.replace(LATER, statements=forged))


def test_a_relay_that_is_left_out_takes_nothing_and_others_stand_in() -> None:
    silent = WAY[0]
    heard = {place: said for place, said in LATER.statements.items() if place != silent}
    wave = msgspec.structs.replace(LATER, statements=heard)
    made = opened(wave=wave)
    assert made.hop == -1
    with pytest.raises(Refused, match="do not come here"):
        made.take(ASKED[0], 0, 1, 0, BATCH, [packet()])
    assert made.release(wave) == []
    assert made.attest(0, 1) == {}
    way = STUDY.way(BATCH, wave)
    assert silent not in way
    stands_in = STUDY.relay(way[0])
    stands_in.open_wave(wave)
    assert stands_in.take(ASKED[0], 0, 1, 0, BATCH, [packet(wave=wave)]) == Taken(1, 0, 0)


def test_what_was_held_back_does_not_come_with_the_next_wave() -> None:
    made = filled(REQUIRED - 1)
    made.release(WAVE)
    made.open_wave(LATER)
    with pytest.raises(Refused, match="not open"):
        made.release(WAVE)
    for person in ASKED[2:5]:
        made.take(person, 0, 1, 0, BATCH, [packet(wave=LATER)])
    (out,) = made.release(LATER)
    assert len(out.packets) == 3
    assert made.attest(0, 0) == {BATCH: (REQUIRED - 1, 0)}
    assert made.attest(0, 1) == {BATCH: (3, 3)}


# ── crashes ──


def test_a_batch_that_was_released_stays_so_after_a_crash(tmp_path: Path) -> None:
    path, study = tmp_path / "relay.db", STUDY.proposal.digest
    store = RelayStore(path, study)
    filled(3, store).release(WAVE)
    store.close()
    store = RelayStore(path, study)
    again = opened(store=store)
    with pytest.raises(Refused, match="was released"):
        again.take(ASKED[0], 0, 0, 0, BATCH, [packet(b"replayed")])
    with pytest.raises(Refused, match="before this relay was started again"):
        again.release(WAVE)
    assert again.attest(0, 0) == {BATCH: (3, 3)}
    again.open_wave(LATER)
    for person in ASKED[:3]:
        again.take(person, 0, 1, 0, BATCH, [packet(wave=LATER)])
    again.release(LATER)
    store.close()
    with pytest.raises(Refused, match="is over"):
        opened(store=RelayStore(path, study))


def test_a_batch_that_was_not_released_begins_anew_after_a_crash(tmp_path: Path) -> None:
    path, sent = tmp_path / "relay.db", packet(b"sent twice")
    store = RelayStore(path, STUDY.proposal.digest)
    opened(store=store).take(ASKED[0], 0, 0, 0, BATCH, [sent])
    store.close()
    again = opened(store=RelayStore(path, STUDY.proposal.digest))
    assert again.take(ASKED[0], 0, 0, 0, BATCH, [sent]) == Taken(1, 0, 0)


def test_nothing_of_a_packet_is_on_the_disk(tmp_path: Path) -> None:
    store = RelayStore(tmp_path / "relay.db", STUDY.proposal.digest)
    made = opened(store=store)
    packets = [packet(person[:9].encode()) for person in ASKED]
    for person, sent in zip(ASKED, packets, strict=True):
        made.take(person, 0, 0, 0, BATCH, [sent])
    (out,) = made.release(WAVE)
    written = b"".join(file.read_bytes() for file in tmp_path.glob("relay.db*"))
    assert STUDY.proposal.digest.encode() in written
    assert not any(p[1:17] in written for p in (*packets, *out.packets))
    assert not any(person[:9].encode() in written for person in STUDY.people)


class FailingStore(RelayStore):
    broken = True

    def put(self, stage: int, wave: int, batches: Mapping[str, tuple[int, int]]) -> None:
        if self.broken:
            raise OSError("no space left")
        super().put(stage, wave, batches)


def test_nothing_leaves_before_it_is_noted() -> None:
    store = FailingStore(MEMORY, STUDY.proposal.digest)
    made = filled(3, store)
    with pytest.raises(OSError, match="no space"):
        made.release(WAVE)
    assert made.attest(0, 0) == {}
    store.broken = False
    (out,) = made.release(WAVE)
    assert len(out.packets) == 3


def test_a_key_of_another_kind_is_refused() -> None:
    with pytest.raises(UsageError, match="x25519"):
        STUDY.relay(0, key=OnionKey.generate("hybrid"))
