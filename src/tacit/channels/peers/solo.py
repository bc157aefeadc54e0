"""A group of one: a peer publishes its own model under all of the noise itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.channels.consortium.local_model import Local
from tacit.channels.consortium.recomputed import check_recomputed
from tacit.channels.consortium.terms import JointTerms
from tacit.channels.peers.descriptors import Descriptor
from tacit.channels.peers.letters import Seat
from tacit.channels.peers.pact import Pact
from tacit.channels.peers.seats import seated
from tacit.channels.studies.file import FIRST_FORMAT
from tacit.channels.studies.study import Consortium, Deadlines, Party, Service, Study, TakePart
from tacit.crypto.prg import SYSTEM, Randomness
from tacit.crypto.sharing import fresh_seed
from tacit.crypto.signing import SigningKey, digest
from tacit.errors import CheckFailed
from tacit.privacy.certificate import Certificate

__all__ = ["check_solo", "publication_alone", "published_alone", "sole_party", "solo_terms"]

TRUST = (
    "Nobody: the peer drew all of the noise itself before anything left, and its model is its own."
)


def published_alone(
    pact: Pact,
    group: str,
    seat: Seat,
    key: SigningKey,
    local: Local,
    randomness: Randomness = SYSTEM,
) -> tuple[bytes, str]:
    """The noisy model, and its certificate, signed by the peer."""
    terms = solo_terms(pact, group, seat)
    mechanism = terms.mechanism
    assert mechanism is not None  # a pact's epsilon is finite
    noisy: NDArray[np.float64] = mechanism.release(local.vector, randomness)
    model = terms.model_file(terms.grid.encode(noisy))
    certificate = _certificate(pact, terms, model, randomness.secure).signed(key)
    return model, certificate.to_json()


def sole_party(group: str, key: str) -> str:
    """What stands for the party key where nobody else is: it follows from the owner's identity."""
    return digest(["tacit peers alone", group, key])


def publication_alone(
    pact: Pact,
    group: str,
    tag: str,
    key: SigningKey,
    own: Descriptor,
    local: Local,
    randomness: Randomness = SYSTEM,
) -> tuple[Seat, bytes, str]:
    """Our seat in a group of one, the noisy model, and its certificate."""
    party, unused = sole_party(group, own.key), fresh_seed(randomness)
    seat = seated(pact, group, tag, key, own, party, unused)
    return seat, *published_alone(pact, group, seat, key, local, randomness)


def check_solo(pact: Pact, group: str, seat: Seat, model: bytes, text: str) -> JointTerms:
    """What it was released under; CheckFailed unless the peer itself vouches for that noise."""
    if seat.party != sole_party(group, seat.descriptor.key):
        raise CheckFailed("a peer's own model was published under a name that is not its own.")
    certificate = Certificate.from_json(text)
    terms = solo_terms(pact, group, seat)
    check_recomputed(certificate, _certificate(pact, terms, model, certificate.secure_randomness))
    certificate.verify(seat.descriptor.key, digest(model))
    return terms


def _certificate(pact: Pact, terms: JointTerms, model: bytes, secure: bool) -> Certificate:
    averaged = pact.averaged
    return Certificate(
        promise=pact.promise,
        releases=terms.releases,
        trust=TRUST,
        accountant=terms.accountant,
        program=f"{averaged.written_name} {averaged.version}",
        program_digest=averaged.digest,
        schema_digest=pact.schema.digest,
        subject=digest(model),
        secure_randomness=secure,
        study=terms.study.digest,
        participation=terms.participation,
    )


class _Alone(JointTerms):
    """One party, no curator to collude with: all of the noise in one part."""

    @property
    def parts(self) -> int:
        return 1


def solo_terms(pact: Pact, group: str, seat: Seat) -> JointTerms:
    """The consortium's terms for a roster of one; the listed second party does not exist."""
    study = Study(
        format=FIRST_FORMAT,  # as peers of all versions have it
        name=f"alone-{group[:32]}",
        question=pact.question,
        rounds=1,
        chosen=pact.chosen,
        promise=pact.promise,
        take_part=TakePart(minimum=2, maximum=2, records=pact.records),
        deadlines=Deadlines(gather=pact.patience, round=pact.patience),
        aggregator=Service(
            name="curator", address=seat.descriptor.address, key=seat.descriptor.key
        ),
        holders=(
            Party(name="peer-0", key=seat.party),
            Party(name="nobody", key=digest(["tacit peers nobody", group])),
        ),
        schema=pact.schema,
        consortium=Consortium(colluding=0, smallest=pact.smallest),
    )
    return _Alone(study, (seat.party,))
