"""How many neighbours of one kind lie between two neighbours of another (filter.md, lemma 4).

A promise is about one unit under one adjacency; an account is too. What an account is charged for a
spend of another kind is the spend's cost for data sets that many steps apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit.privacy.promise import Adjacency, Unit

__all__ = ["RANK", "Most", "steps"]

RANK = {Unit.RECORD: 0, Unit.PERSON: 1, Unit.HOLDER: 2}


@dataclass(frozen=True, slots=True)
class Most:
    """How many records a person or holder has at most, and how many persons a holder; None: the
    holder of the ledger has not said."""

    records: int | None = None
    persons: int | None = None

    def of(self, unit: Unit) -> int | None:
        return self.records if unit is Unit.RECORD else self.persons


def steps(
    unit: Unit,
    adjacency: Adjacency,
    account: Unit,
    account_adjacency: Adjacency,
    most: Most,
) -> int | None:
    """Neighbours of a spend between two neighbours of an account; None if there is no path.

    coarser → finer   one record is changed by exchanging a person: she leaves and comes back
                      changed (add-remove), or two persons change, if the record becomes another's
                      (replace): two steps
    finer → coarser   as many as the coarser unit has of the finer
    add-remove → replace   one leaves, another comes: twice as many
    replace → add-remove   none: a replace promise says nothing about how many units there are
    """
    if (adjacency, account_adjacency) == (Adjacency.REPLACE, Adjacency.ADD_REMOVE):
        return None
    path = 1
    if RANK[unit] > RANK[account]:
        path = 2
    elif RANK[unit] < RANK[account]:
        stated = most.of(unit)
        if stated is None:
            return None
        path = stated
    return path if adjacency is account_adjacency else 2 * path
