"""Local randomisers: a million reports perturbed and counted, against pure-ldp; and their errors.

Both sides take whole numbers in and give estimated counts out, for ε = 1. tacit's randomised
response stands beside pure-ldp's direct encoding, its (p,q)-perturbation beside optimised unary
encoding. pure-ldp has one client and one server, fed report by report, as it is meant to be; it
gets fewer reports, and its time is taken per report. Processor time; the sides take turns, medians
are compared. pure-ldp has an environment of its own, .bench/pure-ldp, made at the first use.

Errors: the root of the mean square of ‖T̂ − T‖₂ over repeated studies, against `expected_error`
(equation 7.2 of the AnonML thesis), to 2 %.
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
from tacit.errors import CheckFailed, Unreachable
from tacit.privacy.mechanisms import PQPerturbation, RandomisedResponse
from tacit.privacy.mechanisms.randomisers import Randomiser, best_randomiser
from tacit.privacy.promise import Promise

ROOT = Path(__file__).resolve().parent.parent.parent
# pure-ldp imports the last two without saying so.
PEER = ["pure-ldp==1.2.0", "scikit-learn", "statsmodels"]
PEER_NAME = "pure-ldp 1.2"
PROMISE = Promise(1.0)
VALUES = (4, 16, 256, 1024)
REPORTS, PEER_REPORTS = 1_000_000, 20_000
BATCH_BYTES = 8 << 20  # of reports in memory at a time; estimates add up
TURNS = 3
BAR = 50.0
PEOPLE = 500  # in each study whose error is measured
STUDIES = {4: 16_000, 16: 4000, 256: 1000, 1024: 1000}  # fewer where one study has more cells
WITHIN = 0.02

Kind = Callable[[int, Promise], Randomiser]
ENCODINGS: dict[str, tuple[str, Kind]] = {
    "direct": ("randomised response", RandomisedResponse.calibrated),
    "unary": ("(p,q)-perturbation", PQPerturbation.calibrated),
}


def rows(say: Callable[[str], None]) -> Iterator[Row]:
    yield from _speeds(say)
    yield from _errors(say)


def _speeds(say: Callable[[str], None]) -> Iterator[Row]:
    python = _environment(say)
    cases = [(encoding, m) for encoding in ENCODINGS for m in VALUES]
    values = {m: np.random.default_rng(m).integers(0, m, REPORTS) for m in VALUES}
    ours: dict[Any, list[float]] = {case: [] for case in cases}
    theirs: dict[Any, list[float]] = {case: [] for case in cases}
    for turn in range(TURNS):
        say(f"turn {turn + 1} of {TURNS} …")
        for (encoding, m), seconds in _peer(python, cases, values).items():
            theirs[encoding, m].append(seconds / PEER_REPORTS)
            ours[encoding, m].append(_seconds(ENCODINGS[encoding][1], m, values[m]) / REPORTS)
    for encoding, m in cases:
        what = f"{ENCODINGS[encoding][0]}, m = {m}: reports/s"
        name = f"{PEER_NAME}, {encoding} encoding"
        mine, peer = (1 / median(side[encoding, m]) for side in (ours, theirs))
        yield Row(what, mine, peer, name, BAR)


def _seconds(kind: Kind, m: int, values: NDArray[np.int64]) -> float:
    """From calibration to estimates, in this process."""
    start = time.process_time()
    randomiser = kind(m, PROMISE)
    estimates = np.zeros(m)
    batch = BATCH_BYTES // randomiser.report_bytes
    for first in range(0, len(values), batch):
        estimates += randomiser.estimate(randomiser.release(values[first : first + batch]))
    seconds = time.process_time() - start
    _plausible(estimates, values, randomiser)
    return seconds


def _plausible(
    estimates: NDArray[np.float64], values: NDArray[np.int64], randomiser: Randomiser
) -> None:
    error = np.linalg.norm(estimates - np.bincount(values, minlength=randomiser.m)) / len(values)
    if error > 5 * randomiser.expected_error(len(values)):
        raise CheckFailed(f"{randomiser} does not estimate what it was given: report this.")


def _errors(say: Callable[[str], None]) -> Iterator[Row]:
    kinds: dict[str, Kind] = {
        **dict(ENCODINGS.values()),
        "RAPPOR": PQPerturbation.rappor,
        "the best randomiser": best_randomiser,
    }
    for name, kind in kinds.items():
        say(f"error of {name} …")
        for m in VALUES:
            found = _measured(kind(m, PROMISE))
            ratio = found / kind(m, PROMISE).expected_error(PEOPLE)
            # Off by at most 2 % either way: as the distance from 1, beside the 2 % allowed.
            what = f"{name}, m = {m}: error beyond equation 7.2"
            yield Row(what, abs(ratio - 1), WITHIN, "allowed", 1.0, at_most=True)


def _measured(randomiser: Randomiser) -> float:
    """Studies of few people, all in one release, so that the error is of the reports alone."""
    values = np.arange(PEOPLE) ** 2 % randomiser.m
    truth = np.bincount(values, minlength=randomiser.m)
    squares = []
    for _ in range(STUDIES[randomiser.m] // 100):
        reports = randomiser.release(np.tile(values, 100)).reshape(100, PEOPLE, -1)
        for study in reports:
            squares.append(float(((randomiser.estimate(study) - truth) ** 2).sum()))
    return (sum(squares) / len(squares)) ** 0.5 / PEOPLE


def _peer(
    python: Path, cases: list[tuple[str, int]], values: dict[int, NDArray[np.int64]]
) -> dict[tuple[str, int], float]:
    asked = {
        "epsilon": PROMISE.epsilon,
        "cases": [
            {"encoding": encoding, "m": m, "values": (values[m][:PEER_REPORTS] + 1).tolist()}
            for encoding, m in cases
        ],
    }
    script = ROOT / "benchmarks" / "peers" / "pure_ldp_reports.py"
    done = children.run(
        [str(python), str(script)],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise CheckFailed(f"{PEER_NAME} did not finish: {done.stderr.strip().splitlines()[-1]}")
    seconds = {}
    for (encoding, m), answer in zip(cases, json.loads(done.stdout), strict=True):
        randomiser = ENCODINGS[encoding][1](m, PROMISE)
        _plausible(np.array(answer["estimates"]), values[m][:PEER_REPORTS], randomiser)
        seconds[encoding, m] = answer["seconds"]
    return seconds


def _environment(say: Callable[[str], None]) -> Path:
    """The interpreter of .bench/pure-ldp, which is stamped when complete."""
    folder = ROOT / ".bench" / "pure-ldp"
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    stamp = folder / ".ready"
    if not stamp.exists():
        say(f"making an environment for {PEER_NAME} …")
        venv.create(folder, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = children.run([*install, *PEER], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unreachable(
                f"{PEER_NAME} cannot be installed into .bench/pure-ldp: the package index does not "
                "answer, or does not have it. Try again with a network."
            )
        stamp.touch()
    return python
