"""States and models as bytes: whatever is wrong with them is an InputError and nothing else."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.numpy import save as save_tensors

from tacit.data.schema import Schema
from tacit.errors import InputError, InternalFault, UsageError
from tacit.privacy import Promise
from tacit.programs.files import about_of, from_bytes, to_bytes
from tacit.programs.mixture_published import PublishedMixture
from tacit.programs.states import state_bytes, state_from

Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Everything:
    """One field of every kind that a state may have."""

    vector: Reals
    places: NDArray[np.int64]
    anything: np.ndarray  # type: ignore[type-arg]
    count: int
    size: float
    done: bool
    name: str
    share: Fraction
    pair: tuple[int, float]
    names: tuple[tuple[str, ...], ...]
    maybe: int | None
    kind: Literal["a", "b"]


@dataclass(frozen=True)
class Picky:
    count: int

    def __post_init__(self) -> None:
        if self.count < 0:
            raise UsageError("below 0")


@dataclass(frozen=True)
class Unreadable:
    odd: dict[str, int]


WHOLE = Everything(
    vector=np.array([[1.5, math.nan], [-math.inf, 0.0]]),
    places=np.array([], dtype=np.int64),
    anything=np.array(3, dtype=np.int32),
    count=-7,
    size=math.inf,
    done=True,
    name="ε",
    share=Fraction(1, 3),
    pair=(1, math.nan),
    names=((), ("x", "y")),
    maybe=None,
    kind="b",
)
DATA = to_bytes(WHOLE)


def head() -> dict[str, Any]:
    """The JSON of WHOLE's file."""
    length = int.from_bytes(DATA[:8], "little")
    found: dict[str, Any] = json.loads(json.loads(DATA[8 : 8 + length])["__metadata__"]["tacit"])
    return found


def file_with(document: Any, arrays: dict[str, Any] | None = None) -> bytes:
    """A file whose metadata are someone else's."""
    mine = {name: getattr(WHOLE, name) for name in ("vector", "places", "anything")}
    text = document if isinstance(document, str) else json.dumps(document)
    return bytes(save_tensors(mine if arrays is None else arrays, metadata={"tacit": text}))


def refuses(data: bytes) -> None:
    with pytest.raises(InputError):
        from_bytes(Everything, data)


def test_every_kind_of_field_survives() -> None:
    copy = from_bytes((Picky, Everything), DATA)
    assert isinstance(copy, Everything)
    assert to_bytes(copy) == DATA
    assert copy.share == WHOLE.share
    assert copy.names == WHOLE.names
    assert copy.anything.shape == ()
    assert math.isnan(copy.pair[1])


def test_the_file_names_its_kind() -> None:
    assert from_bytes((Everything, Picky), to_bytes(Picky(3))) == Picky(3)
    with pytest.raises(InputError, match="'Picky', not a Everything"):
        from_bytes(Everything, to_bytes(Picky(3)))
    with pytest.raises(InputError, match="known kind"):
        from_bytes((), DATA)


def test_about_travels_along_in_its_order() -> None:
    about = {"b": [1, None], "a": {"z": 1.5, "y": "é"}}
    data = to_bytes(WHOLE, about)
    assert list(about_of(data)) == ["b", "a"]
    assert about_of(data) == about
    assert about_of(DATA) is None
    assert to_bytes(from_bytes(Everything, data)) == DATA


def test_published_states_survive() -> None:
    """Not in the contract suite, since it cannot keep a pure promise."""
    columns = {name: {"type": "number", "bounds": [-1, 1]} for name in ("a", "b")}
    program = PublishedMixture(2, rounds=2)
    state: Any = program.init(Schema.from_dict({"columns": columns}), Promise(1.0, 1e-6))
    first, stage = state, program.plan(state)[0]
    for total in (10.0, 3.0):
        query = program.asked(state, stage.query)
        assert query is not None
        assert to_bytes(from_bytes(program.states, to_bytes(state))) == to_bytes(state)
        copy = state_from(state_bytes(state), first)
        assert to_bytes(copy) == to_bytes(state)
        state = program.reduce(np.full(query.length, total), copy)
    model = program.result(state)
    assert to_bytes(from_bytes(program.models, to_bytes(model))) == to_bytes(model)


WRONG: dict[str, list[Any]] = {
    "count": [1.5, True, "1", None, 2**63, [1], {"tuple": [1]}],
    "size": ["1.0", True, None, 10**400, []],
    "done": [0, 1, "true", None],
    "name": [1, None, ["x"]],
    "share": [
        0.5,
        "1/3",
        {"fraction": "1e999999999"},
        {"fraction": "1/0"},
        {"fraction": "0.5"},
        {"fraction": 1},
        {"fraction": "9" * 10_000},
        {"fraction": "1/3", "more": 1},
    ],
    "pair": [{"tuple": [1]}, {"tuple": [1, 2.0, 3]}, {"tuple": ["1", 2.0]}, [1, 2.0], {"tuple": 1}],
    "names": [{"tuple": ["x"]}, {"tuple": [{"tuple": [1]}]}, []],
    "maybe": ["1", 1.5, {}],
    "kind": ["c", None, 0],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, vs in WRONG.items() for v in vs])
def test_a_wrong_kind_of_value_is_refused(name: str, value: Any) -> None:
    document = head()
    document["fields"][name] = value
    with pytest.raises(InputError, match="damaged"):
        from_bytes(Everything, file_with(document))


def test_fields_missing_unknown_or_in_the_wrong_place() -> None:
    for name in head()["fields"]:
        document = head()
        del document["fields"][name]
        refuses(file_with(document))
    more = head()
    more["fields"]["__class__"] = "x"
    refuses(file_with(more))
    arrays = {n: getattr(WHOLE, n) for n in ("vector", "places", "anything")}
    refuses(file_with(head(), {n: arrays[n] for n in ("vector", "places")}))
    refuses(file_with(head(), {**arrays, "count": np.zeros(1)}))  # twice
    refuses(file_with(head(), {**arrays, "vector": np.zeros(2, dtype=np.float32)}))
    refuses(file_with(head(), {**arrays, "places": np.zeros(2)}))
    swapped = head()
    del swapped["fields"]["count"]
    refuses(file_with(swapped, {**arrays, "count": np.zeros(1)}))  # an array for a number
    swapped = head()
    swapped["fields"]["vector"] = 1.5
    refuses(file_with(swapped, {n: arrays[n] for n in ("places", "anything")}))


@pytest.mark.parametrize(
    "document",
    [
        "",
        "[]",
        "null",
        "{",
        "[" * 100_000,
        '{"fields": ' * 5_000 + "1" + "}" * 5_000,
        "1" * 5_000,
        {},
        {"type": "Everything"},
        {"type": "Everything", "fields": []},
        {"type": ["Everything"], "fields": {}},
        {"type": "Everything", "fields": {}},
    ],
)
def test_metadata_that_are_not_ours(document: Any) -> None:
    refuses(file_with(document))
    refuses(save_tensors({}, metadata={"other": "x"}))
    refuses(save_tensors({}))


def test_what_a_dataclass_itself_refuses() -> None:
    data = to_bytes(Picky(3)).replace(b'\\"count\\": 3', b'\\"count\\":-3')
    with pytest.raises(InputError, match="contradict"):
        from_bytes(Picky, data)


def test_a_field_that_cannot_be_written_or_read_is_our_own_fault() -> None:
    with pytest.raises(InternalFault, match="arrays, numbers and texts"):
        to_bytes(Unreadable({"a": 1}))
    forged = bytes(save_tensors({}, metadata={"tacit": '{"fields":{"odd":1},"type":"Unreadable"}'}))
    with pytest.raises(InternalFault, match="arrays, numbers and texts"):
        from_bytes(Unreadable, forged)


def tolerated(data: bytes) -> None:
    """Either it is read as a whole dataclass of the right kinds, or it is refused."""
    try:
        copy = from_bytes((Everything, Picky), data)
    except InputError:
        return
    assert isinstance(copy, Everything)
    assert isinstance(copy.vector, np.ndarray)
    assert copy.vector.dtype == np.float64
    assert type(copy.count) is int
    assert type(copy.done) is bool
    assert isinstance(copy.share, Fraction)
    to_bytes(copy)


@given(st.lists(st.tuples(st.integers(0, len(DATA) - 1), st.integers(1, 255)), min_size=1))
def test_flipped_bytes(flips: list[tuple[int, int]]) -> None:
    damaged = bytearray(DATA)
    for place, mask in flips:
        damaged[place] ^= mask
    tolerated(bytes(damaged))


def test_every_single_flipped_bit_of_the_header() -> None:
    for place in range(8 + int.from_bytes(DATA[:8], "little")):
        for bit in range(8):
            damaged = bytearray(DATA)
            damaged[place] ^= 1 << bit
            tolerated(bytes(damaged))


@given(st.integers(0, len(DATA)), st.binary(max_size=40))
def test_truncated_and_extended(length: int, more: bytes) -> None:
    if length < len(DATA) or more:
        tolerated(DATA[:length] + more)
    refuses(DATA[: max(0, length - 1)])


@given(st.binary(max_size=200))
def test_noise(data: bytes) -> None:
    refuses(data)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["tuple", "fraction", "x"]), inner, max_size=2)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*head()["fields"], "vector", "new"]), PLAIN, max_size=4))
def test_other_metadata(changes: dict[str, Any]) -> None:
    document = head()
    document["fields"].update(changes)
    tolerated(file_with(document))


DTYPES = ["BF16", "F8_E4M3", "F8_E5M2", "U8", "BOOL", "F16", "C64", "F4", "I64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_other_types_of_numbers(dtype: str) -> None:
    """Types that numpy lacks, or that take another number of bytes than stand there."""
    length = int.from_bytes(DATA[:8], "little")
    header = json.loads(DATA[8 : 8 + length])
    for name in ("vector", "places", "anything"):
        changed = {**header, name: {**header[name], "dtype": dtype}}
        text = json.dumps(changed).encode()
        tolerated(len(text).to_bytes(8, "little") + text + DATA[8 + length :])


def test_equal_values_have_equal_bytes() -> None:
    assert to_bytes(replace(WHOLE)) == DATA
    turned = replace(WHOLE, vector=np.asfortranarray(WHOLE.vector))
    assert to_bytes(turned) == DATA
