"""What one holder does in a round, in every channel: its own records, mapped, clipped and added."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.prg import SYSTEM, Randomness
from tacit.data.records import ArrayRecords, Records
from tacit.errors import UsageError
from tacit.privacy.promise import Promise, Unit
from tacit.programs.coarse import carried_length, carry, combined
from tacit.programs.contribute import (
    Prepared,
    holder_sum,
    person_sum,
    prepared,
    record_sum,
    sampled,
)
from tacit.programs.program import Program, Query

__all__ = ["Holding", "MapSum"]

Integers = NDArray[np.int64]


class MapSum(Protocol):
    """Σ function(item): what an engine offers."""

    def __call__(
        self, items: Iterable[Prepared], function: Callable[[Prepared], Integers], /
    ) -> Integers: ...


@dataclass
class Holding:
    """One holder's records, prepared once where they are in memory anyway, else in every round.

    `first` is the program's state before any data: records are prepared with it and with no other,
    so that nothing of one round's state can be remembered in the next.
    """

    program: Program[Any, Any]
    first: Any
    records: Records
    promise: Promise
    map_sum: MapSum
    _kept: list[Prepared] | None = field(default=None, init=False, repr=False)

    def sum(
        self,
        state: Any,
        query: Query,
        rate: Fraction = Fraction(1),
        randomness: Randomness = SYSTEM,
    ) -> Integers:
        """This holder's part of the sum: every unit clipped to the bound, in integers, and the
        whole rounded where the plan says so."""
        return combined(self.carried(state, query, rate, randomness), query)

    def carried(
        self,
        state: Any,
        query: Query,
        rate: Fraction = Fraction(1),
        randomness: Randomness = SYSTEM,
    ) -> Integers:
        """The same before it is rounded: sums of parts of the records can be added up (coarse)."""
        program, clip = self.program, self.promise.is_private
        unit = self.promise.unit if clip else Unit.RECORD
        match unit:
            case Unit.PERSON:
                return person_sum(program, self._batches(), state, query, rate, randomness)
            case Unit.HOLDER:
                if rate < 1:
                    raise UsageError(
                        "a whole holder is the unit: there is no sample of one holder. Leave "
                        'sampling out, or protect unit = "record".'
                    )
                return carry(holder_sum(program, self._batches(), state, query), query)
            case Unit.RECORD:
                batches = iter(sampled(self._batches(), rate, randomness))
                one = next(batches, None)
                if one is None:  # no records are nothing to fail at: that would tell of the first
                    return np.zeros(carried_length(query), dtype=np.int64)
                return self.map_sum(
                    chain((one,), batches),
                    lambda batch: carry(record_sum(program, batch, state, query, clip), query),
                )

    def _batches(self) -> Iterable[Prepared]:
        if not isinstance(self.records, ArrayRecords):
            return (prepared(self.program, b, self.first) for b in self.records.batches())
        if self._kept is None:
            self._kept = [prepared(self.program, b, self.first) for b in self.records.batches()]
        return self._kept
