"""The protocol as published under the accidents of tests/simulation: who pays is who was averaged.

It has three times the steps of tacit's own, and what a role says in each follows from all it drew
before: a role that comes back from a crash must draw the same again. `SEED=n` replays one run.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "simulation"))

import test_consortium as accidents
from protocol_runs import fix_keys

from tacit.channels.studies.study import Consortium, Study
from tacit.privacy.promise import Promise

SEEDS = 40


@pytest.fixture(autouse=True)
def _as_published(monkeypatch: pytest.MonkeyPatch) -> None:
    joint = accidents._study
    terms = Consortium(protocol="as-published", colluding=0, smallest=1, key_bits=2048)

    def study(count: int, minimum: int, promise: Promise, colluding: int) -> Study:
        plain = joint(count, minimum, promise, 0)
        found = msgspec.structs.replace(plain, consortium=terms)
        found.__dict__["_averaged"] = plain.averaged()  # where cached_property looks
        return found

    monkeypatch.setattr(accidents, "_study", study)
    fix_keys(monkeypatch)


def test_accidents() -> None:
    finished = 0
    for seed in range(SEEDS):
        try:
            run = accidents.simulate(seed)
            accidents.check(run)
        except BaseException:
            print(f"replay with: SEED={seed} python -m pytest {__file__} -k replay")
            raise
        finished += run.curator.core.is_over
    assert finished > SEEDS / 4  # the others lost too many parties, and said so


@pytest.mark.skipif("SEED" not in os.environ, reason="for replaying one seed")
def test_replay() -> None:
    accidents.check(accidents.simulate(int(os.environ["SEED"])))
