"""What a model says, as tables of numbers, each with the noise that it may owe to the promise.

The noise is read from the certificate, never from a plan of today: a model of another number of
rounds, or of an earlier version, says of itself how noisy it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tacit.privacy.certificate import Certificate
from tacit.privacy.release import Release

__all__ = ["Cell", "Kind", "Noise", "Number", "Table", "plain", "share_noise", "share_of"]

Kind = Literal["standard error", "bound", "estimate"]


@dataclass(frozen=True, slots=True)
class Number:
    """noise   None: not known; else by `kind` the standard deviation of what was added, a bound on
               it to first order where the number was derived from noisy ones, or an estimate of it
               that rests on more than the model and its certificate
    share      the noise is to be divided by the number of records, which the model does not say
    """

    value: float
    noise: float | None = None
    kind: Kind = "standard error"
    share: bool = False


# A plain number is given: a place on a curve, of which there is nothing to doubt.
Cell = str | float | Number


@dataclass(frozen=True, slots=True)
class Table:
    """One thing that a model says: rows of texts and numbers, and what to know of them.

    curve   rows are points of curves, over the number in the first column: some are enough to read
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    curve: bool = False

    @property
    def turned(self) -> Table:
        """Columns as rows: what a narrow page shows of many features."""
        first = ("", *(row[0] if isinstance(row[0], str) else "" for row in self.rows))
        rest = zip(*(row[1:] for row in self.rows), strict=True)
        rows = ((name, *cells) for name, cells in zip(self.columns[1:], rest, strict=True))
        return Table(self.title, first, tuple(rows), self.note)


@dataclass(frozen=True, slots=True)
class Noise:
    """Of the sums that were released, by their certificate; without one nothing is known.

    records   how many there were, if whoever asks knows it, or the model says it
    """

    certificate: Certificate | None
    records: float | None = None

    def longest(self) -> float | None:
        """On each coordinate of the longest vector that was released."""
        lengths = [release.length for release in self._releases()]
        return self.of(max(lengths, default=0))

    def largest(self) -> float | None:
        """On any coordinate of anything that was released."""
        return self.of(0)

    def rounds(self, length: int) -> int:
        """How often a vector of this length was released."""
        return sum(release.count for release in self._releases() if release.length == length)

    def of(self, length: int) -> float | None:
        """On each coordinate of a vector of this length; of any, if none has it. The largest, where
        several do; of windows, whose sums are added up, that of all together."""
        if self.certificate is None:
            return None
        if not self.certificate.promise.is_private:
            return 0.0
        fitting = [r for r in self._releases() if r.length == length] or [*self._releases()]
        if not fitting or any(release.scale is None for release in fitting):
            return None
        windows: dict[str | None, float] = {}
        for release in fitting:
            windows[release.part] = max(windows.get(release.part, 0.0), self._deviation(release))
        return math.hypot(*windows.values())

    def known(self, records: float | None) -> Noise:
        """With the number of records that the model itself tells of, if nobody has said another."""
        return (
            self if self.records is not None or records is None else replace(self, records=records)
        )

    @property
    def beyond(self) -> float:
        """How many times larger than planned the noise is that all who add it add together."""
        return max(map(self._together, self._releases()), default=1.0)

    def number(self, value: float, noise: float | None, kind: Kind = "bound") -> Number:
        return Number(float(value), noise, kind)

    def per_record(self, value: float, noise: float | None, kind: Kind = "bound") -> Number:
        """A number whose noise falls with the number of records, which is not in the model."""
        if noise is None or noise == 0 or self.records is None:
            return Number(float(value), noise, kind, share=bool(noise))
        return Number(float(value), noise / self.records, kind)

    def _releases(self) -> Sequence[Release]:
        return () if self.certificate is None else self.certificate.releases

    def _deviation(self, release: Release) -> float:
        """Standard deviation of all the noise on one coordinate, whoever added it."""
        assert self.certificate is not None  # `of` has looked
        assert release.scale is not None
        scale = float(release.scale)
        if release.mechanism == "laplace":
            scale *= math.sqrt(2)
        elif release.mechanism == "l2-laplace":  # its length is of the Gamma distribution
            scale *= math.sqrt(release.length + 1)
        return scale * self._together(release) / float(release.sampling)

    def _together(self, release: Release) -> float:
        assert self.certificate is not None  # it has the release
        places = max(1, len(self.certificate.witnesses))
        return math.sqrt(max(1.0, places / float(release.parameters.get("parts", 1))))


def share_of(count: float, error: float | None, total: float) -> Number:
    """Of a quotient of noisy numbers: |Δ(a/b)| ≤ (|Δa| + a/b |Δb|)/b, to first order."""
    part = count / total
    return Number(part, None if error is None else error * (1 + abs(part)) / total, "bound")


def share_noise(error: float | None, share: float, parts: int) -> float | None:
    """Times the number of records: of c / Σ c, where each of so many counts c has this noise."""
    return None if error is None else error * math.hypot(1 - share, share * math.sqrt(parts - 1))


def plain(cell: Cell) -> object:
    """A cell as JSON has it: infinities and what is no number are None."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, float):
        return cell if math.isfinite(cell) else None
    value = cell.value if math.isfinite(cell.value) else None
    noise = cell.noise if cell.noise is not None and math.isfinite(cell.noise) else None
    name = "noise_times_records" if cell.share else "noise"
    return {"value": value, name: noise, "kind": None if noise is None else cell.kind}
