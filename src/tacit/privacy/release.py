"""A release: something that leaves under noise, described so that anyone can recompute its cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from tacit.errors import PromiseError
from tacit.privacy.bound import Bound

__all__ = ["Release"]


@dataclass(frozen=True, slots=True)
class Release:
    """`count` runs of one mechanism with the same parameters.

    mechanism   its name, a key of `accounting.losses.LOSSES`
    bound       how far one unit moves the value, rounding to the grid included
    scale       of the noise: σ for Gaussian, b for Laplace, in the value's own units
    step        of the grid the noise lives on; 0 for the one continuous law
    length      of the vector
    count       how often
    sampling    probability with which each unit took part (Poisson), kept secret
    parameters  what else the cost depends on, by name
    part        units with different parts are disjoint, so their costs compose in parallel; parts
                of local randomisers say who was asked, and must not depend on anybody's value
    sample      releases that carry the same name were drawn over one and the same secret sample in
                each of their `count` runs, and cost what they cost together before sampling
                (accounting/sampling.md); None with sampling below 1: a sample of its own
    """

    mechanism: str
    bound: Bound | None = None
    scale: Fraction | None = None
    step: Fraction = Fraction(0)
    length: int = 1
    count: int = 1
    sampling: Fraction = Fraction(1)
    parameters: dict[str, Fraction] = field(default_factory=dict)
    part: str | None = None
    sample: str | None = None

    def __post_init__(self) -> None:
        if self.count < 1 or self.length < 1:
            raise PromiseError(f"a release needs count and length of at least 1, not {self}.")
        if self.step < 0:
            raise PromiseError(f"a grid's step is at least 0, not {self.step}.")
        if not 0 < self.sampling <= 1:
            raise PromiseError(f"a sampling rate lies in (0, 1], not {self.sampling}.")
        if self.sample is not None and self.sampling == 1:
            raise PromiseError(
                f"a release of everybody (sampling 1) has no sample: leave out {self.sample!r}."
            )
        if self.scale is not None and self.scale <= 0:
            raise PromiseError(f"a noise scale must be above 0, not {self.scale}.")
