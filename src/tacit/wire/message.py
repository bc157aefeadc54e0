"""One signed message, and its form as HTTP headers.

TLS says which machine one talks to and ends there. The signature stays with the message: it ties
the body to one study, one round, one sender and one recipient, so that nothing can be moved from
one of these to another, and an answer to the one request that it answers.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tacit.crypto.signing import SigningKey, canonical, signed_by
from tacit.errors import InputError

__all__ = ["LAST_ROUND", "PROTOCOL", "Message"]

LAST_ROUND = 2**31
# What the roles say to one another, and mean by it. Rises when one of an older version could not
# follow, or would mean something else; docs/explain/versions.md tells which tacit speaks which.
PROTOCOL = 2
FIRST = 1  # of messages that do not say theirs: those of tacit 0.1

# Signatures of other things (certificates, ledgers) are never signatures of a message, and those of
# one protocol never of another.
_DOMAIN = f"tacit wire message, version {PROTOCOL}"
_PREFIX = b"tacit-"
_HASH = re.compile(r"[0-9a-f]{64}")
_SIGNATURE = re.compile(r"[0-9a-f]{128}")
_ROUND = re.compile(r"0|[1-9][0-9]{0,9}")
_KIND = re.compile(r"[a-z-]{1,32}")


@dataclass(frozen=True, slots=True)
class Message:
    study: str  # SHA-256 (hex) of the study's canonical form
    round: int
    sender: str  # public key (hex)
    recipient: str  # public key (hex)
    kind: str
    body: bytes
    answering: str = ""  # signature of the request that this answers; "" for a request
    signature: str = ""

    def signed(self, key: SigningKey) -> Message:
        """This message as sent by the owner of `key`."""
        own = replace(self, sender=key.public_key, signature="")
        return replace(own, signature=key.sign(own._signed_bytes()))

    def is_authentic(self) -> bool:
        """Whether the sender signed exactly this. A second spelling of a key or a number fails."""
        return self._malformed() is None and signed_by(
            self.sender, self.signature, self._signed_bytes()
        )

    def reply(self, kind: str, body: bytes = b"") -> Message:
        """The answer to this request, not yet signed."""
        return Message(
            self.study, self.round, self.recipient, self.sender, kind, body, self.signature
        )

    def to_headers(self) -> list[tuple[bytes, bytes]]:
        """Everything but the body."""
        if wrong := self._malformed():
            raise InputError(_explain(wrong))
        return [
            (b"tacit-protocol", str(PROTOCOL).encode()),
            (b"tacit-study", self.study.encode()),
            (b"tacit-round", str(self.round).encode()),
            (b"tacit-sender", self.sender.encode()),
            (b"tacit-recipient", self.recipient.encode()),
            (b"tacit-kind", self.kind.encode()),
            (b"tacit-answering", self.answering.encode()),
            (b"tacit-signature", self.signature.encode()),
        ]

    @classmethod
    def from_headers(cls, headers: Iterable[tuple[bytes, bytes]], body: bytes = b"") -> Message:
        """The message with these headers; strict, so that one message has one spelling."""
        found = _tacit_headers(headers)
        number = found["round"]
        message = cls(
            study=found["study"],
            round=int(number) if _ROUND.fullmatch(number) else -1,
            sender=found["sender"],
            recipient=found["recipient"],
            kind=found["kind"],
            body=body,
            answering=found.get("answering", ""),
            signature=found["signature"],
        )
        if wrong := message._malformed():
            raise InputError(_explain(wrong))
        return message

    def _signed_bytes(self) -> bytes:
        return canonical(
            [
                _DOMAIN,
                self.study,
                self.round,
                self.sender,
                self.recipient,
                self.kind,
                self.answering,
                hashlib.sha256(self.body).hexdigest(),
            ]
        )

    def _malformed(self) -> str | None:
        """The first field that is not as it should be."""
        if type(self.round) is not int or not 0 <= self.round <= LAST_ROUND:
            return "round"
        if not _KIND.fullmatch(self.kind):
            return "kind"
        for name in ("study", "sender", "recipient"):
            if not _HASH.fullmatch(getattr(self, name)):
                return name
        if self.answering and not _SIGNATURE.fullmatch(self.answering):
            return "answering"
        return None if _SIGNATURE.fullmatch(self.signature) else "signature"


_RULES = {
    "study": "64 lower-case hexadecimal digits",
    "round": f"a whole number from 0 to {LAST_ROUND}, without leading zeros",
    "sender": "a public key: 64 lower-case hexadecimal digits",
    "recipient": "a public key: 64 lower-case hexadecimal digits",
    "kind": "1 to 32 letters a-z or hyphens",
    "answering": "empty, or 128 lower-case hexadecimal digits",
    "signature": "128 lower-case hexadecimal digits",
}
_REQUIRED = [name for name in _RULES if name != "answering"]


def _explain(name: str) -> str:
    """The value itself is not repeated: it came from a stranger."""
    return (
        f"The message's {name} must be {_RULES[name]}. "
        "Send it with the same version of tacit as the others."
    )


def _tacit_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for raw, value in headers:
        if not raw.lower().startswith(_PREFIX):
            continue
        name = raw.lower()[len(_PREFIX) :].decode("latin-1")
        if name in found:  # two readers could each believe another one
            raise InputError(f"The header tacit-{_shown(name)} came twice: send it once.")
        found[name] = value.decode("latin-1")
    _check_protocol(found.pop("protocol", str(FIRST)))
    for name in _REQUIRED:
        if name not in found:
            raise InputError(f"The header tacit-{name} is missing: send {_RULES[name]}.")
    return found


def _check_protocol(said: str) -> None:
    if said != str(PROTOCOL):
        other = said if _ROUND.fullmatch(said) else "unknown"
        raise InputError(
            f"The message is of protocol {other}; this tacit speaks protocol {PROTOCOL}. All roles "
            "of a study run versions of tacit with one protocol: agree on one of them."
        )


def _shown(name: str) -> str:
    return name if name in (*_RULES, "protocol") else "…"
