"""A study in plain words: who will see what, how much noise there will be, and what it costs."""

from __future__ import annotations

import math
from typing import Any

from tacit.channels.federation.explain_options import explained_options
from tacit.channels.federation.rehearsal import rehearsed, typical_records
from tacit.channels.studies.explanation import BlockNoise, Explanation, promised
from tacit.channels.studies.file import FIRST_FORMAT
from tacit.channels.studies.made_up import Progress
from tacit.channels.studies.study import Study
from tacit.privacy.bound import Norm
from tacit.programs.expected import ExpectedError, expected_error
from tacit.programs.program import Program, Query
from tacit.programs.ranged import PART, more_noise
from tacit.programs.registry import program_named

__all__ = ["explain"]


def explain(
    study: Study,
    records: int | None = None,
    *,
    quick: bool = False,
    progress: Progress | None = None,
) -> Explanation:
    """Explain a study from its file alone; `quick` leaves out the rehearsal."""
    noise = _noise(study, _first_queries(study))
    return Explanation(
        promise=promised(study),
        trust=_trust(study),
        sees=_sees(study),
        noise=noise,
        factor=study.noise_factor,
        noise_words=_noise_words(study),
        cost=_cost(study),
        schedule=_schedule(study),
        drop_out=_drop_out(study),
        loss=None if quick else rehearsed(study, records, progress),
        expected=_expected(study, records),
        ranges=_ranges(study),
        seen=_itself(study).sees(study.schema),
        options=explained_options(study, noise, records),
    )


def _itself(study: Study) -> Program[Any, Any]:
    """The program alone, whatever else the study runs to find its bounds."""
    return program_named(study.chosen.name, study.chosen.version, study.chosen.settings)


def _first_queries(study: Study) -> list[Query]:
    """The first round, and where ranges are found before it, their rounds too."""
    return [stage.query for stage in study.plan().stages[: 3 if study.schema.private else 1]]


def _ranges(study: Study) -> str:
    """What finding the ranges costs: it is paid from the one promise."""
    columns = study.schema.private
    if not columns:
        return ""
    names = ", ".join(column.name for column in columns)
    return (
        f"Nobody states bounds of {names}: their ranges are found first, in two rounds, with "
        f"{float(PART):.0%} of the promise; nothing is added to it, and all other noise is "
        f"{more_noise(study.promise) - 1:.1%} larger than with public bounds. A column whose range "
        "the noise hides is guessed, and model and certificate say which."
    )


def _expected(study: Study, records: int | None) -> ExpectedError | None:
    """For as many records as the rehearsal has: from what the study declares, and the noise of its
    servers. In an online study each window pays for its own records, so noise grows with windows.
    """
    if not study.promise.is_private:
        return None
    each = typical_records(study) if records is None else records
    holders = min(len(study.holders), study.take_part.maximum)
    windows = 1 if study.online is None else study.online.windows
    factor = study.noise_factor * math.sqrt(windows)
    own = each * holders
    return expected_error(_itself(study), study.schema, study.promise, own, factor=factor)


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


def _noise(study: Study, queries: list[Query]) -> list[BlockNoise]:
    if not study.promise.is_private:
        return []
    levels = study.levels(min(1, study.plan().windows))
    found = []
    for block in (block for query in queries for block in query.blocks):
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
                whole * study.spread / float(study.rate),  # sums of samples are scaled up
                whole / study.contributions / (float(study.rate) * study.sampling_factor),
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
    if study.sampling is not None:
        covered += f" · {study.sampling_factor:.3g}, for the samples"
    return (
        f"Each of the {count} servers adds {each}, so the result has {study.noise_factor:.3g} "
        f"times the standard deviation of a run in one trusted place: {root}{covered}. In the "
        f"first {'rounds' if study.schema.private else 'round'}:"
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


def _schedule(study: Study) -> list[str]:
    """How many rounds there are, and which of them are about which records."""
    plan = study.plan()
    if not plan.windows:
        return [f"At most {plan.rounds} rounds, all of them about the same records."]
    each = [plan.part(window).rounds for window in range(1, plan.windows + 1)]
    first, last = each[0], each[-1]
    many = f"{first} rounds each" if first == last else f"{first} rounds in the first, then {last}"
    lines = [
        f"{plan.windows} windows of new records: {many}, {plan.rounds} in all. A record is used in "
        "one window, and in all of its rounds.",
        "After each window there is a model of all records so far, with its certificate.",
    ]
    if study.format == FIRST_FORMAT:
        lines[1] = (
            "This file is of the first format, in which each window has one round of a plan that "
            "was made for all records at once: most programs learn next to nothing from it. Write "
            "the study anew."
        )
    return lines


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
