"""What a collector alone knows: its onion key, its part of the lot, the keys of the tokens."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tacit.crypto.blind_signatures import TokenKey
from tacit.crypto.onion import Kem, OnionKey
from tacit.crypto.sharing import fresh_seed
from tacit.errors import InputError, Refused

__all__ = ["Secrets"]


class _File(msgspec.Struct, frozen=True):
    onion: bytes
    seed: bytes
    tokens: dict[str, bytes]


@dataclass(frozen=True, slots=True, repr=False)
class Secrets:
    onion: OnionKey
    seed: bytes
    tokens: dict[str, TokenKey]

    @classmethod
    def fresh(cls, kem: Kem) -> Secrets:
        """Before the questions are known: they may follow from the commitment to the seed."""
        return cls(OnionKey.generate(kem), fresh_seed(), {})

    def with_tokens(self, questions: Iterable[str]) -> Secrets:
        """One key for each question, so that a token says which one it is for."""
        return Secrets(self.onion, self.seed, {name: TokenKey.generate() for name in questions})

    def save(self, path: Path) -> None:
        """For the collector's eyes only; never over another file."""
        tokens = {name: key.to_bytes() for name, key in self.tokens.items()}
        data = msgspec.msgpack.encode(_File(self.onion.to_bytes(), self.seed, tokens))
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise Refused(
                f"{path} is there already: the secrets of another study of this name. Choose "
                "another name; a study's secrets are never overwritten."
            ) from None
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    @classmethod
    def load(cls, path: Path) -> Secrets:
        try:
            read = msgspec.msgpack.decode(path.read_bytes(), type=_File)
        except FileNotFoundError:
            raise InputError(
                f"{path}: there is no such file. Whoever proposed the study has its secrets: run "
                "the collector there, with the same TACIT_HOME."
            ) from None
        except msgspec.MsgspecError:
            raise InputError(f"{path}: does not hold a collector's secrets.") from None
        tokens = {name: TokenKey.from_bytes(data) for name, data in read.tokens.items()}
        return cls(OnionKey.from_bytes(read.onion), read.seed, tokens)
