"""A study rehearsed on made-up data: how much worse its model gets by the noise of its servers.

The data are made up (studies/made_up.py); the noise is not estimated: it is drawn as each server
will draw it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tacit.channels.central import Central
from tacit.channels.federation.noise_plan import NoisePlan
from tacit.channels.studies.made_up import (
    HELD_OUT,
    MOST_RECORDS,
    SEED,
    Loss,
    Progress,
    made_up,
    rows_of,
    scored,
)
from tacit.channels.studies.study import Study
from tacit.crypto.prg import Randomness, SeededRandomness
from tacit.data.encode import Encoded
from tacit.data.records import ArrayRecords
from tacit.engines import Serial
from tacit.errors import UsageError
from tacit.programs.contribute import decoded
from tacit.programs.holding import Holding
from tacit.programs.program import Program

__all__ = ["rehearsed"]

MOST_WORK = 3 * 10**8  # records × coordinates × rounds


def rehearsed(study: Study, records: int | None = None, progress: Progress | None = None) -> Loss:
    """Run the study's program on made-up records, with its servers' noise and without any.

    `records` is how many each holder brings; a tenth of what the study allows, if not given.
    """
    asked = max(1, study.take_part.records // 10) if records is None else records
    if not 1 <= asked <= study.take_part.records:
        raise UsageError(
            f"records = {asked}: study {study.name} allows 1 to {study.take_part.records} a holder."
        )
    program, holders = study.program(), min(len(study.holders), study.take_part.maximum)
    encoder = program.encoder(study.schema)
    each = min(asked, _affordable(study, holders, encoder.width))
    source = SeededRandomness(SEED)
    data = made_up(encoder, holders * each + HELD_OUT, source)
    own = [rows_of(data, slice(i * each, (i + 1) * each)) for i in range(holders)]
    held_out = rows_of(data, slice(holders * each, None))
    noisy = _federated(study, program, own, source, progress)
    exact = _exact(study, program, rows_of(data, slice(holders * each)))
    measure, score = scored(program, held_out, exact)
    return Loss(measure, score(exact), score(noisy), holders, each, asked)


def _affordable(study: Study, holders: int, width: int) -> int:
    """How many records each holder may have, so that nobody waits long."""
    longest = max(width, study.plan().stage(1).query.length)
    return max(1, min(MOST_RECORDS, MOST_WORK // (longest * study.rounds)) // holders)


def _exact(study: Study, program: Program[Any, Any], data: Encoded) -> Any:
    promise = replace(study.promise, epsilon=math.inf)
    return Central().run(program, ArrayRecords(*data), study.schema, promise).model


def _federated(
    study: Study,
    program: Program[Any, Any],
    own: list[Encoded],
    source: Randomness,
    progress: Progress | None,
) -> Any:
    """All rounds: the holders' exact sum, plus the noise of every server."""
    state, plan = study.first_state(), NoisePlan(study)
    windows = _windows(study, program, own)
    planned = study.rounds if study.online is None else study.online.windows
    done = 0
    while done < study.last_round:
        stage = study.plan().stage(done + 1)
        query, holdings = program.asked(state, stage.query), next(windows, None)
        if query is None or holdings is None:
            break
        done += 1
        sums = [holding.sum(state, query, stage.sampling, source) for holding in holdings]
        total = np.sum(sums, axis=0)
        mechanisms = plan.charge(done, query)
        # Without privacy there are no mechanisms, and no noise.
        for (_, place), mechanism in zip(query.slices(), mechanisms, strict=False):
            for _ in study.servers:
                total[place] = mechanism.perturb(total[place], source)
        state = program.reduce(decoded(total, query) / float(stage.sampling), state)
        if progress is not None:
            progress(done, planned)
    return program.result(state)


def _windows(
    study: Study, program: Program[Any, Any], own: list[Encoded]
) -> Iterator[list[Holding]]:
    """The holders' records of each round: all of them, or those of its window."""

    def held(part: Encoded) -> Holding:
        first = study.first_state()
        return Holding(program, first, ArrayRecords(*part), study.promise, Serial().map_sum)

    if study.online is None:
        everything = [held(part) for part in own]
        while True:
            yield everything
    for window in range(study.online.windows):
        step = max(1, len(own[0].X) // study.online.windows)
        start = min(window * step, len(own[0].X) - step)
        yield [held(rows_of(part, slice(start, start + step))) for part in own]
