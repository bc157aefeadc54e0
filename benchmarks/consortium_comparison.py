"""Secure comparison, in processor time of both sides, against the protocol as it was published.

The peer is a floor under Damgård, Geisler and Krøigaard's protocol of 2007 on bits: its powers
alone, by GMP, with orders of the same length, no table and nothing else. Variants take turns in one
process, and medians of the turns are compared. Fifty parties are reckoned from a batch, since every
pair costs the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median

import gmpy2

from tacit.cli.bench import Row
from tacit.crypto.comparison import answer_signs, begin_signs, cost, finish_signs
from tacit.crypto.dgk import ORDER_BITS, PLAINTEXTS, SIZES, PrivateKey
from tacit.crypto.minimum import answer_minimum, begin_minimum, finish_minimum, minimum_cost
from tacit.crypto.prg import SYSTEM

TURNS = 5
BATCH = 20  # comparisons of one turn
BITS = 32  # the published protocol asks for each bit, and answers with one ciphertext more
SECONDS = 60.0  # what fifty parties may take on one core
PUBLISHED = "published, powers alone"

Run = Callable[[], object]


def rows(say: Callable[[str], None]) -> Iterator[Row]:
    for bits in SIZES:
        say(f"comparisons under {bits} bits, {TURNS} turns of {BATCH} …")
        yield from _comparisons(PrivateKey.generate(bits), say)


def _comparisons(key: PrivateKey, say: Callable[[str], None]) -> Iterator[Row]:
    bits = key.public.bits
    shares = [SYSTEM.stream().below(1 << 32) for _ in range(BATCH)]
    ours, published, five = _medians(
        lambda: _compared(key, shares), lambda: _published(key), lambda: _minimum(key, shares[:5])
    )
    each = ours / BATCH
    yield Row(f"{bits} bits, one comparison: s", each, published, PUBLISHED, 0.2, at_most=True)
    once, before = cost(1, bits), (2 * BITS + 1) * bits // 8
    size = once.question_bytes + once.answer_bytes
    yield Row(f"{bits} bits, one comparison: bytes", size, before, PUBLISHED, 1.01, at_most=True)
    pairs = minimum_cost(5, bits).comparisons
    what = f"{bits} bits, minimum of 5, all {pairs} pairs: s"
    yield Row(what, five, pairs * published, PUBLISHED, 0.2, at_most=True)
    fifty = minimum_cost(50, bits)
    what = f"{bits} bits, minimum of 50, all {fifty.comparisons} pairs, reckoned: s"
    yield Row(what, fifty.comparisons * each, SECONDS, "a minute", 1.0, at_most=True)
    say(
        f"minimum of 50 under {bits} bits: {fifty.question_bytes / 1e6:.1f} MB from the curator, "
        f"{fifty.answer_bytes / 1e6:.1f} MB from the parties, reckoned from {BATCH} comparisons."
    )


def _compared(key: PrivateKey, shares: list[int]) -> None:
    reply = answer_signs(key.public, begin_signs(key, shares), shares[::-1])
    finish_signs(key, reply, shares)


def _minimum(key: PrivateKey, shares: list[int]) -> None:
    others = [(i - share) % (1 << 32) for i, share in enumerate(shares)]
    reply = answer_minimum(key.public, begin_minimum(key, shares), others)
    assert finish_minimum(key, reply, shares) == 0


def _published(key: PrivateKey) -> None:
    """Of one comparison: bits encrypted, numbers blinded and masked, each tested for zero."""
    public, stream = key.public, SYSTEM.stream()
    p, _, v_p, _ = key.secrets
    long = 5 * ORDER_BITS // 2  # the length of r in the paper
    for _ in range(BITS):
        gmpy2.powmod(public.h, stream.integer(long), public.n)
    for _ in range(BITS + 1):
        mask = gmpy2.powmod(public.h, stream.integer(long), public.n)
        gmpy2.powmod(mask, 1 + stream.below(PLAINTEXTS - 1), public.n)
        gmpy2.powmod(mask % p, v_p, p)


def _medians(*runs: Run) -> list[float]:
    turns = [[_seconds(run) for run in runs] for _ in range(TURNS)]
    return [median(side) for side in zip(*turns, strict=True)]


def _seconds(run: Run) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start
