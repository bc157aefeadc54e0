"""Known records at the command line: a copied table is refused with both names."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from tacit.channels.studies.study import Study
from tacit.cli.main import main
from tacit.crypto.signing import SigningKey
from tacit.data.digests import Digester
from tacit.data.tables import read_batches
from tacit.privacy.ledger import Ledger
from tacit.privacy.promise import Promise

SCHEMA = """
[columns.age]
type = "integer"
bounds = [0, 120]

[columns.pressure]
type = "number"
bounds = [50, 250]

[columns.ill]
type = "category"
role = "label"
categories = ["no", "yes"]
"""


@pytest.fixture
def tacit(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main(list(words))
        printed = capsys.readouterr()
        return int(left.value.code or 0), printed.out, printed.err

    return run


def patients(rows: int = 300) -> pa.Table:
    draw = np.random.default_rng(1)
    return pa.table(
        {
            "age": draw.integers(20, 90, rows),
            "pressure": draw.normal(140, 20, rows).round(1),
            "ill": np.array(["no", "yes"])[draw.integers(0, 2, rows)],
        }
    )


@pytest.fixture(params=["federation", "consortium"])
def study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tacit: Any, request: pytest.FixtureRequest
) -> Study:
    """A study that this machine's own key is in, and whose other parties nobody can reach."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    Path("schema.toml").write_text(SCHEMA)
    own, far = SigningKey.of_holder().public_key, "http://127.0.0.1:1"
    words = ["--name", "heart", "--question", "Who is ill?", "--epsilon", "1", "--schema"]
    words += ["schema.toml", "--aggregator", f"middle={far}={'c' * 64}", "--records", "1000"]
    for name, key in (("us", own), ("b", "d" * 64), ("c", "e" * 64), ("d", "9" * 64)):
        words += ["--holder", f"{name}={key}"]
    if request.param == "consortium":
        words += ["--program", "averaged-logistic", "--smallest", "200"]
    else:
        words += ["--program", "logistic", "--delta", "1e-6"]
        for name, digit in (("p", "a"), ("q", "b")):
            words += ["--server", f"{name}={far}={digit * 64}"]
    code, _, err = tacit("study", "new", "study.toml", *words)
    assert code == 0, err
    return Study.load("study.toml")


def charge(ledger: Ledger, study: Study, table: pa.Table, dataset: str) -> None:
    digester = Digester(study.schema)
    for batch in read_batches(table, study.schema):
        digester.add(batch)
    ledger.reserve(Promise(1.0), dataset, "earlier", records=digester.digests).commit()


def test_join_refuses_a_copy_until_it_is_stated_to_be_none(tacit: Any, study: Study) -> None:
    ledger = Ledger("ledger.db")
    ledger.allow("clinic", "record", 1.0)
    ledger.allow("copy", "record", 0.5, 1e-6)  # less than the study asks for: it ends there
    table = patients()
    charge(ledger, study, table, "clinic")
    pa.csv.write_csv(table.select(["ill", "age", "pressure"])[::-1], "copy.csv")
    pa.parquet.write_table(table[:210], "part.parquet")
    folders = count()

    def joined(*words: str) -> tuple[int, str, str]:
        """With a folder of its own: one that stays open would still be locked by this process."""
        always = ("--ledger", "ledger.db", "--insecure", "--folder", f"run-{next(folders)}")
        found: tuple[int, str, str] = tacit("join", "study.toml", *always, *words)
        return found

    code, _, err = joined("--data", "copy.csv")
    assert code == 4
    assert "known as data set 'clinic'" in err
    assert "'copy'" in err
    assert "--dataset clinic" in err
    assert not ledger.open_spends()
    code, _, err = joined("--data", "part.parquet", "--dataset", "copy")
    assert (code, "known as data set 'clinic'" in err) == (4, True)
    code, _, err = joined("--data", "copy.csv", "--dataset", "clinic")
    assert (code, "short by" in err) == (4, True), err  # its budget is spent

    stated = ("budget", "distinct", "copy", "clinic", "--ledger", "ledger.db")
    assert tacit(*stated)[0] == 2  # a reason is needed
    assert tacit(*stated, "--reason", "twins")[0] == 0
    code, _, err = joined("--data", "copy.csv")
    assert (code, "short by" in err, "known as" in err) == (4, True, False)
    assert ledger.entries()[-1].body["reason"] == "twins"
    ledger.verify()


def test_show_says_how_many_records_are_known(tacit: Any, study: Study) -> None:
    ledger = Ledger("ledger.db")
    ledger.allow("clinic", "record", 1.0)
    charge(ledger, study, patients(), "clinic")
    ledger.state_distinct("clinic", "twins", "born on one day")
    _, out, _ = tacit("budget", "show", "--ledger", "ledger.db")
    assert "clinic: about 300 records are known" in out
    assert "clinic is not twins, by the holder's word" in out
    _, out, _ = tacit("budget", "show", "--ledger", "ledger.db", "--json")
    assert json.loads(out)["known_records"] == {"clinic": 300}
    told = ("budget", "distinct", "clinic", "zoo", "--reason", "x", "--ledger", "ledger.db")
    _, out, _ = tacit(*told, "--json")
    assert json.loads(out)["other"] == "zoo"
