"""A library: each publication once, in the order in which they came, and still there tomorrow."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from tacit.channels.peers.library import AT_ONCE, Library, UsedPart
from tacit.channels.peers.purse import LedgerPurse
from tacit.channels.roles.backup import back_up, put_back
from tacit.channels.roles.store import MEMORY
from tacit.errors import CheckFailed, Refused
from tacit.privacy.ledger import Ledger
from tacit.privacy.promise import Promise

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


# ── which records are in models ──


def test_one_peer_at_a_time_counts_and_others_read_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    with closing(Library(path, NETWORK, at_work=True)) as library:
        library.use(UsedPart(0, 50, "ab"))
        with pytest.raises(Refused, match="in use by process"):
            Library(path, NETWORK, at_work=True)
        with closing(Library(path, NETWORK)) as reader:
            assert reader.used() == UsedPart(0, 50, "ab")
            library.use(UsedPart(50, 90, "cd"))
            assert reader.used() == UsedPart(50, 90, "cd")


@pytest.mark.parametrize("times", [1, 2])
def test_records_that_a_restored_peer_counts_again_are_charged_again(
    tmp_path: Path, times: int
) -> None:
    """Parts of one partition are disjoint: what may overlap with them is charged beside them."""
    folder, ledger = tmp_path / "peer", Ledger(tmp_path / "ledger.db")
    ledger.allow("rows", "record", 1.0 + times)

    def aggregate(library: Library, first: int, last: int) -> None:
        library.use(UsedPart(first, last))
        part = f"rows {first + 1} to {last}"
        purse = LedgerPurse(Promise(1.0), ledger, "rows", "net", part, library.identity)
        budget = purse.budget(part)
        budget.reserve(1)
        budget.spend(1)
        budget.settle(None)

    with closing(Library(folder / "library.db", NETWORK, at_work=True)) as library:
        aggregate(library, 0, 50)
        back_up(folder, tmp_path / "copy.tar", lambda name: None)
        aggregate(library, 50, 100)
    assert ledger.balance("rows", "record").spent.epsilon == 1
    for time in range(1, times + 1):
        shutil.rmtree(folder)
        put_back(tmp_path / "copy.tar", folder, lambda name: None)
        with closing(Library(folder / "library.db", NETWORK, at_work=True)) as library:
            assert library.used() == UsedPart(0, 50)  # the newest part is lost
            aggregate(library, 50, 120)
            aggregate(library, 120, 150)
        assert ledger.balance("rows", "record").spent.epsilon == 1 + time
    with closing(Library(folder / "library.db", NETWORK, at_work=True)) as library:
        library.count_anew()
        with pytest.raises(Refused):
            aggregate(library, 0, 10)


def test_an_older_or_copied_count_is_not_gone_on_with(tmp_path: Path) -> None:
    path, older = tmp_path / "peer" / "library.db", tmp_path / "older"
    for last in (50, 100):
        with closing(Library(path, NETWORK, at_work=True)) as library:
            library.use(UsedPart(0, last))
        if last == 50:
            shutil.copytree(path.parent, older)
    with pytest.raises(CheckFailed, match="older copy"):
        Library(older / "library.db", NETWORK, at_work=True)
    shutil.copytree(path.parent, tmp_path / "copy")
    with pytest.raises(CheckFailed, match="is a copy of"):
        Library(tmp_path / "copy" / "library.db", NETWORK, at_work=True)
    shutil.rmtree(path.parent)
    older.rename(path.parent)
    with pytest.raises(CheckFailed, match="older copy"):
        Library(path, NETWORK, at_work=True)
