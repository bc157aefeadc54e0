"""A secret of this machine's user, for digests that nobody else can test a guess against.

What a holder notes about its own records (which were charged, who asked to be left out) is noted
as digests under a key. One file at home holds the secret; each purpose has a key derived from it
(HKDF, RFC 5869), so that digests made for one purpose say nothing about another.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tacit.errors import InputError
from tacit.home import tacit_home

__all__ = ["local_secret"]

BYTES = 32


def local_secret(purpose: str, home: Path | None = None) -> bytes:
    """32 bytes for `purpose`, the same at every call; made at the first one."""
    secret = _secret((home or tacit_home()) / "keys" / "records.key")
    return HKDF(SHA256(), BYTES, salt=None, info=f"tacit {purpose}".encode()).derive(secret)


def _secret(path: Path) -> bytes:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    if not path.exists():
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(BYTES))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)  # whoever is first: two processes never have two secrets
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    found = path.read_bytes()
    if len(found) != BYTES:
        raise InputError(
            f"{path} has {len(found)} bytes instead of {BYTES}: it was damaged. Put it back from a "
            "backup; digests that were made with it cannot be compared otherwise."
        )
    return found
