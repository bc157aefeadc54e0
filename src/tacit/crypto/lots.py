"""Drawing lots that everyone can check and nobody can steer (proof: lots.md).

Each of several parties commits to a seed, before anybody knows whom the lots will fall on, and
reveals it afterwards. The joint seed is a hash of all of them, and every lot follows from it.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.prg import Keystream
from tacit.crypto.sharing import SEED_BYTES
from tacit.errors import InputError, UsageError

__all__ = ["commitment", "joint_seed", "opens", "order"]


def commitment(seed: bytes) -> str:
    """What is published of a fresh seed before it is revealed: it shows nothing and fixes all."""
    _check(seed)
    return hashlib.sha256(b"tacit lots: commitment" + seed).hexdigest()


def opens(committed: str, seed: bytes) -> bool:
    """Whether this is the seed that was committed to; False for anything malformed."""
    if len(seed) != SEED_BYTES or not committed.isascii():
        return False
    return hmac.compare_digest(committed, commitment(seed))


def joint_seed(seeds: Sequence[bytes], context: bytes) -> bytes:
    """The seed of a study's lots, from everyone's revealed seeds in their agreed order.

    `context` is what the lots are about and was fixed before the first seed was revealed: the
    digests of the study and of its roster. All seeds have one length, so that no two lists of seeds
    and contexts are hashed as the same bytes.
    """
    if not seeds:
        raise UsageError("lots need at least one seed: whoever draws alone can steer them.")
    for seed in seeds:
        _check(seed)
    counted = len(seeds).to_bytes(4, "big") + b"".join(seeds)
    return hashlib.sha256(b"tacit lots: joint seed" + counted + context).digest()


def order(seed: bytes, label: str, size: int) -> NDArray[np.int64]:
    """The places 0 … size − 1 in a random order that is the same for everyone with this seed.

    Other labels and other sizes have orders that are independent of this one.
    """
    _check(seed)
    if size < 0:
        raise UsageError(f"lots are drawn for 0 or more places, not {size}.")
    about = size.to_bytes(8, "big") + label.encode()
    stream = Keystream(hashlib.sha256(b"tacit lots: order" + seed + about).digest())
    while True:
        keys = stream.words(size, np.uint64).view("<u8")  # the same numbers on every machine
        places = np.argsort(keys)
        risen = keys[places]
        # Different keys in random order: each order is as likely as any other. Equal ones (once in
        # 30 million draws of a million) would leave it to the sorting; all are drawn again.
        if not (risen[1:] == risen[:-1]).any():
            return places.astype(np.int64)


def _check(seed: bytes) -> None:
    if len(seed) != SEED_BYTES:
        raise InputError(
            f"a seed of lots has {SEED_BYTES} bytes, not {len(seed)}: take fresh_seed."
        )
