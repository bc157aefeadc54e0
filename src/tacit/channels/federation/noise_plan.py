"""How much noise a study adds: computed from the study alone by everyone who adds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tacit.channels.studies.study import Study
from tacit.errors import Refused, TacitError
from tacit.privacy.certificate import Participation
from tacit.privacy.mechanisms import Gaussian, Laplace
from tacit.privacy.release import Release
from tacit.programs.levels import Levels, check_asked
from tacit.programs.program import Query
from tacit.programs.states import state_from

__all__ = ["NoisePlan", "asked_by", "took_part"]


class NoisePlan:
    """The noise of every round, and the record of what was released so far.

    In an online study a record lies in one window only, so the rounds of each window are kept to
    the whole promise, and windows compose in parallel.
    """

    def __init__(self, study: Study) -> None:
        self._study = study
        self._levels: dict[int, Levels] = {}  # of the windows so far

    def charge(self, number: int, query: Query) -> Sequence[Laplace | Gaussian]:
        """The mechanisms of round `number`, counted; Refused if the study does not promise it."""
        try:
            window, place = self._study.plan().place(number)
            if window not in self._levels:
                self._levels[window] = self._study.levels(window)
            return self._levels[window].charge(place, query)
        except TacitError as error:
            raise Refused(f"round {number} is not in the study's plan: {error}") from None

    @property
    def releases(self) -> tuple[Release, ...]:
        return tuple(
            replace(release, part=f"window {window}" if window else None)
            for window, levels in self._levels.items()
            for release in levels.releases
        )


def asked_by(study: Study, number: int, state: bytes) -> tuple[Any, Query]:
    """A state that came over the wire, and what it asks in round `number`.

    Refused if it makes no sense, which depends on the study and these bytes alone. What is asked,
    and how well it is hidden, follows from the study; a state may ask for shorter vectors.
    """
    program = study.program()
    try:
        planned = study.plan().stage(number).query
        known = state_from(state, study.first_state())
        program.admit(known)
        query = program.asked(known, planned)
        if query is not None:
            check_asked(query, planned)
    except Exception:  # it comes from somebody else: whatever it breaks, it is refused
        raise Refused(
            f"the state of round {number} is not one of {program.name} in this study."
        ) from None
    if query is None:
        raise Refused(f"the state of round {number} asks for nothing: the program has ended.")
    return known, query


def took_part(sets: Sequence[Sequence[str]]) -> Participation:
    """Who took part, from the holders of each round."""
    everyone = {holder for holders in sets for holder in holders}
    return Participation(len(everyone), min(map(len, sets)), len(sets))
