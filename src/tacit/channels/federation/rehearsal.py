"""A study rehearsed on made-up data: how much worse its model gets by the noise of its servers.

The data are made up (studies/made_up.py); the noise is not estimated: it is drawn as each server
will draw it.
"""

from __future__ import annotations

import math
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
from tacit.data.schema import Schema
from tacit.engines import Serial
from tacit.errors import UsageError
from tacit.programs.contribute import decoded
from tacit.programs.holding import Holding
from tacit.programs.program import Program
from tacit.programs.ranged import Ranged

__all__ = ["rehearsed", "typical_records"]

MOST_WORK = 3 * 10**8  # records × coordinates × rounds


def typical_records(study: Study) -> int:
    """How many a holder is taken to bring if nobody says: a tenth of what the study allows."""
    return max(1, study.take_part.records // 10)


def rehearsed(study: Study, records: int | None = None, progress: Progress | None = None) -> Loss:
    """Run the study's program on made-up records, with its servers' noise and without any.

    `records` is how many each holder brings; a tenth of what the study allows, if not given.
    """
    asked = typical_records(study) if records is None else records
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
    noisy, ranges = _federated(study, program, own, source, progress)
    exact, wide = _exact(study, study.program_at_once(), rows_of(data, slice(holders * each)))
    measure, score = scored(program, _seen(study, program, held_out, wide), exact)
    without_noise = score(exact)
    if ranges != wide:  # each model sees records under its own ranges
        measure, score = scored(program, _seen(study, program, held_out, ranges), exact)
    return Loss(measure, without_noise, score(noisy), holders, each, asked)


def _seen(study: Study, program: Program[Any, Any], data: Encoded, learned: Schema) -> Encoded:
    """Records as a model that was learned under these ranges sees them."""
    if not isinstance(program, Ranged):
        return data
    return program.view(study.schema).under(learned, data)


def _affordable(study: Study, holders: int, width: int) -> int:
    """How many records each holder may have, so that nobody waits long."""
    longest = max(width, study.plan().stage(1).query.length)
    return max(1, min(MOST_RECORDS, MOST_WORK // (longest * _passes(study))) // holders)


def _passes(study: Study) -> int:
    """How often each record is looked at: in all rounds, or in those of its window."""
    plan = study.plan()
    return -(-plan.rounds // max(1, plan.windows))


def _exact(study: Study, program: Program[Any, Any], data: Encoded) -> tuple[Any, Schema]:
    promise = replace(study.promise, epsilon=math.inf)
    outcome = Central().run(program, ArrayRecords(*data), study.schema, promise)
    return outcome.model, outcome.schema


def _federated(
    study: Study,
    program: Program[Any, Any],
    own: list[Encoded],
    source: Randomness,
    progress: Progress | None,
) -> tuple[Any, Schema]:
    """All rounds: the holders' exact sum, plus the noise of every server."""
    state, plan = study.first_state(), NoisePlan(study)
    known: dict[int, list[Holding]] = {}
    done = 0
    while done < study.last_round:
        stage = study.plan().stage(done + 1)
        query = program.asked(state, stage.query)
        if query is None:
            break
        if stage.window not in known:
            known = {stage.window: _holdings(study, program, own, stage.window)}
        holdings = known[stage.window]
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
            progress(done, study.last_round)
    return program.result(state), program.learned_schema(study.schema, state)


def _holdings(
    study: Study, program: Program[Any, Any], own: list[Encoded], window: int
) -> list[Holding]:
    """The holders' records of a window; all of them, if there are no windows."""

    def held(part: Encoded) -> Holding:
        first = study.first_state()
        return Holding(program, first, ArrayRecords(*part), study.promise, Serial().map_sum)

    if not window:
        return [held(part) for part in own]
    step = max(1, len(own[0].X) // study.plan().windows)
    start = min((window - 1) * step, len(own[0].X) - step)
    return [held(rows_of(part, slice(start, start + step))) for part in own]
