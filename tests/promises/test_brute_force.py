"""Every combination of rules that occurs, against the enumerated privacy loss of a small run.

The run is real (channel, contributions, noise, certificate); only its cost is found otherwise: what
neighbouring inputs add is taken from the code that adds, the laws of the noise from their
definitions, and all outcomes of all blocks and rounds are summed up. The certificate must not
promise less than that; half of its noise would break it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations as subsets
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import brute_force as brute
from tiny import SCHEMA, Tiny

from tacit.channels.central import Central
from tacit.channels.crowd.certify import Batch, Evidence, amplified
from tacit.channels.crowd.proposal import Proposal
from tacit.channels.federation.local import Federation, local_study
from tacit.channels.federation.noise_plan import NoisePlan
from tacit.channels.selection import Selection
from tacit.crypto.signing import SigningKey
from tacit.data.records import ArrayRecords
from tacit.engines import Serial
from tacit.privacy.certificate import Certificate
from tacit.privacy.promise import Adjacency, Promise, Unit
from tacit.privacy.release import Release
from tacit.programs.holding import Holding
from tacit.programs.program import Plan
from tacit.promises.asking import Accepted, asked, promise_of, proposal_of
from tacit.promises.cells import Cell
from tacit.promises.page import read

PAGE = read((Path(__file__).parents[2] / "docs" / "promises.md").read_text(encoding="utf-8"))
RATE = Fraction(1, 4)
SELECTION = Selection(threshold=1.0, positives=1)


def combinations() -> list[tuple[tuple[str, ...], Unit, Adjacency, str]]:
    """Whatever the map has, once for each unit and adjacency."""
    found = {
        (answer, cell.unit, cell.adjacency, cell.channel): None
        for cell, answer in PAGE.items()
        if isinstance(answer, tuple)
    }
    return list(found)


def promised(rules: Sequence[str], unit: Unit, adjacency: Adjacency) -> Promise:
    gaussian = any("gaussian" in name or name == "mixed-rounds" for name in rules)
    return Promise(1.0, 1e-6 if gaussian else 0.0, unit, adjacency)


# ── sums ──


def neighbours(unit: Unit, adjacency: Adjacency, holders: int) -> list[tuple[Any, Any]]:
    """What each holder has, in either case: one unit more or less, or exchanged for its opposite.

    Whoever is protected brings as much as the bound allows, to every holder that has her.
    """
    others = np.array([[0.5, -1.0], [1.0, 0.5], [-1.0, 1.0]])
    # A person's records and a holder's add up to the bound too.
    mine = np.array([[1.0, 1.0]] if unit is Unit.RECORD else [[1.0, 1.0], [1.0, 1.0], [-1.0, -1.0]])
    added = [] if adjacency is Adjacency.ADD_REMOVE else [-mine]

    def table(*parts: np.ndarray[Any, Any]) -> ArrayRecords:
        persons = [np.arange(10, 13)] + [np.zeros(len(part)) for part in parts]
        return ArrayRecords(np.concatenate([others, *parts]), None, np.concatenate(persons))

    if unit is Unit.HOLDER:  # all that it has
        empty = ArrayRecords(np.zeros((1, 2)), None, np.zeros(1))
        other = empty if not added else ArrayRecords(-mine)
        return [(ArrayRecords(mine), other)]
    return [(table(mine), table(*added))] * holders


def shifts(program: Tiny, promise: Promise, holders: int) -> list[int]:
    """How far the sum of each block moves, in steps: by the code that adds."""
    first = program.init(SCHEMA, promise)
    query = Plan(tuple(program.plan(first))).stage(1).query
    total = np.zeros(2, dtype=np.int64)
    for ours, theirs in neighbours(promise.unit, promise.adjacency, holders):
        sums = [
            Holding(program, first, records, promise, Serial().map_sum).sum(first, query)
            for records in (ours, theirs)
        ]
        total += sums[1] - sums[0]
    return [abs(int(moved)) for moved in total]


def law(release: Release, noise: float, alone: bool) -> np.ndarray[Any, Any]:
    """Of the noise of one coordinate, by definition."""
    assert release.scale is not None
    scale = float(release.scale / release.step) * noise
    parts = int(release.parameters.get("parts", 1))
    # Laplace noise alone is cut off early: ratios of its law are the same everywhere.
    far = 9 if release.mechanism == "gaussian" else 4 if alone else 20
    reach = math.ceil(far * scale) + 12
    if parts > 1:
        return brute.in_parts(release.mechanism, scale, parts, reach)
    if release.mechanism == "gaussian":
        return brute.discrete_gaussian(scale, reach)
    return brute.discrete_laplace(scale, reach)


def blocks_of(certificate: Certificate, rounds: int) -> list[Release]:
    """The releases of one round, one for each block; windows are alike, so those of the first."""
    found: list[Release] = []
    for release in certificate.releases:
        if release.mechanism != "above-threshold" and release.part in (None, "window 1"):
            found += [release] * (release.count // rounds)
    return found


def enumerated(
    certificate: Certificate, moved: Sequence[int], rounds: int, noise: float = 1.0
) -> list[list[brute.Atoms]]:
    """The atoms of each round, unit there or not, and the reverse."""
    pairs = [
        brute.shifted_pair(law(release, noise, not certificate.promise.delta), shift)
        for release, shift in zip(blocks_of(certificate, rounds), moved, strict=True)
    ]
    pair = brute.joint(pairs)
    rate = float(certificate.releases[0].sampling)
    if rate < 1:
        pair = brute.sampled(pair, rate)
    return [[brute.atoms(*pair)] * rounds, [brute.atoms(*pair[::-1])] * rounds]


def cut_pair(pair: tuple[Any, Any]) -> tuple[Any, Any]:
    """Without outcomes that only the cut makes impossible."""
    both = (pair[0] > 0) & (pair[1] > 0)
    return pair[0][both], pair[1][both]


def exceeds(runs: list[list[brute.Atoms]], epsilon: float, delta: float) -> bool:
    """Whether the enumerated loss is more than (ε, δ), in one of the directions."""
    if delta == 0:
        return max(brute.largest_loss(one) for one in runs) > epsilon
    return max(brute.delta(one, epsilon) for one in runs) > delta


def choices(certificate: Certificate, moved: Sequence[int], fine: int) -> float:
    """What choosing costs at most: the worst outcome of every sparse vector, integrated."""
    found = 0.0
    for release in certificate.releases:
        if release.mechanism != "above-threshold":
            continue
        scales = [float(release.parameters[n]) for n in ("threshold_scale", "query_scale")]
        worst = 0.0
        for start in (0.0, SELECTION.threshold):
            here = brute.first_above([start], SELECTION.threshold, *scales)
            there = brute.first_above([start + max(moved) / fine], SELECTION.threshold, *scales)
            worst = max(worst, float(np.abs(np.log(here / there)).max()))
        found += release.count * worst
    return found


def run_sums(rules: Sequence[str], promise: Promise, channel: str) -> tuple[Any, Tiny, int, int]:
    """The real run: its certificate, the program, how many rounds touch a unit, and its holders."""
    windows = "windows-parallel" in rules
    holders = 2 if "holders-per-person" in rules else 1
    # Noise for two holders is twice as wide: more outcomes than two rounds of them can have.
    rounds = 2 if holders == 1 else 1
    program = Tiny(rounds, _fine(rules, promise), mixed="mixed-rounds" in rules)
    pairs = neighbours(promise.unit, promise.adjacency, holders)
    if channel == "central":
        options: dict[str, Any] = {}
        if any(name.startswith("sampled") for name in rules):
            options["sampling"] = RATE
        if "selection-sum" in rules:
            options["selection"] = SELECTION
        central = Central(**options)
        if windows:
            *_, last = central.follow(program, [pairs[0][0]] * 2, SCHEMA, promise)
        else:
            last = central.run(program, pairs[0][0], SCHEMA, promise)
        return last.certificate, program, 2, holders
    persons = holders if promise.unit is Unit.PERSON else None
    if windows:
        return _online(rules, promise), program, 2, holders
    honest = 3 if "noise-in-parts" in rules else None
    federation = Federation(3, honest, holders_per_person=persons, sampling=_rate(rules))
    outcome = federation.run(program, [ours for ours, _ in pairs], SCHEMA, promise)
    return outcome.certificate, program, rounds, holders


def _fine(rules: Sequence[str], promise: Promise) -> int:
    """Gaussian noise must be 4 steps wide, and each of its parts 8."""
    narrow = ("noise-in-parts" in rules) + ("sampled-gaussian-group" in rules)
    return 2**narrow if promise.delta else 1


def _rate(rules: Sequence[str]) -> float | None:
    """Of a study's samples."""
    return float(RATE) if any(name.startswith("sampled") for name in rules) else None


def _online(rules: Sequence[str], promise: Promise) -> Certificate:
    """The releases that a study's servers would make in two windows."""
    parts = "noise-in-parts" in rules
    program = Tiny(2, _fine(rules, promise), mixed="mixed-rounds" in rules)
    keys = [SigningKey.generate() for _ in range(4)]
    honest, rate = 3 if parts else None, _rate(rules)
    study = local_study(program, 3, SCHEMA, promise, keys, honest, windows=2, sampling=rate)
    noise = NoisePlan(study)
    for number in range(1, study.last_round + 1):
        noise.charge(number, study.plan().stage(number).query)
    return _unsigned(promise, noise.releases)


def _unsigned(promise: Promise, releases: tuple[Release, ...]) -> Certificate:
    return Certificate(
        promise=promise,
        releases=releases,
        trust="-",
        accountant="-",
        program="-",
        program_digest="",
        schema_digest="",
        subject="",
        secure_randomness=True,
    )


def check_sums(rules: tuple[str, ...], unit: Unit, adjacency: Adjacency, channel: str) -> None:
    promise = promised(rules, unit, adjacency)
    certificate, program, rounds, holders = run_sums(rules, promise, channel)
    moved = shifts(program, promise, holders)
    limit = holders * program.fine * (2 if adjacency is Adjacency.REPLACE else 1)
    assert moved == [limit, limit]  # neighbours that go to the bound, and no further
    runs = enumerated(certificate, moved, rounds)
    choosing = choices(certificate, moved, program.fine)
    left, delta = promise.epsilon - choosing, promise.delta
    assert not exceeds(runs, left * (1 + 1e-6), delta)
    assert exceeds(runs, 0.6 * left, delta)  # there is not much to give away
    halved = enumerated(certificate, moved, rounds, noise=0.5)
    assert exceeds(halved, 1.3 * left, delta)
    verified = certificate.signed(SigningKey.generate()).verify().epsilon
    assert verified <= promise.epsilon * (1 + 1e-3)
    if not choosing:
        assert not exceeds(runs, verified * (1 + 1e-6), delta)


# ── averages ──


def check_averages(rules: tuple[str, ...], unit: Unit, adjacency: Adjacency, channel: str) -> None:
    cell = Cell(channel, "averaged-logistic", unit, adjacency, "δ" if _gaussian(rules) else "pure")
    answer = asked(cell)
    assert isinstance(answer, Accepted)
    (release,) = answer.releases
    promise = promise_of(cell)
    assert release.bound is not None
    assert release.scale is not None
    # The same law on a grid that can be enumerated: the bound is 12 steps long.
    bound = 12
    parts = int(release.parameters["parts"])
    for noise, fits in ((1.0, True), (0.5, False)):
        scale = float(release.scale / release.bound.value) * bound * noise
        if _gaussian(rules):
            pairs = [_moved("gaussian", scale, parts, bound)]
        else:  # a vector of length 3 that moves as far as it can in L1: by as much everywhere
            pairs = [_moved("laplace", scale, parts, bound // release.length)] * release.length
        found = [brute.atoms(*cut_pair(pair)) for pair in pairs]
        assert exceeds([found], promise.epsilon * (1 + 1e-6), promise.delta) != fits
        assert exceeds([found], 0.9 * promise.epsilon, promise.delta)
    if "sum-of-groups" in rules and _gaussian(rules):
        pair = _moved("gaussian", float(release.scale / release.bound.value) * bound, parts, bound)
        two = [brute.atoms(*cut_pair(pair))] * 2
        assert not exceeds([two], 2 * promise.epsilon, 2 * promise.delta)


def _gaussian(rules: Sequence[str]) -> bool:
    return "joint-gaussian" in rules


def _moved(kind: str, scale: float, parts: int, shift: int) -> tuple[Any, Any]:
    reach = math.ceil((12 if kind == "gaussian" else 8) * scale)
    return brute.shifted_pair(brute.in_parts(kind, scale, parts, reach), shift)


# ── crowds ──


def response(release: Release) -> list[np.ndarray[Any, Any]]:
    """The law of what a device sends, for each of its possible values."""
    numbers = {name: float(value) for name, value in release.parameters.items()}
    match release.mechanism:
        case "randomised-response":
            m, p = int(numbers["m"]), numbers["p"]
            return [np.where(np.arange(m) == v, p, (1 - p) / (m - 1)) for v in range(m)]
        case "subset-selection":
            m, size, p = int(numbers["m"]), int(numbers["size"]), numbers["p"]
            sets = list(subsets(range(m), size))
            inside = math.comb(m - 1, size - 1)
            return [
                np.array([p / inside if v in s else (1 - p) / (len(sets) - inside) for s in sets])
                for v in range(m)
            ]
        case "hadamard-response":
            p = numbers["p"]
            return [np.array([p, 1 - p]), np.array([1 - p, p])]
        case "pq-perturbation":
            p, q = numbers["p"], numbers["q"]
            return [
                brute.joint([(np.array([p, 1 - p]), np.array([q, 1 - q]))])[which]
                for which in (0, 1)
            ]
    raise AssertionError(release.mechanism)


def check_crowd(rules: tuple[str, ...], unit: Unit, adjacency: Adjacency, channel: str) -> None:
    cell = Cell("crowd", "tabulated-bayes", unit, adjacency, "pure")
    proposal = Proposal.from_dict(proposal_of(cell))
    answer = asked(cell)
    assert isinstance(answer, Accepted)
    parts: dict[str | None, float] = {}
    for release in answer.releases:
        laws = response(release)
        worst = max(float(np.log(a / b).max()) for a in laws for b in laws)
        parts[release.part] = parts.get(release.part, 0.0) + release.count * worst
    local = proposal.promise.epsilon
    assert 0.95 * local <= max(parts.values()) <= local * (1 + 1e-9)
    if "crowd-shuffled" in rules:
        check_shuffled(proposal)


def check_shuffled(proposal: Proposal) -> None:
    figure = amplified(proposal, dict.fromkeys(proposal.questions, Batch(60, 60)), Evidence())
    (hidden,) = figure.answers
    assert hidden.randomiser is not None
    laws, people = response(hidden.randomiser), hidden.mixed - 1
    profiles = [
        (zeros, ones, people - zeros - ones)
        for zeros, ones in product((0, 10, 30, people), repeat=2)
        if zeros + ones <= people and (len(laws) > 2 or zeros + ones == people)
    ]

    def shown(others: tuple[int, int, int], own: int) -> brute.Reals:
        return brute.shuffled_answers(laws, others, own)

    worst = max(
        brute.epsilon([brute.atoms(shown(others, own), shown(others, 1 - own))], figure.delta)
        for others in profiles
        for own in (0, 1)
    )
    assert 0.75 * figure.epsilon <= worst
    assert worst <= figure.epsilon * (1 + 1e-9)


def check_nothing(rules: tuple[str, ...], unit: Unit, adjacency: Adjacency, channel: str) -> None:
    """Where nothing is promised, the certificate says that it costs without bound."""
    cells = [c for c, a in PAGE.items() if a == rules and c.channel == channel]
    for cell in cells[:1]:
        answer = asked(cell)
        assert isinstance(answer, Accepted)
        certificate = _unsigned(promise_of(cell), answer.releases)
        certificate = replace(certificate, promise_holds=answer.holds)
        assert certificate.signed(SigningKey.generate()).verify().epsilon == math.inf


Check = Callable[[tuple[str, ...], Unit, Adjacency, str], None]
# By the first rule of a combination; every rule that occurs must be known to one of them.
CHECKS: dict[str, Check] = {
    "laplace-rounds": check_sums,
    "gaussian-rounds": check_sums,
    "mixed-rounds": check_sums,
    "sampled-pure-group": check_sums,
    "sampled-gaussian-group": check_sums,
    "joint-laplace": check_averages,
    "joint-gaussian": check_averages,
    "crowd-local": check_crowd,
    "no-privacy": check_nothing,
    "broken-as-published": check_nothing,
}


@pytest.mark.parametrize(
    ("rules", "unit", "adjacency", "channel"),
    combinations(),
    ids=lambda value: "+".join(value) if isinstance(value, tuple) else str(value),
)
def test_the_enumerated_loss_is_within_the_promise(
    rules: tuple[str, ...], unit: Unit, adjacency: Adjacency, channel: str
) -> None:
    CHECKS[rules[0]](rules, unit, adjacency, channel)
