"""A peer's own records: what it trains on, and what has come since.

Records that come later are another part of the data set, with a budget of their own: nobody's
record is in two models, so each pays for one part only (parallel composition).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tacit.channels.consortium.local_model import Local
from tacit.channels.peers.pact import Pact
from tacit.data.digests import Digester
from tacit.data.encode import Encoded
from tacit.data.records import TableRecords, whole
from tacit.data.remaining import remaining_of
from tacit.errors import InputError
from tacit.privacy.ledger import RecordDigests
from tacit.privacy.policy import LeftOut

__all__ = ["Holdings"]


class Holdings:
    """The records of a table that only grows: those from `first` up to `used` are in the newest
    model, and the ones before in earlier ones."""

    def __init__(
        self,
        pact: Pact,
        path: Path | None,
        left_out: Callable[[], LeftOut] = lambda: LeftOut("data"),
    ) -> None:
        self._pact, self._path, self.first, self.used = pact, path, 0, 0
        self._left_out = left_out
        self.records: Encoded | None = None
        self.digests: RecordDigests | None = None  # of the whole table

    @property
    def part(self) -> str:
        """What the ledger calls the records of the newest model."""
        return f"rows {self.first + 1} to {self.used}"

    def restore(self, first: int, used: int) -> None:
        """Go on with the part that we had before we were started again: its budget is its own."""
        whole = self._all()
        if not 0 <= first < used <= len(whole.X):
            raise InputError(f"{self._path} has fewer records than before: it must only grow.")
        self.first, self.used = first, used
        if not self._take(whole):
            raise InputError(
                f"{self._path}: people asked to be left out, and fewer than the "
                f"{self._pact.smallest} records that the network needs of everybody stay."
            )

    def read(self) -> bool:
        """Whether there are enough new records for another model; they are `records` then."""
        if self._path is None:
            return False
        whole = self._all()
        fresh = len(whole.X) - self.used
        if fresh < 0:
            raise InputError(f"{self._path} has fewer records than before: it must only grow.")
        if fresh > self._pact.records:
            raise InputError(
                f"{self._path} has {fresh} new records; the network takes at most "
                f"{self._pact.records} from a peer at a time."
            )
        before = self.first, self.used
        self.first, self.used = self.used, len(whole.X)
        if fresh < self._pact.smallest or not self._take(whole):
            self.first, self.used = before
            return False
        return True

    def _take(self, whole: Encoded) -> bool:
        """Whether enough of them stay: who asked to be left out is counted, and not trained on."""
        rows = slice(self.first, self.used)
        part = Encoded(*(None if c is None else c[rows] for c in whole))  # type: ignore[arg-type]
        stay = remaining_of(part, self._left_out())
        if len(stay.X) < self._pact.smallest:
            return False
        self.records = stay
        return True

    def trained(self) -> Local:
        """The model of the newest part."""
        assert self.records is not None  # read said so
        vector = self._pact.averaged.train(self.records, self._pact.schema)
        return Local(vector, len(self.records.X))

    def _all(self) -> Encoded:
        encoder = self._pact.averaged.encoder(self._pact.schema)
        digester = Digester(encoder.schema)
        found = whole(TableRecords(self._path, encoder, digester.add))
        self.digests = digester.digests
        return found
