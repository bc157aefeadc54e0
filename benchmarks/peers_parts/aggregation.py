"""One aggregation without its cryptography: the consortium's terms, grid and noise, in one process.

The cryptography carries these integers and changes none of them, so the same numbers come out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tacit.channels.consortium.local import consortium_study
from tacit.channels.consortium.terms import JointTerms
from tacit.channels.studies.study import Consortium
from tacit.crypto.prg import Randomness
from tacit.crypto.signing import SigningKey
from tacit.data.schema import Schema
from tacit.privacy.bound import Grid
from tacit.privacy.mechanisms import Gaussian, Laplace
from tacit.privacy.promise import Promise
from tacit.programs.averaging import AveragedLogistic
from tacit.programs.logistic_output import LogisticOutput

Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Aggregation:
    """Each member adds a part of the mechanism's noise to its vector before they are summed; as
    published, one adds all of it to the average."""

    mechanism: Gaussian | Laplace | None
    grid: Grid
    on_average: bool = False

    def average(self, vectors: Reals, randomness: Randomness) -> Reals:
        """The noisy average of one group's vectors, one row each."""
        count = len(vectors)
        if self.on_average:
            total = self.grid.encode(vectors.mean(axis=0))[None, :]
        else:
            total = self.grid.encode(vectors)
        if self.mechanism is not None:
            total = self.mechanism.perturb(total, randomness)
        return self.grid.decode(total.sum(axis=0)) / (1 if self.on_average else count)


def joint(
    program: AveragedLogistic,
    schema: Schema,
    promise: Promise,
    members: int,
    smallest: int,
    colluding: int = 1,
) -> Aggregation:
    """As a consortium does it; a group of one adds the whole noise itself."""
    if members == 1:
        bound = program.bound(smallest, promise.unit)
        alone = Gaussian.calibrated(bound, promise, program.length(schema))
        return Aggregation(alone, alone.grid)
    keys = _keys(members + 1)
    agreed = Consortium(colluding=0, smallest=smallest)
    study = consortium_study(program, keys[1:], keys[0], schema, promise, agreed)
    terms = JointTerms(study, tuple(key.public_key for key in keys[1:]))
    if terms.mechanism is None:
        return Aggregation(None, terms.grid)
    # In a pair with one curious member the other's part must be the whole noise.
    divided = replace(terms.mechanism, parts=max(1, members - colluding))
    return Aggregation(divided, terms.grid)


def as_published(penalty: float, length: int, epsilon: float, smallest: int) -> Aggregation:
    """Algorithm 1 of the thesis: Laplace noise of scale 2/(n ε λ) on each weight of the average,
    whatever the size of the group. The promise does NOT hold."""
    made = LogisticOutput(penalty, as_published=True)
    found = made.mechanism(smallest, length, Promise(epsilon))
    assert isinstance(found, Laplace)
    return Aggregation(found, found.grid, on_average=True)


@cache
def _keys(count: int) -> list[SigningKey]:
    return [SigningKey.generate() for _ in range(count)]
