"""Which studies may sample their records, and how they may select: each refusal with its reason.

The proofs of what is allowed, and why the rest is not: channels/federation/options.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tacit.channels.studies.file import FIRST_FORMAT, FORMAT
from tacit.privacy.promise import Adjacency, Unit

if TYPE_CHECKING:
    from tacit.channels.studies.study import Study

__all__ = ["LEAST_RATE", "option_problems"]

# Below it hardly any sample has a record, and accountants take minutes.
LEAST_RATE = 1e-4


def option_problems(study: Study) -> Iterable[str]:
    """What is wrong with [sampling] and [selection], and what to do."""
    if study.sampling is not None:
        yield from _sampling_problems(study, study.sampling.rate)
    if study.selection is not None:
        yield from _selection_problems(study, study.selection.kind)


def _sampling_problems(study: Study, rate: float) -> Iterable[str]:
    promise = study.promise
    if not LEAST_RATE <= rate < 1:
        yield (
            f"[sampling]: rate = {rate}; give {LEAST_RATE:g} to below 1, or take [sampling] out: "
            "then everybody takes part in every round."
        )
    yield from _channel_problems(study, "sampling", "train on all of their own records, once")
    if not promise.is_private:
        yield (
            "[sampling]: epsilon is infinite: there is no noise that a secret sample could make "
            "less. Take [sampling] out, or promise a finite epsilon."
        )
    if promise.unit is Unit.HOLDER:
        yield (
            "[sampling]: a whole holder is the unit, and everyone sees who takes part: there is no "
            'secret sample of holders. Take [sampling] out, or protect unit = "record".'
        )
    if promise.adjacency is Adjacency.REPLACE:
        yield (
            "[sampling]: samples are accounted for where a unit is there or not, not where it is "
            'exchanged: set adjacency = "add-remove", or take [sampling] out.'
        )
    if study.contributions > 1:
        yield (
            f"[sampling]: a person may be with {study.contributions} holders, each of which draws "
            "a sample of its own: they would be in some of them more often than the rate says. "
            "State holders_per_person = 1 if that is so, or take [sampling] out."
        )


def _selection_problems(study: Study, kind: str) -> Iterable[str]:
    yield from _channel_problems(study, "selection", "release nothing to select from")
    if kind == "sparse-vector":
        yield (
            '[selection]: kind = "sparse-vector" compares sums that nobody may see with a noisy '
            "threshold. In a federation a sum can be compared only after the aggregator has read "
            "it, and whatever is read costs as much as if it were released: nothing would be "
            'saved. Write kind = "noisy-counts"; one holder alone may use sparse vectors.'
        )


def _channel_problems(study: Study, table: str, parties: str) -> Iterable[str]:
    """Of studies that have no such rounds."""
    if study.consortium is not None:
        yield f"[{table}]: the parties of a consortium {parties}: take [{table}] out."
    elif study.format == FIRST_FORMAT:
        yield f"[{table}]: {FIRST_FORMAT!r} has none: write the study anew, in {FORMAT!r}."
