"""One model of 124 numbers from each of K parties, added under encryption, against phe.

Both sides hold the same key of 3072 bits and use gmpy2. phe encrypts element by element, once: its
total for K parties is K times that, plus a sum of K terms and one decryption, both measured. tacit
packs and does everything K times. Processor time; the sides take turns, medians are compared. Each
side also decrypts ciphertexts of the other. phe is under the GPL: it has an environment of its own,
.bench/phe, made at the first use.
"""

from __future__ import annotations

import json
import sys
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit import children
from tacit.cli.bench import Row
from tacit.crypto.packing import Packing
from tacit.crypto.paillier import PrivateKey, PublicKey
from tacit.errors import CheckFailed, Unreachable

ROOT = Path(__file__).resolve().parent.parent
PEER = ["phe==1.5.0", "gmpy2"]
PEER_NAME = "phe 1.5"
SIZE = 124
VALUE_BITS, TERMS = 56, 256
BARS = {5: 200.0, 50: 350.0}
FIRST_BAR = 30.0
TURNS = 3
SIGNED = [0, 1, -1, 2**55, -(2**55)]  # what the two sides read in each other's ciphertexts


def rows(say: Callable[[str], None]) -> Iterator[Row]:
    python = _environment(say)
    say("one key of 3072 bits for both sides …")
    key = PrivateKey.generate(3072)
    packing = Packing(key.public.bits, VALUE_BITS, TERMS)
    vectors = np.random.default_rng(1).integers(-(2**55), 2**55, (max(BARS), SIZE))
    ours: dict[Any, list[float]] = {what: [] for what in ("first", *BARS)}
    theirs: dict[Any, list[float]] = {what: [] for what in ("first", *BARS)}
    for turn in range(TURNS):
        say(f"turn {turn + 1} of {TURNS} …")
        answer = _peer(python, key, vectors[0])
        theirs["first"].append(answer["encrypt"])
        ours["first"].append(_first_use(key, packing, vectors[0]))
        for parties in BARS:
            once = answer["add"][str(parties)] + answer["decrypt"]
            theirs[parties].append(parties * answer["encrypt"] + once)
            ours[parties].append(_whole_job(key, packing, vectors[:parties]))
    # Bars are on rates, so that more is better: vectors or jobs in a second of processor time.
    for parties, bar in BARS.items():
        yield _row(f"encrypt, add, decrypt, K = {parties}: jobs/s", ours, theirs, parties, bar)
    what = "encrypt one vector, table built in the same time: vectors/s"
    yield _row(what, ours, theirs, "first", FIRST_BAR)


def _row(what: str, ours: dict[Any, Any], theirs: dict[Any, Any], case: object, bar: float) -> Row:
    return Row(what, 1 / median(ours[case]), 1 / median(theirs[case]), PEER_NAME, bar)


def _whole_job(key: PrivateKey, packing: Packing, vectors: NDArray[np.int64]) -> float:
    """All parties and the curator, in this process. The key's table is there: it serves a study."""
    key.public.encrypt([0])
    start = time.process_time()
    encrypted = [key.public.encrypt(packing.pack(vector)) for vector in vectors]
    total = key.public.add(*encrypted)
    opened = packing.unpack(key.decrypt(total), SIZE, len(vectors))
    seconds = time.process_time() - start
    if opened.tolist() != vectors.sum(axis=0).tolist():
        raise CheckFailed("the decrypted sum is not the sum of the vectors: report this.")
    return seconds


def _first_use(key: PrivateKey, packing: Packing, vector: NDArray[np.int64]) -> float:
    """A party that has just received the key, checks it, and encrypts one vector."""
    body = key.public.to_bytes()
    start = time.process_time()
    PublicKey.from_bytes(body).encrypt(packing.pack(vector))
    return time.process_time() - start


def _peer(python: Path, key: PrivateKey, vector: NDArray[np.int64]) -> dict[str, Any]:
    """One turn of phe, which also shows that the two sides read each other's ciphertexts."""
    p, q = key.primes
    asked = {
        "p": p,
        "q": q,
        "vector": vector.tolist(),
        "terms": list(BARS),
        "ciphertexts": [int(c) for c in key.public.encrypt(SIGNED).values],
    }
    script = ROOT / "benchmarks" / "peers" / "phe_vector.py"
    done = children.run(
        [str(python), str(script)],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise CheckFailed(f"{PEER_NAME} did not finish: {done.stderr.strip().splitlines()[-1]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    read = key.decrypt(key.public.ciphertexts(answer["ciphertexts"]))
    if read != vector.tolist() or answer["opened"] != SIGNED:
        raise CheckFailed(f"tacit and {PEER_NAME} do not read each other's ciphertexts.")
    if answer["total"] != (max(BARS) * vector).tolist():
        raise CheckFailed(f"{PEER_NAME} did not add up what it should have.")
    return answer


def _environment(say: Callable[[str], None]) -> Path:
    """The interpreter of .bench/phe, which is stamped when complete."""
    folder = ROOT / ".bench" / "phe"
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    stamp = folder / ".ready"
    if not stamp.exists():
        say(f"making an environment for {PEER_NAME} …")
        venv.create(folder, with_pip=True, clear=True)
        install = [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            *PEER,
        ]
        done = children.run(install, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unreachable(
                f"{PEER_NAME} cannot be installed into .bench/phe: the package index does not "
                "answer, or does not have it. Try again with a network."
            )
        stamp.touch()
    return python
