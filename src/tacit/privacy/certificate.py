"""The certificate: leaves with every model, and anyone can recompute what it says.

It is a signed JSON document in canonical form (sorted keys, no blanks). Numbers that carry the
proof (bounds, scales, probabilities) are exact fractions written as text. `verify` accepts one byte
string only: any change of any byte is an error that says what no longer holds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from tacit import __version__
from tacit.crypto.signing import SigningKey, canonical, fingerprint, signed_by
from tacit.errors import CertificateInvalid, PromiseError, TacitError
from tacit.privacy.amplified import Amplified
from tacit.privacy.certificate_html import (
    certificate_html,
    certificate_text,
    verdict_html,
    verdict_text,
)
from tacit.privacy.certificate_parts import (
    FORMAT,
    FORMAT_2,
    FORMAT_3,
    OLD_FORMATS,
    Participation,
    Witness,
    promise_document,
    promise_of,
    release_document,
    release_of,
    statement,
)
from tacit.privacy.promise import Adjacency, Promise, Unit
from tacit.privacy.recompute import recomputed_epsilon
from tacit.privacy.release import Release
from tacit.privacy.superseded import why_superseded

__all__ = ["Certificate", "Participation", "Verdict", "Witness", "statement"]

# How far the verifier's own numerical integration may exceed the accountant's.
TOLERANCE = 1e-3

IDEALISED = "The noise of 'l2-laplace' is drawn in double precision: its numerics are idealised."
INSECURE = (
    "The randomness came from a seed: whoever knows the seed can remove the noise, and runs on "
    "other data with the same seed may share it. The promise does NOT hold."
)
# What reading something else than a certificate ends with: JSON has infinite numbers, texts that
# are no Unicode, and any depth.
_NONE = (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError)
NO_PRIVACY = "epsilon is infinite: there is no noise and no privacy."


@dataclass(frozen=True, slots=True, repr=False)
class Verdict:
    """What a verification found: the recomputed cost, who signed, and what to keep in mind.

    central     the recomputed epsilon of the central figure, if there is one
    conditions  what must be public or otherwise true for the promise to hold
    superseded  why the promise is not established although nothing was changed, if so: the
                certificate was written by a version whose accounting or protocol had a fault
    """

    epsilon: float
    delta: float
    signer: str
    warnings: tuple[str, ...]
    central: float | None = None
    conditions: tuple[str, ...] = ()
    superseded: str | None = None

    def __repr__(self) -> str:
        return verdict_text(self)

    def _repr_html_(self) -> str:
        return verdict_html(self)


@dataclass(frozen=True, slots=True, repr=False)
class Certificate:
    """What was promised, to whom, under which trust, by which releases.

    promise_holds   False for a published method whose promise is broken, and for randomness that
                 is not secure: then whatever the caller says
    trust        who must be trusted for the promise to hold, in words
    accountant   that found the promise kept
    program      what was computed, with its version; `program_digest` hashes its definition
    subject      SHA-256 of the released model or result
    ledger       head of the holder's ledger after the spend, if there was one
    remarks      what else a reader must know, e.g. that a published method breaks its promise
    study        SHA-256 of the study that the result was agreed in, if there was one
    participation, witnesses   who took part in it, and who added its noise
    amplified    the smaller, central figure of reports that were mixed, under its assumption
    conditions   what must be public or otherwise true for the promise to hold, in words
    holders_per_person   with how many holders of the study one person may be: so many times one
                 holder's contribution are covered by the bounds
    format       of the document; old ones are read and verified, never written anew
    """

    promise: Promise
    releases: tuple[Release, ...]
    trust: str
    accountant: str
    program: str
    program_digest: str
    schema_digest: str
    subject: str
    secure_randomness: bool
    promise_holds: bool = True
    remarks: tuple[str, ...] = ()
    ledger: str | None = None
    study: str | None = None
    participation: Participation | None = None
    witnesses: tuple[Witness, ...] = ()
    amplified: Amplified | None = None
    conditions: tuple[str, ...] = ()
    holders_per_person: int = 1
    format: str = FORMAT
    issued: str = ""
    library: str = f"tacit {__version__}"
    public_key: str = ""
    signature: str = ""

    def __post_init__(self) -> None:
        many = self.holders_per_person
        if many < 1 or (many > 1 and self.promise.unit is not Unit.PERSON):
            raise PromiseError(
                f"a certificate for a {self.promise.unit} cannot count {many} holders per person: "
                "it is 1, or more where the unit is a person."
            )
        said = (self.conditions, many) != ((), 1) or any(
            r.sample is not None for r in self.releases
        )
        if self.format in OLD_FORMATS and said:
            raise PromiseError(f"{self.format!r} has no room for conditions, holders or samples.")
        if not self.secure_randomness and self.format not in OLD_FORMATS:
            object.__setattr__(self, "promise_holds", False)

    def signed(self, key: SigningKey, now: datetime | None = None) -> Certificate:
        """The same certificate, dated and signed."""
        moment = (now or datetime.now(UTC)).astimezone(UTC).isoformat(timespec="seconds")
        dated = replace(self, issued=moment, public_key=key.public_key, signature="")
        return replace(dated, signature=key.sign(canonical(dated._document())))

    @property
    def superseded(self) -> str | None:
        """Why the promise is not established, if a fault of what wrote it may have broken it."""
        if not self.promise_holds:  # it says so itself
            return None
        return why_superseded(
            self.format,
            self.promise,
            self.releases,
            self.study,
            self.participation,
            self.witnesses,
            self.amplified,
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the promise does not cover, derived from the certificate itself."""
        found = list(self.remarks)
        if not self.promise.is_private:
            found.append(NO_PRIVACY)
        if not self.secure_randomness:
            found.append(INSECURE)
        if any(release.mechanism == "l2-laplace" for release in self.releases):
            found.append(IDEALISED)
        if self.holders_per_person > 1:
            found.append(
                f"A person may be with up to {self.holders_per_person} holders: every bound is "
                "that many times what one holder contributes for her. Who is with more is "
                "protected less."
            )
        if self.method_is_broken:
            found.append("The method was run as published; its promise does NOT hold.")
        return tuple(found)

    @property
    def method_is_broken(self) -> bool:
        """Whether the promise fails for the method's sake, and not because of a seed."""
        return self.secure_randomness and not self.promise_holds

    def __repr__(self) -> str:
        return certificate_text(self)

    def _repr_html_(self) -> str:
        return certificate_html(self)

    def to_json(self) -> str:
        return canonical({**self._document(), "signature": self.signature}).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Certificate:
        """Read a certificate; anything but its one canonical form is refused."""
        data = text.encode() if isinstance(text, str) else text
        try:
            certificate = _certificate(json.loads(data))
            same = certificate.to_json().encode() == data
        except TacitError as error:
            raise CertificateInvalid(f"the certificate is impossible: {error}") from None
        except _NONE:
            raise CertificateInvalid("this is not a tacit certificate, or it is damaged.") from None
        if not same:
            raise CertificateInvalid(
                "the certificate is not in its canonical form: some bytes were changed or added."
            )
        return certificate

    def verify(self, signer: str | None = None, subject: str | None = None) -> Verdict:
        """Check the signature and recompute the cost; raise CertificateInvalid with the reason.

        `signer` pins the public key that must have signed; `subject` is the SHA-256 of the model
        at hand. A genuine certificate of an older version whose promise a fault may have broken is
        no error, but a verdict that says `superseded`.
        """
        self._check_signature(signer)
        self._check_witnesses()
        if subject is not None and subject != self.subject:
            raise CertificateInvalid(
                "the model is not the one this certificate was issued for (its SHA-256 differs)."
            )
        epsilon = self._recompute()
        central = self._recompute_central(epsilon)
        return Verdict(
            epsilon,
            self.promise.delta,
            fingerprint(self.public_key),
            self.warnings,
            central,
            self.conditions,
            self.superseded,
        )

    def _check_signature(self, signer: str | None) -> None:
        if not signed_by(self.public_key, self.signature, canonical(self._document())):
            raise CertificateInvalid("the signature does not match: the certificate was changed.")
        if signer is not None and signer != self.public_key:
            raise CertificateInvalid(
                f"signed by {fingerprint(self.public_key)}, not by the expected "
                f"{fingerprint(signer)}."
            )

    @property
    def statement(self) -> bytes | None:
        """What its witnesses have signed of their noise; None outside a study."""
        return self._statement(None)

    @property
    def statement_of_subject(self) -> bytes | None:
        """The same with the subject: what a federation's servers sign, each for one subject."""
        return self._statement(self.subject)

    def _statement(self, subject: str | None) -> bytes | None:
        if self.study is None or self.participation is None:
            return None
        return statement(
            self.study,
            self.promise,
            self.releases,
            self.participation,
            self.secure_randomness,
            self.holders_per_person,
            self.format,
            subject,
        )

    def _check_witnesses(self) -> None:
        """Each has signed what stands here. Whether the subject must be part of it, who has the
        study knows (federation/certify.py): parties of a consortium sign before there is one."""
        known = [said for said in (self.statement_of_subject, self.statement) if said is not None]
        for witness in self.witnesses:
            if not any(signed_by(witness.public_key, witness.signature, said) for said in known):
                raise CertificateInvalid(
                    f"server {fingerprint(witness.public_key)} did not sign what the certificate "
                    "says of its noise."
                )

    def _recompute(self) -> float:
        """What the releases cost. With a seed too, where the noise is of the right size and
        only its secrecy is missing: a simulation's accounting is checked like any other."""
        if not self.promise.is_private or self.method_is_broken:
            return math.inf
        if not self.releases:
            raise CertificateInvalid("the certificate lists no release: nothing was promised.")
        promise = self.promise
        epsilon = recomputed_epsilon(self.releases, promise.delta, promise.adjacency, promise.unit)
        if epsilon > promise.epsilon * (1 + TOLERANCE) and self.superseded is None:
            raise CertificateInvalid(
                f"its releases cost ε = {epsilon:.6g}, more than the promised {promise.epsilon:g}."
            )
        return epsilon

    def _recompute_central(self, local: float) -> float | None:
        if self.amplified is None:
            return None
        if self.promise.delta or self.promise.adjacency is not Adjacency.REPLACE:
            raise CertificateInvalid(
                "a central figure stands beside a local promise: without delta, and for a person "
                "who is exchanged."
            )
        people = None if self.participation is None else self.participation.holders
        return self.amplified.recomputed(self.releases, local, people, TOLERANCE)

    def _document(self) -> dict[str, Any]:
        """Everything but the signature. Old formats keep their bytes: format 2 says nothing of a
        central figure, and neither of conditions, holders per person or samples."""
        old = self.format in OLD_FORMATS
        more: dict[str, Any] = {}
        if self.format != FORMAT_2:
            more["amplified"] = None if self.amplified is None else self.amplified.document()
        if not old:
            more["conditions"] = list(self.conditions)
            more["holders_per_person"] = self.holders_per_person
        return {
            "format": self.format,
            **more,
            "promise": promise_document(self.promise),
            "promise_holds": self.promise_holds,
            "trust": self.trust,
            "releases": [release_document(release, old) for release in self.releases],
            "accountant": self.accountant,
            "program": self.program,
            "program_digest": self.program_digest,
            "schema_digest": self.schema_digest,
            "subject": self.subject,
            "secure_randomness": self.secure_randomness,
            "remarks": list(self.remarks),
            "ledger": self.ledger,
            "study": self.study,
            "participation": None if self.participation is None else asdict(self.participation),
            "witnesses": [asdict(witness) for witness in self.witnesses],
            "issued": self.issued,
            "library": self.library,
            "public_key": self.public_key,
        }


def _certificate(document: Mapping[str, Any]) -> Certificate:
    written = document["format"]
    if written not in (FORMAT, *OLD_FORMATS):
        raise CertificateInvalid("it has another format: use the version of tacit that made it.")
    old = written in OLD_FORMATS
    plain = ("format", "trust", "accountant", "program", "program_digest", "schema_digest")
    signature = ("subject", "issued", "library", "public_key", "signature")
    return Certificate(
        promise=promise_of(document["promise"]),
        releases=tuple(release_of(entry, old) for entry in document["releases"]),
        secure_randomness=bool(document["secure_randomness"]),
        promise_holds=bool(document["promise_holds"]),
        remarks=tuple(document["remarks"]),
        ledger=document["ledger"],
        study=document["study"],
        participation=_participation(document["participation"]),
        witnesses=tuple(Witness(**_texts(entry)) for entry in document["witnesses"]),
        amplified=_amplified(document),
        conditions=() if old else tuple(str(text) for text in document["conditions"]),
        holders_per_person=1 if old else int(document["holders_per_person"]),
        **{name: str(document[name]) for name in plain + signature},
    )


def _participation(entry: Mapping[str, Any] | None) -> Participation | None:
    return None if entry is None else Participation(**{k: int(v) for k, v in entry.items()})


def _amplified(document: Mapping[str, Any]) -> Amplified | None:
    """Where the format has one; a figure under format 2 is found as an added byte."""
    if document["format"] == FORMAT_2:
        return None
    figure = document["amplified"]
    if figure is None and document["format"] == FORMAT_3:
        raise CertificateInvalid("format 3 is that of a central figure, and there is none.")
    return None if figure is None else Amplified.from_document(figure)


def _texts(entry: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in entry.items()}
