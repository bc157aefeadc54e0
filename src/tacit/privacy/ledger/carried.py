"""Ledgers of version 0.1: read as they are, their file kept as a copy beside the one in use.

What was charged stays charged. Entries of 0.1 name parts but no partition: parts of one purpose
(those of one network for peers) are taken as one partition, so that costs of different studies add,
as they should have. Spends have no cost beside (ε, δ), and their accounts go on adding until the
holder sets a ceiling anew.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tacit.privacy.ledger.chain import GENESIS, LedgerFile
from tacit.whole_file import write_whole

__all__ = ["carry_over", "keep_copy", "partition_before"]

_PEERS = re.compile(r"(peers \S+) group ")


def partition_before(body: dict[str, Any]) -> str | None:
    """The partition of a part that was named before partitions were."""
    if body["part"] is None:
        return None
    peers = _PEERS.match(body["purpose"])
    return peers.group(1) if peers else str(body["purpose"])


def keep_copy(path: Path, version: int) -> Path:
    """A copy of the file as the older version wrote it; one that is there already stays."""
    kept = path.with_name(f"{path.name}.version-{version}")
    if not kept.exists():
        write_whole(kept, path.read_bytes())
        kept.chmod(0o600)
    return kept


def carry_over(file: LedgerFile, version: int) -> None:
    """Entries stay as they were; from here on only this version may add to them."""
    with file.writing() as transaction:
        if transaction.version() == version:  # another process may have been faster
            for _ in transaction.newer(0, GENESIS):
                pass  # nothing is done to a file that is not intact
            keep_copy(file.path, version)
            transaction.set_version()
