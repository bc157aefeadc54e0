"""The rounds of a study as its aggregator knows them: states, whose sums, and what comes of them.

Every decision that a crash must not change (the holders of a sum, the next state) is in the journal
before it is in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.channels.federation.history import asked_in, sealed_of
from tacit.channels.federation.journal import Journal, Step
from tacit.channels.federation.letters import Sealed, Subject
from tacit.channels.federation.noise_plan import NoisePlan
from tacit.channels.federation.phases import Phase
from tacit.channels.federation.seals import check_seals, is_seal
from tacit.channels.roles.letters import write
from tacit.channels.studies.study import Study
from tacit.crypto.signing import digest
from tacit.errors import CheckFailed
from tacit.programs.contribute import decoded
from tacit.programs.model_file import model_bytes
from tacit.programs.program import Query
from tacit.programs.states import state_bytes, state_from

__all__ = ["Rounds"]


class Rounds:
    """All rounds so far; the last one is the one that is open, or would be next.

    noise   of the rounds whose sums were read
    """

    def __init__(self, study: Study, journal: Journal) -> None:
        self._study, self._journal, self._program = study, journal, study.program()
        self.noise = NoisePlan(study)
        self.steps = journal.steps()
        self._model_file: bytes | None = None
        for step in self.steps[:-1]:  # the sum of the last one is not read yet
            self.noise.charge(step.number, self._query_of(step))
        if self.steps:
            self._state = state_from(self.steps[-1].state, study.first_state())

    # ── where they are ──

    @property
    def last(self) -> Step:
        return self.steps[-1]

    @property
    def number(self) -> int:
        """Of the last round; 0 before the first."""
        return self.last.number if self.steps else 0

    @property
    def sets(self) -> list[tuple[str, ...]]:
        """The holders of every sum so far."""
        return [step.holders for step in self.steps if step.holders is not None]

    @property
    def have_ended(self) -> bool:
        over = self.number > self._study.last_round
        return over or self._asks(self.number, self._state) is None

    @property
    def owe_a_model(self) -> bool:
        """Whether a window is over of which there is no model yet."""
        plan, done = self._study.plan(), self.number - 1
        over = bool(done and plan.windows) and plan.ends_window(done)
        return over and self._journal.newest()[0] < done

    @property
    def query(self) -> Query:
        """What the last round asks."""
        return self._query_of(self.last)

    def _query_of(self, step: Step) -> Query:
        query = self._asks(step.number, state_from(step.state, self._study.first_state()))
        assert query is not None  # a round is open only while there is something to ask
        return query

    def _asks(self, number: int, state: Any) -> Query | None:
        return self._program.asked(state, self._study.plan().stage(number).query)

    # ── what is asked of servers ──

    def question(self, phase: Phase) -> bytes:
        """The body of what every server is asked in this phase."""
        match phase:
            case Phase.OPENING:
                return self.last.state
            case Phase.SEALING | Phase.CLOSING:
                return write(sealed_of(self.last))
            case Phase.ATTESTING:
                return write(Subject(digest(self.model())))
        return b""

    def checked_seal(self, server: str, answer: Sealed) -> str:
        """A server's word that it sums what was chosen, and nothing else, in the last round."""
        chosen = asked_in(self.last).digest(self._study.digest)
        (word,) = answer.seals if len(answer.seals) == 1 else ("",)
        if not is_seal(server, word, self._study.digest, self.number, chosen):
            raise CheckFailed("it has not signed what it was asked to seal.")
        return word

    def partial_sum(self, body: bytes) -> NDArray[np.int64]:
        length = self.query.length
        if len(body) != 8 * length:
            raise CheckFailed(f"a partial sum has {8 * length} bytes, not {len(body)}.")
        return np.frombuffer(body, dtype="<i8").astype(np.int64)

    # ── they go on ──

    def begin(self) -> None:
        self._append(1, self._study.first_state())

    def _append(self, number: int, state: Any) -> None:
        data = state_bytes(state)
        with self._journal.transaction():
            self._journal.put_step(number, data)
        self.steps.append(Step(number, data))
        self._state, self._model_file = state, None

    def settle(self, chosen: Sequence[str], marks: Sequence[bytes]) -> None:
        """Whose sum this round is, before any server is asked for its word."""
        with self._journal.transaction():
            self._journal.choose(self.number, chosen, marks)
        self.steps[-1] = replace(self.last, holders=tuple(chosen), marks=tuple(marks))

    def seal(self, seals: tuple[str, ...]) -> None:
        """All have given their word: from here on there is one sum of this round."""
        chosen = asked_in(self.last).digest(self._study.digest)
        check_seals(self._study, self.number, chosen, seals)
        with self._journal.transaction():
            self._journal.keep_seals(self.number, seals)
        self.steps[-1] = replace(self.last, seals=seals)

    def ask_again(self) -> None:
        """For shares that a server has lost."""
        with self._journal.transaction():
            self._journal.ask_again(self.number, self.last.attempt + 1)
        self.steps[-1] = replace(self.last, attempt=self.last.attempt + 1)

    def go_on(self, total: NDArray[np.int64]) -> None:
        """To the next round, with the state that follows from the sum of the last."""
        number, query = self.number, self.query
        self.noise.charge(number, query)
        rate = float(self._study.plan().stage(number).sampling)
        self._append(number + 1, self._program.reduce(decoded(total, query) / rate, self._state))

    def is_possible(self, total: NDArray[np.int64]) -> bool:
        """Whether its holders, clipped to their bounds, could add up to this, noise included."""
        holders = len(self.last.holders or ())
        for block, place in self.query.slices():
            limit = self._study.largest_sum(block, holders)
            if bool((total[place] > limit).any() or (total[place] < -limit).any()):
                return False
        return True

    def model(self) -> bytes:
        """Of the last state, from which it follows: it is the same after a crash."""
        if self._model_file is None:
            model = self._program.result(self._state)
            learned = self._program.learned_schema(self._study.schema, self._state)
            self._model_file = model_bytes(model, self._program, learned)
        return self._model_file
