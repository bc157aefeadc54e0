"""Where a holder's own files live when nobody says otherwise."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["ledger_path", "tacit_home"]


def tacit_home() -> Path:
    """$TACIT_HOME, else `tacit` in the user's data folder (XDG base directory specification)."""
    named = os.environ.get("TACIT_HOME")
    if named:
        return Path(named).expanduser()
    data = Path(os.environ.get("XDG_DATA_HOME", ""))
    # The specification asks to ignore a relative XDG_DATA_HOME.
    return (data if data.is_absolute() else Path.home() / ".local" / "share") / "tacit"


def ledger_path() -> Path:
    """$TACIT_LEDGER, else `ledger.db` at home."""
    named = os.environ.get("TACIT_LEDGER")
    return Path(named).expanduser() if named else tacit_home() / "ledger.db"
