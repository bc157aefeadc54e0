"""Letters between roles, without who carries them and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import msgspec

from tacit.errors import InputError

__all__ = ["Finished", "Letter", "read", "write"]


@dataclass(frozen=True, slots=True)
class Letter:
    """A request or its reply. The envelope (study, sender, signature) is the wire's business."""

    kind: str
    round: int
    body: bytes = b""


class Finished(msgspec.Struct, frozen=True):
    """The study is over: its model and the certificate."""

    model: bytes
    certificate: str


T = TypeVar("T", bound=msgspec.Struct)


def write(body: msgspec.Struct) -> bytes:
    return msgspec.msgpack.encode(body)


def read(kind: type[T], body: bytes) -> T:
    """The body of a letter; InputError for anything else."""
    try:
        return msgspec.msgpack.decode(body, type=kind)
    except msgspec.MsgspecError:
        raise InputError(f"the message does not hold a {kind.__name__.lower()}.") from None
