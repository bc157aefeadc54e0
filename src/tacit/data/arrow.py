"""pyarrow, an optional extra: the one place that says what to do when it is not there."""

from __future__ import annotations

from tacit.errors import UsageError

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pacsv
except ModuleNotFoundError:
    raise UsageError(
        "reading tables needs pyarrow, which is not installed: pip install 'tacit[tables]'"
    ) from None

__all__ = ["pa", "pacsv", "pc"]
