"""What sampling and selection buy in a study, in plain words and numbers (options.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tacit.channels.federation.rehearsal import typical_records
from tacit.channels.studies.explanation import BlockNoise
from tacit.channels.studies.study import Study

__all__ = ["explained_options"]

HARDLY = 1.05  # so much more noise is little


def explained_options(
    study: Study, noise: Sequence[BlockNoise], records: int | None = None
) -> list[str]:
    """For as many records of each holder as everything else in an explanation is about."""
    lines = [] if study.sampling is None else _sampling(study, noise[0], records)
    if study.selection is not None:
        lines.append(
            "What stands out is selected from the noisy counts that everyone sees, which costs "
            "nothing more. Sparse vectors need one place that sees the exact counts, and a "
            "federation has none."
        )
    return lines


def _sampling(study: Study, first: BlockNoise, records: int | None) -> list[str]:
    rate, factor = float(study.rate), study.sampling_factor
    each = typical_records(study) if records is None else records
    many = each * min(len(study.holders), study.take_part.maximum)
    missed = math.sqrt(many * (1 - rate) / rate)
    return [
        f"Sampling: each {study.promise.unit} takes part in a round with probability {rate:g}, "
        "drawn in secret by its holder. Rounds are calibrated for that, and sums are scaled up.",
        f"At the same promise the result has {factor:.3g} times the noise that it would have "
        f"without sampling: of {first.block}, a standard deviation of {first.result:.4g} instead "
        f"of {first.result / factor:.4g}, and all others alike.",
        f"A count of all {many:,} records also varies by {missed:,.0f}, because a sample is not "
        "all of them: an expected error leaves that out, a rehearsal has it.",
        f"{_verdict(factor)}: in a round each holder looks at {rate:.3g} of its records.",
    ]


def _verdict(factor: float) -> str:
    if factor < 1:
        return "It buys less noise, and less work"
    if factor < HARDLY:
        return "It buys less work, for hardly more noise"
    return "It buys less work, and nothing else; for the best result leave it out"
