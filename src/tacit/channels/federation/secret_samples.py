"""A holder's secret samples: in each round another one, and in each life of the holder the same.

A holder that crashed between drawing a sample and keeping the shares made of it draws that sample
again. Nobody else can: samples follow from a secret of this machine (options.md).
"""

from __future__ import annotations

from collections.abc import Callable

from tacit.channels.federation.outbox import Outbox
from tacit.channels.studies.study import Study
from tacit.crypto.local_secret import local_secret
from tacit.crypto.prg import SYSTEM, DerivedRandomness, Randomness

__all__ = ["Samples", "fresh_samples", "secret_samples"]

Samples = Callable[[int], Randomness]  # what draws the sample of a round


def fresh_samples(number: int) -> Randomness:
    """Drawn anew whenever it is asked: for runs within one process, which have no second life."""
    return SYSTEM


def secret_samples(study: Study, outbox: Outbox) -> Samples:
    """What draws each round's sample, from this machine's secret.

    Bound to the study, to this part in it, and to the round. Whoever forgets the outbox and takes
    part again is charged again, and has other samples: two runs over the same ones would cost more
    than two runs.
    """

    def of(number: int) -> Randomness:
        question = f"{study.digest} {outbox.identity} {number}".encode()
        return DerivedRandomness.for_question(local_secret("samples of studies"), question)

    return fresh_samples if study.sampling is None else of
