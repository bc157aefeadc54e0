"""Both sides of a protocol, spoken to directly, with all that was said written down."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from types import SimpleNamespace
from typing import Any, Literal

import msgspec
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from numpy.typing import NDArray

from tacit.channels.consortium import published_curator, published_party
from tacit.channels.consortium.local import consortium_study
from tacit.channels.consortium.local_model import Local
from tacit.channels.consortium.protocols import curator_side, party_side, terms_of
from tacit.channels.studies.study import Consortium, Study, TakePart
from tacit.crypto import dgk, paillier
from tacit.crypto.prg import DerivedRandomness, Randomness, SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.data.encode import Encoded
from tacit.data.schema import Column, Schema
from tacit.errors import UsageError
from tacit.privacy.bound import Bound, Norm
from tacit.privacy.promise import Promise, Unit
from tacit.programs.averaging import Averaged
from tacit.programs.files import from_bytes

SCHEMA = Schema(columns=(Column(name="place", type="number", bounds=(0.0, 1e6)),))


def _key(number: int) -> SigningKey:
    """The same in every run, so that what depends on public keys is too."""
    return SigningKey(Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32))


KEYS = sorted((_key(i) for i in range(1, 9)), key=lambda key: key.public_key)
CURATOR = _key(100)

Letters = dict[str, bytes]
Change = Callable[[int, Letters], Letters]


@dataclass(frozen=True, slots=True)
class Mean:
    values: NDArray[np.float64]


class VectorAverage(Averaged):
    """Vectors of a given length in [−1, 1]; one of n records moves them by 2/n."""

    name = "vector-average"
    models = (Mean,)

    def __init__(self, size: int) -> None:
        self.size = size

    def length(self, schema: Schema) -> int:
        return self.size

    def largest(self, schema: Schema) -> float:
        return 1.0

    def train(self, records: Encoded, schema: Schema) -> NDArray[np.float64]:
        raise NotImplementedError

    def bound(self, smallest: int, unit: Unit = Unit.RECORD) -> Bound:
        if unit is Unit.HOLDER:  # no vector is longer than the root of its length
            return Bound(Norm.L2, Fraction(2 * math.isqrt(self.size) + 2))
        return Bound(Norm.L2, 2 / smallest)  # type: ignore[arg-type]

    def model(self, average: NDArray[np.float64], schema: Schema) -> Mean:
        return Mean(average)

    def vector(self, model: Mean, schema: Schema) -> NDArray[np.float64]:
        return model.values


def study_of(
    protocol: Literal["joint", "as-published"],
    parties: int,
    size: int,
    promise: Promise,
    records: int = 10_000,
) -> Study:
    program = VectorAverage(size)
    terms = Consortium(protocol=protocol, colluding=0, smallest=1, key_bits=2048)
    study = consortium_study(program, KEYS[:parties], CURATOR, SCHEMA, promise, terms)
    study = msgspec.structs.replace(
        study, take_part=TakePart(minimum=parties, maximum=parties, records=records)
    )
    study.__dict__["_averaged"] = program  # where cached_property looks
    return study


@dataclass
class Talk:
    """All bodies and answers of a run, by step (from 1)."""

    study: Study
    terms: Any
    bodies: dict[int, Letters] = field(default_factory=dict)
    answers: dict[int, Letters] = field(default_factory=dict)
    model: bytes | None = None

    @property
    def total(self) -> NDArray[np.int64]:
        """K times the released model, in grid steps."""
        assert self.model is not None
        mean = from_bytes((Mean,), self.model).values
        return np.rint(mean * len(self.terms.roster) / float(self.terms.grid.step)).astype(np.int64)


def party_seed(seed: int, place: int) -> bytes:
    return f"party {place} of run {seed}".encode().ljust(32, b".")


@cache
def fixed(owner: str) -> paillier.PrivateKey:
    """A key made once for all runs: finding primes is most of the work of a short one."""
    return paillier.PrivateKey.generate(2048, SeededRandomness(owner))


@cache
def fixed_comparison() -> dgk.PrivateKey:
    return dgk.PrivateKey.generate(2048, SeededRandomness("comparison"))


def fix_keys(patch: pytest.MonkeyPatch) -> None:
    """The curator and the parties have the same keys in every run, with their tables."""

    class Parties:
        def __call__(self, p: int, q: int) -> paillier.PrivateKey:
            if (p, q) != fixed("parties").primes:
                raise UsageError("not two primes")
            return fixed("parties")

        def generate(self, bits: int, randomness: Randomness) -> paillier.PrivateKey:
            return fixed("parties")

    def known(body: bytes) -> paillier.PublicKey:
        keys = (fixed("curator").public, fixed("parties").public)
        found = next((key for key in keys if key.to_bytes() == body), None)
        return found or paillier.PublicKey.from_bytes(body)

    publics = SimpleNamespace(from_bytes=known)
    curator = SimpleNamespace(generate=lambda bits, randomness: fixed("curator"))
    comparison = SimpleNamespace(generate=lambda bits, randomness: fixed_comparison())
    patch.setattr(
        published_party, "paillier", SimpleNamespace(PrivateKey=Parties(), PublicKey=publics)
    )
    patch.setattr(
        published_curator, "paillier", SimpleNamespace(PrivateKey=curator, PublicKey=publics)
    )
    patch.setattr(published_curator, "dgk", SimpleNamespace(PrivateKey=comparison))


def same(step: int, letters: Letters) -> Letters:
    return letters


def talk(
    study: Study,
    locals_: Sequence[Local],
    seed: int = 0,
    until: int | None = None,
    sent: Change = same,
    told: Change = same,
) -> Talk:
    """A run from a seed; `sent` and `told` may change what travels to and from the curator."""
    keys = KEYS[: len(locals_)]
    terms = terms_of(study, tuple(key.public_key for key in keys))
    found = Talk(study, terms)
    sides = {
        key.public_key: party_side(
            study, terms, 1, key, local, DerivedRandomness(party_seed(seed, place))
        )
        for place, (key, local) in enumerate(zip(keys, locals_, strict=True))
    }
    own = DerivedRandomness(f"curator of run {seed}".encode().ljust(32, b"."))
    curator = curator_side(study, terms, 1, own)
    answers = dict.fromkeys(sides, b"")
    for step in range(1, (until or terms.steps) + 1):
        bodies = {party: side.send(step, answers[party]) for party, side in sides.items()}
        found.bodies[step] = bodies = sent(step, bodies)
        if step < terms.steps:
            found.answers[step] = answers = told(step, curator.answer(step, bodies))
        else:
            found.model = curator.result(bodies)
    return found
