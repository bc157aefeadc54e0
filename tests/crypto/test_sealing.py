"""Sealed data opens only where it was put, with the passphrase, unchanged."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.crypto.sealing import Locked, OpenSeal, Sealed, locked, unlocked
from tacit.errors import CheckFailed, InputError, Refused

CHEAP = 10
SEAL = Sealed.fresh()


@given(st.binary(max_size=200), st.text(max_size=20))
def test_what_is_closed_opens_again(data: bytes, about: str) -> None:
    closed = SEAL.close(data, about)
    assert SEAL.open(closed, about) == data
    assert closed != SEAL.close(data, about)  # a fresh nonce each time
    assert len(closed) == len(data) + 28


@given(st.binary(min_size=1, max_size=50), st.data())
def test_every_change_is_noticed(data: bytes, draw: st.DataObject) -> None:
    closed = bytearray(SEAL.close(data, "here"))
    place = draw.draw(st.integers(0, len(closed) - 1))
    closed[place] ^= draw.draw(st.integers(1, 255))
    with pytest.raises(CheckFailed):
        SEAL.open(bytes(closed), "here")


def test_a_piece_opens_only_in_its_place() -> None:
    closed = SEAL.close(b"data", "segment 1")
    with pytest.raises(CheckFailed):
        SEAL.open(closed, "segment 2")
    with pytest.raises(CheckFailed):
        Sealed.fresh().open(closed, "segment 1")
    with pytest.raises(CheckFailed):
        SEAL.open(closed[:5], "segment 1")


def test_a_passphrase_opens_the_key_and_another_does_not() -> None:
    lock = locked(SEAL, "correct horse", CHEAP)
    assert unlocked(lock, "correct horse").open(SEAL.close(b"x", "a"), "a") == b"x"
    with pytest.raises(Refused, match="not the passphrase"):
        unlocked(lock, "correct horze")
    with pytest.raises(InputError, match="empty"):
        locked(SEAL, "", CHEAP)


def test_a_lock_that_was_changed_costs_nothing_and_does_not_open() -> None:
    lock = locked(SEAL, "p", CHEAP)
    for worse in (
        msgspec.structs.replace(lock, cost=60),
        msgspec.structs.replace(lock, cost=0),
        Locked(b"", CHEAP, lock.key),
    ):
        with pytest.raises(CheckFailed):
            unlocked(worse, "p")


def test_no_passphrase_means_in_the_clear() -> None:
    assert OpenSeal().open(OpenSeal().close(b"x", "a"), "b") == b"x"
