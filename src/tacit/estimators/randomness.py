"""Repeatable randomness that two data sets never share.

With one seed for two neighbouring data sets, the same noise lies around both results: their
difference has none, also for those who do not know the seed. So the noise follows from the seed
*and* from a digest of all that the result depends on: the records, the labels, the promise, the
program with its settings, and the bounds and classes that were stated. Whoever knows the seed can
still draw the noise again, so that no promise holds; the certificate says so.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from tacit.crypto.prg import SYSTEM, Randomness, SeededRandomness
from tacit.crypto.signing import canonical
from tacit.errors import InputError
from tacit.privacy.promise import Promise
from tacit.programs.program import Learner
from tacit.programs.settings import plain_settings

__all__ = ["RunDigest", "randomness_of"]

ROWS = 4096  # at a time
SEED_BYTES = 16  # drawn from a generator that was given


class RunDigest:
    """SHA-256 of all that the result of a fit depends on.

    What means the same has the same bytes: numbers are 64-bit floats and minus zero is zero, so
    that neither the array's type nor its layout changes the noise.
    """

    def __init__(self, estimator: str, program: Learner, promise: Promise) -> None:
        self._hash = hashlib.sha256()
        settings = {name: repr(value) for name, value in plain_settings(program).items()}
        self.add(
            {
                "estimator": estimator,
                "program": f"{program.name} {program.version}",
                "settings": settings,
                "promise": _spelt(promise),
            }
        )

    def add(self, document: Any) -> None:
        """Plain data: texts, None, and lists or mappings of these."""
        self._framed("document", canonical(document))

    def add_numbers(self, numbers: NDArray[Any]) -> None:
        self.add({"shape": list(numbers.shape)})
        for start in range(0, len(numbers), ROWS):
            part = numbers[start : start + ROWS]
            plain = np.ascontiguousarray(part, dtype="<f8") + 0.0  # minus zero becomes zero
            self._framed("numbers", plain.tobytes())

    def _framed(self, kind: str, data: bytes) -> None:
        """With kind and length first, so that no two sequences have the same bytes."""
        self._hash.update(f"{kind} {len(data)}\n".encode())
        self._hash.update(data)

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


def _spelt(promise: Promise) -> str:
    """All digits of it: two promises never share their noise."""
    numbers = f"epsilon={promise.epsilon!r}, delta={promise.delta!r}"
    return f"Promise({numbers}, unit={promise.unit!r}, adjacency={promise.adjacency!r})"


def randomness_of(random_state: Any, digest: RunDigest) -> Randomness:
    """None is the system's; a number, or a generator of numpy's, is repeatable and not secure.

    A generator is read from, as everywhere in scikit-learn: two fits with it differ.
    """
    if random_state is None:
        return SYSTEM
    try:
        generator = check_random_state(random_state)
    except ValueError:
        raise InputError(
            "random_state, the seed, must be None, a whole number from 0 to 2**32 - 1, or a "
            "numpy.random.RandomState."
        ) from None
    if isinstance(random_state, (int, np.integer)):
        seed = str(int(random_state))
    else:
        seed = generator.bytes(SEED_BYTES).hex()
    return SeededRandomness(f"{seed} {digest.hexdigest()}")
