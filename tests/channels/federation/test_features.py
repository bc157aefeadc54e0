"""Curves and bins in a federation: agreed in the study, said by it, and in every round."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.channels.central import Central
from tacit.channels.federation.explain import explain
from tacit.channels.federation.local import Federation, local_study
from tacit.channels.studies.study import Chosen, Study
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.data import Schema
from tacit.data.records import ArrayRecords
from tacit.errors import InputError
from tacit.privacy import Promise
from tacit.programs.encodings import checked_features
from tacit.programs.logistic import Logistic
from tacit.programs.logistic_model import SEEN

PROMISE = Promise(2.0, 1e-6)
generator = np.random.default_rng(1)
X = generator.uniform(-1, 1, (4000, 3))
y = (3 * X[:, 0] ** 2 + X[:, 1] > 1).astype(np.int64)


def schema(bounds: Any = (-1, 1)) -> Schema:
    columns: dict[str, Any] = {f"x{i}": {"type": "number", "bounds": bounds} for i in range(3)}
    columns["y"] = {"type": "category", "categories": ["0", "1"], "role": "label"}
    return Schema.from_dict({"columns": columns})


def study(features: str, bounds: Any = (-1, 1)) -> Study:
    keys = [SigningKey.generate() for _ in range(3)]
    return local_study(
        Logistic(features=checked_features(features)), 3, schema(bounds), PROMISE, keys
    )


@pytest.mark.parametrize("features", ["curves", "bins"])
@pytest.mark.parametrize("bounds", [(-1, 1), "private"], ids=["stated", "found"])
def test_a_federation_learns_what_one_place_learns(features: str, bounds: Any) -> None:
    """Two servers add twice the variance; seeded, so that it repeats."""
    program, columns = Logistic(features=checked_features(features)), schema(bounds)
    parts = [ArrayRecords(X[i::3], y[i::3]) for i in range(3)]
    federation = Federation(
        randomness=lambda server, number: SeededRandomness(f"{server} {number}")
    )
    joint = federation.run(program, parts, columns, PROMISE)
    joint.certificate.verify()
    assert SEEN[joint.model.features] in joint.certificate.remarks
    raw = Central(randomness=SeededRandomness(1))
    line = raw.run(Logistic(), ArrayRecords(X, y), schema(), PROMISE).model
    ends = np.array([column.bounds for column in joint.schema.features])
    low, high = ends.T
    seen = 2 * (X - low) / (high - low) - 1
    assert np.mean(line.predict(X) == y) < 0.8
    assert np.mean(joint.model.predict(seen) == y) > 0.85


def test_a_study_says_what_is_agreed() -> None:
    assert explain(study("raw"), quick=True).seen == ""
    for features, kind in (("curves", "curves"), ("bins", "bins"), ("auto", "curves")):
        for bounds in ((-1, 1), "private"):
            said = explain(study(features, bounds), quick=True)
            assert said.seen == SEEN[kind]  # type: ignore[index]
            assert SEEN[kind] in said.lines  # type: ignore[index]
            assert said.to_dict()["seen"] == SEEN[kind]  # type: ignore[index]


def test_a_study_without_the_setting_is_raw() -> None:
    agreed = study("raw")
    assert agreed.chosen.settings == {"penalty": 1.0, "tolerance": 1e-5}
    assert agreed.program().digest == Logistic().digest
    assert agreed.first_state().features is None


def test_what_nobody_can_choose_is_refused() -> None:
    agreed = study("curves")
    chosen = Chosen(name="logistic", version=2, settings={"features": "splines"})
    with pytest.raises(InputError, match="'auto' or 'raw' or 'bins' or 'curves'"):
        msgspec.structs.replace(agreed, chosen=chosen).program()
