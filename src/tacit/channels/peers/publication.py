"""What a group publishes: its model, the certificate, and proof of who took part.

Accepted is what was recomputed: everything in the certificate but its subject and its date follows
from the pact and the seats, and the model's bytes are those of its own canonical form, of the
pact's program, schema and classes, with all its numbers within what honest members can have
reached. Members check their curator's result in the same way as strangers do.
"""

from __future__ import annotations

import hashlib
from functools import cached_property

import msgspec

from tacit.channels.consortium.protocols import check_consortium, terms_of
from tacit.channels.consortium.terms import Terms
from tacit.channels.consortium.validity import check_model
from tacit.channels.peers.letters import Seat
from tacit.channels.peers.pact import Pact
from tacit.channels.peers.seats import checked_seats, curator_of, group_study
from tacit.channels.peers.solo import check_solo, solo_terms
from tacit.channels.roles.letters import read, write
from tacit.crypto.signing import digest
from tacit.errors import CheckFailed, TacitError
from tacit.privacy.certificate import Certificate
from tacit.privacy.certificate_parts import FORMAT

__all__ = ["Publication", "checked", "checked_of_0_1"]

REMEMBERED = 4096  # checked publications of a network
_KNOWN: dict[str, dict[bytes, Publication]] = {}  # by network and the digest of the bytes


class Publication(msgspec.Struct, frozen=True, dict=True):
    """A group's result."""

    group: str
    tag: str
    seats: list[Seat]
    seeds: list[bytes]
    model: bytes
    certificate: str

    @cached_property
    def id(self) -> str:
        """Its name: the group, who took part, and the keys that they made for it.

        Nobody else can have signed as these, so nobody can take a name, or be there first. Nothing
        else counts: a curator that signs twice would otherwise make two publications of one
        aggregation, and have two votes. (A member that words its seat anew names another study,
        for which there are no signatures.)
        """
        members = sorted([seat.descriptor.key, seat.party] for seat in self.seats)
        return digest(["tacit peers publication 2", self.group, members])


def checked(pact: Pact, body: bytes) -> Publication:
    """A publication that somebody of this network made in the way of the pact; InputError or
    CheckFailed for one that is none. The same bytes are checked once, whoever brings them.
    """
    known, name = _KNOWN.setdefault(pact.digest, {}), hashlib.sha256(body).digest()
    if name not in known:
        known[name] = _guarded(pact, body)
        while len(known) > REMEMBERED:
            known.pop(next(iter(known)))
    return known[name]


def _guarded(pact: Pact, body: bytes) -> Publication:
    try:
        return _found(pact, body)
    except TacitError:
        raise
    except Exception as error:  # bytes from anybody meet many parsers: none may end a peer
        raise CheckFailed(f"a publication cannot be read ({type(error).__name__}).") from error


def _found(pact: Pact, body: bytes) -> Publication:
    publication = read(Publication, body)
    if write(publication) != body:
        raise CheckFailed("a publication is not in its canonical form.")
    checked_seats(pact, publication.group, publication.tag, publication.seats)
    _check(pact, publication)
    return publication


def _check(pact: Pact, publication: Publication) -> None:
    """The certificate and the model, against all that follows from the pact and the seats."""
    group, seats = publication.group, publication.seats
    if pact.group_size > 1:
        study = group_study(pact, group, seats, curator_of(pact, group, seats, publication.seeds))
        found = check_consortium(study, publication.model, publication.certificate)
        if found.format != FORMAT:
            raise CheckFailed("the certificate has a format in which no group of today signs.")
        return
    if publication.seeds:
        raise CheckFailed("nobody draws a curator alone.")
    terms = check_solo(pact, group, seats[0], publication.model, publication.certificate)
    check_model(publication.model, pact.averaged, pact.schema, terms.validity_bound)


def checked_of_0_1(pact: Pact, body: bytes) -> Publication:
    """One that tacit 0.1 has left on a disk, by the rules of its time: its model may go on voting
    here. It is neither offered to others nor taken from them, since these rules can be played."""
    publication = read(Publication, body)
    group, seats = publication.group, publication.seats
    checked_seats(pact, group, publication.tag, seats, rules=1)
    certificate = Certificate.from_json(publication.certificate)
    if pact.group_size == 1:
        terms: Terms = solo_terms(pact, group, seats[0])
    else:
        curator = curator_of(pact, group, seats, publication.seeds, rules=1)
        study = group_study(pact, group, seats, curator, rules=1)
        terms = terms_of(study, tuple(witness.public_key for witness in certificate.witnesses))
    certificate.verify(terms.study.aggregator.key, digest(publication.model))
    if (certificate.study, certificate.promise) != (terms.study.digest, pact.promise):
        raise CheckFailed("the certificate does not keep the promise of this group.")
    check_model(publication.model, pact.averaged, pact.schema, terms.validity_bound)
    return publication
