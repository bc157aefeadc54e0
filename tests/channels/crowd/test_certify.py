"""The certificate of a crowd: the honest sum, who hides among whom, and what is not claimed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

from tacit.channels.crowd import certify
from tacit.channels.crowd.certify import (
    Batch,
    Evidence,
    amplified,
    certified,
    counted,
    releases_of,
    undisturbed,
)
from tacit.channels.crowd.checked import check_crowd, compare
from tacit.channels.crowd.collector_store import Stored
from tacit.channels.crowd.learning import learn
from tacit.channels.crowd.person_journal import PersonJournal
from tacit.channels.crowd.plan import Lot, PlanTerms
from tacit.channels.crowd.proposal import Proposal
from tacit.channels.crowd.propose import Draft
from tacit.channels.crowd.secrets import Secrets
from tacit.channels.crowd.tables import Table
from tacit.channels.crowd.terms import CrowdTerms, Group, RelayCard, Route, Windows
from tacit.channels.roles.store import MEMORY
from tacit.cli.main import main
from tacit.crypto.onion import OnionKey
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey, digest
from tacit.data.discrete import with_edges
from tacit.data.schema import Column, Schema
from tacit.errors import CertificateInvalid, CheckFailed
from tacit.privacy import Certificate
from tacit.privacy.accounting import cost
from tacit.privacy.amplified import Amplified
from tacit.privacy.attested import BatchStatement
from tacit.privacy.recompute import recomputed_epsilon
from tacit.privacy.shuffled_response import shuffled_response
from tacit.programs.model_file import model_bytes

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
RELAYS = [SigningKey.generate() for _ in range(9)]
CARRIERS = [
    RelayCard(
        name=f"relay-{i}",
        address=f"https://127.0.0.1:{9000 + i}",
        key=key.public_key,
        onion=OnionKey.generate().public,
    )
    for i, key in enumerate(RELAYS)
]
DRAWING = "5a" * 32
EDGES = {"age": [30.0], "weight": [70.0]}


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


def evidence(
    study: Proposal,
    came: list[Stored],
    fewer: dict[tuple[str, int], int] | None = None,
    left_out: tuple[int, ...] = (),
) -> Evidence:
    """What relays sign if every question goes by relays 0, 1, 2 …, and as many pass as arrive, but
    where `fewer` (question, hop) says otherwise."""
    waves = sorted({(stored.stage, stored.wave) for stored in came})
    said = []
    for stage, wave in waves:
        names = [q.name for q in study.drawn_up.in_stage(stage)]
        for hop in range(study.route.hops):
            sizes = {}
            for name in names:
                here = sum((s.question, s.wave) == (name, wave) for s in came)
                size = (fewer or {}).get((name, hop), here)
                sizes[name] = (size, size)
            key = RELAYS[hop]
            one = BatchStatement(key.public_key, DRAWING, stage, wave, hop, sizes)
            said.append(one.signed(key))
        for place in range(study.route.hops, len(study.relays)):  # no batch passes them
            key = RELAYS[place]
            said.append(BatchStatement(key.public_key, DRAWING, stage, wave, 0, {}).signed(key))
    return Evidence(DRAWING, tuple(said), left_out)


def made(
    proposal: Proposal, came: list[Stored], people: int = 1000, shown: Evidence | None = None
) -> Certificate:
    shown = shown or evidence(proposal, came)
    certificate = certified(proposal, people, came, shown, MODEL, proposal.schema).signed(KEY)
    return Certificate.from_json(certificate.to_json())


def figure(proposal: Proposal, came: list[Stored], shown: Evidence | None = None) -> Amplified:
    shown = shown or evidence(proposal, came)
    return amplified(proposal, counted(proposal, came, shown), shown, came)


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


def lies(central: Amplified) -> list[Amplified]:
    first, said = central.answers[0], central.statements[0]
    more = replace(first, mixed=first.mixed + 1)
    name = first.question
    larger = replace(said, batches={**said.batches, name: (999, 999)})
    questions = tuple(more if q == first else q for q in central.questions)
    reports = replace(first, reports=10**6, mixed=first.mixed + 1)
    return [
        replace(central, epsilon=central.epsilon * 0.99),
        replace(central, answers=central.answers[1:]),
        replace(central, corrupt=5),
        replace(central, answers=(more, *central.answers[1:])),
        replace(central, answers=(more, *central.answers[1:]), questions=questions),
        replace(
            central,
            answers=(reports, *central.answers[1:]),
            questions=tuple(reports if q == first else q for q in central.questions),
        ),
        replace(central, statements=(larger, *central.statements[1:])),
        replace(central, statements=(larger, *central.statements)),
        replace(central, statements=central.statements[1:]),
        replace(central, drawing="00" * 32),
    ]


def test_changed_numbers_are_found() -> None:
    """By everybody, from the certificate alone."""
    study = proposal(ANONML)
    certificate = made(study, everybody(study))
    central = certificate.amplified
    assert central is not None
    for lie in lies(central):
        with pytest.raises(CertificateInvalid):
            replace(certificate, amplified=lie).signed(KEY).verify()


def test_who_has_the_proposal_finds_the_rest() -> None:
    study = proposal(SINGLE)
    came = everybody(study)
    certificate = made(study, came)
    model = learned(study)
    schema = with_edges(study.schema, EDGES)
    good = certified(study, 1000, came, evidence(study, came), model, schema).signed(KEY)
    assert check_crowd(study, model, good.to_json()) == good
    central, stranger = certificate.amplified, SigningKey.generate()
    assert central is not None
    best = max(central.questions, key=lambda hidden: hidden.mixed)
    assert best.randomiser is not None
    own = shuffled_response(best.randomiser, best.local, best.mixed, central.delta)
    forged = [
        replace(one, relay=stranger.public_key).signed(stranger) for one in central.statements
    ]
    for wrong in (
        replace(good, trust="Nobody and nothing."),
        replace(good, program="anything 9"),
        replace(good, program_digest="00" * 32),
        replace(good, study="00" * 32),
        replace(good, promise_holds=False),
        replace(good, conditions=("that you believe it",)),
        replace(good, remarks=("All is well.",)),
        replace(good, schema_digest="00" * 32),
        replace(good, ledger="00" * 32),
        replace(good, releases=good.releases[:-1]) if len(good.releases) > 1 else None,
        replace(good, accountant="another"),
        replace(good, participation=replace(good.participation, holders=7)),  # type: ignore[type-var]
        replace(good, amplified=None),
        # The person who is hidden best, instead of worst.
        replace(good, amplified=replace(central, answers=(best,), epsilon=own)),
        replace(good, amplified=replace(central, statements=tuple(forged))),
        replace(good, amplified=replace(central, assumption="none")),
        replace(good, amplified=replace(central, receipts=())),
        replace(good, amplified=replace(central, relays=9)),
        replace(good, amplified=replace(central, delta=0.5)),
    ):
        if wrong is not None:
            with pytest.raises(CheckFailed):
                check_crowd(study, model, wrong.signed(KEY).to_json())
    with pytest.raises(CheckFailed):
        check_crowd(study, model, good.signed(stranger).to_json())
    with pytest.raises(CheckFailed):
        check_crowd(study, b"another model", good.to_json())


def learned(study: Proposal) -> bytes:
    """A model file, of whatever table."""
    learner = study.learned_by()
    schema = with_edges(study.schema, EDGES)
    tables = [
        Table.estimated(q, q.rows([q.randomiser.release([0], SeededRandomness("t"))[0].tobytes()]))
        for q in study.drawn_up.questions
        if q.kind == "table" and q.features == ("smokes",)
    ]
    return model_bytes(learn(learner, schema, tables), learner, schema)


def test_what_one_was_shown_is_compared() -> None:
    study = proposal(ONE)
    came = everybody(study)
    certificate = made(study, came)
    central = certificate.amplified
    assert central is not None
    (hidden,) = central.questions
    shown = {
        "drawing": DRAWING,
        "receipts of stage 0": central.receipts[0],
        "counts of stage 0": f"{hidden.question}:{hidden.reports}",
    }
    for wrong in (None, *shown):
        journal = PersonJournal(MEMORY, study.digest)
        for what, text in shown.items():
            journal.pin(what, "00" * 32 if what == wrong else text)
        if wrong is None:
            compare(study, certificate, journal)
        else:
            with pytest.raises(CheckFailed):
                compare(study, certificate, journal)
    compare(study, certificate, PersonJournal(MEMORY, study.digest))  # she saw nothing


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
    count, corrupt = int(row[0]), int(row[1])
    study = proposal(ONE, float(row[3]), corrupt=corrupt)
    (name,) = study.drawn_up.names
    central = amplified(study, {name: Batch(count, int(row[2]))}, Evidence())
    assert central.mixed == int(row[4])
    assert f"{central.epsilon:.3g}" == row[5]


def test_there_are_examples() -> None:
    assert len(example_rows()) == 9


@pytest.mark.parametrize("corrupt", [0, 7])
def test_the_worst_person_over_all_combinations_of_lots(corrupt: int) -> None:
    study = proposal(ANONML, 6.0, corrupt=corrupt)
    plan = study.drawn_up
    assert len(plan.draws) == 2  # quantiles, and two tables
    counts = {name: 100 + 61 * i % 300 for i, name in enumerate(plan.names)}
    central = figure(study, reports(study, counts.values()))

    def of(name: str) -> float:
        """Three answers, so a third of δ for each."""
        question = plan.question(name)
        (by,) = question.randomiser.spend
        return shuffled_response(by, question.epsilon, counts[name] - corrupt, 1e-6 / 3)

    everyone = [
        sum(of(name) for lot in lots for name in lot.questions) for lots in product(*plan.draws)
    ]
    assert central.epsilon == pytest.approx(max(everyone), rel=1e-9)
    assert len(central.answers) == 3
    assert min(everyone) < max(everyone)


def test_people_hide_only_among_those_with_the_same_question() -> None:
    """However many answer something else."""
    study = proposal(SINGLE, 1.0)
    questions = len(study.drawn_up.questions)
    few = figure(study, reports(study, [200] + [300] * (questions - 1)))
    many = figure(study, reports(study, [200] + [3000] * (questions - 1)))
    assert (few.epsilon, few.answers) == (many.epsilon, many.answers)
    assert few.reports == 200


@pytest.mark.parametrize("hop", [0, 1, 2])
def test_no_more_are_mixed_than_the_smallest_batch_of_the_circuit(hop: int) -> None:
    """Which of the relays is the honest one is not known."""
    study = proposal(ONE, 1.0)
    (name,) = study.drawn_up.names
    came = reports(study, [327])
    central = figure(study, came, evidence(study, came, {(name, hop): 28}))
    assert (central.reports, central.mixed) == (327, 28)
    (by,) = study.drawn_up.question(name).randomiser.spend
    assert central.epsilon == shuffled_response(by, 1.0, 28, 1e-6)


def test_cover_hides_nobody() -> None:
    study = proposal(ONE, 1.0)
    (name,) = study.drawn_up.names
    came = reports(study, [60])
    full = {(name, hop): 100 for hop in range(3)}
    assert figure(study, came, evidence(study, came, full)).mixed == 60


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_without_the_word_of_every_relay_of_the_circuit_nothing_is_claimed(missing: int) -> None:
    study = proposal(ONE, 1.0)
    came = reports(study, [900])
    whole = evidence(study, came)
    some = tuple(one for one in whole.statements if one.hop != missing)
    central = figure(study, came, whole._replace(statements=some))
    assert central.mixed == 1
    assert central.epsilon == pytest.approx(1.0, rel=1e-5)


def test_the_main_wave_of_a_question_is_the_first_in_which_its_answers_came() -> None:
    study = proposal(ONE, 1.0)
    second = reports(study, [900], wave=1)
    assert figure(study, second).epsilon == figure(study, reports(study, [900])).epsilon
    alone = reports(study, [1]) + second
    assert figure(study, alone).mixed == 1


def test_relays_that_were_left_out_are_listed() -> None:
    study = proposal(ONE, 1.0)
    came = reports(study, [900])
    certificate = made(study, came, shown=evidence(study, came, left_out=(3, 4)))
    assert certificate.amplified is not None
    assert certificate.amplified.left_out == ("relay-3", "relay-4")
    assert any("went without: relay-3, relay-4" in remark for remark in certificate.remarks)
    certificate.verify()


def test_where_all_are_hidden_equally_badly_the_fewest_reports_are_stated() -> None:
    study = proposal(SINGLE, 1.0)
    counts = [9, 1, 7, 8] + [9] * (len(study.drawn_up.questions) - 4)
    central = figure(study, reports(study, counts))
    assert (central.reports, central.mixed) == (1, 1)


def test_it_moves_the_right_way() -> None:
    def epsilon(count: int = 1000, local: float = 1.0, **changes: int) -> float:
        study = proposal(ONE, local, **changes)
        return figure(study, reports(study, [count])).epsilon

    assert epsilon(2000) < epsilon() < epsilon(500) < epsilon(2) <= 1
    assert epsilon(local=0.5) < epsilon() < epsilon(local=2.0)
    assert epsilon(relays=3) == epsilon() == epsilon(relays=9)
    assert epsilon() < epsilon(corrupt=300)
    assert epsilon(local=150.0) == 150.0


def test_what_it_rests_on_is_in_words_and_numbers() -> None:
    study = proposal(ONE, corrupt=12)
    central = figure(study, everybody(study))
    assert (central.relays, central.hops, central.corrupt) == (5, 3, 12)
    assert "(3 of 5)" in central.assumption
    assert "no more than 12 of the people" in central.assumption
    nobody = amplified(proposal(ONE), undisturbed(proposal(ONE), 600), Evidence())
    assert "none of the people belong" in nobody.assumption


def test_a_figure_that_no_relay_has_signed_is_superseded() -> None:
    """As version 0.1 wrote them: the collector's word alone."""
    study = proposal(ONE, 1.0)
    certificate = made(study, reports(study, [900]), shown=Evidence())
    verdict = certificate.verify()
    assert verdict.superseded is not None
    assert "its word alone" in verdict.superseded


# ── by which randomiser ──


def test_a_certificate_that_names_no_randomisers_is_as_good_as_ever() -> None:
    """As they were written before: the larger figure, that of every randomiser."""
    study = proposal(SINGLE, 1.0)
    came, model = everybody(study), learned(study)
    shown = evidence(study, came)
    now = certified(study, 1000, came, shown, model, with_edges(study.schema, EDGES))
    before = amplified(study, counted(study, came, shown), shown, came, by_randomiser=False)
    older = replace(now, amplified=before).signed(KEY)
    assert "randomiser" not in json.dumps(json.loads(older.to_json())["amplified"])
    assert check_crowd(study, model, older.to_json()) == older
    verdict = older.verify()
    assert now.amplified is not None
    assert verdict.central == pytest.approx(before.epsilon, rel=1e-3)
    assert now.amplified.epsilon < before.epsilon / 1.05
    for figure in (replace(before, epsilon=now.amplified.epsilon), replace(before, questions=())):
        with pytest.raises((CertificateInvalid, CheckFailed)):
            check_crowd(study, model, replace(now, amplified=figure).signed(KEY).to_json())


def test_another_randomiser_than_that_of_the_answers_is_found() -> None:
    """It would hide better; and numbers that no randomiser has are no crash."""
    study = proposal(ONE, 1.0)
    certificate = made(study, everybody(study))
    central = certificate.amplified
    assert central is not None
    (answer,) = central.answers
    assert answer.randomiser is not None
    parameters = answer.randomiser.parameters
    for wrong in (
        {**parameters, "m": Fraction(64)},
        {**parameters, "m": Fraction(10**4000)},
        {**parameters, "p": Fraction(1, 10**4000)},
        {**parameters, "p": Fraction(-1)},
        {},
    ):
        lie = replace(answer, randomiser=replace(answer.randomiser, parameters=wrong))
        for releases in (
            certificate.releases,
            tuple(replace(r, parameters=wrong) for r in certificate.releases),
        ):
            figure = replace(central, answers=(lie,), questions=(lie,))
            changed = replace(certificate, amplified=figure, releases=releases).signed(KEY)
            with pytest.raises(CertificateInvalid):
                changed.verify()
    bare = replace(answer, randomiser=None)
    with pytest.raises(CertificateInvalid):
        replace(certificate, amplified=replace(central, answers=(bare,))).signed(KEY).verify()


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
    assert [a["mixed"] for a in central["answers"]] == [h.mixed for h in stated.answers]
    with pytest.raises(SystemExit):
        main(["verify", str(path)])
    printed = " ".join(capsys.readouterr().out.split())
    for words in ("local promise", "in the crowd", "only if", "3 answers of each person"):
        assert words in printed
