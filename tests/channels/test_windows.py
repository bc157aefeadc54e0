"""Records that arrive in windows: every program learns from all, and has a model after each.

The tasks are those of `tacit bench defaults`: 50,000 records in all, ε = 1, δ = 1e-6.
"""

from __future__ import annotations

import math
import runpy
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.channels.central import Central
from tacit.channels.federation.aggregator import Aggregator
from tacit.channels.federation.certify import _checked_participation, check_result
from tacit.channels.federation.contribution import from_records
from tacit.channels.federation.holder import Holder
from tacit.channels.federation.journal import Journal
from tacit.channels.federation.letters import News, Subject
from tacit.channels.federation.local import local_study
from tacit.channels.federation.outbox import Outbox
from tacit.channels.federation.server import Server
from tacit.channels.federation.server_store import ServerStore
from tacit.channels.roles.budget import NoBudget
from tacit.channels.roles.letters import Letter, read, write
from tacit.channels.roles.store import MEMORY
from tacit.channels.studies.study import Study, planned_rounds
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.data.records import ArrayRecords
from tacit.errors import CheckFailed, InputError, Refused, UsageError
from tacit.privacy.certificate import Participation
from tacit.privacy.promise import Promise
from tacit.programs.histogram import Histogram
from tacit.programs.kmeans import KMeans
from tacit.programs.logistic import Logistic
from tacit.programs.program import Plan, Program
from tacit.programs.registry import installed, program_named

KEYS = [SigningKey.generate() for _ in range(3)]
PROMISE = Promise(1.0, 1e-6)
BENCH = Path(__file__).parents[2] / "benchmarks" / "defaults_parts" / "windows.py"


@cache
def bench() -> dict[str, Any]:
    return runpy.run_path(str(BENCH))


@cache
def tasks() -> dict[str, Any]:
    return {task.program: task for task in bench()["tasks"]()}


@cache
def at_once(name: str) -> float:
    task = tasks()[name]
    return float(task.score(bench()["whole"](task, "one place", 1)))


PROGRAMS = [
    "gaussian-mixture",
    "histogram",
    "frequent-itemsets",
    "k-means",
    "linear-regression",
    "logistic",
    "naive-bayes",
    "pca",
    "quantiles",
]


def test_every_registered_program_is_tried() -> None:
    summed = {name for name, kind in installed().items() if issubclass(kind, Program)}
    assert set(tasks()) == set(PROGRAMS)
    # As published its own noise drowns it, all at once too; it keeps the contract in windows.
    assert summed - {"gaussian-mixture-as-published"} <= set(PROGRAMS)


def beats(task: Any, model: Any) -> bool:
    score = task.score(model)
    return bool(score < task.trivial if task.loss else score > task.trivial)


def is_near(task: Any, model: Any) -> bool:
    """Within 2 points of all records at once, or within 5 % of its loss."""
    score, whole = task.score(model), at_once(task.program)
    return bool(score <= 1.05 * whole if task.loss else score >= whole - 0.02)


def check_certificates(outcomes: list[Any]) -> None:
    """One after each window, of all windows so far, each of which costs the promise at most."""
    for number, outcome in enumerate(outcomes, start=1):
        parts = {release.part for release in outcome.certificate.releases}
        assert parts == {f"window {n}" for n in range(1, number + 1)}
    last = outcomes[-1].certificate
    signed = last if last.signature else last.signed(SigningKey.generate())
    assert signed.verify().epsilon <= 1 + 1e-9


@pytest.mark.parametrize("windows", [6, 12, 52])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_learns_from_all_windows(name: str, windows: int) -> None:
    task = tasks()[name]
    outcomes = bench()["models"](task, "one place", windows, 1)
    assert len(outcomes) == windows
    check_certificates(outcomes)
    assert beats(task, outcomes[-1].model)
    assert is_near(task, outcomes[-1].model)
    if windows == 6:  # 8,333 records each
        assert all(beats(task, outcome.model) for outcome in outcomes)


@pytest.mark.parametrize("windows", [6, pytest.param(12, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_learns_from_windows_in_a_federation(name: str, windows: int) -> None:
    task = tasks()[name]
    outcomes = bench()["models"](task, "federation", windows, 1)
    assert len(outcomes) == windows
    check_certificates(outcomes)
    assert all(beats(task, outcome.model) for outcome in outcomes)
    assert [o.certificate.participation.rounds for o in outcomes] == [o.rounds for o in outcomes]


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_many_windows_in_a_federation(name: str) -> None:
    task = tasks()[name]
    outcomes = bench()["models"](task, "federation", 52, 1)
    check_certificates(outcomes)
    assert beats(task, outcomes[-1].model)


@pytest.mark.parametrize("promise", [Promise(1.0), Promise(math.inf)], ids=["pure", "exact"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_other_promises(name: str, promise: Promise) -> None:
    task = tasks()[name]
    parts = [task.part(slice(i * 8000, (i + 1) * 8000)) for i in range(6)]
    channel = Central(randomness=SeededRandomness(2))
    *_, last = channel.follow(task.made(), parts, task.schema, promise)
    assert beats(task, last.model)


def test_windows_of_different_sizes() -> None:
    """What a window of next to none stirs up is not carried on by the next."""
    task = tasks()["logistic"]
    cuts = [(0, 500), (500, 20_500), (20_500, 20_501), (20_501, 20_520), (20_520, 50_000)]
    parts = [task.part(slice(*cut)) for cut in cuts]
    for seed in range(3):
        channel = Central(randomness=SeededRandomness(seed))
        outcomes = list(channel.follow(task.made(), parts, task.schema, PROMISE))
        assert all(np.isfinite(outcome.model.coef).all() for outcome in outcomes)
        assert task.score(outcomes[-1].model) > at_once("logistic") - 0.02


# ── the study ──


def study_of(program: Program[Any, Any], windows: int | None) -> Study:
    schema = tasks()["k-means"].schema
    return local_study(program, 2, schema, PROMISE, KEYS, windows=windows)


def test_rounds_are_rounds() -> None:
    """Sums and counts of k-means are two releases of one round."""
    schema = tasks()["k-means"].schema
    assert planned_rounds(KMeans(3), schema, PROMISE) == 10
    assert planned_rounds(KMeans(3), schema, PROMISE, windows=12) == 24
    assert planned_rounds(Histogram(), schema, PROMISE, windows=12) == 12
    study = study_of(KMeans(3), 12)
    assert (study.rounds, study.last_round, study.plan().windows) == (24, 24, 12)
    assert [study.plan().place(number) for number in (1, 2, 3, 24)] == [
        (1, 1), (1, 2), (2, 1), (12, 2)
    ]  # fmt: skip
    assert study.format == "tacit study 2"
    assert 'format = "tacit study 2"' in study.to_toml()


def test_a_logistic_study_of_twelve_windows() -> None:
    task = tasks()["logistic"]
    study = local_study(Logistic(), 2, task.schema, PROMISE, KEYS, windows=12)
    first, later = study.plan().part(1), study.plan().part(2)
    names = [block.name for stage in first.stages for block in stage.query.blocks]
    assert names == ["count", "size", "mean", "spread", "gradient", "scores", "calibration"]
    assert [stage.count for stage in later.stages] == [1, 9, 1, 1]
    assert study.rounds == first.rounds + 11 * later.rounds


@pytest.mark.parametrize("windows", [0, -1, 2_001, 10**9])
@pytest.mark.parametrize("program", [Histogram(), Logistic(), KMeans(3)], ids=lambda p: p.name)
def test_a_number_of_windows_that_nobody_means(program: Any, windows: int) -> None:
    with pytest.raises(UsageError, match="at least one, and at most 2,000"):
        program.windowed(windows)


def test_the_first_format_keeps_its_meaning() -> None:
    """Rounds were releases, and a window one round of the plan."""
    made = study_of(KMeans(3), None).signed(KEYS[-1])
    document = _document(made)
    old = {**document, "format": "tacit study 1", "rounds": 20, "online": {"windows": 4}}
    read = Study.from_dict(old)
    assert (read.rounds, read.last_round) == (20, 4)
    assert [stage.window for stage in read.plan().stages] == [1, 2, 3, 4]
    assert read.to_toml().count('format = "tacit study 1"') == 1
    with pytest.raises(InputError, match="write rounds = 20"):
        Study.from_dict({**old, "rounds": 10}).program()
    with pytest.raises(InputError, match="write rounds = 20"):  # 5 in each of 4 windows
        Study.from_dict({**old, "format": "tacit study 2", "rounds": 10}).program()
    assert Study.from_dict({**old, "format": "tacit study 2"}).last_round == 20


def _document(study: Study) -> dict[str, Any]:
    import tomllib

    found = tomllib.loads(study.to_toml())
    del found["signature"]
    return found


# ── one result of each window ──


class Run:
    """A federation of two servers and two holders, one step at a time."""

    def __init__(self, windows: int = 2) -> None:
        self.study = study_of(KMeans(3), windows)
        self.servers = {
            key.public_key: Server(self.study, key, ServerStore(MEMORY, self.study.digest))
            for key in KEYS[:2]
        }
        self.journal = Journal(MEMORY, self.study.digest)
        self.aggregator = Aggregator(self.study, KEYS[-1], self.journal, 0.0)
        records = ArrayRecords(tasks()["k-means"].X[:500])
        self.events: list[tuple[str, Any]] = []
        self.holders = [
            Holder(
                self.study,
                party.key,
                Outbox(MEMORY, self.study.digest),
                from_records(self.study, records),
                NoBudget(),
                tell=lambda event, **fields: self.events.append((event, fields.get("window"))),
            )
            for party in self.study.holders
        ]

    def ask(self, kind: str, number: int, body: bytes = b"", server: int = 0) -> Any:
        chosen = list(self.servers.values())[server]
        asked = (self.study.aggregator.key, Letter(kind, number, body))
        return chosen.answer_all([asked])[0]

    def turn(self) -> None:
        while asked := self.aggregator.tick(0.0):
            for key, letter in asked:
                (reply,) = self.servers[key].answer_all([(self.study.aggregator.key, letter)])
                self.aggregator.told(key, letter, reply, 0.0)
        assert self.aggregator.failure is None
        for holder in self.holders:
            for key, letter in holder.tick():
                if key in self.servers:
                    (reply,) = self.servers[key].answer_all([(holder.key, letter)])
                else:
                    reply = self.aggregator.answer(holder.key, letter, 0.0)
                holder.told(key, letter, reply)

    def until_window(self) -> tuple[bytes, str]:
        while self.aggregator.newest is None:
            self.turn()
        return self.aggregator.newest


def test_holders_have_a_model_after_each_window() -> None:
    run = Run()
    model, certificate = run.until_window()
    for _ in range(3):
        run.turn()
    assert [holder.newest for holder in run.holders] == [(model, certificate)] * 2
    assert run.events.count(("window received", 1)) == 2
    while not all(holder.is_over for holder in run.holders):
        run.turn()
    assert run.holders[0].result is not None
    assert run.holders[0].result[0] != model
    check_result(run.study, model, certificate)


def test_an_aggregator_that_crashes_after_a_window_goes_on() -> None:
    run = Run()
    model, _ = run.until_window()
    again = Aggregator(run.study, KEYS[-1], run.journal, 0.0)
    assert again.newest is not None
    assert again.newest[0] == model
    run.aggregator = again
    while not all(holder.is_over for holder in run.holders):
        run.turn()


def test_a_server_signs_one_model_of_each_window(monkeypatch: pytest.MonkeyPatch) -> None:
    run, said = Run(), list[tuple[str, str]]()
    server = next(iter(run.servers.values()))
    answer, plan, other = server.answer_all, run.study.plan(), write(Subject("0" * 64))

    def asked(letters: Any) -> Any:
        (_, letter), *_ = letters
        attest = [(run.study.aggregator.key, Letter("attest", letter.round, other))]
        if letter.kind == "open" and letter.round > 1 and not plan.ends_window(letter.round - 1):
            said.append(("midst", str(answer(attest)[0])))
        found = answer(letters)
        if letter.kind == "attest":
            said.append(("again", str(answer(attest)[0])))
        return found

    monkeypatch.setattr(server, "answer_all", asked)
    while not all(holder.is_over for holder in run.holders):
        run.turn()
    again = [text for when, text in said if when == "again"]
    midst = [text for when, text in said if when == "midst"]
    assert len(again) == 2
    assert len(midst) == run.study.last_round - 2
    assert all("signed another result" in text for text in again)
    assert all("does not end its window" in text for text in midst)


def test_there_is_no_result_in_the_midst_of_a_window() -> None:
    study = study_of(KMeans(3), 2)
    end = study.plan().part(1).rounds
    assert _checked_participation(study, Participation(2, 2, end), 0).rounds == end
    for rounds in (end - 1, end + 1, study.last_round + 1):
        with pytest.raises(CheckFailed, match="who took part"):
            _checked_participation(study, Participation(2, 2, rounds), 0)


def test_a_server_reads_what_version_3_has_signed() -> None:
    store = ServerStore(MEMORY, "1" * 64)
    store.database.execute("INSERT INTO attested VALUES (?, NULL)", ("a" * 64,))
    assert store.attested(7) == "a" * 64
    assert store.newest_attested == (0, "a" * 64)


def test_programs_named_alike_plan_alike() -> None:
    """The plan of windows follows from the study alone."""
    schema = tasks()["k-means"].schema
    one, two = (
        Plan(tuple(p.plan(p.init(schema, PROMISE))))
        for p in (program_named("k-means").windowed(5) for _ in range(2))
    )
    assert one == two


# ── an aggregator that names other windows ──


@pytest.mark.parametrize("seed", range(4))
def test_letters_of_other_rounds_and_windows_change_nothing(seed: int) -> None:
    """Replayed, skipped ahead, asked twice, in the midst of another window: each round of each
    window is answered once, with the same bytes, and the study ends as if nobody had asked."""
    run, random = Run(windows=3), np.random.default_rng(seed)
    genuine: list[Letter] = []
    sums: dict[tuple[int, int], set[bytes]] = {}
    honest = {key: server.answer_all for key, server in run.servers.items()}
    aggregator = run.study.aggregator.key

    def hostile(place: int, key: str, letters: Any) -> Any:
        for _ in range(3 if genuine else 0):
            old = genuine[int(random.integers(len(genuine)))]
            number = int(random.integers(0, run.study.last_round + 3))
            letter = Letter(old.kind, number, old.body)
            opens = number == run.servers[key]._last + 1  # would be its own fault
            if letter.kind == "open" and opens:
                continue
            (reply,) = honest[key]([(aggregator, letter)])
            if isinstance(reply, Letter) and reply.kind == "partial":
                sums.setdefault((place, number), set()).add(reply.body)
        replies = honest[key](letters)
        for (sender, letter), reply in zip(letters, replies, strict=True):
            if sender == aggregator and letter.kind != "finish":
                genuine.append(letter)
            if isinstance(reply, Letter) and reply.kind == "partial":
                sums.setdefault((place, letter.round), set()).add(reply.body)
        return replies

    for place, (key, server) in enumerate(run.servers.items()):
        server.answer_all = partial(hostile, place, key)  # type: ignore[method-assign]
    while not all(holder.is_over for holder in run.holders):
        run.turn()
    assert set(sums) == {(s, n) for s in range(2) for n in range(1, run.study.last_round + 1)}
    assert all(len(answers) == 1 for answers in sums.values())
    assert run.aggregator.result is not None
    check_result(run.study, *run.aggregator.result)


@pytest.mark.parametrize("seed", range(4))
def test_a_holder_answers_no_round_of_an_earlier_window_again(seed: int) -> None:
    run, random = Run(windows=3), np.random.default_rng(seed)
    holder, made, told = run.holders[0], list[int](), list[Letter]()
    contribute, hears = holder._contribute, holder.told

    def counted(number: int, state: Any, query: Any) -> Any:
        made.append(number)
        return contribute(number, state, query)

    def hostile(to: str, asked: Letter, reply: Any) -> None:
        """Before every answer one of an earlier round, as it was or under another number."""
        if told:
            old = read(News, told[int(random.integers(len(told)))].body)
            number = int(random.integers(1, old.number + 1))
            again = News(number, old.seconds, old.state, old.attempt, old.before)
            with suppress(Refused):
                hears(to, asked, Letter("round", asked.round, write(again)))
        if isinstance(reply, Letter) and reply.kind == "round":
            told.append(reply)
        hears(to, asked, reply)

    holder._contribute, holder.told = counted, hostile  # type: ignore[method-assign]
    while not all(one.is_over for one in run.holders):
        run.turn()
    assert made == list(range(1, run.study.last_round + 1))
