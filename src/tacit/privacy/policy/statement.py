"""A holder's trust in servers, signed: for the author of a study, who sees what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tacit.crypto.signing import SigningKey, canonical, signed_by
from tacit.errors import CheckFailed, InputError
from tacit.privacy.policy import reading
from tacit.privacy.policy.policy import SIGNATURE, lines_of, read_trust
from tacit.privacy.policy.trust import Trust

__all__ = ["TrustStatement"]

FORMAT = "tacit trust 1"
FIELDS = ("format", "servers", "holder", "signature")


@dataclass(frozen=True, slots=True)
class TrustStatement:
    """`servers`: how many of a study's servers this holder trusts, or which."""

    servers: Trust
    holder: str
    signature: str

    @classmethod
    def signed(cls, servers: Trust, key: SigningKey) -> TrustStatement:
        return cls(servers, key.public_key, key.sign(_message(servers)))

    @classmethod
    def load(cls, path: Path) -> TrustStatement:
        """From its file; CheckFailed if somebody has changed it."""
        where = str(path)
        text = reading.read_text(path, "A holder writes it: tacit policy trust FILE")
        table = reading.only_known(reading.toml_of(text, where), FIELDS, where)
        if set(table) != set(FIELDS) or table["format"] != FORMAT:
            raise InputError(f"{where}: is not a statement of trust (format = {FORMAT!r}).")
        (holder,) = reading.keys([table["holder"]], f"{where}, holder")
        signature = reading.line(table["signature"], f"{where}, signature")
        found = cls(read_trust(table["servers"], f"{where}, servers"), holder, signature)
        if not SIGNATURE.fullmatch(signature) or not signed_by(
            holder, signature, _message(found.servers)
        ):
            raise CheckFailed(
                f"{where}: the signature does not fit: it was changed, or is somebody else's. Ask "
                "the holder for it again."
            )
        return found

    def to_toml(self) -> str:
        servers = list(self.servers) if isinstance(self.servers, tuple) else self.servers
        table = {"format": FORMAT, "servers": servers, "holder": self.holder}
        return "\n".join(lines_of({**table, "signature": self.signature})) + "\n"


def _message(servers: Trust) -> bytes:
    plain = list(servers) if isinstance(servers, tuple) else servers
    return canonical({"format": FORMAT, "servers": plain})
