"""Receipts: what everybody can count, and each person finds her own among."""

from __future__ import annotations

from collections.abc import Iterable

from tacit.channels.crowd.collector_store import Stored
from tacit.channels.crowd.letters import RECEIPT_BYTES, Receipts
from tacit.channels.crowd.payload import receipt_of

__all__ = ["main_waves", "receipts_of"]


def main_waves(reports: Iterable[Stored]) -> dict[str, int]:
    """The first wave in which answers to each question arrived: in it everybody who was asked sends
    hers. In later ones those who missed their receipt do, and they may be few."""
    found: dict[str, int] = {}
    for stored in reports:
        found[stored.question] = min(stored.wave, found.get(stored.question, stored.wave))
    return found


def receipts_of(reports: Iterable[Stored], stage: int, wave: int) -> Receipts:
    """Of what arrived in earlier waves of a stage than this; of all, once it is over (−1)."""
    here = [s for s in reports if s.stage == stage and (wave < 0 or s.wave < wave)]
    first = main_waves(here)
    main = _grouped(s for s in here if s.wave == first[s.question])
    return Receipts(stage, wave, main, _grouped(s for s in here if s.wave != first[s.question]))


def _grouped(reports: Iterable[Stored]) -> dict[str, bytes]:
    found: dict[str, list[bytes]] = {}
    for stored in reports:
        found.setdefault(stored.question, []).append(receipt_of(stored.mark)[:RECEIPT_BYTES])
    return {name: b"".join(sorted(found[name])) for name in sorted(found)}
