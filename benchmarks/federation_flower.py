"""One secure sum of 100 holders, in processor time of all parties, against Flower's SecAgg+.

Flower 1.42.0 has an environment of its own (`.bench/flwr`, made at the first run) and a process of
its own (peers/flower_round.py). It gives no default for the number of neighbours that
hold pieces of a key; its own example takes `num_shares = 3, reconstruction_threshold = 2`, which is
the cheapest it can do and what is compared here; all else is at its defaults (clipping at 8,
2^22 levels, modulus 2^32). A graph so thin comes apart when few collude; a usual one costs Flower
more, which is printed too. SecAgg+ has one server and survives holders that leave half-way; ours
needs two servers of which one is honest, and adds noise as well: it is the same sum, not the same
trust.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from federation_parts.one_round import one_round
from federation_parts.vectors import clipped, study_of, vector_of
from tacit import children
from tacit.channels.federation.letters import Share, context_of
from tacit.channels.roles.letters import read, write
from tacit.channels.studies.study import Study
from tacit.cli.bench import Row
from tacit.crypto.ring import RingSum, from_ring, to_ring
from tacit.crypto.sharing import split
from tacit.programs.contribute import decoded
from tacit.programs.program import Query

HOLDERS, LENGTH, TURNS = 100, 10_000, 5
THIN, USUAL = (3, 2), (21, 14)  # num_shares, reconstruction_threshold
BAR = 0.05  # at least 20 times less
FLOWER = "flwr==1.42.0"
# What SecAgg+ imports, within the ranges that Flower states: not its servers and databases.
NEEDED = (
    "click>=8,<9",
    "cryptography>=50,<51",
    "grpcio>=1.70,<2",
    "grpcio-health-checking>=1.70,<2",
    "httpx>=0.28.1,<1",
    "iterators>=0.0.2,<0.0.3",
    "numpy>=1.26,<3",
    "packaging>=24,<26",
    "pathspec>=1.0.4,<2",
    "protobuf>=5.28,<7",
    "pycryptodome>=3.18,<4",
    "pyyaml>=6.0.2,<7",
    "requests>=2.33,<3",
    "rich>=14,<15",
    "tomli>=2.0.1,<3",
    "tomli-w>=1,<2",
    "typer>=0.13,<0.21",
)
HERE = Path(__file__).parent
PLACE = HERE.parent / ".bench" / "flwr"

Say = Callable[[str], None]


def rows(say: Say) -> Iterator[Row]:
    try:
        python = _environment(say)
    except (subprocess.CalledProcessError, OSError) as error:
        say(f"left out: Flower's environment cannot be made in .bench/flwr ({error}).")
        return
    say(f"{HOLDERS} holders, {LENGTH:,} numbers, {TURNS} turns each …")
    study = study_of(HOLDERS, LENGTH)
    vectors = [vector_of(i, LENGTH) for i in range(HOLDERS)]
    turns = [
        (_seconds(lambda: secure_sum(study, vectors)), flower_seconds(python, *THIN))
        for _ in range(TURNS)
    ]
    ours, theirs = (median(side) for side in zip(*turns, strict=True))
    what = f"sum of {HOLDERS} × {LENGTH:,}, all parties: processor s"
    name = f"SecAgg+, {THIN[0]} shares, threshold {THIN[1]}"
    yield Row(what, ours, theirs, name, BAR, at_most=True)
    whole = one_round(HOLDERS, LENGTH).whole
    say(f"with all that our roles check and store besides: {whole:.2g} s, {whole / theirs:.2f} ×")
    usual = flower_seconds(python, *USUAL)
    say(f"SecAgg+ with {USUAL[0]} shares: {usual:.3g} s, of which ours is 1/{usual / ours:.0f}")


def secure_sum(study: Study, vectors: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The whole way of the numbers: each holder's, each server's and the aggregator's work."""
    query, context = _query(study), context_of(study.digest, 1)
    letters = [_letters(vector, query, context, i) for i, vector in enumerate(vectors)]
    partial = [_partial(study, query, context, received) for received in zip(*letters, strict=True)]
    return decoded(np.add.reduce(partial, dtype=np.int64), query)


def _letters(vector: NDArray[np.float64], query: Query, context: bytes, place: int) -> list[bytes]:
    shares = split(to_ring(clipped(vector, query)), 2, context)
    parts = [
        Share(context, "seed", shares.seeds[0]),
        Share(context, "full", shares.full.astype("<u8").tobytes()),
    ]
    return [write(part) for part in (parts if place % 2 else reversed(parts))]


def _partial(
    study: Study, query: Query, context: bytes, letters: tuple[bytes, ...]
) -> NDArray[np.int64]:
    shares = [read(Share, letter) for letter in letters]
    total = RingSum(query.length)
    total.add([share.body for share in shares if share.form == "full"])
    total.add_seeds([share.body for share in shares if share.form == "seed"], context)
    (mechanism,) = study.levels().charge(1, query)
    return mechanism.perturb(from_ring(total.total))


def _query(study: Study) -> Query:
    return study.plan().stage(1).query


def flower_seconds(
    python: Path, shares: int, threshold: int, holders: int = HOLDERS, length: int = LENGTH
) -> float:
    """Processor seconds of one round of SecAgg+, whose sum must be right."""
    script = HERE / "peers" / "flower_round.py"
    words = [str(word) for word in (python, script, holders, length, shares, threshold)]
    done = children.run(words, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["error"] < 1e-4, "Flower's average is not the average of its vectors"
    return float(found["seconds"])


def _environment(say: Say) -> Path:
    python = PLACE / "bin" / "python"
    finished = PLACE / "complete"
    if not finished.exists():
        say(f"making an environment with {FLOWER} in .bench/flwr, once …")
        children.run([sys.executable, "-m", "venv", "--clear", str(PLACE)], check=True)
        for words in (["--no-deps", FLOWER], NEEDED):
            pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
            children.run([*pip, *words], check=True, capture_output=True)
        finished.touch()
    return python


def _seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start
