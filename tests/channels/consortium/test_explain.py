"""What a consortium's study says of itself: its noise is the noise that is drawn."""

from __future__ import annotations

import math
from typing import Literal

import msgspec
import numpy as np
import pytest

from tacit.channels.consortium.explain import allowed_terms, explain
from tacit.channels.consortium.local import consortium_study
from tacit.channels.consortium.published_terms import PublishedTerms
from tacit.channels.consortium.rehearsal import rehearsed
from tacit.channels.consortium.terms import JointTerms
from tacit.channels.studies.study import Consortium, Deadlines, Study, TakePart
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.data.schema import Column, Schema
from tacit.errors import UsageError
from tacit.privacy.promise import Promise
from tacit.programs.averaging import AveragedLogistic

SCHEMA = Schema(
    columns=(
        Column(name="age", type="integer", bounds=(0, 120)),
        Column(name="ill", type="boolean", role="label"),
    )
)
KEYS = [SigningKey.generate() for _ in range(6)]
DRAWS = 20_000  # a standard deviation of so many is wrong by 3 % at most from these seeds


def study(
    promise: Promise,
    colluding: int = 0,
    protocol: Literal["joint", "as-published"] = "joint",
) -> Study:
    terms = Consortium(protocol=protocol, colluding=colluding, smallest=200)
    plain = consortium_study(AveragedLogistic(), KEYS[:5], KEYS[5], SCHEMA, promise, terms)
    return msgspec.structs.replace(
        plain,
        take_part=TakePart(minimum=4, maximum=5, records=10_000),
        deadlines=Deadlines(gather=60, round=30),
    )


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("colluding", [0, 2])
def test_the_noise_is_as_large_as_said(colluding: int, delta: float) -> None:
    made = study(Promise(1.0, delta), colluding)
    told = explain(made, quick=True)
    assert [noise.block for noise in told.noise] == ["average of 4", "average of 5"]
    assert told.factor == pytest.approx(math.sqrt(4 / (4 - colluding)))
    for terms, noise in zip(allowed_terms(made), told.noise, strict=True):
        assert isinstance(terms, JointTerms)
        assert terms.mechanism is not None
        total = np.zeros(DRAWS, dtype=np.int64)
        for place in range(len(terms.roster)):
            total = terms.mechanism.perturb(total, SeededRandomness(place))
            if place == 0:
                one = terms.grid.decode(total).std() / len(terms.roster)
        average = terms.grid.decode(total) / len(terms.roster)
        assert average.std() == pytest.approx(noise.result, rel=0.03)
        assert one == pytest.approx(noise.one_part, rel=0.05)  # parts of Laplace have long tails


def test_the_noise_as_published_is_as_large_as_said() -> None:
    made = study(Promise(1.0), protocol="as-published")
    told = explain(made, quick=True)
    terms = allowed_terms(made)[0]
    assert isinstance(terms, PublishedTerms)
    source = SeededRandomness("published")
    draws = [terms.noise(200, source) for _ in range(DRAWS // terms.length)]
    assert terms.grid.decode(np.concatenate(draws)).std() == pytest.approx(
        told.noise[0].result, rel=0.03
    )
    right = explain(study(Promise(1.0)), quick=True)
    assert told.noise[0].central == pytest.approx(right.noise[0].central)


def test_both_laws_are_told() -> None:
    """The figure of the other law is the one that a study of that law tells of itself."""
    pure, other = (explain(study(Promise(1.0, delta), 1), quick=True) for delta in (0.0, 1e-6))
    assert f"{other.noise[0].result:.4g} with 4" in pure.noise_words
    assert f"{pure.noise[1].result:.4g} with 5" in other.noise_words


def test_who_sees_what_and_who_is_trusted() -> None:
    told = explain(study(Promise(1.0, 1e-6), 2), quick=True)
    assert list(told.sees) == ["curator curator", "each party", "everyone"]
    assert "at most 2 parties work together" in told.trust
    assert "at least 200 records" in told.trust
    assert "takes its own part of the noise away" in told.trust
    assert "ε = 1, δ = 1e-06 per record, once" in told.cost
    text = "\n".join(told.lines)
    assert "30 seconds is left out" in text
    assert "the others have paid" in text
    assert "server" not in text
    assert told.loss is None


def test_no_promise_is_called_so() -> None:
    told = explain(study(Promise(math.inf)), quick=True)
    assert told.promise.startswith("NO PROMISE")
    assert (told.noise, told.noise_words) == ([], "No noise is added.")


def test_as_published_the_promise_does_not_hold() -> None:
    told = explain(study(Promise(1.0), protocol="as-published"), quick=True)
    assert told.promise.startswith("THE PROMISE DOES NOT HOLD")
    assert "one party and the curator together" in told.trust
    assert "last of 9 steps" in told.cost


@pytest.mark.parametrize("protocol", ["joint", "as-published"])
def test_a_rehearsal_is_repeatable_and_suffers_from_noise(
    protocol: Literal["joint", "as-published"],
) -> None:
    found = rehearsed(study(Promise(0.05), protocol=protocol), 300)
    assert found == rehearsed(study(Promise(0.05), protocol=protocol), 300)
    assert (found.measure, found.holders, found.records) == ("accuracy", 5, 300)
    assert found.without_noise > 0.75
    assert found.with_noise != found.without_noise
    exact = rehearsed(study(Promise(math.inf), protocol=protocol), 300)
    assert exact.with_noise == exact.without_noise == found.without_noise


def test_a_rehearsal_has_as_many_records_as_the_study_takes() -> None:
    made = study(Promise(1.0))
    assert rehearsed(made).records == 1000  # a tenth of what is allowed
    for records in (199, 10_001):
        with pytest.raises(UsageError, match="200 to 10000"):
            rehearsed(made, records)
