"""Games through the state machines of a consortium, against the curator and whoever helps it.

The curator and as many parties as the study allows work together: they know their own vectors and
their own noise, so these parties may as well add none. The others add one part of the noise each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.audits.claims import gaussian_claim
from tacit.audits.game import Heard, WhiteBox
from tacit.audits.likelihood import Losses
from tacit.channels.consortium.curator import Curator
from tacit.channels.consortium.encoding import encoding_of, randomness_for
from tacit.channels.consortium.joint import JointParty
from tacit.channels.consortium.journals import Attempt, CuratorJournal, PartyJournal
from tacit.channels.consortium.local import consortium_study
from tacit.channels.consortium.local_model import Local, trained
from tacit.channels.consortium.party import Party
from tacit.channels.consortium.run import Run
from tacit.channels.consortium.terms import JointTerms
from tacit.channels.roles.budget import NoBudget
from tacit.channels.roles.store import MEMORY
from tacit.channels.studies.study import Consortium, Study
from tacit.crypto.prg import Randomness, SeededRandomness
from tacit.crypto.sharing import fresh_seed
from tacit.crypto.signing import SigningKey
from tacit.data.encode import Encoded
from tacit.data.records import ArrayRecords
from tacit.data.schema import Schema
from tacit.privacy.bound import Grid
from tacit.privacy.mechanisms import Gaussian, Laplace
from tacit.privacy.promise import Adjacency, Promise
from tacit.privacy.release import Release
from tacit.programs.averaging import AveragedLogistic
from tacit.programs.files import from_bytes

__all__ = ["Parties", "consortium_game"]

Reals = NDArray[np.float64]

PARTIES, COLLUDING = 3, 1
# One column separates the classes; the other nine are zero but for the record, which is on the
# wrong side: it pulls along the nine, this way or that, with nothing to hold against it.
COLUMNS, SMALLEST, PENALTY = 10, 2000, 0.001


@dataclass(frozen=True)
class _LessNoise(JointTerms):
    """Of this party's part of the noise, this part is added."""

    noise: Fraction = Fraction(0)

    @cached_property
    def mechanism(self) -> Gaussian | Laplace | None:
        real = self._agreed.mechanism
        if real is None or self.noise == 0:
            return None
        return replace(real, scale=real.scale * self.noise)

    @cached_property
    def grid(self) -> Grid:
        return self._agreed.grid

    @property
    def releases(self) -> tuple[Release, ...]:
        """What it signs: all of it."""
        return self._agreed.releases

    @cached_property
    def _agreed(self) -> JointTerms:
        return JointTerms(self.study, self.roster)


class _WeakParty(Party):
    """A party that adds less noise than it should, or none, and says otherwise."""

    def __init__(self, noise: Fraction, *args: Any, **options: Any) -> None:
        self._noise = noise
        super().__init__(*args, **options)

    def _take_up(self, attempt: Attempt) -> None:
        super()._take_up(attempt)
        # The same draws up to the noise: keys and masks are those that it has sent already.
        weak: JointTerms = _LessNoise(self.study, attempt.roster, self._noise)
        encoding = encoding_of(self._terms, attempt.number, self._local)
        draws = randomness_for(attempt.seed, encoding)
        run = Run(self.study, weak, attempt.number)
        self._side = JointParty(run, self._key, self._local, draws)


@dataclass(frozen=True)
class Parties:
    """A study in which the first party has the unit, or the record that is there instead."""

    promise: Promise

    @cached_property
    def keys(self) -> list[SigningKey]:
        """Of nobody: that they are known tells nothing, and a seeded game repeats."""
        return [SigningKey.generate(SeededRandomness(i)) for i in range(PARTIES + 1)]

    @cached_property
    def study(self) -> Study:
        program, schema = AveragedLogistic(penalty=PENALTY), _schema()
        terms = Consortium(protocol="joint", colluding=COLLUDING, smallest=SMALLEST)
        return consortium_study(program, self.keys[1:], self.keys[0], schema, self.promise, terms)

    @cached_property
    def locals(self) -> tuple[Local, Local]:
        """What the first party trains without the unit and with it."""
        without, present = (trained(self.study, ArrayRecords(*_records(s))) for s in (-1.0, 1.0))
        return without, present

    @cached_property
    def moved(self) -> Reals:
        without, present = (self._terms.encoded(local.vector) for local in self.locals)
        return np.asarray(present - without, dtype=np.float64)

    def run(self, present: bool, noise: Fraction, randomness: Randomness) -> Heard:
        study = self.study
        curator = Curator(study, self.keys[0], CuratorJournal(MEMORY, study.digest), 0.0)
        brought = [self.locals[present], *[self.locals[False]] * (PARTIES - 1)]
        parts = [noise] * (PARTIES - COLLUDING) + [Fraction(0)] * COLLUDING
        parties = [
            self._party(key, local, part, randomness)
            for key, local, part in zip(self.keys[1:], brought, parts, strict=True)
        ]
        while curator.result is None:
            curator.tick(0.0)
            if curator.failure is not None:
                raise curator.failure
            for party in parties:
                for to, letter in party.tick():
                    party.told(to, letter, curator.answer(party.key, letter, 0.0))
        return self._heard(curator.result[0])

    def _party(
        self, key: SigningKey, local: Local, noise: Fraction, randomness: Randomness
    ) -> Party:
        arguments = (self.study, key, PartyJournal(MEMORY, self.study.digest), local, NoBudget())
        seed = lambda: fresh_seed(randomness)  # noqa: E731
        if noise == 1:
            return Party(*arguments, seed=seed)
        return _WeakParty(noise, *arguments, seed=seed)

    def _heard(self, model: bytes) -> Heard:
        averaged, losses = self.study.averaged(), Losses()
        found = averaged.vector(from_bytes(averaged.models, model), self.study.schema)
        known = self._terms.encoded(self.locals[False].vector) * PARTIES
        seen = found * PARTIES / float(self._terms.grid.step) - known
        assert self._terms.mechanism is not None  # the promise is private
        losses.add(self._terms.mechanism, seen, self.moved)
        return losses.heard()

    @cached_property
    def _terms(self) -> JointTerms:
        return JointTerms(self.study, tuple(sorted(key.public_key for key in self.keys[1:])))


def consortium_game(epsilon: float = 11.0, trials: int = 450) -> WhiteBox:
    """The bound is proved for the worst data (averaging_bounds.md); these reach 86 % of it."""
    parties = Parties(Promise(epsilon, 1e-6, adjacency=Adjacency.REPLACE))
    return WhiteBox(gaussian_claim(parties.promise), parties.run, trials)


def _schema() -> Schema:
    columns: dict[str, Any] = {
        f"x{i}": {"type": "number", "bounds": [-1, 1]} for i in range(COLUMNS)
    }
    columns["y"] = {"type": "category", "categories": ["0", "1"], "role": "label"}
    return Schema.from_dict({"columns": columns})


def _records(sign: float) -> Encoded:
    X, y = np.zeros((SMALLEST, COLUMNS)), np.ones(SMALLEST, dtype=np.int64)
    X[:, 0], X[::2, 0], y[::2] = 1.0, -1.0, 0
    X[-1, 1:], X[-1, 0], y[-1] = sign, -1.0, 1
    return Encoded(X, y, None)
