"""The aggregator of a federation as the centre of a study."""

from __future__ import annotations

from pathlib import Path

from tacit.channels.federation.aggregator import Aggregator
from tacit.channels.federation.journal import Journal
from tacit.channels.roles.events import Tell
from tacit.channels.studies.study import Study
from tacit.crypto.signing import SigningKey

__all__ = ["aggregator"]


def aggregator(
    study: Study, key: SigningKey, folder: Path, now: float, tell: Tell
) -> tuple[Aggregator, Journal]:
    """The aggregator of a federation, as its journal knows it."""
    journal = Journal(folder / "aggregator.db", study.digest)
    return Aggregator(study, key, journal, now, tell=tell), journal
