"""What is asked of whom once the lots are drawn: the same for the collector and for everyone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tacit.channels.crowd.collector_store import Stored
from tacit.channels.crowd.proofs import proofs_of
from tacit.channels.crowd.proposal import Proposal
from tacit.channels.crowd.questions import Question
from tacit.channels.crowd.searches import Searches

__all__ = ["Asking"]


class Asking:
    """The collector's view of a study after the drawing of lots."""

    def __init__(self, proposal: Proposal, members: Sequence[str], seed: bytes) -> None:
        self._proposal, self._plan = proposal, proposal.drawn_up
        self._places = {key: place for place, key in enumerate(members)}
        self.questions: list[Question] = list(self._plan.questions)
        self.shape = proposal.shape(len(members))
        self.proofs = proofs_of(proposal, members)
        self.searches = Searches.start(proposal.schema, proposal.plan.bins)
        self._lots = self._plan.everyone(len(members), seed)
        self._each = self._plan.expected(len(members))
        self.arrived = self.expected = 0
        self._stage = -1

    def rights(self, member: str) -> set[str]:
        """The names of the questions that the lots have given to a member."""
        place = self._places.get(member)
        if place is None:
            return set()
        lots = zip(self._plan.draws, self._lots[:, place], strict=True)
        return {name for draw, lot in lots for name in draw[lot].questions}

    def enter(self, stage: int, reports: Iterable[Stored]) -> None:
        """Learn from the stage before, and expect the answers of this one."""
        by_question: dict[str, list[bytes]] = {}
        for stored in reports:
            by_question.setdefault(stored.question, []).append(stored.report)
        before = {q: by_question.get(q.name, []) for q in self.questions if q.stage == self._stage}
        self.searches = self.searches.learned(before)
        self._stage = stage
        here = [q.name for q in self.questions if q.stage == stage]
        self.arrived = sum(len(by_question.get(name, [])) for name in here)
        self.expected = sum(self._each[name] for name in here)

    @property
    def thresholds(self) -> dict[str, list[float]]:
        """What this stage asks about: steps of the search, or its end."""
        searching = any(q.kind == "quantiles" for q in self.questions if q.stage == self._stage)
        return self.searches.thresholds if searching else self.searches.edges
