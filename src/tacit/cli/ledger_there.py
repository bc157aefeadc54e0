"""The ledger that a command looks at: opened if it is there, and never made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tacit.home import ledger_path

if TYPE_CHECKING:
    from tacit.privacy.ledger import Ledger

__all__ = ["ledger_there"]


def ledger_there(path: Path | None) -> Ledger | None:
    """The ledger in `path`, by default the holder's own; None if there has never been one.

    One that was there and is gone is refused, as everywhere: nobody knows what it had charged.
    """
    from tacit.privacy.ledger import Ledger
    from tacit.privacy.ledger.seen import mark_at

    chosen = path or ledger_path()
    if not chosen.exists() and mark_at(chosen.expanduser().resolve()) is None:
        return None
    return Ledger(chosen)
