"""What a group publishes is believed if its members vouch for it, and nothing else is."""

from __future__ import annotations

import dataclasses
import json
import random
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from small_network import (
    GROUP,
    LOCAL,
    aggregated,
    begun_group,
    descriptor_of,
    key_of,
    member_of,
    pact_of,
)

from tacit.channels.consortium.protocols import terms_of
from tacit.channels.peers.pact import Pact
from tacit.channels.peers.publication import Publication, checked
from tacit.channels.peers.seats import curator_of, group_study, seated
from tacit.channels.peers.solo import published_alone, sole_party
from tacit.channels.roles.letters import write
from tacit.crypto.signing import SigningKey, canonical, digest
from tacit.errors import CertificateInvalid, CheckFailed, InputError, TacitError
from tacit.privacy.certificate import Certificate
from tacit.privacy.certificate_parts import FORMAT_2
from tacit.programs.model_file import model_bytes, model_from_bytes

PACT = pact_of()


@cache
def published() -> Publication:
    return aggregated(begun_group(PACT))


def replace(publication: Publication, **changes: object) -> Publication:
    return msgspec.structs.replace(publication, **changes)


def curator_key(publication: Publication, pact: Pact = PACT) -> SigningKey:
    place = curator_of(pact, publication.group, publication.seats, publication.seeds)
    name = publication.seats[place].descriptor.key
    return next(key for key in map(key_of, range(8)) if key.public_key == name)


def not_the_curator() -> SigningKey:
    curator = curator_key(published()).public_key
    return next(key for key in map(key_of, range(4)) if key.public_key != curator)


def with_model(publication: Publication, model: bytes, signer: SigningKey) -> Publication:
    """What this key can make of a publication: another model under a certificate of its own."""
    certificate = Certificate.from_json(publication.certificate)
    text = dataclasses.replace(certificate, subject=digest(model)).signed(signer).to_json()
    return replace(publication, model=model, certificate=text)


def longer(model: bytes, factor: float) -> bytes:
    saved = model_from_bytes(model)
    averaged = PACT.averaged
    vector = np.asarray(averaged.vector(saved.model, saved.schema))
    return model_bytes(averaged.model(vector * factor, saved.schema), averaged, saved.schema)


def test_what_a_group_released_is_believed() -> None:
    publication = published()
    assert checked(PACT, write(publication)) == publication
    assert publication.group == GROUP
    witnesses = Certificate.from_json(publication.certificate).witnesses
    assert {w.public_key for w in witnesses} == {seat.party for seat in publication.seats}


def test_as_published_too() -> None:
    pact = pact_of(protocol="as-published", group_size=3)
    publication = aggregated(begun_group(pact))
    assert checked(pact, write(publication)) == publication
    far = with_model(publication, longer(publication.model, 1e6), curator_key(publication, pact))
    with pytest.raises(CheckFailed, match="longer than any honest one"):
        checked(pact, write(far))


def stranger_in_the_seats() -> Publication:
    others = [*published().seats[1:], member_of(PACT, 7).seat]
    return replace(published(), seats=sorted(others, key=lambda seat: seat.descriptor.key))


def respelled(blanks: int = 1) -> Publication:
    """Anybody's: the curator's signature, written in another way."""
    said = json.loads(published().certificate)
    said["signature"] = said["signature"][:2] + " " * blanks + said["signature"][2:]
    return replace(published(), certificate=canonical(said).decode())


FORGED: dict[str, Callable[[], Publication]] = {
    "another group": lambda: replace(published(), group="6b" * 32),
    "a tag": lambda: replace(published(), tag="north"),
    "no seats": lambda: replace(published(), seats=[]),
    "a seat less": lambda: replace(published(), seats=published().seats[:3]),
    "a stranger's seat": stranger_in_the_seats,
    "other seeds": lambda: replace(published(), seeds=[b"s" * 32] * 4),
    "no seeds": lambda: replace(published(), seeds=[]),
    "changed model": lambda: replace(published(), model=longer(published().model, 1.01)),
    "a byte more": lambda: replace(published(), model=published().model + b"\0"),
    "no certificate": lambda: replace(published(), certificate="{}"),
    "a stranger's certificate": lambda: with_model(published(), published().model, key_of("x")),
    "a member's certificate": lambda: with_model(
        published(),
        published().model,
        not_the_curator(),
    ),
    "a signature in another spelling": respelled,
    "a signature of a megabyte": lambda: respelled(2**20),
    "impossibly long": lambda: with_model(
        published(), longer(published().model, 1e6), curator_key(published())
    ),
    "no model": lambda: with_model(published(), b"model", curator_key(published())),
    "not a number": lambda: with_model(
        published(), longer(published().model, float("nan")), curator_key(published())
    ),
}


@pytest.mark.parametrize("kind", FORGED)
def test_what_is_forged_is_not(kind: str) -> None:
    with pytest.raises((CheckFailed, InputError)):
        checked(PACT, write(FORGED[kind]()))


def test_a_model_of_another_program_or_schema_is_not() -> None:
    publication, signer = published(), curator_key(published())
    saved = model_from_bytes(publication.model)
    other = pact_of(chosen=msgspec.structs.replace(PACT.chosen, settings={"penalty": 0.7}))
    model = model_bytes(saved.model, other.averaged, saved.schema)
    with pytest.raises(CheckFailed, match="not the file that this study's program writes"):
        checked(PACT, write(with_model(publication, model, signer)))


def test_of_another_network_is_not() -> None:
    with pytest.raises(CheckFailed):
        checked(pact_of(view=21), write(published()))
    with pytest.raises(InputError):
        checked(PACT, b"\xff")


def test_noise_that_was_not_added_is_not_certified() -> None:
    """The curator cannot claim that fewer took part: the members did not sign that."""
    publication, signer = published(), curator_key(published())
    certificate = Certificate.from_json(publication.certificate)
    three = dataclasses.replace(certificate, witnesses=certificate.witnesses[:3])
    fewer = three.signed(signer)
    with pytest.raises(
        TacitError, match="says something else than this study does in: releases, trust, part"
    ):
        checked(PACT, write(replace(publication, certificate=fewer.to_json())))
    study = group_study(
        PACT,
        GROUP,
        publication.seats,
        curator_of(PACT, GROUP, publication.seats, publication.seeds),
    )
    terms = terms_of(study, tuple(w.public_key for w in certificate.witnesses[:3]))
    lied = dataclasses.replace(
        three, participation=terms.participation, releases=terms.releases, trust=terms.trust
    ).signed(signer)
    with pytest.raises(CertificateInvalid, match="did not sign"):
        checked(PACT, write(replace(publication, certificate=lied.to_json())))


def test_what_is_not_as_recomputed_is_not_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many witnesses, and however much to account for, a curator writes down."""
    monkeypatch.setattr(Certificate, "verify", lambda *given: pytest.fail("it was verified"))
    certificate = Certificate.from_json(published().certificate)
    many = tuple(dataclasses.replace(certificate.releases[0], count=n) for n in range(1, 100))
    for changes in ({"releases": many}, {"witnesses": certificate.witnesses * 100}):
        other = dataclasses.replace(certificate, **changes).signed(curator_key(published()))
        with pytest.raises(CheckFailed):
            checked(PACT, write(replace(published(), certificate=other.to_json())))


def test_a_group_of_today_has_a_certificate_of_today(monkeypatch: pytest.MonkeyPatch) -> None:
    """All members together could sign one in a format that knows less: it is not taken."""
    monkeypatch.setattr(Certificate, "_check_witnesses", lambda self: None)
    certificate = Certificate.from_json(published().certificate)
    study = group_study(
        PACT,
        GROUP,
        published().seats,
        curator_of(PACT, GROUP, published().seats, published().seeds),
    )
    terms = terms_of(study, tuple(w.public_key for w in certificate.witnesses))
    old = dataclasses.replace(certificate, format=FORMAT_2, trust=terms.trust_before)
    text = old.signed(curator_key(published())).to_json()
    with pytest.raises(CheckFailed, match="no group of today"):
        checked(PACT, write(replace(published(), certificate=text)))


def test_one_aggregation_has_one_name() -> None:
    """However its curator words the certificate, or a member its seat: nobody has two votes."""
    publication, signer = published(), curator_key(published())
    again = with_model(publication, longer(publication.model, 0.5), signer)
    assert checked(PACT, write(again)).model != publication.model  # a curator can do this
    assert again.id == publication.id
    place = 0
    seat = publication.seats[place]
    owner = next(k for k in map(key_of, range(4)) if k.public_key == seat.descriptor.key)
    seats = list(publication.seats)
    seats[place] = seated(PACT, GROUP, "", owner, seat.descriptor, seat.party, b"s" * 32)
    assert replace(publication, seats=seats).id == publication.id
    assert aggregated(begun_group(PACT)).id != publication.id  # other keys: another aggregation


def alone() -> tuple[Pact, Publication]:
    pact = pact_of(group_size=1)
    own = descriptor_of(pact, 0)
    party = sole_party(GROUP, own.key)
    seat = seated(pact, GROUP, "", key_of(0), own, party, b"s" * 32)
    model, text = published_alone(pact, GROUP, seat, key_of(0), LOCAL)
    return pact, Publication(GROUP, "", [seat], [], model, text)


def test_alone() -> None:
    pact, publication = alone()
    assert checked(pact, write(publication)) == publication
    with pytest.raises(CheckFailed, match="nobody draws a curator alone"):
        checked(pact, write(replace(publication, seeds=[b"s" * 32])))
    far = with_model(publication, longer(publication.model, 1e6), key_of(0))
    with pytest.raises(CheckFailed, match="longer than any honest one"):
        checked(pact, write(far))
    with pytest.raises(CertificateInvalid, match="not by the expected"):
        checked(pact, write(with_model(publication, publication.model, key_of(1))))
    with pytest.raises(CheckFailed):
        checked(PACT, write(publication))


def test_the_same_bytes_are_checked_once_and_others_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pact = pact_of(name="fresh")
    publication = aggregated(begun_group(pact))
    looked: list[int] = []
    real = checked.__globals__["checked_seats"]

    def counting(*given: object) -> None:
        looked.append(1)
        real(*given)

    monkeypatch.setitem(checked.__globals__, "checked_seats", counting)
    body = write(publication)
    assert checked(pact, body) == publication
    assert not looked  # its members have checked it
    checked.__globals__["_KNOWN"].clear()
    assert checked(pact, body) == checked(pact, body)
    assert len(looked) == 1
    forged = write(replace(publication, seeds=[]))
    for _ in range(2):  # what was refused is refused again
        with pytest.raises(CheckFailed):
            checked(pact, forged)
    assert len(looked) == 3


@pytest.mark.parametrize("seed", range(4))
def test_changed_bytes_are_refused_and_raise_nothing_else(seed: int) -> None:
    """Bits that flip, pieces that are lost, doubled or exchanged: none of it is believed."""
    chance, body = random.Random(f"bytes {seed}"), write(published())
    for _ in range(120):
        bad, place = bytearray(body), chance.randrange(len(body))
        match chance.randrange(4):
            case 0:
                bad[place] ^= 1 << chance.randrange(8)
            case 1:
                del bad[place : place + chance.randrange(1, 60)]
            case 2:
                bad[place:place] = bad[place : place + chance.randrange(1, 60)]
            case _:
                bad[place : place + 8] = chance.randbytes(8)
        if bytes(bad) != body:
            with pytest.raises(TacitError):
                checked(PACT, bytes(bad))
