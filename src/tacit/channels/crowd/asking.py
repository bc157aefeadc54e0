"""What the collector asks, stage by stage: what it has learned so far, and how much it expects."""

from __future__ import annotations

from collections.abc import Iterable

from tacit.channels.crowd.assignment import Assignment
from tacit.channels.crowd.collector_store import Stored
from tacit.channels.crowd.questions import Question
from tacit.channels.crowd.searches import Searches

__all__ = ["Asking"]


class Asking:
    """The collector's view of a study after the drawing of lots."""

    def __init__(self, drawn: Assignment) -> None:
        self.drawn, proposal = drawn, drawn.proposal
        self.questions: list[Question] = list(drawn.plan.questions)
        self.searches = Searches.start(proposal.schema, proposal.plan.bins)
        self.arrived = self.expected = 0
        self._stage = -1

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
        self.expected = sum(self.drawn.expected(name) for name in here)

    @property
    def thresholds(self) -> dict[str, list[float]]:
        """What this stage asks about: steps of the search, or its end."""
        searching = any(q.kind == "quantiles" for q in self.questions if q.stage == self._stage)
        return self.searches.thresholds if searching else self.searches.edges
