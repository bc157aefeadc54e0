"""A logistic regression as people use it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.programs.encodings import Encoding, Kind, fields_of
from tacit.programs.files import OPTIONAL
from tacit.programs.prediction import within

__all__ = ["SEEN", "UNCALIBRATED", "LogisticModel", "Noise"]

Reals = NDArray[np.float64]

UNCALIBRATED = (
    "Its probabilities and the size of its coefficients are not calibrated: noise hides how sure "
    "it may be (few records, a small epsilon, many features, a rare class), or its classes can be "
    "told apart without a doubt. Use its classes and the order of its scores, or have more "
    "records, a larger epsilon or fewer features."
)

SEEN: dict[Kind, str] = {
    "curves": "It sees each number as a curve: six polynomials of its place within its bounds.",
    "bins": "It sees each number in 16 bins of equal width within its bounds.",
}


# Of a gradient, in scores; step, momentum and rounds of the descent; of the slope, relative to it;
# and for each column of scores the curvature of the loss for features of variance 1.
Noise = tuple[float, ...]
MOST_ROUNDS = 1000


@dataclass(frozen=True, slots=True)
class LogisticModel:
    """One row of `coef` per class, or a single one for two classes, in encoded features.

    features, roles   how it sees records, as an `Encoding` has it; None: as they are encoded
    centre, noise     the noisy mean of records, and what its bands follow from (logistic_band.py);
                      None where no bands are known

    calibrated   whether its probabilities can be relied on; None where nothing is known of it
                 (without privacy, and from programs that do not measure it)
    """

    coef: Reals
    intercept: Reals
    classes: tuple[str, ...]
    calibrated: bool | None = field(default=None, metadata=OPTIONAL)
    features: Kind | None = field(default=None, metadata=OPTIONAL)
    roles: tuple[int, ...] | None = field(default=None, metadata=OPTIONAL)
    centre: tuple[float, ...] | None = field(default=None, metadata=OPTIONAL)
    noise: Noise | None = field(default=None, metadata=OPTIONAL)

    def __post_init__(self) -> None:
        if (self.features is None) is not (self.roles is None):
            raise InputError("a model has both features and roles, or neither.")
        encoding = self.encoding
        if encoding is not None and self.coef.shape[1:] != (encoding.width,):
            raise InputError("a model has other coefficients than its features ask for.")
        if self.noise is None and self.centre is None:
            return
        fits = encoding is not None and len(self.centre or ()) == encoding.width
        if not fits or not _is_noise(self.noise, len(self.coef)):
            raise InputError("what a model says of its noise does not fit its features.")

    @classmethod
    def of(
        cls,
        coef: Reals,
        intercept: Reals,
        classes: tuple[str, ...],
        encoding: Encoding | None,
        calibrated: bool | None = None,
        centre: Reals | None = None,
        noise: Noise | None = None,
    ) -> LogisticModel:
        """`centre` matters to the noise alone."""
        seen = None if centre is None or noise is None else tuple(centre.tolist())
        return cls(coef, intercept, classes, calibrated, *fields_of(encoding), seen, noise)

    @property
    def encoding(self) -> Encoding | None:
        return Encoding.known(self.features, self.roles)

    def scores(self, X: Reals) -> Reals:
        encoding = self.encoding
        seen = within(X) if encoding is None else encoding.of(X)
        return np.asarray(seen @ self.coef.T + self.intercept)

    def predict(self, X: Reals) -> NDArray[np.int64]:
        """The class of each row, as its place in `classes`."""
        scores = self.scores(X)
        return scores.argmax(axis=1) if len(self.coef) > 1 else (scores[:, 0] > 0).astype(np.int64)

    def probabilities(self, X: Reals) -> Reals:
        """Of each class, one column each."""
        from scipy.special import expit, softmax

        scores = self.scores(X)
        if len(self.coef) > 1:
            return np.asarray(softmax(scores, axis=1))
        return np.column_stack([expit(-scores[:, 0]), expit(scores[:, 0])])


def _is_noise(noise: Noise | None, outputs: int) -> bool:
    if noise is None or len(noise) != 5 + outputs or not np.isfinite(noise).all():
        return False
    _, step, momentum, rounds, *_ = noise
    return min(noise) >= 0 and step > 0 and momentum < 1 and 1 <= rounds <= MOST_ROUNDS
