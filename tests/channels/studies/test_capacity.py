"""Every program, at every declared size up to 10^10 units, has sums that fit."""

from __future__ import annotations

import math
import runpy
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.channels.federation import local
from tacit.channels.federation.local import Federation, local_study
from tacit.channels.studies.capacity import LIMIT, coarsened, largest_contribution
from tacit.channels.studies.study import Online, Study, TakePart, planned_rounds
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.data.records import ArrayRecords
from tacit.errors import UsageError
from tacit.privacy import Promise
from tacit.privacy.bound import Norm, power_of_two_below
from tacit.privacy.promise import Unit
from tacit.programs.contribute import decoded
from tacit.programs.program import Block, Plan, Query, Stage
from tacit.programs.registry import OWN

Case = dict[str, Any]
FILES = sorted((Path(__file__).parents[2] / "contracts").glob("cases_*.py"))
CASES: list[Case] = [case for file in FILES for case in runpy.run_path(str(file))["CASES"]]
KEYS = [SigningKey.generate() for _ in range(3)]
PROMISES = [Promise(1.0), Promise(1.0, 1e-6), Promise(0.01, 1e-9), Promise(math.inf)]
HOLDERS = 100


def declared(case: Case, units: int, promise: Promise) -> Study:
    """A study of the case's program that declares so many units."""
    study = local_study(case["program"], 3, case["schema"], promise, KEYS)
    part = TakePart(minimum=1, maximum=HOLDERS, records=-(-units // HOLDERS))
    return msgspec.structs.replace(study, take_part=part).running(case["program"])


def test_all_registered_sums_are_here() -> None:
    """Of those that sum over records, all but the published mixture, which is local noise."""
    names = {case["program"].name for case in CASES}
    others = {"averaged-logistic", "partition-ensemble", "tabulated-bayes"}
    assert set(OWN) - others - {"gaussian-mixture-as-published"} <= names


@pytest.mark.parametrize("promise", PROMISES, ids=["pure", "gaussian", "small", "none"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_every_sum_of_every_program_fits(case: Case, promise: Promise) -> None:
    for power in range(3, 11):
        study = declared(case, 10**power, promise)
        study.check_capacity()
        levels, part = study.levels(), study.take_part
        for stage in study.plan().stages:
            for block in stage.query.blocks:
                # As many units as declared, each as long as it may be, all in one coordinate.
                each = -(-block.limit // 2**block.shift)
                whole = part.maximum * part.records * each + part.maximum
                noise = 0
                if promise.is_private:
                    mechanism, zero = levels.mechanism(block), np.zeros(200, dtype=np.int64)
                    drawn = [mechanism.perturb(zero, SeededRandomness(s)) for s in range(2)]
                    noise = int(np.abs(np.add(*drawn)).max())
                    assert whole + noise <= study.largest_sum(block, part.maximum)
                assert whole + noise < LIMIT


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_the_largest_study_has_hardly_more_noise_than_the_smallest(case: Case) -> None:
    for promise in (Promise(1.0), Promise(1.0, 1e-6)):
        small, large = declared(case, 10**3, promise), declared(case, 10**10, promise)
        for stage, other in zip(small.plan().stages, large.plan().stages, strict=True):
            for before, after in zip(stage.query.blocks, other.query.blocks, strict=True):
                noise = large.levels().mechanism(after).scale
                assert 1 <= noise / small.levels().mechanism(before).scale < 1 + 2.0**-20


def test_a_sum_of_ten_billion_is_decoded_as_it_was() -> None:
    """Holders' sums as large as they may be: rounded, added as residues, and read off again."""
    case = next(case for case in CASES if case["program"].name == "linear-regression")
    study = declared(case, 10**10, Promise(1.0, 1e-6))
    query = study.plan().stage(3).query  # mean, spread, moments
    (block,) = query.blocks
    assert block.shift > 0
    each = study.take_part.records * (block.limit >> block.shift)
    total = np.full(query.length, 0, dtype=np.int64)
    for _ in range(study.take_part.maximum):
        total += each
    real = decoded(total, query)
    wanted = study.take_part.maximum * each * float(block.sum_grid.step)
    assert np.allclose(real, wanted, rtol=1e-12)
    assert (real > 0).all()


@pytest.mark.parametrize("name", ["linear-regression", "pca", "logistic"])
@pytest.mark.parametrize("promise", PROMISES, ids=["pure", "gaussian", "small", "none"])
def test_a_study_of_ten_billion_runs_and_its_certificate_holds(
    name: str, promise: Promise, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On today's few records, as a study that declares so many: rounded, and as exact."""
    case = next(case for case in CASES if case["program"].name == name)
    parts = np.array_split(np.arange(len(case["X"])), 3)
    y = case["y"]
    holders = [ArrayRecords(case["X"][p], None if y is None else y[p], rows=61) for p in parts]

    def run(records: int) -> Any:
        monkeypatch.setattr(local, "LARGEST_HOLDING", records)
        seeded = Federation(randomness=lambda server, n: SeededRandomness(f"{server} {n}"))
        return seeded.run(case["program"], holders, case["schema"], promise)

    large = run(10**10)
    assert large.certificate.verify().epsilon <= promise.epsilon * (1 + 1e-6)
    if not promise.is_private:
        small = run(1000)
        for field in fields(large.model):
            ours, theirs = getattr(large.model, field.name), getattr(small.model, field.name)
            if isinstance(ours, np.ndarray):
                np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_what_is_too_large_even_so_is_refused() -> None:
    case = next(case for case in CASES if case["program"].name == "histogram")
    with pytest.raises(UsageError, match=r"block 'age' could reach.*lower records or maximum"):
        declared(case, 10**19, Promise(1.0, 1e-6)).check_capacity()


def test_the_plan_follows_the_declared_units_and_nothing_else() -> None:
    case = next(case for case in CASES if case["program"].name == "pca")
    one, two = (declared(case, 10**9, Promise(1.0, 1e-6)) for _ in range(2))
    assert one.plan() == two.plan()
    whole = declared(case, 10**9, Promise(1.0, 1e-6, unit=Unit.HOLDER))
    assert all(b.shift == 0 for s in whole.plan().stages for b in s.query.blocks)


def test_windows_have_sums_that_fit() -> None:
    case = next(case for case in CASES if case["program"].name == "logistic")
    study = declared(case, 10**10, Promise(1.0, 1e-6))
    rounds = planned_rounds(case["program"], study.schema, study.promise, 6)
    windows = msgspec.structs.replace(study, online=Online(windows=6), rounds=rounds)
    online = windows.running(case["program"])
    online.check_capacity()
    for number in range(1, online.last_round + 1):
        query, levels = online.plan().stage(number).query, online.levels(online.window_of(number))
        for block in query.blocks:
            assert levels.mechanism(block).grid == block.sum_grid
            assert online.largest_sum(block, online.take_part.maximum) < LIMIT


@pytest.mark.parametrize("seed", range(200))
def test_any_plan_fits_or_is_left_for_the_check_to_refuse(seed: int) -> None:
    """Random blocks, units and noise: what is rounded fits, is rounded no more than need be, and
    counts what rounding adds; what cannot be made to fit stays as it was."""
    source = np.random.default_rng(seed)

    def block(name: str) -> Block:
        bound = Fraction(int(source.integers(1, 2**30)), int(source.integers(1, 2**12)))
        norm = Norm.L1 if source.random() < 0.5 else Norm.L2
        fine = Fraction(1, 2 ** int(source.integers(4, 30)))
        step = power_of_two_below(bound * fine) if source.random() < 0.7 else None
        return Block(name, int(source.integers(1, 5000)), norm, bound, step)

    def noise(block: Block) -> int:
        return ratio * block.sum_limit

    ratio, units = int(source.integers(0, 10**4)), 10 ** int(source.integers(0, 14))
    fine = [block(f"b{i}") for i in range(3)]
    plan = Plan((Stage(Query(tuple(fine)), count=2),))
    (stage,) = coarsened(plan, units, noise).stages
    for before, after in zip(fine, stage.query.blocks, strict=True):
        reach = units * largest_contribution(after) + noise(after)
        if after == before:
            continue
        assert reach < LIMIT
        assert (after.name, after.length, after.limit) == (before.name, before.length, before.limit)
        assert after.sensitivity >= before.sensitivity  # rounding is paid for, never hidden
        finer = replace(before, shift=after.shift - 1)
        assert units * largest_contribution(finer) + noise(finer) >= LIMIT
        # An honest unit, rounded up in every coordinate, moves no sum further than is planned.
        assert -(-before.limit // 2**after.shift) + after.rounding <= after.sum_limit
