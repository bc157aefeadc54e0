"""Principal components from a noisy mean and noisy second moments (proof: pca.md).

"Analyze Gauss" (Dwork, Talwar, Thakurta, Zhang 2014, algorithm 1): symmetric noise on the second
moments once, then any number of components at no further cost. Two cheap rounds before it find
where records are and how far apart, so that there is less of it (moment_rounds.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.data.schema import Schema
from tacit.errors import UsageError
from tacit.privacy.promise import Promise
from tacit.programs.files import OPTIONAL
from tacit.programs.moment_rounds import MomentRounds, MomentState
from tacit.programs.prediction import Prediction, within

__all__ = ["PCA", "PCAModel", "denoised"]

Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PCAModel:
    """Rows of `components` are directions of falling variance, in encoded features.

    explained_variance_ratio   of the whole variance
    singular_values            of the centred records as a matrix
    count                      the noisy number of records
    noise                      what noise of deviation 1 on each sum of the last round makes of
                               variances, of each mean and of the count, at most and to first order;
                               None in models of version 1
    """

    components: Reals
    explained_variance: Reals
    explained_variance_ratio: Reals
    singular_values: Reals
    mean: Reals
    count: float
    noise: tuple[float, float, float] | None = field(default=None, metadata=OPTIONAL)

    def transform(self, X: Reals) -> Reals:
        found: Reals = (within(X) - self.mean) @ self.components.T
        return found


class PCA(MomentRounds[PCAModel]):
    """The `n_components` directions of largest variance; all by default.

    With `centred=False` the mean is left in: the right singular vectors of the records (SVD).
    """

    name = "pca"
    models = (PCAModel,)
    own_scale = 0.0  # directions are compared by their variances: all coordinates have one scale

    def __init__(self, n_components: int | None = None, centred: bool = True) -> None:
        if n_components is not None and n_components < 1:
            raise UsageError(f"n_components must be at least 1, or None, not {n_components}.")
        self.n_components = n_components
        self.centred = centred

    @property
    def _centring(self) -> bool:
        return self.centred

    def init(self, schema: Schema, promise: Promise) -> MomentState:
        first = super().init(schema, promise)
        if self.n_components is not None and self.n_components > len(first.owner):
            raise UsageError(
                f"n_components = {self.n_components}, but there are {len(first.owner)} "
                "coordinates: ask for fewer."
            )
        return first

    def result(self, state: MomentState) -> PCAModel:
        weight, mean, second, noise, kept = self._summary(state)
        count = max(state.count, 2.0)
        # From records that were seen (and cut) to all of them, in their own units.
        unit = float(state.scale[0]) ** 2 * count / weight
        values, directions = np.linalg.eigh(second * unit)
        total = float(values.sum())
        values = denoised(values[::-1], noise * unit)[: self.n_components]
        whole = state.noise_of_moments(mean)
        records = count - 1.0 if self.centred else count
        of_mean = float(state.noise_of_means(weight, kept)[0])  # all have one scale
        variance = (unit * whole + float(values[0]) * state.noise_of_weight(weight)) / records
        return PCAModel(
            components=_signed(directions[:, ::-1].T[: self.n_components]),
            explained_variance=values / records,
            # The trace is hardly noisy: it is taken as it is, but no smaller than its parts.
            explained_variance_ratio=values / max(total, float(values.sum()), 1e-300),
            singular_values=np.sqrt(values),
            mean=state.centre + state.scale * mean,
            count=count,
            noise=(variance, of_mean, state.noise_of_count),
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
