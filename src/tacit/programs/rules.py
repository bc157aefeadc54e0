"""Association rules: who has these items also has those. Read off a model, so they cost nothing."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tacit.errors import UsageError
from tacit.programs.apriori import Tree
from tacit.programs.itemsets_model import Itemsets
from tacit.programs.supersets import Known

__all__ = ["Rules", "association_rules"]


@dataclass(frozen=True)
class Rules:
    """if → then, one rule a row, by falling confidence.

    antecedent, consequent  (rules, max_length): places in `names`, filled up with −1
    support                 the share of records that hold both
    confidence              the share of those with the antecedent that have the consequent: ≤ 1
    lift                    confidence over the consequent's support: 1 if they are independent
    """

    names: tuple[str, ...]
    antecedent: NDArray[np.int32]
    consequent: NDArray[np.int32]
    support: NDArray[np.float64]
    confidence: NDArray[np.float64]
    lift: NDArray[np.float64]

    def named(self) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """Each rule as (if, then), by the names of the items."""
        sides = [
            [tuple(self.names[i] for i in row if i >= 0) for row in side.tolist()]
            for side in (self.antecedent, self.consequent)
        ]
        return list(zip(*sides, strict=True))


def association_rules(
    model: Itemsets, min_confidence: float = 0.8, max_consequent: int | None = None
) -> Rules:
    """All rules within the frequent sets, at least so sure (Agrawal & Srikant 1994, section 3).

    max_consequent  the most items a rule may conclude; by default any number
    """
    if not 0 < min_confidence <= 1:
        raise UsageError(f"min_confidence lies above 0 and up to 1, not {min_confidence}.")
    sets, counts = model.families()
    known = Known(Tree(sets, len(model.names)), counts, model.records)
    width = model.sets.shape[1]
    sides: list[tuple[NDArray[np.int32], NDArray[np.int32]]] = [(_padded([], width),) * 2]
    figures: list[NDArray[np.float64]] = [np.empty((3, 0))]
    for length, family in enumerate(sets, start=1):
        for size in range(1, min(length - 1, max_consequent or length) + 1):
            for then in combinations(range(length), size):
                given = np.delete(family, then, axis=1)
                confidence = counts[length - 1] / known.count(given)
                sure = confidence >= min_confidence
                concluded = family[sure][:, then]
                lift = confidence[sure] * model.records / known.count(concluded)
                sides.append((_padded(given[sure], width), _padded(concluded, width)))
                support = counts[length - 1][sure] / model.records
                figures.append(np.stack([support, confidence[sure], lift]))
    support, confidence, lift = np.concatenate(figures, axis=1)
    order = np.argsort(-confidence, kind="stable")
    first, second = (np.concatenate(side)[order] for side in zip(*sides, strict=True))
    return Rules(model.names, first, second, support[order], confidence[order], lift[order])


def _padded(sets: NDArray[np.int32] | list[int], width: int) -> NDArray[np.int32]:
    rows = np.full((len(sets), width), -1, dtype=np.int32)
    if len(sets):
        array = np.asarray(sets, dtype=np.int32)
        rows[:, : array.shape[1]] = array
    return rows
