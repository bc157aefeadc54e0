"""A library: each publication once, in the order in which they came, and still there tomorrow."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.channels.peers.library import AT_ONCE, Library
from tacit.channels.roles.store import MEMORY
from tacit.errors import Refused

NETWORK = "ab" * 32


@pytest.fixture
def library() -> Library:
    return Library(MEMORY, NETWORK)


def test_each_once(library: Library) -> None:
    assert library.add("a", "", False, b"first", 1.0)
    assert not library.add("a", "north", False, b"second", 2.0)
    assert library.bodies(["a"]) == [b"first"]
    assert library.ids() == {"a": ""}


def test_one_that_came_by_gossip_can_turn_out_to_be_our_own(library: Library) -> None:
    library.add("a", "", False, b"first", 1.0)
    assert not library.add("a", "", True, b"first", 2.0)
    assert library.all() == [(b"first", True, 1.0)]
    library.add("a", "", False, b"first", 3.0)
    assert library.all() == [(b"first", True, 1.0)]


def test_in_the_order_in_which_they_came(library: Library) -> None:
    library.add("b", "north", True, b"B", 2.0)
    library.add("c", "", False, b"C", 1.0)
    library.add("a", "", False, b"A", 2.0)
    assert library.all() == [(b"C", False, 1.0), (b"A", False, 2.0), (b"B", True, 2.0)]
    assert library.ids() == {"a": "", "b": "north", "c": ""}


def test_what_is_lacking_and_what_is_asked_for(library: Library) -> None:
    library.add("b", "", False, b"B", 1.0)
    assert library.lacking(["c", "b", "a"]) == ["a", "c"]
    assert library.bodies(["x", "b", "y"]) == [b"B"]


def test_one_letter_holds_so_many(library: Library) -> None:
    names = [f"{number:03}" for number in range(AT_ONCE + 5)]
    for name in names:
        library.add(name, "", False, name.encode(), 1.0)
    assert library.bodies(names) == [name.encode() for name in names[:AT_ONCE]]


def test_it_outlives_the_process_and_knows_its_network(tmp_path: Path) -> None:
    first = Library(tmp_path / "library.db", NETWORK)
    first.add("a", "", True, b"A", 1.0)
    first.close()
    again = Library(tmp_path / "library.db", NETWORK)
    assert again.all() == [(b"A", True, 1.0)]
    again.close()
    with pytest.raises(Refused, match="name another folder"):
        Library(tmp_path / "library.db", "cd" * 32)
