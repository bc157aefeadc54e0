"""A peer's own records: what it trains on, and what has come since.

Records that come later are another part of the data set, with a budget of their own: nobody's
record is in two models, so each pays for one part only (parallel composition).
"""

from __future__ import annotations

from pathlib import Path

from tacit.channels.consortium.local_model import Local
from tacit.channels.peers.pact import Pact
from tacit.data.digests import Digester
from tacit.data.encode import Encoded
from tacit.data.records import TableRecords, whole
from tacit.errors import InputError
from tacit.privacy.ledger import RecordDigests

__all__ = ["Holdings"]


class Holdings:
    """The records of a table that only grows: those from `first` up to `used` are in the newest
    model, and the ones before in earlier ones."""

    def __init__(self, pact: Pact, path: Path | None) -> None:
        self._pact, self._path, self.first, self.used = pact, path, 0, 0
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
        self._take(whole)

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
        if fresh < self._pact.smallest:
            return False
        self.first, self.used = self.used, len(whole.X)
        self._take(whole)
        return True

    def _take(self, whole: Encoded) -> None:
        rows = slice(self.first, self.used)
        self.records = Encoded(*(None if c is None else c[rows] for c in whole))  # type: ignore[arg-type]

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
