"""A consortium's study in plain words: who will see what, how much noise there is, what it costs.

Two figures depend on who turns up: they are given for the fewest and for the most parties that the
study takes.
"""

from __future__ import annotations

import math
from dataclasses import replace

import msgspec

from tacit.channels.consortium.protocols import terms_of
from tacit.channels.consortium.published_terms import PublishedTerms
from tacit.channels.consortium.rehearsal import rehearsed
from tacit.channels.consortium.terms import JointTerms, Terms
from tacit.channels.studies.explanation import BlockNoise, Explanation, promised
from tacit.channels.studies.made_up import Progress
from tacit.channels.studies.study import Study
from tacit.privacy.bound import Norm
from tacit.privacy.mechanisms import Gaussian, Laplace

__all__ = ["allowed_terms", "explain"]

USUAL_DELTA = 1e-6  # for the figure of Gaussian noise where the promise has none


def allowed_terms(study: Study) -> list[Terms]:
    """What a run costs among the fewest parties that the study takes, and among the most."""
    keys = sorted(holder.key for holder in study.holders)
    counts = {study.take_part.minimum, min(study.take_part.maximum, len(keys))}
    return [terms_of(study, tuple(keys[:count])) for count in sorted(counts)]


def explain(
    study: Study,
    records: int | None = None,
    *,
    quick: bool = False,
    progress: Progress | None = None,
) -> Explanation:
    """Explain a consortium's study from its file alone; `quick` leaves out the rehearsal."""
    terms = allowed_terms(study)
    noise = [_noise(each) for each in terms] if study.promise.is_private else []
    return Explanation(
        promise=_promise(study),
        trust=_trust(study),
        sees=_sees(study),
        noise=noise,
        factor=noise[0].result / noise[0].central if noise else 1.0,
        noise_words=_noise_words(study, terms),
        cost=_cost(study),
        drop_out=_drop_out(study),
        loss=None if quick else rehearsed(study, records, progress),
    )


def _is_published(study: Study) -> bool:
    return study.agreed_consortium.protocol == "as-published"


def _promise(study: Study) -> str:
    said = promised(study)
    if _is_published(study) and study.promise.is_private:
        return (
            "THE PROMISE DOES NOT HOLD: the protocol as published scales its noise to a bound that "
            f"is none, and its certificate says so. What it claims: {said}"
        )
    return said


def _trust(study: Study) -> str:
    terms = study.agreed_consortium
    if _is_published(study):
        return (
            "All must follow the protocol: parties and curator may be curious, but are honest. "
            "Nobody may work together with anybody: one party and the curator together open "
            "everything. The smallest party draws all noise, and can take it away again."
        )
    others = {0: "no party works", 1: "at most one party works"}.get(
        terms.colluding, f"at most {terms.colluding} parties work"
    )
    return (
        f"It holds as long as {others} together with the curator or with another, and every party "
        f"that follows the rules has at least {terms.smallest:,} records. The curator, and whoever "
        "works together with it, may break the rules as they like. A party that takes its own part "
        "of the noise away from the result counts as such a one."
    )


def _sees(study: Study) -> dict[str, list[str]]:
    curator = ["who takes part, and the noisy average; never one party's model."]
    party = ["its own records and model, which stay where they are.", "nothing of another party."]
    if _is_published(study):
        curator.append(
            "encrypted or uniformly random numbers, and the order of the parties' sizes without "
            "names."
        )
        party.append("shares and encrypted numbers, which say nothing by themselves.")
    else:
        curator.append(
            "one masked vector of each party: numbers that are uniformly random by themselves. "
            "Once all are there, what takes off the masks from the sum of all, and from no less."
        )
        party.append("the keys of the others for this run, and that their vectors have been sent.")
        party.append("in the end what the curator saw, to recompute the average from.")
    return {
        f"curator {study.aggregator.name}": curator,
        "each party": party,
        "everyone": ["this file, the model and its certificate."],
    }


# ── noise ──


def _deviation(mechanism: Gaussian | Laplace) -> float:
    """Of the whole noise that the mechanism stands for: the variance of Laplace noise is 2 b²."""
    root = math.sqrt(2) if mechanism.bound.norm is Norm.L1 else 1.0
    return float(mechanism.scale) * root


def _mechanism(terms: Terms) -> Gaussian | Laplace | None:
    """What the certificate lists: on the sum in tacit's protocol, on the average as published."""
    if isinstance(terms, JointTerms):
        return terms.mechanism
    assert isinstance(terms, PublishedTerms)
    return terms.mechanism(terms.study.agreed_consortium.smallest)


def _noise(terms: Terms) -> BlockNoise:
    """Of one number of the average."""
    mechanism, count = _mechanism(terms), len(terms.roster)
    needed = JointTerms(terms.study, terms.roster)
    assert mechanism is not None  # the promise is private
    assert needed.mechanism is not None
    joint = isinstance(terms, JointTerms)
    # √(K / (K − t)): each of K parties adds one of K − t parts. As published, one adds it all.
    one = _deviation(mechanism) / (count * math.sqrt(needed.parts) if joint else 1)
    return BlockNoise(
        block=f"average of {count}",
        mechanism=mechanism.name,
        length=terms.length,
        bound=float(mechanism.bound.value) / (count if joint else 1),
        adder="each party" if joint else "smallest party",
        one_part=one,
        result=one * math.sqrt(count) if joint else one,
        central=_deviation(needed.mechanism) / count,
    )


def _noise_words(study: Study, terms: list[Terms]) -> str:
    if not study.promise.is_private:
        return "No noise is added."
    if _is_published(study):
        return (
            "The smallest party alone draws the noise, Laplace of scale 2/(n·ε·λ) for its own n "
            f"records; listed for n = {study.agreed_consortium.smallest:,}. It is not divided by "
            "the number of parties, as it could be."
        )
    return (
        f"All parties draw it together, each one of K − {study.agreed_consortium.colluding} parts, "
        f"so that what the honest ones add is enough. {_other_law(study, terms)}"
    )


def _other_law(study: Study, terms: list[Terms]) -> str:
    """The figures of the law that this study does not use."""
    pure = study.promise.delta == 0
    delta = USUAL_DELTA if pure else 0.0
    other = msgspec.structs.replace(study, promise=replace(study.promise, delta=delta))
    figures = [
        f"{_noise(found).result:.4g} with {len(found.roster)}"
        for found in (terms_of(other, each.roster) for each in terms)
    ]
    law = f"Gaussian noise, with δ = {delta:g}," if pure else "Laplace noise, for δ = 0,"
    return f"{law} would have a standard deviation of {', '.join(figures)} parties."


# ── cost, drop-outs ──


def _cost(study: Study) -> str:
    if not study.promise.is_private:
        return "A ledger with a ceiling refuses it."
    promise = study.promise
    delta = f", δ = {promise.delta:g}" if promise.delta else ""
    steps = allowed_terms(study)[0].steps
    return (
        f"Each party's ledger is charged ε = {promise.epsilon:g}{delta} per {promise.unit}, once, "
        f"before the last of {steps} steps. Below ε ≈ 1 a federation, which sums over records, "
        "usually learns more from the same promise: see `tacit bench consortium-utility`."
    )


def _drop_out(study: Study) -> list[str]:
    part, deadlines = study.take_part, study.deadlines
    fewest = max(2, part.minimum)
    return [
        f"It begins when all {len(study.holders)} parties are there, or after "
        f"{deadlines.gather:g} seconds with at least {fewest} of them.",
        f"A party that is silent for {deadlines.round:g} seconds is left out: the run starts again "
        f"without it, if {fewest} are left. It pays nothing, and nothing of it was released.",
        "In the last step every party is needed: if one stays away there, the others have paid, "
        "and the curator waits until it comes back.",
    ]
