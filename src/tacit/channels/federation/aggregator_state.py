"""Where the aggregator of a study is: its phase and deadlines, and what it tells others of them.

What moves it is in aggregator.py; all that a crash must not change is in the journal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from datetime import datetime
from typing import Any

from tacit.channels.federation.attendance import Attendance
from tacit.channels.federation.journal import Journal
from tacit.channels.federation.phases import QUESTIONS, Phase
from tacit.channels.federation.rounds import Rounds
from tacit.channels.roles.events import Tell
from tacit.channels.roles.letters import Letter
from tacit.channels.roles.standing import Standing, named
from tacit.channels.studies.study import Study
from tacit.crypto.signing import SigningKey
from tacit.errors import StudyStopped, TacitError

__all__ = ["PATIENCE", "AggregatorState"]

PATIENCE = 3  # deadlines with too few holders, or sums out of range, before a study stops


class AggregatorState:
    """As the journal knows it after a start, and as `Aggregator` moves it."""

    def __init__(
        self,
        study: Study,
        key: SigningKey,
        journal: Journal,
        now: float,
        tell: Tell = lambda event, **fields: None,
        date: Callable[[], datetime | None] = lambda: None,
    ) -> None:
        self.study, self._key, self._journal = study, key, journal
        self._tell, self._date = tell, date
        self._rounds = Rounds(study, journal)
        self._holders = Attendance(study, journal, tell)
        services = (*study.servers, study.aggregator)
        self._parties = {*self._holders.names, *(service.key for service in services)}
        self._repairs: dict[str, Letter] = {}  # what a server is told before it is asked again
        self._failures = 0
        self._last_awaited: tuple[Hashable, list[str]] = None, []
        # Answers of a server that were of no use, since the last good one.
        self._odd = Counter[str]()
        self.failure: TacitError | None = None
        self._recall(now)

    def _recall(self, now: float) -> None:
        """Where the journal ends is where we are."""
        rounds, ended = self._rounds, self._journal.stopped()
        if ended is not None:
            self._enter(Phase.STOPPING, now)
            self.failure = StudyStopped(ended[0])
            self.failure.statement = ended[1]
        elif self._journal.result() is not None:
            self._enter(Phase.FINISHING, now)
        elif not rounds.steps:
            self._enter(Phase.GATHERING, now)
        elif rounds.last.seals:
            self._enter(Phase.CLOSING, now)
        elif rounds.last.holders is not None:
            self._enter(Phase.SEALING, now)
        else:
            self._resume(now)

    def _resume(self, now: float) -> None:
        due = self._rounds.have_ended or self._rounds.owe_a_model
        self._enter(Phase.ATTESTING if due else Phase.OPENING, now)

    def _enter(self, phase: Phase, now: float) -> None:
        self.phase = phase
        self._asked: set[str] = set()
        self._answers: dict[str, Any] = {}
        limits = {
            Phase.GATHERING: self.study.deadlines.gather,
            Phase.COLLECTING: self.study.deadlines.round,
        }
        self.deadline = now + limits[phase] if phase in limits else None
        # Servers may be started again meanwhile; but nobody is asked for ever.
        longest = max(self.study.deadlines.gather, self.study.deadlines.round)
        self._patience_ends = now + PATIENCE * longest

    @property
    def round(self) -> int:
        return self._rounds.number

    @property
    def is_over(self) -> bool:
        return self.phase is Phase.OVER

    @property
    def result(self) -> tuple[bytes, str] | None:
        """The model file and its certificate, once there is one."""
        return self._journal.result()

    @property
    def waiting_for(self) -> set[str]:
        """Holders that joined, have not left, and were heard of since the last deadline."""
        return self._holders.waiting_for

    @property
    def mark(self) -> Hashable:
        return self.phase, self.round, self.failure is None

    @property
    def newest(self) -> tuple[bytes, str] | None:
        """In windows: the newest model and its certificate, before the last one."""
        rounds, model, certificate = self._journal.newest()
        return (model, certificate) if rounds else None

    # ── where we stand ──

    def standing(self, now: float) -> Standing:
        """For everybody who takes part: the phase, who is waited for, and how long at most."""
        failure, ends = self.failure, self.deadline
        if failure is None and ends is None and self.phase in QUESTIONS:
            ends = self._patience_ends
        return Standing(
            phase="stopped" if failure is not None else self.phase.value,
            round=min(self.round, self.study.last_round),
            rounds=self.study.last_round,
            awaited=self._awaited() if failure is None else [],
            seconds=None if ends is None or failure is not None else max(0.0, ends - now),
            reason="" if failure is None else str(failure),
            kind="" if failure is None else type(failure).__name__,
            statement="" if failure is None else failure.statement,
        )

    def _awaited(self) -> list[str]:
        """Holders or servers, by name: whose turn it is. Found anew only when that may differ,
        since thousands of holders ask."""
        holders = self._holders
        sizes = len(holders.sent), len(holders.absent), len(self._answers)
        now = self.phase, self.round, holders.changes, *sizes
        if self._last_awaited[0] != now:
            self._last_awaited = now, named(self._whose_turn())
        return self._last_awaited[1]

    def _whose_turn(self) -> list[str]:
        if self.phase in QUESTIONS:
            return [s.name for s in self.study.servers if s.key not in self._answers]
        if self.phase is Phase.GATHERING:
            return self._holders.not_joined
        if self.phase is Phase.COLLECTING:
            chosen = self._rounds.last.holders
            wanted = self.waiting_for if chosen is None else set(chosen)
            return self._holders.named(wanted - self._holders.sent)
        return []
