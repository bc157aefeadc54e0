"""Records without those of people who asked to be left out.

Each record stays or goes by its own identifier alone, so that no bound on what one unit adds
changes (docs/guide/policy.md says what follows for promises).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tacit.data.encode import Encoded
from tacit.data.records import ArrayRecords, Records
from tacit.privacy.policy import LeftOut

__all__ = ["remaining", "remaining_of"]


@dataclass(frozen=True, slots=True)
class _Remaining:
    """Asked anew in every pass, as the file itself is read anew."""

    records: Records
    left_out: LeftOut

    def batches(self) -> Iterator[Encoded]:
        for batch in self.records.batches():
            kept = remaining_of(batch, self.left_out)
            if len(kept.X):
                yield kept


def remaining(records: Records, left_out: LeftOut) -> Records:
    """Those that stay; none at all is not an error, since that would tell of the last one."""
    if not left_out:
        return records
    if not isinstance(records, ArrayRecords):
        return _Remaining(records, left_out)
    kept = remaining_of(Encoded(records.X, records.y, records.person), left_out)
    return ArrayRecords(*kept, rows=records.rows) if len(kept.X) else _Remaining(records, left_out)


def remaining_of(batch: Encoded, left_out: LeftOut) -> Encoded:
    """The same for one batch."""
    if not left_out:
        return batch
    stays = left_out.keep(batch.person)
    return Encoded(*(None if a is None else a[stays] for a in batch))  # type: ignore[arg-type]
