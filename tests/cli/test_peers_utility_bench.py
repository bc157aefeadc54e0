"""`tacit bench peers-utility` at small sizes: its numbers are the consortium's; its options."""

from __future__ import annotations

import importlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.channels.consortium.local import averaged, consortium_study
from tacit.channels.consortium.local_model import Local
from tacit.channels.consortium.protocols import curator_side, party_side
from tacit.channels.consortium.terms import JointTerms
from tacit.channels.peers.ensemble import Ensemble
from tacit.channels.studies.study import Consortium
from tacit.cli import bench
from tacit.cli.main import main
from tacit.crypto.boxes import BoxKey
from tacit.crypto.prg import DerivedRandomness, SeededRandomness
from tacit.crypto.sharing import fresh_seed
from tacit.crypto.signing import SigningKey
from tacit.data.encode import Encoded
from tacit.data.records import ArrayRecords
from tacit.data.schema import Column, Schema
from tacit.errors import DatasetError, UsageError
from tacit.privacy.promise import Promise
from tacit.programs.averaging import AveragedLogistic
from tacit.programs.files import from_bytes
from tacit.programs.logistic_output import LogisticOutput

SCHEMA = Schema(
    columns=(
        *(Column(name=f"x{i}", type="number", bounds=(0, 1)) for i in range(6)),
        Column(name="y", type="boolean", role="label"),
    )
)
PEERS, RECORDS, WIDTH = 5, 40, 6


@pytest.fixture(scope="module")
def module() -> Any:
    return bench._load(bench._benchmarks()["peers_utility"])


def part(module: Any, name: str) -> Any:
    assert module  # whose folder is on the path now
    return importlib.import_module(f"peers_parts.{name}")


@pytest.fixture(scope="module")
def peers() -> list[Encoded]:
    rng = np.random.default_rng(0)
    found = []
    for _ in range(PEERS):
        X = rng.random((RECORDS, WIDTH)) ** 3
        found.append(Encoded(X, (X[:, 0] > X[:, 1]).astype(np.int64), None))
    return found


def test_many_are_trained_as_one_is(module: Any, peers: list[Encoded]) -> None:
    made = AveragedLogistic(0.02, records="rooted")
    X = np.stack([made.prepared(own.X, SCHEMA) for own in peers])
    y = np.stack([np.asarray(own.y) for own in peers])
    found = part(module, "training").trained(X, y, 0.02)
    for row, own in zip(found, peers, strict=True):
        assert row == pytest.approx(made.train(own, SCHEMA), abs=1e-6)


def vectors(made: AveragedLogistic, peers: list[Encoded]) -> Any:
    return np.array([made.train(own, SCHEMA) for own in peers])


def test_without_noise_it_is_the_consortiums_average(module: Any, peers: list[Encoded]) -> None:
    """Five peers through the real protocol, masks and signatures included."""
    made = AveragedLogistic(0.02, records="rooted")
    promise = Promise(math.inf)
    plain = part(module, "aggregation").joint(made, SCHEMA, promise, PEERS, RECORDS)
    ours = plain.average(vectors(made, peers), SeededRandomness("unused"))
    records = [ArrayRecords(own.X, own.y) for own in peers]
    real = averaged(made, records, SCHEMA, promise, RECORDS, colluding=1)
    assert made.vector(real.model, SCHEMA) == pytest.approx(ours, abs=1e-12)


def protocol_run(terms: JointTerms, start: Any, keys: list[SigningKey], seed: str) -> bytes:
    """The consortium's own state machines, every party's randomness from a seed."""
    study = terms.study
    sides = {
        key.public_key: party_side(study, terms, 1, key, Local(vector, RECORDS), seeded(seed, i))
        for i, (key, vector) in enumerate(zip(keys, start, strict=True))
    }
    curator = curator_side(study, terms, 1, seeded(seed, PEERS))
    answers = dict.fromkeys(sides, b"")
    for step in (1, 2):
        bodies = {party: side.send(step, answers[party]) for party, side in sides.items()}
        answers = curator.answer(step, bodies)
    return curator.result({party: side.send(3, answers[party]) for party, side in sides.items()})


def seeded(seed: str, place: int) -> DerivedRandomness:
    return DerivedRandomness(f"{seed} {place}".encode().ljust(32, b"."))


def test_with_the_same_noise_it_is_the_consortiums_average(
    module: Any, peers: list[Encoded]
) -> None:
    """To the last bit: a mask, a signature or a ring changes no number."""
    made, promise = AveragedLogistic(0.02, records="rooted"), Promise(1.0, 1e-5)
    keys = [SigningKey.generate() for _ in range(PEERS + 1)]
    agreed = Consortium(colluding=1, smallest=RECORDS)
    study = consortium_study(made, keys[1:], keys[0], SCHEMA, promise, agreed)
    terms = JointTerms(study, tuple(key.public_key for key in keys[1:]))
    start = vectors(made, peers)
    real = from_bytes(made.models, protocol_run(terms, start, keys[1:], "same"))
    plain = part(module, "aggregation").joint(made, SCHEMA, promise, PEERS, RECORDS)
    total = np.zeros(WIDTH + 1, dtype=np.int64)
    for place, vector in enumerate(start):
        source = seeded("same", place)
        BoxKey(source), fresh_seed(source)  # what a party draws before its noise
        total += plain.mechanism.perturb(plain.grid.encode(vector), source)
    average = plain.grid.decode(total) / PEERS
    assert np.abs(average - start.mean(axis=0)).max() > 0.01  # there is noise
    assert np.array_equal(made.model(average, SCHEMA).coef, real.coef)


def test_its_noise_is_what_all_members_add(module: Any, peers: list[Encoded]) -> None:
    made = AveragedLogistic(0.02, records="rooted")
    plain = part(module, "aggregation").joint(made, SCHEMA, Promise(1.0, 1e-5), PEERS, RECORDS)
    start, source = vectors(made, peers), SeededRandomness("noise of five")
    drawn = [plain.average(start, source) - start.mean(axis=0) for _ in range(2_000)]
    wanted = float(plain.mechanism.scale) * math.sqrt(5 / 4) / 5
    assert np.std(drawn) == pytest.approx(wanted, rel=0.03)


@pytest.mark.parametrize(("members", "parts"), [(1, 1), (2, 1), (3, 2), (5, 4)])
def test_enough_noise_without_the_curious_member(module: Any, members: int, parts: int) -> None:
    made = AveragedLogistic(0.02, records="rooted")
    found = part(module, "aggregation").joint(made, SCHEMA, Promise(1.0, 1e-5), members, RECORDS)
    assert found.mechanism.parts == parts
    alone = LogisticOutput(0.02).mechanism(RECORDS, WIDTH + 1, Promise(1.0, 1e-5))
    assert found.mechanism.scale == alone.scale


def test_as_published_the_noise_does_not_fall_with_the_group(module: Any) -> None:
    found = part(module, "aggregation").as_published(0.5, 7, 2.0, 10)
    assert float(found.mechanism.scale) == pytest.approx(2 / (10 * 2.0 * 0.5), rel=1e-3)
    few, many = (
        np.std([found.average(np.zeros((size, 7)), SeededRandomness(f"{i}")) for i in range(2_000)])
        for size in (1, 50)
    )
    assert many == pytest.approx(few, rel=0.1)
    assert few == pytest.approx(math.sqrt(2) * 0.2, rel=0.1)


def test_votes_are_the_ensembles(module: Any, peers: list[Encoded]) -> None:
    made = AveragedLogistic(0.02, records="rooted")
    rows = vectors(made, peers) + np.random.default_rng(1).normal(0, 3, (PEERS, WIDTH + 1))
    models = [made.model(row, SCHEMA) for row in rows]
    own, unseen, truth = models.pop(), peers[0].X, np.asarray(peers[0].y)
    scores = made.prepared(unseen, SCHEMA) @ rows.T
    accuracy = part(module, "experiment").accuracy
    for weights in (None, (1.0, 2.0, 0.5, 0.0, 1.5)):
        said = Ensemble(models, own, weights).predict(unseen)
        given = None if weights is None else np.array(weights)
        found = accuracy(scores[:, :-1], scores[:, -1] > 0, truth, given)
        assert found == pytest.approx((said == truth).mean())


def test_one_setting_on_spambase(module: Any) -> None:
    """Both bars on two of the ten folds."""
    try:
        problem = part(module, "problems").Problem("spambase")
    except DatasetError as error:
        pytest.skip(str(error))
    lab = part(module, "experiment").Lab(problem, 2)
    rows = list(module.judged(lab))
    assert [row.ok for row in rows[:2]] == [True, True]  # how long it takes is for the command
    assert rows[0].ours > 0.85


def test_groups_are_whole_and_disjoint(module: Any) -> None:
    experiment = part(module, "experiment")
    lab = experiment.Lab.__new__(experiment.Lab)
    setting = experiment.Setting("corrected", 1.0, 0.1, 50, 66, 15)
    groups = lab.groups(setting, 3)
    assert [len(group) for group in groups] == [15, 15, 15]
    assert len({peer for group in groups for peer in group}) == 45


def test_a_page_has_all_points(module: Any) -> None:
    with pytest.raises(UsageError, match="leave --quick out"):
        next(module.rows(print, quick=True, page=True))


def test_what_was_measured_loses_less_than_a_point(module: Any) -> None:
    """One run of each network, so the mean over networks is held to the bar, and each to three
    times that; the command takes forty runs, and holds each to it."""
    found = list(part(module, "worth").outcomes(1, (1000,)))
    assert np.mean([max(0.0, one.lost) for one in found]) < 0.01
    assert max(one.lost for one in found) < 0.03
    lost = {one.name: one.network - one.weighed for one in found}
    assert lost["ten opposite models"] > 0.5  # and by going by the network


def test_options_reach_the_benchmark(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = '"""For the test."""\nfrom tacit.cli.bench import Row\n'
    (tmp_path / "plain.py").write_text(f"{head}def rows(say):\n    yield Row('a', 1, 1, 'b', 1)\n")
    (tmp_path / "quick.py").write_text(
        f"{head}def rows(say, quick=False):\n    yield Row('a', 1 + quick, 1, 'b', 1)\n"
    )
    found = {name: tmp_path / f"{name}.py" for name in ("plain", "quick")}
    monkeypatch.setattr(bench, "_benchmarks", lambda: found)

    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main(["bench", *words])
        text = capsys.readouterr()
        assert isinstance(left.value.code, int)
        return left.value.code, text.out, text.err

    code, out, _ = run("quick", "--quick", "--json")
    assert (code, json.loads(out)["rows"][0]["ours"]) == (0, 2)
    code, out, _ = run("quick", "--json")
    assert (code, json.loads(out)["rows"][0]["ours"]) == (0, 1)
    code, _, err = run("plain", "--quick")
    assert code == 2
    assert "has no --quick" in err
    assert run("quick", "--page")[0] == 2
