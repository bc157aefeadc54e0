"""Where a study stands, as its centre tells everybody who takes part; and how it may end early.

Whoever waits is told for whom, and for how long at most. Whoever is told that the study has stopped
is told why: in the centre's own words, or in a server's, which the server has signed, so that the
centre cannot invent them.
"""

from __future__ import annotations

import msgspec

from tacit.channels.roles.events import Tell
from tacit.channels.studies.study import Study
from tacit.crypto.signing import SigningKey, canonical, fingerprint, signed_by
from tacit.errors import CheckFailed, Refused, StudyStopped, TacitError, Unreachable

__all__ = ["Refusal", "Standing", "Statement", "named", "stopped_by", "tell_waiting"]

REASON_CHARACTERS = 400
MOST_NAMES = 20  # that are told of those who are waited for
# What a centre may give up with, and whoever takes part then meets; anything else is a refusal.
_KINDS: dict[str, type[TacitError]] = {"Unreachable": Unreachable, "CheckFailed": CheckFailed}


class Standing(msgspec.Struct, frozen=True, omit_defaults=True):
    """The phase and round of a study.

    rounds      as many as the study has at most
    awaited     the names of holders or servers that are waited for
    seconds     how long at most, from now; None: there is no limit
    reason      why it has stopped, if it has
    kind        the name of the error that it has stopped with
    statement   what a server has signed of it, if it was a server that refused
    """

    phase: str
    round: int = 0
    rounds: int = 0
    awaited: list[str] = []
    seconds: float | None = None
    reason: str = ""
    kind: str = ""
    statement: str = ""

    @property
    def subject(self) -> tuple[object, ...]:
        """What is worth telling again when it changes."""
        return self.phase, self.round, tuple(self.awaited), self.reason


class Refusal(msgspec.Struct, frozen=True):
    """A server's word that it will not do what it was asked in this study."""

    server: str
    round: int
    asked: str
    reason: str
    signature: str = ""

    def _said(self, study: str) -> bytes:
        said = [study, self.server, self.round, self.asked, self.reason]
        return canonical(["tacit refusal, version 1", *said])

    def signed(self, key: SigningKey, study: str) -> Refusal:
        return msgspec.structs.replace(self, signature=key.sign(self._said(study)))

    def check(self, study: Study) -> str:
        """The name of the server that has signed this; CheckFailed if none of the study's has."""
        for server in study.servers:
            if server.key == self.server:
                if signed_by(server.key, self.signature, self._said(study.digest)):
                    return server.name
                raise CheckFailed(f"server {server.name} has not signed the refusal shown.")
        raise CheckFailed(f"{fingerprint(self.server)} is no server of study {study.name}.")


class Statement:
    """A refusal as text, as it travels with an error (`TacitError.statement`)."""

    @staticmethod
    def of(key: SigningKey, study: Study, number: int, asked: str, error: TacitError) -> str:
        reason = "".join(c for c in str(error) if c.isprintable())[:REASON_CHARACTERS]
        refusal = Refusal(key.public_key, number, asked, reason).signed(key, study.digest)
        return msgspec.json.encode(refusal).decode()

    @staticmethod
    def read(text: str, study: Study) -> tuple[str, Refusal]:
        """The server's name and its refusal; CheckFailed if it is none, or not signed."""
        try:
            refusal = msgspec.json.decode(text, type=Refusal)
        except msgspec.MsgspecError:
            raise CheckFailed("what is shown as a server's refusal is none.") from None
        return refusal.check(study), refusal


def named(awaited: list[str]) -> list[str]:
    """The first of these names, and how many more there are."""
    if len(awaited) <= MOST_NAMES:
        return awaited
    return [*awaited[:MOST_NAMES], f"{len(awaited) - MOST_NAMES} more"]


def tell_waiting(tell: Tell, standing: Standing) -> None:
    """Tell the people of a role what it waits for."""
    seconds = "" if standing.seconds is None else f", at most {standing.seconds:.0f} s more"
    awaited = ", ".join(standing.awaited) or "the next round"
    words = {"phase": standing.phase, "round": standing.round, "awaited": awaited}
    tell("waiting", **words, limit=seconds)


def stopped_by(standing: Standing, study: Study) -> TacitError:
    """What whoever takes part meets when the centre says that the study has stopped.

    A server's signed refusal ends it for good. The centre's own word does not: what was begun stays
    reserved, and whoever starts again goes on if the centre does.
    """
    centre = study.aggregator.name
    words = "".join(c for c in standing.reason if c.isprintable())[: 2 * REASON_CHARACTERS]
    if standing.statement:
        try:
            name, refusal = Statement.read(standing.statement, study)
        except CheckFailed as error:
            return Refused(f"{centre} says that study {study.name} was stopped; but {error}")
        return StudyStopped(
            f"study {study.name} has ended without a model: server {name} refused to "
            f"{refusal.asked} round {refusal.round}, and has signed why: {refusal.reason} What you "
            "had begun is charged, the rest is given back. Agree on a corrected study."
        )
    kind = _KINDS.get(standing.kind, Refused)
    return kind(
        f"study {study.name} was stopped by {centre}: {words} What you had begun stays reserved: "
        "start again when it does, or leave (--leave)."
    )
