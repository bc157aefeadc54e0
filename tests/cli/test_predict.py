"""`tacit predict`, as a user types it."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.channels.central import Central
from tacit.cli.main import main
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey, digest
from tacit.data import Batch, Column, Layout, Schema, read_batches
from tacit.data.records import TableRecords
from tacit.privacy import Promise
from tacit.programs.itemsets import FrequentItemsets
from tacit.programs.kmeans import KMeans
from tacit.programs.linear import LinearRegression
from tacit.programs.logistic import Logistic
from tacit.programs.mixture import Mixture
from tacit.programs.model_file import model_bytes
from tacit.programs.naive_bayes import NaiveBayes
from tacit.programs.pca import PCA

GENERATOR = np.random.default_rng(23)
ROWS = 500
AGE = GENERATOR.uniform(20, 90, ROWS)
GROUP = GENERATOR.choice(["a", "b"], ROWS)
TABLE: dict[str, Any] = {
    "who": [f"p{i}" for i in range(ROWS)],
    "age": AGE,
    "group": GROUP,
    "ill": np.where(AGE + GENERATOR.normal(0, 5, ROWS) > 55, "yes", "no"),
    "cost": 100 + 20 * AGE,
}
WHO = Column(name="who", type="text", role="person")
FEATURES = (
    Column(name="age", type="number", bounds=(0, 100), when_missing="drop"),
    Column(name="group", type="category", categories=("a", "b")),
)
ILL = Column(name="ill", type="boolean", categories=("no", "yes"), role="label")
COST = Column(name="cost", type="number", bounds=(0, 3000), role="label")
GROUPED = Column(name="cost", type="number", edges=(900, 1500), role="label")


def run(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(words)
    printed = capsys.readouterr()
    assert isinstance(left.value.code, int)
    return left.value.code, printed.out, printed.err


def learned(folder: Path, program: Any, *columns: Column, file: Layout | None = None) -> Path:
    """A model file with its certificate, learned from TABLE."""
    schema = Schema(columns=columns, file=file or Layout())
    table = {column.name: TABLE[column.name] for column in columns}
    records = TableRecords(table, program.encoder(schema))
    promise = Promise(5.0, 1e-6)
    outcome = Central(randomness=SeededRandomness(1)).run(program, records, schema, promise)
    path = folder / "model.safetensors"
    path.write_bytes(model_bytes(outcome.model, program, schema))
    certificate = replace(outcome.certificate, subject=digest(path.read_bytes()))
    text = certificate.signed(SigningKey.generate()).to_json()
    path.with_name(path.name + ".certificate.json").write_text(text)
    return path


def written(folder: Path, rows: int, *names: str) -> Path:
    """The first rows of TABLE as a CSV file."""
    path = folder / "new.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerow(names)
        csv.writer(file).writerows(zip(*(list(TABLE[n])[:rows] for n in names), strict=True))
    return path


def said(program: Any, path: Path, columns: tuple[Column, ...], rows: int) -> Any:
    """What the saved model says of the first rows, by way of Python."""
    from tacit.programs.model_file import load_model

    saved = load_model(path)
    schema = Schema(columns=tuple(c for c in columns if c.role == "feature"))
    table = {c.name: TABLE[c.name][:rows] for c in schema.columns}
    X = program.encoder(schema).encode(Batch.concat(list(read_batches(table, schema)))).X
    return saved.predict(X)


@pytest.mark.parametrize("program", [Logistic(), NaiveBayes()])
def test_classes_by_name(program: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = (WHO, *FEATURES, ILL)
    model = learned(tmp_path, program, *columns)
    wanted = said(program, model, columns, 40)
    names = np.array(["no", "yes"])[wanted.values].tolist()
    file = written(tmp_path, 40, "age", "group")
    code, out, err = run(["predict", str(model), str(file)], capsys)
    assert code == 0
    rows = list(csv.reader(out.splitlines()))
    assert rows[0] == ["row", "prediction"]
    assert rows[1:] == [[str(i), name] for i, name in enumerate(names, start=1)]
    assert "warning" not in err
    assert "Right" not in err
    assert len(set(names)) == 2
    code, out, _ = run(["predict", str(model), str(file), "--scores", "--json"], capsys)
    document = json.loads(out)
    assert document["columns"] == ["row", "prediction", "score no", "score yes"]
    assert np.allclose([row[2:] for row in document["rows"]], wanted.scores)
    assert document["labelled"] == 0
    assert "accuracy" not in document
    assert document["certificate"]["epsilon"] == pytest.approx(5, rel=0.01)


def test_labels_in_the_file_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = (WHO, *FEATURES, ILL)
    model = learned(tmp_path, Logistic(), *columns)
    file = written(tmp_path, 100, "group", "ill", "who", "age")  # in any order
    names = np.array(["no", "yes"])[said(Logistic(), model, columns, 100).values]
    right = float((names == TABLE["ill"][:100]).mean())
    code, out, err = run(["predict", str(model), str(file), "--json"], capsys)
    assert code == 0
    assert json.loads(out)["accuracy"] == pytest.approx(right)
    assert 0.7 < right < 1
    code, out, err = run(["predict", str(model), str(file)], capsys)
    assert f"{right:.2%} of 100 with a label" in err
    # A label here and there is enough, and does not change what is predicted.
    lines = file.read_text().splitlines()
    lines[1] = lines[1].replace(TABLE["ill"][0], "")
    file.write_text("\n".join(lines))
    _, fewer, _ = run(["predict", str(model), str(file), "--json"], capsys)
    assert json.loads(fewer)["labelled"] == 99
    assert len(json.loads(fewer)["rows"]) == 100


def test_values_in_the_labels_own_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = (*FEATURES, COST)
    model = learned(tmp_path, LinearRegression(), *columns)
    file = written(tmp_path, 60, "age", "group", "cost")
    code, out, _ = run(["predict", str(model), str(file), "--json"], capsys)
    assert code == 0
    document = json.loads(out)
    values = said(LinearRegression(), model, columns, 60).values
    assert np.allclose([row[1] for row in document["rows"]], values)
    off = float(np.sqrt(np.mean((values - TABLE["cost"][:60]) ** 2)))
    assert document["root_mean_squared_error"] == pytest.approx(off)
    assert off < 400
    code, _, err = run(["predict", str(model), str(file), "--scores"], capsys)
    assert code == 2
    assert "leave --scores out" in err


def test_bins_are_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = learned(tmp_path, Logistic(), *FEATURES, GROUPED)
    file = written(tmp_path, 50, "age", "group", "cost")
    _, out, _ = run(["predict", str(model), str(file), "--json"], capsys)
    document = json.loads(out)
    bins = [f"bin {i}" for i in np.searchsorted([900, 1500], TABLE["cost"][:50], side="right")]
    right = np.mean([row[1] == b for row, b in zip(document["rows"], bins, strict=True)])
    assert document["accuracy"] == pytest.approx(right)
    assert right > 0.6


@pytest.mark.parametrize("program", [KMeans(3), Mixture(3)])
def test_clusters(program: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = learned(tmp_path, program, *FEATURES)
    file = written(tmp_path, 30, "age", "group")
    wanted = said(program, model, FEATURES, 30)
    _, out, _ = run(["predict", str(model), str(file), "--scores", "--json"], capsys)
    document = json.loads(out)
    assert document["columns"] == ["row", "cluster", "score 0", "score 1", "score 2"]
    assert [row[1] for row in document["rows"]] == wanted.values.tolist()
    assert np.allclose([row[2:] for row in document["rows"]], wanted.scores)


def test_components_of_a_parquet_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = learned(tmp_path, PCA(2), *FEATURES)
    wanted = said(PCA(2), model, FEATURES, 30)
    file, out = tmp_path / "new.parquet", tmp_path / "said.csv"
    pq.write_table(pa.table({"age": AGE[:30], "group": GROUP[:30]}), file)
    code, printed, err = run(["predict", str(model), str(file), "--out", str(out)], capsys)
    assert code == 0
    assert printed == ""
    assert "30 of 30 records" in err
    rows = list(csv.reader(out.read_text().splitlines()))
    assert rows[0] == ["row", "component 1", "component 2"]
    assert np.array_equal(np.array(rows[1:], dtype=float)[:, 1:], wanted.values)
    code, printed, _ = run(["predict", str(model), str(file), "--out", str(out), "--json"], capsys)
    assert json.loads(printed)["out"] == str(out)
    assert "rows" not in json.loads(printed)


def test_a_file_without_a_header(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    layout = Layout(header=False, delimiter=";")
    model = learned(tmp_path, Logistic(), WHO, *FEATURES, ILL, file=layout)
    file = tmp_path / "new.txt"
    for line, labelled in (("p;80;a;yes\np;25;b;no\n", 2), ("p;80;a\np;25;b\n", 0)):
        file.write_text(line)
        code, out, _ = run(["predict", str(model), str(file), "--json"], capsys)
        assert code == 0
        document = json.loads(out)
        assert document["labelled"] == labelled
        assert [row[1] for row in document["rows"]] == ["yes", "no"]
    file.write_text("80;a\n")
    assert run(["predict", str(model), str(file)], capsys)[0] == 3


def test_a_record_that_training_drops_keeps_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = learned(tmp_path, Logistic(), *FEATURES, ILL)
    file = tmp_path / "new.csv"
    file.write_text("age,group,ill\n80,a,yes\n,b,yes\n25,a,yes\n")
    code, out, err = run(["predict", str(model), str(file)], capsys)
    assert code == 0
    assert out.splitlines() == ["row,prediction", "1,yes", "2,", "3,no"]
    assert "2 of 3 records" in err
    assert "50.00% of 2" in err


def test_bad_cells_have_a_place_and_a_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = learned(tmp_path, Logistic(), *FEATURES, ILL)
    file, out = tmp_path / "new.csv", tmp_path / "said.csv"
    for cells, says in [
        ("30,zebra", "row 2, column 'group': is not one of the 2 values in the schema. It was "),
        ("30,", "row 2, column 'group': is missing. It was learned from: a, b. Mend the file"),
        ("old,a", "row 2, column 'age': is not a number. It was learned from numbers here."),
    ]:
        file.write_text(f"age,group\n20,a\n{cells}\n")
        code, _, err = run(["predict", str(model), str(file), "--out", str(out)], capsys)
        assert code == 3
        assert says in err
        assert "zebra" not in err
        assert not out.exists()
        assert not list(tmp_path.glob("*.part"))
    file.write_text("age\n20\n")
    code, _, err = run(["predict", str(model), str(file)], capsys)
    assert code == 3
    assert "has no column 'group'" in err
    file.write_text("age,group,more\n20,a,1\n")  # the schema refuses further columns
    assert run(["predict", str(model), str(file)], capsys)[0] == 3


def test_item_sets_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = learned(tmp_path, FrequentItemsets(), FEATURES[1])
    file = written(tmp_path, 5, "group")
    code, _, err = run(["predict", str(model), str(file)], capsys)
    assert code == 2
    assert "speaks of all records together" in err
    assert "load_model" in err


def test_the_certificate_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = learned(tmp_path, Logistic(), *FEATURES, ILL)
    file = written(tmp_path, 5, "age", "group")
    words = ["predict", str(model), str(file), "--json"]
    data = model.read_bytes()
    model.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    code, out, err = run(words, capsys)
    assert code == 6
    assert "rows" not in json.loads(out)
    assert "not the one this certificate was issued for" in err
    model.write_bytes(data)
    assert run(words, capsys)[0] == 0
    beside = model.with_name(model.name + ".certificate.json")
    beside.write_text(beside.read_text().replace('"1', '"2', 1))
    assert run(words, capsys)[0] == 6
    beside.unlink()
    code, out, err = run(words, capsys)
    assert code == 0
    assert "warning: no certificate" in err
    assert json.loads(out)["certificate"] is None


def test_nothing_that_is_read_is_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = learned(tmp_path, Logistic(), *FEATURES, ILL)
    file = written(tmp_path, 5, "age", "group")
    for path in (file, model, tmp_path / "none" / ".." / file.name):
        before = (file.read_bytes(), model.read_bytes())
        code, _, err = run(["predict", str(model), str(file), "--out", str(path)], capsys)
        assert code == 2
        assert "overwrite" in err
        assert (file.read_bytes(), model.read_bytes()) == before
    nowhere = tmp_path / "none" / "said.csv"
    code, _, err = run(["predict", str(model), str(file), "--out", str(nowhere)], capsys)
    assert code == 2
    assert "cannot be written" in err


def test_what_is_not_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, 5, "age", "group")
    assert run(["predict", str(tmp_path / "no-such-file"), str(file)], capsys)[0] == 3
    assert run(["predict", str(file), str(file)], capsys)[0] == 3
