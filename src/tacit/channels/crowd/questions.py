"""What people are asked: one categorical value of m cells, answered under a local randomiser."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tacit.channels.crowd.halves import halves_of
from tacit.errors import UsageError
from tacit.privacy.mechanisms.randomisers import Randomiser, best_randomiser
from tacit.privacy.promise import Adjacency, Promise, Unit

__all__ = ["Question"]

Kind = Literal["quantiles", "table"]


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a study.

    name      its own in the study, of letters a-z, digits and hyphens
    stage     the window of sending in which it is answered, from 0; later stages may rest on the
              answers of earlier ones
    kind      table: the codes of some features and the label, as one cell (C order, label last);
              quantiles: the interval, between thresholds found so far, that a number lies in
    features  of the schema; a question for quantiles has one
    sizes     how many codes each of them has; a table's last size is the label's, 2
    epsilon   what an answer costs
    step      of the search for quantiles, from 0
    half      of a table's cells that the answer is about (halves.py): yes or no; 0: which cell
    """

    name: str
    stage: int
    kind: Kind
    features: tuple[str, ...]
    sizes: tuple[int, ...]
    epsilon: float
    step: int = 0
    half: int = 0

    def __post_init__(self) -> None:
        wanted = len(self.features) + (self.kind == "table")
        if len(self.sizes) != wanted or self.cells < 2:
            raise UsageError(f"question {self.name}: its sizes do not fit its features.")
        if self.half and not (self.kind == "table" and 0 < self.half <= halves_of(self.cells)):
            raise UsageError(f"question {self.name}: its table has no half {self.half}.")

    @property
    def cells(self) -> int:
        return math.prod(self.sizes)

    @property
    def values(self) -> int:
        """How many an answer is one of: the cells, or yes and no."""
        return 2 if self.half else self.cells

    @property
    def table(self) -> Question:
        """The question that it is a half of; itself, if it is none."""
        if not self.half:
            return self
        return replace(self, name=self.name.removesuffix(f"-half-{self.half}"), half=0)

    def halved(self) -> list[Question]:
        """A question for each half of the table's cells."""
        return [
            replace(self, name=f"{self.name}-half-{half}", half=half)
            for half in range(1, halves_of(self.cells) + 1)
        ]

    @property
    def promise(self) -> Promise:
        """What one answer keeps to, whatever else is known about everybody."""
        return Promise(self.epsilon, 0.0, Unit.PERSON, Adjacency.REPLACE)

    @property
    def randomiser(self) -> Randomiser:
        """The one with the least expected error; everyone computes the same."""
        return best_randomiser(self.values, self.promise)

    def rows(self, reports: Sequence[bytes]) -> NDArray[np.uint8]:
        """Reports, one after another, as the randomiser wants them."""
        size = self.randomiser.report_bytes
        return np.frombuffer(b"".join(reports), dtype=np.uint8).reshape(len(reports), size)

    def accepts(self, report: bytes) -> bool:
        """Whether an honest person can have sent this."""
        return bool(self.randomiser.valid(self.rows([report]))[0])
