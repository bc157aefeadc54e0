"""What a group publishes: its model, the certificate, and proof of who took part."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any

import msgspec

from tacit.channels.consortium.protocols import check_consortium, terms_of
from tacit.channels.consortium.published_terms import PublishedTerms
from tacit.channels.consortium.terms import JointTerms, Terms
from tacit.channels.peers.letters import Seat
from tacit.channels.peers.pact import Pact
from tacit.channels.peers.plausible import farthest, plausible, within
from tacit.channels.peers.seats import checked_seats, curator_of, group_study
from tacit.channels.peers.solo import check_solo
from tacit.channels.roles.letters import read
from tacit.crypto.signing import digest
from tacit.errors import CheckFailed
from tacit.programs.model_file import model_from_bytes

__all__ = ["Publication", "checked"]

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
        """Its name: the group and the keys that its members made for it.

        Nothing else counts: a curator that signs twice, or a member that words its seat anew, would
        otherwise make two publications of one aggregation, and have two votes.
        """
        parties = sorted(seat.party for seat in self.seats)
        return digest(["tacit peers publication", self.group, parties])


def checked(pact: Pact, body: bytes) -> Publication:
    """The publication, if it is what a group of this network has released; CheckFailed if not.

    A model that is as large as no honest one can be, or that somebody outside the network made, is
    none. The same bytes are checked once, whoever brings them.
    """
    known, name = _KNOWN.setdefault(pact.digest, {}), hashlib.sha256(body).digest()
    if name not in known:
        known[name] = _found(pact, body)
        while len(known) > REMEMBERED:
            known.pop(next(iter(known)))
    return known[name]


def _found(pact: Pact, body: bytes) -> Publication:
    publication = read(Publication, body)
    checked_seats(pact, publication.group, publication.tag, publication.seats)
    terms = _terms(pact, publication)
    saved = model_from_bytes(publication.model, "a published model")
    if saved.schema.digest != pact.schema.digest or saved.program.digest != pact.averaged.digest:
        raise CheckFailed("a model of another program or schema was published.")
    if not _as_long_as_honest_ones(saved.model, terms):
        raise CheckFailed("a model was published that is longer than any honest one.")
    return publication


def _terms(pact: Pact, publication: Publication) -> Terms:
    """What it was released under, by a certificate that holds."""
    group, seats, text = publication.group, publication.seats, publication.certificate
    if pact.group_size == 1:
        if publication.seeds:
            raise CheckFailed("nobody draws a curator alone.")
        return check_solo(pact, group, seats[0], publication.model, text)
    study = group_study(pact, group, seats, curator_of(pact, group, seats, publication.seeds))
    certificate = check_consortium(study, publication.model, text)
    return terms_of(study, tuple(witness.public_key for witness in certificate.witnesses))


def _as_long_as_honest_ones(model: Any, terms: Terms) -> bool:
    if isinstance(terms, JointTerms):
        return plausible(model, terms)
    assert isinstance(terms, PublishedTerms)
    # As published the average, not the sum, gets the noise, and at most that of the smallest.
    smallest = terms.study.agreed_consortium.smallest
    limit = farthest(terms.averaged, smallest, terms.mechanism(smallest))
    return within(model, terms.averaged, terms.study.schema, limit)
