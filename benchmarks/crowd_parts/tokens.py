"""Issuing and redeeming anonymous tokens, against RSA-PSS as `cryptography` does it.

The peer signs or verifies with the same key and nothing else. Ours, issuing: one blinded message,
read, checked, signed. Redeeming: one token, read, verified, looked up among those already used and
noted. Processor time; the sides take turns, medians are compared.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from statistics import median

from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.serialization import load_der_private_key

from tacit.cli.bench import Row
from tacit.crypto.blind_signatures import Token, TokenKey
from tacit.errors import CheckFailed

BITS = (2048, 3072)
PEOPLE = 40
TURNS = 9
REPEATS = 20  # a verification takes a twentieth of the time of a signature
REPORT = bytes(64)
PADDING = PSS(MGF1(SHA384()), 48)
PEER_NAME = "cryptography's RSA-PSS"
REDEEM_BAR, ISSUE_BAR = 0.7, 0.25

Run = Callable[[], object]


def rows(say: Callable[[str], None]) -> Iterator[Row]:
    for bits in BITS:
        say(f"tokens of {bits} bits, {TURNS} turns …")
        yield from _rows(bits)


def _rows(bits: int) -> Iterator[Row]:
    key = TokenKey.generate(bits)
    bare = load_der_private_key(key.to_bytes(), None)
    assert isinstance(bare, RSAPrivateKey)
    public = bare.public_key()
    requests = [key.public.blind(REPORT) for _ in range(PEOPLE)]
    tokens = [request.finalize(key.sign_blinded(request.blinded)) for request in requests]
    bodies = [token.to_bytes() for token in tokens]
    signed = [(token.signature, token.prefix + REPORT) for token in tokens]
    issue, sign, redeem, verify = _medians(
        lambda: [key.sign_blinded(request.blinded) for request in requests],
        lambda: [bare.sign(REPORT, PADDING, SHA384()) for _ in requests],
        lambda: [_redeem(key, bodies) for _ in range(REPEATS)],
        lambda: [public.verify(*each, PADDING, SHA384()) for each in signed * REPEATS],
    )
    yield Row(f"issue {bits} bits: tokens/s", issue, sign, PEER_NAME, ISSUE_BAR)
    rates = redeem * REPEATS, verify * REPEATS
    yield Row(f"redeem {bits} bits: tokens/s", *rates, PEER_NAME, REDEEM_BAR)


def _redeem(key: TokenKey, bodies: list[bytes]) -> None:
    used: set[bytes] = set()
    for body in bodies:
        place = hashlib.sha256(body).digest()
        if place in used or not key.public.verify(REPORT, Token.from_bytes(body)):
            raise CheckFailed("a good token was refused: report this.")
        used.add(place)


def _medians(*runs: Run) -> list[float]:
    """How often `PEOPLE` fits into a second of each run, by turns."""
    seconds: list[list[float]] = [[] for _ in runs]
    for _ in range(TURNS):
        for taken, run in zip(seconds, runs, strict=True):
            start = time.process_time()
            run()
            taken.append(time.process_time() - start)
    return [PEOPLE / median(taken) for taken in seconds]
