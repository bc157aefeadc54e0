"""Receipts: what everybody can count, and each person finds her own among."""

from __future__ import annotations

from collections.abc import Iterable

from tacit.channels.crowd.collector_store import Stored
from tacit.channels.crowd.letters import RECEIPT_BYTES, Receipts
from tacit.channels.crowd.payload import receipt_of

__all__ = ["receipts_of"]


def receipts_of(reports: Iterable[Stored], stage: int) -> Receipts:
    """Of a stage that is over."""
    found: dict[str, list[bytes]] = {}
    for stored in reports:
        if stored.stage == stage:
            found.setdefault(stored.question, []).append(receipt_of(stored.mark)[:RECEIPT_BYTES])
    return Receipts(stage, {name: b"".join(sorted(found[name])) for name in sorted(found)})
