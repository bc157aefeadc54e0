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
from tacit.programs.files import from_bytes
from tacit.programs.program import Program, Query

__all__ = ["NoisePlan", "asked_by", "took_part"]


class NoisePlan:
    """The noise of every round, and the record of what was released so far.

    In an online study each round is a window of new records. A record lies in one window only, so
    each window is kept to the whole promise, and windows compose in parallel.
    """

    def __init__(self, study: Study) -> None:
        self._study = study
        self._levels = study.levels()
        self._windows: list[Release] = []

    def charge(self, number: int, query: Query) -> Sequence[Laplace | Gaussian]:
        """The mechanisms of round `number`, counted; Refused if the study does not promise it."""
        try:
            if self._study.online is None:
                return self._levels.charge(query)
            levels = self._study.window_levels(query)
            mechanisms = levels.charge(query)
        except TacitError as error:
            raise Refused(f"round {number} is not in the study's plan: {error}") from None
        name = f"window {number}"
        self._windows += [replace(release, part=name) for release in levels.releases]
        return mechanisms

    def count(self, number: int, query: Query) -> None:
        """Only count round `number`: for those who add no noise, but hold others to the plan."""
        try:
            if self._study.online is None:
                self._levels.count(query)
            else:
                self._study.window_levels(query)
        except TacitError as error:
            raise Refused(f"round {number} is not in the study's plan: {error}") from None

    def check(self, number: int, query: Query) -> None:
        """The same refusals, without charging."""
        kept = list(self._windows)
        levels = self._levels
        self._levels = replace(levels, used=dict(levels.used), _released=list(levels.releases))
        try:
            self.charge(number, query)
        finally:
            self._levels, self._windows = levels, kept

    @property
    def releases(self) -> tuple[Release, ...]:
        return (*self._levels.releases, *self._windows)


def asked_by(program: Program[Any, Any], state: bytes) -> tuple[Any, Query]:
    """A state that came over the wire, and what it asks; Refused if it makes no sense."""
    try:
        known = from_bytes(program.states, state)
        query = program.query(known)
    except Exception:  # it comes from somebody else: whatever it breaks, it is refused
        raise Refused(f"the state of this round is not one of {program.name}.") from None
    if query is None:
        raise Refused("the state of this round asks for nothing: the program has ended.")
    return known, query


def took_part(sets: Sequence[Sequence[str]]) -> Participation:
    """Who took part, from the holders of each round."""
    everyone = {holder for holders in sets for holder in holders}
    return Participation(len(everyone), min(map(len, sets)), len(sets))
