"""The rules: what bounds the cost of a promise that was accepted, read off what is released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tacit.errors import InternalFault
from tacit.privacy.promise import Adjacency
from tacit.privacy.release import Release
from tacit.promises.asking import Accepted
from tacit.promises.cells import Cell

__all__ = ["RULES", "Rule", "rules_of"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One reason why a cost is what it is; several may bear on one cell.

    claim     in a sentence; its proof is the section of this name in rules.md
    verifier  the code that recomputes it for a certificate, from other formulas
    attacks   the games that are played against it, by name; each states its power
    """

    claim: str
    verifier: str = "tacit.privacy.recompute"
    attacks: tuple[str, ...] = ()


RULES: dict[str, Rule] = {
    "laplace-rounds": Rule(
        "Discrete Laplace noise on L1-bounded sums; ε adds up over blocks and rounds.",
        attacks=("laplace", "pure"),
    ),
    "gaussian-rounds": Rule(
        "Discrete Gaussian noise on L2-bounded sums; all blocks and rounds are one Gaussian.",
        attacks=("gaussian", "record/add-remove", "person", "holder"),
    ),
    "mixed-rounds": Rule(
        "Laplace and Gaussian noise in one run: ε of the former adds to the Gaussian's (ε, δ).",
        attacks=("laplace-and-gaussian",),
    ),
    "sampled-pure-group": Rule(
        "Blocks of one round are one release of Σε before its secret sample counts.",
        attacks=("sampled-several-blocks (pure)",),
    ),
    "sampled-gaussian-group": Rule(
        "Blocks of one round are one Gaussian before its secret sample counts.",
        attacks=("sampled-several-blocks",),
    ),
    "replaced-unit": Rule(
        "A unit that is exchanged moves a sum by two contributions.",
        attacks=("record/replace", "record/replace (pure)"),
    ),
    "selection-sum": Rule(
        "Choosing coordinates (sparse vectors, one per block and round) and releasing them add up.",
        attacks=("sparse-vector", "selection"),
    ),
    "windows-parallel": Rule(
        "A record that is there or not lies in one window: the worst window counts.",
        attacks=("window",),
    ),
    "holders-per-person": Rule(
        "A person with k holders moves a sum by k contributions, and the noise covers them.",
        attacks=("person/several-holders",),
    ),
    "one-honest-server": Rule(
        "Every server adds all of the noise: one that is honest is enough.",
        attacks=("federation", "federation-hostile"),
    ),
    "noise-in-parts": Rule(
        "The noise is a sum of parts; what the coalition does not know is enough.",
        attacks=("laplace-in-parts", "gaussian-in-parts", "consortium"),
    ),
    "joint-laplace": Rule(
        "Trained vectors move by an L2 bound, √length times as far in L1; Laplace noise on L1.",
        attacks=("consortium (pure)",),
    ),
    "joint-gaussian": Rule(
        "Trained vectors move by an L2 bound; Gaussian noise.",
        attacks=("consortium",),
    ),
    "sum-of-groups": Rule(
        "Each group that a peer takes part in costs the pact's promise; its ledger adds them up.",
        verifier="tacit.privacy.ledger",
        attacks=("several-groups",),
    ),
    "crowd-local": Rule(
        "Answers are randomised on the device; the dearest combination of lots bounds them all.",
        attacks=(
            "randomised-response",
            "subset-selection",
            "hadamard-response",
            "pq-perturbation",
        ),
    ),
    "crowd-shuffled": Rule(
        "Answers that nobody can assign hide among those to the same question.",
        verifier="tacit.privacy.recompute_response",
        attacks=("shuffled",),
    ),
    "no-privacy": Rule("ε = ∞ promises nothing, and the certificate says so."),
    "broken-as-published": Rule(
        "A published method whose promise does not hold: its certificate says so and costs ∞.",
    ),
}


# By the kinds of noise, and whether there is a sample.
_NOISE: dict[tuple[object, ...], str] = {
    (("laplace",), False): "laplace-rounds",
    (("gaussian",), False): "gaussian-rounds",
    (("gaussian", "laplace"), False): "mixed-rounds",
    (("laplace",), True): "sampled-pure-group",
    (("gaussian",), True): "sampled-gaussian-group",
}


def rules_of(cell: Cell, answer: Accepted) -> tuple[str, ...]:
    """The rules that bound what was accepted; an InternalFault where there is none."""
    if cell.kind == "none":
        return ("no-privacy",)
    if not answer.holds:
        return ("broken-as-published",)
    match cell.channel.split(",")[0]:
        case "central" | "federation":
            return _of_sums(cell, answer.releases)
        case "consortium" | "peers":
            return _of_averages(cell, answer)
        case "crowd":
            return ("crowd-local",) if cell.kind == "pure" else ("crowd-local", "crowd-shuffled")
    raise InternalFault(f"no rule is known for {cell}.")


def _of_sums(cell: Cell, releases: Sequence[Release]) -> tuple[str, ...]:
    noise = {r.mechanism for r in releases} - {"above-threshold"}
    sampled = {r.sampling < 1 for r in releases}
    key = tuple(sorted(noise)), *sampled
    if key not in _NOISE:
        raise InternalFault(f"no rule is known for {noise} noise, as in {cell}.")
    found = [_NOISE[key]]
    _need(all((r.sample is not None) == (r.sampling < 1) for r in releases), cell)
    if cell.adjacency is Adjacency.REPLACE:
        found.append("replaced-unit")
        _need(sampled == {False}, cell)
    if any(r.mechanism == "above-threshold" for r in releases):
        found.append("selection-sum")
    if any(r.part is not None for r in releases):
        found.append("windows-parallel")
        _need(all(r.part is not None for r in releases), cell)
    if cell.holders > 1:
        found.append("holders-per-person")
    if cell.channel != "central":
        parts = any(r.parameters.get("parts", 1) != 1 for r in releases)
        found.append("noise-in-parts" if parts else "one-honest-server")
    _need((cell.windows, cell.selection, cell.sampling) == _options(found), cell)
    return tuple(found)


def _options(found: Sequence[str]) -> tuple[bool, bool, bool]:
    """What was asked for must show in what is released."""
    sampled = any(name.startswith("sampled") for name in found)
    return "windows-parallel" in found, "selection-sum" in found, sampled


def _of_averages(cell: Cell, answer: Accepted) -> tuple[str, ...]:
    (release,) = answer.releases
    found = ["joint-laplace" if release.mechanism == "laplace" else "joint-gaussian"]
    if release.parameters.get("parts", 1) != 1:
        found.append("noise-in-parts")
    if cell.channel == "peers":
        found.append("sum-of-groups")
        if answer.apart:
            found.append("windows-parallel")
    return tuple(found)


def _need(so: bool, cell: Cell) -> None:
    if not so:
        raise InternalFault(f"{cell}: what was asked for does not show in what is released.")
