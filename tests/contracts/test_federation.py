"""Every program runs unchanged through the federation, and learns what it learns in one place."""

from __future__ import annotations

import math
import runpy
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.channels.central import Central
from tacit.channels.federation.local import Federation
from tacit.crypto.prg import SeededRandomness
from tacit.data.records import ArrayRecords
from tacit.privacy import Promise
from tacit.programs.files import to_bytes

Case = dict[str, Any]
FILES = sorted(Path(__file__).parent.glob("cases_*.py"))
CASES: list[Case] = [case for file in FILES for case in runpy.run_path(str(file))["CASES"]]


def holders(case: Case, count: int = 3) -> list[ArrayRecords]:
    """Unequal parts of the records, in a mixed order."""
    order = np.random.default_rng(1).permutation(len(case["X"]))
    cuts = [len(order) // 7, len(order) // 2]
    parts = np.split(order, cuts)[:count]
    y = case["y"]
    return [ArrayRecords(case["X"][p], None if y is None else y[p], rows=61) for p in parts]


def named(case: Case) -> str:
    return str(case["name"])


@pytest.mark.parametrize("case", CASES, ids=named)
def test_without_noise_it_is_the_central_result(case: Case) -> None:
    promise = Promise(math.inf)
    records = ArrayRecords(case["X"], case["y"])
    central = Central().run(case["program"], records, case["schema"], promise)
    joint = Federation().run(case["program"], holders(case), case["schema"], promise)
    assert joint.rounds == central.rounds
    for field in fields(joint.model):
        ours, theirs = getattr(joint.model, field.name), getattr(central.model, field.name)
        if isinstance(ours, np.ndarray):  # without noise, some programs round sums of batches
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
        else:
            assert ours == theirs or ours == pytest.approx(theirs)


@pytest.mark.parametrize("promise", [Promise(1.0), Promise(1.0, 1e-6)], ids=["pure", "gaussian"])
@pytest.mark.parametrize(("servers", "honest"), [(2, None), (3, 3)], ids=["every", "honest"])
@pytest.mark.parametrize("case", CASES, ids=named)
def test_every_program_keeps_its_promise(
    case: Case, servers: int, honest: int | None, promise: Promise
) -> None:
    def seeded(server: int, number: int) -> SeededRandomness:
        return SeededRandomness(f"{server} {number}")

    federation = Federation(servers, honest, seeded)
    outcome = federation.run(case["program"], holders(case), case["schema"], promise)
    verdict = outcome.certificate.verify()
    assert verdict.epsilon <= promise.epsilon * (1 + 1e-6)
    assert len(outcome.certificate.witnesses) == servers
    assert outcome.certificate.participation is not None
    assert outcome.certificate.participation.holders == 3
    again = federation.run(case["program"], holders(case), case["schema"], promise)
    assert to_bytes(again.model) == to_bytes(outcome.model)
