"""A consortium rehearsed on made-up data: how much worse its average gets by the noise.

Records are made up from the schema as in federation/rehearsal.py, and each party trains on its own.
The noise is drawn as the parties will draw it, but from one public seed, and without the masks and
ciphertexts that it travels in: they change no sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.channels.consortium.protocols import terms_of
from tacit.channels.consortium.published_terms import PublishedTerms
from tacit.channels.consortium.terms import JointTerms, Terms
from tacit.channels.studies.made_up import (
    HELD_OUT,
    MOST_RECORDS,
    MOST_WORK,
    SEED,
    Loss,
    Progress,
    made_up,
    rows_of,
    scored,
)
from tacit.channels.studies.study import Study
from tacit.crypto.prg import Randomness, SeededRandomness
from tacit.errors import UsageError
from tacit.programs.files import from_bytes

__all__ = ["rehearsed"]


def rehearsed(study: Study, records: int | None = None, progress: Progress | None = None) -> Loss:
    """Average models of made-up records, with the noise of the study and without any.

    `records` is how many each party has; a tenth of what the study allows, if not given.
    """
    least, most = study.agreed_consortium.smallest, study.take_part.records
    asked = max(least, most // 10) if records is None else records
    if not least <= asked <= most:
        raise UsageError(f"records = {asked}: study {study.name} takes {least} to {most} a party.")
    parties = min(len(study.holders), study.take_part.maximum)
    terms = terms_of(study, tuple(sorted(holder.key for holder in study.holders)[:parties]))
    each = max(1, min(asked, MOST_WORK // terms.length // parties, MOST_RECORDS // parties))
    source = SeededRandomness(SEED)
    data = made_up(terms.averaged.encoder(study.schema), parties * each + HELD_OUT, source)
    total = np.zeros(terms.length, dtype=np.int64)
    for place in range(parties):
        own = rows_of(data, slice(place * each, (place + 1) * each))
        total += terms.encoded(terms.averaged.train(own, study.schema))
        if progress is not None:
            progress(place + 1, parties)
    exact, noisy = _model(terms, total), _model(terms, _noisy(terms, total, asked, source))
    held_out = rows_of(data, slice(parties * each, None))
    measure, score = scored(terms.averaged, held_out, exact)
    return Loss(measure, score(exact), score(noisy), parties, each, asked)


def _noisy(
    terms: Terms, total: NDArray[np.int64], records: int, source: Randomness
) -> NDArray[np.int64]:
    """The sum, with the noise of all parties, or with that of the smallest as published."""
    if isinstance(terms, PublishedTerms):
        return total + len(terms.roster) * terms.noise(records, source)
    assert isinstance(terms, JointTerms)
    if terms.mechanism is None:
        return total
    for _ in terms.roster:
        total = terms.mechanism.perturb(total, source)
    return total


def _model(terms: Terms, total: NDArray[np.int64]) -> Any:
    return from_bytes(terms.averaged.models, terms.model_file(total))
