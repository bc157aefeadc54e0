"""What an aggregator can tell of past rounds: to holders, and to a server that was put back."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.channels.federation.journal import Step
from tacit.channels.federation.letters import Past, Sealed, Witnessed, digest_of
from tacit.channels.federation.seals import Question
from tacit.channels.roles.letters import Letter, write
from tacit.channels.studies.study import Study
from tacit.errors import Refused

__all__ = ["asked_in", "repair", "sealed_of", "witnessed"]


def asked_in(step: Step) -> Question:
    """What the round sums, once that is chosen."""
    return Question(step.number, digest_of(step.state), step.holders or (), step.marks)


def sealed_of(step: Step) -> Sealed:
    return Sealed(list(step.holders or ()), list(step.marks), list(step.seals))


def witnessed(study: Study, steps: Sequence[Step]) -> Witnessed | None:
    """What the round before the last has summed, as all servers have sealed it."""
    if len(steps) < 2:
        return None
    return Witnessed(asked_in(steps[-2]).digest(study.digest), list(steps[-2].seals))


def repair(steps: Sequence[Step], number: int) -> Letter:
    """What a server must be told that knows the study up to before this round."""
    if not 1 <= number <= len(steps):
        raise Refused(f"it asks to be told of round {number}, which we do not know.")
    step = steps[number - 1]
    if number == len(steps):
        return Letter("open", number, step.state)
    return Letter("recall", number, write(Past(step.state, sealed_of(step))))
