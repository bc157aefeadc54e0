"""Certificates: what they say is recomputed, and any change of any byte is found."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction

import pytest

from tacit.crypto.signing import SigningKey, digest
from tacit.errors import CertificateInvalid
from tacit.privacy import Bound, Certificate, Norm, Promise, Release
from tacit.privacy.mechanisms import Gaussian, L2Laplace, Laplace

KEY = SigningKey.generate()
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def certificate(promise: Promise = Promise(1.0), **changes: object) -> Certificate:  # noqa: B008
    laplace = Laplace.calibrated(Bound(Norm.L1, Fraction(1)), Promise(1.0), length=4)
    fields: dict[str, object] = {
        "promise": promise,
        "releases": laplace.spend,
        "trust": "the holder",
        "accountant": "pure",
        "program": "counts 1",
        "program_digest": digest({"counts": 1}),
        "schema_digest": digest({"age": "integer"}),
        "subject": digest(b"the model"),
        "secure_randomness": True,
    }
    return Certificate(**{**fields, **changes})  # type: ignore[arg-type]


def test_a_round_trip_verifies() -> None:
    made = certificate().signed(KEY, NOW)
    read = Certificate.from_json(made.to_json())
    assert read == made
    verdict = read.verify(signer=KEY.public_key, subject=digest(b"the model"))
    assert verdict.epsilon == pytest.approx(1.0, rel=1e-9)
    assert verdict.warnings == ()
    assert read.issued == "2026-01-02T03:04:05+00:00"


def test_any_change_of_any_byte_is_found() -> None:
    data = certificate().signed(KEY, NOW).to_json().encode()
    for place in range(len(data)):
        for flip in (0x01, 0x20):
            changed = bytearray(data)
            changed[place] ^= flip
            with pytest.raises(CertificateInvalid):
                Certificate.from_json(bytes(changed)).verify()


@pytest.mark.parametrize("more", [b" ", b"\n", b"{}"])
def test_added_bytes_are_found(more: bytes) -> None:
    data = certificate().signed(KEY, NOW).to_json().encode()
    for changed in (data + more, more + data):
        with pytest.raises(CertificateInvalid):
            Certificate.from_json(changed)


def test_a_promise_that_the_releases_do_not_keep() -> None:
    """Signed by its own author, and still wrong: the cost is recomputed, not believed."""
    lie = certificate(Promise(0.5)).signed(KEY, NOW)
    with pytest.raises(CertificateInvalid, match=r"more than the promised 0\.5"):
        lie.verify()


def test_a_certificate_without_releases_promises_nothing() -> None:
    with pytest.raises(CertificateInvalid, match="no release"):
        certificate(releases=()).signed(KEY, NOW).verify()


def test_another_signer_or_another_model() -> None:
    made = certificate().signed(KEY, NOW)
    with pytest.raises(CertificateInvalid, match="not by the expected"):
        made.verify(signer=SigningKey.generate().public_key)
    with pytest.raises(CertificateInvalid, match="not the one"):
        made.verify(subject=digest(b"another model"))
    with pytest.raises(CertificateInvalid, match="signature"):
        replace(made, trust="nobody").verify()


def test_gaussian_releases_are_recomputed() -> None:
    promise = Promise(0.7, 1e-6)
    mechanism = Gaussian.calibrated(Bound(Norm.L2, Fraction(2)), promise, length=10)
    made = certificate(promise, releases=mechanism.spend, accountant="gaussian").signed(KEY, NOW)
    assert made.verify().epsilon == pytest.approx(0.7, rel=1e-6)


def test_warnings_say_what_is_not_promised() -> None:
    promise = Promise(1.0)
    continuous = L2Laplace.calibrated(Bound(Norm.L2, Fraction(1)), promise, length=3)
    idealised = certificate(promise, releases=continuous.spend).signed(KEY, NOW).verify()
    assert any("idealised" in text for text in idealised.warnings)
    seeded = certificate(secure_randomness=False).signed(KEY, NOW).verify()
    assert any("seed" in text for text in seeded.warnings)
    published = certificate(promise_holds=False).signed(KEY, NOW).verify()
    assert any("does NOT hold" in text for text in published.warnings)
    assert published.epsilon == math.inf
    nothing = certificate(Promise(math.inf), releases=()).signed(KEY, NOW)
    assert any("no privacy" in text for text in nothing.verify().warnings)
    assert Certificate.from_json(nothing.to_json()) == nothing


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", "3", '{"format":"tacit certificate 1"}'])
def test_what_is_not_a_certificate(text: str) -> None:
    with pytest.raises(CertificateInvalid):
        Certificate.from_json(text)


def test_every_kind_of_release_survives(tmp_path: object) -> None:
    releases = (
        Release(
            "above-threshold",
            Bound(Norm.LINF, Fraction(1)),
            count=2,
            part="window 1",
            parameters={"threshold_scale": Fraction(40), "query_scale": Fraction(80, 3)},
        ),
        Release(
            "gaussian",
            Bound(Norm.L2, Fraction(1, 3)),
            Fraction(7),
            Fraction(1, 64),
            5,
            count=9,
            sampling=Fraction(1, 100),
        ),
    )
    made = certificate(Promise(5.0, 1e-6), releases=releases).signed(KEY, NOW)
    assert Certificate.from_json(made.to_json()).releases == releases
