"""A person with several holders: the study says with how many, and the noise covers them all."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.channels.central import Central
from tacit.channels.federation.certify import check_result
from tacit.channels.federation.local import Federation, local_study
from tacit.channels.studies.study import Study
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.data.records import ArrayRecords
from tacit.data.schema import Column, Schema
from tacit.engines import Serial
from tacit.errors import CheckFailed, InputError
from tacit.privacy.accounting import cost
from tacit.privacy.bound import Bound, Norm
from tacit.privacy.mechanisms import Gaussian, Laplace
from tacit.privacy.promise import Promise
from tacit.privacy.release import Release
from tacit.programs.histogram import Histogram
from tacit.programs.holding import Holding
from tacit.programs.kmeans import KMeans
from tacit.programs.pca import PCA
from tacit.programs.program import Program

WHO = Column(name="who", type="text", role="person")
SCHEMA = Schema(
    columns=(
        Column(name="x", type="number", bounds=(-1.0, 1.0)),
        Column(name="z", type="number", bounds=(-1.0, 1.0)),
        WHO,
    )
)
PROGRAMS: list[Program[Any, Any]] = [Histogram(bins=4), KMeans(3, 2), PCA(1)]
KEYS = [SigningKey.generate() for _ in range(3)]
FEW = Schema(columns=(Column(name="b", type="boolean"), WHO))


def promised(delta: float = 1e-6, adjacency: str = "add-remove") -> Promise:
    return Promise(1.0, delta, "person", adjacency)  # type: ignore[arg-type]


def study_of(program: Program[Any, Any], promise: Promise, many: int | None) -> Study:
    return local_study(program, 5, SCHEMA, promise, KEYS, holders_per_person=many)


def anns(chance: np.random.Generator, own: bool) -> ArrayRecords:
    """A holder's records; Ann's are among them, or not."""
    count = int(chance.integers(1, 6))
    X = np.sign(chance.uniform(-1, 1, (count + 3, 2))) * chance.uniform(0.5, 1, (count + 3, 2))
    who = np.array(["bob"] * 3 + ["ann"] * count, dtype=object)
    kept = slice(None) if own else slice(3)
    return ArrayRecords(X[kept], None, who[kept])


# ── what is stated ──


def test_without_a_number_of_holders_it_is_refused() -> None:
    """The attack: one person at three holders, under the noise of one."""
    table = ArrayRecords(np.ones((1, 1)), None, np.array(["ann"], object))
    with pytest.raises(InputError, match="needs holders_per_person = k"):
        Federation(2).run(Histogram(["b"]), [table] * 3, FEW, promised())


@pytest.mark.parametrize("many", [0, -1])
def test_it_is_one_at_least(many: int) -> None:
    with pytest.raises(InputError, match="1 holder at least"):
        study_of(Histogram(), promised(), many)


@pytest.mark.parametrize("unit", ["record", "holder"])
def test_only_persons_are_with_several_holders(unit: Any) -> None:
    with pytest.raises(InputError, match="take it out"):
        study_of(Histogram(), Promise(1.0, unit=unit), 2)


# ── what is covered ──


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("many", [1, 2, 5])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_all_that_a_person_adds_is_within_the_certified_bound(
    program: Program[Any, Any], many: int, delta: float, adjacency: str
) -> None:
    """On the integers that are added, with Ann at `many` holders, there or not, or exchanged."""
    promise = promised(delta, adjacency)
    study = study_of(program, promise, many)
    state = study.first_state()
    query = study.plan().stage(1).query
    chance = np.random.default_rng(many)
    largest = [0.0] * len(query.blocks)
    mechanisms = [study.levels().mechanism(block) for block in query.blocks]
    for _ in range(20):
        moved = np.zeros(query.length, dtype=np.int64)
        for _ in range(many):
            seed = int(chance.integers(2**32))
            signs = [(True, 1), (False, -1)]
            for own, sign in signs:
                records = anns(np.random.default_rng(seed), own)
                holding = Holding(study.program(), state, records, promise, Serial().map_sum)
                moved += sign * holding.sum(state, query)
        for place, ((block, part), mechanism) in enumerate(
            zip(query.slices(), mechanisms, strict=True)
        ):
            steps = moved[part].astype(object)
            plain = mechanism.bound.norm is Norm.L1
            norm = sum(abs(steps)) if plain else sum(steps**2) ** 0.5
            apart = 2**0.5 if block.nonnegative and not plain else 2.0  # of two who add so much
            factor = apart if adjacency == "replace" else 1.0
            reached = factor * float(norm * mechanism.grid.step)
            assert reached <= float(mechanism.bound.value)
            largest[place] = max(largest[place], reached / float(mechanism.bound.value))
    if isinstance(program, Histogram):
        assert max(largest) > 0.2  # not by being far from the bound


@pytest.mark.parametrize("many", [1, 3])
def test_the_certificate_says_so_and_costs_the_promise(many: int) -> None:
    promise = promised()
    table = ArrayRecords(np.ones((1, 1)), None, np.array(["ann"], object))
    outcome = Federation(2, holders_per_person=many).run(
        Histogram(["b"]), [table] * 3, FEW, promise
    )
    certificate = outcome.certificate
    assert certificate.holders_per_person == many
    assert ("one of" if many == 1 else "3 of the holders") in certificate.conditions[0]
    assert certificate.verify().epsilon == pytest.approx(1.0, rel=1e-3)
    # Ann moves the count of `True` by one at each of `many` holders: within the bound.
    (release,) = certificate.releases
    assert release.bound is not None
    assert many <= release.bound.value < many * 1.001


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_without_the_factor_the_same_person_costs_more(delta: float) -> None:
    """Noise for one holder and Ann at three; and the noise that the study has for her."""
    promise = promised(delta)
    one, three = (study_of(Histogram(bins=4), promise, many) for many in (1, 3))
    little, enough = (made.levels().charge(1, made.plan().stage(1).query) for made in (one, three))
    assert cost([hers(m) for m in little], delta, promise.adjacency).epsilon > 2.9
    assert cost([hers(m) for m in enough], delta, promise.adjacency).epsilon <= 1.0
    for few, many in zip(little, enough, strict=True):
        assert float(many.scale) == pytest.approx(3 * float(few.scale), rel=1e-3)


def hers(mechanism: Laplace | Gaussian) -> Release:
    """The release, if it moves by one at each of three holders."""
    (release,) = mechanism.spend
    return replace(release, bound=Bound(mechanism.bound.norm, Fraction(3)))


def test_a_holder_believes_only_the_number_that_the_study_states() -> None:
    promise = promised()
    one, three = (study_of(Histogram(["x"]), promise, many) for many in (1, 3))
    assert one.digest != three.digest
    table = ArrayRecords(np.ones((1, 1)), None, np.array(["ann"], object))
    found = Federation(2, holders_per_person=3).run(Histogram(["b"]), [table] * 3, FEW, promise)
    with pytest.raises(CheckFailed):
        check_result(three, b"", found.certificate.to_json())  # of another study, and signer
    text = found.certificate.to_json().replace('"holders_per_person":3', '"holders_per_person":1')
    with pytest.raises(CheckFailed):
        check_result(one, b"", text)


# ── one holder ──


def test_in_one_place_the_data_set_is_one_holders() -> None:
    table = ArrayRecords(np.ones((4, 1)), None, np.array(["ann", "ann", "bob", "eve"], object))
    channel = Central(randomness=SeededRandomness(1))
    persons = channel.run(Histogram(["b"]), table, FEW, promised()).certificate
    assert persons.holders_per_person == 1
    assert "one holder's" in persons.conditions[0]
    assert channel.run(Histogram(["b"]), table, FEW, Promise(1.0)).certificate.conditions == ()
