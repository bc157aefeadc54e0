"""One batch of one study, for relays to take in: of six people, of whom half must be there."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from drawn_study import DrawnStudy

from tacit.channels.crowd.assignment import wave_digest
from tacit.channels.crowd.letters import Wave
from tacit.channels.crowd.relay import Relay, Taken
from tacit.channels.crowd.relay_store import RelayStore

STUDY = DrawnStudy()
BATCH, OTHER = STUDY.drawn.batches(0)[:2]
WAVE = Wave(0, 0, 100.0)
WAY = STUDY.way(BATCH, WAVE)
ASKED = STUDY.asked(BATCH)
REQUIRED = STUDY.drawn.required(BATCH)
SIZE = STUDY.drawn.shape.packet_bytes
LATER = Wave(
    0,
    1,
    200.0,
    thresholds={"age": [30.0, 60.0]},
    statements={place: STUDY.statement(place, place % 3, {}) for place in range(5)},
    delivered={BATCH: 1},
    before=wave_digest(STUDY.drawn.drawing, WAVE),
)


def packet(payload: bytes = b"", wave: Wave = WAVE, batch: str = BATCH) -> bytes:
    return STUDY.packet(wave, batch, payload)


def opened(hop: int = 0, store: RelayStore | None = None, wave: Wave = WAVE) -> Relay:
    """The relay of the batch's circuit at this hop, with the wave open."""
    made = STUDY.relay(WAY[hop], store)
    made.open_wave(wave)
    return made


def filled(count: int, store: RelayStore | None = None) -> Relay:
    """The first relay, to which so many people have handed in a packet."""
    made = opened(store=store)
    for person in ASKED[:count]:
        assert made.take(person, 0, 0, 0, BATCH, [packet(person[:9].encode())]) == Taken(1, 0, 0)
    return made


def passed_on(count: int = REQUIRED) -> list[bytes]:
    """What the first relay hands to the second, of so many people."""
    (out,) = filled(count).release(WAVE)
    assert (out.to, out.hop, out.question) == (WAY[1], 1, BATCH)
    return out.packets
