"""A relay's card, which it gives to whoever proposes a study; and the onion key behind it."""

from __future__ import annotations

import os
from pathlib import Path

from tacit.channels.crowd.terms import RelayCard
from tacit.crypto.onion import Kem, OnionKey
from tacit.data.toml import fields, read_toml, table_lines, table_of
from tacit.errors import InputError

__all__ = ["onion_key", "read_card", "write_card"]

TOP = "# A relay's card: give it to whoever proposes a study (tacit crowd propose --relay FILE)."
_WRITE = "The relay's operator writes one with: tacit crowd offer"


def write_card(card: RelayCard, path: Path) -> None:
    path.write_text("\n".join([TOP, *table_lines(fields(card))]) + "\n", encoding="utf-8")


def read_card(path: Path) -> RelayCard:
    card: RelayCard = table_of(read_toml(path, _WRITE), RelayCard, str(path))
    return card


def onion_key(path: Path, kem: Kem | None = None) -> OnionKey:
    """The key in `path`; made there, for its owner's eyes only, if `kem` says of which kind."""
    if not path.exists():
        if kem is None:
            raise InputError(f"{path}: there is no such onion key. {_WRITE}.")
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(OnionKey.generate(kem).to_bytes())
            file.flush()
            os.fsync(file.fileno())
    return OnionKey.from_bytes(path.read_bytes())
