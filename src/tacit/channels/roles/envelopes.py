"""From the wire's messages to letters."""

from __future__ import annotations

from tacit.channels.roles.letters import Letter
from tacit.channels.studies.agreement import Named
from tacit.errors import Refused
from tacit.wire.message import Message

__all__ = ["letter_of"]


def letter_of(message: Message, study: Named) -> Letter:
    """The letter in an authentic message, if it belongs to this study."""
    if message.study != study.digest:
        raise Refused("this message belongs to another study.")
    return Letter(message.kind, message.round, message.body)
