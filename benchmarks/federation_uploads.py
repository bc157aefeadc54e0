"""A server's round of 1,000 holders over TLS, against the same transport doing nothing.

One server process (of the study's two), as `tacit serve server` runs it: signatures verified,
shares on the disk before they are answered, the noisy sum at the end. The peer is the same service
under a route that reads the same bytes and answers a constant. Each holder has a key and a fresh
TLS connection of its own, as institutions do. The load is another process on another core, and a
client costs as much as the receiver: it hides some of the difference. So the receiver's processor
time, which no waiting hides, is said beside the row, as is the same on kept connections, where
there is no handshake to hide behind.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tacit import children
from tacit.cli.bench import Row

HOLDERS, LENGTHS, TURNS, KEPT_TURNS = 1000, (124, 10_000), 5, 3
BAR = 1.5
HERE = Path(__file__).parent
PEER = "the same, doing nothing"

Say = Callable[[str], None]


class Took(NamedTuple):
    seconds: float  # from the first connection to the last answer
    processor: float  # of the receiver


def rows(say: Say) -> Iterator[Row]:
    for length in LENGTHS:
        say(f"{HOLDERS:,} holders × {length:,}, fresh TLS connections, {TURNS} turns each …")
        ours, peer = _compared(length, "fresh", TURNS)
        say(_words("fresh", ours, peer))
        what = f"{HOLDERS:,} × {length:,} over fresh TLS: s"
        yield Row(what, ours.seconds, peer.seconds, PEER, BAR, at_most=True)
        say(_words("kept", *_compared(length, "kept", KEPT_TURNS)))


def _words(mode: str, ours: Took, peer: Took) -> str:
    return (
        f"{mode} connections: {HOLDERS / ours.seconds:,.0f} uploads/s, doing nothing "
        f"{HOLDERS / peer.seconds:,.0f}: {ours.seconds / peer.seconds:.2f} × the time, "
        f"{ours.processor / peer.processor:.2f} × the receiver's processor time "
        f"({1e3 * ours.processor / HOLDERS:.2f} and {1e3 * peer.processor / HOLDERS:.2f} ms each)"
    )


def _compared(length: int, mode: str, turns: int) -> tuple[Took, Took]:
    pairs = [
        (_once("ours", HOLDERS, length, mode), _once("nothing", HOLDERS, length, mode))
        for _ in range(turns)
    ]
    ours, peer = zip(*pairs, strict=True)
    return _median(ours), _median(peer)


def _median(turns: tuple[Took, ...]) -> Took:
    return Took(median(t.seconds for t in turns), median(t.processor for t in turns))


def _once(kind: str, holders: int, length: int, mode: str) -> Took:
    """A receiver and a load, started anew: the shares of another round would be known already."""
    with _process("receive", kind, holders, length) as receiver:
        port = _said(receiver)["port"]
        with _process("upload", port, holders, length, mode) as load:
            told = _said(load)
        assert receiver.stdin is not None
        receiver.stdin.write("stop\n")
        receiver.stdin.flush()
        processor = _said(receiver)["processor"]
    assert told["stored"] == holders, "the receiver refused shares"
    assert kind == "nothing" or 0 < told["noise"] < 2**40, "the sum is not that of the shares"
    return Took(told["seconds"], processor)


def _process(module: str, *words: object) -> subprocess.Popen[str]:
    return children.start(
        [sys.executable, "-m", f"federation_parts.{module}", *map(str, words)],
        cwd=HERE,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def _said(process: subprocess.Popen[str]) -> dict[str, float]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"{process.args!r} ended without an answer")
    found: dict[str, float] = json.loads(line)
    return found
