"""Principal components from a noisy mean and noisy second moments (proof: pca.md).

"Analyze Gauss" (Dwork, Talwar, Thakurta, Zhang 2014, algorithm 1): symmetric noise on the second
moments once, then any number of components at no further cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.data.encode import Encoded
from tacit.data.schema import Schema
from tacit.errors import UsageError
from tacit.privacy.bound import Norm
from tacit.privacy.promise import Promise
from tacit.programs.layout import owners
from tacit.programs.moments import Moments, noise_std, without_impossible
from tacit.programs.pairs import Pairs
from tacit.programs.prediction import Prediction, within
from tacit.programs.program import Program, Query, Stage, norm_for

__all__ = ["PCA", "PCAModel", "PCAState", "denoised"]

Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PCAState:
    """owner    the column of each coordinate
    noise    standard deviation of the noise on each released number
    total    the noisy triangle, empty before the round
    """

    varies: ClassVar[tuple[str, ...]] = ()
    grows: ClassVar[tuple[str, ...]] = ("total",)

    columns: int
    norm: str
    private: bool
    noise: float
    owner: NDArray[np.int64]
    total: Reals

    @property
    def moments(self) -> Moments:
        return Moments(self.columns, len(self.owner), False, Norm(self.norm), self.private)


@dataclass(frozen=True, slots=True)
class PCAModel:
    """Rows of `components` are directions of falling variance, in encoded features.

    explained_variance_ratio   of the whole variance
    singular_values            of the centred records as a matrix
    count                      the noisy number of records
    """

    components: Reals
    explained_variance: Reals
    explained_variance_ratio: Reals
    singular_values: Reals
    mean: Reals
    count: float

    def transform(self, X: Reals) -> Reals:
        found: Reals = (within(X) - self.mean) @ self.components.T
        return found


class PCA(Program[PCAState, PCAModel]):
    """The `n_components` directions of largest variance; all by default.

    With `centred=False` the mean is left in: the right singular vectors of the records (SVD).
    """

    name = "pca"
    states = (PCAState,)
    models = (PCAModel,)

    def __init__(self, n_components: int | None = None, centred: bool = True) -> None:
        if n_components is not None and n_components < 1:
            raise UsageError(f"n_components must be at least 1, or None, not {n_components}.")
        self.n_components = n_components
        self.centred = centred

    def init(self, schema: Schema, promise: Promise) -> PCAState:
        owner = owners(schema)
        if self.n_components is not None and self.n_components > len(owner):
            raise UsageError(
                f"n_components = {self.n_components}, but there are {len(owner)} coordinates: ask "
                "for fewer."
            )
        columns, norm, private = len(schema.features), norm_for(promise), promise.is_private
        block = Moments(columns, len(owner), False, norm, private).block("moments")
        noise = noise_std(promise, block)
        return PCAState(columns, norm, private, noise, owner, np.zeros(0))

    def plan(self, first: PCAState) -> Sequence[Stage]:
        return [Stage(Query((first.moments.block("moments"),)))]

    def map(self, batch: Encoded, state: PCAState, query: Query) -> Sequence[Pairs]:
        return [state.moments.contribution(batch.X, None)]

    def reduce(self, total: Reals, state: PCAState) -> PCAState:
        return replace(state, total=total)

    def result(self, state: PCAState) -> PCAModel:
        whole = state.moments.matrix(state.total)
        count = max(float(whole[0, 0]), 2.0)
        mean = whole[0, 1:] / count if self.centred else np.zeros(len(state.owner))
        second = without_impossible(whole[1:, 1:], state.owner)
        values, directions = np.linalg.eigh(second - count * np.outer(mean, mean))
        total = float(values.sum())
        values = denoised(values[::-1], state.noise)[: self.n_components]
        return PCAModel(
            components=_signed(directions[:, ::-1].T[: self.n_components]),
            explained_variance=values / (count - 1.0 if self.centred else count),
            # The trace is hardly noisy: it is taken as it is, but no smaller than its parts.
            explained_variance_ratio=values / max(total, float(values.sum()), 1e-300),
            singular_values=np.sqrt(values),
            mean=mean,
            count=count,
        )

    def predict(self, model: PCAModel, X: Reals) -> Prediction:
        return Prediction("components", model.transform(X))


def denoised(values: Reals, noise: float) -> Reals:
    """Eigenvalues without what symmetric noise of standard deviation `noise` added to them.

    θ shows as θ + dσ²/θ if it exceeds σ√d, and else drowns below 2σ√d (Benaych-Georges &
    Nadakuditi 2011, section 3.1); what cannot be told from noise becomes 0.
    """
    edge = 2.0 * noise * math.sqrt(len(values))
    seen = np.maximum(values, 0.0)
    back: Reals = np.where(
        seen >= edge, (seen + np.sqrt(np.maximum(seen**2 - edge**2, 0.0))) / 2.0, 0.0
    )
    return back


def _signed(components: Reals) -> Reals:
    """Each direction's largest coordinate positive, as scikit-learn has it."""
    largest = np.abs(components).argmax(axis=1)
    signs: Reals = np.sign(components[np.arange(len(components)), largest])
    return np.ascontiguousarray(components * signs[:, None])
