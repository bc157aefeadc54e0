"""Older certificates that say more than was established: which, and why.

They are genuine, and their arithmetic may even be right as far as it goes; but what they were
written by had faults (SECURITY.md) that a certificate does not show. Nobody can tell from one
whether its study was affected, so all that may have been are named.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tacit.privacy.amplified import Amplified
from tacit.privacy.certificate_parts import OLD_FORMATS, Participation, Witness
from tacit.privacy.promise import Adjacency, Promise, Unit
from tacit.privacy.release import Release

__all__ = ["why_superseded"]

_WINDOW = re.compile(r"window \d+")

SAMPLE = (
    "blocks that were asked of one secret sample were accounted for as if each had its own, and "
    "the certificate does not say which were: the cost can be several times as high"
)
HOLDER_SAMPLE = "with unit 'holder' no sample was drawn, though the cost was lowered for one"
WINDOWS = (
    "its windows were accounted for as if one unit lay in one of them, which is true of a record "
    "that is added or removed, and of nothing else"
)
PERSONS = "a person with several holders contributed to each of them, and was counted once"
STATES = (
    "servers fitted their noise to states of an aggregator that nobody has checked, and parties "
    "that were restarted may have used their noise twice"
)
CROWD = (
    "a collector could have a person's device answer more than once for one charge, and tell her "
    "answers from others'; how many were mixed was its word alone"
)


def why_superseded(
    written: str,
    promise: Promise,
    releases: Sequence[Release],
    study: str | None,
    participation: Participation | None,
    witnesses: Sequence[Witness],
    amplified: Amplified | None = None,
) -> str | None:
    """The reasons, in words; None if the promise stands as certified."""
    if not promise.is_private:
        return None
    if amplified is not None and not amplified.is_attested:
        return CROWD
    if written not in OLD_FORMATS:
        return None
    found = [*_of_samples(promise, releases), *_of_windows(promise, releases)]
    # Of a crowd everyone answers for herself, on her own device: such releases have no bound.
    summed = any(release.bound is not None for release in releases)
    if study is not None and summed:
        several = participation is not None and participation.holders > 1
        if promise.unit is Unit.PERSON and several:
            found.append(PERSONS)
        if witnesses:
            found.append(STATES)
    return "; ".join(found) or None


def _of_samples(promise: Promise, releases: Sequence[Release]) -> list[str]:
    sampled = [release for release in releases if release.sampling < 1]
    if not sampled:
        return []
    if promise.unit is Unit.HOLDER:
        return [HOLDER_SAMPLE]
    # Equal blocks of one query were written as one release with a count.
    return [SAMPLE] if sum(release.count for release in sampled) > 1 else []


def _of_windows(promise: Promise, releases: Sequence[Release]) -> list[str]:
    if not any(release.part and _WINDOW.fullmatch(release.part) for release in releases):
        return []
    kept = promise.unit is Unit.RECORD and promise.adjacency is Adjacency.ADD_REMOVE
    return [] if kept else [WINDOWS]
