"""Sampling and selection in a study: what is refused, who draws, and what is certified."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom

from tacit.channels.federation.certify import check_certificate, check_result, checked_attestation
from tacit.channels.federation.contribution import from_records
from tacit.channels.federation.explain import explain
from tacit.channels.federation.follow import Followed
from tacit.channels.federation.holder import Holder
from tacit.channels.federation.letters import News
from tacit.channels.federation.local import Federation, local_study
from tacit.channels.federation.noise_plan import NoisePlan, asked_by
from tacit.channels.federation.outbox import Outbox
from tacit.channels.federation.secret_samples import secret_samples
from tacit.channels.roles.budget import NoBudget
from tacit.channels.roles.letters import Letter, write
from tacit.channels.roles.store import MEMORY
from tacit.channels.studies.study import Online, Sampling, Selection, Study, TakePart
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey, digest
from tacit.data.records import ArrayRecords
from tacit.data.schema import Column, Schema
from tacit.errors import CheckFailed, InputError
from tacit.home import tacit_home
from tacit.privacy.certificate import Certificate
from tacit.privacy.noise import bernoulli
from tacit.privacy.promise import Promise
from tacit.privacy.recompute import recomputed_epsilon
from tacit.programs.contribute import decoded
from tacit.programs.histogram import Histogram
from tacit.programs.kmeans import KMeans
from tacit.programs.levels import AGREED_BITS
from tacit.programs.program import Plan, Program
from tacit.programs.sampled import noise_of_samples
from tacit.programs.states import state_bytes
from tacit.promises.examples import example_of

KEYS = [SigningKey.generate() for _ in range(4)]  # three servers and the aggregator
RATE = 0.25
NORMAL, PURE = Promise(1.0, 1e-6), Promise(1.0)
ILL = Schema(columns=(Column(name="ill", type="boolean"), Column(name="old", type="boolean")))
WIDE = Schema(columns=(Column(name="x", type="number", bounds=(0.0, 1.0)),))


def study(
    promise: Promise = NORMAL,
    sampling: float | None = RATE,
    program: Program[Any, Any] | None = None,
    schema: Schema = ILL,
    **changes: Any,
) -> Study:
    program = program or Histogram()
    plain = local_study(program, 3, schema, promise, KEYS, sampling=sampling)
    part = TakePart(minimum=2, maximum=3, records=10_000)
    return msgspec.structs.replace(plain, take_part=part, **changes).running(program)


# ── the file ──


def test_older_studies_keep_their_digests_and_every_option_counts() -> None:
    plain = study(sampling=None)
    assert "[sampling]" not in plain.to_toml()
    assert "[selection]" not in plain.to_toml()
    counts = Selection(kind="noisy-counts")
    itemsets = example_of("frequent-itemsets")
    assert isinstance(itemsets.learner, Program)
    selecting = study(sampling=None, program=itemsets.learner, schema=itemsets.bare)
    chosen = msgspec.structs.replace(selecting, selection=counts)
    made = [plain, study(), study(sampling=0.5), selecting, chosen]
    assert len({one.digest for one in made}) == len(made)


def test_the_file_says_what_was_agreed(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(study(sampling=0.1).to_toml())
    found = Study.load(tmp_path / "study.toml")
    assert found.digest == study(sampling=0.1, holders=found.holders).digest
    assert found.rate == Fraction(1, 10)  # the decimal in the file, not the double next to it
    assert found.plan().stage(1).sampling == Fraction(1, 10)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sampling": Sampling(rate=0.0)}, "below 1"),
        ({"sampling": Sampling(rate=1.0)}, "everybody takes part"),
        ({"sampling": Sampling(rate=-0.5)}, "rate = -0.5"),
        ({"sampling": Sampling(rate=math.nan)}, "rate = nan"),
        ({"sampling": Sampling(rate=1e-9)}, "rate = 1e-09"),
        ({"promise": Promise(math.inf)}, "epsilon is infinite"),
        ({"promise": Promise(1.0, 1e-6, "holder")}, 'protect unit = "record"'),
        ({"promise": Promise(1.0, 1e-6, adjacency="replace")}, 'set adjacency = "add-remove"'),
        ({"format": "tacit study 1"}, "write the study anew"),
        ({"selection": Selection(kind="sparse-vector")}, 'Write kind = "noisy-counts"'),
    ],
)
def test_what_does_not_hold_is_refused_with_a_remedy(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as refused:
        msgspec.structs.replace(study(), **changes)
    assert words in str(refused.value)


def test_a_person_with_several_holders_is_not_sampled() -> None:
    person = Column(name="id", type="text", role="person")
    schema, promise = Schema(columns=(*ILL.columns, person)), Promise(1.0, 1e-6, "person")
    assert local_study(
        Histogram(), 3, schema, promise, KEYS, holders_per_person=1, sampling=RATE
    ).rate == Fraction(1, 4)
    with pytest.raises(InputError, match="holders_per_person = 1"):
        local_study(Histogram(), 3, schema, promise, KEYS, holders_per_person=2, sampling=RATE)


def test_only_what_selects_can_say_how() -> None:
    with pytest.raises(InputError, match="take \\[selection\\] out"):
        study(selection=Selection(kind="noisy-counts"))


def test_why_a_person_with_two_holders_has_no_rule() -> None:
    """Two coins of rate q and one contribution each, against one coin and both: neither bounds
    the other (options.md)."""

    def distance(mu: float) -> float:
        return math.erf(mu / 2 / math.sqrt(2))

    q, mu = 0.01, 0.5
    own_coins = 2 * q * (1 - q) * distance(mu)  # less than the truth: both at once left out
    assert own_coins > q * distance(2 * mu)


# ── coins ──


def sums(made: Study, outbox: Outbox, rounds: int = 1, count: int = 400) -> list[Any]:
    """Which of a holder's records were in each round's sum. Each record is a cell of its own."""
    program = Histogram(bins=count)
    X = np.linspace(-1, 1, 2 * count + 1)[1::2, None]
    contribute = from_records(made, ArrayRecords(X, rows=61), samples=secret_samples(made, outbox))
    state, query = asked_by(made, 1, state_bytes(made.first_state()))
    assert program.name == made.chosen.name
    return [contribute(1 + k, state, query).total[:count] > 0 for k in range(rounds)]


def cells(sampling: float = RATE, count: int = 400) -> Study:
    return study(program=Histogram(bins=count), schema=WIDE, sampling=sampling)


def test_coins_have_the_rate_and_are_the_same_in_every_life(tmp_path: Path) -> None:
    made, outbox = cells(), Outbox(tmp_path / "outbox.db", "0" * 64)
    (once,) = sums(made, outbox)
    # False alarm: 1e-9 on each side.
    assert binom.ppf(1e-9, 400, RATE) <= once.sum() <= binom.isf(1e-9, 400, RATE)
    outbox.close()
    again = Outbox(tmp_path / "outbox.db", "0" * 64)
    assert (sums(made, again)[0] == once).all()
    # Another study, another part in the same one, another machine: other coins.
    others = [sums(cells(0.26), again)[0], sums(made, Outbox(MEMORY, "0" * 64))[0]]
    (tacit_home() / "keys" / "records.key").unlink()
    others.append(sums(made, again)[0])
    assert all((other != once).any() for other in others)


def test_rounds_have_independent_samples() -> None:
    """Of two rounds: as many records in both as chance says; false alarm 2e-9."""
    made = study(program=KMeans(clusters=2, rounds=2), schema=WIDE)
    outbox = Outbox(MEMORY, made.digest)
    draw = secret_samples(made, outbox)
    first, second = (bernoulli(Fraction(1, 4), 400, draw(number)) for number in (1, 2))
    both = int((first & second).sum())
    assert binom.ppf(1e-9, 400, RATE**2) <= both <= binom.isf(1e-9, 400, RATE**2)


def test_without_samples_no_secret_is_made() -> None:
    made = study(sampling=None)
    assert secret_samples(made, Outbox(MEMORY, made.digest))(1).secure
    assert not (tacit_home() / "keys").exists()


def test_a_holder_that_dies_before_it_keeps_its_shares_draws_the_same_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, totals = cells(), []
    path = tmp_path / "outbox.db"

    def life() -> None:
        outbox = Outbox(path, made.digest)
        own = from_records(
            made,
            ArrayRecords(np.linspace(-1, 1, 801)[1::2, None]),
            samples=secret_samples(made, outbox),
        )

        def contribute(number: int, state: Any, query: Any) -> Any:
            found = own(number, state, query)
            totals.append(found.total)
            return found

        holder = Holder(made, made.holders[0].key, outbox, contribute, NoBudget())
        holder.tick()
        news = write(News(number=1, state=state_bytes(made.first_state()), seconds=1.0))
        try:
            holder.told(made.aggregator.key, Letter("ask", 0), Letter("round", 1, news))
        finally:
            outbox.close()

    def full(self: Outbox, *given: Any, **more: Any) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as broken:
        broken.setattr(Outbox, "keep", full)
        with pytest.raises(OSError, match="no space"):
            life()
    life()
    assert (totals[0] == totals[1]).all()
    assert 0 < np.count_nonzero(totals[0]) < 400


def test_a_window_is_sampled_as_a_whole(tmp_path: Path) -> None:
    """Files that are read in batches share the round's coins, and are drawn the same again."""
    program = Histogram(bins=100)
    plain = study(program=program, schema=WIDE)
    made = msgspec.structs.replace(plain, online=Online(windows=1)).running(program)
    for name, start in (("a", 0), ("b", 50)):
        rows = "\n".join(str((start + i + 0.5) / 100) for i in range(50))
        (tmp_path / f"{name}.csv").write_text(f"x\n{rows}\n")
    state, query = asked_by(made, 1, state_bytes(made.first_state()))
    outbox = Outbox(MEMORY, made.digest)
    counts = [
        decoded(
            Followed(made, tmp_path, outbox, samples=secret_samples(made, outbox))
            .contribute(1, state, query)
            .total,
            query,
        ).round()
        for _ in range(2)
    ]
    assert (counts[0] == counts[1]).all()
    assert (counts[0][:50] != counts[0][50:]).any()  # the coins do not begin anew with a file
    # 100 coins; false alarm 2e-9.
    assert binom.ppf(1e-9, 100, RATE) <= counts[0].sum() <= binom.isf(1e-9, 100, RATE)


# ── a whole run ──


@dataclass
class Run:
    study: Study
    model: bytes
    certificate: Certificate

    def rewritten(self, certificate: Certificate) -> str:
        """As the aggregator would sign it."""
        return certificate.signed(KEYS[3]).to_json()


def records(seed: int, count: int = 3000) -> ArrayRecords:
    X = (np.random.default_rng(seed).random((count, 2)) < 0.5).astype(float)
    return ArrayRecords(X)


@pytest.mark.parametrize("honest", [None, 3], ids=["every", "honest"])
@pytest.mark.parametrize("promise", [NORMAL, PURE], ids=["gaussian", "pure"])
def test_a_sampled_federation_keeps_its_promise(promise: Promise, honest: int | None) -> None:
    def seeded(server: int, number: int) -> SeededRandomness:
        return SeededRandomness(f"{server} {number}")

    federation = Federation(3, honest, seeded, sampling=RATE)
    outcome = federation.run(Histogram(), [records(i) for i in range(3)], ILL, promise)
    certificate = outcome.certificate
    assert {release.sampling for release in certificate.releases} == {Fraction(1, 4)}
    assert len({release.sample for release in certificate.releases}) == 1
    assert any("with probability 1/4" in said for said in certificate.conditions)
    # The accountants that calibrated it, and other code that knows none of them.
    found = certificate.verify().epsilon
    again = recomputed_epsilon(certificate.releases, promise.delta)
    assert 0.95 * promise.epsilon < found <= promise.epsilon * (1 + 1e-3)
    assert again == pytest.approx(found, rel=5e-3)
    # One release before sampling: in a sample of everybody it would be far dearer.
    whole = [replace(r, sampling=Fraction(1), sample=None) for r in certificate.releases]
    assert recomputed_epsilon(whole, promise.delta) > 1.5 * promise.epsilon
    # Sums are scaled up: 4500 of 9000 records, give or take what the sample and noise leave.
    counts = outcome.model.of("ill")
    assert abs(counts.sum() - 9000) < 7 * (math.sqrt(9000 * 3) + 30)


def test_every_program_runs_on_samples() -> None:
    """Rounds over other records than the last ones': no program takes them for the same."""
    for name in ("k-means", "frequent-itemsets", "naive-bayes"):
        example = example_of(name)
        program = example.learner
        assert isinstance(program, Program)
        width = program.encoder(example.schema).width
        X = np.random.default_rng(0).random((60, width)).round()
        y = None if example.schema.label is None else np.arange(60) % 2
        own = [ArrayRecords(X[i::3], None if y is None else y[i::3]) for i in range(3)]
        outcome = Federation(2, sampling=RATE).run(program, own, example.schema, PURE)
        assert outcome.certificate.verify().epsilon <= 1.001


@pytest.fixture(scope="module")
def ran() -> Run:
    made = study()
    own = [from_records(made, records(i, 200)) for i in range(3)]
    *_, last = Federation(3)._outcomes(made, KEYS, own)
    model = last.certificate.subject  # only its digest is needed here
    return Run(made, model.encode(), last.certificate)


def test_the_certificate_is_the_one_that_every_holder_computes(ran: Run) -> None:
    assert check_certificate(ran.study, ran.certificate.to_json()) == ran.certificate


@pytest.mark.parametrize("rate", [Fraction(1, 5), Fraction(1, 2), Fraction(1)])
def test_an_aggregator_that_says_another_rate_is_refused(ran: Run, rate: Fraction) -> None:
    def lie(certificate: Certificate) -> Certificate:
        releases = tuple(
            replace(r, sampling=rate, sample=r.sample if rate < 1 else None)
            for r in certificate.releases
        )
        draft = replace(certificate, releases=releases)
        said = draft.statement_of_subject
        assert said is not None
        # Even if all servers sign it too.
        witnesses = tuple(
            replace(w, signature=key.sign(said))
            for w, key in zip(draft.witnesses, KEYS, strict=False)
        )
        return replace(draft, witnesses=witnesses)

    with pytest.raises(CheckFailed, match=r"other noise|more than the promised"):
        check_certificate(ran.study, ran.rewritten(lie(ran.certificate)))


@pytest.mark.parametrize("change", [{"sample": None}, {"sample": "another"}])
def test_nor_one_that_takes_the_sample_for_several(ran: Run, change: dict[str, Any]) -> None:
    first, *rest = ran.certificate.releases
    lied = replace(ran.certificate, releases=(replace(first, **change), *rest))
    with pytest.raises(CheckFailed):
        check_certificate(ran.study, ran.rewritten(lied))


def test_nor_one_that_leaves_out_what_the_promise_rests_on(ran: Run) -> None:
    with pytest.raises(CheckFailed, match="conditions"):
        check_certificate(ran.study, ran.rewritten(replace(ran.certificate, conditions=())))


@pytest.mark.parametrize("other", [0.2, None])
def test_a_study_of_another_rate_is_another_study(ran: Run, other: float | None) -> None:
    """Whoever has another file in hand: nothing that one of them signs counts for the other."""
    table = None if other is None else Sampling(rate=other)
    changed = msgspec.structs.replace(ran.study, sampling=table).running(Histogram())
    assert changed.digest != ran.study.digest
    with pytest.raises(CheckFailed, match="another study"):
        check_result(changed, ran.model, ran.certificate.to_json())
    signed = ran.study.signed(KEYS[0])
    with pytest.raises(CheckFailed, match="changed after"):
        msgspec.structs.replace(signed, sampling=table).check_signature()


def test_a_server_that_adds_noise_for_another_rate_is_not_believed(ran: Run) -> None:
    from tacit.channels.federation.certify import Attestation, statement_of

    made, sets = ran.study, [[holder.key for holder in ran.study.holders]]
    other = msgspec.structs.replace(made, sampling=Sampling(rate=0.2)).running(Histogram())
    books: dict[float, NoisePlan] = {}
    for one in (made, other):
        books[float(one.rate)] = NoisePlan(one)
        books[float(one.rate)].charge(1, one.plan().stage(1).query)
    subject = digest(b"model")
    said = statement_of(made, books[0.2], sets, True, subject)
    body = write(Attestation(KEYS[0].sign(said), True))
    with pytest.raises(CheckFailed, match="books"):
        checked_attestation(made, books[0.25], sets, subject, KEYS[0].public_key, body)


# ── what it buys ──


@pytest.mark.parametrize(
    ("name", "promise"),
    [
        *((name, PURE) for name in ("histogram", "k-means", "logistic", "pca")),
        ("frequent-itemsets", PURE),
        ("histogram", NORMAL),
        ("k-means", NORMAL),
    ],
)
def test_samples_never_lower_the_noise_of_usual_promises(name: str, promise: Promise) -> None:
    example = example_of(name)
    program = example.learner
    assert isinstance(program, Program)
    plan = Plan(tuple(program.plan(program.init(example.schema, promise))))
    ratios = [noise_of_samples(promise, plan, Fraction(1, q)) for q in (2, 4)]
    assert 1 < ratios[0] < ratios[1]
    assert noise_of_samples(promise, plan, Fraction(1)) == 1


def test_show_says_what_sampling_buys() -> None:
    made, plain = study(), study(sampling=None)
    found, without = explain(made, 1000, quick=True), explain(plain, 1000, quick=True)
    factor = made.sampling_factor
    assert found.factor == pytest.approx(without.factor * factor)
    for ours, theirs in zip(found.noise, without.noise, strict=True):
        assert ours.result == pytest.approx(theirs.result * factor, rel=2e-3)
        assert ours.central == pytest.approx(theirs.central, rel=2e-3)
        assert ours.one_part < theirs.one_part  # as drawn, before sums are scaled up
    said = " ".join(found.options)
    assert f"{factor:.3g} times the noise" in said
    assert "leave it out" in said
    assert f"{found.noise[0].result:.4g} instead of {without.noise[0].result:.3g}" in said
    assert f"varies by {math.sqrt(3000 * 3):,.0f}" in said
    assert not without.options
    assert all(line in found.lines for line in found.options)


def test_show_says_when_more_noise_is_hardly_any() -> None:
    made = study(program=KMeans(clusters=2, rounds=300), schema=WIDE, promise=PURE, sampling=0.9)
    assert "hardly more noise" in " ".join(explain(made, quick=True).options)


def test_show_says_how_is_selected() -> None:
    example = example_of("frequent-itemsets")
    assert isinstance(example.learner, Program)
    made = study(sampling=None, program=example.learner, schema=example.bare)
    chosen = msgspec.structs.replace(made, selection=Selection(kind="noisy-counts"))
    (said,) = explain(chosen.running(example.learner), quick=True).options
    assert "costs nothing more" in said


def test_scales_that_were_searched_for_have_few_digits() -> None:
    """So that another machine's Fourier transform finds the same."""
    for scale in study().levels().multipliers.values():
        assert scale.numerator.bit_length() <= AGREED_BITS or scale.denominator == 1


# ── sparse vectors ──


@pytest.mark.parametrize("threshold_scale", [0.5, 3.0, 30.0])
def test_reading_noisy_differences_from_a_threshold_costs_what_counts_cost(
    threshold_scale: float,
) -> None:
    """options.md (5), integrated: a sets the unit holds, a others; the threshold's noise is shared,
    and does not help, however wide it is."""
    a, s = 3, 1.0
    far = 40 * threshold_scale

    def density(held: int) -> float:
        def given(rho: float) -> float:
            moved = a * abs(far + held + rho) + a * abs(rho - far)
            return math.exp(-(moved - 2 * a * far) / s - abs(rho) / threshold_scale)

        return float(quad(given, -2 * far, 2 * far, points=[-far, 0, far], limit=500)[0])

    assert math.log(density(0) / density(1)) == pytest.approx(a / s, rel=1e-6)
