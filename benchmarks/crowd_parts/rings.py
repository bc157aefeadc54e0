"""Ring signatures of 100 members, against the multiplications that they cannot do without.

The peer is one multiple of the base point and three of other points for each member, by the same
library, in the same turn. Processor time; medians of the turns are compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median

from nacl.bindings import (
    crypto_scalarmult_ed25519_base_noclamp,
    crypto_scalarmult_ed25519_noclamp,
)

from tacit.cli.bench import Row
from tacit.crypto.ring_signatures import RingSignature, ring_sign
from tacit.crypto.signing import SigningKey
from tacit.errors import CheckFailed

MEMBERS = 100
TURNS = 9
EVENT, REPORT = b"study, question", bytes(64)
BAR = 1.5
PEER_NAME = "its multiplications"

Run = Callable[[], object]


def rows(say: Callable[[str], None]) -> Iterator[Row]:
    say(f"rings of {MEMBERS}, {TURNS} turns …")
    keys = [SigningKey.generate() for _ in range(MEMBERS)]
    ring = [key.public_key for key in keys]
    body = ring_sign(keys[0], ring, EVENT, REPORT).to_bytes()
    bare, sign, verify = _medians(
        lambda: _multiplications(ring, RingSignature.from_bytes(body)),
        lambda: ring_sign(keys[MEMBERS // 2], ring, EVENT, REPORT).to_bytes(),
        lambda: _verified(body, ring),
    )
    yield Row(f"sign in a ring of {MEMBERS}: s", sign, bare, PEER_NAME, BAR, at_most=True)
    yield Row(f"verify in a ring of {MEMBERS}: s", verify, bare, PEER_NAME, BAR, at_most=True)


def _multiplications(ring: list[str], signature: RingSignature) -> None:
    for key, response in zip(ring, signature.responses, strict=True):
        crypto_scalarmult_ed25519_base_noclamp(response)
        crypto_scalarmult_ed25519_noclamp(response, bytes.fromhex(key))
        crypto_scalarmult_ed25519_noclamp(response, signature.tag)
        crypto_scalarmult_ed25519_noclamp(signature.challenge, signature.tag)


def _verified(body: bytes, ring: list[str]) -> None:
    if not RingSignature.from_bytes(body).verify(ring, EVENT, REPORT):
        raise CheckFailed("a good ring signature was refused: report this.")


def _medians(*runs: Run) -> list[float]:
    seconds: list[list[float]] = [[] for _ in runs]
    for _ in range(TURNS):
        for taken, run in zip(seconds, runs, strict=True):
            start = time.process_time()
            run()
            taken.append(time.process_time() - start)
    return [median(taken) for taken in seconds]
