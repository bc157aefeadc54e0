"""Onions, in processor time, against the bare sealings and openings that they are made of.

The peer is HPKE of `cryptography` on contents of the same lengths, with keys parsed beforehand. The
innermost layer is the collector's, so three layers are a circuit of two relays. Variants take turns
in one process, and medians of the turns are compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import get_args

from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, MLKEM768X25519PrivateKey, Suite

from tacit.cli.bench import Row
from tacit.crypto.onion import Hop, Kem, OnionKey, Shape, peel, wrap

TURNS = 41
REPEATS = 40  # in one turn
PAYLOAD = bytes(512)
CONTEXT = bytes(40)
INFO = bytes(86)  # as long as a layer's
SHAPES = {"x25519": KEM.X25519, "hybrid": KEM.MLKEM768_X25519}

Run = Callable[[], object]


def rows(say: Callable[[str], None]) -> Iterator[Row]:
    kem: Kem
    for kem in get_args(Kem):
        say(f"onions around {len(PAYLOAD)} bytes, {kem}, {TURNS} turns …")
        yield from _layers(kem, 3)


def _layers(kem: Kem, layers: int) -> Iterator[Row]:
    shape = Shape(kem, layers - 1, len(PAYLOAD))
    keys = [OnionKey.generate(kem) for _ in range(layers)]
    route = [Hop(place, key.public) for place, key in enumerate(keys[:-1])]
    packet = wrap(shape, CONTEXT, route, keys[-1].public, PAYLOAD)
    suite, secret = Suite(SHAPES[kem], KDF.HKDF_SHA256, AEAD.AES_128_GCM), _secret(kem)
    public = secret.public_key()
    outermost = shape.sealed_bytes(0)
    added = outermost - shape.sealed_bytes(1)  # by a layer and its address
    contents = [bytes(outermost - added * (place + 1) + 1) for place in range(layers)]
    sealed = suite.encrypt(contents[0], public, info=INFO)
    assert len(sealed) == outermost
    built, seals, opened, bare = _medians(
        lambda: wrap(shape, CONTEXT, route, keys[-1].public, PAYLOAD),
        lambda: [suite.encrypt(content, public, info=INFO) for content in contents],
        lambda: peel(shape, CONTEXT, keys[0], packet),
        lambda: suite.decrypt(sealed, secret, info=INFO),
    )
    named = f"{layers} layers, {kem}"
    yield Row(f"build {named}: s", built, seals, f"{layers} bare seals", 1.3, at_most=True)
    yield Row(f"open one of {named}: s", opened, bare, "a bare open", 1.3, at_most=True)


def _secret(kem: Kem) -> X25519PrivateKey | MLKEM768X25519PrivateKey:
    curve = X25519PrivateKey.generate()
    if kem == "x25519":
        return curve
    return MLKEM768X25519PrivateKey(MLKEM768PrivateKey.generate(), curve)


def _medians(*runs: Run) -> list[float]:
    turns = [[_seconds(run) for run in runs] for _ in range(TURNS)]
    return [median(side) for side in zip(*turns, strict=True)]


def _seconds(run: Run) -> float:
    start = time.process_time()
    for _ in range(REPEATS):
        run()
    return (time.process_time() - start) / REPEATS
