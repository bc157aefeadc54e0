"""A pact: the same for everybody who reads its bytes, another network with every change."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from small_network import SCHEMA, key_of, pact_of

from tacit.channels.peers.pact import Pact, pact_from_bytes
from tacit.channels.studies.tables import Chosen, Terms
from tacit.data.schema import Column, Schema
from tacit.errors import InputError
from tacit.privacy.promise import Adjacency, Promise, Unit

KEYS = tuple(key_of(place).public_key for place in range(3))
CHANGES: list[dict[str, Any]] = [
    {"name": "hospitals"},
    {"question": "Who is well?"},
    {"chosen": Chosen(name="averaged-logistic", version=1, settings={"penalty": 0.2})},
    {"terms": Terms(epsilon=0.5, delta=1e-5)},
    {"terms": Terms(epsilon=1.0, delta=1e-6)},
    {"terms": Terms(epsilon=1.0, delta=1e-5, unit=Unit.HOLDER)},
    {"terms": Terms(epsilon=1.0, delta=1e-5, adjacency=Adjacency.REPLACE)},
    {"group_size": 5},
    {"group_size": 1},
    {"colluding": 2},
    {"smallest": 51},
    {"records": 100},
    {"publish": "participants"},
    {"publish": "tags"},
    {"protocol": "as-published"},
    {"view": 21},
    {"cycle": 11.0},
    {"patience": 61.0},
    {"members": KEYS},
    {"schema": Schema(columns=(Column(name="sex", type="boolean"), *SCHEMA.columns))},
]


def test_every_field_is_tried() -> None:
    assert {name for change in CHANGES for name in change} == set(Pact.__struct_fields__)


@pytest.mark.parametrize("change", [{}, *CHANGES], ids=lambda change: "-".join(change) or "none")
def test_whoever_reads_it_has_the_same(change: dict[str, Any]) -> None:
    pact = pact_of(**change)
    read = pact_from_bytes(pact.to_bytes())
    assert read.digest == pact.digest
    assert (read.promise, read.averaged.digest) == (pact.promise, pact.averaged.digest)
    assert read.to_bytes() == pact.to_bytes()


def test_the_name_changes_with_every_field() -> None:
    names = [pact_of(**change).digest for change in [{}, *CHANGES]]
    assert len(set(names)) == len(names)


def test_whole_numbers_are_the_same_numbers() -> None:
    """10 seconds are written as 10 and read as 10.0: the network is the same."""
    whole = pact_of(cycle=10, patience=60, terms=Terms(epsilon=1, delta=1e-5))
    assert whole.digest == pact_from_bytes(whole.to_bytes()).digest == pact_of().digest


def test_one_aggregation_costs_what_the_terms_say() -> None:
    assert pact_of().promise == Promise(1.0, 1e-5)


def test_whom_it_admits() -> None:
    assert pact_of().admits(KEYS[0])
    closed = pact_of(members=KEYS[:2])
    assert closed.admits(KEYS[1])
    assert not closed.admits(KEYS[2])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "No Names"}, "name = 'No Names': take 1 to 64 small letters"),
        ({"question": " "}, "question is empty"),
        ({"group_size": 2}, "group_size = 2: take 1, or 3 to 255"),
        ({"group_size": 0}, "group_size = 0: take 1, or 3"),
        ({"group_size": 256, "view": 100}, "group_size = 256: take 1"),
        ({"group_size": 4, "colluding": 3}, "group_size = 4: take 1, or 5 to 255"),
        ({"group_size": 22}, "drawn from a view of 20"),
        ({"colluding": 0}, "colluding = 0: the curator is one of the group"),
        ({"smallest": 0}, "smallest = 0: give 1 to records"),
        ({"smallest": 11, "records": 10}, "smallest = 11: give 1 to records = 10"),
        ({"cycle": 0.0}, "cycle: give seconds above 0"),
        ({"patience": float("inf")}, "patience: give seconds above 0"),
        ({"view": 1, "group_size": 1}, "view = 1: give 2 to"),
        ({"view": 101}, "view = 101: give 2 to 100"),
        ({"members": ("me",)}, "members are public keys"),
        ({"terms": Terms(epsilon=float("inf"))}, "epsilon must be finite"),
        ({"terms": Terms(epsilon=0.0)}, "epsilon"),
        ({"terms": Terms(epsilon=1.0, unit=Unit.PERSON)}, "a person may be with several peers"),
        (
            {"protocol": "as-published", "terms": Terms(epsilon=1.0, unit=Unit.HOLDER)},
            "speaks of records alone",
        ),
        ({"chosen": Chosen(name="pca", version=2, settings={})}, "not trained by each alone"),
        ({"chosen": Chosen(name="magic", version=1, settings={})}, "magic"),
    ],
)
def test_what_no_network_can_run_under(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=r"^pact: ") as error:
        pact_of(**change)
    assert said in str(error.value)


def test_only_pacts_are_read() -> None:
    document = json.loads(pact_of().to_bytes())
    strange: list[Any] = [
        [],
        "pact",
        {},
        {**document, "format": "tacit peers 2"},
        {**document, "colour": "red"},
        {**document, "group_size": "4"},
        {**document, "publish": "nobody"},
        {**document, "terms": {**document["terms"], "colour": "red"}},
        {name: value for name, value in document.items() if name != "smallest"},
        {name: value for name, value in document.items() if name != "schema"},
        {**document, "schema": []},
        {**document, "group_size": 2},
    ]
    for bad in strange:
        with pytest.raises(InputError):
            pact_from_bytes(msgspec.json.encode(bad))
    with pytest.raises(InputError, match="this is not a pact"):
        pact_from_bytes(b"\xff\x00")
    with pytest.raises(InputError, match="another version of tacit"):
        pact_from_bytes(b"{}")
    with pytest.raises(InputError, match=r"unknown 'sampling'. A pact has: name, "):
        pact_from_bytes(msgspec.json.encode({**document, "sampling": 0.1}))
