"""One cell put to the real code: the product itself says what it would release, or why not.

Nothing is decided here. A cell becomes what a person would write (a call, a study, a network's or a
crowd's file), and what the code does with it is the answer. What a channel has no word for is
written all the same, and refused by the reader of the file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import msgspec

from tacit.channels.central import Central
from tacit.channels.consortium.protocols import terms_of
from tacit.channels.crowd.certify import releases_of
from tacit.channels.crowd.proposal import Proposal
from tacit.channels.federation.noise_plan import NoisePlan
from tacit.channels.peers.descriptors import Descriptor
from tacit.channels.peers.exposure import require_listed
from tacit.channels.peers.letters import Seat
from tacit.channels.peers.pact import FORMAT as PACT_FORMAT
from tacit.channels.peers.pact import Pact, pact_from_bytes
from tacit.channels.peers.seats import group_study
from tacit.channels.selection import Selection
from tacit.channels.studies.checks import parallel_problem
from tacit.channels.studies.file import FORMAT as STUDY_FORMAT
from tacit.channels.studies.study import Study, planned_rounds
from tacit.crypto.onion import OnionKey
from tacit.errors import InternalFault, TacitError
from tacit.privacy.promise import Promise, Unit
from tacit.privacy.release import Release
from tacit.programs.program import Program
from tacit.programs.registry import program_named
from tacit.promises.cells import Cell
from tacit.promises.examples import Example, FewRecords, example_of

__all__ = ["Accepted", "Refused", "asked", "promise_of", "proposal_of"]

RATE = Fraction(1, 4)
DELTA = 1e-6
SELECTION = Selection(threshold=1.0, positives=1)


@dataclass(frozen=True)
class Accepted:
    """What would be released; nothing, where nothing is private.

    holds   False for published methods that are kept for comparison, whose promise is broken
    apart   new records have a budget of their own
    """

    releases: tuple[Release, ...]
    holds: bool = True
    apart: bool = False


@dataclass(frozen=True)
class Refused:
    """What the code says when it is asked for this."""

    reason: str


Answer = Accepted | Refused


def asked(cell: Cell) -> Answer:
    """What the code makes of it."""
    try:
        return _ASK[cell.channel](cell)
    except InternalFault:
        raise  # a defect, not an answer
    except TacitError as error:
        return Refused(str(error))


def promise_of(cell: Cell) -> Promise:
    return Promise(_epsilon(cell), _delta(cell), cell.unit, cell.adjacency)


def _epsilon(cell: Cell) -> float:
    return math.inf if cell.kind == "none" else 1.0


WINDOWS = 2  # of a study that has any


def _delta(cell: Cell) -> float:
    return DELTA if cell.kind == "δ" else 0.0


# ── one holder ──


def _central(cell: Cell) -> Answer:
    example = example_of(cell.program)
    program = program_named(cell.program, None, example.settings)
    schema = example.schema
    options: dict[str, Any] = {}
    if cell.sampling:
        options["sampling"] = RATE
    if cell.selection:
        options["selection"] = SELECTION
    if cell.holders > 1:
        options["holders_per_person"] = cell.holders
    try:
        channel = Central(**options)
    except TypeError as error:  # there is no such option
        return Refused(str(error))
    records = FewRecords(program.encoder(schema).width, schema.label is not None)
    if cell.windows:
        *_, last = channel.follow(program, [records] * 2, schema, promise_of(cell))
    else:
        last = channel.run(program, records, schema, promise_of(cell))
    return Accepted(last.certificate.releases, last.certificate.promise_holds)


# ── studies ──


def _federation(cell: Cell) -> Answer:
    study = Study.from_dict(_study(cell))
    noise = NoisePlan(study)
    for number in range(1, study.last_round + 1):
        query = study.plan().stage(number).query
        study.capacity_check(query)
        noise.charge(number, query)
    return Accepted(noise.releases, study.program().promise_holds)


def _consortium(cell: Cell) -> Answer:
    study = Study.from_dict(_study(cell))
    return _averaged(study)


def _averaged(study: Study, apart: bool = False) -> Answer:
    terms = terms_of(study, tuple(sorted(holder.key for holder in study.holders)))
    assert terms.largest > 0  # it refuses what does not fit
    return Accepted(terms.releases, terms.promise_holds, apart)


def _study(cell: Cell) -> dict[str, Any]:
    """The file that somebody would write to ask for this."""
    example = example_of(cell.program)
    document = {
        "format": STUDY_FORMAT,
        "name": "cell",
        "question": "-",
        "rounds": _rounds(cell.program, promise_of(cell), WINDOWS if cell.windows else None),
        "program": _program(example),
        "promise": {**_promise(cell), **_persons(cell)},
        "take_part": {"minimum": 3, "maximum": 3, "records": 100},
        "deadlines": {"gather": 1.0, "round": 1.0},
        "aggregator": _service("aggregator", 1),
        "holders": [{"name": f"holder-{i}", "key": _key(10 + i)} for i in range(3)],
        "schema": example.schema.to_dict(),
        **_options(cell),
    }
    if cell.windows:
        document["online"] = {"windows": WINDOWS}
    if cell.channel.startswith("consortium"):
        published = cell.channel.endswith("as published")
        document["rounds"] = 1
        document["consortium"] = {
            "protocol": "as-published" if published else "joint",
            "colluding": 0 if published else 1,
            "smallest": 10,
        }
        return document
    document["servers"] = [_service(f"server-{i}", 20 + i) for i in range(3)]
    if cell.channel == "federation, honest":
        document["noise"] = {"policy": "honest", "honest": 3}
    return document


def _persons(cell: Cell) -> dict[str, int]:
    """A study of persons says with how many holders one may be, also if that is one."""
    if cell.unit is Unit.PERSON and not cell.channel.startswith("consortium"):
        return {"holders_per_person": cell.holders}
    return {"holders_per_person": cell.holders} if cell.holders > 1 else {}


@cache
def _rounds(name: str, promise: Promise, windows: int | None) -> int:
    """As its author would find it; 1 where the program has no plan, or refuses this promise."""
    example = example_of(name)
    learner = example.learner
    if not isinstance(learner, Program):
        return 1
    try:
        return planned_rounds(learner, example.schema, promise, windows)
    except TacitError:
        return 1


# ── peers ──


def _peers(cell: Cell) -> Answer:
    example = example_of(cell.program)
    document = {
        "format": PACT_FORMAT,
        "name": "cell",
        "question": "-",
        "chosen": _program(example),
        "terms": {**_promise(cell), **({"holders_per_person": 2} if cell.holders > 1 else {})},
        "group_size": 4,
        "smallest": 10,
        "members": [_key(40 + number) for number in range(4)],  # pure promises need a list
        "schema": example.bare.to_dict(),
        **_unheard_of(cell),
    }
    pact: Pact = pact_from_bytes(msgspec.json.encode(document))
    require_listed(pact)  # as whoever takes part does
    # As `tacit peer --follow`: new records are a part of their own only where they can be.
    apart = cell.windows and parallel_problem(pact.promise) is None
    seats = [_seat(pact, number) for number in range(pact.group_size)]
    return _averaged(group_study(pact, "0" * 64, seats, curator=0), apart)


def _seat(pact: Pact, number: int) -> Seat:
    """Of a member that does not exist."""
    address = f"https://127.0.0.1:{40 + number}"
    own = Descriptor(_key(40 + number), address, 0, (), True, "")
    return Seat(own, _key(50 + number), "", "")


# ── a crowd ──


def _crowd(cell: Cell) -> Answer:
    proposal = Proposal.from_dict(proposal_of(cell))
    return Accepted(releases_of(proposal.drawn_up))


def proposal_of(cell: Cell) -> dict[str, Any]:
    """The file of a crowd that somebody would write to ask for this."""
    example = example_of(cell.program)
    promise: dict[str, Any] = {"epsilon": _epsilon(cell), "delta": DELTA}
    if cell.unit is not Unit.PERSON:
        promise["unit"] = cell.unit.value
    if cell.adjacency.value != "replace":
        promise["adjacency"] = cell.adjacency.value
    if cell.holders > 1:
        promise["holders_per_person"] = cell.holders
    return {
        "format": "tacit crowd 2",
        "name": "cell",
        "question": "-",
        "promise": promise,
        "group": {"minimum": 100, "maximum": 100, "proof": "ring"},
        "windows": {"register": 1.0, "send": 1.0, "release": 1.0},
        "route": {"hops": 1},
        "plan": {"kind": "one-question"},
        "learner": _program(example),
        "relays": [{**_service("relay", 30), "onion": _onion(1)}],
        "collector": {**_service("collector", 31), "onion": _onion(2), "lot": _key(32)},
        "schema": example.bare.to_dict(),
        **_unheard_of(cell),
        **({"online": {"windows": 1}} if cell.windows else {}),
    }


# ── what files have in common ──


def _promise(cell: Cell) -> dict[str, Any]:
    return {
        "epsilon": _epsilon(cell),
        "delta": _delta(cell),
        "unit": cell.unit.value,
        "adjacency": cell.adjacency.value,
    }


def _program(example: Example) -> dict[str, Any]:
    version = example.learner.version
    return {"name": example.program, "version": version, "settings": example.settings}


def _options(cell: Cell) -> dict[str, Any]:
    """A study's."""
    found: dict[str, Any] = {}
    if cell.sampling:
        found["sampling"] = {"rate": float(RATE)}
    if cell.selection:
        found["selection"] = {"kind": "sparse-vector"}
    return found


def _unheard_of(cell: Cell) -> dict[str, Any]:
    """Options of runs and of studies, which these files do not have."""
    found: dict[str, Any] = {}
    if cell.sampling:
        found["sampling"] = float(RATE)
    if cell.selection:
        found["selection"] = {"threshold": 1.0, "positives": 1}
    return found


def _service(name: str, number: int) -> dict[str, str]:
    return {"name": name, "address": f"http://127.0.0.1:{number}", "key": _key(number)}


def _key(number: int) -> str:
    return f"{number:064x}"


@cache
def _onion(number: int) -> str:
    return OnionKey.from_bytes(bytes([number]) * 32).public


_ASK: dict[str, Callable[[Cell], Answer]] = {
    "central": _central,
    "federation": _federation,
    "federation, honest": _federation,
    "consortium": _consortium,
    "consortium, as published": _consortium,
    "peers": _peers,
    "crowd": _crowd,
}
