"""What was measured of a network, what follows from it, and how votes are weighed by it (worth.md).

All of this is computed from noisy counts and public numbers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from tacit.errors import InputError

__all__ = ["MEASURED", "Estimate", "Worth", "hidden_below", "read_worth", "shares"]

MEASURED = "measured.json"  # in a peer's folder, for its owner alone

# The 95 % point in standard deviations: of the Laplace law; that of the normal law is 1.96.
SURE = math.log(20) / math.sqrt(2)
TELLING = 3.0  # standard deviations of noise that the records must be above, to tell anything
FARTHEST = 6.0  # standard deviations by which own and network are taken to differ, at most

OWN_WRONG = (0, 0, 1, 1)
NETWORK_WRONG = (0, 1, 0, 1)
DIFFERENCE = (0, 1, -1, 0)  # network's errors less one's own


class Estimate(NamedTuple):
    """A share of the records, and half of its 95 % interval: for noise and for sampling."""

    value: float
    within: float

    @property
    def low(self) -> float:
        return self.value - self.within

    @property
    def high(self) -> float:
        return self.value + self.within

    def percent(self, unit: str) -> str:
        return f"{100 * abs(self.value):.0f} {unit} (± {max(1, round(100 * self.within))})"


class Worth(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One measurement.

    models   names of the received models, and `mine`, how many of them saw records of ours
    counts   how many records judged, then how often each model was wrong; or nothing
    cells    records of which both were right, own alone, the network alone, neither
    """

    network: str
    epsilon: float
    adjacency: str
    share: float
    classes: int
    models: tuple[str, ...]
    mine: int
    counts: tuple[float, ...]
    counts_scale: float
    cells: tuple[float, ...]
    cells_scale: float
    format: int = 1

    @property
    def tells(self) -> bool:
        """Whether enough records were held back to be seen through the noise."""
        return sum(self.cells) > hidden_below(self.cells_scale)

    @property
    def own(self) -> Estimate:
        """How often a model of one's own records alone is wrong."""
        return self._estimate(OWN_WRONG)

    @property
    def of_network(self) -> Estimate:
        """How often the vote of the received models is wrong."""
        return self._estimate(NETWORK_WRONG)

    @property
    def difference(self) -> Estimate:
        """The network's share of errors less one's own: above 0, the network is worse."""
        return self._estimate(DIFFERENCE)

    @property
    def verdict(self) -> str:
        """better, worse or unknown: the network, beside one's own records."""
        if not self.tells:
            return "unknown"
        return "worse" if self.difference.low > 0 else _better(self.difference)

    @property
    def own_odds(self) -> float:
        """That one's own model is better than the network: its weight beside all of theirs."""
        found = self.difference
        deviations = max(-FARTHEST, min(FARTHEST, SURE * found.value / found.within))
        return math.erfc(-deviations / math.sqrt(2)) / math.erfc(deviations / math.sqrt(2))

    def weights(self, names: Sequence[str]) -> list[float] | None:
        """Of the received models of these names, 1 in all, and of one's own last; None where the
        measurement tells nothing. What came later weighs as much as the mean model."""
        if not self.tells:
            return None
        known = dict(zip(self.models, self._model_shares, strict=True))
        found = [known.get(name, 1 / len(self.models)) for name in names]
        total = sum(found)
        if not total:  # of all that was worth something nothing is here any more
            return None
        return [*(value / total for value in found), self.own_odds]

    @property
    def words(self) -> list[str]:
        """What it says to its owner."""
        if not self.tells:
            return [
                "measured, but too few records were held back to be seen through the noise: "
                "measure with a larger --epsilon, or with more records"
            ]
        lines = [
            f"your own records alone: {self.own.percent('% wrong')}; "
            f"the network: {self.of_network.percent('%')}",
            self._verdict_in_words(),
        ]
        if self.mine:
            lines.append(
                f"{self.mine} of the {len(self.models)} models measured learned from your records "
                "too, so the network may look a little better than it is"
            )
        return lines

    def document(self) -> dict[str, Any]:
        """For programs."""
        head = {"epsilon": self.epsilon, "share": self.share, "models": len(self.models)}
        found: dict[str, Any] = {**head, "learned_from_yours": self.mine, "verdict": self.verdict}
        if self.tells:
            figures = {"own": self.own, "network": self.of_network, "difference": self.difference}
            for name, one in figures.items():
                found[name] = {"wrong": one.value, "within": one.within}
            found["own_weight"] = self.own_odds
        return {**found, "words": self.words}

    def to_dict(self) -> dict[str, Any]:
        """As it is kept."""
        return {name: getattr(self, name) for name in self.__struct_fields__}

    @property
    def _model_shares(self) -> list[float]:
        return shares(self.counts, self.counts_scale, self.classes, len(self.models))

    def _verdict_in_words(self) -> str:
        gap = self.difference.percent("points")
        if self.verdict == "worse":
            return (
                f"the network is worse than your own records alone, by {gap}: where they disagree, "
                "predictions go by your own model"
            )
        if self.verdict == "better":
            return f"the network is better than your own records alone, by {gap}"
        return (
            f"which of the two is better cannot be told from so few records: they differ by {gap}"
        )

    def _estimate(self, signs: tuple[int, ...]) -> Estimate:
        """(Σ sign·cell)/(Σ cell), by the delta method; one record is added to each cell before its
        sampling is judged, so that an empty one is not taken for impossible."""
        cells, sign = np.array(self.cells), np.array(signs)
        limit = -1.0 if min(signs) < 0 else 0.0
        total = max(1.0, float(cells.sum()))
        value = min(1.0, max(limit, float(sign @ cells) / total))
        noise = 2 * self.cells_scale**2 * float(((sign - value) ** 2).sum())
        seen = np.maximum(cells, 0.0) + 1.0
        mean = float(sign @ seen) / float(seen.sum())
        sampling = float(((sign - mean) ** 2) @ seen)
        return Estimate(value, SURE * math.sqrt(noise + sampling) / total)


def hidden_below(scale: float) -> float:
    """So many records held back, and fewer, four cells of noise of this scale hide."""
    return TELLING * math.sqrt(8) * scale


def _better(difference: Estimate) -> str:
    return "better" if difference.high < 0 else "unknown"


def shares(counts: Sequence[float], scale: float, classes: int, models: int) -> list[float]:
    """How much each received model's vote counts, 1 in all, from noisy counts of records and
    errors: the squared log-odds of its accuracy, as in ensemble.md, but first each error rate is
    drawn towards the mean of all, as far as noise and chance explain that they differ (James and
    Stein). Without counts all count alike."""
    alike = [1 / models] * models
    if not counts or counts[0] <= TELLING * math.sqrt(2) * scale:
        return alike
    records, *wrong = counts
    rates = np.clip(np.array(wrong) / records, 0.0, 1.0)
    mean = float(rates.mean())
    doubt = (2 * scale**2 * (1 + mean**2) / records + mean * (1 - mean)) / records
    spread = float(rates.var(ddof=1))
    kept = max(0.0, 1 - doubt / spread) if spread > 0 else 0.0
    least = 1 / (records + 2)
    drawn = np.clip(mean + kept * (rates - mean), least, 1 - least)
    odds = np.log((1 - drawn) / drawn) + math.log(max(1, classes - 1))
    found = np.maximum(0.0, odds) ** 2
    total = float(found.sum())
    return (found / total).tolist() if total > 0 else alike


def read_worth(folder: Path, network: str) -> Worth | None:
    """What was measured in this peer's folder of the network with this digest; None if nothing
    was. Makes nothing."""
    path = folder / MEASURED
    if not path.exists():
        return None
    try:
        found = msgspec.convert(json.loads(path.read_text(encoding="utf-8")), Worth)
    except (ValueError, msgspec.MsgspecError):
        raise _unreadable(path) from None
    if not _sound(found):
        raise _unreadable(path)
    return found if found.network == network else None


def _sound(found: Worth) -> bool:
    numbers = (*found.counts, *found.cells, found.counts_scale, found.cells_scale)
    fits = not found.counts and len(found.models) > 0
    fits = fits or (len(found.counts) == len(found.models) + 1 and found.counts_scale > 0)
    whole = len(found.cells) == 4 and found.cells_scale > 0 and found.classes >= 2
    return found.format == 1 and fits and whole and all(map(math.isfinite, numbers))


def _unreadable(path: Path) -> InputError:
    return InputError(
        f"{path} cannot be read as a measurement: remove it, and predictions count all votes alike "
        "again; `tacit peer measure` pays for another one."
    )
