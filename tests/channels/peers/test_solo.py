"""Alone: one's own model, under all of the noise, by one's own word."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from small_network import GROUP, LOCAL, SCHEMA, descriptor_of, key_of, pact_of

from tacit.channels.peers.seats import seated
from tacit.channels.peers.solo import check_solo, published_alone, sole_party
from tacit.channels.studies.tables import Terms
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import canonical, digest
from tacit.errors import CertificateInvalid, CheckFailed
from tacit.privacy.certificate import Certificate, Witness
from tacit.privacy.promise import Promise
from tacit.programs.model_file import model_from_bytes

PACT = pact_of(group_size=1)
OWN = sole_party(GROUP, key_of(0).public_key)
SEAT = seated(PACT, GROUP, "", key_of(0), descriptor_of(PACT, 0), OWN, b"s" * 32)


def alone(seed: object = 1) -> tuple[bytes, str]:
    return published_alone(PACT, GROUP, SEAT, key_of(0), LOCAL, SeededRandomness(f"{seed}"))


def test_the_peer_itself_vouches() -> None:
    model, text = published_alone(PACT, GROUP, SEAT, key_of(0), LOCAL)
    terms = check_solo(PACT, GROUP, SEAT, model, text)
    certificate = Certificate.from_json(text)
    assert certificate.promise == Promise(1.0, 1e-5)
    assert certificate.secure_randomness
    assert certificate.participation is not None
    assert certificate.participation.holders == 1
    assert terms.parts == 1
    verdict = certificate.verify(key_of(0).public_key, digest(model))
    assert verdict.epsilon <= 1.0 * 1.001


def test_the_noise_is_all_of_the_promises() -> None:
    """As large as the mechanism says: within 3 standard errors, 6 %, over 400 models of known
    seeds. (That the mechanism's own noise is right to 3 % is tested with the mechanisms.)"""
    terms = check_solo(PACT, GROUP, SEAT, *alone())
    assert terms.mechanism is not None
    found = []
    for seed in range(400):
        model = model_from_bytes(alone(seed)[0]).model
        found.append(np.asarray(PACT.averaged.vector(model, SCHEMA)) - LOCAL.vector)
    noise = np.array(found)
    wanted = float(terms.mechanism.scale)
    assert abs(noise.std() / wanted - 1) < 3 / np.sqrt(2 * noise.size)
    assert abs(noise.mean()) < 3 * wanted / np.sqrt(noise.size)


def test_a_seed_is_told_and_repeats() -> None:
    assert alone(3)[0] == alone(3)[0] != alone(4)[0]
    certificate = Certificate.from_json(alone()[1])
    assert not certificate.secure_randomness
    assert any("seed" in warning for warning in certificate.warnings)


def test_less_noise_than_the_pact_asks_for_is_refused() -> None:
    cheap = pact_of(group_size=1, terms=Terms(epsilon=8.0, delta=1e-5))
    own = descriptor_of(cheap, 0)
    seat = seated(cheap, GROUP, "", key_of(0), own, SEAT.party, b"s" * 32)
    model, text = published_alone(cheap, GROUP, seat, key_of(0), LOCAL)
    with pytest.raises(CheckFailed, match="says something else"):
        check_solo(PACT, GROUP, SEAT, model, text)
    lied = replace(Certificate.from_json(text), promise=PACT.promise).signed(key_of(0)).to_json()
    with pytest.raises(CheckFailed, match="says something else than this study does in: releases"):
        check_solo(PACT, GROUP, SEAT, model, lied)


def test_another_group_another_peer_another_model() -> None:
    model, text = alone()
    with pytest.raises(CheckFailed):
        check_solo(PACT, "6b" * 32, SEAT, model, text)
    with pytest.raises(CheckFailed, match="subject"):
        check_solo(PACT, GROUP, SEAT, alone(2)[0], text)
    by_another = Certificate.from_json(text).signed(key_of(1)).to_json()
    with pytest.raises(CertificateInvalid, match="not by the expected"):
        check_solo(PACT, GROUP, SEAT, model, by_another)
    other = seated(PACT, GROUP, "", key_of(1), descriptor_of(PACT, 1), SEAT.party, b"s" * 32)
    with pytest.raises(CheckFailed, match="under a name that is not its own"):
        check_solo(PACT, GROUP, other, model, text)
    forged = replace(Certificate.from_json(text), program_digest="00" * 32).signed(key_of(0))
    with pytest.raises(CheckFailed, match="says something else"):
        check_solo(PACT, GROUP, SEAT, model, forged.to_json())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("issued", "yesterday"),
        ("issued", "2026-01-02T03:04:05+00:00 and more" + "!" * 10_000),
        ("issued", "2026-01-02 03:04:05+00:00"),
        ("library", "tacit 9\x1b[2J"),
        ("library", "another"),
        ("remarks", ("better than all others",)),
        ("ledger", "00" * 32),
        ("promise_holds", False),
        ("trust", "nobody"),
        ("witnesses", (Witness(key_of(1).public_key, "00" * 64),)),
    ],
)
def test_all_but_date_and_model_follows(field: str, value: object) -> None:
    model, text = published_alone(PACT, GROUP, SEAT, key_of(0), LOCAL)
    changed = replace(Certificate.from_json(text), **{field: value}, signature="")
    signature = key_of(0).sign(canonical(changed._document()))
    with pytest.raises(CheckFailed, match=f"in: {field}"):
        check_solo(PACT, GROUP, SEAT, model, replace(changed, signature=signature).to_json())
