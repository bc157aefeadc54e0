"""Keystreams: known answers, widths, and independence of children."""

from __future__ import annotations

import multiprocessing
import os

import numpy as np
import pytest

from tacit.crypto.prg import SYSTEM, DerivedRandomness, Keystream, SeededRandomness


def test_known_answer() -> None:
    """AES-128-CTR of zeros is AES of the counter: FIPS-197, appendix C.1."""
    key = bytes(range(16))
    counter = bytes.fromhex("00112233445566778899aabbccddeeff")
    assert Keystream(key + counter).bytes(16).hex() == "69c4e0d86a7b0430d8cdb78070b4c55a"


def test_pieces_are_one_stream() -> None:
    seed = bytes(32)
    whole = Keystream(seed).bytes(1_000_003)
    stream = Keystream(seed)
    parts = stream.words(10, np.uint64).tobytes() + stream.words(1, np.uint8).tobytes()
    assert whole.startswith(parts + stream.bytes(700_000))


def test_integers_are_uniform_in_range() -> None:
    stream = Keystream(bytes(32))
    drawn = [stream.below(5) for _ in range(2000)]
    assert set(drawn) == set(range(5))
    assert min(np.bincount(drawn)) > 300
    assert all(stream.integer(3) < 8 for _ in range(100))
    assert stream.below(1) == 0


def test_a_seed_has_32_bytes() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Keystream(b"short")


def test_only_the_system_is_secure() -> None:
    assert SYSTEM.secure
    assert not SeededRandomness(1).secure


def _draw(queue: multiprocessing.Queue) -> None:  # type: ignore[type-arg]
    queue.put(SYSTEM.stream().bytes(16))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_repeat_its_parent() -> None:
    SYSTEM.stream().bytes(16)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=_draw, args=(queue,)) for _ in range(2)]
    for child in children:
        child.start()
    drawn = [queue.get(timeout=60) for _ in children]
    for child in children:
        child.join(timeout=60)
    assert len({*drawn, SYSTEM.stream().bytes(16)}) == 3


def test_a_question_has_one_stream_for_ever_and_each_its_own() -> None:
    secret, other = bytes(range(32)), bytes(32)
    draws = {
        DerivedRandomness.for_question(key, question).stream().bytes(32)
        for key in (secret, other)
        for question in (b"", b"a", b"b", b"ab")
        for _ in range(3)
    }
    assert len(draws) == 8
    assert DerivedRandomness.for_question(secret, b"a").secure
    with pytest.raises(ValueError, match="32 bytes"):
        DerivedRandomness.for_question(b"short", b"a")
