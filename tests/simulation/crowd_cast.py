"""Who is in a simulated crowd, and with which rows: all keys follow from a seed.

Only what seals the layers of a packet is fresh in every run, and no decision rests on it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import gmpy2
import numpy as np
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tacit.channels.crowd.plan import PlanTerms
from tacit.channels.crowd.proposal import Proposal
from tacit.channels.crowd.propose import Draft
from tacit.channels.crowd.secrets import Secrets
from tacit.channels.crowd.terms import CrowdTerms, Group, RelayCard, Route, Windows
from tacit.crypto.blind_signatures import TokenKey
from tacit.crypto.lots import commitment
from tacit.crypto.onion import Kem, OnionKey
from tacit.crypto.signing import SigningKey
from tacit.data.batch import Batch
from tacit.data.schema import Column, Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", type="integer", bounds=(0, 100), edges=(30, 60)),
        Column(name="smokes", type="boolean"),
        Column(name="town", type="category", categories=("north", "south", "west")),
        Column(name="ill", type="boolean", role="label"),
    )
)
UNCUT = Schema(
    columns=(
        Column(name="age", type="integer", bounds=(0, 100)),
        *SCHEMA.columns[1:],
    )
)
EXPONENT = 65537


def secret(*about: object) -> bytes:
    """32 bytes that follow from what they are for."""
    return hashlib.sha256(repr(about).encode()).digest()


def identity(*about: object) -> SigningKey:
    return SigningKey(Ed25519PrivateKey.from_private_bytes(secret("identity", *about)))


def onion_key(kem: Kem, *about: object) -> OnionKey:
    lattice = secret("lattice", *about) + secret("lattice again", *about)
    curve = secret("curve", *about)
    return OnionKey.from_bytes(curve if kem == "x25519" else lattice + curve)


@lru_cache
def token_key(number: int) -> TokenKey:
    """Keys of the first, second … question, the same in every study: making them takes time."""
    p, q = (_prime(number, which) for which in "pq")
    d = int(gmpy2.invert(EXPONENT, (p - 1) * (q - 1)))
    numbers = rsa.RSAPrivateNumbers(
        p=p,
        q=q,
        d=d,
        dmp1=d % (p - 1),
        dmq1=d % (q - 1),
        iqmp=int(gmpy2.invert(q, p)),
        public_numbers=rsa.RSAPublicNumbers(EXPONENT, p * q),
    )
    return TokenKey(numbers.private_key())


def _prime(*about: object) -> int:
    """Of 1024 bits, the upper two of which are set, so that a product has 2048."""
    drawn = b"".join(secret("prime", part, *about) for part in range(4))
    return int(gmpy2.next_prime(int.from_bytes(drawn, "big") | 3 << 1022))


@dataclass
class Cast:
    """Who takes part: the secret halves of everybody's keys."""

    proposal: Proposal
    secrets: Secrets
    collector: SigningKey
    relays: list[tuple[SigningKey, OnionKey]]


def proposed(
    people: int,
    relays: int = 5,
    *,
    seed: int = 0,
    schema: Schema = SCHEMA,
    epsilon: float = 2.0,
    plan: PlanTerms | None = None,
    proof: Literal["tokens", "ring"] = "tokens",
    kem: Kem = "x25519",
    waves: int = 2,
    batch: int = 1,
    release: float = 5.0,
    minimum: int | None = None,
    members: tuple[str, ...] = (),
) -> Cast:
    """A signed proposal for so many people."""
    collector = identity(seed, "collector")
    carriers = [(identity(seed, "relay", i), onion_key(kem, seed, i)) for i in range(relays)]
    draft = Draft(
        name="lungs",
        question="Who falls ill?",
        schema=schema,
        promise=CrowdTerms(epsilon=epsilon),
        group=Group(minimum=minimum or people, maximum=people, proof=proof, members=members),
        windows=Windows(register=1000.0, send=20.0, release=release, waves=waves),
        route=Route(hops=3, kem=kem, batch=batch),
        plan=plan or PlanTerms(),
        relays=tuple(
            RelayCard(
                name=f"relay-{i}",
                address=f"https://127.0.0.1:{9000 + i}",
                key=key.public_key,
                onion=onion.public,
            )
            for i, (key, onion) in enumerate(carriers)
        ),
        address="https://127.0.0.1:8999",
    )
    secrets = Secrets(onion_key(kem, seed, "collector"), secret(seed, "lot"), {})
    if proof == "tokens":
        names = draft.asked(commitment(secrets.seed))
        tokens = {name: token_key(number) for number, name in enumerate(names)}
        secrets = replace(secrets, tokens=tokens)
    return Cast(draft.with_secrets(collector, secrets), secrets, collector, carriers)


def rows(schema: Schema, people: int, seed: int) -> list[Batch]:
    """One row each: who smokes is ill more often."""
    chance = np.random.default_rng(seed)
    age = chance.integers(0, 101, people).astype(np.float64)
    smokes = chance.integers(0, 2, people).astype(np.int32)
    town = chance.integers(0, 3, people).astype(np.int32)
    ill = (chance.random(people) < 0.2 + 0.5 * smokes).astype(np.int32)
    return [
        Batch(
            schema,
            {
                "age": age[i : i + 1],
                "smokes": smokes[i : i + 1],
                "town": town[i : i + 1],
                "ill": ill[i : i + 1],
            },
            1,
        )
        for i in range(people)
    ]
