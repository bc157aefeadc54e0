"""What every test shares: repeatable properties, and no trace in the user's home."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

# The same examples on every run: a property that fails must fail for everyone. No deadline: this
# would time the machine.
settings.register_profile("tacit", derandomize=True, deadline=None)
settings.load_profile("tacit")


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and ledgers of tests stay out of the user's home; the cache of data sets is shared."""
    monkeypatch.setenv("TACIT_HOME", str(tmp_path / "tacit-home"))
    monkeypatch.delenv("TACIT_LEDGER", raising=False)
