"""Certificates: what they say is recomputed, and any change of any byte is found."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction

import pytest

from tacit.crypto.signing import SigningKey, digest
from tacit.errors import CertificateInvalid, PromiseError
from tacit.privacy import Bound, Certificate, Norm, Promise, Release
from tacit.privacy.amplification import shuffle
from tacit.privacy.amplified import Amplified, Hidden
from tacit.privacy.certificate import Participation, Witness, statement
from tacit.privacy.certificate_parts import FORMAT_2, FORMAT_3
from tacit.privacy.mechanisms import Gaussian, L2Laplace, Laplace

KEY = SigningKey.generate()
SAMPLED = Release(
    "laplace",
    Bound(Norm.L1, Fraction(1)),
    Fraction(7),
    sampling=Fraction(1, 10),
    sample="sums, counts",
)
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


@pytest.mark.parametrize("claimed", [True, False])
def test_with_a_seed_no_certificate_says_that_its_promise_holds(claimed: bool) -> None:
    seeded = certificate(secure_randomness=False, promise_holds=claimed)
    assert not seeded.promise_holds
    assert not replace(seeded, promise_holds=True).promise_holds
    signed = seeded.signed(KEY, NOW)
    verdict = Certificate.from_json(signed.to_json()).verify()
    assert any("seed" in text and "does NOT hold" in text for text in verdict.warnings)
    assert not any("as published" in text for text in verdict.warnings)
    lie = signed.to_json().replace('"promise_holds":false', '"promise_holds":true')
    assert lie != signed.to_json()
    with pytest.raises(CertificateInvalid):
        Certificate.from_json(lie)


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


@pytest.mark.parametrize(
    ("was", "instead"),
    [
        ('"step":"', '"step":"1e999999999'),  # would take hours to work out
        ('"scale":"', '"scale":"1_0'),
        ('"length":4', '"length":Infinity'),
        ('"count":1', '"count":1e400'),
        ('"ledger":null', '"ledger":' + "[" * 100_000 + "]" * 100_000),
        ('"trust":"', '"trust":"\\ud800'),
        ('"remarks":[]', '"remarks":["\\udfff"]'),
    ],
)
def test_whatever_is_in_it_is_a_certificate_or_none(was: str, instead: str) -> None:
    text = certificate().signed(KEY, NOW).to_json()
    assert was in text
    with pytest.raises(CertificateInvalid):
        Certificate.from_json(text.replace(was, instead, 1))


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
        SAMPLED,
    )
    made = certificate(Promise(5.0, 1e-6), releases=releases).signed(KEY, NOW)
    assert Certificate.from_json(made.to_json()).releases == releases


# ── the central figure of a crowd ──

LOCAL = Promise(2.0, 0.0, "person", "replace")  # type: ignore[arg-type]
ANSWER = Release("randomised-response", parameters={"m": Fraction(2), "p": Fraction(73, 100)})
# Of 1,000 reports 10 may be corrupt; over 5 relays in 3 layers 417 meet, but for 2.5e-7.
TWICE = (Hidden(1.0, 1000, 417), Hidden(1.0, 2000, 884))


def amplified(**changes: object) -> Amplified:
    fields: dict[str, object] = {
        "epsilon": sum(shuffle(h.local, h.mixed, 2.5e-7) for h in TWICE),
        "delta": 1e-6,
        "answers": TWICE,
        "relays": 5,
        "hops": 3,
        "corrupt": 10,
        "assumption": "one relay is honest",
    }
    return Amplified(**{**fields, **changes})  # type: ignore[arg-type]


def of_a_crowd(figure: Amplified | None = None, **changes: object) -> Certificate:
    """Everyone gave two answers, of ε = 1 each."""
    fields: dict[str, object] = {
        "promise": LOCAL,
        "releases": (replace(ANSWER, count=2),),
        "participation": Participation(2000, 1000, 1),
        "amplified": figure or amplified(),
    }
    return certificate(**{**fields, **changes}).signed(KEY, NOW)  # type: ignore[arg-type]


def test_the_central_figure_is_recomputed() -> None:
    made = of_a_crowd()
    read = Certificate.from_json(made.to_json())
    assert read == made
    verdict = read.verify()
    assert verdict.epsilon == pytest.approx(2 * math.log(73 / 27))
    assert verdict.central == pytest.approx(made.amplified.epsilon, rel=1e-4)  # type: ignore[union-attr]
    assert verdict.central is not None
    assert verdict.central < 0.6


def test_formats_of_version_0_1_keep_their_bytes() -> None:
    """They are read, written back and verified as they were; nothing new fits into them."""
    plain = certificate(format=FORMAT_2).signed(KEY, NOW)
    crowd = of_a_crowd(format=FORMAT_3)
    for made in (plain, crowd):
        text = made.to_json()
        assert Certificate.from_json(text) == made
        assert made.verify().epsilon > 0
        for word in ("conditions", "holders_per_person", "sample"):
            assert f'"{word}"' not in text
    assert "amplified" not in plain.to_json()
    for changed in (
        crowd.to_json().replace("certificate 3", "certificate 2"),
        crowd.to_json().replace("certificate 3", "certificate 4"),
        plain.to_json().replace("certificate 2", "certificate 3"),
        plain.to_json().replace("certificate 2", "certificate 4"),
        of_a_crowd().to_json().replace("certificate 4", "certificate 3"),
    ):
        with pytest.raises(CertificateInvalid):
            Certificate.from_json(changed)
    for more in ({"conditions": ("x",)}, {"holders_per_person": 2}, {"releases": (SAMPLED,)}):
        person = Promise(1.0, 0.0, "person")  # type: ignore[arg-type]
        with pytest.raises(PromiseError, match="no room"):
            certificate(person, format=FORMAT_2, **more)


# What a server of version 0.1 signed, to the byte: later versions must still find it signed.
OLD_STATEMENT = (
    b'{"format":"tacit statement 1","participation":{"fewest":2,"holders":3,"rounds":4},'
    b'"promise":{"adjacency":"add-remove","delta":"0.0","epsilon":"1.0","unit":"record"},'
    b'"releases":[{"bound":{"norm":"L1","value":"1"},"count":1,"length":1,"mechanism":"laplace",'
    b'"parameters":{},"part":null,"sampling":"1","scale":"2","step":"0"}],'
    b'"secure_randomness":true,"study":"cafe"}'
)


def test_what_servers_of_version_0_1_signed() -> None:
    release = Release("laplace", Bound(Norm.L1, Fraction(1)), Fraction(2))
    fields: dict[str, object] = {
        "releases": (release,),
        "study": "cafe",
        "participation": Participation(3, 2, 4),
        "witnesses": (Witness(KEY.public_key, KEY.sign(OLD_STATEMENT)),),
    }
    old = certificate(**fields, format=FORMAT_2).signed(KEY, NOW)  # type: ignore[arg-type]
    assert old.statement == OLD_STATEMENT
    old.verify()
    with pytest.raises(CertificateInvalid, match="did not sign"):  # it vouches for no new one
        certificate(**fields).signed(KEY, NOW).verify()  # type: ignore[arg-type]


def test_conditions_and_holders_per_person() -> None:
    person = Promise(1.0, 0.0, "person")  # type: ignore[arg-type]
    conditions = ("The set of classes is public.", "The number of columns is public.")
    made = certificate(person, conditions=conditions, holders_per_person=3).signed(KEY, NOW)
    read = Certificate.from_json(made.to_json())
    assert read == made
    verdict = read.verify()
    assert verdict.conditions == conditions
    assert any("up to 3 holders" in text for text in verdict.warnings)
    for lie in ({"conditions": conditions[:1]}, {"holders_per_person": 1}):
        with pytest.raises(CertificateInvalid, match="signature"):
            replace(made, **lie).verify()
    for promise, many in ((person, 0), (Promise(1.0), 2)):
        with pytest.raises(PromiseError, match="holders per person"):
            certificate(promise, holders_per_person=many)
    none = made.to_json().replace('"holders_per_person":3', '"holders_per_person":0')
    with pytest.raises(CertificateInvalid, match="impossible"):
        Certificate.from_json(none)


def test_servers_sign_how_many_holders_a_person_may_have() -> None:
    person = Promise(1.0, 0.0, "person")  # type: ignore[arg-type]
    part = Participation(3, 2, 4)
    for many in (1, 2):
        laplace = certificate().releases
        word = KEY.sign(statement("cafe", person, laplace, part, True, 2))
        made = certificate(
            person,
            study="cafe",
            participation=part,
            holders_per_person=many,
            witnesses=(Witness(KEY.public_key, word),),
        ).signed(KEY, NOW)
        if many == 2:
            made.verify()
        else:
            with pytest.raises(CertificateInvalid, match="did not sign"):
                made.verify()


def test_any_change_of_any_byte_of_the_central_figure_is_found() -> None:
    data = of_a_crowd().to_json().encode()
    start = data.index(b'"amplified"')
    for place in range(start, data.index(b'"conditions"')):
        for flip in (0x01, 0x20):
            changed = bytearray(data)
            changed[place] ^= flip
            with pytest.raises(CertificateInvalid):
                Certificate.from_json(bytes(changed)).verify()


@pytest.mark.parametrize(
    "lie",
    [
        {"epsilon": amplified().epsilon * 0.99},
        {"delta": 1e-7},
        {"delta": 0.0},
        {"delta": math.nan},
        {"epsilon": math.nan},
        {"epsilon": math.inf},
        {"answers": ()},
        {"answers": TWICE[:1]},  # only one answer
        {"answers": (replace(TWICE[0], local=2.0),), "epsilon": 1.9},  # two as one
        {"answers": (replace(TWICE[0], local=0.9), TWICE[1])},  # of a smaller price
        {"answers": (replace(TWICE[0], local=0.0), TWICE[1])},
        {"answers": (replace(TWICE[0], mixed=418), TWICE[1])},  # more than surely met
        {"answers": (replace(TWICE[0], mixed=0), TWICE[1])},
        {"answers": (replace(TWICE[0], reports=999), TWICE[1])},  # from fewer than it takes
        {"answers": (TWICE[0], replace(TWICE[1], reports=2001))},  # more than there are people
        {"relays": 7},
        {"relays": 2},
        {"hops": 2},
        {"hops": 0},
        {"corrupt": 12},
        {"corrupt": -1},
    ],
)
def test_a_central_figure_that_its_numbers_do_not_give(lie: dict[str, object]) -> None:
    """Signed by its own author, and still found."""
    with pytest.raises(CertificateInvalid):
        of_a_crowd(amplified(**lie)).verify()


@pytest.mark.parametrize(
    "better",
    [
        {"epsilon": 1.9},
        {"answers": (replace(TWICE[0], mixed=400), TWICE[1]), "epsilon": 1.0},
        {"corrupt": 9},
        {"relays": 3},
    ],
)
def test_whoever_claims_less_than_he_could_is_believed(better: dict[str, object]) -> None:
    assert of_a_crowd(amplified(**better)).verify().central


def test_the_central_figure_covers_everything_that_a_person_released() -> None:
    three = (replace(ANSWER, part="asked a", count=3), ANSWER)
    with pytest.raises(CertificateInvalid, match="4"):
        of_a_crowd(releases=three, promise=replace(LOCAL, epsilon=4.0)).verify()
    either = (replace(ANSWER, part="asked a", count=2), replace(ANSWER, part="asked b"))
    assert of_a_crowd(releases=either).verify().central


def test_what_mixing_does_not_hide() -> None:
    noisy_sum = Laplace.calibrated(Bound(Norm.L1, Fraction(1)), Promise(2.0)).spend
    with pytest.raises(CertificateInvalid, match="own device"):
        of_a_crowd(releases=noisy_sum).verify()
    for promise in (replace(LOCAL, delta=1e-6), Promise(2.0)):
        with pytest.raises(CertificateInvalid, match="beside a local promise"):
            of_a_crowd(promise=promise).verify()
