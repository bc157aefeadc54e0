"""A study in plain words: who will see what, how much noise there will be, and what it costs."""

from __future__ import annotations

import math

from tacit.channels.federation.rehearsal import rehearsed
from tacit.channels.studies.explanation import BlockNoise, Explanation, promised
from tacit.channels.studies.made_up import Progress
from tacit.channels.studies.study import Study
from tacit.privacy.bound import Norm
from tacit.programs.program import Query

__all__ = ["explain"]


def explain(
    study: Study,
    records: int | None = None,
    *,
    quick: bool = False,
    progress: Progress | None = None,
) -> Explanation:
    """Explain a study from its file alone; `quick` leaves out the rehearsal."""
    return Explanation(
        promise=promised(study),
        trust=_trust(study),
        sees=_sees(study),
        noise=_noise(study, study.plan().stage(1).query),
        factor=study.noise_factor,
        noise_words=_noise_words(study),
        cost=_cost(study),
        drop_out=_drop_out(study),
        loss=None if quick else rehearsed(study, records, progress),
    )


def _trust(study: Study) -> str:
    count = len(study.servers)
    if study.noise.honest is None:
        return (
            f"It holds as long as one of the {count} servers keeps its shares to itself and adds "
            "its noise, whatever all others do together. Nobody has to be trusted alone."
        )
    return (
        f"It holds as long as {study.noise.honest} of the {count} servers follow the rules and "
        "do not pool what they know: each of them can take away its own noise only."
    )


def _sees(study: Study) -> dict[str, list[str]]:
    sees = {
        "each holder": [
            "its own data, which stay where they are.",
            "in every round what is asked, computed from the noisy sums of earlier rounds.",
        ]
    }
    for server in study.servers:
        sees[f"server {server.name}"] = [
            "who takes part, and one share of each holder's sum: numbers that are uniformly random "
            "by themselves."
        ]
    sees[f"aggregator {study.aggregator.name}"] = [
        "who takes part, and the noisy sum over all holders in every round; never one holder's sum."
    ]
    sees["everyone"] = ["this file, the model and its certificate."]
    return sees


def _noise(study: Study, query: Query) -> list[BlockNoise]:
    if not study.promise.is_private:
        return []
    levels = study.levels() if study.online is None else study.window_levels(1)
    found = []
    for block in query.blocks:
        mechanism = levels.mechanism(block)
        # The variance of Laplace noise of scale b is 2 b².
        whole = float(mechanism.scale) * (math.sqrt(2) if block.norm is Norm.L1 else 1.0)
        found.append(
            BlockNoise(
                block.name,
                mechanism.name,
                block.length,
                float(study.contributions * block.bound),
                "each server",
                whole / math.sqrt(study.parts),
                whole * study.spread,
                whole / study.contributions,
            )
        )
    return found


def _noise_words(study: Study) -> str:
    count, parts = len(study.servers), study.parts
    if not study.promise.is_private:
        return "No noise is added."
    root = f"√({count}/{parts})" if parts > 1 else f"√{count}"
    each = "all the noise that the promise needs" if parts == 1 else f"1/{parts} of its variance"
    many = study.contributions
    covered = "" if many == 1 else f" · {many}, for the {many} holders that a person may be with"
    return (
        f"Each of the {count} servers adds {each}, so the result has {study.noise_factor:.3g} "
        f"times the standard deviation of a run in one trusted place: {root}{covered}. In the "
        "first round:"
    )


def _cost(study: Study) -> str:
    if not study.promise.is_private:
        return "A ledger with a ceiling refuses it."
    how = "once, for all rounds together"
    if study.online is not None:
        how = (
            f"in each of {study.online.windows} windows, which count once, since each has other "
            "records"
        )
    promise = study.promise
    delta = f", δ = {promise.delta:g}" if promise.delta else ""
    return (
        f"Each holder's ledger is charged ε = {promise.epsilon:g}{delta} per {promise.unit}, {how}"
        ", before the first share leaves."
    )


def _drop_out(study: Study) -> list[str]:
    part, deadlines = study.take_part, study.deadlines
    return [
        f"It begins when all {len(study.holders)} holders are there, or after "
        f"{deadlines.gather:g} seconds with at least {part.minimum} of them.",
        f"A holder whose shares are not with all servers {deadlines.round:g} seconds after a round "
        f"opened is left out of that round; a round needs {part.minimum} to {part.maximum} of "
        "them, and the study stops if there are too few for long.",
        "All servers are needed: without one of them no sum can be read.",
    ]
