"""A federation whose schema leaves bounds to be found, where nobody sees all the data."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import pytest

from tacit.channels.federation.aggregator import Aggregator
from tacit.channels.federation.certify import check_certificate, check_model, check_result
from tacit.channels.federation.contribution import from_records
from tacit.channels.federation.explain import explain
from tacit.channels.federation.holder import Holder
from tacit.channels.federation.journal import Journal
from tacit.channels.federation.local import Federation, _from_holder, _to_servers, local_study
from tacit.channels.federation.outbox import Outbox
from tacit.channels.federation.server import Server
from tacit.channels.federation.server_store import ServerStore
from tacit.channels.roles.budget import NoBudget
from tacit.channels.roles.store import MEMORY
from tacit.channels.studies.study import Study
from tacit.cli.main import main
from tacit.crypto.signing import SigningKey
from tacit.data import Schema
from tacit.data.batch import Batch
from tacit.data.records import ArrayRecords
from tacit.errors import CheckFailed
from tacit.privacy import Promise
from tacit.privacy.certificate import Certificate
from tacit.programs.kmeans import KMeans
from tacit.programs.linear import LinearRegression
from tacit.programs.model_file import check_canonical, model_bytes, model_from_bytes
from tacit.programs.ranged import Ranged

ROWS = 3_000
generator = np.random.default_rng(0)
X = np.column_stack(
    [generator.normal(290, 8, ROWS), generator.exponential(3, ROWS), np.full(ROWS, 7.0)]
)
Y = 3 * (X[:, 0] - 290) - 5 * X[:, 1] + generator.normal(size=ROWS)
NUMBER = {"type": "number", "bounds": "private"}
SCHEMA = Schema.from_dict(
    {
        "columns": {
            "kelvin": NUMBER,
            "wait": NUMBER,
            "constant": {"type": "integer", "bounds": "private"},
            "height": {**NUMBER, "role": "label"},
        }
    }
)
PROMISE = Promise(2.0, 1e-6)
TABLE = {"kelvin": X[:, 0], "wait": X[:, 1], "constant": X[:, 2], "height": Y}


@dataclass(frozen=True)
class Run:
    study: Study
    model: bytes
    certificate: str
    key: SigningKey


@pytest.fixture(scope="module")
def run() -> Run:
    """The real state machines, one message after another."""
    keys = [SigningKey.generate() for _ in range(3)]
    study = local_study(LinearRegression(), 3, SCHEMA, PROMISE, keys)
    servers = {
        key.public_key: Server(study, key, ServerStore(MEMORY, study.digest)) for key in keys[:-1]
    }
    aggregator = Aggregator(study, keys[-1], Journal(MEMORY, study.digest), 0.0)
    members = [
        Holder(
            study,
            party.key,
            Outbox(MEMORY, study.digest),
            from_records(study, ArrayRecords(X[place::3], Y[place::3])),
            NoBudget(),
        )
        for place, party in enumerate(study.holders)
    ]
    while not (aggregator.is_over and all(member.is_over for member in members)):
        _to_servers(aggregator, servers)
        for member in members:
            _from_holder(member, aggregator, servers)
    assert aggregator.result is not None
    return Run(study, *aggregator.result, keys[-1])


def test_the_model_has_the_ranges_and_predicts(run: Run) -> None:
    saved = model_from_bytes(run.model)
    low, high = saved.schema.column("kelvin").bounds
    assert 200 < low < 275
    assert 305 < high < 450
    assert saved.schema.column("constant").range_found is False
    assert saved.schema.column("height").range_found is True
    said = saved.predict(saved.encoder.encode(Batch(saved.schema, TABLE, ROWS)).X)
    assert said is not None
    assert 1 - np.mean((said.values - Y) ** 2) / Y.var() > 0.8


def test_the_certificate_is_of_the_agreed_schema_and_says_what_was_guessed(run: Run) -> None:
    certificate = check_result(run.study, run.model, run.certificate)
    assert certificate.schema_digest == SCHEMA.digest
    assert 1.99 < certificate.verify().epsilon <= 2.0
    assert "'constant'" in certificate.remarks[1]
    assert "'kelvin'" not in certificate.remarks[1]


def test_nobody_can_say_something_else_of_the_ranges(run: Run) -> None:
    certificate = Certificate.from_json(run.certificate)
    issued = datetime.fromisoformat(certificate.issued)
    silent = replace(certificate, remarks=certificate.remarks[:1], signature="", public_key="")
    resigned = silent.signed(run.key, issued)
    check_certificate(run.study, resigned.to_json())  # some run could have found them all
    with pytest.raises(CheckFailed, match="remark"):
        check_model(run.study, run.model, resigned)
    invented = replace(silent, remarks=("All is well.",)).signed(run.key, issued)
    with pytest.raises(CheckFailed, match="remarks"):
        check_certificate(run.study, invented.to_json())


def test_a_model_under_another_schema_is_refused(run: Run) -> None:
    saved, certificate = model_from_bytes(run.model), Certificate.from_json(run.certificate)
    open_bounds = {"columns": {**SCHEMA.to_dict()["columns"], "wait": NUMBER}}
    other = Schema.from_dict(
        {"columns": {**saved.schema.to_dict()["columns"], "wait": {"type": "integer", **WIDE}}}
    )
    for schema in (other, Schema.from_dict(open_bounds)):
        data = model_bytes(saved.model, LinearRegression(), schema)
        with pytest.raises(CheckFailed, match=r"schema|range"):
            check_model(run.study, data, certificate)


WIDE = {"bounds": [0, 1000], "range_found": True}


def test_verify_and_predict_read_it(
    run: Run, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model").write_bytes(run.model)
    (tmp_path / "model.certificate.json").write_text(run.certificate)
    (tmp_path / "study.toml").write_text(run.study.to_toml())
    rows = "\n".join(f"{a},{b},{c:g}" for a, b, c in X[:5])
    (tmp_path / "new.csv").write_text(f"kelvin,wait,constant\n{rows}\n")
    for words in (
        ["verify", str(tmp_path / "model"), "--study", str(tmp_path / "study.toml"), "--json"],
        ["predict", str(tmp_path / "model"), str(tmp_path / "new.csv"), "--json"],
    ):
        with pytest.raises(SystemExit) as left:
            main(words)
        found = json.loads(capsys.readouterr().out)
        assert left.value.code == 0, found
    values = [row[1] for row in found["rows"]]
    assert np.abs(np.array(values) - Y[:5]).max() < 40


def test_a_study_file_keeps_private_bounds(run: Run, tmp_path: Any) -> None:
    (tmp_path / "study.toml").write_text(run.study.to_toml())
    again = Study.load(tmp_path / "study.toml")
    assert again.digest == run.study.digest
    assert again.plan() == run.study.plan()
    assert again.rounds == 5  # two rounds of the search, three of the program


def test_study_show_says_which_and_at_what_cost(run: Run) -> None:
    explanation = explain(run.study, quick=True)
    assert "kelvin, wait, constant, height" in explanation.ranges
    assert "15%" in explanation.ranges
    assert any(block.block == "ranges, closely" for block in explanation.noise)


def test_one_process_gives_the_learned_schema_too() -> None:
    parts = [ArrayRecords(X[place::3], Y[place::3]) for place in range(3)]
    outcome = Federation().run(LinearRegression(), parts, SCHEMA, PROMISE)
    assert not outcome.schema.private
    assert outcome.model.low == outcome.schema.column("height").bounds[0]


def test_one_width_for_all_widens_what_was_stated_and_never_narrows_it() -> None:
    """A program that compares distances may, in one process; a model that narrows is refused."""
    stated = {"type": "number", "bounds": [0, 20]}
    schema = Schema.from_dict({"columns": {"kelvin": NUMBER, "wait": stated}})
    program = Ranged(KMeans(2), uniform=True)
    parts = [ArrayRecords(X[place::3, :2]) for place in range(3)]
    outcome = Federation().run(program, parts, schema, PROMISE)
    low, high = outcome.schema.column("wait").bounds
    widths = {round(c.bounds[1] - c.bounds[0], 9) for c in outcome.schema.features}
    assert low < 0 < 20 < high
    assert len(widths) == 1
    ranges = {c.name: (*c.bounds, True) for c in outcome.schema.features}
    plain = Ranged(KMeans(2))
    for bounds in ((0.1, high), (low, 19.0), (5.0, 6.0)):
        narrow = schema.with_ranges({**ranges, "wait": (*bounds, True)})
        data = model_bytes(outcome.model, program, narrow)
        for reader in (program, plain):
            with pytest.raises(CheckFailed):
                check_canonical(data, reader, schema)
    wide = model_bytes(outcome.model, program, outcome.schema)
    assert check_canonical(wide, program, schema) == outcome.schema
    with pytest.raises(CheckFailed):  # a study's program leaves stated bounds alone
        check_canonical(wide, plain, schema)


def test_a_study_weighs_columns_by_their_widths_stated_or_found() -> None:
    keys = [SigningKey.generate() for _ in range(3)]
    schema = Schema.from_dict({"columns": {"kelvin": NUMBER, "wait": NUMBER}})
    found = local_study(KMeans(2), 3, schema, PROMISE, keys).program()
    assert isinstance(found, Ranged)
    assert not found.uniform
