"""A peer's records: parts of a table that grows, without people who asked to be left out."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from small_network import SCHEMA, pact_of

from tacit.channels.peers.holdings import Holdings
from tacit.data.schema import Column, Schema
from tacit.errors import InputError
from tacit.privacy.policy import LeftOut
from tacit.privacy.policy.left_out import digests_of

SECRET = b"s" * 32
WITH_PEOPLE = Schema(columns=(Column(name="who", type="text", role="person"), *SCHEMA.columns))
PACT = pact_of(schema=WITH_PEOPLE, smallest=3)


def rows(path: Path, people: str) -> Path:
    lines = [f"{who},{i / 100:.2f},0.5,{i % 2}" for i, who in enumerate(people)]
    path.write_text("who,age,height,ill\n" + "\n".join(lines) + "\n")
    return path


def absent(people: str) -> LeftOut:
    digests = (d for who in people for d in digests_of(SECRET, who))
    return LeftOut("x", frozenset(digests), SECRET)


def test_who_is_left_out_is_not_trained_on_and_parts_stay_the_same(tmp_path: Path) -> None:
    gone = {"who": ""}
    holdings = Holdings(PACT, rows(tmp_path / "t.csv", "abcabc"), lambda: absent(gone["who"]))
    assert holdings.read()
    whole = holdings.trained().vector
    part = holdings.part
    gone["who"] = "b"
    holdings.restore(0, 6)
    assert holdings.part == part
    assert holdings.records is not None
    assert holdings.records.person is not None
    assert holdings.records.person.tolist() == list("acac")
    alone = Holdings(PACT, rows(tmp_path / "t.csv", "acac"))
    alone.read()
    assert alone.records is not None
    assert not np.array_equal(holdings.trained().vector, whole)
    assert np.array_equal(holdings.records.X[:, 1:], alone.records.X[:, 1:])


def test_too_few_that_stay_are_too_few(tmp_path: Path) -> None:
    """The noise rests on how many records everybody has at least."""
    path = rows(tmp_path / "t.csv", "aabb")
    holdings = Holdings(PACT, path, lambda: absent("a"))
    assert not holdings.read()
    assert (holdings.used, holdings.records) == (0, None)
    rows(path, "aabbb")
    assert holdings.read()
    with pytest.raises(InputError, match="asked to be left out"):
        Holdings(PACT, path, lambda: absent("ab")).restore(0, 5)
