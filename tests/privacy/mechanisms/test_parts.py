"""Noise that several servers draw in parts: what the sum costs, and what one part must not do."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey, digest
from tacit.errors import CertificateInvalid, PromiseError, UsageError
from tacit.privacy import Adjacency, Bound, Certificate, Norm, Promise, Release
from tacit.privacy.accounting import calibrate, cost
from tacit.privacy.accounting.losses import loss_of
from tacit.privacy.mechanisms import Gaussian, Laplace
from tacit.privacy.recompute import recomputed_epsilon

ONE = Fraction(1)
PURE, APPROXIMATE = Promise(1.0), Promise(1.0, 1e-6)
FALSE_ALARM = 1e-6


def made(promise: Promise, parts: int) -> Laplace | Gaussian:
    if promise.delta:
        return replace(Gaussian.calibrated(Bound(Norm.L2, ONE), promise, length=3), parts=parts)
    return replace(Laplace.calibrated(Bound(Norm.L1, ONE), promise, length=3), parts=parts)


@pytest.mark.parametrize("promise", [PURE, APPROXIMATE])
class TestBothLaws:
    def test_one_part_is_said_by_saying_nothing(self, promise: Promise) -> None:
        assert made(promise, 1).spend[0].parameters == {}
        assert made(promise, 3).spend[0].parameters == {"parts": 3}

    @pytest.mark.parametrize("parts", [2, 3, 7])
    def test_the_sum_of_parts_costs_what_the_whole_costs(
        self, promise: Promise, parts: int
    ) -> None:
        whole, split = made(promise, 1).spend, made(promise, parts).spend
        spent = cost(split, promise.delta, Adjacency.ADD_REMOVE)
        assert spent == cost(whole, promise.delta, Adjacency.ADD_REMOVE)
        assert 0.999 < spent.epsilon <= 1
        again = recomputed_epsilon(split, promise.delta)
        assert again == recomputed_epsilon(whole, promise.delta)
        assert again == pytest.approx(spent.epsilon, rel=1e-6)

    def test_one_part_alone_is_never_released(self, promise: Promise) -> None:
        with pytest.raises(UsageError, match="does not keep the promise"):
            made(promise, 2).release([1.0, 2.0, 3.0])

    @pytest.mark.parametrize("parts", [0, -1])
    def test_fewer_than_one_part(self, promise: Promise, parts: int) -> None:
        with pytest.raises(UsageError, match="at least one part"):
            made(promise, parts)

    @pytest.mark.parametrize("parts", [2, 5])
    def test_the_sum_has_the_whole_scale(self, promise: Promise, parts: int) -> None:
        """Three coordinates of zeros, summed over the parts, in threes."""
        mechanism = made(promise, parts)
        source, zeros = SeededRandomness(f"sum {parts}"), np.zeros((60_000, 3), dtype=np.int64)
        total = sum(mechanism.perturb(zeros, source) for _ in range(parts))
        law = stats.norm if promise.delta else stats.laplace
        seen = np.ravel(total) / float(mechanism.scale / mechanism.grid.step)
        assert stats.kstest(seen, law.cdf).pvalue > FALSE_ALARM
        assert stats.kstest(seen * 0.95, law.cdf).pvalue < FALSE_ALARM
        assert stats.kstest(seen * 1.05, law.cdf).pvalue < FALSE_ALARM
        one = np.ravel(mechanism.perturb(zeros, source)) / float(
            mechanism.scale / mechanism.grid.step
        )
        assert one.var() == pytest.approx(seen.var() / parts, rel=0.1)

    def test_calibration_keeps_the_parts(self, promise: Promise) -> None:
        (draft,) = made(promise, 3).spend
        (fitted,) = calibrate(promise, [replace(draft, scale=Fraction(1, 10))])
        assert fitted.parameters == {"parts": 3}
        assert fitted.scale == pytest.approx(float(draft.scale or 0), rel=1e-6)

    @pytest.mark.parametrize("parts", [Fraction(0), Fraction(-2), Fraction(3, 2)])
    def test_impossible_parts_are_refused_twice(self, promise: Promise, parts: Fraction) -> None:
        (release,) = made(promise, 3).spend
        wrong = replace(release, parameters={"parts": parts})
        with pytest.raises(PromiseError, match="whole number of parts"):
            loss_of(wrong)
        with pytest.raises(CertificateInvalid, match="parts"):
            recomputed_epsilon([wrong], promise.delta)

    def test_a_certificate_says_and_verifies_the_parts(self, promise: Promise) -> None:
        issued = certificate(promise, made(promise, 3).spend)
        read = Certificate.from_json(issued.to_json())
        assert read.releases[0].parameters == {"parts": 3}
        assert read.verify().epsilon == pytest.approx(1, rel=1e-6)
        document = json.loads(issued.to_json())
        document["releases"][0]["parameters"]["parts"] = "2"
        forged = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        with pytest.raises(CertificateInvalid, match="signature"):
            Certificate.from_json(forged).verify()


def gaussian(steps: Fraction, parts: int) -> Release:
    """A movement of a hundredth of σ, noise of so many grid steps, drawn in parts."""
    return Release(
        "gaussian",
        Bound(Norm.L2, steps / 100),
        steps,
        Fraction(1),
        parameters={"parts": Fraction(parts)},
    )


@pytest.mark.parametrize(("parts", "least"), [(2, 12), (4, 17), (9, 25), (100, 81)])
def test_every_part_must_be_eight_steps_wide(parts: int, least: int) -> None:
    fine, coarse = gaussian(Fraction(least), parts), gaussian(Fraction(least - 2), parts)
    assert recomputed_epsilon([fine], 1e-6) < 0.1
    loss_of(fine)
    with pytest.raises(PromiseError, match="take a step below"):
        loss_of(coarse)
    with pytest.raises(CertificateInvalid, match="8 steps wide"):
        recomputed_epsilon([coarse], 1e-6)
    assert loss_of(replace(coarse, parameters={})) == loss_of(gaussian(Fraction(least - 2), 1))


def test_calibration_makes_parts_wide_enough_for_their_grid() -> None:
    """A promise that a coarse grid alone would meet: the parts ask for more noise."""
    loose = Promise(50.0, 1e-3)
    (fitted,) = calibrate(loose, [gaussian(Fraction(4), 4)])
    assert 16 < (fitted.scale or 0) < Fraction(161, 10)


def test_a_signed_certificate_of_coarse_parts_is_invalid() -> None:
    """Its own author says so many parts that each is narrower than the proof allows."""
    (release,) = made(APPROXIMATE, 3).spend
    assert release.scale is not None
    most = int((release.scale / (8 * release.step)) ** 2)
    good = replace(release, parameters={"parts": Fraction(most)})
    bad = replace(release, parameters={"parts": Fraction(most + 1)})
    assert certificate(APPROXIMATE, (good,)).verify().epsilon <= 1
    with pytest.raises(CertificateInvalid, match="too coarse"):
        certificate(APPROXIMATE, (bad,)).verify()


def certificate(promise: Promise, releases: tuple[Release, ...]) -> Certificate:
    text: dict[str, Any] = {
        "trust": "at least four of the servers do not collude",
        "accountant": "pure",
        "program": "counts 1",
        "program_digest": digest({"counts": 1}),
        "schema_digest": digest({"age": "integer"}),
        "subject": digest(b"the model"),
    }
    issued = Certificate(promise=promise, releases=releases, secure_randomness=True, **text)
    return issued.signed(SigningKey.generate(), datetime(2026, 1, 2, tzinfo=UTC))
