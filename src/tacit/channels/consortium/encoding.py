"""What a party encodes in an attempt, and the randomness that belongs to it and to nothing else.

The rule: no randomness is ever used around two different values. Two letters with the same masks
and the same noise around two vectors differ by exactly the difference of the vectors, without
noise. So the draws of an attempt are a function of a journaled secret seed *and* of all that they
are made around: other records, another roster or another version of tacit have other draws,
independent of the first (joint.md). The journal also knows a digest of it, so that a party that was
restarted sees the change and gives the attempt up, instead of saying something else in the middle.
"""

from __future__ import annotations

import hashlib
import hmac

import numpy as np

from tacit import __version__
from tacit.channels.consortium.local_model import Local
from tacit.channels.consortium.terms import Terms
from tacit.crypto.prg import DerivedRandomness
from tacit.crypto.signing import canonical

__all__ = ["encoding_of", "randomness_for"]

PROTOCOL = 2  # what is derived from the draws, and how: counted up with every change


def encoding_of(terms: Terms, attempt: int, local: Local) -> bytes:
    """All that a party's draws of one attempt are made around. Private: its digest is keyed."""
    vector = np.asarray(terms.encoded(local.vector), dtype="<i8").tobytes()
    about = [__version__, PROTOCOL, terms.study.digest, attempt, list(terms.roster), local.records]
    return canonical([*about, vector.hex()])


def randomness_for(seed: bytes, encoding: bytes) -> DerivedRandomness:
    """The draws around this encoding: HMAC-SHA256 under the secret seed is a pseudorandom function,
    so those around any two encodings are independent to everyone who does not have the seed."""
    return DerivedRandomness(hmac.new(seed, encoding, hashlib.sha256).digest())
