"""The certificate of a crowd: the honest sum, who hides among whom, and what is not claimed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import msgspec
import pytest
from tacit.channels.crowd.mixing import mixed_at_least

from tacit.channels.crowd import certify
from tacit.channels.crowd.certify import amplified, certified, main_wave, releases_of
from tacit.channels.crowd.collector_store import Stored
from tacit.channels.crowd.plan import Lot, PlanTerms
from tacit.channels.crowd.proposal import Proposal
from tacit.channels.crowd.propose import Draft
from tacit.channels.crowd.secrets import Secrets
from tacit.channels.crowd.terms import CrowdTerms, Group, RelayCard, Route, Windows
from tacit.cli.main import main
from tacit.crypto.onion import OnionKey
from tacit.crypto.signing import SigningKey, digest
from tacit.data.schema import Column, Schema
from tacit.errors import CertificateInvalid
from tacit.privacy import Certificate
from tacit.privacy.accounting import cost
from tacit.privacy.amplification import shuffle
from tacit.privacy.recompute import recomputed_epsilon

KEY = SigningKey.generate()
MODEL = b"the model"
SCHEMA = Schema(
    columns=(
        Column(name="age", type="integer", bounds=(0, 100)),
        Column(name="weight", type="integer", bounds=(20, 200)),
        Column(name="smokes", type="boolean"),
        Column(name="town", type="category", categories=("north", "south", "west")),
        Column(name="ill", type="boolean", role="label"),
    )
)
ONE = PlanTerms(tables=(("smokes",),))
SINGLE = PlanTerms()
ANONML = PlanTerms(kind="anonml", partitions=3, subsets=2, size=1)
# A fixed seed: AnonML's subsets of features follow from the commitment to it.
SECRETS = Secrets(OnionKey.generate(), bytes(32), {})
CARRIERS = [
    RelayCard(
        name=f"relay-{i}",
        address=f"https://127.0.0.1:{9000 + i}",
        key=SigningKey.generate().public_key,
        onion=OnionKey.generate().public,
    )
    for i in range(9)
]


def proposal(
    plan: PlanTerms, epsilon: float = 2.0, relays: int = 5, hops: int = 3, corrupt: int = 0
) -> Proposal:
    """With proofs by a ring: no keys of tokens need be made."""
    draft = Draft(
        name="lungs",
        question="Who falls ill?",
        schema=SCHEMA,
        promise=CrowdTerms(epsilon=epsilon, delta=1e-6),
        group=Group(minimum=600, maximum=1000, proof="ring", corrupt=corrupt),
        windows=Windows(register=10.0, send=2.0, release=0.5),
        route=Route(hops=hops),
        plan=plan,
        relays=tuple(CARRIERS[:relays]),
        address="https://127.0.0.1:8999",
    )
    return draft.with_secrets(KEY, SECRETS)


def reports(proposal: Proposal, counts: Iterable[int], wave: int = 0) -> list[Stored]:
    """So many for each question, in the order of the plan."""
    return [
        Stored(f"{q.name} {i} {wave}".encode(), q.name, q.stage, wave, b"")
        for q, count in zip(proposal.drawn_up.questions, counts, strict=True)
        for i in range(count)
    ]


def everybody(proposal: Proposal, people: int = 1000) -> list[Stored]:
    return reports(proposal, proposal.drawn_up.expected(people).values())


def made(proposal: Proposal, came: list[Stored], people: int = 1000) -> Certificate:
    certificate = certified(proposal, people, came, MODEL, proposal.schema).signed(KEY)
    return Certificate.from_json(certificate.to_json())


# ── all of it ──


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 8.0, 500.0])
@pytest.mark.parametrize("plan", [ONE, SINGLE, ANONML], ids=["one", "single", "anonml"])
def test_every_certificate_verifies(plan: PlanTerms, epsilon: float) -> None:
    study = proposal(plan, epsilon)
    certificate = made(study, everybody(study))
    verdict = certificate.verify(KEY.public_key, digest(MODEL))
    assert verdict.epsilon <= epsilon * (1 + 1e-9)
    if epsilon < 20:  # beyond, probabilities are rounded towards more privacy
        assert verdict.epsilon == pytest.approx(study.drawn_up.person_epsilon, rel=1e-6)
    assert verdict.delta == 0
    assert verdict.central is not None
    assert verdict.central <= epsilon
    assert certificate.study == study.digest
    assert certificate.schema_digest == study.schema.digest
    assert certificate.participation is not None
    assert certificate.participation.holders == 1000
    assert certificate.participation.rounds == study.drawn_up.stages
    assert certificate.participation.fewest == min(study.drawn_up.expected(1000).values())


def test_a_study_of_which_nothing_arrived_still_has_its_local_promise() -> None:
    study = proposal(SINGLE)
    verdict = made(study, []).verify()
    assert verdict.central == pytest.approx(verdict.epsilon, rel=1e-3)


def test_changed_numbers_are_found() -> None:
    study = proposal(ANONML)
    certificate = made(study, everybody(study))
    central = certificate.amplified
    assert central is not None
    for lie in (
        replace(central, epsilon=central.epsilon * 0.99),
        replace(central, answers=central.answers[1:]),
        replace(central, corrupt=5),
        replace(central, relays=9),
    ):
        with pytest.raises(CertificateInvalid):
            replace(certificate, amplified=lie).signed(KEY).verify()


# ── the local promise ──


@pytest.mark.parametrize("plan", [ONE, SINGLE, ANONML], ids=["one", "single", "anonml"])
def test_the_cost_is_the_sum_over_the_draws_of_the_dearest_lot(plan: PlanTerms) -> None:
    study = proposal(plan).drawn_up

    def paid(lots: Iterable[Lot]) -> Fraction:
        answers = [
            r for lot in lots for n in lot.questions for r in study.question(n).randomiser.spend
        ]
        return Fraction(cost(answers, 0.0, "replace").epsilon)

    dearest = float(max(paid(lots) for lots in product(*study.draws)))
    releases = releases_of(study)
    assert cost(releases, 0.0, "replace").epsilon == pytest.approx(dearest, rel=1e-12)
    assert recomputed_epsilon(releases, 0.0, study.questions[0].promise.adjacency) == pytest.approx(
        dearest, rel=1e-9
    )


def test_a_part_for_each_combination_of_lots_that_differs() -> None:
    assert len({r.part for r in releases_of(proposal(ONE).drawn_up)}) == 1
    study = proposal(ANONML).drawn_up
    first, second = study.draws
    kinds = [{repr([study.question(n).randomiser for n in lot.questions]) for lot in draw}
             for draw in (first, second)]  # fmt: skip
    parts = [r.part for r in releases_of(study)]
    assert len(set(parts)) == len(kinds[0]) * len(kinds[1])
    assert all(parts.count(part) == 3 for part in parts)  # one for quantiles, two tables


def test_the_figure_by_attribute_is_named_as_what_it_is() -> None:
    study = proposal(ANONML, 3.0)
    remark = made(study, everybody(study)).remarks[0]
    assert f"ε = {study.drawn_up.attribute_epsilon:g}" in remark
    assert "nothing here rests on it" in remark


# ── the central figure ──


def example_rows() -> list[list[str]]:
    text = Path(certify.__file__).with_suffix(".md").read_text()
    lines = [line for line in text.splitlines() if line.startswith("| ") and "reports" not in line]
    return [line.strip("| ").split(" | ") for line in lines]


@pytest.mark.parametrize("row", example_rows(), ids=lambda row: "-".join(row))
def test_the_examples_of_the_note(row: list[str]) -> None:
    count, corrupt, relays, hops = (int(text) for text in row[:4])
    study = proposal(ONE, float(row[4]), relays, hops, corrupt)
    central = amplified(study, main_wave(reports(study, [count])))
    assert central.mixed == int(row[5])
    assert f"{central.epsilon:.3g}" == row[6]


def test_there_are_examples() -> None:
    assert len(example_rows()) == 9


@pytest.mark.parametrize("corrupt", [0, 7])
def test_the_worst_person_over_all_combinations_of_lots(corrupt: int) -> None:
    study = proposal(ANONML, 6.0, corrupt=corrupt)
    plan = study.drawn_up
    assert len(plan.draws) == 2  # quantiles, and two tables
    counts = {name: 100 + 61 * i % 300 for i, name in enumerate(plan.names)}
    central = amplified(study, main_wave(reports(study, counts.values())))

    def figure(name: str) -> float:
        """Three answers, so a third of δ for each, halved."""
        mixed = mixed_at_least(counts[name] - corrupt, 5, 3, 1e-6 / 6)
        return shuffle(plan.question(name).epsilon, mixed, 1e-6 / 6)

    everyone = [
        sum(figure(name) for lot in lots for name in lot.questions) for lots in product(*plan.draws)
    ]
    assert central.epsilon == pytest.approx(max(everyone), rel=1e-9)
    assert len(central.answers) == 3
    assert min(everyone) < max(everyone)


def test_people_hide_only_among_those_with_the_same_question() -> None:
    """However many answer something else."""
    study = proposal(SINGLE, 1.0)
    questions = len(study.drawn_up.questions)
    few = amplified(study, main_wave(reports(study, [200] + [300] * (questions - 1))))
    many = amplified(study, main_wave(reports(study, [200] + [3000] * (questions - 1))))
    assert few == many
    assert few.reports == 200


def test_who_sent_again_hides_nobody_and_is_told_so() -> None:
    study = proposal(ONE, 1.0)
    main, late = reports(study, [900]), reports(study, [100], wave=1)
    assert amplified(study, main_wave(main + late)) == amplified(study, main_wave(main))
    remarks = made(study, main + late).remarks
    assert any(remark.startswith("100 of 1000 answers arrived only when") for remark in remarks)
    assert made(study, main).remarks == ()


def test_where_all_are_hidden_equally_badly_the_fewest_reports_are_stated() -> None:
    study = proposal(SINGLE, 1.0)
    counts = [9, 5, 7, 8] + [9] * (len(study.drawn_up.questions) - 4)
    central = amplified(study, main_wave(reports(study, counts)))
    assert (central.reports, central.mixed) == (5, 1)


def test_it_moves_the_right_way() -> None:
    def epsilon(count: int = 1000, local: float = 1.0, **changes: int) -> float:
        study = proposal(ONE, local, **changes)
        return amplified(study, main_wave(reports(study, [count]))).epsilon

    assert epsilon(2000) < epsilon() < epsilon(500) < epsilon(2) <= 1
    assert epsilon(local=0.5) < epsilon() < epsilon(local=2.0)
    assert epsilon(relays=3) < epsilon() < epsilon(relays=9)
    assert epsilon() < epsilon(corrupt=300)
    assert epsilon(local=150.0) == 150.0


def test_what_it_rests_on_is_in_words_and_numbers() -> None:
    study = proposal(ONE, corrupt=12)
    central = amplified(study, main_wave(everybody(study)))
    assert (central.relays, central.hops, central.corrupt) == (5, 3, 12)
    assert "(3 of 5)" in central.assumption
    assert "no more than 12 of the people" in central.assumption
    assert "none of the people belong" in amplified(proposal(ONE), main_wave([])).assumption


# ── as a user sees it ──


def test_verify_prints_both_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = proposal(ANONML, 1.5)
    certificate = made(study, everybody(study))
    path = tmp_path / "model.safetensors"
    path.write_bytes(MODEL)
    path.with_name("model.safetensors.certificate.json").write_text(certificate.to_json())
    with pytest.raises(SystemExit) as left:
        main(["verify", str(path), "--json"])
    assert left.value.code == 0
    document = json.loads(capsys.readouterr().out)
    central, stated = document["central"], certificate.amplified
    assert stated is not None
    assert document["promise"]["epsilon"] == 1.5
    assert central["epsilon"] == stated.epsilon
    assert central["recomputed_epsilon"] == pytest.approx(stated.epsilon, rel=1e-3)
    assert central["delta"] == 1e-6
    assert central["assumption"] == stated.assumption
    assert central["answers"] == [msgspec.to_builtins(hidden) for hidden in stated.answers]
    with pytest.raises(SystemExit):
        main(["verify", str(path)])
    printed = " ".join(capsys.readouterr().out.split())
    for words in ("local promise", "in the crowd", "only if", "3 answers of each person"):
        assert words in printed
