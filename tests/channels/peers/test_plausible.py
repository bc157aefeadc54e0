"""Honest models are plausible; longer ones, and what is no model of the program, are not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tacit.channels.consortium.local import consortium_study
from tacit.channels.consortium.terms import JointTerms
from tacit.channels.peers.plausible import farthest, plausible, within
from tacit.channels.studies.study import Consortium
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.data.schema import Column, Schema
from tacit.privacy.promise import Promise, Unit
from tacit.programs.averaging import AveragedLogistic

SCHEMA = Schema(
    columns=(
        *(Column(name=f"x{i}", type="number", bounds=(0, 1)) for i in range(8)),
        Column(name="y", type="boolean", role="label"),
    )
)
KEYS = [SigningKey.generate() for _ in range(6)]
PROMISES = (Promise(1.0, 1e-5), Promise(1.0), Promise(1.0, 1e-5, Unit.HOLDER))


def terms_of(promise: Promise, records: Any = "rooted") -> JointTerms:
    program = AveragedLogistic(0.05, records=records)
    agreed = Consortium(colluding=1, smallest=50)
    study = consortium_study(program, KEYS[:5], KEYS[5], SCHEMA, promise, agreed)
    return JointTerms(study, tuple(key.public_key for key in KEYS[:5]))


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("records", ["rooted", "boxed"])
def test_honest_averages_are_plausible(promise: Promise, records: str) -> None:
    """The longest vectors there are, all one way, under the group's noise."""
    terms = terms_of(promise, records)
    assert terms.mechanism is not None
    longest = terms.averaged.largest(SCHEMA)
    along = np.zeros(terms.length)
    along[0] = longest * (1 - 1e-12)
    start = np.tile(terms.encoded(along), (5, 1))
    for run in range(50):
        total = terms.mechanism.perturb(start, SeededRandomness(f"plausible {run}")).sum(axis=0)
        average = terms.grid.decode(total) / 5
        assert plausible(terms.averaged.model(average, SCHEMA), terms)


@pytest.mark.parametrize("promise", PROMISES)
def test_longer_ones_are_not(promise: Promise) -> None:
    terms = terms_of(promise)
    limit = farthest(terms.averaged, 50, terms.mechanism, 5)
    long = np.zeros(terms.length)
    long[3] = limit * 1.001
    assert not plausible(terms.averaged.model(long, SCHEMA), terms)
    assert plausible(terms.averaged.model(long * 0.998, SCHEMA), terms)


def test_the_limit_is_not_far_off() -> None:
    """Noise as long as it mostly is comes to within a factor of three of the limit."""
    terms = terms_of(Promise(0.1, 1e-5))
    assert terms.mechanism is not None
    deviation = float(terms.mechanism.scale) * np.sqrt(5 / 4) / 5
    usual = deviation * np.sqrt(terms.length)
    assert farthest(terms.averaged, 50, terms.mechanism, 5) < 4 * usual
    without = farthest(terms.averaged, 50, None, 5)
    assert without == pytest.approx(terms.averaged.largest(SCHEMA))


def test_what_is_no_model_of_the_program() -> None:
    terms = terms_of(PROMISES[0])
    honest = terms.averaged.model(np.zeros(terms.length), SCHEMA)
    assert plausible(honest, terms)
    other = AveragedLogistic(0.05).model(np.zeros(terms.length), SCHEMA)
    assert not plausible(other, terms)  # of records that are prepared in another way
    for wrong in (
        None,
        "a model",
        replace(honest, coef=np.zeros((1, 3))),
        replace(honest, coef=np.full_like(honest.coef, np.nan)),
        replace(honest, intercept=np.array([np.inf])),
        replace(honest, intercept=np.zeros(2)),
    ):
        assert not within(wrong, terms.averaged, SCHEMA, 1e9)
